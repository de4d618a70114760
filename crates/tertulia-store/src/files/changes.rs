//! Keeps the catalogue current without looking at every log.
//!
//! A store of many logs is compared with its catalogue as a whole once per start of the system, and
//! whenever there is a sign that another program was at work in its folder. In between, a list
//! relies on what it can see cheaply:
//!
//! - Writers of this program leave a mark in `.index/changed` for each log that they create or append
//!   to. The mark of a new log says how its folder changed by it, and any mark which entry was
//!   acknowledged last.
//! - A folder's modification time shows that a file was added, removed or renamed by another program.
//! - The logs of the rows that are shown, and a random sample of all, are compared with their files:
//!   that shows bytes that another program appended, cut off or replaced.
//!
//! Marks are not synced. After a power cut some may be missing, but then the system was started anew.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::engine::FilesEngine;
use super::file_stamp::FileStamp;
use super::log_file;
use super::names::{self, LogName};
use super::stamps::{Folders, Stamped};
use crate::{StoreResult, place};
use tertulia_core::id::{Seq, SessionId};

/// Up to so many logs, comparing all of them is as quick as looking for signs.
const FEW: i64 = 500;

/// Number of logs in a sample.
const SAMPLE: i64 = 200;

/// A folder that changed less than this ago may change again without a new modification time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Holds the start of the system, and the identity of the catalogue, at the last whole comparison.
const COMPARED: &str = "compared";

/// Folder of marks.
const CHANGED: &str = "changed";

/// Field of a mark: the last entry of the log that was acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";

/// Content of the mark of a new log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Created {
    folder: String,
    name: String,
    /// The folder's modification time before the log was created.
    before: i64,
    /// The same afterwards.
    after: i64,
}

/// The marks of logs that changed since the catalogue took them in.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    index: PathBuf,
    few: i64,
    settled_after: Duration,
}

/// A log that is being created, and its folder before.
pub(super) struct Creation {
    path: PathBuf,
    before: Option<i64>,
}

impl Marks {
    pub(super) fn new(dir: &Path) -> Marks {
        Marks {
            index: dir.join(names::INDEX_FOLDER),
            few: FEW,
            settled_after: SETTLED_AFTER,
        }
    }

    fn path(&self, id: SessionId) -> PathBuf {
        self.index.join(CHANGED).join(id.to_string())
    }

    /// Makes sure that a log is marked. A writer calls this before it appends and again afterwards:
    /// in between, a reader may have taken the mark away.
    pub(super) fn put(&self, id: SessionId) {
        let path = self.path(id);
        if !path.exists() {
            self.write(&path, b"");
        }
    }

    /// Marks a log whose entries up to `last` were acknowledged.
    pub(super) fn acknowledge(&self, id: SessionId, last: Seq) {
        let path = self.path(id);
        let content = fs::read(&path).unwrap_or_default();
        // The mark of a new log says where it is.
        let mut mark: Map<String, Value> = serde_json::from_slice(&content).unwrap_or_default();
        mark.insert(ACKNOWLEDGED.to_owned(), last.0.into());
        self.write(&path, &serde_json::to_vec(&mark).unwrap_or_default());
    }

    /// Returns the last acknowledged entry of a marked log.
    pub(super) fn acknowledged(&self, id: SessionId) -> Seq {
        let content = fs::read(self.path(id)).unwrap_or_default();
        let mark: Option<Value> = serde_json::from_slice(&content).ok();
        let last = mark.and_then(|mark| mark.get(ACKNOWLEDGED)?.as_u64());
        last.map_or(Seq::START, Seq)
    }

    /// Takes away the mark of a log.
    pub(super) fn remove(&self, id: SessionId) {
        let _ = fs::remove_file(self.path(id));
    }

    /// Notes the folder of a log before the log is created in it.
    pub(super) fn creating(&self, path: &Path) -> Creation {
        Creation {
            path: path.to_owned(),
            before: path.parent().and_then(modified),
        }
    }

