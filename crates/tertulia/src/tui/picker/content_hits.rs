//! Sessions in which what was typed was said.

use std::collections::HashSet;

use jiff::Timestamp;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Hit, Hits};
use tertulia_core::search_text::{SearchTerms, Snippet};

use super::session_list::SessionList;

/// How many are shown at most.
const MOST: usize = 20;

/// A session in which what was typed was said.
#[derive(Clone, Debug)]
pub struct ContentHit {
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
pub struct ContentHits {
    all: Vec<ContentHit>,
    /// Those that are not in the list already.
    shown: Vec<usize>,
    /// How many entries are not indexed yet, and so were not searched.
    pending: u64,
}

impl ContentHits {
    /// The best hit of each session, best first.
    pub fn of(hits: Hits) -> ContentHits {
        let pending = hits.pending;
        let mut all: Vec<ContentHit> = Vec::new();
        for hit in hits.hits {
            let known = all
                .iter_mut()
                .find(|content_hit| content_hit.session == hit.session);
            if let Some(content_hit) = known {
                content_hit.more += 1;
            } else if all.len() < MOST {
                all.push(content_hit(hit));
            }
        }
        ContentHits {
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
    pub fn pass_over(&mut self, session_list: &SessionList) {
        let ids: HashSet<SessionId> = self
            .all
            .iter()
            .map(|content_hit| content_hit.session)
            .collect();
        let there = match ids.is_empty() {
            true => HashSet::new(),
            false => session_list.shown_of(&ids),
        };
        let all = self.all.iter().enumerate();
        self.shown = all
            .filter(|(_, content_hit)| !there.contains(&content_hit.session))
            .map(|(place, _)| place)
            .collect();
    }

    /// Forgets a session.
    pub fn remove(&mut self, id: SessionId) {
        self.all.retain(|content_hit| content_hit.session != id);
        self.shown.clear();
    }

    /// How many are shown.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// One that is shown.
    pub fn get(&self, place: usize) -> Option<&ContentHit> {
        self.all.get(*self.shown.get(place)?)
    }

    /// The place of a session among those that are shown.
    pub fn place_of(&self, id: SessionId) -> Option<usize> {
        let mut shown = self.shown.iter();
        shown.position(|content_hit| {
            self.all
                .get(*content_hit)
                .is_some_and(|content_hit| content_hit.session == id)
        })
    }
}

fn content_hit(hit: Hit) -> ContentHit {
    ContentHit {
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
pub fn words_of(typed: &str) -> Option<SearchTerms> {
    let may_go_on = typed.ends_with(char::is_alphanumeric);
    let open_ended = may_go_on.then(|| SearchTerms::parse(&format!("{typed}*")).ok());
    open_ended
        .flatten()
        .or_else(|| SearchTerms::parse(typed).ok())
}
