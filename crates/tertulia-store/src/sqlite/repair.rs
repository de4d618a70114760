//! Repairs a damaged database: a new database with all intact entries replaces it, and the damaged
//! one is kept beside it. The damaged file is read page by page, without SQLite.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::Connection;
use rustix::fs::FlockOperation;

use super::check::session_numbers;
use super::engine::SqliteEngine;
use super::image::Image;
use super::open::{self, PAGE_SIZE};
use super::remains::AllRemains;
use super::rescue::{Rescued, Shown, ShownEntry, rescue};
use super::rows::{Say, base_of, read_lines};
use super::unsent;
use super::{Location, SqliteStore};
use crate::place::with_suffix;
use crate::queue::{Asked, Patience, QueueLock, Record};
use crate::session_lock::Claims;
use crate::{Engine, Progress, Report, StoreError, StoreResult, index, ledger, place};
use tertulia_core::entry::{Entry, Head};
use tertulia_core::id::Seq;
use tertulia_core::session::Line;

/// How long a repair waits for other processes to release the store.
const PATIENCE: Duration = Duration::from_secs(5);

impl SqliteStore {
    /// Salvages a database that is too damaged to be opened. Returns `None` if it can be opened, or
    /// does not exist: then [`CheckMode::Repair`](crate::CheckMode::Repair) does the rest.
    pub fn salvage_unopenable(
        path: &Path,
        now: Timestamp,
        progress: &Progress,
    ) -> StoreResult<Option<Report>> {
        if !path.is_file() {
            return Ok(None);
        }
        let location = Location::File(path.to_owned());
        let why = match SqliteEngine::open(&location, &Claims::memory(), &Patience::default()) {
            Ok(mut opened) => {
                opened.close();
                return Ok(None);
            }
            Err(error @ (StoreError::Damaged { .. } | StoreError::NotAStore { .. })) => error,
            Err(error) => return Err(error),
        };
        if open::is_of_another_program(path) {
            return Err(why);
        }
        if !looks_like_ours(path)? && !looks_like_ours(&with_suffix(path, "-wal"))? {
            return Err(match why {
                StoreError::Damaged { .. } => nothing_salvaged(path, &AllRemains::default()),
                why => why,
            });
        }
        let mut report = Report::default();
        report.faults.push(why.to_string());
        let held = Held::take(path)?;
        let nothing = Shown::default();
        salvage_into_new(&held, now, progress, &mut report, Some(why), &nothing)?;
        Ok(Some(report))
    }
}

impl SqliteEngine {
    pub(super) fn check_and_repair(
        &mut self,
        now: Timestamp,
        progress: &Progress,
    ) -> StoreResult<Report> {
        let mut report = self.look(progress)?;
        if report.is_clean() {
            return Ok(report);
        }
        let derived_only = report.damage.is_empty()
            && super::check::structure_faults(&self.connection, &self.say())?.is_empty();
        if derived_only {
            report.lost.extend(self.missing_entries()?);
            self.discard_ledger();
            let rebuilt = self.derive_anew(progress)?;
            report.repaired.push(format!(
                "rebuilt the list rows of {} sessions and the search index",
                rebuilt.sessions
            ));
            if self.look(progress)?.is_clean() {
                return Ok(report);
            }
        }
        let Location::File(path) = self.location.clone() else {
            return Err(StoreError::damaged(
                "the store in memory",
                "it cannot be repaired",
            ));
        };
        let mut shown = shown_entries(&self.connection, &self.say())?;
        let mut reduced = self.salvage_closed(&path, now, progress, &mut report, &shown)?;
        while !reduced.is_empty() {
            let (connection, say) = (&self.connection, self.say());
            for no in reduced {
                shown.lines.insert(no, shown_lines(connection, &say, no)?);
            }
            reduced = self.salvage_closed(&path, now, progress, &mut report, &shown)?;
        }
        Ok(report)
    }

    /// Salvages the database while it is closed here. Returns the numbers of sessions that would
    /// have less than `shown`; then nothing was changed.
    fn salvage_closed(
        &mut self,
        path: &Path,
        now: Timestamp,
        progress: &Progress,
        report: &mut Report,
        shown: &Shown,
    ) -> StoreResult<BTreeSet<i64>> {
        // No checkpoint: a damaged frame in the WAL hides the pages after it.
        self.close();
        let salvaged = Held::take(path)
            .and_then(|held| salvage_into_new(&held, now, progress, report, None, shown));
        // Not while the file is held: closing a second descriptor of it would release its lock.
        let reopened = self.reopen();
        let reduced = salvaged?;
        reopened.map(|()| reduced)
    }
}

