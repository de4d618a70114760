//! Reads the chat histories of aider: one Markdown file per project, to which each start of the
//! program adds a session. Messages have no ids: theirs are derived from all text before them, so
//! that copies of a file are recognised and sessions that differ stay apart.

mod section;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::importer::{Importer, Input, ReadError, Take, local_time};
use section::Section;
use tertulia_core::foreign::Foreign;

/// Name of the program in `import --from`.
const PROGRAM: &str = "aider";
/// Name of the agent that answers.
const AGENT: &str = "aider";
/// Name of the file in each project.
const FILE: &str = ".aider.chat.history.md";
/// Beginning of the line that starts a session.
const START: &str = "# aider chat started at ";
/// Maximum length of a line. Longer ones are skipped.
const LINE_LIMIT: u64 = 16_000_000;

/// Importer of aider's sessions.
#[derive(Debug)]
pub struct Aider;

impl Importer for Aider {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn is_candidate(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|name| name == FILE)
    }

    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool {
        let text = String::from_utf8_lossy(beginning);
        let is_named = self.is_candidate(path) && !text.trim().is_empty();
        // A history under another name: its first line starts a session.
        is_named
            || text
                .trim_start_matches('\u{feff}')
                .trim_start()
                .starts_with(START)
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let folder = folder(input);
        let mut lines = Lines::new(input.open()?);
        let mut section = Section::new(None);
        while let Some(line) = lines.next_line()? {
            let Line::Text(text) = line else {
                section.damaged(lines.number);
                continue;
            };
            let Some(started) = start(&text) else {
                section.read(&text);
                continue;
            };
            let time = local_time(&started);
            let finished = std::mem::replace(&mut section, Section::new(Some(started)));
            let session = finished.session(time, false);
            if give(session, folder.as_deref(), take) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
        let _ = give(section.session(None, true), folder.as_deref(), take);
        Ok(())
    }

    fn project_places(&self, folder: &Path) -> Vec<PathBuf> {
        vec![folder.join(FILE)]
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let named = env("AIDER_CHAT_HISTORY_FILE").map(PathBuf::from);
        named.into_iter().chain([home.join(FILE)]).collect()
    }
}

/// Gives the session of a section to `take`, if it has a message.
fn give(session: Option<Foreign>, folder: Option<&str>, take: &mut Take<'_>) -> ControlFlow<()> {
    let Some(mut session) = session else {
        return ControlFlow::Continue(());
    };
    session.source.cwd = folder.map(str::to_owned);
    take(session)
}

/// Returns the folder of the file, which is the project.
fn folder(input: &Input<'_>) -> Option<String> {
    if input.content.is_some() {
        return None;
    }
    let path = std::path::absolute(input.path).ok()?;
    Some(path.parent()?.to_str()?.to_owned())
}

/// Returns the time in a line that starts a session.
fn start(line: &str) -> Option<String> {
    Some(line.strip_prefix(START)?.trim().to_owned())
}

/// Reads lines of text with bounded memory.
struct Lines<'a> {
    input: Box<dyn BufRead + 'a>,
    number: usize,
}

enum Line {
    Text(String),
    TooLong,
}

impl<'a> Lines<'a> {
    fn new(input: Box<dyn BufRead + 'a>) -> Lines<'a> {
        Lines { input, number: 0 }
    }

    /// Reads the next line without its ending. The last one is skipped unless it is complete: the
    /// program may be writing it.
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut bytes = Vec::new();
        let mut limited = (&mut self.input).take(LINE_LIMIT);
        limited.read_until(b'\n', &mut bytes)?;
        self.number += 1;
        if bytes.pop() == Some(b'\n') {
            let ending = bytes.strip_suffix(b"\r").unwrap_or(&bytes);
            let text = String::from_utf8_lossy(ending);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            return Ok(Some(Line::Text(text.to_owned())));
        }
        let is_cut = limited.limit() == 0;
        if is_cut {
            self.input.skip_until(b'\n')?;
        }
        Ok(is_cut.then_some(Line::TooLong))
    }
}
