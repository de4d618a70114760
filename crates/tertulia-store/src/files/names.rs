//! File names of logs: `<folder>/<created ms>-<id>.jsonl`, and `….shared` for shared prefixes.
//!
//! Sessions are found by the id in the name; the folder and the time are for people. Further shared
//! prefixes of an id are `….2.shared` and so on. Beside a log there can be `<log>.torn-<offset>`
//! (bytes of an interrupted append), `<log>.damaged-<seconds>` (the log before a repair) and
//! `<log>.base` (where a fork's shared prefix is when its parent is gone). A compressed log is
//! `<log>.zst`, written as `<log>.zst.part-<process>`.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::log_file::{self, is_there};
use crate::{StoreResult, place};
use tertulia_core::entry::{Body, Entry};
use tertulia_core::id::SessionId;

/// Marker file that identifies the folder as a store.
pub(super) const MARKER: &str = "tertulia-store.json";
/// Derived data.
pub(super) const INDEX_FOLDER: &str = ".index";
/// The catalogue, in the folder of derived data.
pub(super) const CATALOGUE: &str = "catalogue.db";
/// Locks of open sessions.
pub(super) const OPEN_FOLDER: &str = ".open";
/// Record of the structure lock's holder, in the folder of locks.
pub(super) const HOLDER: &str = "writer";
/// Partial answers.
pub(super) const DRAFTS_FOLDER: &str = ".drafts";

/// Ends the names of files with words that are not in a log yet, in the folder of partial answers.
pub(super) const UNSENT_SUFFIX: &str = ".unsent.json";

const LIVE_EXTENSION: &str = "jsonl";
const SHARED_EXTENSION: &str = "shared";
const BASE: &str = ".base";
/// Marks the file of a log that is being compressed, before the id of the process.
pub(super) const PART: &str = ".part-";
/// Maximum length of an escaped folder name (file systems allow 255 bytes); longer names are cut
/// and end in a hash.
const FOLDER_LENGTH: usize = 120;

/// Key of a log: its id and its number, [`LIVE`] or that of a shared prefix.
pub(super) type Key = (SessionId, u32);

/// Number of a session's live log. The shared prefixes of an id are numbered from 1.
pub(super) const LIVE: u32 = 0;

/// A log's parsed file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogName {
    pub(super) id: SessionId,
    /// [`LIVE`], or the number of the shared prefix of a purged session.
    pub(super) shared_prefix: u32,
    pub(super) created_ms: u64,
    /// Path of its plain file, also if it is compressed.
    pub(super) path: PathBuf,
    /// True if the name is that of a compressed file, or one was seen beside it.
    pub(super) packed: bool,
}

impl LogName {
    pub(super) fn parse(path: &Path) -> Option<LogName> {
        let name = path.file_name().and_then(OsStr::to_str)?;
        if let Some(plain) = name.strip_suffix(log_file::PACKED) {
            let log = LogName::parse(&path.with_file_name(plain))?;
            return (!log.is_shared_prefix()).then_some(LogName {
                packed: true,
                ..log
            });
        }
        let stem = path.file_stem().and_then(OsStr::to_str)?;
        let (stem, shared_prefix) = match path.extension().and_then(OsStr::to_str)? {
            LIVE_EXTENSION => (stem, LIVE),
            SHARED_EXTENSION => match stem.split_once('.') {
                None => (stem, 1),
                Some((stem, number)) => (stem, number.parse().ok().filter(|number| *number > 1)?),
            },
            _ => return None,
        };
        let (time, id) = stem.split_once('-')?;
        Some(LogName {
            id: id.parse().ok()?,
            shared_prefix,
            created_ms: time.parse().ok()?,
            path: path.to_owned(),
            packed: false,
        })
    }

    /// Returns the metadata of the file that holds the log.
    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        match self.packed {
            true => log_file::metadata(&self.path),
            false => fs::metadata(&self.path),
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.id, self.shared_prefix)
    }

    pub(super) fn is_shared_prefix(&self) -> bool {
        self.shared_prefix != LIVE
    }

    /// Returns the path that this log would have as the log of another session.
    pub(super) fn named(&self, id: SessionId) -> PathBuf {
        let extension = extension(self.shared_prefix);
        self.path
            .with_file_name(format!("{}-{id}.{extension}", self.created_ms))
    }
}

fn extension(shared_prefix: u32) -> String {
    match shared_prefix {
        LIVE => LIVE_EXTENSION.to_owned(),
        1 => SHARED_EXTENSION.to_owned(),
        number => format!("{number}.{SHARED_EXTENSION}"),
    }
}

/// Returns the file name of a log that begins with this entry.
pub(super) fn file_name(id: SessionId, opening: &Entry) -> String {
    let ms = opening.at.as_millisecond().max(0);
    format!("{ms}-{id}.{LIVE_EXTENSION}")
}

/// Returns true if the path names a shared prefix.
pub(super) fn is_shared_prefix(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == SHARED_EXTENSION)
}

/// Returns the path of the file that overrides the base named by a log's first entry.
pub(super) fn base_beside(path: &Path) -> PathBuf {
    place::with_suffix(path, BASE)
}

