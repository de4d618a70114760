//! Bringing the catalogue up to the logs: only what has grown is read.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::base;
use super::catalogue::{Catalogue, FileStamp, Record};
use super::engine::{FilesEngine, open_log};
use super::log::{self, Anchor, Tail};
use super::names::{self, LogName, Walk};
use crate::entry::{Entry, Origin};
use crate::id::Seq;
use crate::session::Summary;
use crate::store::index::{self, Index};
use crate::store::{Progress, StoreError, StoreResult, place};

/// The summary is kept every so many entries, so that a fork anywhere folds at most as many.
const SNAPSHOT_EVERY: u64 = 256;

/// What a log folds to.
pub(super) struct Folded {
    pub(super) record: Record,
    snapshots: Vec<(Seq, String)>,
    /// Whether it was folded from its beginning.
    anew: bool,
}

impl FilesEngine {
    /// The catalogue, opened when it is first needed. Where nothing can be written it is in memory.
    pub(super) fn catalogue(&mut self) -> StoreResult<&Catalogue> {
        if self.catalogue.as_ref().is_some_and(Catalogue::is_gone) {
            self.catalogue = None;
        }
        if self.catalogue.is_none() {
            let folder = self.dir.join(names::INDEX_FOLDER);
            let opened = place::make_folder(&folder)
                .and_then(|()| patiently(|| Catalogue::open(Some(&folder.join("catalogue.db")))));
            match opened {
                Ok(catalogue) => self.catalogue = Some(catalogue),
                Err(_) => self.derive_in_memory()?,
            }
        }
        self.catalogue
            .as_ref()
            .ok_or_else(|| StoreError::failed("cannot open the catalogue", "it was just closed"))
    }

    /// Derived data can always be derived where nothing needs to be written.
    fn derive_in_memory(&mut self) -> StoreResult<()> {
        self.catalogue = Some(Catalogue::open(None)?);
        self.index = Some(Index::open(None)?);
        Ok(())
    }

    /// Brings the catalogue up to date.
    pub(super) fn refresh(&mut self) -> StoreResult<()> {
        self.refresh_telling(&Progress::unseen())
    }

    /// The same, telling how many logs are read.
    pub(super) fn refresh_telling(&mut self, progress: &Progress) -> StoreResult<()> {
        let Err(error) = self.refresh_once(progress) else {
            return Ok(());
        };
        if self.catalogue.as_ref().is_none_or(Catalogue::is_in_memory) {
            return Err(error);
        }
        if matches!(
            error,
            StoreError::Damaged { .. } | StoreError::NotAStore { .. }
        ) {
            self.catalogue = None;
            index::discard(&self.dir.join(names::INDEX_FOLDER).join("catalogue.db"));
            if self.refresh_once(progress).is_ok() {
                return Ok(());
            }
        }
        // A full disk must not hide what is on it.
        self.derive_in_memory()?;
        self.refresh_once(progress)
    }

    fn refresh_once(&mut self, progress: &Progress) -> StoreResult<()> {
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        let mut known = self.catalogue()?.stamps()?;
        let mut stale = Vec::new();
        for log in walk.logs {
            let seen = known.remove(&log.key());
            let stamp = fs::metadata(&log.path).map(|found| FileStamp::of(&found));
            if stamp.is_ok_and(|stamp| seen.is_none_or(|(_, seen)| seen != stamp)) {
                stale.push(log);
            }
        }
        if known.is_empty() && stale.is_empty() {
            return Ok(());
        }
        self.catalogue()?.begin()?;
        let gone = known.into_values().map(|(no, _)| no).collect();
        let done = self.take_in(gone, &stale, progress);
        self.catalogue()?.end(done)
    }

    /// Derives every row anew, at once: nobody sees a list without its sessions.
    pub(super) fn derive_anew(&mut self) -> StoreResult<()> {
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        self.catalogue()?.begin()?;
        let done = self
            .catalogue()
            .and_then(Catalogue::clear)
            .and_then(|()| self.take_in(Vec::new(), &walk.logs, &Progress::unseen()));
        self.catalogue()?.end(done)
    }

    fn take_in(
        &mut self,
        gone: Vec<i64>,
        stale: &[LogName],
        progress: &Progress,
    ) -> StoreResult<()> {
        for no in gone {
            self.catalogue()?.remove(no)?;
        }
        let total = stale.len() as u64;
        for (done, log) in stale.iter().enumerate() {
            progress.at("reading sessions", done as u64, total);
            self.bring_up(log)?;
        }
        progress.at("reading sessions", total, total);
        self.settle_owners()
    }

    /// Brings the row of one log up to date.
    pub(super) fn bring_up(&mut self, log: &LogName) -> StoreResult<()> {
        // A log that cannot be read hides no other; a check reports it.
        let Ok(folded) = self.fold_on(log) else {
            return Ok(());
        };
        let Some(folded) = folded else {
            if let Some(no) = self.catalogue()?.number(log.id, log.husk)? {
                self.catalogue()?.remove(no)?;
            }
            return Ok(());
        };
        let no = self.catalogue()?.put(&folded.record)?;
        if folded.anew {
            self.catalogue()?.drop_snapshots(no)?;
            self.catalogue()?.disown(no)?;
        }
        for (seq, row) in &folded.snapshots {
            self.catalogue()?.put_snapshot(no, *seq, row)?;
        }
        Ok(())
    }

