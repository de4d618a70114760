//! Compresses logs, and makes them plain again.
//!
//! At every moment one of the two files is complete and synced: the new file is written under a
//! temporary name, synced and renamed before the other one is removed. The lock on the log's file keeps
//! appends away meanwhile; a process that waited for it looks for the log again. A compressed file is
//! removed under its own lock, and made under it until the plain file is gone: otherwise each of two
//! processes could remove the file that the other one relies on.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use super::engine::{FilesEngine, Held, open_log};
use super::file_stamp::FileStamp;
use super::log::{self, Tail};
use super::log_file::{self, LogFile};
use super::names::{self, LIVE};
use super::open;
use super::purge::remove;
use crate::{Compressed, Progress, StoreError, StoreResult, packed, place};
use tertulia_core::entry::Entry;
use tertulia_core::id::SessionId;

impl FilesEngine {
    pub(super) fn compress_logs(
        &mut self,
        ids: &[SessionId],
        progress: &Progress,
    ) -> StoreResult<Compressed> {
        let mut done = Compressed::default();
        let total = ids.len() as u64;
        for (at, id) in ids.iter().enumerate() {
            progress.at("compressing", at as u64, total);
            done.add(*id, self.compress_log(*id))?;
        }
        progress.at("compressing", total, total);
        if done.sessions > 0 {
            // The folders have changed: compares them, so that the next list need not.
            self.refresh()?;
        }
        Ok(done)
    }

    /// Compresses the log of one session. Returns its size before and after, or `None` if there is
    /// nothing to gain.
    fn compress_log(&mut self, id: SessionId) -> StoreResult<Option<(u64, u64)>> {
        let path = self.live(id)?;
        if log_file::held_by(&path) != path {
            return Ok(None);
        }
        if self.claims.is_open(id) {
            return Err(StoreError::Refused("a program has it open".into()));
        }
        let held = self.lock_log(&path)?;
        if log_file::held_by(&path) != path {
            // Another process was faster.
            return Ok(None);
        }
        let say = |error| place::trouble(&path, "cannot compress", error);
        let lines = sound_lines(&path)?;
        let stamp_before = FileStamp::of(&held.file().metadata().map_err(say)?);
        let before = stamp_before.size;
        let mut bytes = Vec::new();
        for block in packed::blocks(&lines) {
            bytes.extend(packed::pack(block).map_err(say)?);
        }
        if bytes.len() as u64 >= before {
            return Ok(None);
        }
        open::allow_compressed(&self.dir)?;
        for leftover in names::kept_beside(&path) {
            let name = leftover.to_string_lossy();
            if name.contains(names::PART) {
                remove(&leftover)?;
            }
        }
        let packed = log_file::packed_path(&path);
        self.remove_packed(&packed)?;
        let made = self.write_beside(&packed, &bytes)?;
        remove(&path)?;
        place::sync_folder_of(&path)?;
        drop(made);
        self.open.remove(&id);
        // If it cannot be recorded, or another process has made the log plain again, it is folded again.
        if let Ok(found) = fs::metadata(&packed) {
            let stamp = FileStamp::of(&found);
            let _ = self.catalogue()?.restamp((id, LIVE), stamp_before, stamp);
        }
        Ok(Some((before, bytes.len() as u64)))
    }

    /// Removes a compressed file beside a plain log that has everything, which a kill has left or
    /// another process is about to remove.
    fn remove_packed(&self, packed: &Path) -> StoreResult<()> {
        while packed.exists() {
            let file = match place::open_regular(packed) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.map_err(|error| place::trouble(packed, "cannot open", error))?,
            };
            let held = self.lock_file(packed, file)?;
            if place::names_this_file(packed, held.file()) {
                remove(packed)?;
            }
        }
        Ok(())
    }

    /// Writes a compressed log durably, under its name only when it is complete. Returns its lock.
    fn write_beside(&self, packed: &Path, bytes: &[u8]) -> StoreResult<Held> {
        let temporary =
            place::with_suffix(packed, &format!("{}{}", names::PART, std::process::id()));
        let say = |error| place::trouble(packed, "cannot write", error);
        let file = place::create_file(&temporary).map_err(say)?;
        let held = self.lock_file(&temporary, file)?;
        let write = || -> io::Result<()> {
            let mut file = held.file();
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&temporary, packed)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            say(error)
        })?;
        place::sync_folder_of(packed)?;
        Ok(held)
    }

    /// Makes a compressed log plain again, for an append.
    pub(super) fn unpack(&mut self, id: SessionId, path: &Path) -> StoreResult<()> {
        let packed = log_file::packed_path(path);
        while packed.exists() {
            let file = match place::open_regular(&packed) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.map_err(|error| place::trouble(&packed, "cannot open", error))?,
            };
            let held = self.lock_file(&packed, file)?;
            if !place::names_this_file(&packed, held.file()) {
                continue;
            }
            // Both files are there, and the plain one has everything: a kill came before the
            // compressed one was removed.
            if log_file::held_by(path) == packed {
                let say = |error| place::trouble(&packed, "cannot read", error);
                let (log, size) = open_log(path)?;
                if log.has_damaged_blocks() {
                    return Err(StoreError::damaged(
                        format!("session {id}"),
                        "its compressed log; repair the store before going on with it",
                    ));
                }
                place::write_over(path, &log::read_range(&log, 0, size).map_err(say)?)?;
            }
            remove(&packed)?;
            place::sync_folder_of(path)?;
        }
        Ok(())
    }
}

/// Returns the lines of a log. Refuses one that is damaged, or whose last append was cut off: what
/// is wrong with it must stay visible.
fn sound_lines(path: &Path) -> StoreResult<Vec<Vec<u8>>> {
    let say = |error| place::trouble(path, "cannot read", error);
    let file = LogFile::open(path).map_err(say)?;
    let tail = Tail::of(&file).map_err(say)?;
    if tail.is_torn() {
        return Err(StoreError::Refused("its last append was cut off".into()));
    }
    let bytes = log::read_range(&file, 0, tail.end).map_err(say)?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let lines: Vec<Vec<u8>> = text
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let entries: Option<Vec<Entry>> = lines.iter().map(|line| Entry::decode(line).ok()).collect();
    let is_sound = entries.is_some_and(|entries| {
        let mut pairs = entries.windows(2);
        pairs.all(|pair| pair[1].follows(&pair[0].head()))
    });
    match is_sound {
        true => Ok(lines),
        false => Err(StoreError::Refused(
            "it is damaged; `tertulia doctor` says more".into(),
        )),
    }
}