/// Returns the folder name of a session that begins with this entry and is no fork.
pub(super) fn folder_name(opening: &Entry) -> String {
    let name = match &opening.body {
        Body::Created(created) => match &created.team {
            Some(team) => team.as_str(),
            None => created.kind.name(),
        },
        _ => "chat",
    };
    unlike_marker(short_enough(place::path_part(name)))
}

/// Escapes a folder name that begins like the marker. Unambiguous, since lower-case letters are
/// never escaped otherwise.
fn unlike_marker(part: String) -> String {
    match part.strip_prefix('t') {
        Some(rest) if part.starts_with(MARKER) => format!("%74{rest}"),
        _ => part,
    }
}

fn short_enough(mut part: String) -> String {
    if part.len() > FOLDER_LENGTH {
        let hash = blake3::hash(part.as_bytes()).to_hex();
        part.truncate(FOLDER_LENGTH);
        // Unambiguous: escaping puts two digits after a percent sign.
        part.push_str(&format!("%-{}", &hash[..16]));
    }
    part
}

/// Returns true for the name of a file that is kept beside a log.
fn is_kept_beside(name: &str) -> bool {
    let is_base = name
        .strip_suffix(BASE)
        .is_some_and(|log| LogName::parse(Path::new(log)).is_some());
    is_base || is_marked(name, &[".torn-", ".damaged-", PART])
}

fn is_marked(name: &str, marks: &[&str]) -> bool {
    marks.iter().any(|mark| {
        name.rsplit_once(mark).is_some_and(|(log, number)| {
            !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && LogName::parse(Path::new(log)).is_some()
        })
    })
}

/// Returns the files beside a log that hold parts of its content, including leftovers of an
/// interrupted repair.
pub(super) fn kept_beside(path: &Path) -> Vec<PathBuf> {
    let Some((folder, name)) = path.parent().zip(path.file_name().and_then(OsStr::to_str)) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|other| {
                is_marked(other, &[".torn-", ".damaged-", ".new-", PART])
                    && other
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with('.'))
            })
        })
        .map(|entry| entry.path())
        .collect()
}

/// Returns the sessions with words that are not in their logs yet.
pub(super) fn unsent_in(drafts: &Path) -> StoreResult<Vec<SessionId>> {
    if !drafts.is_dir() {
        return Ok(Vec::new());
    }
    let id_of = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        name.strip_suffix(UNSENT_SUFFIX)?.parse().ok()
    };
    Ok(files_in(drafts)?.into_iter().filter_map(id_of).collect())
}

/// Directory scan of a store.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The logs, oldest first, one per key.
    pub(super) logs: Vec<LogName>,
    /// Further logs with the same key.
    pub(super) doubles: Vec<LogName>,
    /// Logs still under temporary names, because their creation was interrupted, and their final
    /// names.
    pub(super) unnamed: Vec<(PathBuf, LogName)>,
    /// Files that do not belong to the store.
    pub(super) foreign: Vec<PathBuf>,
    /// Unreadable folders, and why.
    pub(super) unreadable: Vec<(PathBuf, String)>,
}

impl Walk {
    pub(super) fn of(dir: &Path) -> StoreResult<Walk> {
        let mut walk = Walk::default();
        let mut logs = Vec::new();
        for path in files_in(dir)? {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            match name {
                MARKER | INDEX_FOLDER | OPEN_FOLDER | DRAFTS_FOLDER => {}
                _ if name.starts_with('.') || !path.is_dir() => walk.foreign.push(path),
                _ => match files_in(&path) {
                    Ok(files) => walk.sort_out(files, &mut logs),
                    Err(error) => walk.unreadable.push((path, error.to_string())),
                },
            }
        }
        logs.sort_by(|a, b| {
            (a.created_ms, a.id, a.shared_prefix, &a.path).cmp(&(
                b.created_ms,
                b.id,
                b.shared_prefix,
                &b.path,
            ))
        });
        let mut seen: HashMap<Key, usize> = HashMap::new();
        for log in logs {
            match seen.get(&log.key()).map(|at| &mut walk.logs[*at]) {
                None => {
                    seen.insert(log.key(), walk.logs.len());
                    walk.logs.push(log);
                }
                // The plain and the compressed file of one log.
                Some(known) if known.path == log.path => known.packed = true,
                Some(_) => walk.doubles.push(log),
            }
        }
        walk.foreign.sort();
        walk.unnamed.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(walk)
    }

    fn sort_out(&mut self, files: Vec<PathBuf>, logs: &mut Vec<LogName>) {
        for file in files {
            let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
            match LogName::parse(&file) {
                Some(log) => logs.push(log),
                None if is_kept_beside(name) => {}
                None if is_marked(name, &[".new-"]) => {
                    let log = file.to_str().and_then(|path| path.rsplit_once(".new-"));
                    let log = log.and_then(|(path, _)| LogName::parse(Path::new(path)));
                    self.unnamed.extend(log.map(|log| (file, log)));
                }
                None => self.foreign.push(file),
            }
        }
    }
}