/// Returns the entries that reading gives. A repair must give them, too.
fn shown_entries(connection: &Connection, say: &Say) -> StoreResult<Shown> {
    let mut shown = Shown::default();
    for (no, _) in session_numbers(connection, say, &mut Report::default())? {
        let mut parent: Option<Head> = None;
        let mut entries = BTreeMap::new();
        for line in shown_lines(connection, say, no).unwrap_or_default() {
            let entry = Entry::decode(&line.bytes).ok();
            let entry = entry.filter(|entry| entry.seq == line.seq);
            if let Some(entry) = &entry {
                let is_proven = parent.is_some_and(|parent| entry.follows(&parent));
                let shown = match is_proven {
                    true => ShownEntry::Proven(entry.id),
                    false => ShownEntry::Doubtful(entry.hash),
                };
                entries.insert(entry.seq, shown);
            }
            parent = entry.map(|entry| entry.head());
        }
        shown.entries.insert(no, entries);
    }
    Ok(shown)
}

/// Returns the own lines of a session, as reading gives them.
fn shown_lines(connection: &Connection, say: &Say, no: i64) -> StoreResult<Vec<Line>> {
    let base = base_of(connection, say, no).ok().flatten();
    let after = base.map_or(Seq::START, |(_, seq)| seq);
    let (log, upto) = ((no, None), Seq(u64::MAX));
    read_lines(connection, say, log, after, upto, usize::MAX)
}

/// A damaged database that no other process uses: writers wait in the queue, and none has the file
/// open.
struct Held {
    path: PathBuf,
    file: File,
    queue: QueueLock,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.queue.release();
    }
}

impl Held {
    /// Waits for other processes, up to `PATIENCE`.
    fn take(path: &Path) -> StoreResult<Held> {
        let deadline = Instant::now() + PATIENCE;
        let queue = place::lock_file(&with_suffix(path, "-lock"))?;
        let turnstile = place::lock_file(&with_suffix(path, "-turn"))?;
        let queue = QueueLock::new(queue, Record::Inside).with_turnstile(turnstile);
        let asked = Asked::now(None).within(PATIENCE);
        queue.acquire(path, asked, &Patience::default())?;
        let say = |error| place::trouble(path, "cannot lock", error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| place::trouble(path, "cannot open", error))?;
        let held = Held {
            path: path.to_owned(),
            file,
            queue,
        };
        // SQLite locks parts of the file while it is open. Replacing a database that another
        // process has open would make both share one WAL.
        loop {
            match rustix::fs::fcntl_lock(&held.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS)
                    if Instant::now() < deadline =>
                {
                    pause();
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => {
                    return Err(StoreError::locked(path));
                }
                Err(error) => return Err(say(error.into())),
            }
        }
        Ok(held)
    }

    /// Returns the pages of the database and of its WAL.
    fn image(&self) -> StoreResult<Image<'_>> {
        let say = |error| place::trouble(&self.path, "cannot read", error);
        let size = self.file.metadata().map_err(say)?.len();
        let step = u64::from(PAGE_SIZE);
        let read = move |number: u32| {
            let at = u64::from(number).checked_sub(1)? * step;
            let mut page = vec![0; PAGE_SIZE as usize];
            let there = usize::try_from(size.checked_sub(at)?.min(step)).ok()?;
            // An unreadable part of the medium counts as damaged.
            self.file.read_exact_at(&mut page[..there], at).ok()?;
            Some(page)
        };
        let log = match fs::read(self.log_path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            log => log.map_err(say)?,
        };
        Ok(Image::new(Box::new(read), size, PAGE_SIZE as usize, log))
    }

    /// Returns the path of the WAL. An interrupted repair has already moved it beside the kept
    /// copy, while that copy is still the same file as this one.
    fn log_path(&self) -> PathBuf {
        let log = with_suffix(&self.path, "-wal");
        if log.exists() {
            return log;
        }
        let this = self.file.metadata().map(|found| (found.dev(), found.ino()));
        let moved = siblings(&self.path, "-damaged-").into_iter().find(|kept| {
            let kept = fs::metadata(kept).map(|found| (found.dev(), found.ino()));
            matches!((&kept, &this), (Ok(kept), Ok(this)) if kept == this)
        });
        moved.map_or(log, |kept| with_suffix(&kept, "-wal"))
    }

    /// Replaces the damaged file with the repaired one, and keeps the damaged one.
    fn swap(&self, repaired: &Path, kept: &Path) -> StoreResult<()> {
        let at = |what, error| place::trouble(&self.path, what, error);
        place::keep_as(&self.path, kept)?;
        // The WAL belongs to the damaged file; the new one must not find it.
        let log = self.log_path();
        match fs::rename(&log, with_suffix(kept, "-wal")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at("cannot keep the log of", error));
            }
            _ => place::sync_folder_of(&self.path)?,
        }
        let _ = fs::remove_file(with_suffix(&self.path, "-shm"));
        // Atomic: there is never a moment without a store.
        fs::rename(repaired, &self.path).map_err(|error| at("cannot replace", error))?;
        index::discard(&with_suffix(&self.path, "-search"));
        // It knows sessions of which nothing could be salvaged, as the report says.
        index::discard(&with_suffix(&self.path, &format!("-{}", ledger::NAME)));
        place::sync_folder_of(&self.path)
    }
}

