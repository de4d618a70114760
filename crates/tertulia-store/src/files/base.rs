//! Finds the log that holds the entry that a fork continues.
//!
//! A fork's first entry names its parent session, but the shared entry may be in an older log that
//! the parent itself continues. Several logs can have one id: the live log, and the shared prefixes
//! of purged sessions with that id. The hash in the fork's opening tells which log is meant.
//!
//! When the log that a fork names is gone and nothing of it is shared, `<fork>.base` names the log
//! to use instead.

use std::io;
use std::path::{Path, PathBuf};

use super::engine::{FilesEngine, open_log};
use super::log;
use super::log_file::{LogBytes, LogFile, is_there};
use super::names::{self, Key, LogName, Walk};
use super::opening::{self, Opening};
use crate::{StoreError, StoreResult, place};
use tertulia_core::entry::{Head, Origin};
use tertulia_core::id::Seq;

/// Reads a log's first line and its `.base` file, which say what the log continues.
pub(super) fn opening(path: &Path, file: &dyn LogBytes, end: u64) -> io::Result<Opening> {
    let mut opening = opening::opening(file, end)?;
    if opening.entry.is_some() && opening.origin.is_none() {
        return Ok(opening);
    }
    if let Some(elsewhere) = redirection(path) {
        opening.origin = Some(match opening.origin {
            // A repair may have changed the hash since.
            Some(origin) => Origin {
                id: elsewhere.id,
                ..origin
            },
            None => elsewhere,
        });
    }
    Ok(opening)
}

fn redirection(path: &Path) -> Option<Origin> {
    let content = place::read_small(&names::base_beside(path), 4096).ok()?;
    serde_json::from_slice(&content).ok()
}

impl FilesEngine {
    /// Returns the folder of a fork's base. Fails if the base is not a live session or does not
    /// have the entry.
    pub(super) fn sound_base(&mut self, origin: &Origin) -> StoreResult<PathBuf> {
        let path = self.live(origin.id)?;
        let wanted = Head {
            seq: origin.seq,
            hash: origin.hash,
        };
        if self.head_at(&path, origin.seq)? != Some(wanted) {
            let head = match self.head_of(&path) {
                Err(_) if !is_there(&path) => return Err(StoreError::NotFound(origin.id)),
                head => head?.unwrap_or(Head::START),
            };
            return Err(StoreError::Conflict {
                id: origin.id,
                head,
            });
        }
        Ok(path.parent().unwrap_or(&self.dir).to_owned())
    }

    /// Returns the log that holds the entry that a fork continues, or, if no log has it, the log
    /// that should.
    pub(super) fn base_path(&mut self, origin: &Origin) -> StoreResult<Option<PathBuf>> {
        if let Some(path) = self.owner_of(origin)? {
            return Ok(Some(path));
        }
        // Other processes purge and create sessions: the log may have another name by now.
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        if let Some(path) = self.owner_of(origin)? {
            return Ok(Some(path));
        }
        if self.names.all(origin.id).is_empty() {
            return owner_by_hash(&walk, origin);
        }
        self.likely_owner(origin)
    }

    /// Returns the log with exactly the entry that a fork continues, among the known file names.
    pub(super) fn owner_of(&mut self, origin: &Origin) -> StoreResult<Option<PathBuf>> {
        self.recall(origin.id);
        let mut waiting = self.names.all(origin.id);
        let mut looked_at = 0;
        while let Some(path) = waiting.get(looked_at).cloned() {
            looked_at += 1;
            let Some((file, size)) = open_if_there(&path)? else {
                continue;
            };
            let say = |error| place::trouble(&path, "cannot read", error);
            let entry = log::own_entry(&file, size, origin.seq).map_err(say)?;
            if entry.is_some_and(|entry| entry.hash == origin.hash) {
                return Ok(Some(path));
            }
            if let Some(below) = below(&path, &file, size, origin.seq).map_err(say)? {
                self.recall(below.id);
                let more = self.names.all(below.id);
                let new: Vec<PathBuf> = more
                    .into_iter()
                    .filter(|path| !waiting.contains(path))
                    .collect();
                waiting.extend(new);
            }
        }
        Ok(None)
    }

