//! Search: judges the entries that an index found by the sessions that show them.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::StoreResult;
use super::index::Index;
use tertulia_core::entry;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hits, SearchQuery};
use tertulia_core::session::SessionMeta;

/// Number of hits that are read and ranked, unless more are asked for. All are counted, which needs no
/// text.
const RANKED: usize = 256;

/// Number of times that a search is repeated because documents were removed meanwhile.
const REPEATS: usize = 8;

/// Entries of a backend, by the numbers that it gave them in the index.
pub(super) trait Candidates {
    /// Takes notice of all documents that matched, newest first: a backend that answers slowly can get
    /// their places together.
    fn expect(&mut self, _documents: &[u64]) -> StoreResult<()> {
        Ok(())
    }

    /// Takes notice of the documents whose entries will be read, in this order.
    fn expect_entries(&mut self, _documents: Vec<u64>) {}

    /// Returns the number of the log that holds a document, and the entry's place in it.
    fn place(&mut self, document: u64) -> StoreResult<Option<(i64, Seq)>>;

    /// Returns the session of a log; `None` for a shared prefix, which no list shows.
    fn meta(&mut self, log: i64) -> StoreResult<Option<SessionMeta>>;

    /// Returns the logs that continue a log, each with the last entry that it shares.
    fn forks(&mut self, log: i64) -> StoreResult<Vec<(i64, Seq)>>;

    /// Returns the entry of a document, unless it is gone meanwhile.
    fn entry(&mut self, document: u64, log: i64, seq: Seq) -> StoreResult<Option<entry::Entry>>;
}

/// Repeats a search until nothing was removed from the index meanwhile, which it says beside its hits:
/// another process may rebuild the index, and a search would find what is there again by then.
pub(super) fn steadily(mut search: impl FnMut() -> StoreResult<(Hits, bool)>) -> StoreResult<Hits> {
    for _ in 0..REPEATS {
        let (hits, is_steady) = search()?;
        if is_steady {
            return Ok(hits);
        }
    }
    search().map(|(hits, _)| hits)
}

/// Searches an index: counts the documents of every session that match, and reads the newest of each.
pub(super) fn search(
    index: &Index,
    query: &SearchQuery,
    candidates: &mut impl Candidates,
) -> StoreResult<Hits> {
    let documents = index.matching(query)?;
    candidates.expect(&documents)?;
    let mut owners = Owners::of(query);
    let mut hits = Hits::default();
    let wanted = RANKED.max(query.limit);
    let mut groups: HashMap<i64, Group> = HashMap::new();
    // Neighbours are often entries of one log that is shown itself: its group is looked up once for them.
    let mut current: Option<(i64, Group)> = None;
    for document in documents {
        let Some((log, seq)) = candidates.place(document)? else {
            continue;
        };
        let candidate = (document, log, seq);
        if let Some((shown, group)) = &mut current
            && *shown == log
        {
            group.add(candidate, wanted);
            continue;
        }
        match owners.owner(candidates, log, seq)? {
            Some(Owner::Shown(owner)) if owner == log => {
                let mut group = groups.remove(&log).unwrap_or_default();
                group.add(candidate, wanted);
                groups.extend(current.replace((log, group)));
            }
            // It may be the group of the neighbours.
            Some(Owner::Shown(owner)) => {
                groups.extend(current.take());
                groups.entry(owner).or_default().add(candidate, wanted);
            }
            Some(Owner::Elsewhere) => hits.elsewhere += 1,
            None => {}
        }
    }
    groups.extend(current);
    let mut groups: Vec<(&SessionMeta, Group)> = groups
        .into_iter()
        .filter_map(|(owner, group)| Some((owners.meta(owner)?, group)))
        .collect();
    groups.sort_by_key(|(meta, _)| Reverse((meta.updated_at, meta.id)));
    for (meta, group) in &groups {
        hits.count(meta.id, group.count);
    }
    let mut chosen = newest_of_each(&groups, wanted);
    // Entries of one log together.
    chosen.sort_by_key(|(_, (document, ..))| Reverse(*document));
    candidates.expect_entries(chosen.iter().map(|(_, (document, ..))| *document).collect());
    for (meta, (document, log, seq)) in chosen {
        // Purged meanwhile by another process, if there is none.
        if let Some(entry) = candidates.entry(document, log, seq)? {
            hits.add(query, &entry, meta);
        }
    }
    hits.rank(query.limit);
    Ok(hits)
}

