//! Search: a local full-text index follows the server. It is brought up to date, queried for
//! candidates, and those are checked against the server. Its thread may block.

use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use uuid::Uuid;

use super::candidates::Candidates;
use super::follow::{LogHead, Wanted};
use super::runner::Runner;
use super::server::Server;
use crate::index::logs::{NumberedLog, behind, documents_of, end_of, stale, step_of};
use crate::index::{Index, Pace, Reached, Step, Steps};
use crate::{Deadline, Progress, StoreError, StoreResult, judge, place};
use tertulia_core::entry::{Hash, Head};
use tertulia_core::id::Seq;
use tertulia_core::query::{Hits, SearchQuery};

/// Entries that are read with one query.
const READ_AT_ONCE: u64 = 1000;
/// Number of passes that get no further, since other processes may update the index too.
const PASSES: usize = 8;

/// The local index, and the way to the server.
#[derive(Debug)]
pub(super) struct Searcher {
    pub(super) runner: Arc<Runner>,
    path: Option<PathBuf>,
    index: Option<Index>,
}

/// A log of the server with its number in the local index.
#[derive(Clone, Debug)]
struct LocalLog {
    no: u64,
    on_server: LogHead,
}

impl NumberedLog for LocalLog {
    fn no(&self) -> u64 {
        self.no
    }

    fn base_seq(&self) -> Seq {
        self.on_server.base_seq
    }

    fn head(&self) -> Head {
        self.on_server.head
    }
}

impl Searcher {
    pub(super) fn new(runner: Arc<Runner>, path: Option<PathBuf>) -> Searcher {
        Searcher {
            runner,
            path,
            index: None,
        }
    }

    fn index(&mut self) -> StoreResult<&mut Index> {
        match &mut self.index {
            Some(index) => Ok(index),
            unopened => {
                if let Some(folder) = self.path.as_deref().and_then(std::path::Path::parent) {
                    place::make_folder(folder)?;
                }
                Ok(unopened.insert(Index::open(self.path.as_deref())?))
            }
        }
    }

    pub(super) fn search(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        let found = self.search_once(query, progress);
        if matches!(
            found,
            Err(StoreError::ReadOnly { .. } | StoreError::Full { .. })
        ) {
            // If no index can be written, uses one in memory.
            self.index = Some(Index::open(None)?);
            let mut hits = self.search_once(query, progress)?;
            hits.unindexed = true;
            return Ok(hits);
        }
        let is_damaged = found.is_err()
            && self
                .index
                .as_ref()
                .is_some_and(|index| index.fault().is_some());
        if is_damaged {
            // The index is derived: a damaged one is rebuilt instead of reported.
            self.index()?.clear()?;
            return self.search_once(query, progress);
        }
        found
    }

    fn search_once(&mut self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        judge::steadily(|| {
            let before = self.index()?.removals()?;
            let pending = self.catch_up(progress)?;
            let runner = self.runner.clone();
            let index = self.index()?;
            let numbers = index.numbers(&[])?;
            let mut candidates = Candidates::new(runner, numbers);
            let hits = judge::search(index, query, &mut candidates)?;
            Ok((Hits { pending, ..hits }, index.removals()? == before))
        })
    }

    /// Updates the index within the time limit of `progress`. Returns the number of pending entries.
    pub(super) fn catch_up(&mut self, progress: &Progress) -> StoreResult<u64> {
        let deadline = match self.index()?.is_in_memory() {
            true => Deadline::NEVER,
            false => progress.deadline(),
        };
        let (mut pending, mut idle) = (u64::MAX, 0);
        loop {
            let logs = self.logs()?;
            self.forget_others(&logs)?;
            let stale = stale(logs, self.index()?)?;
            let left = stale.iter().map(behind).sum();
            idle = if left < pending { 0 } else { idle + 1 };
            let out_of_time = pending < u64::MAX && deadline.has_passed();
            pending = left;
            if stale.is_empty() || idle == PASSES || out_of_time {
                return Ok(pending);
            }
            let runner = self.runner.clone();
            self.index()?.follow(deadline, |steps| {
                read_steps(&runner, steps, &stale, progress)
            })?;
        }
    }

    /// Returns all logs of the server, with their local numbers.
    fn logs(&mut self) -> StoreResult<Vec<LocalLog>> {
        let heads = self
            .runner
            .call_blocking(None, |server: Rc<Server>| async move {
                server.log_heads().await
            })?;
        let names: Vec<Uuid> = heads.iter().map(|head| head.log).collect();
        let numbers = self.index()?.numbers(&names)?;
        let numbered = heads.into_iter().filter_map(|on_server| {
            let no = numbers.get(&on_server.log).copied()?;
            Some(LocalLog { no, on_server })
        });
        Ok(numbered.collect())
    }

