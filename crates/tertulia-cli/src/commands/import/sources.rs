//! The files that an import is given, folders included, and what they are by the look of them.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tertulia::formats::snapshot::Snapshot;
use tertulia::formats::{claude_master, jsonl};

use super::From;
use crate::error::{CommandError, CommandResult, ErrorKind};

/// A file that may hold a session.
#[derive(Debug)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// What came from standard input, which can be read only once.
    content: Option<Vec<u8>>,
    /// Whether nobody named it: it lies in a folder that was named.
    in_folder: bool,
}

impl Source {
    /// What is in it.
    pub fn read(&self) -> CommandResult<Vec<u8>> {
        match &self.content {
            Some(content) => Ok(content.clone()),
            None => fs::read(&self.path).map_err(|error| {
                // A folder that could not be listed: it is said why not.
                let listed = fs::read_dir(&self.path).err();
                let of_folder = listed.filter(|_| self.path.is_dir());
                unreadable(&self.path, of_folder.unwrap_or(error))
            }),
        }
    }

    /// What it is: as was said, or by the look of it. `None` for what is no session and lies in a folder
    /// with others.
    pub fn kind(&self, content: &[u8], said: Option<From>) -> CommandResult<Option<From>> {
        if said.is_none() && claude_master::is_one(content) {
            return Ok(Some(From::ClaudeMaster));
        }
        if self.in_folder && (is_named(&self.path, "jsonl") || said == Some(From::ClaudeMaster)) {
            return Ok(said.filter(|_| claude_master::is_one(content)));
        }
        if self.in_folder && !Snapshot::is_one(content) && is_json(content) {
            return Ok(None);
        }
        if said.is_some() || self.in_folder {
            return Ok(said.or(Some(From::AgentChatter)));
        }
        if jsonl::is_ours(content) {
            return Ok(Some(From::Tertulia));
        }
        // Of a damaged one, where it is damaged says more than that it looks like nothing.
        let damaged = is_named(&self.path, "json") && !is_json(content);
        if Snapshot::is_one(content) || damaged {
            return Ok(Some(From::AgentChatter));
        }
        Err(CommandError::new(
            ErrorKind::Invalid,
            format!("{} is not a session that can be read", self.path.display()),
        )
        .hint("read are: tertulia logs, as `tertulia export --format jsonl` writes them")
        .hint("agent-chatter's session snapshots and claude-master's sessions, a file or a folder of them"))
    }
}

fn is_named(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == wanted)
}

/// Whether a file in a folder may be a session.
fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let logged = name.is_some_and(|name| name.starts_with("session-"));
    is_named(path, "json") || (logged && is_named(path, "jsonl"))
}

fn is_json(content: &[u8]) -> bool {
    serde_json::from_slice::<Value>(content).is_ok()
}

/// Every file that is named, and every `*.json` and `session-*.jsonl` below every folder that is, in the order of
/// their paths.
pub fn all(paths: &[PathBuf]) -> CommandResult<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        let named = |content| Source {
            path: path.clone(),
            content,
            in_folder: false,
        };
        if path == Path::new("-") {
            let mut content = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut content);
            read.map_err(|error| unreadable(path, error))?;
            sources.push(named(Some(content)));
        } else if path.is_dir() {
            below(path, &mut sources);
        } else {
            sources.push(named(None));
        }
    }
    Ok(sources)
}

/// Links to folders are not followed, so that none leads round in a circle.
fn below(folder: &Path, sources: &mut Vec<Source>) {
    let found = |path| Source {
        path,
        content: None,
        in_folder: true,
    };
    let listed = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let Ok(mut entries) = listed else {
        return sources.push(found(folder.to_owned()));
    };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&path, sources);
        } else if is_candidate(&path) && path.is_file() {
            sources.push(found(path));
        }
    }
}

fn unreadable(path: &Path, error: io::Error) -> CommandError {
    let kind = if error.kind() == io::ErrorKind::NotFound {
        ErrorKind::NotFound
    } else {
        ErrorKind::Failed
    };
    CommandError::new(kind, format!("{} cannot be read", path.display())).because(error)
}
