//! Operations on logs: create, read, drafts.
//!
//! An append locks the log file itself. Creating, purging and repairing logs also lock the marker
//! file, so that no fork is created from a session that is being purged.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::append::OpenLog;
use super::base;
use super::catalogue::Catalogue;
use super::changes::Marks;
use super::log::{self, Last, Tail};
use super::log_file::{LogBytes, LogFile, is_there};
use super::names::{self, LogName, Names};
use super::open;
use crate::chain::{self, Logs};
use crate::engine::{Engine, Upkeep};
use crate::index::Index;
use crate::queue::{Asked, Patience, QueueLock, Record};
use crate::session_lock::Claims;
use crate::{
    CheckMode, Compressed, Draft, Info, NewSession, Progress, Rebuilt, Report, StoreError,
    StoreResult, Unsent, check_whole, place,
};
use tertulia_core::entry::{Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;

/// Performs all operations on the store's folder; each worker thread owns one.
#[derive(Debug)]
pub struct FilesEngine {
    pub(super) dir: PathBuf,
    pub(super) claims: Claims,
    pub(super) names: Names,
    pub(super) marks: Marks,
    pub(super) open: HashMap<SessionId, OpenLog>,
    pub(super) catalogue: Option<Catalogue>,
    pub(super) index: Option<Index>,
    pub(super) patience: Patience,
    /// The current operation: its session, and since when it waits.
    pub(super) asked: Asked,
    /// Lock on the store's structure (the marker file), created at first use.
    structure: Option<Arc<QueueLock>>,
}

/// Releases a [`QueueLock`] on drop.
pub(super) struct Held(Arc<QueueLock>);

impl Held {
    /// Wraps an acquired lock.
    pub(super) fn new(lock: Arc<QueueLock>) -> Held {
        Held(lock)
    }

    /// Returns the locked file.
    pub(super) fn file(&self) -> &File {
        self.0.file()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// An open log.
pub struct Owner {
    path: PathBuf,
    file: LogFile,
    end: u64,
}

impl PartialEq for Owner {
    fn eq(&self, other: &Owner) -> bool {
        self.path == other.path
    }
}

impl Logs for FilesEngine {
    type Log = Owner;

    fn base(&mut self, log: &Owner, after: Seq) -> StoreResult<Option<(Owner, Seq)>> {
        let Some(origin) = origin_before(log, after)? else {
            return Ok(None);
        };
        let Some(path) = self.base_path(&origin)? else {
            return Ok(None);
        };
        Ok(Some((self.open_owner(&path)?, origin.seq)))
    }

    fn own_lines(
        &mut self,
        log: &Owner,
        after: Seq,
        upto: Seq,
        limit: usize,
    ) -> StoreResult<Vec<Line>> {
        log::read_own(&log.file, log.end, after, upto, limit)
            .map_err(|error| place::trouble(&log.path, "cannot read", error))
    }
}

impl FilesEngine {
    /// Waits until no other process creates or removes logs.
    pub(super) fn hold_structure(&mut self) -> StoreResult<Held> {
        let path = self.dir.join(names::MARKER);
        let known = self.structure.take();
        let lock = match known.filter(|lock| place::names_this_file(&path, lock.file())) {
            Some(lock) => lock,
            None => {
                let file = File::open(&path)
                    .map_err(|error| place::trouble(&path, "cannot open", error))?;
                let record = self.dir.join(names::OPEN_FOLDER).join(names::HOLDER);
                Arc::new(QueueLock::new(file, Record::At(record)))
            }
        };
        self.structure = Some(lock.clone());
        lock.acquire(&self.dir, self.asked, &self.patience)?;
        Ok(Held::new(lock))
    }

    /// Forgets cached file names and open logs, after files were replaced.
    pub(super) fn forget_files(&mut self) {
        self.names.forget();
        self.open.clear();
    }

    /// Returns the path of a session's live log.
    pub(super) fn live(&mut self, id: SessionId) -> StoreResult<PathBuf> {
        self.live_if_any(id)?.ok_or(StoreError::NotFound(id))
    }

    pub(super) fn live_if_any(&mut self, id: SessionId) -> StoreResult<Option<PathBuf>> {
        self.recall(id);
        self.names.live(&self.dir, id)
    }

    /// Looks up the names of a session's logs in the catalogue, if there is one: reading all folders
    /// takes long.
    pub(super) fn recall(&mut self, id: SessionId) {
        let catalogue = self.dir.join(names::INDEX_FOLDER).join(names::CATALOGUE);
        if self.names.knows(id) || (self.catalogue.is_none() && !catalogue.exists()) {
            return;
        }
        let logs = self.catalogue().and_then(|catalogue| catalogue.logs_of(id));
        for (_, path, _) in logs.unwrap_or_default() {
            if let Some(log) = LogName::parse(&self.dir.join(path)) {
                self.names.note(&log);
            }
        }
    }

    /// Caches the name and the open file of a new log.
    fn made(&mut self, id: SessionId, path: &Path, file: File, bytes: &[u8], last: &Entry) -> Head {
        self.names.add((id, names::LIVE), path);
        let log = OpenLog {
            path: path.to_owned(),
            lock: QueueLock::new(file, Record::Nowhere),
            size: bytes.len() as u64,
            head: last.head(),
        };
        self.keep_open(id, log);
        last.head()
    }

    /// Moves a log without entries aside: its creation was interrupted, so it is no session. Keeps
    /// its bytes. Fails with `Exists` if the log has entries.
    fn make_way(&mut self, id: SessionId, path: &Path) -> StoreResult<()> {
        let say = |error| place::trouble(path, "cannot look at", error);
        let tail = LogFile::open(path)
            .and_then(|file| Tail::of(&file))
            .map_err(say)?;
        if !matches!(tail.last, Last::Nothing) {
            return Err(StoreError::Exists(id));
        }
        let mut aside = place::with_suffix(path, ".torn-0");
        while aside.exists() {
            // An earlier creation was interrupted as well; its bytes stay.
            aside = place::with_suffix(&aside, "0");
        }
        fs::rename(path, &aside).map_err(|error| place::trouble(path, "cannot set aside", error))
    }

    /// Returns the head of a log at an earlier entry, reading through its bases.
    pub(super) fn head_at(&mut self, path: &Path, seq: Seq) -> StoreResult<Option<Head>> {
        if seq == Seq::START {
            return Ok(Some(Head::START));
        }
        let lines = self.read_between(path, seq.back(1), seq, 1)?;
        let entry = lines
            .first()
            .and_then(|line| Entry::decode(&line.bytes).ok());
        Ok(entry
            .filter(|entry| entry.seq == seq)
            .map(|entry| entry.head()))
    }

    /// Returns the head of a log, if its last line can be read.
    pub(super) fn head_of(&mut self, path: &Path) -> StoreResult<Option<Head>> {
        let file =
            LogFile::open(path).map_err(|error| place::trouble(path, "cannot read", error))?;
        let tail = self.tail_of(path, &file)?;
        Ok(match tail.last {
            Last::Entry(head) => Some(head),
            Last::Nothing | Last::Damaged(_) => None,
        })
    }

    /// Reads lines after `after` up to `upto` of the log in a file, through its bases.
    pub(super) fn read_between(
        &mut self,
        path: &Path,
        after: Seq,
        upto: Seq,
        limit: usize,
    ) -> StoreResult<Vec<Line>> {
        let owner = self.open_owner(path)?;
        chain::read_lines(self, owner, after, upto, limit)
    }

    fn open_owner(&mut self, path: &Path) -> StoreResult<Owner> {
        let (file, _) = open_log(path)?;
        let end = self.tail_of(path, &file)?.end;
        let path = path.to_owned();
        Ok(Owner { path, file, end })
    }

    pub(super) fn draft_path(&self, id: SessionId) -> PathBuf {
        self.dir
            .join(names::DRAFTS_FOLDER)
            .join(format!("{id}.json"))
    }
}

impl Engine for FilesEngine {
    type Location = PathBuf;

    fn open(dir: &PathBuf, claims: &Claims, patience: &Patience) -> StoreResult<FilesEngine> {
        open::open(dir)?;
        Ok(FilesEngine {
            dir: dir.clone(),
            claims: claims.clone(),
            names: Names::default(),
            marks: Marks::new(dir),
            open: HashMap::new(),
            catalogue: None,
            index: None,
            patience: patience.clone(),
            asked: Asked::now(None),
            structure: None,
        })
    }

    fn derived_file(dir: &PathBuf, name: &str) -> Option<PathBuf> {
        Some(dir.join(names::INDEX_FOLDER).join(format!("{name}.db")))
    }

    fn allows_second(&self) -> bool {
        true
    }

    fn begin(&mut self, asked: Asked) {
        self.asked = asked;
    }

    fn create(&mut self, new: &NewSession) -> StoreResult<Head> {
        let Some((opening, last)) = new.entries.first().zip(new.entries.last()) else {
            return Err(StoreError::Refused("a session begins with an entry".into()));
        };
        check_whole(&new.entries)?;
        let _held = self.hold_structure()?;
        let bytes = as_lines(&new.entries);
        if let Some(path) = self.names.taken(&self.dir, new.id)? {
            let finished = {
                let _log = self.lock_log(&path)?;
                finish_own(&path, &bytes)?
            };
            if let Some(file) = finished {
                self.marks.put(new.id);
                return Ok(self.made(new.id, &path, file, &bytes, last));
            }
            self.make_way(new.id, &path)?;
        }
        let folder = match &new.base {
            None => self.dir.join(names::folder_name(opening)),
            // In the folder of its base, so that the parts of the session are found together.
            Some(origin) => self.sound_base(origin)?,
        };
        place::make_folder(&folder)?;
        let path = folder.join(names::file_name(new.id, opening));
        let creation = self.marks.creating(&path);
        let file = make_whole(&path, &bytes, new.id)?;
        self.marks.created(new.id, &creation);
        Ok(self.made(new.id, &path, file, &bytes, last))
    }

    fn append(&mut self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.append_to_log(id, after, entries)
    }

    fn read(&mut self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        let path = self.live(id)?;
        let owner = match self.open_owner(&path) {
            // Purged meanwhile.
            Err(_) if !is_there(&path) => return Err(StoreError::NotFound(id)),
            owner => owner?,
        };
        if owner.end == 0 {
            return Err(StoreError::NotFound(id));
        }
        chain::read_lines(self, owner, after, Seq(u64::MAX), limit)
    }

    fn list(&mut self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        self.list_page(filter, page)
    }

    fn find(&mut self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        self.look_up(lookup, limit)
    }

    fn search(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.search_patiently(query, progress)
    }

    fn index_entries(&mut self, progress: &Progress) -> StoreResult<u64> {
        self.refresh_telling(progress)?;
        let mut index = self.take_index()?;
        let pending = self.catch_up(&mut index, progress);
        self.index = Some(index);
        pending
    }

    fn keep_draft(&mut self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        self.live(id)?;
        let body = serde_json::to_vec(draft)
            .map_err(|error| StoreError::failed("cannot write a draft", error))?;
        place::make_folder(&self.dir.join(names::DRAFTS_FOLDER))?;
        place::replace_file(&self.draft_path(id), ".new", &body)
    }

    fn draft(&mut self, id: SessionId) -> StoreResult<Option<Draft>> {
        let path = self.live(id)?;
        let Ok(body) = fs::read(self.draft_path(id)) else {
            return Ok(None);
        };
        let Some(draft) = serde_json::from_slice::<Draft>(&body).ok() else {
            return Ok(None);
        };
        let lines = self.read(id, draft.after.seq, usize::MAX)?;
        let end = self.head_of(&path)?;
        Ok(draft.if_current(&lines, end))
    }

    fn keep_unsent(&mut self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        self.keep_unsent_words(id, unsent)
    }

    fn unsent(&mut self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        self.unsent_words(id)
    }

    fn purge(&mut self, id: SessionId) -> StoreResult<()> {
        self.remove_session(id)
    }

    fn replace(&mut self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        self.replace_log(id, after, entries)
    }

    fn replace_end(
        &mut self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        self.replace_end_of_log(id, (after, keep), entries)
    }
}

impl Upkeep for FilesEngine {
    fn check(&mut self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        match mode {
            CheckMode::Look => Ok(self.look(progress)?.report),
            CheckMode::Repair(now) => self.check_and_repair(now, progress),
        }
    }

    fn rebuild(&mut self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.derive_all_anew(progress)
    }

    fn info(&mut self) -> StoreResult<Info> {
        self.describe()
    }

    fn sizes(&mut self) -> StoreResult<Vec<LogSize>> {
        self.log_sizes()
    }

    fn compress(&mut self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        self.compress_logs(ids, progress)
    }
}

/// Serialises entries to lines of the file.
pub(super) fn as_lines(entries: &[Entry]) -> Vec<u8> {
    let size = entries.iter().map(|entry| entry.line().len() + 1).sum();
    let mut bytes = Vec::with_capacity(size);
    for entry in entries {
        bytes.extend_from_slice(entry.line().as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// Writes a log under a temporary name and renames it when complete, so that a session is never
/// half created. Never replaces an existing log.
fn make_whole(path: &Path, bytes: &[u8], id: SessionId) -> StoreResult<File> {
    let temporary = place::with_suffix(path, &format!(".new-{}", std::process::id()));
    let make = || -> io::Result<File> {
        let _ = fs::remove_file(&temporary);
        let mut file = place::create_file(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        match fs::hard_link(&temporary, path) {
            Ok(()) => fs::remove_file(&temporary)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // Not every file system has hard links. The structure lock is held, so no other process
            // creates this name.
            Err(_) => fs::rename(&temporary, path)?,
        }
        Ok(file)
    };
    let file = make().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists(id),
            _ => place::trouble(path, "cannot make", error),
        }
    })?;
    if let Err(error) = place::sync_folder_of(path) {
        // Creation was not acknowledged: a retry creates the log again, or finds the same bytes.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(file)
}

/// Completes a log whose creation was interrupted, if its bytes are a prefix of `bytes`. Returns
/// `None` if the log is a different one.
fn finish_own(path: &Path, bytes: &[u8]) -> StoreResult<Option<File>> {
    let say = |error| place::trouble(path, "cannot make", error);
    let there = match fs::read(path) {
        // A compressed log is complete.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        there => there.map_err(say)?,
    };
    if there.is_empty() || !bytes.starts_with(&there) {
        return Ok(None);
    }
    let finish = || -> io::Result<File> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        file.write_all(&bytes[there.len()..])?;
        file.sync_data()?;
        Ok(file)
    };
    let file = finish().map_err(say)?;
    place::sync_folder_of(path)?;
    Ok(Some(file))
}

/// Opens a log for reading and returns its size.
pub(super) fn open_log(path: &Path) -> StoreResult<(LogFile, u64)> {
    let open = || -> io::Result<(LogFile, u64)> {
        let file = LogFile::open(path)?;
        let size = file.size()?;
        Ok((file, size))
    };
    open().map_err(|error| place::trouble(path, "cannot open", error))
}

/// Returns what the log in a file continues, if lines after `after` are in that base.
fn origin_before(owner: &Owner, after: Seq) -> StoreResult<Option<Origin>> {
    let say = |error| place::trouble(&owner.path, "cannot read", error);
    let first = log::first_place(&owner.file, owner.end).map_err(say)?;
    if first.is_none_or(|first| first.back(1) <= after) {
        return Ok(None);
    }
    let opening = base::opening(&owner.path, &owner.file, owner.end).map_err(say)?;
    Ok(opening.origin.filter(|origin| after < origin.seq))
}