    /// Marks a log that was created.
    pub(super) fn created(&self, id: SessionId, creation: &Creation) {
        let folder = creation.path.parent();
        let text = |part: Option<&std::ffi::OsStr>| part?.to_str().map(str::to_owned);
        let created = || {
            Some(Created {
                folder: text(folder?.file_name())?,
                name: text(creation.path.file_name())?,
                before: creation.before?,
                after: modified(folder?)?,
            })
        };
        let content = created().and_then(|created| serde_json::to_vec(&created).ok());
        self.write(&self.path(id), &content.unwrap_or_default());
    }

    /// Writes a mark. Where that fails, the next list must compare all logs.
    fn write(&self, path: &Path, content: &[u8]) {
        let made = place::make_folder(&self.index.join(CHANGED));
        if made.is_err() || write_anew(path, content).is_err() {
            let _ = fs::remove_file(self.index.join(COMPARED));
        }
    }

    /// Returns all marks.
    fn all(&self) -> HashMap<SessionId, Option<Created>> {
        let mut marks = HashMap::new();
        for entry in fs::read_dir(self.index.join(CHANGED))
            .into_iter()
            .flatten()
            .flatten()
        {
            let id = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let content = fs::read(entry.path()).unwrap_or_default();
            marks.extend(id.map(|id| (id, serde_json::from_slice(&content).ok())));
        }
        marks
    }
}

