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
    pub more: u64,
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
    /// Number of hits of every session that has one.
    counts: HashMap<SessionId, u64>,
    /// Number of those sessions that the session list does not show already.
    matching: usize,
}

impl ContentHits {
    /// Keeps the best hit of each session, best first. Sessions that are known stay where they are, so
    /// that a further search only adds rows.
    pub fn put(&mut self, hits: Hits) {
        self.pending = hits.pending;
        let counts = hits.sessions.iter().map(|one| (one.session, one.count));
        self.counts = counts.collect();
        let mut known: HashSet<SessionId> = self.all.iter().map(|hit| hit.session).collect();
        for hit in hits.hits {
            if known.insert(hit.session) {
                self.all.push(content_hit(hit));
            }
        }
        for hit in &mut self.all {
            let count = self.counts.get(&hit.session).copied().unwrap_or(1);
            hit.more = count.saturating_sub(1);
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

    /// Returns true if there are sessions with hits that are not known yet.
    pub fn has_more(&self) -> bool {
        // A search that was asked for more than there are has found them all.
        self.counts.len() > self.all.len() && self.limit < self.counts.len()
    }

    /// Number of sessions with hits that the session list does not show already.
    pub fn matching(&self) -> usize {
        self.matching
    }

    /// Number of entries not searched because they are not indexed yet.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Hides the sessions that the session list already shows.
    pub fn pass_over(&mut self, session_list: &SessionList) {
        let all = self.all.iter().map(|content_hit| content_hit.session);
        let ids: HashSet<SessionId> = all.chain(self.counts.keys().copied()).collect();
        let there = match ids.is_empty() {
            true => HashSet::new(),
            false => session_list.shown_of(&ids),
        };
        self.matching = ids.len() - there.len();
        let all = self.all.iter().enumerate();
        self.shown = all
            .filter(|(_, content_hit)| !there.contains(&content_hit.session))
            .map(|(place, _)| place)
            .collect();
    }

    /// Removes a session.
    pub fn remove(&mut self, id: SessionId) {
        self.all.retain(|content_hit| content_hit.session != id);
        self.counts.remove(&id);
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
