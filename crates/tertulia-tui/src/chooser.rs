//! Chooser overlay: the agents that could answer, or the models of the current one, to switch to.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_core::id::SessionId;

use super::choice::Choice;
use super::geometry::{chooser_areas, whole};
use super::host::{AgentRow, Models};
use super::key_event;
use super::one_line::{OneLine, Typed};
use super::overlay::{Overlay, Reaction};
use super::store_service::{Answer, Request};
use super::view;
use super::view::brush::Look;

/// Type of the built-in agent.
const DEMO: &str = "demo";

/// What is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choosing {
    /// An agent.
    Agent,
    /// A model of this agent.
    Model(String),
}

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Further facts, such as the model of an agent.
    pub detail: String,
    /// Remark: of an agent that is not ready, why, and what to do.
    pub remark: String,
    /// Whether it can be used now.
    pub is_ready: bool,
    /// Whether it is in use.
    pub is_current: bool,
}

/// List of agents or models.
#[derive(Debug)]
pub struct Chooser {
    choosing: Choosing,
    /// Name of what is in use.
    current: Option<String>,
    /// Why nothing can be chosen, if so.
    only_lists: Option<String>,
    /// Whether agents that seem not to be ready can be chosen: a server may know more.
    trusts_others: bool,
    is_asked: bool,
    offers: Option<Vec<Offer>>,
    /// Whether the list has everything there is.
    is_complete: bool,
    trouble: Option<String>,
    query: OneLine,
    choice: Choice,
    size: Size,
}

impl Overlay for Chooser {
    fn resize(&mut self, size: Size) {
        self.size = size;
        self.choose(self.choice.chosen());
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if key_event::leaves(key) {
            return Reaction::Close;
        }
        if key.code == KeyCode::Enter {
            return self.taken();
        }
        let (count, seen) = (self.fitting().len(), self.seen_rows());
        if self.choice.moves(key, count, seen) {
            self.trouble = None;
            return Reaction::Changed;
        }
        self.typed(|query| query.key(key))
    }

    fn paste(&mut self, text: &str, _now: Timestamp) -> bool {
        self.typed(|query| query.insert(text));
        true
    }

    fn wants(&mut self, _session: SessionId, _now: Timestamp) -> Option<Request> {
        if std::mem::replace(&mut self.is_asked, true) {
            return None;
        }
        Some(match &self.choosing {
            Choosing::Agent => Request::Agents(None),
            Choosing::Model(agent) => Request::Models {
                agent: agent.clone(),
                check: None,
            },
        })
    }

    fn accept(&mut self, answer: Answer) -> Option<Answer> {
        match (answer, &self.choosing) {
            (Answer::Agents(None, Ok(rows)), Choosing::Agent) => self.put_agents(rows),
            (Answer::Agents(None, Err(error)), Choosing::Agent) => {
                self.refused(error.sentence());
            }
            (
                Answer::Models {
                    agent,
                    check: None,
                    models,
                },
                Choosing::Model(of),
            ) if agent == *of => match models {
                Ok(models) => self.put_models(models),
                Err(error) => self.refused(error.sentence()),
            },
            (other, _) => return Some(other),
        }
        None
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::chooser::draw(self, look, area, buffer)
    }
}

impl Chooser {
    /// Creates the list of agents or models.
    pub fn new(choosing: Choosing, current: Option<&str>) -> Chooser {
        Chooser {
            choosing,
            current: current.map(str::to_owned),
            only_lists: None,
            trusts_others: false,
            is_asked: false,
            offers: None,
            is_complete: true,
            trouble: None,
            query: OneLine::default(),
            choice: Choice::default(),
            size: Size::new(80, 24),
        }
    }

    /// Makes the list one to read only, and says why.
    #[must_use]
    pub fn listing(mut self, why: &str) -> Chooser {
        self.only_lists = Some(why.to_owned());
        self
    }

    /// Lets agents be chosen that seem not to be ready.
    #[must_use]
    pub fn trusting(mut self) -> Chooser {
        self.trusts_others = true;
        self
    }

    fn put_agents(&mut self, mut rows: Vec<AgentRow>) {
        // Ready ones first, in the order of the list otherwise; the demo only stands in for them.
        rows.sort_by_key(|row| (!row.is_ready, row.kind == DEMO));
        let current = self.current.clone();
        let offer = |row: AgentRow| Offer {
            is_current: current.as_deref() == Some(row.name.as_str()),
            detail: match row.model {
                Some(model) if row.kind == row.name => model,
                Some(model) => format!("{}, {model}", row.kind),
                None if row.kind == row.name => String::new(),
                None => row.kind,
            },
            name: row.name,
            remark: row.remark,
            is_ready: row.is_ready,
        };
        self.put(rows.into_iter().map(offer).collect());
    }

