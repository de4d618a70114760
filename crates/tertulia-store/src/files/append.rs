//! Appends to a log: one write and one sync, under the file lock of the log.
//!
//! Logs stay open after an append, with their known end, so that the next append need not look for
//! it. The remains of an interrupted append are moved to a side file before the next append.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::engine::{FilesEngine, as_lines};
use super::log::{self, Last};
use crate::queue::{QueueLock, Record};
use crate::{StoreError, StoreResult, check_whole, has_words, place};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::SessionId;

/// Maximum number of logs kept open for appending.
const KEPT_OPEN: usize = 16;

/// A log that was appended to, with its end at that time.
#[derive(Debug)]
pub(super) struct OpenLog {
    pub(super) path: PathBuf,
    pub(super) lock: QueueLock,
    pub(super) size: u64,
    pub(super) head: Head,
}

impl FilesEngine {
    pub(super) fn append_to_log(
        &mut self,
        id: SessionId,
        after: Head,
        entries: &[Entry],
    ) -> StoreResult<Head> {
        check_whole(entries)?;
        let mut log = self.locked_log(id)?;
        self.marks.put(id);
        let appended = self.append_to(&mut log, id, after, entries);
        log.lock.release();
        match &appended {
            Ok(head) => self.marks.acknowledge(id, head.seq),
            Err(_) => self.marks.put(id),
        }
        // After an error the file's end is unknown.
        let head = appended?;
        self.keep_open(id, log);
        if has_words(entries) {
            let _ = fs::remove_file(self.draft_path(id));
        }
        Ok(head)
    }

    /// Opens and locks the session's log. The file may be replaced or removed while this waits, and
    /// a lock on an unlinked file excludes no other writer, so the path is checked again.
    fn locked_log(&mut self, id: SessionId) -> StoreResult<OpenLog> {
        loop {
            let log = match self.open.remove(&id) {
                Some(log) => log,
                None => {
                    let path = self.live(id)?;
                    self.unpack(id, &path)?;
                    match open_for_append(&path) {
                        Ok(file) => OpenLog {
                            path,
                            lock: QueueLock::new(file, Record::Nowhere),
                            size: 0,
                            head: Head::START,
                        },
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        Err(error) => return Err(place::trouble(&path, "cannot open", error)),
                    }
                }
            };
            if let Err(error) = log.lock.acquire(&log.path, self.asked, &self.patience) {
                // The next append keeps this one's position in the queue.
                self.keep_open(id, log);
                return Err(error);
            }
            if place::names_this_file(&log.path, log.lock.file()) {
                return Ok(log);
            }
            log.lock.release();
            self.names.forget();
        }
    }

    fn append_to(
        &mut self,
        log: &mut OpenLog,
        id: SessionId,
        after: Head,
        entries: &[Entry],
    ) -> StoreResult<Head> {
        let say = |what: &'static str| {
            let path = log.path.clone();
            move |error| place::trouble(&path, what, error)
        };
        let size = log
            .lock
            .file()
            .metadata()
            .map_err(say("cannot look at"))?
            .len();
        let mut end = size;
        if size != log.size || !ends_at(log).map_err(say("cannot read"))? {
            let tail = self.tail_of(&log.path, log.lock.file())?;
            log.head = match tail.last {
                Last::Entry(head) => head,
                Last::Nothing => return Err(StoreError::NotFound(id)),
                Last::Damaged(reason) => {
                    return Err(StoreError::damaged(
                        format!("session {id}"),
                        format!(
                            "its last line: {reason}; repair the store before going on with it"
                        ),
                    ));
                }
            };
            end = tail.end;
        }
        if log.head != after {
            let head = log.head;
            return Err(StoreError::Conflict { id, head });
        }
        if end < size {
            set_torn_bytes_aside(log, end, size)?;
        }
        let bytes = as_lines(entries);
        let mut file = log.lock.file();
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        if let Err(error) = written {
            let _ = log.lock.file().set_len(end);
            return Err(say("cannot append to")(error));
        }
        log.size = end + bytes.len() as u64;
        log.head = entries.last().map_or(after, Entry::head);
        Ok(log.head)
    }

    pub(super) fn keep_open(&mut self, id: SessionId, log: OpenLog) {
        if self.open.len() >= KEPT_OPEN {
            self.open.clear();
        }
        self.open.insert(id, log);
    }
}

/// Returns true if the log still ends with the known head. The size alone does not prove it: the
/// file may have been replaced.
fn ends_at(log: &OpenLog) -> io::Result<bool> {
    let ending = log::ending(log.head);
    let from = log.size.saturating_sub(ending.len() as u64);
    Ok(log::read_range(log.lock.file(), from, log.size)? == ending.as_bytes())
}

/// Saves unacknowledged trailing bytes to a side file before truncating the log.
fn set_torn_bytes_aside(log: &OpenLog, end: u64, size: u64) -> StoreResult<()> {
    let mut aside = place::with_suffix(&log.path, &format!(".torn-{end}"));
    let keep = || -> io::Result<()> {
        let bytes = log::read_range(log.lock.file(), end, size)?;
        let mut file = loop {
            match place::create_file(&aside) {
                Ok(file) => break file,
                // An earlier append was torn at the same offset; its bytes stay as well.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    aside = place::with_suffix(&aside, "0");
                }
                Err(error) => return Err(error),
            }
        };
        file.write_all(&bytes)?;
        file.sync_data()
    };
    let mut keep = keep;
    keep().map_err(|error| place::trouble(&log.path, "cannot keep the torn end of", error))?;
    place::sync_folder_of(&log.path)?;
    log.lock
        .file()
        .set_len(end)
        .map_err(|error| place::trouble(&log.path, "cannot cut the torn end of", error))
}

fn open_for_append(path: &Path) -> io::Result<File> {
    // Never waits for the other end of a FIFO.
    place::open_regular(path)?;
    OpenOptions::new().read(true).append(true).open(path)
}
