//! Collects the files to import, including those in folders, and detects their format.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use serde::de::IgnoredAny;
use tertulia_core::jsonl;
use tertulia_core::session::SESSION_LIMIT;
use tertulia_formats::importer::{IMPORTERS, Importer, Input, ReadError};
use tertulia_formats::snapshot::Snapshot;
use tertulia_formats::{claude_master, openagent_terminal};

use super::bundle;
use super::kind::SourceKind;
use crate::error::{CommandError, CommandResult, ErrorKind};

/// A file that may contain a session.
#[derive(Debug)]
pub struct Source {
    /// Path, or `-` for standard input.
    pub path: PathBuf,
    /// Content of standard input, which can be read only once.
    content: Option<Vec<u8>>,
    /// True if the file was found in a folder instead of being named on the command line.
    pub in_folder: bool,
}

/// Detected format of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// A session of this kind.
    Session(SourceKind),
    /// An index, which lists the ids of the session files beside it.
    Index(Vec<String>),
    /// Not a session, with the reason.
    Other(&'static str),
}

impl Source {
    /// Creates a source for a file named on the command line.
    pub fn named(path: PathBuf) -> Source {
        Source {
            path,
            content: None,
            in_folder: false,
        }
    }

    /// Returns the file for importers that read it piece by piece.
    pub fn input(&self) -> Input<'_> {
        Input {
            path: &self.path,
            content: self.content.as_deref(),
        }
    }

    /// Returns true if the file is an encrypted bundle.
    pub fn is_bundle(&self) -> bool {
        let is_file = self.content.is_some() || self.path.is_file();
        is_file
            && self
                .input()
                .beginning()
                .is_ok_and(|beginning| bundle::is_one(&beginning))
    }

    /// Returns the importer of the program that `said` names, or that wrote the file.
    pub fn importer(
        &self,
        said: Option<SourceKind>,
    ) -> CommandResult<Option<&'static dyn Importer>> {
        let is_file = self.content.is_some() || self.path.is_file();
        match said {
            Some(SourceKind::Program(importer)) if !self.in_folder && is_file => {
                return Ok(Some(importer));
            }
            Some(SourceKind::Program(_)) | None if is_file => {}
            _ => return Ok(None),
        }
        let found = self.recognised()?;
        Ok(found.filter(|found| said.is_none_or(|said| said == SourceKind::Program(*found))))
    }

    /// Returns the time at which the session in a file of another program began.
    fn begun(&self) -> Option<Timestamp> {
        let beginning = self.input().beginning().ok()?;
        let mut all = IMPORTERS.iter();
        let importer = all.find(|importer| importer.recognises(&self.path, &beginning))?;
        importer.begun(&beginning)
    }

    /// Returns the program of whole histories that wrote the file, if it can be read.
    pub fn program(&self) -> Option<&'static dyn Importer> {
        self.recognised().ok().flatten()
    }

    fn recognised(&self) -> CommandResult<Option<&'static dyn Importer>> {
        let beginning = self.input().beginning().map_err(|error| match error {
            ReadError::Io(error) => unreadable(&self.path, error),
            ReadError::Invalid(reason) => {
                let words = format!("cannot import {}: {reason}", self.path.display());
                CommandError::new(ErrorKind::Invalid, words)
            }
        })?;
        let mut all = IMPORTERS.iter().copied();
        Ok(all.find(|importer| importer.recognises(&self.path, &beginning)))
    }

    /// Reads the content. Fails if it is larger than a session may be.
    pub fn read(&self) -> CommandResult<Cow<'_, [u8]>> {
        if let Some(content) = &self.content {
            return Ok(Cow::Borrowed(content));
        }
        let read = open(&self.path).and_then(|file| {
            let size = file.metadata()?.len();
            Ok((file, size))
        });
        let (file, size) = read.map_err(|error| unreadable(&self.path, error))?;
        if size > SESSION_LIMIT {
            return Err(too_large(&self.path));
        }
        let content = read_bounded(file, &self.path, size).map_err(|error| {
            // For a folder that cannot be listed, report that error instead.
            let listed = fs::read_dir(&self.path).err();
            match listed.filter(|_| self.path.is_dir()) {
                Some(listed) => unreadable(&self.path, listed),
                None => error,
            }
        })?;
        Ok(Cow::Owned(content))
    }

    /// Returns the kind given with `--from`, or detects it from the content.
    pub fn look(&self, content: &[u8], said: Option<SourceKind>) -> CommandResult<Look> {
        if content.trim_ascii().is_empty() {
            return self.other("it is empty");
        }
        let found = found(content);
        match said {
            // For a file named by the user, the parser's error says more than "of another kind".
            Some(said) if !self.in_folder && !matches!(found, Some(Look::Index(_))) => {
                return Ok(Look::Session(said));
            }
            Some(said) => match found {
                Some(Look::Session(found)) if found != said => {
                    return self.other("it is of another kind than --from says");
                }
                Some(Look::Index(_)) if said != SourceKind::OpenagentTerminal => {
                    return self.other("it is of another kind than --from says");
                }
                Some(found) => return Ok(found),
                None => {}
            },
            None => {
                if let Some(found) = found {
                    return Ok(found);
                }
            }
        }
        // For invalid JSON, the parser's error says more than "not a session of a known kind".
        if is_named(&self.path, "json") && !is_json(content) {
            return Ok(Look::Session(said.unwrap_or(SourceKind::AgentChatter)));
        }
        self.other("it is not a session of a known kind")
    }

    fn other(&self, reason: &'static str) -> CommandResult<Look> {
        if self.in_folder {
            return Ok(Look::Other(reason));
        }
        let message = format!("cannot import {}: {reason}", self.path.display());
        Err(CommandError::new(ErrorKind::Invalid, message).hint(supported()))
    }
}

