//! Full-text search overlay: searches all sessions and jumps to a hit.
//!
//! It performs no I/O. `key` returns what a key does; `wants` returns a request with a ticket, under
//! which the answer is passed back.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hit, HitFilter, Hits, ProjectIds, SearchQuery};
use tertulia_core::search_text::SearchTerms;

use super::choice::Choice;
use super::geometry::{Panes, ROW_LINES, list_areas, whole};
use super::item::Item;
use super::key_event;
use super::one_line::{OneLine, Typed};
use super::overlay::{Overlay, Reaction};
use super::picker::content_hits::words_of;
use super::picker::{Scope, Ticket};
use super::store_service::{Answer, Request, Searched};
use super::view;
use super::view::brush::Look;

/// Pause in typing after which a search starts.
const PAUSE: SignedDuration = SignedDuration::from_millis(250);
/// Maximum number of hits.
const HITS: usize = 100;
/// Number of messages shown around a hit.
const AROUND: usize = 8;

/// The messages around a hit are beside the list, or below it if there is room.
pub const PANES: Panes = Panes {
    notes: false,
    second: true,
    low: 9,
    replaces: false,
};

/// Full-text search.
#[derive(Debug)]
pub struct Search {
    filter: Filter,
    project: Option<ProjectIds>,
    scope: Scope,
    query: OneLine,
    stage: Stage,
    hits: Hits,
    trouble: Option<String>,
    choice: Choice,
    tickets: Ticket,
    around_ticket: Option<(Ticket, Spot)>,
    around: Option<(Spot, Vec<Item>)>,
    size: Size,
}

/// An entry of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Session id.
    pub session: SessionId,
    /// Entry.
    pub seq: Seq,
}

/// Progress of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Nothing to search.
    Idle,
    /// The query was edited at this time.
    Typed(Timestamp),
    /// A search is running.
    Asked(Ticket),
    /// The hits are complete.
    Done,
}

/// Request for data.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Search, for [`Search::found`].
    Search(Box<SearchQuery>),
    /// Messages around an entry, for [`Search::around`].
    Around {
        /// Entry.
        spot: Spot,
        /// Number of messages, this one among the first.
        messages: usize,
    },
}

impl Overlay for Search {
    fn resize(&mut self, size: Size) {
        self.size = size;
        self.rechoose(self.choice.chosen());
    }

    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if key_event::leaves(key) {
            return Reaction::Close;
        }
        if key_event::with_control(key) == Some('f') {
            // Hits of an earlier query are not meant.
            return self
                .chosen()
                .filter(|_| self.is_done())
                .map_or(Reaction::Nothing, |spot| {
                    Reaction::Fork(spot.session, Some(spot.seq))
                });
        }
        match key.code {
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab | KeyCode::BackTab if self.project.is_some() => {
                self.scope = match self.scope {
                    Scope::Here => Scope::All,
                    Scope::All => Scope::Here,
                };
                self.stage = self.stage_of(Timestamp::MIN);
                return Reaction::Changed;
            }
            _ => {}
        }
        let (count, seen) = (self.hits.hits.len(), self.seen_rows());
        if self.choice.moves(key, count, seen) {
            return Reaction::Changed;
        }
        let typed = self.query.key(key);
        self.retyped(typed, now)
    }

    fn paste(&mut self, text: &str, now: Timestamp) -> bool {
        let typed = self.query.insert(text);
        self.retyped(typed, now);
        true
    }

    fn due(&self, _now: Timestamp) -> Option<Timestamp> {
        self.due()
    }

    fn number(&mut self, first: Ticket) {
        self.tickets = first;
    }

    fn wants(&mut self, _session: SessionId, now: Timestamp) -> Option<Request> {
        let (ticket, wanted) = self.wants(now)?;
        Some(Request::Search(ticket, wanted))
    }

    fn accept(&mut self, answer: Answer) -> Option<Answer> {
        match answer {
            Answer::Search(ticket, Ok(Searched::Found(hits))) => self.found(ticket, hits),
            Answer::Search(ticket, Ok(Searched::Around(items))) => self.around(ticket, items),
            Answer::Search(ticket, Err(error)) => self.refused(ticket, error.sentence()),
            other => return Some(other),
        }
        None
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::search::draw(self, look, area, buffer)
    }
}

impl Search {
    /// Creates a search with an initial query, which may be empty.
    pub fn new(filter: Filter, project: Option<ProjectIds>, words: &str) -> Search {
        Search {
            filter,
            scope: match project {
                Some(_) => Scope::Here,
                None => Scope::All,
            },
            project,
            query: OneLine::new(words),
            stage: match words.trim().is_empty() {
                true => Stage::Idle,
                // A query given with the command is searched without delay.
                false => Stage::Typed(Timestamp::MIN),
            },
            hits: Hits::default(),
            trouble: None,
            choice: Choice::default(),
            tickets: 0,
            around_ticket: None,
            around: None,
            size: Size::new(80, 24),
        }
    }

    fn retyped(&mut self, typed: Typed, now: Timestamp) -> Reaction {
        match typed {
            Typed::Nothing => return Reaction::Nothing,
            Typed::Moved => {}
            Typed::Changed => self.stage = self.stage_of(now),
        }
        Reaction::Changed
    }

