//! Searching everything that was ever said, and going to the place.
//!
//! It does nothing itself. [`Search::key`] says what a person decided; [`Search::wants`] says what is
//! to be read, each with a ticket under which the answer is given back.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::{SignedDuration, Timestamp};
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Hit, Hits, ProjectIds, SearchQuery};
use tertulia_core::search_text::SearchTerms;

use super::choice::Choice;
use super::item::Item;
use super::one_line::{OneLine, Typed};
use super::picker::content_hits::words_of;
use super::picker::{Scope, Ticket};
use super::press;
use super::view::search::{HIT_LINES, parts};

/// After so long without a key a search begins.
const PAUSE: SignedDuration = SignedDuration::from_millis(250);
/// How many hits are looked at.
const HITS: usize = 100;
/// How many messages around a hit are shown.
const AROUND: usize = 8;

/// A search through everything that was said.
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

/// A place in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Which session.
    pub session: SessionId,
    /// Which entry of it.
    pub seq: Seq,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Nothing is to be searched for.
    Idle,
    /// Somebody typed at this time.
    Typed(Timestamp),
    /// It goes on.
    Asked(Ticket),
    /// The hits are there.
    Done,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but the screen looks different.
    Changed,
    /// To leave.
    Leave,
    /// To go to a place.
    Jump(Spot),
    /// To go on in a fork that ends at a place.
    Fork(Spot),
}

/// What is to be read.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// What was said, for [`Search::found`].
    Search(SearchQuery),
    /// The messages around a place, for [`Search::around`].
    Around {
        /// Which place.
        spot: Spot,
        /// So many messages, this one among the first.
        messages: usize,
    },
}

impl Search {
    /// A search that begins with some words, or with none.
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
                // Whoever gives the words at once does not want to wait.
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

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.rechoose(self.choice.chosen());
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if press::leaves(key) {
            return Outcome::Leave;
        }
        if press::with_control(key) == Some('f') {
            return self.chosen().map_or(Outcome::Nothing, Outcome::Fork);
        }
        match key.code {
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab | KeyCode::BackTab if self.project.is_some() => {
                self.scope = match self.scope {
                    Scope::Here => Scope::All,
                    Scope::All => Scope::Here,
                };
                self.stage = self.stage_of(Timestamp::MIN);
                return Outcome::Changed;
            }
            _ => {}
        }
        let (count, seen) = (self.hits.hits.len(), self.seen_rows());
        if self.choice.moves(key, count, seen) {
            return Outcome::Changed;
        }
        let typed = self.query.key(key);
        self.retyped(typed, now)
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str, now: Timestamp) -> Outcome {
        let typed = self.query.insert(text);
        self.retyped(typed, now)
    }

    fn retyped(&mut self, typed: Typed, now: Timestamp) -> Outcome {
        match typed {
            Typed::Nothing => return Outcome::Nothing,
            Typed::Moved => {}
            Typed::Changed => self.stage = self.stage_of(now),
        }
        Outcome::Changed
    }

    fn stage_of(&mut self, typed_at: Timestamp) -> Stage {
        self.trouble = None;
        if !self.query.text().trim().is_empty() {
            return Stage::Typed(typed_at);
        }
        self.hits = Hits::default();
        Stage::Idle
    }

    /// Enter means the hits of what is typed; as long as they are not there it does not wait.
    fn enter(&mut self) -> Outcome {
        match self.stage {
            Stage::Done => self.chosen().map_or(Outcome::Nothing, Outcome::Jump),
            Stage::Typed(_) | Stage::Idle => {
                self.stage = self.stage_of(Timestamp::MIN);
                Outcome::Changed
            }
            Stage::Asked(_) => Outcome::Nothing,
        }
    }

    /// What is to be read next. It is asked for once: ask after each key and each answer, and when
    /// [`Search::due`] says, until there is nothing.
    pub fn wants(&mut self, now: Timestamp) -> Option<(Ticket, Wanted)> {
        self.wants_search(now).or_else(|| self.wants_around())
    }

    /// When it will want something without any key, if it will.
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
        // A clock that was set back is no reason to wait longer.
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
            speaker: None,
            role: None,
            limit: HITS,
        };
        self.tickets += 1;
        self.stage = Stage::Asked(self.tickets);
        Some((self.tickets, Wanted::Search(query)))
    }

    fn wants_around(&mut self) -> Option<(Ticket, Wanted)> {
        let spot = self.chosen()?;
        let is_there = self.around.as_ref().is_some_and(|(at, _)| *at == spot);
        // One at a time: whoever runs down the list wants to see the hit where they stop.
        if is_there || self.around_ticket.is_some() {
            return None;
        }
        self.tickets += 1;
        self.around_ticket = Some((self.tickets, spot));
        let messages = AROUND;
        Some((self.tickets, Wanted::Around { spot, messages }))
    }

    /// Takes in what a search found.
    pub fn found(&mut self, ticket: Ticket, hits: Hits) {
        if self.stage == Stage::Asked(ticket) {
            self.stage = Stage::Done;
            self.hits = hits;
            self.rechoose(0);
        }
    }

    /// Takes in the messages around a place.
    pub fn around(&mut self, ticket: Ticket, items: Vec<Item>) {
        let asked = self.around_ticket.take_if(|(asked, _)| *asked == ticket);
        if let Some((_, spot)) = asked {
            self.around = Some((spot, items));
        }
    }

    /// Takes in that something could not be read, and why.
    pub fn refused(&mut self, ticket: Ticket, why: String) {
        if self.stage == Stage::Asked(ticket) {
            self.stage = Stage::Idle;
            self.hits = Hits::default();
            self.trouble = Some(why);
        } else {
            // The hits are still good.
            self.around(ticket, vec![Item::trouble(why)]);
        }
    }

    fn rechoose(&mut self, place: usize) {
        let (count, seen) = (self.hits.hits.len(), self.seen_rows());
        self.choice.choose(place, count, seen);
    }

    fn seen_rows(&self) -> usize {
        let area = Rect::from((Position::ORIGIN, self.size));
        usize::from(parts(area).list.height) / HIT_LINES
    }

    fn chosen(&self) -> Option<Spot> {
        let hit = self.hits.hits.get(self.choice.chosen())?;
        Some(spot(hit))
    }

    /// What was typed.
    pub fn query(&self) -> &OneLine {
        &self.query
    }

    /// Which sessions are searched.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// What was found.
    pub fn hits(&self) -> &Hits {
        &self.hits
    }

    /// Whether the hits are those of what is typed, and all there.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Whether a search goes on or is about to.
    pub fn is_searching(&self) -> bool {
        matches!(self.stage, Stage::Typed(_) | Stage::Asked(_))
    }

    /// Why nothing can be searched for.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The place of the chosen hit, and of the first that is seen where so many fit.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.hits.hits.len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// The messages around the chosen hit, once they are there.
    pub fn shown_around(&self) -> Option<(Seq, &[Item])> {
        let chosen = self.chosen()?;
        let (spot, items) = self.around.as_ref()?;
        (*spot == chosen).then_some((spot.seq, items.as_slice()))
    }
}

/// Where a hit is.
fn spot(hit: &Hit) -> Spot {
    Spot {
        session: hit.session,
        seq: hit.seq,
    }
}