    fn put_models(&mut self, models: Models) {
        let mut names = models.names;
        let current = self.current.clone();
        if let Some(current) = current.clone().filter(|current| !names.contains(current)) {
            names.insert(0, current);
        }
        self.is_complete = models.complete && !names.is_empty();
        let offer = |name: String| Offer {
            is_current: current.as_ref() == Some(&name),
            name,
            detail: String::new(),
            remark: String::new(),
            is_ready: true,
        };
        self.put(names.into_iter().map(offer).collect());
    }

    fn put(&mut self, offers: Vec<Offer>) {
        let current = offers.iter().position(|offer| offer.is_current);
        self.offers = Some(offers);
        if self.query.is_empty() {
            self.choose(current.unwrap_or_default());
        }
    }

    fn refused(&mut self, why: String) {
        self.is_complete = false;
        self.offers.get_or_insert_default();
        self.trouble = Some(why);
    }

    fn typed(&mut self, type_in: impl FnOnce(&mut OneLine) -> Typed) -> Reaction {
        match type_in(&mut self.query) {
            Typed::Nothing => Reaction::Nothing,
            Typed::Moved => Reaction::Changed,
            Typed::Changed => {
                self.trouble = None;
                self.choose(0);
                Reaction::Changed
            }
        }
    }

    /// Returns what Enter does.
    fn taken(&mut self) -> Reaction {
        if let Some(why) = &self.only_lists {
            self.trouble = Some(why.clone());
            return Reaction::Changed;
        }
        let Some(offer) = self.chosen().cloned() else {
            return self.written();
        };
        match &self.choosing {
            _ if offer.is_current => Reaction::Close,
            Choosing::Agent if !offer.is_ready && !self.trusts_others => {
                self.trouble = Some(format!("{} is not ready: {}", offer.name, offer.remark));
                Reaction::Changed
            }
            Choosing::Agent => Reaction::UseAgent(offer.name),
            Choosing::Model(_) => Reaction::UseModel(offer.name),
        }
    }

    /// Returns what Enter does with a name that is not in the list.
    fn written(&mut self) -> Reaction {
        let name = self.query.text().trim().to_owned();
        if name.is_empty() || self.offers.is_none() {
            return Reaction::Nothing;
        }
        match &self.choosing {
            Choosing::Model(_) if name.contains(char::is_whitespace) => {
                self.trouble = Some("a model's name is one word".to_owned());
                Reaction::Changed
            }
            Choosing::Model(_) if self.is_complete => Reaction::AskModel(name),
            Choosing::Model(_) => Reaction::UseModel(name),
            Choosing::Agent => {
                self.trouble = Some(format!("there is no agent '{name}'"));
                Reaction::Changed
            }
        }
    }

    fn choose(&mut self, row: usize) {
        let (count, seen) = (self.fitting().len(), self.seen_rows());
        self.choice.choose(row, count, seen);
    }

    fn seen_rows(&self) -> usize {
        usize::from(chooser_areas(whole(self.size)).list.height)
    }

    /// What is chosen.
    pub fn choosing(&self) -> &Choosing {
        &self.choosing
    }

    /// Offers that the query fits, in order.
    pub fn fitting(&self) -> Vec<&Offer> {
        let query = self.query.text().to_lowercase();
        let fits = |offer: &&Offer| {
            let text = format!("{} {}", offer.name, offer.detail).to_lowercase();
            query.split_whitespace().all(|word| text.contains(word))
        };
        self.offers.iter().flatten().filter(fits).collect()
    }

    /// The chosen offer.
    pub fn chosen(&self) -> Option<&Offer> {
        self.fitting().get(self.choice.chosen()).copied()
    }

    /// Indices of the chosen offer and of the first visible one, given the viewport height.
    pub fn places(&self, seen: usize) -> (usize, usize) {
        let count = self.fitting().len();
        (self.choice.chosen(), self.choice.top(count, seen))
    }

    /// The typed filter.
    pub fn query(&self) -> &OneLine {
        &self.query
    }

    /// Returns true until the list is there.
    pub fn is_loading(&self) -> bool {
        self.offers.is_none()
    }

    /// Returns true if the list has everything there is.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Why something could not be done.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Why nothing can be chosen, if so.
    pub fn only_lists(&self) -> Option<&str> {
        self.only_lists.as_deref()
    }
}