    fn stage_of(&mut self, typed_at: Timestamp) -> Stage {
        self.trouble = None;
        if !self.query.text().trim().is_empty() {
            return Stage::Typed(typed_at);
        }
        self.hits = Hits::default();
        Stage::Idle
    }

    /// Enter goes to the chosen hit of the current query, or starts the search if it is still
    /// pending.
    fn enter(&mut self) -> Reaction {
        match self.stage {
            Stage::Done => self
                .chosen()
                .map_or(Reaction::Nothing, |spot| Reaction::Resume {
                    id: spot.session,
                    at: Some(spot.seq),
                }),
            Stage::Typed(_) | Stage::Idle => {
                self.stage = self.stage_of(Timestamp::MIN);
                Reaction::Changed
            }
            Stage::Asked(_) => Reaction::Nothing,
        }
    }

    /// Returns the next request, each once. Call it after each key and answer, and at the time that
    /// [`Search::due`] returns, until it returns `None`.
    pub fn wants(&mut self, now: Timestamp) -> Option<(Ticket, Wanted)> {
        self.wants_search(now).or_else(|| self.wants_around())
    }

    /// Time of the next request that needs no key, if any.
    pub fn due(&self) -> Option<Timestamp> {
        match self.stage {
            Stage::Typed(at) => at.checked_add(PAUSE).ok(),
            _ => None,
        }
    }

    fn wants_search(&mut self, now: Timestamp) -> Option<(Ticket, Wanted)> {
        let Stage::Typed(at) = self.stage else {
            return None;
        };
        let waited = now.duration_since(at);
        // A clock that was set back must not prolong the wait.
        if !waited.is_negative() && waited < PAUSE {
            return None;
        }
        let Some(words) = words_of(self.query.text()) else {
            let trouble = SearchTerms::parse(self.query.text()).err();
            self.trouble = trouble.map(|trouble| trouble.to_string());
            self.hits = Hits::default();
            self.stage = Stage::Idle;
            return None;
        };
        let query = SearchQuery {
            words,
            filter: Filter {
                project: match self.scope {
                    Scope::Here => self.project.clone(),
                    Scope::All => None,
                },
                ..self.filter.clone()
            },
            said: HitFilter::default(),
            limit: HITS,
        };
        self.tickets += 1;
        self.stage = Stage::Asked(self.tickets);
        Some((self.tickets, Wanted::Search(Box::new(query))))
    }

    fn wants_around(&mut self) -> Option<(Ticket, Wanted)> {
        let spot = self.chosen()?;
        let is_there = self.around.as_ref().is_some_and(|(at, _)| *at == spot);
        // One at a time: when scrolling fast, only the final hit needs its context.
        if is_there || self.around_ticket.is_some() {
            return None;
        }
        self.tickets += 1;
        self.around_ticket = Some((self.tickets, spot));
        let messages = AROUND;
        Some((self.tickets, Wanted::Around { spot, messages }))
    }

    /// Adds the result of a search.
    pub fn found(&mut self, ticket: Ticket, hits: Hits) {
        if self.stage == Stage::Asked(ticket) {
            self.stage = Stage::Done;
            self.hits = hits;
            self.rechoose(0);
        }
    }

    /// Adds the messages around an entry.
    pub fn around(&mut self, ticket: Ticket, items: Vec<Item>) {
        let asked = self.around_ticket.take_if(|(asked, _)| *asked == ticket);
        if let Some((_, spot)) = asked {
            self.around = Some((spot, items));
        }
    }

    /// Records that a request failed.
    pub fn refused(&mut self, ticket: Ticket, why: String) {
        if self.stage == Stage::Asked(ticket) {
            self.stage = Stage::Idle;
            self.hits = Hits::default();
            self.trouble = Some(why);
        } else {
            // The hits remain valid.
            self.around(ticket, vec![Item::trouble(why)]);
        }
    }

    fn rechoose(&mut self, place: usize) {
        let (count, seen) = (self.hits.hits.len(), self.seen_rows());
        self.choice.choose(place, count, seen);
    }

    fn seen_rows(&self) -> usize {
        usize::from(list_areas(whole(self.size), PANES).list.height) / ROW_LINES
    }

    fn chosen(&self) -> Option<Spot> {
        let hit = self.hits.hits.get(self.choice.chosen())?;
        Some(spot(hit))
    }

    /// The query.
    pub fn query(&self) -> &OneLine {
        &self.query
    }

    /// Sessions that are searched.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The hits.
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// Returns true if the hits belong to the current query and are complete.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Returns true if a search is running or about to start.
    pub fn is_searching(&self) -> bool {
        matches!(self.stage, Stage::Typed(_) | Stage::Asked(_))
    }

    /// Reason why the search failed or is not possible.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Indices of the chosen hit and of the first visible one, given the viewport height.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.hits.hits.len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// Messages around the chosen hit, once loaded.
    pub fn shown_around(&self) -> Option<(Seq, &[Item])> {
        let chosen = self.chosen()?;
        let (spot, items) = self.around.as_ref()?;
        (*spot == chosen).then_some((spot.seq, items.as_slice()))
    }
}

/// Position of a hit.
fn spot(hit: &Hit) -> Spot {
    Spot {
        session: hit.session,
        seq: hit.seq,
    }
}
