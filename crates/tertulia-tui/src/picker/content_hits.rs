//! Sessions whose messages match the query.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Hit, Hits};
use tertulia_core::search_text::{SearchTerms, Snippet};

use super::session_list::SessionList;

/// A session whose messages match the query.
#[derive(Clone, Debug)]
pub struct ContentHit {
    /// Session id.
    pub session: SessionId,
    /// Title.
    pub title: Option<String>,
    /// Entry of the best hit.
    pub seq: Seq,
    /// Display name of the speaker.
    pub speaker: Option<String>,
    /// Time of the entry.
    pub at: Timestamp,
    /// Text around the hit.
    pub snippet: Snippet,
    /// Number of further hits in this session.
    pub more: usize,
}

/// Result of a content search.
#[derive(Debug, Default)]
pub struct ContentHits {
    all: Vec<ContentHit>,
    /// Indices of the hits that the session list does not show already.
    shown: Vec<usize>,
    /// Number of entries not searched because they are not indexed yet.
    pending: u64,
    /// Number of hits that were asked for.
    limit: usize,
    /// Whether there are more hits than that.
    more: bool,
}

impl ContentHits {
    /// Keeps the best hit of each session, best first. Sessions that are known stay where they are, so
    /// that a further search only adds rows.
    pub fn put(&mut self, hits: Hits) {
        self.pending = hits.pending;
        // A search that brings no more hits than the last one has found them all.
        let is_more = hits.more || hits.total > hits.hits.len() as u64;
        self.more = is_more && hits.hits.len() >= self.limit;
        let known = self.all.iter().enumerate();
        let mut known: HashMap<SessionId, usize> =
            known.map(|(at, hit)| (hit.session, at)).collect();
        self.all.iter_mut().for_each(|hit| hit.more = 0);
        let mut counted = HashSet::new();
        for hit in hits.hits {
            let is_first = counted.insert(hit.session);
            match known.get(&hit.session) {
                Some(at) => self.all[*at].more += usize::from(!is_first),
                None => {
                    known.insert(hit.session, self.all.len());
                    self.all.push(content_hit(hit));
                }
            }
        }
    }

    /// Notes how many hits a search asks for.
    pub fn expect(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Number of hits that the last search asked for.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns true if there are hits that are not known yet.
    pub fn has_more(&self) -> bool {
        self.more
    }

    /// Number of entries not searched because they are not indexed yet.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Hides the sessions that the session list already shows.
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

    /// Removes a session.
    pub fn remove(&mut self, id: SessionId) {
        self.all.retain(|content_hit| content_hit.session != id);
        self.shown.clear();
    }

    /// Number of hits shown.
    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    /// Returns a shown hit.
    pub fn get(&self, place: usize) -> Option<&ContentHit> {
        self.all.get(*self.shown.get(place)?)
    }

    /// Index of a session among the shown hits.
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

/// Search terms of an unfinished query: the last word may be a prefix.
pub fn words_of(typed: &str) -> Option<SearchTerms> {
    let may_go_on = typed.ends_with(char::is_alphanumeric);
    let open_ended = may_go_on.then(|| SearchTerms::parse(&format!("{typed}*")).ok());
    open_ended
        .flatten()
        .or_else(|| SearchTerms::parse(typed).ok())
}
