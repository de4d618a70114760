//! Purges a session from disk. The prefix that forks share stays, under a name that no list shows,
//! until the last of these forks is purged.
//!
//! Shared entries stay readable at every moment: the replacement of a log is complete and synced
//! before the log is removed. An interrupted purge leaves at most a shared prefix that is too long,
//! which the next purge trims.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::engine::{FilesEngine, Held, as_lines, open_log};
use super::log::{self, Tail};
use super::log_file;
use super::names::{self, Key, LIVE, Walk};
use crate::index::logs::documents_of;
use crate::queue::{QueueLock, Record};
use crate::{StoreError, StoreResult, check_whole, has_words, place, shared_with_forks};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::{Seq, SessionId};

impl FilesEngine {
    pub(super) fn remove_session(&mut self, id: SessionId) -> StoreResult<()> {
        let _structure = self.hold_structure()?;
        self.refresh()?;
        let path = self.live(id)?;
        self.knows_all_forks()?;
        let mut changed = Vec::new();
        let log = self.lock_log(&path)?;
        if let Some(no) = self.catalogue()?.number(id, LIVE)? {
            changed.push(no.cast_unsigned());
        }
        match self.shared_of((id, LIVE), &path)? {
            Some(upto) => self.leave_shared_prefix(id, &path, upto)?,
            None => self.lead_around((id, LIVE))?,
        }
        self.open.remove(&id);
        // The log is removed last: while it exists, an interrupted purge can be repeated.
        remove(&self.draft_path(id))?;
        remove(&place::with_suffix(&self.draft_path(id), ".new"))?;
        remove(&self.unsent_path(id))?;
        remove_log(&path)?;
        self.marks.remove(id);
        drop(log);
        self.names.forget();
        self.refresh()?;
        self.trim_shared_prefixes(&mut changed)?;
        self.forget_derived(&changed)
    }

    /// Replaces a log by a rename, so that there is always the old one or the new one.
    pub(super) fn replace_log(
        &mut self,
        id: SessionId,
        after: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        check_whole(entries)?;
        let Some(opening) = entries.first() else {
            return Err(StoreError::Refused("a session begins with an entry".into()));
        };
        let _structure = self.hold_structure()?;
        self.refresh()?;
        let path = self.live(id)?;
        self.unpack(id, &path)?;
        self.knows_all_forks()?;
        let log = self.lock_log(&path)?;
        match self.head_of(&path)? {
            Some(head) if head != after => return Err(StoreError::Conflict { id, head }),
            _ => {}
        }
        if self.shared_of((id, LIVE), &path)?.is_some() {
            return Err(shared_with_forks(id));
        }
        let number = self.catalogue()?.number(id, LIVE)?;
        let number = number.map(i64::cast_unsigned);
        self.forget_derived(number.as_slice())?;
        remove_unfinished(&path)?;
        self.open.remove(&id);
        self.marks.put(id);
        remove(&self.draft_path(id))?;
        remove(&place::with_suffix(&self.draft_path(id), ".new"))?;
        place::write_over(&path, &as_lines(entries))?;
        remove_kept(&path)?;
        remove(&names::base_beside(&path))?;
        // The folder of a team is called after it, and the name of a sealed session's team is sealed.
        let folder = self.dir.join(names::folder_name(opening));
        if let Some(name) = path.file_name().filter(|_| path.parent() != Some(&folder)) {
            place::make_folder(&folder)?;
            let moved = folder.join(name);
            fs::rename(&path, &moved)
                .map_err(|error| place::trouble(&path, "cannot move", error))?;
            place::sync_folder_of(&moved)?;
            place::sync_folder_of(&path)?;
            // Fails while other sessions of the team are there.
            let _ = path.parent().map(fs::remove_dir);
        }
        drop(log);
        self.marks.put(id);
        self.forget_files();
        self.refresh()?;
        self.forget_derived(number.as_slice())
    }

    /// Replaces the end of a log by a rename, so that there is always the old one or the new one.
    pub(super) fn replace_end_of_log(
        &mut self,
        id: SessionId,
        (after, keep): (Head, Head),
        entries: &[Entry],
    ) -> StoreResult<()> {
        check_whole(entries)?;
        let _structure = self.hold_structure()?;
        self.refresh()?;
        let path = self.live(id)?;
        self.unpack(id, &path)?;
        self.knows_all_forks()?;
        let log = self.lock_log(&path)?;
        let head = self.head_of(&path)?.unwrap_or(Head::START);
        let mut bytes = beginning(&path, keep.seq)?;
        if head != after || !log::ends_with(&bytes, keep) {
            return Err(StoreError::Conflict { id, head });
        }
        let shared = self.shared_of((id, LIVE), &path)?;
        if shared.is_some_and(|shared| shared > keep.seq) {
            return Err(shared_with_forks(id));
        }
        bytes.extend(as_lines(entries));
        let number = self.catalogue()?.number(id, LIVE)?;
        let number = number.map(i64::cast_unsigned);
        remove_unfinished(&path)?;
        self.open.remove(&id);
        self.marks.put(id);
        place::write_over(&path, &bytes)?;
        if has_words(entries) {
            remove(&self.draft_path(id))?;
        }
        drop(log);
        self.marks.put(id);
        self.forget_files();
        self.refresh()?;
        self.forget_derived(number.as_slice())
    }