impl FilesEngine {
    /// Brings the catalogue up to date for a list. Returns true if every log was looked at.
    pub(super) fn refresh_for_list(&mut self) -> StoreResult<bool> {
        // A damaged catalogue is derived again by a whole comparison.
        let is_current = self
            .is_trusted()
            .and_then(|trusted| Ok(trusted && self.take_in_changes()?));
        if !is_current.unwrap_or(false) {
            self.refresh()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns true if the whole folder was compared with this catalogue since the system started,
    /// and comparing it again would take long.
    fn is_trusted(&mut self) -> StoreResult<bool> {
        let (index, few) = (self.marks.index.clone(), self.marks.few);
        let catalogue = self.catalogue()?;
        if catalogue.is_in_memory() || catalogue.last_number()? <= few {
            return Ok(false);
        }
        let Some(state) = self.state()? else {
            return Ok(false);
        };
        Ok(fs::read_to_string(index.join(COMPARED)).is_ok_and(|known| known == state))
    }

    /// Returns what must still hold for an earlier comparison to count.
    fn state(&mut self) -> StoreResult<Option<String>> {
        let identity = self.catalogue()?.identity()?;
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        Ok(start.map(|start| format!("{} {identity}\n", start.trim())))
    }

    /// Takes in the logs that are marked. Returns false if another program was at work.
    fn take_in_changes(&mut self) -> StoreResult<bool> {
        let marks = self.marks.all();
        let mut known = self.catalogue()?.folders()?;
        let now = folders(&self.dir)?;
        let is_new = advance(&mut known, &marks);
        if known != now {
            return Ok(false);
        }
        let mut changed = Vec::new();
        for (id, created) in &marks {
            let logs = self.catalogue()?.logs_of(*id)?;
            let new = created.as_ref().filter(|_| logs.is_empty());
            changed.extend(self.differing(logs));
            if let Some(created) = new {
                let path = self.dir.join(&created.folder).join(&created.name);
                changed.extend(LogName::parse(&path));
            }
        }
        let sample = self.catalogue()?.sample(SAMPLE)?;
        changed.extend(self.differing(sample));
        if changed.iter().any(|log| !log_file::is_there(&log.path)) {
            return Ok(false);
        }
        self.take_in_some(&changed, is_new.then_some(&now))?;
        self.clear_marks(marks.into_keys());
        Ok(true)
    }

    /// Returns the logs that are not as the catalogue knows them.
    pub(super) fn differing(&self, logs: Vec<Stamped>) -> Vec<LogName> {
        let differs = |(_, path, stamp): &Stamped| {
            let found = log_file::metadata(&self.dir.join(path));
            !found.is_ok_and(|found| FileStamp::of(&found) == *stamp)
        };
        let differing = logs.into_iter().filter(differs);
        differing
            .filter_map(|(_, path, _)| LogName::parse(&self.dir.join(path)))
            .collect()
    }

    /// Brings the rows of some logs up to date.
    pub(super) fn take_in_some(
        &mut self,
        logs: &[LogName],
        folders: Option<&Folders>,
    ) -> StoreResult<()> {
        if logs.is_empty() && folders.is_none() {
            return Ok(());
        }
        self.catalogue()?.begin()?;
        let mut take_in = || {
            logs.iter().try_for_each(|log| self.bring_up(log))?;
            self.settle_owners()?;
            match folders {
                Some(folders) => self.catalogue()?.put_folders(folders),
                None => Ok(()),
            }
        };
        let done = take_in();
        self.catalogue()?.end(done)
    }

    /// Removes the marks of logs that were taken in. A writer may have appended meanwhile and still
    /// have found its mark: then it is put back.
    pub(super) fn clear_marks(&mut self, marked: impl Iterator<Item = SessionId>) {
        for id in marked {
            self.marks.remove(id);
            let logs = self.catalogue().and_then(|catalogue| catalogue.logs_of(id));
            if logs.is_ok_and(|logs| !self.differing(logs).is_empty()) {
                self.marks.put(id);
            }
        }
    }

    /// Returns the marks, and the folders that have settled, before all logs are compared.
    pub(super) fn before_comparison(&mut self) -> StoreResult<(Vec<SessionId>, Folders)> {
        let marked = self.marks.all().into_keys().collect();
        if self.catalogue()?.last_number()? <= self.marks.few {
            return Ok((marked, Folders::new()));
        }
        let mut folders = folders(&self.dir)?;
        // The clock of the file system says how long ago a folder changed. Until the comparison is
        // done, none counts.
        let compared = self.marks.index.join(COMPARED);
        let now = write_anew(&compared, b"")
            .ok()
            .and_then(|()| modified(&compared));
        let settled = i64::try_from(self.marks.settled_after.as_nanos()).unwrap_or(i64::MAX);
        folders.retain(|_, (_, changed)| now.is_some_and(|now| now - *changed >= settled));
        Ok((marked, folders))
    }

    /// Records that all logs were compared with the catalogue.
    pub(super) fn after_comparison(
        &mut self,
        (marked, folders): (Vec<SessionId>, Folders),
    ) -> StoreResult<()> {
        if self.catalogue()?.is_in_memory() {
            return Ok(());
        }
        self.clear_marks(marked.into_iter());
        if self.catalogue()?.last_number()? <= self.marks.few {
            return Ok(());
        }
        if self.catalogue()?.folders()? != folders {
            self.catalogue()?.put_folders(&folders)?;
        }
        let compared = self.marks.index.join(COMPARED);
        if let Some(state) = self.state()?
            && !fs::read_to_string(&compared).is_ok_and(|known| known == state)
        {
            let _ = write_anew(&compared, state.as_bytes());
        }
        Ok(())
    }
}

/// Writes a new private file, in place of another.
fn write_anew(path: &Path, content: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    place::create_file(path)?.write_all(content)
}

/// Applies what the marks of new logs say of their folders. Returns true if a folder changed.
fn advance(folders: &mut Folders, marks: &HashMap<SessionId, Option<Created>>) -> bool {
    let mut created: Vec<&Created> = marks.values().flatten().collect();
    created.sort_by_key(|created| (created.before, created.after));
    let mut changed = false;
    for new in created {
        if let Some((_, modified)) = folders.get_mut(new.folder.as_bytes())
            && *modified == new.before
        {
            changed |= new.after != new.before;
            *modified = new.after;
        }
    }
    changed
}

/// Returns the folders of logs, and when each was modified.
fn folders(dir: &Path) -> StoreResult<Folders> {
    let mut folders = Folders::new();
    let say = |error| place::trouble(dir, "cannot read the folder", error);
    for entry in fs::read_dir(dir).map_err(say)? {
        let entry = entry.map_err(say)?;
        let name = entry.file_name().as_bytes().to_vec();
        if !name.starts_with(b".")
            && let Ok(found) = fs::metadata(entry.path())
            && found.is_dir()
        {
            let stamp = FileStamp::of(&found);
            folders.insert(name, (found.ino(), stamp.modified));
        }
    }
    Ok(folders)
}

fn modified(folder: &Path) -> Option<i64> {
    let found = fs::metadata(folder).ok()?;
    Some(FileStamp::of(&found).modified)
}

#[cfg(test)]
mod tests;