/// Returns a hint that lists what can be imported.
pub fn supported() -> String {
    format!("supported: sessions of {}", SourceKind::names().join(", "))
}

/// Detects the format from the content.
fn found(content: &[u8]) -> Option<Look> {
    if claude_master::is_one(content) {
        return Some(Look::Session(SourceKind::ClaudeMaster));
    }
    if jsonl::is_ours(content) {
        return Some(Look::Session(SourceKind::Tertulia));
    }
    if Snapshot::is_one(content) {
        return Some(Look::Session(SourceKind::AgentChatter));
    }
    if openagent_terminal::is_one(content) {
        return Some(Look::Session(SourceKind::OpenagentTerminal));
    }
    openagent_terminal::listed(content).map(Look::Index)
}

fn is_named(path: &Path, wanted: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == wanted)
}

fn is_json(content: &[u8]) -> bool {
    let text = std::str::from_utf8(content);
    text.is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// Returns all files named, and all candidates below the folders named, sorted by path within each
/// folder.
pub fn all(paths: &[PathBuf]) -> CommandResult<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path == Path::new("-") {
            let content = read_bounded(io::stdin().lock(), path, 0)?;
            sources.push(Source {
                content: Some(content),
                ..Source::named(path.clone())
            });
        } else if path.is_dir() {
            let first = sources.len();
            below(path, &mut sources);
            // Forks come after their origins, wherever they are in the folder.
            sources[first..].sort_by_cached_key(Source::begun);
        } else {
            sources.push(Source::named(path.clone()));
        }
    }
    Ok(sources)
}

/// Adds the candidates below a folder. Links to folders are not followed, which rules out cycles.
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
        let is_candidate = is_named(&path, "json")
            || is_named(&path, "jsonl")
            || IMPORTERS
                .iter()
                .any(|importer| importer.is_candidate(&path));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&path, sources);
        } else if is_candidate && path.is_file() {
            sources.push(found(path));
        }
    }
}

/// Returns true if a file of this name may contain sessions.
pub fn is_candidate(path: &Path) -> bool {
    is_named(path, "json")
        || is_named(path, "jsonl")
        || IMPORTERS.iter().any(|importer| importer.is_candidate(path))
}

/// Opens a file without blocking: a named pipe without a writer counts as empty.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// Reads at most `SESSION_LIMIT` bytes; `expected` is the size to allocate.
fn read_bounded(reader: impl Read, path: &Path, expected: u64) -> CommandResult<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    reader
        .take(SESSION_LIMIT + 1)
        .read_to_end(&mut content)
        .map_err(|error| unreadable(path, error))?;
    if content.len() as u64 > SESSION_LIMIT {
        return Err(too_large(path));
    }
    Ok(content)
}

fn too_large(path: &Path) -> CommandError {
    let limit = SESSION_LIMIT / 1_000_000;
    let message = format!(
        "cannot import {}: it has more than {limit} MB, the limit of a session",
        path.display()
    );
    CommandError::new(ErrorKind::Invalid, message).hint("nothing of it was imported")
}

fn unreadable(path: &Path, error: io::Error) -> CommandError {
    let kind = if error.kind() == io::ErrorKind::NotFound {
        ErrorKind::NotFound
    } else {
        ErrorKind::Failed
    };
    CommandError::new(kind, format!("{} cannot be read", path.display())).because(error)
}
