//! The files in which agents' programs keep their own sessions, read by the importers.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use tertulia_agents::session_files::{RecordedAnswers, SessionFiles};
use tertulia_core::entry::{SpeakerKind, Usage};
use tertulia_core::foreign::Foreign;
use tertulia_formats::importer::{Importer, Input, importer};

use crate::env;

/// Depth to which a program's folder is searched.
const DEPTH: usize = 6;
/// Number of characters of a session's id that the name of its file contains at least.
const NAMED: usize = 8;
/// Programs record milliseconds, which may seem to be before the prompt.
const MILLISECOND: SignedDuration = SignedDuration::from_millis(1);

/// The files of one program.
#[derive(Debug)]
pub struct NativeFiles {
    importer: &'static dyn Importer,
    /// Variables that the program has besides those of this process.
    env: Vec<(String, String)>,
}

impl NativeFiles {
    /// Returns the files of a program, named as in `import --from`, if they can be read.
    pub fn of(program: &str, env: &[(String, String)]) -> Option<NativeFiles> {
        Some(NativeFiles {
            importer: importer(program)?,
            env: env.to_vec(),
        })
    }

    /// Reads a session where its program keeps it now. A fork or a subagent in the file of another
    /// session has no id by which the program could continue it.
    pub fn find(&self, session: &str) -> Option<(PathBuf, Foreign)> {
        if session.contains(['#', '/']) {
            return None;
        }
        let variable = |name: &str| {
            let own = self.env.iter().find(|(known, _)| known == name);
            own.map(|(_, value)| value.clone())
                .or_else(|| env::text(name))
        };
        let home = PathBuf::from(variable("HOME")?);
        let named = session.get(..NAMED).unwrap_or(session);
        let mut files = Vec::new();
        for place in self.importer.places(&home, &variable) {
            match place.is_file() {
                true => files.push(place),
                false => files_named(&place, named, DEPTH, &mut files),
            }
        }
        files.into_iter().find_map(|path| {
            let input = Input {
                path: &path,
                content: None,
            };
            let found = self.importer.read_session(&input, session).ok().flatten();
            found.map(|found| (path, found))
        })
    }
}

impl SessionFiles for NativeFiles {
    fn recorded(&self, session: &str, since: Timestamp) -> Option<RecordedAnswers> {
        let (_, found) = self.find(session)?;
        let since = since.checked_sub(MILLISECOND).unwrap_or(since);
        let mut recorded = RecordedAnswers::default();
        let messages = found.said.iter().filter(|said| said.at >= since);
        for message in messages.map(|said| &said.message) {
            if message.speaker.kind == SpeakerKind::Ai && message.model.is_some() {
                recorded.model.clone_from(&message.model);
            }
            recorded.requests.extend(message.usage_id.clone());
            let usage = message.usage.unwrap_or(Usage::default());
            recorded.usage = recorded.usage.plus(usage);
        }
        Some(recorded)
    }
}

/// Collects the files below a folder whose names contain a text.
fn files_named(folder: &Path, text: &str, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => {
                files_named(&entry.path(), text, depth - 1, found);
            }
            Ok(kind) if kind.is_file() && name.to_string_lossy().contains(text) => {
                found.push(entry.path());
            }
            _ => {}
        }
    }
}
