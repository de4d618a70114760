//! Search: judges the entries that an index found by the sessions that show them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::StoreResult;
use super::index::Index;
use tertulia_core::entry;
use tertulia_core::id::Seq;
use tertulia_core::query::{Filter, Hits, SearchQuery};
use tertulia_core::session::SessionMeta;

/// Number of newest hits that are ranked, unless more are asked for: ranking all hits of a common word
/// takes too long.
const RANKED: usize = 256;
/// Number of hits at which counting stops.
const COUNTED: usize = 10_000;

/// Entries of a backend, by the numbers that it gave them in the index.
pub(super) trait Candidates {
    /// Takes notice of the documents that will be judged, newest first: a backend that answers slowly
    /// can get them together.
    fn expect(&mut self, _documents: &[u64]) -> StoreResult<()> {
        Ok(())
    }

    /// Returns the number of the log that holds a document, and the entry's place in it.
    fn place(&mut self, document: u64) -> StoreResult<Option<(i64, Seq)>>;

    /// Returns the session of a log; `None` for a shared prefix, which no list shows.
    fn meta(&mut self, log: i64) -> StoreResult<Option<SessionMeta>>;

    /// Returns the logs that continue a log from this entry or a later one.
    fn forks(&mut self, log: i64, seq: Seq) -> StoreResult<Vec<i64>>;

    /// Returns the entry of a document, unless it is gone meanwhile.
    fn entry(&mut self, document: u64, log: i64, seq: Seq) -> StoreResult<Option<entry::Entry>>;
}

/// Searches an index, and judges the newest documents that match.
pub(super) fn search(
    index: &Index,
    query: &SearchQuery,
    candidates: &mut impl Candidates,
) -> StoreResult<Hits> {
    let mut documents = index.matching(&query.words, COUNTED + 1)?;
    let mut hits = Hits {
        more: documents.len() > COUNTED,
        ..Hits::default()
    };
    documents.truncate(COUNTED);
    candidates.expect(&documents)?;
    let mut owners = Owners {
        everywhere: Filter {
            project: None,
            ..query.filter.clone()
        },
        filter: &query.filter,
        known: HashMap::new(),
    };
    for document in documents {
        judge(&mut hits, query, candidates, &mut owners, document)?;
    }
    hits.rank(query.limit);
    Ok(hits)
}

fn judge(
    hits: &mut Hits,
    query: &SearchQuery,
    candidates: &mut impl Candidates,
    owners: &mut Owners<'_>,
    document: u64,
) -> StoreResult<()> {
    let Some((log, seq)) = candidates.place(document)? else {
        return Ok(());
    };
    let Some(owner) = owners.of(candidates, log, seq)? else {
        return Ok(());
    };
    let counted_only = hits.hits.len() >= RANKED.max(query.limit);
    let picky = query.speaker.is_some() || query.role.is_some();
    if counted_only && !picky && matches!(owner, Owner::Shown(_)) {
        // Counting the hit does not need its text.
        hits.total += 1;
        return Ok(());
    }
    // Purged meanwhile by another process.
    let Some(entry) = candidates.entry(document, log, seq)? else {
        return Ok(());
    };
    match owner {
        _ if !query.admits(&entry) => {}
        Owner::Elsewhere => hits.elsewhere += 1,
        Owner::Shown(meta) => hits.add(query, &entry, meta, counted_only),
    }
    Ok(())
}

/// Which session shows an entry, under the search filter.
enum Owner<'a> {
    Shown(&'a SessionMeta),
    /// Only the filter's project hides the entry.
    Elsewhere,
}

/// Cache of sessions, since hits of one session are often adjacent.
struct Owners<'a> {
    filter: &'a Filter,
    everywhere: Filter,
    known: HashMap<i64, Option<SessionMeta>>,
}

impl Owners<'_> {
    /// Returns which session shows the entry: its own, or else a fork that shares it.
    fn of(
        &mut self,
        candidates: &mut impl Candidates,
        log: i64,
        seq: Seq,
    ) -> StoreResult<Option<Owner<'_>>> {
        let mut family = vec![log];
        let mut passed = HashSet::new();
        let mut elsewhere = false;
        let mut shown = None;
        while let Some(log) = family.pop() {
            // Logs that continue each other in a circle are looked at once.
            if !passed.insert(log) {
                continue;
            }
            let known = match self.known.entry(log) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(candidates.meta(log)?),
            };
            // Words of sealed sessions are in no index: what is found of one was put in without its key.
            if let Some(meta) = known.as_ref().filter(|meta| meta.seal.is_none()) {
                if self.filter.matches(meta) {
                    shown = Some(log);
                    break;
                }
                elsewhere |= self.everywhere.matches(meta);
            }
            family.extend(candidates.forks(log, seq)?);
        }
        let shown = shown.and_then(|log| self.known.get(&log)?.as_ref());
        Ok(shown
            .map(Owner::Shown)
            .or(elsewhere.then_some(Owner::Elsewhere)))
    }
}
