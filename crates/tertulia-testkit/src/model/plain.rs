//! The reference model: a vector of entries per session, with every query a linear scan.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use tertulia_core::entry::{Entry, Hash, Head};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hidden, Lookup, SearchQuery, Trash};
use tertulia_core::session::{Line, SessionMeta};
use tertulia_core::sizes::{SessionSize, Sizes, TotalSize};
use tertulia_store::Draft;

/// One session.
#[derive(Clone, Debug)]
pub struct Session {
    /// Id.
    pub id: SessionId,
    /// True unless the session is purged.
    pub alive: bool,
    /// The log, including the part shared with a fork's parent.
    pub log: Vec<Entry>,
    /// The last saved draft.
    pub draft: Option<Draft>,
}

impl Session {
    /// Returns the expected metadata.
    pub fn meta(&self) -> SessionMeta {
        SessionMeta::of(self.id, &self.log)
    }

    /// Returns the head of the log.
    pub fn head(&self) -> Head {
        self.log.last().map_or(Head::START, Entry::head)
    }

    /// Returns the draft, unless entries other than housekeeping follow the entry that it answers.
    pub fn valid_draft(&self) -> Option<Draft> {
        let draft = self.draft.clone()?;
        let since = match self
            .log
            .iter()
            .position(|entry| entry.head() == draft.after)
        {
            Some(at) => &self.log[at + 1..],
            None if draft.after == Head::START => &self.log[..],
            None => return None,
        };
        since
            .iter()
            .all(|entry| entry.body.is_tidying())
            .then_some(draft)
    }
}

/// All sessions in order of creation, including purged ones.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// The sessions.
    pub sessions: Vec<Session>,
}

impl Plain {
    /// Returns the sessions that are not purged.
    pub fn alive(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.alive)
    }

    /// Returns the rows that match a filter, in its order.
    pub fn rows(&self, filter: &Filter) -> Vec<SessionMeta> {
        let mut rows: Vec<SessionMeta> = self
            .alive()
            .map(Session::meta)
            .filter(|meta| filter.matches(meta))
            .collect();
        rows.sort_by_key(|meta| std::cmp::Reverse((filter.sort_key(meta), meta.id)));
        rows
    }

    /// Returns the number of sessions hidden by the filter's project and by the trash.
    pub fn hidden(&self, filter: &Filter) -> Hidden {
        let mut hidden = Hidden::default();
        for meta in self.alive().map(Session::meta) {
            let trashed = meta.trashed_at.is_some();
            let wanted = match filter.trash {
                Trash::Without => !trashed,
                Trash::Only => trashed,
                Trash::With => true,
            };
            let here = filter.has_project(&meta);
            hidden.elsewhere += u64::from(wanted && !here);
            hidden.trashed += u64::from(filter.trash == Trash::Without && trashed && here);
        }
        hidden
    }

    /// Returns the rows that match a look-up, newest first.
    pub fn named(&self, lookup: &Lookup) -> Vec<SessionMeta> {
        let everything = Filter {
            trash: Trash::With,
            ..Filter::default()
        };
        let mut rows = self.rows(&everything);
        rows.retain(|meta| lookup.matches(meta));
        rows
    }

    /// Returns a section of a session's log.
    pub fn lines(session: &Session, after: Seq, limit: usize) -> Vec<Line> {
        let later = session.log.iter().filter(|entry| entry.seq > after);
        later.take(limit).map(Line::from).collect()
    }

    /// Returns every readable entry once.
    pub fn entries(&self) -> Vec<&Entry> {
        let mut seen: HashSet<Hash> = HashSet::new();
        self.alive()
            .flat_map(|session| &session.log)
            .filter(|entry| seen.insert(entry.hash))
            .collect()
    }

    /// Returns the sizes of sessions: an entry that one session has is its own, any other is shared.
    pub fn sizes(&self) -> Sizes {
        let mut readers: HashMap<Hash, (u64, bool)> = HashMap::new();
        for session in self.alive() {
            let live = session.meta().trashed_at.is_none();
            for entry in &session.log {
                let (count, any_live) = readers.entry(entry.hash).or_default();
                *count += 1;
                *any_live |= live;
            }
        }
        let bytes = |entry: &Entry| entry.line().len() as u64 + 1;
        let mut total = TotalSize::default();
        for entry in self.entries() {
            match readers[&entry.hash] {
                (1, true) => total.own += bytes(entry),
                (_, true) => total.shared += bytes(entry),
                (_, false) => total.trash += bytes(entry),
            }
        }
        let parent_of = |session: &Session| session.meta().parent.map(|parent| parent.id);
        let live = self.alive().filter(|it| it.meta().trashed_at.is_none());
        let mut sessions: Vec<SessionSize> = live
            .map(|session| {
                let own = session.log.iter().filter(|it| readers[&it.hash].0 == 1);
                let own = own.map(bytes).sum();
                let is_fork = |other: &&Session| parent_of(other) == Some(session.id);
                SessionSize {
                    id: session.id,
                    title: session.meta().title,
                    own,
                    shared: session.log.iter().map(bytes).sum::<u64>() - own,
                    forks: self.alive().filter(is_fork).count() as u64,
                }
            })
            .collect();
        sessions.sort_by_key(|it| Reverse((it.own + it.shared, it.own, it.id)));
        Sizes { total, sessions }
    }

    /// Returns the entries that match a search, each with the sessions that may show it, and the
    /// number of matches hidden only by the filter's project.
    pub fn found(&self, query: &SearchQuery) -> (Vec<(&Entry, Vec<SessionId>)>, u64) {
        let everywhere = Filter {
            project: None,
            ..query.filter.clone()
        };
        let mut found = Vec::new();
        let mut elsewhere = 0;
        for entry in self.entries() {
            if !query.said.admits(entry) || !query.words.matches(&entry.body.searchable()) {
                continue;
            }
            let owners = |filter: &Filter| {
                self.alive()
                    .filter(|session| session.log.iter().any(|own| own.hash == entry.hash))
                    .filter(|session| filter.matches(&session.meta()))
                    .map(|session| session.id)
                    .collect::<Vec<_>>()
            };
            let shown = owners(&query.filter);
            if !shown.is_empty() {
                found.push((entry, shown));
            } else if !owners(&everywhere).is_empty() {
                elsewhere += 1;
            }
        }
        (found, elsewhere)
    }
}