/// Writes all intact entries into a new database, which replaces the damaged one. If there are
/// none, changes nothing; nor if sessions would have less than `shown`, whose numbers it returns.
fn salvage_into_new(
    held: &Held,
    now: Timestamp,
    progress: &Progress,
    report: &mut Report,
    why: Option<StoreError>,
    shown: &Shown,
) -> StoreResult<BTreeSet<i64>> {
    let path = &held.path;
    let image = held.image()?;
    let all = AllRemains::of(&image, |done, total| progress.at("looking", done, total));
    match why {
        Some(why @ StoreError::NotAStore { .. }) if !all.is_ours => return Err(why),
        _ => {}
    }
    let temporary = repaired_beside(path);
    remove_database(&temporary);
    let mut said = Report::default();
    let made = make_sound(path, &image, &all, now, progress, &mut said, shown);
    let swapped = made.and_then(|rescued| {
        if !rescued.reduced.is_empty() {
            return Ok((rescued, None));
        }
        if rescued.sessions == 0 {
            return Err(nothing_salvaged(path, &all));
        }
        let kept = place::damaged_name(path, "-", now);
        held.swap(&temporary, &kept)?;
        Ok((rescued, Some(kept)))
    });
    remove_database(&temporary);
    let (rescued, kept) = swapped?;
    let Some(kept) = kept else {
        return Ok(rescued.reduced);
    };
    report.lost.append(&mut said.lost);
    report.repaired.append(&mut said.repaired);
    if let Some((there, said)) = image.cut_short() {
        report.lost.push(format!(
            "the file has {there} pages and its header says {said}: what was on the other pages alone, if anything, is lost without a name"
        ));
    }
    report.repaired.push(format!(
        "{} sessions with {} entries were salvaged",
        rescued.sessions, rescued.entries
    ));
    let kept = format!("the damaged store is kept as {}", kept.display());
    report.repaired.push(kept);
    Ok(rescued.reduced)
}

/// Returns the path of the database that replaces a damaged one.
fn repaired_beside(path: &Path) -> PathBuf {
    with_suffix(path, &format!("-repaired-{}", std::process::id()))
}

/// Creates the database that replaces the one at `path`, and checks it before anything is replaced.
fn make_sound(
    path: &Path,
    image: &Image<'_>,
    all: &AllRemains,
    now: Timestamp,
    progress: &Progress,
    report: &mut Report,
    shown: &Shown,
) -> StoreResult<Rescued> {
    let temporary = repaired_beside(path);
    let location = Location::File(temporary.clone());
    let mut fresh = SqliteEngine::open(&location, &Claims::memory(), &Patience::default())?;
    let say = fresh.say();
    // One sync at the end is enough: until then the damaged file is the store.
    let durable = |connection: &Connection, how: &str| {
        connection
            .pragma_update(None, "synchronous", how)
            .map_err(say.of("cannot salvage"))
    };
    durable(&fresh.connection, "OFF")?;
    let rescued = rescue(image, all, &mut fresh, now, progress, report, shown)?;
    unsent::carry_over(path, &mut fresh);
    let found = fresh.look(progress)?;
    if found.is_clean() {
        durable(&fresh.connection, "FULL")?;
        let left: i64 = fresh
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            .map_err(say.of("cannot salvage"))?;
        if left != 0 {
            return Err(StoreError::locked(&temporary));
        }
        return Ok(rescued);
    }
    let first = found.faults.first().cloned();
    let first = first.or_else(|| found.damage.first().map(|damage| damage.reason.clone()));
    Err(StoreError::failed(
        "what was salvaged is not a sound store; nothing was changed",
        first.unwrap_or_default(),
    ))
}

fn nothing_salvaged(path: &Path, all: &AllRemains) -> StoreError {
    let entries = all.entries_known();
    StoreError::Unsalvageable {
        place: path.display().to_string(),
        entries: entries as u64,
    }
}

/// Returns true if a file contains a signature of our stores. Runs before any locking, because
/// locking creates a file.
fn looks_like_ours(path: &Path) -> StoreResult<bool> {
    const SIGNS: [&[u8]; 2] = [b"CREATE TABLE session(", b"{\"v\":1,\"seq\":"];
    let say = |error| place::trouble(path, "cannot read", error);
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file.map_err(say)?,
    };
    let mut window = Vec::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut chunk).map_err(say)?;
        if count == 0 {
            return Ok(false);
        }
        window.extend_from_slice(&chunk[..count]);
        let holds = |sign: &[u8]| window.windows(sign.len()).any(|part| part == sign);
        if SIGNS.iter().any(|sign| holds(sign)) {
            return Ok(true);
        }
        let kept = window.len().saturating_sub(64);
        window.drain(..kept);
    }
}

fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Returns the files beside a database whose names are its name, `suffix` and digits.
fn siblings(path: &Path, suffix: &str) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(place::folder_of(path)) else {
        return Vec::new();
    };
    let begin = format!("{name}{suffix}");
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(&begin));
            rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .map(|entry| entry.path())
        .collect()
}

fn remove_database(path: &Path) {
    for suffix in ["", "-wal", "-shm", "-lock", "-turn", "-search"] {
        let _ = fs::remove_file(with_suffix(path, suffix));
    }
    let _ = fs::remove_dir(with_suffix(path, "-open"));
}
