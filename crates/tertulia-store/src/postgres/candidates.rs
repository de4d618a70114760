//! Entries of the server that the index found, as a search judges them. They are read many at a time:
//! each question to the server costs a round trip.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use uuid::Uuid;

use super::follow::Wanted;
use super::runner::Runner;
use super::server::Server;
use crate::index::logs::{document, place_of};
use crate::{StoreResult, judge};
use tertulia_core::entry::Entry;
use tertulia_core::id::Seq;
use tertulia_core::session::SessionMeta;

/// Entries that are read with one query.
const READ_AT_ONCE: usize = 256;

/// Candidates of one search.
#[derive(Debug)]
pub(super) struct Candidates {
    runner: Arc<Runner>,
    logs: HashMap<i64, Uuid>,
    numbers: HashMap<Uuid, i64>,
    metas: HashMap<Uuid, SessionMeta>,
    forks: HashMap<Uuid, Vec<(Uuid, Seq)>>,
    /// Documents whose entries will be read, in this order.
    expected: Vec<u64>,
    entries: HashMap<u64, Option<Entry>>,
}

impl Candidates {
    /// Makes the candidates of a search; `numbers` are those of the local index.
    pub(super) fn new(runner: Arc<Runner>, numbers: HashMap<Uuid, u64>) -> Candidates {
        let numbers: HashMap<Uuid, i64> = numbers
            .into_iter()
            .map(|(log, no)| (log, no.cast_signed()))
            .collect();
        Candidates {
            runner,
            logs: numbers.iter().map(|(log, no)| (*no, *log)).collect(),
            numbers,
            metas: HashMap::new(),
            forks: HashMap::new(),
            expected: Vec::new(),
            entries: HashMap::new(),
        }
    }

    /// Returns the number of a log. A fork that the index does not know yet gets one for this search.
    fn number(&mut self, log: Uuid) -> i64 {
        let next = -1 - i64::try_from(self.logs.len()).unwrap_or(i64::MAX - 1);
        let number = *self.numbers.entry(log).or_insert(next);
        self.logs.insert(number, log);
        number
    }

    /// Reads the entries of the documents that are expected from this one on.
    fn read_from(&mut self, document_no: u64) -> StoreResult<()> {
        let from = self.expected.iter().position(|one| *one == document_no);
        let documents: Vec<u64> = match from {
            Some(from) => self.expected[from..]
                .iter()
                .copied()
                .take(READ_AT_ONCE)
                .collect(),
            None => vec![document_no],
        };
        let mut wanted = Vec::new();
        for document in &documents {
            self.entries.insert(*document, None);
            let (no, seq) = place_of(*document);
            let log = self.logs.get(&no.cast_signed()).copied();
            wanted.extend(log.map(|log| Wanted {
                log,
                after: seq.back(1),
                upto: seq,
            }));
        }
        let read = self
            .runner
            .call_blocking(None, |server: Rc<Server>| async move {
                server.lines_of_logs(wanted).await
            })?;
        for (log, lines) in read {
            let no = self.number(log).cast_unsigned();
            for line in lines {
                let entry = Entry::decode(&line.bytes).ok();
                self.entries.insert(document(no, line.seq), entry);
            }
        }
        Ok(())
    }
}

impl judge::Candidates for Candidates {
    fn expect(&mut self, documents: &[u64]) -> StoreResult<()> {
        let known = |no: &u64| self.logs.get(&no.cast_signed()).copied();
        let numbers: HashSet<u64> = documents.iter().map(|one| place_of(*one).0).collect();
        let mut level: Vec<Uuid> = numbers.iter().filter_map(known).collect();
        let mut seen: HashSet<Uuid> = HashSet::new();
        // The logs of the documents, their forks, and the forks of those.
        while !level.is_empty() {
            seen.extend(&level);
            let (logs, bases) = (level.clone(), level);
            let read = self
                .runner
                .call_blocking(None, |server: Rc<Server>| async move {
                    let rows = server.rows_of_logs(logs).await?;
                    Ok((rows, server.forks_of_logs(bases).await?))
                })?;
            let (rows, forks) = read;
            let metas = rows.into_iter().map(|found| (found.log, found.meta));
            self.metas.extend(metas);
            for one in &forks {
                self.number(one.fork);
                let known = self.forks.entry(one.base).or_default();
                known.push((one.fork, one.shared));
            }
            let next: HashSet<Uuid> = forks.iter().map(|one| one.fork).collect();
            level = next.into_iter().filter(|log| !seen.contains(log)).collect();
        }
        Ok(())
    }

    fn expect_entries(&mut self, documents: Vec<u64>) {
        self.expected = documents;
    }

    fn place(&mut self, document: u64) -> StoreResult<Option<(i64, Seq)>> {
        let (no, seq) = place_of(document);
        let no = no.cast_signed();
        Ok(self.logs.contains_key(&no).then_some((no, seq)))
    }

    fn meta(&mut self, log: i64) -> StoreResult<Option<SessionMeta>> {
        let log = self.logs.get(&log);
        Ok(log.and_then(|log| self.metas.get(log)).cloned())
    }

    fn forks(&mut self, log: i64) -> StoreResult<Vec<(i64, Seq)>> {
        let forks = self.logs.get(&log).and_then(|log| self.forks.get(log));
        let numbers = forks
            .into_iter()
            .flatten()
            .filter_map(|(fork, shared)| Some((*self.numbers.get(fork)?, *shared)));
        Ok(numbers.collect())
    }

    fn entry(&mut self, document: u64, _: i64, _: Seq) -> StoreResult<Option<Entry>> {
        if !self.entries.contains_key(&document) {
            self.read_from(document)?;
        }
        Ok(self.entries.get(&document).cloned().flatten())
    }
}
