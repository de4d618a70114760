//! What a fork continues, and in which log that stands.
//!
//! A fork's first entry names the session that it was made of, but what it shares may stand further
//! down, in a log that this session continued itself. Several logs may bear one id: the live one, and
//! husks of those that bore it before. The hash at the fork's beginning tells which is meant.
//!
//! When the log that a fork names is gone for good and the fork shares nothing of it, `<fork>.base`
//! says where to look instead.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::engine::{FilesEngine, open_log};
use super::log::{self, Opening};
use super::names::{self, Key, LogName, Walk};
use super::purge::write_over;
use crate::{StoreError, StoreResult, place};
use tertulia_core::entry::{Head, Origin};
use tertulia_core::id::Seq;

/// Reads a log's first line, and what else says which log it continues.
pub(super) fn opening(path: &Path, file: &File, end: u64) -> io::Result<Opening> {
    let mut opening = log::opening(file, end)?;
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
    let content = fs::read(names::base_beside(path)).ok()?;
    serde_json::from_slice(&content).ok()
}

impl FilesEngine {
    /// The folder of a base, if it is a session and has the entry that the fork wants to continue.
    pub(super) fn sound_base(&mut self, origin: &Origin) -> StoreResult<PathBuf> {
        let path = self.live(origin.id)?;
        let wanted = Head {
            seq: origin.seq,
            hash: origin.hash,
        };
        if self.head_at(&path, origin.seq)? != Some(wanted) {
            let head = match self.head_of(&path) {
                Err(_) if !path.exists() => return Err(StoreError::NotFound(origin.id)),
                head => head?.unwrap_or(Head::START),
            };
            return Err(StoreError::Conflict {
                id: origin.id,
                head,
            });
        }
        Ok(path.parent().unwrap_or(&self.dir).to_owned())
    }

    /// The log in which the entry stands that a fork continues. Where none has that very entry, the
    /// one in which it should stand.
    pub(super) fn base_path(&mut self, origin: &Origin) -> StoreResult<Option<PathBuf>> {
        if let Some(path) = self.owner_of(origin)? {
            return Ok(Some(path));
        }
        // Others purge and make sessions too: perhaps the log has another name by now.
        self.names.take(&Walk::of(&self.dir)?);
        if let Some(path) = self.owner_of(origin)? {
            return Ok(Some(path));
        }
        self.likely_owner(origin)
    }

    /// The log that has the very entry that a fork continues, among those whose names are known.
    pub(super) fn owner_of(&mut self, origin: &Origin) -> StoreResult<Option<PathBuf>> {
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

    /// The log in which an entry should stand that is damaged or lost.
    fn likely_owner(&mut self, origin: &Origin) -> StoreResult<Option<PathBuf>> {
        let mut passed: Vec<PathBuf> = Vec::new();
        let mut id = origin.id;
        loop {
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

    /// Notes for each fork whose owner is not known in which log the entry stands that it continues.
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

    /// What a log continues, by what lies on the disk now.
    pub(super) fn origin_of(&mut self, key: Key) -> StoreResult<Option<Origin>> {
        let Some(path) = self.names.get(key) else {
            return Ok(None);
        };
        let Some((file, size)) = open_if_there(&path)? else {
            return Ok(None);
        };
        let found = opening(&path, &file, size)
            .map_err(|error| place::trouble(&path, "cannot read", error))?;
        match (found.entry, found.origin) {
            // What a damaged line said may still be known from before.
            (None, None) => {
                let stored = self.catalogue()?.record(key.0, key.1)?;
                Ok(stored.and_then(|(_, record)| record.base))
            }
            (_, origin) => Ok(origin),
        }
    }

    /// Shows the forks that find their beginning through a log that is about to go another way to it.
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
                write_over(&names::base_beside(&path), &content)?;
            }
        }
        Ok(())
    }
}

/// What a log continues, if the place is there and not in the log's own lines.
fn below(path: &Path, file: &File, size: u64, seq: Seq) -> io::Result<Option<Origin>> {
    if log::first_place(file, size)?.is_none_or(|first| first <= seq) {
        return Ok(None);
    }
    Ok(opening(path, file, size)?.origin)
}

/// A log, unless it was removed since its name was seen.
fn open_if_there(path: &Path) -> StoreResult<Option<(File, u64)>> {
    match open_log(path) {
        Err(_) if !path.exists() => Ok(None),
        opened => opened.map(Some),
    }
}
