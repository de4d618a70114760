//! Sessions in which what was typed was said.

use std::collections::HashSet;

use jiff::Timestamp;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Hit, Hits};
use tertulia_core::words::{Snippet, Words};

use super::shelf::Shelf;

/// How many are shown at most.
const MOST: usize = 20;

/// A session in which what was typed was said.
#[derive(Clone, Debug)]
pub struct Told {
    /// Which session.
    pub session: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The best place in it.
    pub seq: Seq,
    /// Who said it.
    pub speaker: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The words around the place.
    pub snippet: Snippet,
    /// How many more places there are in this session.
    pub more: usize,
}

/// What a search through everything that was said found.
#[derive(Debug, Default)]
pub struct Tolds {
    all: Vec<Told>,
    /// Those that are not in the list already.
    shown: Vec<usize>,
    /// How many entries are not indexed yet, and so were not searched.
    pending: u64,
}

impl Tolds {
    /// The best hit of each session, best first.
    pub fn of(hits: Hits) -> Tolds {
        let pending = hits.pending;
        let mut all: Vec<Told> = Vec::new();
        for hit in hits.hits {
            let known = all.iter_mut().find(|told| told.session == hit.session);
            if let Some(told) = known {
                told.more += 1;
            } else if all.len() < MOST {
                all.push(told(hit));
            }
        }
        Tolds {
            all,
            shown: Vec::new(),
            pending,
        }
    }

    /// How many entries are not indexed yet, and so were not searched.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Leaves out what a shelf shows.
    pub fn pass_over(&mut self, shelf: &Shelf) {
        let ids: HashSet<SessionId> = self.all.iter().map(|told| told.session).collect();
        let there = match ids.is_empty() {
            true => HashSet::new(),
            false => shelf.shown_of(&ids),
        };
        let all = self.all.iter().enumerate();
        self.shown = all
            .filter(|(_, told)| !there.contains(&told.session))
            .map(|(place, _)| place)
            .collect();
    }

    /// Forgets a session.
    pub fn remove(&mut self, id: SessionId) {
        self.all.retain(|told| told.session != id);
        self.shown.clear();
    }

    /// How many are shown.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// One that is shown.
    pub fn get(&self, place: usize) -> Option<&Told> {
        self.all.get(*self.shown.get(place)?)
    }

    /// The place of a session among those that are shown.
    pub fn place_of(&self, id: SessionId) -> Option<usize> {
        let mut shown = self.shown.iter();
        shown.position(|told| self.all.get(*told).is_some_and(|told| told.session == id))
    }
}

fn told(hit: Hit) -> Told {
    Told {
        session: hit.session,
        title: hit.title,
        seq: hit.seq,
        speaker: hit.speaker.map(|speaker| speaker.display_name),
        at: hit.at,
        snippet: hit.snippet,
        more: 0,
    }
}

/// The words of a search that is still being typed: the last one may go on.
pub fn words_of(typed: &str) -> Option<Words> {
    let may_go_on = typed.ends_with(char::is_alphanumeric);
    let open_ended = may_go_on.then(|| Words::parse(&format!("{typed}*")).ok());
    open_ended.flatten().or_else(|| Words::parse(typed).ok())
}