    /// Removes documents of logs that are gone, were trimmed or replaced.
    fn forget_others(&mut self, logs: &[LocalLog]) -> StoreResult<()> {
        let mut reached = self.index()?.all_reached()?;
        let mut doubtful = Vec::new();
        let mut wrong = Vec::new();
        for log in logs {
            match reached.remove(&log.no) {
                Some(at) if at == end_of(log.head()) => {}
                Some(at) if at.upto > log.head().seq.0 => wrong.push(log.no),
                Some(at) if at.mark != Hash::NONE => doubtful.push((log.no, log, at)),
                _ => {}
            }
        }
        wrong.extend(reached.into_keys());
        let wanted: Vec<Wanted> = doubtful
            .iter()
            .map(|(_, log, at)| Wanted {
                log: log.on_server.log,
                after: Seq(at.upto).back(1),
                upto: Seq(at.upto),
            })
            .collect();
        let marks = self.marks(wanted)?;
        let changed = doubtful
            .iter()
            .filter(|(_, log, at)| marks.get(&log.on_server.log) != Some(&at.mark));
        wrong.extend(changed.map(|(no, ..)| *no));
        self.forget(&wrong)
    }

    /// Returns the hashes of entries, one of each log.
    fn marks(&self, wanted: Vec<Wanted>) -> StoreResult<HashMap<Uuid, Hash>> {
        let mut marks = HashMap::new();
        for some in wanted.chunks(READ_AT_ONCE as usize) {
            let some = some.to_vec();
            let read = self
                .runner
                .call_blocking(None, |server: Rc<Server>| async move {
                    server.lines_of_logs(some).await
                })?;
            marks.extend(read.into_iter().filter_map(|(log, lines)| {
                let entry = tertulia_core::entry::Entry::decode(&lines.first()?.bytes).ok()?;
                Some((log, entry.hash))
            }));
        }
        Ok(marks)
    }

    /// Removes logs from the index by their numbers.
    fn forget(&mut self, numbers: &[u64]) -> StoreResult<()> {
        if numbers.is_empty() {
            return Ok(());
        }
        let gone: Vec<_> = numbers.iter().map(|no| (*no, documents_of(*no))).collect();
        let index = self.index()?;
        index.forget(&gone)?;
        // `remove` also truncates the index's WAL, which still holds the text.
        index.remove(&[])
    }

    /// Removes purged logs; entries that forks share are indexed again at the next search.
    pub(super) fn forget_logs(&mut self, logs: &[Uuid]) -> StoreResult<()> {
        let is_there = self.path.as_ref().is_some_and(|path| path.exists());
        if self.index.is_none() && !is_there {
            return Ok(());
        }
        let known = self.index()?.numbers(&[])?;
        let numbers: Vec<u64> = logs
            .iter()
            .filter_map(|log| known.get(log).copied())
            .collect();
        self.forget(&numbers)
    }

    /// Empties the index and builds it again.
    pub(super) fn rebuild(&mut self, progress: &Progress) -> StoreResult<()> {
        self.index()?.clear()?;
        self.catch_up(progress).map(drop)
    }

    /// Describes damage of the index, if there is one.
    pub(super) fn fault(&mut self) -> Option<String> {
        match self.index() {
            Ok(index) => index.fault(),
            Err(_) => None,
        }
    }
}

/// Reads the entries that the index lacks and sends them to it.
fn read_steps(
    runner: &Runner,
    sender: &Steps,
    stale: &[(LocalLog, Reached)],
    progress: &Progress,
) -> StoreResult<()> {
    let total: u64 = stale.iter().map(behind).sum();
    let mut done = 0;
    let mut pace = Pace::START;
    let mut waiting: Vec<(&LocalLog, Reached)> =
        stale.iter().map(|(log, at)| (log, *at)).rev().collect();
    progress.at("indexing", done, total);
    let mut steps: Vec<Step> = Vec::new();
    let (mut entries, mut bytes) = (0, 0);
    while !waiting.is_empty() {
        let part = next_part(&mut waiting, pace.entries() as u64);
        let wanted = part.iter().map(|(_, _, wanted)| *wanted).collect();
        let mut read = runner.call_blocking(None, |server: Rc<Server>| async move {
            server.lines_of_logs(wanted).await
        })?;
        // From the last on, so that the rest of a log is read before other logs.
        for (log, from, wanted) in part.into_iter().rev() {
            let lines = read.remove(&wanted.log).unwrap_or_default();
            entries += lines.len();
            done += lines.len() as u64;
            bytes += lines.iter().map(|line| line.bytes.len()).sum::<usize>();
            let step = step_of(log, from, &lines);
            if step.reached != end_of(log.head()) {
                waiting.push((log, step.reached));
            }
            steps.push(step);
        }
        if pace.is_reached(entries, bytes) {
            if !sender.send(std::mem::take(&mut steps)) {
                return Ok(());
            }
            pace.speed_up();
            (entries, bytes) = (0, 0);
        }
        progress.at("indexing", done.min(total), total);
    }
    sender.send(steps);
    progress.at("indexing", total, total);
    Ok(())
}

/// Takes logs whose missing entries are read with one query.
fn next_part<'a>(
    waiting: &mut Vec<(&'a LocalLog, Reached)>,
    most: u64,
) -> Vec<(&'a LocalLog, Reached, Wanted)> {
    let mut part = Vec::new();
    let mut room = most.min(READ_AT_ONCE);
    while room > 0
        && let Some((log, from)) = waiting.pop()
    {
        let after = Seq(from.upto).max(log.base_seq());
        let upto = Seq((after.0 + room).min(log.head().seq.0));
        room -= upto.0.saturating_sub(after.0).min(room).max(1);
        let wanted = Wanted {
            log: log.on_server.log,
            after,
            upto,
        };
        part.push((log, from, wanted));
    }
    part
}