    /// Folds a log, going on from what the catalogue knows where that still holds.
    fn fold_on(&mut self, log: &LogName) -> StoreResult<Option<Folded>> {
        let stored = self.catalogue()?.record(log.id, log.husk)?;
        self.fold(log, stored.map(|(_, record)| record))
    }

    /// Folds a log from `stored` on, or from its beginning. `None` if it has no entry.
    pub(super) fn fold(
        &mut self,
        log: &LogName,
        stored: Option<Record>,
    ) -> StoreResult<Option<Folded>> {
        let say = |error| place::trouble(&log.path, "cannot read", error);
        let (file, _) = open_log(&log.path)?;
        let stamp = FileStamp::of(&file.metadata().map_err(say)?);
        let tail = Tail::of_log(&file, log.is_husk()).map_err(say)?;
        let Some(first) = log::first_place(&file, tail.end).map_err(say)? else {
            return Ok(None);
        };
        let base_before = stored.as_ref().and_then(|stored| stored.base.clone());
        let continued = stored.filter(|stored| {
            stored.stamp.size < stamp.size
                && stored.folded <= tail.end
                && ends_with(&file, stored).unwrap_or(false)
        });
        let anew = continued.is_none();
        let (base, mut summary, from) = if let Some(stored) = continued {
            let from = Anchor {
                offset: stored.folded,
                before: stored.last,
            };
            (stored.base, stored.summary, from)
        } else {
            let opening = base::opening(&log.path, &file, tail.end).map_err(say)?;
            let base = match opening.entry {
                Some(_) => opening.origin,
                // What a damaged line said may still be known from before.
                None => opening.origin.or(base_before),
            };
            let start = match &base {
                Some(origin) => self.summary_at(origin)?,
                None => None,
            };
            let from = Anchor {
                offset: 0,
                before: first.back(1),
            };
            (base, start.unwrap_or_else(|| Summary::blank(log.id)), from)
        };
        let mut snapshots = Vec::new();
        let last = log::each_line(&file, from, tail.end, &mut |line| {
            apply(&mut summary, line.seq, &line.bytes);
            if line.seq.0 % SNAPSHOT_EVERY == 0
                && summary.head.seq == line.seq
                && let Ok(row) = serde_json::to_string(&summary)
            {
                snapshots.push((line.seq, row));
            }
            true
        })
        .map_err(say)?;
        summary.id = log.id;
        let record = Record {
            id: log.id,
            husk: log.husk,
            stamp,
            folded: tail.end,
            last,
            base,
            summary,
        };
        Ok(Some(Folded {
            record,
            snapshots,
            anew,
        }))
    }

    /// The summary of a session as it was at the entry that a fork continues.
    pub(super) fn summary_at(&mut self, origin: &Origin) -> StoreResult<Option<Summary>> {
        let Some(path) = self.base_path(origin)? else {
            return Ok(None);
        };
        let mut summary = self
            .nearest_summary(&path, origin.seq)?
            .unwrap_or_else(|| Summary::blank(origin.id));
        let lines = self.read_between(&path, summary.head.seq, origin.seq, usize::MAX)?;
        for line in lines {
            apply(&mut summary, line.seq, &line.bytes);
        }
        Ok(Some(summary))
    }

    /// The newest summary that the catalogue has of a log at or before a place, in it or in its bases.
    fn nearest_summary(&mut self, path: &Path, seq: Seq) -> StoreResult<Option<Summary>> {
        let mut passed = Vec::new();
        let (mut path, mut seq) = (path.to_owned(), seq);
        while !passed.contains(&path)
            && let Some(name) = LogName::parse(&path)
        {
            let (file, size) = open_log(&path)?;
            let say = |error| place::trouble(&name.path, "cannot read", error);
            let stored = self.catalogue()?.record(name.id, name.husk)?;
            let mut known = Vec::new();
            if let Some((no, record)) = stored {
                known.push(record.summary);
                known.extend(self.catalogue()?.snapshot(no, seq)?);
            }
            for summary in known {
                let head = summary.head;
                if head.seq <= seq
                    && let Some(entry) = log::own_entry(&file, size, head.seq).map_err(say)?
                    && entry.hash == head.hash
                {
                    return Ok(Some(summary));
                }
            }
            let Some(origin) = base::opening(&path, &file, size).map_err(say)?.origin else {
                break;
            };
            let Some(base) = self.base_path(&origin)? else {
                break;
            };
            seq = seq.min(origin.seq);
            passed.push(std::mem::replace(&mut path, base));
        }
        Ok(None)
    }
}

/// Opens derived data that somebody else may be making at this moment: SQLite does not wait for that.
pub(super) fn patiently<T>(open: impl Fn() -> StoreResult<T>) -> StoreResult<T> {
    for _ in 0..100 {
        match open() {
            Err(StoreError::Locked { .. }) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened,
        }
    }
    open()
}

/// Whether the log still has the entry up to which it was folded.
fn ends_with(file: &fs::File, stored: &Record) -> std::io::Result<bool> {
    if stored.folded == 0 {
        return Ok(false);
    }
    let (_, line) = log::line_before(file, stored.folded)?;
    Ok(Entry::decode(&line).is_ok_and(|entry| entry.head() == stored.summary.head))
}

/// Carries a summary on by one line, if it is the entry that belongs there.
fn apply(summary: &mut Summary, seq: Seq, line: &[u8]) {
    if let Ok(entry) = Entry::decode(line)
        && entry.seq == seq
    {
        summary.apply(&entry);
    }
}
