//! Removing a session from the disk. What forks share with it stays, under a name that no list shows.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use super::engine::{FilesEngine, Held, open_log};
use super::log::{self, Tail};
use super::names::{self, with_suffix};
use super::search::documents_of;
use crate::id::{Seq, SessionId};
use crate::store::{StoreError, StoreResult, place};

impl FilesEngine {
    pub(super) fn purge(&mut self, id: SessionId) -> StoreResult<()> {
        let _structure = self.hold_structure()?;
        self.refresh()?;
        let path = self.live(id)?;
        let shared = self.last_shared(id, &path)?;
        let log = lock_log(&path)?;
        if let Some(upto) = shared {
            leave_husk(&path, upto)?;
        }
        fs::remove_file(&path).map_err(|error| place::trouble(&path, "cannot remove", error))?;
        drop(log);
        self.remove_belongings(id, &path)?;
        place::sync_folder_of(&path)?;
        self.names.forget();
        self.forget_derived(id)
    }

    /// The last place up to which a fork continues this very log.
    fn last_shared(&mut self, id: SessionId, path: &Path) -> StoreResult<Option<Seq>> {
        let mut last = None;
        for (fork, husk) in self.catalogue()?.forks(id, Seq::START)? {
            let Some((_, record)) = self.catalogue()?.record(fork, husk)? else {
                // Its row is unreadable: better keep too much than take a fork's beginning.
                return Ok(Some(Seq(u64::MAX)));
            };
            if let Some(origin) = record.base
                && self.base_path(&origin)?.as_deref() == Some(path)
            {
                last = last.max(Some(origin.seq));
            }
        }
        Ok(last)
    }

    fn forget_derived(&mut self, id: SessionId) -> StoreResult<()> {
        let catalogue = self.catalogue()?;
        let Some(no) = catalogue.number(id, false)? else {
            return Ok(());
        };
        catalogue.remove(no)?;
        catalogue.settle()?;
        let no = no.cast_unsigned();
        let mut index = self.take_index()?;
        // What remains of it gets a number of its own and is indexed when next searched.
        let forgotten = index.forget(&[(no, documents_of(no))]);
        self.index = Some(index);
        forgotten
    }
}

/// Waits until nobody is appending to a log.
pub(super) fn lock_log(path: &Path) -> StoreResult<Held> {
    let lock = || -> std::io::Result<File> {
        let file = File::open(path)?;
        file.lock()?;
        Ok(file)
    };
    lock()
        .map(Held::new)
        .map_err(|error| place::trouble(path, "cannot lock", error))
}

/// Writes the shared beginning of a log beside it.
fn leave_husk(path: &Path, upto: Seq) -> StoreResult<()> {
    let say = |error| place::trouble(path, "cannot read", error);
    let (file, _) = open_log(path)?;
    let end = Tail::of(&file).map_err(say)?.end;
    // The first line says what the log itself continues.
    let first = log::first_place(&file, end).map_err(say)?;
    let mut upto = first.map_or(upto, |first| upto.max(first));
    let husk = names::husk_of(path);
    if husk.exists() {
        let (old, size) = open_log(&husk)?;
        let (_, line) = log::line_before(&old, size).map_err(say)?;
        let last = crate::entry::Entry::decode(&line).ok();
        let ours = match &last {
            Some(last) => log::own_entry(&file, end, last.seq).map_err(say)?,
            None => None,
        };
        match (last, ours) {
            (Some(last), Some(ours)) if last.hash == ours.hash => upto = upto.max(last.seq),
            _ => {
                return Err(StoreError::Refused(format!(
                    "{} is shared by forks and differs: nothing was purged",
                    husk.display()
                )));
            }
        }
    }
    let lines = log::read_own(&file, end, Seq::START, upto, usize::MAX).map_err(say)?;
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend(line.bytes);
        bytes.push(b'\n');
    }
    write_over(&husk, &bytes)
}

/// Puts a whole file in the place of another.
pub(super) fn write_over(path: &Path, bytes: &[u8]) -> StoreResult<()> {
    let temporary = with_suffix(path, &format!(".new-{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let _ = fs::remove_file(&temporary);
        let mut file = place::create_file(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        place::trouble(path, "cannot write", error)
    })?;
    place::sync_folder_of(path)
}
