//! Search: updates the index from all logs, queries it for candidates, and checks those against the
//! logs.

use std::collections::HashMap;

use super::catalogue::Numbered;
use super::engine::{FilesEngine, open_log};
use super::fold::patiently;
use super::log;
use super::log_file::LogFile;
use super::names::{self, Key, LIVE, Walk};
use crate::index::logs::{NumberedLog, behind, documents_of, end_of, place_of, stale, step_of};
use crate::index::{Index, Pace, Reached, Step, Steps};
use crate::judge::{self, Candidates};
use crate::{Deadline, Progress, Rebuilt, StoreResult, place};
use tertulia_core::entry::{Entry, Hash, Head};
use tertulia_core::id::Seq;
use tertulia_core::query::{Hits, SearchQuery};
use tertulia_core::session::SessionMeta;

/// Lines per read.
const LINES: usize = 256;
/// Index source that records which catalogue the index follows; logs are numbered from 1.
const CATALOGUE: u64 = 0;
/// Number of passes that get no further, since other processes may update the index too.
const PASSES: usize = 8;

impl NumberedLog for Numbered {
    fn no(&self) -> u64 {
        self.no
    }

    fn base_seq(&self) -> Seq {
        self.base_seq
    }

    fn head(&self) -> Head {
        self.head
    }
}

impl FilesEngine {
    /// Takes the index out of the engine, so that logs can be read while it is written. The caller
    /// puts it back.
    pub(super) fn take_index(&mut self) -> StoreResult<Index> {
        if let Some(index) = self.index.take() {
            return Ok(index);
        }
        let path = self.dir.join(names::INDEX_FOLDER).join("search.db");
        let in_memory = self.catalogue()?.is_in_memory();
        patiently(|| Index::open((!in_memory).then_some(path.as_path())))
            .or_else(|_| Index::open(None))
    }

    pub(super) fn search_patiently(
        &mut self,
        query: &SearchQuery,
        progress: &Progress,
    ) -> StoreResult<Hits> {
        let found = self.search_once(query, progress);
        let damaged = found.is_err()
            && self
                .index
                .as_ref()
                .is_some_and(|index| index.fault().is_some());
        if let Some(index) = self.index.as_mut().filter(|_| damaged) {
            // The index is derived: a damaged one is rebuilt instead of reported.
            index.clear()?;
            return self.search_once(query, progress);
        }
        found
    }

    fn search_once(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.refresh_telling(progress)?;
        let mut index = self.take_index()?;
        let found = self.search_steadily(&mut index, query, progress);
        // In memory, where none could be written.
        let unindexed = index.is_in_memory();
        self.index = Some(index);
        found.map(|hits| Hits { unindexed, ..hits })
    }

    /// Searches, and repeats the search if another process rebuilt the catalogue meanwhile.
    fn search_steadily(
        &mut self,
        index: &mut Index,
        query: &SearchQuery,
        progress: &Progress,
    ) -> StoreResult<Hits> {
        let mut is_first = true;
        judge::steadily(|| {
            if !std::mem::take(&mut is_first) {
                self.refresh()?;
            }
            let before = (self.catalogue()?.identity()?, index.removals().ok());
            let pending = match self.catch_up(index, progress) {
                Ok(pending) => pending,
                // A full disk must not hide the sessions on it.
                Err(_) => {
                    *index = Index::open(None)?;
                    self.catch_up(index, progress)?
                }
            };
            let hits = self.search_in(index, query)?;
            let after = (self.catalogue()?.identity()?, index.removals().ok());
            Ok((Hits { pending, ..hits }, after == before))
        })
    }

    pub(super) fn derive_all_anew(&mut self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.derive_anew()?;
        let mut index = self.take_index()?;
        // The catalogue has a new identity, so the index starts over too.
        let done = self.catch_up(&mut index, progress);
        self.index = Some(index);
        done?;
        let info = self.describe()?;
        Ok(Rebuilt {
            sessions: info.sessions,
            entries: info.entries,
        })
    }

    /// Updates the index to the catalogue within the time limit of `progress`. Returns the number
    /// of pending entries.
    pub(super) fn catch_up(&mut self, index: &mut Index, progress: &Progress) -> StoreResult<u64> {
        if index.reached(CATALOGUE)? != self.followed()? {
            self.begin_anew(index)?;
        }
        let deadline = match index.is_in_memory() {
            true => Deadline::NEVER,
            false => progress.deadline(),
        };
        let (mut pending, mut idle) = (u64::MAX, 0);
        loop {
            let logs = self.catalogue()?.numbered()?;
            self.forget_others(index, &logs)?;
            let stale = stale(logs, index)?;
            let left = stale.iter().map(behind).sum();
            idle = if left < pending { 0 } else { idle + 1 };
            let out_of_time = pending < u64::MAX && deadline.has_passed();
            pending = left;
            if stale.is_empty() || idle == PASSES || out_of_time {
                return Ok(pending);
            }
            index.follow(deadline, |steps| self.read_steps(steps, &stale, progress))?;
        }
    }

    /// Returns the mark of an index that follows this catalogue.
    fn followed(&mut self) -> StoreResult<Reached> {
        let mark = self.catalogue()?.identity()?;
        Ok(Reached { upto: 1, mark })
    }