    /// Returns the log that should hold a damaged or lost entry.
    fn likely_owner(&mut self, origin: &Origin) -> StoreResult<Option<PathBuf>> {
        let mut passed: Vec<PathBuf> = Vec::new();
        let mut id = origin.id;
        loop {
            self.recall(id);
            let all = self.names.all(id);
            let shared_prefix = all.iter().find(|path| names::is_shared_prefix(path));
            let Some(path) = shared_prefix.or(all.first()).cloned() else {
                return Ok(passed.pop());
            };
            if passed.contains(&path) {
                return Ok(Some(path));
            }
            let below = match open_if_there(&path)? {
                Some((file, size)) => below(&path, &file, size, origin.seq)
                    .map_err(|error| place::trouble(&path, "cannot read", error))?,
                None => None,
            };
            passed.push(path);
            match below {
                Some(below) => id = below.id,
                None => return Ok(passed.pop()),
            }
        }
    }

    /// Records the owner log in the catalogue for each fork without one.
    pub(super) fn settle_owners(&mut self) -> StoreResult<()> {
        for (no, key) in self.catalogue()?.without_owner()? {
            let Some(origin) = self.origin_of(key)? else {
                continue;
            };
            let owner = self.owner_of(&origin)?;
            let Some(owner) = owner.as_deref().and_then(LogName::parse) else {
                continue;
            };
            let catalogue = self.catalogue()?;
            if let Some(owner) = catalogue.number(owner.id, owner.shared_prefix)?
                && owner != no
            {
                catalogue.put_owner(no, owner)?;
            }
        }
        Ok(())
    }

    /// Returns what a log continues, according to the files on disk.
    pub(super) fn origin_of(&mut self, key: Key) -> StoreResult<Option<Origin>> {
        self.recall(key.0);
        let Some(path) = self.names.get(key) else {
            return Ok(None);
        };
        let Some((file, size)) = open_if_there(&path)? else {
            return Ok(None);
        };
        let found = opening(&path, &file, size)
            .map_err(|error| place::trouble(&path, "cannot read", error))?;
        match (found.entry, found.origin) {
            // The catalogue may still know the origin that the damaged line named.
            (None, None) => {
                let stored = self.catalogue()?.record(key.0, key.1)?;
                Ok(stored.and_then(|(_, record)| record.base))
            }
            (_, origin) => Ok(origin),
        }
    }

    /// Writes `.base` files for the forks that find their shared entries through a log about to be
    /// removed.
    pub(super) fn lead_around(&mut self, gone: Key) -> StoreResult<()> {
        for key in self.catalogue()?.naming(gone.0)? {
            let Some((path, origin)) = self.names.get(key).zip(self.origin_of(key)?) else {
                continue;
            };
            let owner = self.base_path(&origin)?;
            if let Some(owner) = owner.as_deref().and_then(LogName::parse)
                && origin.id == gone.0
                && owner.id != gone.0
                && key != gone
            {
                let elsewhere = Origin {
                    id: owner.id,
                    ..origin
                };
                let content = serde_json::to_vec(&elsewhere)
                    .map_err(|error| StoreError::failed("cannot name a base", error))?;
                place::write_over(&names::base_beside(&path), &content)?;
            }
        }
        Ok(())
    }
}

/// Returns the log with the entry that a fork continues, whatever session the fork names: its
/// opening may be damaged.
fn owner_by_hash(walk: &Walk, origin: &Origin) -> StoreResult<Option<PathBuf>> {
    for log in &walk.logs {
        // An unreadable log must not hide the others.
        let Ok(Some((file, size))) = open_if_there(&log.path) else {
            continue;
        };
        let entry = log::own_entry(&file, size, origin.seq).ok().flatten();
        if entry.is_some_and(|entry| entry.hash == origin.hash) {
            return Ok(Some(log.path.clone()));
        }
    }
    Ok(None)
}

/// Returns what a log continues, unless `seq` is among the log's own lines or the log is empty.
fn below(path: &Path, file: &dyn LogBytes, size: u64, seq: Seq) -> io::Result<Option<Origin>> {
    if log::first_place(file, size)?.is_none_or(|first| first <= seq) {
        return Ok(None);
    }
    Ok(opening(path, file, size)?.origin)
}

/// Opens a log; returns `None` if it was removed meanwhile, or if it is no log at all: one bad file
/// must not hide the sessions of others.
fn open_if_there(path: &Path) -> StoreResult<Option<(LogFile, u64)>> {
    match open_log(path) {
        Err(_) if !is_there(path) => Ok(None),
        Err(error) if error.is_damage() => Ok(None),
        opened => opened.map(Some),
    }
}