fn files_in(folder: &Path) -> StoreResult<Vec<PathBuf>> {
    let read = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    };
    read().map_err(|error| place::trouble(folder, "cannot read the folder", error))
}

/// Cache of log paths. Other processes create and remove logs too: a cached path is checked before
/// use, and a missing one is looked up on disk.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Paths of each id by log number.
    known: HashMap<SessionId, BTreeMap<u32, PathBuf>>,
    /// Modification time of each folder when it was read.
    folders: HashMap<PathBuf, SystemTime>,
}

impl Names {
    /// Returns the path of a session's live log.
    pub(super) fn live(&mut self, dir: &Path, id: SessionId) -> StoreResult<Option<PathBuf>> {
        if let Some(path) = self.get((id, LIVE)) {
            return Ok(Some(path));
        }
        self.take(&Walk::of(dir)?);
        Ok(self.get((id, LIVE)))
    }

    /// Returns all known logs of an id: the live one first, then the shared prefixes.
    pub(super) fn all(&mut self, id: SessionId) -> Vec<PathBuf> {
        let Some(paths) = self.known.get_mut(&id) else {
            return Vec::new();
        };
        paths.retain(|_, path| is_there(path));
        paths.values().cloned().collect()
    }

    /// Returns the path of a known log, if it still exists.
    pub(super) fn get(&mut self, (id, shared_prefix): Key) -> Option<PathBuf> {
        let paths = self.known.get_mut(&id)?;
        let path = paths.get(&shared_prefix)?;
        if is_there(path) {
            return Some(path.clone());
        }
        paths.remove(&shared_prefix);
        None
    }

    /// Returns a path for a new shared prefix, with a number that is free for this id.
    pub(super) fn free_shared_prefix(&self, id: SessionId, log: &Path) -> PathBuf {
        let known = self.known.get(&id);
        let mut number = 1;
        loop {
            let path = log.with_extension(extension(number));
            if known.is_none_or(|known| !known.contains_key(&number)) && !path.exists() {
                return path;
            }
            number += 1;
        }
    }

    /// Looks for the live log of a session that probably does not exist; reads only changed
    /// folders. The caller must hold the structure lock.
    pub(super) fn taken(&mut self, dir: &Path, id: SessionId) -> StoreResult<Option<PathBuf>> {
        if let Some(path) = self.get((id, LIVE)) {
            return Ok(Some(path));
        }
        for folder in files_in(dir)? {
            let is_derived = folder
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let Some(changed) = changed_at(&folder).filter(|_| !is_derived) else {
                continue;
            };
            if self.folders.get(&folder) == Some(&changed) {
                continue;
            }
            // An unreadable folder must not prevent creating a session in another.
            let Ok(files) = files_in(&folder) else {
                continue;
            };
            for file in files {
                if let Some(log) = LogName::parse(&file) {
                    self.insert(log.key(), &log.path);
                }
            }
            self.folders.insert(folder, changed);
        }
        Ok(self.get((id, LIVE)))
    }

    /// Caches the path of a new log.
    pub(super) fn add(&mut self, key: Key, path: &Path) {
        self.insert(key, path);
        if let Some(folder) = path.parent()
            && let Some(changed) = changed_at(folder)
        {
            self.folders.insert(folder.to_owned(), changed);
        }
    }

    /// Returns true if a log of this id is cached.
    pub(super) fn knows(&self, id: SessionId) -> bool {
        self.known.contains_key(&id)
    }

    /// Caches the path of a log that another process may have created.
    pub(super) fn note(&mut self, log: &LogName) {
        self.insert(log.key(), &log.path);
    }

    pub(super) fn forget(&mut self) {
        *self = Names::default();
    }

    /// Replaces the cache with the result of a scan.
    pub(super) fn take(&mut self, walk: &Walk) {
        self.known.clear();
        for log in &walk.logs {
            self.insert(log.key(), &log.path);
        }
    }

    fn insert(&mut self, (id, shared_prefix): Key, path: &Path) {
        let paths = self.known.entry(id).or_default();
        paths.insert(shared_prefix, path.to_owned());
    }
}

fn changed_at(folder: &Path) -> Option<SystemTime> {
    let found = fs::metadata(folder).ok()?;
    found.is_dir().then(|| found.modified().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_that_begin_alike_do_not_share_a_folder() {
        let long = "a".repeat(FOLDER_LENGTH);
        assert_eq!(short_enough(long.clone()), long);
        let (one, other) = (format!("{long}b"), format!("{long}c"));
        assert_ne!(short_enough(one.clone()), short_enough(other));
        assert_eq!(short_enough(one.clone()), short_enough(one.clone()));
        assert!(short_enough(one).len() < 200);
    }

    #[test]
    fn no_team_takes_the_name_of_the_marker() {
        assert_eq!(unlike_marker(MARKER.to_owned()), "%74ertulia-store.json");
        let temporary = format!("{MARKER}.new-1-0");
        assert!(unlike_marker(temporary).starts_with("%74"));
        assert_eq!(unlike_marker("tertulia".to_owned()), "tertulia");
    }
}