    /// Fails unless all logs can be read: an unseen fork might share entries.
    fn knows_all_forks(&mut self) -> StoreResult<()> {
        let walk = Walk::of(&self.dir)?;
        if let Some((folder, reason)) = walk.unreadable.first() {
            return Err(StoreError::Refused(format!(
                "{} cannot be read ({reason}): nothing was purged, for forks may lie there",
                folder.display()
            )));
        }
        for log in walk.logs {
            if self
                .catalogue()?
                .number(log.id, log.shared_prefix)?
                .is_none()
            {
                // It has no entry, or cannot be read.
                self.fold(&log, None)?;
            }
        }
        Ok(())
    }

    /// Returns the last sequence number of a log that a fork shares.
    fn shared_of(&mut self, key: Key, path: &Path) -> StoreResult<Option<Seq>> {
        let mut last = match self.catalogue()?.number(key.0, key.1)? {
            Some(no) => self.catalogue()?.last_shared(no)?,
            None => None,
        };
        // Forks that are damaged, or whose base is: keeping too much is better than removing their
        // prefix.
        for (_, fork) in self.catalogue()?.without_owner()? {
            if let Some(origin) = self.origin_of(fork)?
                && fork != key
                && self.base_path(&origin)?.as_deref() == Some(path)
            {
                last = last.max(Some(origin.seq));
            }
        }
        Ok(last)
    }

    /// Writes the shared prefix of a log beside it.
    fn leave_shared_prefix(&mut self, id: SessionId, path: &Path, upto: Seq) -> StoreResult<()> {
        let shared_prefix = self.names.free_shared_prefix(id, path);
        if let Ok(base) = fs::read(names::base_beside(path)) {
            place::write_over(&names::base_beside(&shared_prefix), &base)?;
        }
        place::write_over(&shared_prefix, &beginning(path, upto)?)
    }

    /// Trims every shared prefix to what is still shared. Removes those that no fork needs, and
    /// then those that only the removed ones needed.
    fn trim_shared_prefixes(&mut self, changed: &mut Vec<u64>) -> StoreResult<()> {
        let mut cut = HashSet::new();
        loop {
            let mut again = false;
            for (no, key, last) in self.catalogue()?.shared_prefixes()? {
                let Some(path) = self.names.get(key) else {
                    continue;
                };
                match self.shared_of(key, &path)? {
                    Some(upto) if upto >= last || !cut.insert((no, upto)) => continue,
                    Some(upto) => {
                        place::write_over(&path, &beginning(&path, upto)?)?;
                        remove_kept(&path)?;
                    }
                    None => {
                        self.lead_around(key)?;
                        remove_log(&path)?;
                    }
                }
                changed.push(no.cast_unsigned());
                again = true;
                break;
            }
            if !again {
                return Ok(());
            }
            self.refresh()?;
        }
    }

    fn forget_derived(&mut self, changed: &[u64]) -> StoreResult<()> {
        self.catalogue()?.settle()?;
        let mut index = self.take_index()?;
        // Their remaining entries are indexed at the next search.
        let gone: Vec<_> = changed.iter().map(|no| (*no, documents_of(*no))).collect();
        // `remove` also truncates the index's WAL, which still holds the text.
        let forgotten = index.forget(&gone).and_then(|()| index.remove(&[]));
        self.index = Some(index);
        forgotten
    }
}

impl FilesEngine {
    /// Waits until no append to a log is in progress.
    pub(super) fn lock_log(&self, path: &Path) -> StoreResult<Held> {
        loop {
            let held_by = log_file::held_by(path);
            let file = match place::open_regular(&held_by) {
                // It has just been packed or unpacked.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && log_file::is_there(path) =>
                {
                    continue;
                }
                file => file.map_err(|error| place::trouble(&held_by, "cannot lock", error))?,
            };
            let held = self.lock_file(&held_by, file)?;
            // Another process may have packed or unpacked the log meanwhile.
            if place::names_this_file(&log_file::held_by(path), held.file()) {
                return Ok(held);
            }
        }
    }

    /// Waits for the lock on a file.
    pub(super) fn lock_file(&self, path: &Path, file: File) -> StoreResult<Held> {
        let lock = Arc::new(QueueLock::new(file, Record::Nowhere));
        lock.acquire(path, self.asked, &self.patience)?;
        Ok(Held::new(lock))
    }
}

/// Returns a log's own lines up to `upto`, at least the first, which says what the log continues.
fn beginning(path: &Path, upto: Seq) -> StoreResult<Vec<u8>> {
    let say = |error| place::trouble(path, "cannot read", error);
    let (file, _) = open_log(path)?;
    let end = Tail::of_log(&file, names::is_shared_prefix(path))
        .map_err(say)?
        .end;
    let first = log::first_place(&file, end).map_err(say)?;
    let upto = first.map_or(upto, |first| upto.max(first));
    let lines = log::read_own(&file, end, Seq::START, upto, usize::MAX).map_err(say)?;
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend(line.bytes);
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Removes what a killed replacement of a log left.
fn remove_unfinished(path: &Path) -> StoreResult<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let unfinished = format!("{}.new-", name.to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&unfinished) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

pub(super) fn remove(path: &Path) -> StoreResult<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(place::trouble(path, "cannot remove", error))
        }
        _ => Ok(()),
    }
}

/// Removes the files kept beside a log, except `.base`.
fn remove_kept(path: &Path) -> StoreResult<()> {
    for kept in names::kept_beside(path) {
        remove(&kept)?;
    }
    place::sync_folder_of(path)
}

fn remove_log(path: &Path) -> StoreResult<()> {
    remove_kept(path)?;
    remove(path)?;
    remove(&log_file::packed_path(path))?;
    place::sync_folder_of(path)?;
    // Removed last: without `.base` the log would not find its shared prefix.
    remove(&names::base_beside(path))
}