/// A document, and its place.
type Candidate = (u64, i64, Seq);

/// Matches that one session shows.
#[derive(Default)]
struct Group {
    count: u64,
    /// As many of the newest as can be asked for.
    newest: Vec<Candidate>,
}

impl Group {
    fn add(&mut self, candidate: Candidate, wanted: usize) {
        self.count += 1;
        if self.newest.len() < wanted {
            self.newest.push(candidate);
        }
    }
}

/// Takes the newest match of every session, then the second newest of every session, and so on.
fn newest_of_each<'a>(
    groups: &[(&'a SessionMeta, Group)],
    wanted: usize,
) -> Vec<(&'a SessionMeta, Candidate)> {
    let mut chosen = Vec::new();
    for round in 0.. {
        let before = chosen.len();
        for (meta, group) in groups {
            if chosen.len() == wanted {
                return chosen;
            }
            chosen.extend(group.newest.get(round).map(|one| (*meta, *one)));
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen
}

/// Which session shows an entry, under the search filter.
enum Owner {
    /// The session of this log.
    Shown(i64),
    /// Only the filter's project hides the entry.
    Elsewhere,
}

/// What is known of a log.
struct Known {
    meta: Option<SessionMeta>,
    is_shown: bool,
    is_elsewhere: bool,
    /// Logs that continue it, once they were needed.
    forks: Option<Vec<(i64, Seq)>>,
}

/// Cache of sessions: many hits are in one session.
struct Owners<'a> {
    session: Option<SessionId>,
    filter: &'a Filter,
    everywhere: Filter,
    known: HashMap<i64, Known>,
}

impl<'a> Owners<'a> {
    fn of(query: &'a SearchQuery) -> Owners<'a> {
        Owners {
            session: query.said.session,
            filter: &query.filter,
            everywhere: Filter {
                project: None,
                ..query.filter.clone()
            },
            known: HashMap::new(),
        }
    }

    fn meta(&self, log: i64) -> Option<&SessionMeta> {
        self.known.get(&log)?.meta.as_ref()
    }

    fn known(&mut self, candidates: &mut impl Candidates, log: i64) -> StoreResult<&mut Known> {
        Ok(match self.known.entry(log) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                // Words of sealed sessions are in no index: what is found of one was put in without
                // its key.
                let session = self.session;
                let is_wanted = |meta: &SessionMeta| {
                    meta.seal.is_none() && session.is_none_or(|session| meta.id == session)
                };
                let meta = candidates.meta(log)?.filter(is_wanted);
                unknown.insert(Known {
                    is_shown: meta.as_ref().is_some_and(|meta| self.filter.matches(meta)),
                    is_elsewhere: (meta.as_ref()).is_some_and(|meta| self.everywhere.matches(meta)),
                    meta,
                    forks: None,
                })
            }
        })
    }

    /// Returns which session shows the entry: its own, or else a fork that shares it.
    fn owner(
        &mut self,
        candidates: &mut impl Candidates,
        log: i64,
        seq: Seq,
    ) -> StoreResult<Option<Owner>> {
        if self.known(candidates, log)?.is_shown {
            return Ok(Some(Owner::Shown(log)));
        }
        let mut family = vec![log];
        let mut passed = HashSet::new();
        let mut is_elsewhere = false;
        while let Some(log) = family.pop() {
            // Logs that continue each other in a circle are looked at once.
            if !passed.insert(log) {
                continue;
            }
            let known = self.known(candidates, log)?;
            if known.is_shown {
                return Ok(Some(Owner::Shown(log)));
            }
            is_elsewhere |= known.is_elsewhere;
            let forks = match &mut known.forks {
                Some(forks) => forks,
                unread => unread.insert(candidates.forks(log)?),
            };
            let sharing = forks.iter().filter(|(_, shared)| *shared >= seq);
            family.extend(sharing.map(|(fork, _)| *fork));
        }
        Ok(is_elsewhere.then_some(Owner::Elsewhere))
    }
}