    /// Empties an index that followed another catalogue. Only the first process does so: it may be
    /// searching the index by the time the second gets the lock.
    fn begin_anew(&mut self, index: &mut Index) -> StoreResult<()> {
        let _held = if self.catalogue()?.is_in_memory() {
            None
        } else {
            let path = self.dir.join(names::INDEX_FOLDER).join("lock");
            let file = place::lock_file(&path)?;
            Some(self.lock_file(&path, file)?)
        };
        let reached = self.followed()?;
        if index.reached(CATALOGUE)? == reached {
            return Ok(());
        }
        index.clear()?;
        let step = Step {
            source: CATALOGUE,
            from: Reached::NOTHING,
            documents: Vec::new(),
            reached,
        };
        index.advance(&[step], Deadline::NEVER).map(drop)
    }

    /// Removes documents of logs that are gone or were replaced.
    fn forget_others(&mut self, index: &mut Index, logs: &[Numbered]) -> StoreResult<()> {
        let mut reached = index.all_reached()?;
        reached.remove(&CATALOGUE);
        let mut wrong = Vec::new();
        for log in logs {
            if let Some(reached) = reached.remove(&log.no)
                && reached != end_of(log.head)
                && !self.is_same_log(log, reached)
            {
                wrong.push((log.no, documents_of(log.no)));
            }
        }
        wrong.extend(reached.into_keys().map(|no| (no, documents_of(no))));
        if wrong.is_empty() {
            return Ok(());
        }
        index.forget(&wrong)
    }

    fn is_same_log(&mut self, log: &Numbered, reached: Reached) -> bool {
        if reached.upto > log.head.seq.0 {
            return false;
        }
        reached.mark == Hash::NONE
            || self
                .open_numbered((log.id, log.shared_prefix))
                .and_then(|(file, size)| {
                    log::own_entry(&file, size, Seq(reached.upto))
                        .ok()
                        .flatten()
                })
                .is_some_and(|entry| entry.hash == reached.mark)
    }

    fn open_numbered(&mut self, key: Key) -> Option<(LogFile, u64)> {
        if self.names.get(key).is_none() {
            self.names.take(&Walk::of(&self.dir).ok()?);
        }
        open_log(&self.names.get(key)?).ok()
    }

    /// Reads the entries that the index lacks and sends them to it.
    fn read_steps(
        &mut self,
        sender: &Steps,
        stale: &[(Numbered, Reached)],
        progress: &Progress,
    ) -> StoreResult<()> {
        let total = stale.iter().map(behind).sum();
        let mut done = 0;
        let mut steps: Vec<Step> = Vec::new();
        let (mut entries, mut bytes) = (0, 0);
        let mut pace = Pace::START;
        progress.at("indexing", done, total);
        for (log, reached) in stale {
            let Some((file, size)) = self.open_numbered((log.id, log.shared_prefix)) else {
                continue;
            };
            let mut from = *reached;
            while from != end_of(log.head) {
                let after = Seq(from.upto).max(log.base_seq);
                let lines = log::read_own(&file, size, after, log.head.seq, LINES)
                    .map_err(|error| place::trouble(&self.dir, "cannot index entries in", error))?;
                entries += lines.len();
                bytes += lines.iter().map(|line| line.bytes.len()).sum::<usize>();
                let step = step_of(log, from, &lines);
                from = step.reached;
                steps.push(step);
                if pace.is_reached(entries, bytes) {
                    if !sender.send(std::mem::take(&mut steps)) {
                        return Ok(());
                    }
                    pace.speed_up();
                    done += entries as u64;
                    progress.at("indexing", done.min(total), total);
                    (entries, bytes) = (0, 0);
                }
            }
        }
        sender.send(steps);
        progress.at("indexing", total, total);
        Ok(())
    }

    fn search_in(&mut self, index: &Index, query: &SearchQuery) -> StoreResult<Hits> {
        let logs = self.catalogue()?.numbered()?;
        let keys = logs
            .into_iter()
            .map(|log| (log.no.cast_signed(), (log.id, log.shared_prefix)))
            .collect();
        let mut entries = Entries {
            engine: self,
            keys,
            open: None,
        };
        judge::search(index, query, &mut entries)
    }
}

/// The entries of all logs, which are numbered by log and place.
struct Entries<'a> {
    engine: &'a mut FilesEngine,
    keys: HashMap<i64, Key>,
    /// The log of the last entry: hits of one log are adjacent, so one open file is enough.
    open: Option<(i64, LogFile, u64)>,
}

impl Candidates for Entries<'_> {
    fn place(&mut self, document: u64) -> StoreResult<Option<(i64, Seq)>> {
        let (log, seq) = place_of(document);
        let place = (log.cast_signed(), seq);
        Ok(self.keys.contains_key(&place.0).then_some(place))
    }

    fn meta(&mut self, log: i64) -> StoreResult<Option<SessionMeta>> {
        let Some((id, LIVE)) = self.keys.get(&log).copied() else {
            return Ok(None);
        };
        let found = self.engine.catalogue()?.record(id, LIVE)?;
        Ok(found.map(|(_, record)| record.meta))
    }

    fn forks(&mut self, log: i64) -> StoreResult<Vec<(i64, Seq)>> {
        self.engine.catalogue()?.forks(log)
    }

    fn entry(&mut self, _: u64, log: i64, seq: Seq) -> StoreResult<Option<Entry>> {
        if self.open.as_ref().is_none_or(|(open, ..)| *open != log) {
            let key = self.keys.get(&log).copied();
            let opened = key.and_then(|key| self.engine.open_numbered(key));
            self.open = opened.map(|(file, size)| (log, file, size));
        }
        let Some((_, file, size)) = &self.open else {
            return Ok(None);
        };
        Ok(log::own_entry(file, *size, seq).ok().flatten())
    }
}
