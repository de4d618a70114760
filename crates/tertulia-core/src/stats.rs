//! Usage statistics: sums of messages, tokens and cost over time, models, agents and projects.
//!
//! A store's ledger yields [`Cell`]s, in which every message and every usage event counts once. This
//! module prices and groups them. Times are local: an event belongs to the day of the user's zone.

mod groups;
mod report;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::entry::{Kind, Usage};
use crate::id::SessionId;
use crate::price::{Cost, PriceTable, Schedule, base_model};
use crate::project;
pub use groups::{By, Group, with_empty_days};
pub use report::{LongSession, Report, ReportScope};
pub use topics::{TopicUse, topics};

/// Seconds in the time slot of a cell. Zones differ by multiples of it, so that a slot lies in one
/// hour of any zone.
pub const SLOT: i64 = 15 * 60;

/// Messages and usage of one session, agent and model within one time slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The session.
    pub session: SessionId,
    /// Time slot: seconds since 1970 divided by [`SLOT`].
    pub slot: i64,
    /// Agent, unless a person or a tool spoke.
    pub agent: Option<Arc<str>>,
    /// Model, if recorded.
    pub model: Option<Arc<str>>,
    /// Number of messages.
    pub messages: u64,
    /// Total usage.
    pub usage: Usage,
}

/// What is known of a session besides its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// The session.
    pub id: SessionId,
    /// Kind of conversation.
    pub kind: Kind,
    /// Name of the team.
    pub team: Option<String>,
    /// Project.
    pub project: Option<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// Number of messages in its own part of the log, whenever they were written.
    pub messages: u64,
    /// Time of the first message that belongs to this session alone.
    pub first: Option<Timestamp>,
    /// Time of its last message.
    pub last: Option<Timestamp>,
    /// True if the session is in the trash.
    pub trashed: bool,
}

/// Calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// Name of the tool.
    pub name: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of calls.
    pub calls: u64,
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that the user or the policy denied.
    pub denied: u64,
    /// Calls that were cut off, or whose result was never recorded.
    pub unfinished: u64,
}

/// Reads and changes of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Path of the file.
    pub path: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of changes.
    pub writes: u64,
    /// Time of the last one.
    pub last: Timestamp,
}

/// A sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of messages.
    pub messages: u64,
    /// Total usage.
    pub usage: Usage,
    /// Cost of the usage that has a price.
    pub cost: Cost,
    /// Usage without a price.
    pub unpriced: Usage,
}

impl Amount {
    /// Returns all input and output tokens.
    pub fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }

    /// Returns the cost in dollars; `None` if there is usage, but no price for any of it.
    pub fn dollars(&self) -> Option<f64> {
        let known = !self.cost.is_zero() || self.unpriced.is_empty();
        known.then(|| self.cost.dollars())
    }

    fn add(&mut self, cell: &Cell, cost: Option<Cost>) {
        self.messages += cell.messages;
        self.usage = self.usage.plus(cell.usage);
        match cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced = self.unpriced.plus(cell.usage),
        }
    }
}

/// Usage of a model without a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpriced {
    /// The model, if recorded.
    pub model: Option<Arc<str>>,
    /// Agent that used an unrecorded model.
    pub agent: Option<Arc<str>>,
    /// Its usage.
    pub usage: Usage,
}

impl Unpriced {
    /// Returns the model, or the agent that did not report one.
    pub fn name(&self) -> String {
        match (&self.model, &self.agent) {
            (Some(model), _) => model.to_string(),
            (None, Some(agent)) => format!("{agent}, model not recorded"),
            (None, None) => "model not recorded".to_owned(),
        }
    }
}

/// Cells with their prices and local times, ready to be grouped.
#[derive(Clone, Debug)]
pub struct Figures {
    cells: Vec<PricedCell>,
    sessions: HashMap<SessionId, SessionFacts>,
}

#[derive(Clone, Debug)]
struct PricedCell {
    cell: Cell,
    /// Local time of the slot.
    at: DateTime,
    /// `None` if there is usage without a price.
    cost: Option<Cost>,
}

impl Figures {
    /// Prices the cells and finds their local times.
    pub fn new(
        cells: Vec<Cell>,
        sessions: Vec<SessionFacts>,
        prices: &PriceTable,
        zone: &TimeZone,
    ) -> Figures {
        let mut schedules: HashMap<Arc<str>, Schedule> = HashMap::new();
        let mut times: HashMap<i64, DateTime> = HashMap::new();
        let cells = cells.into_iter().map(|cell| {
            let slot = cell.slot;
            let at = *times
                .entry(slot)
                .or_insert_with(|| zone.to_datetime(slot_start(slot)));
            let schedule = cell.model.as_ref().map(|model| {
                schedules
                    .entry(model.clone())
                    .or_insert_with(|| prices.schedule(model))
            });
            let cost = match cell.usage.is_empty() {
                true => Some(Cost::default()),
                false => schedule
                    .and_then(|schedule| schedule.at(slot_start(slot)))
                    .map(|price| price.cost(&cell.usage)),
            };
            // Its price may depend on the size of the context; it is one model all the same.
            let model = cell.model.map(|model| match base_model(&model) {
                base if base == &*model => model,
                base => base.into(),
            });
            let cell = Cell { model, ..cell };
            PricedCell { cell, at, cost }
        });
        Figures {
            cells: cells.collect(),
            sessions: sessions
                .into_iter()
                .map(|facts| (facts.id, facts))
                .collect(),
        }
    }

    /// Returns the sum of all cells.
    pub fn total(&self) -> Amount {
        let all = self.group(|_| Some(()));
        all.into_values().next().unwrap_or_default()
    }

    /// Returns the usage without a price, by model, most tokens first.
    pub fn unpriced(&self) -> Vec<Unpriced> {
        let without = |priced: &PricedCell| {
            let cell = &priced.cell;
            let agent = cell.agent.clone().filter(|_| cell.model.is_none());
            priced.cost.is_none().then(|| (cell.model.clone(), agent))
        };
        let mut found: Vec<Unpriced> = self
            .group(without)
            .into_iter()
            .map(|((model, agent), amount)| Unpriced {
                model,
                agent,
                usage: amount.usage,
            })
            .collect();
        let tokens =
            |unpriced: &Unpriced| unpriced.usage.input.saturating_add(unpriced.usage.output);
        found.sort_by(|a, b| tokens(b).cmp(&tokens(a)).then(a.model.cmp(&b.model)));
        found
    }

    /// Returns the number of messages in each hour of the day.
    pub fn hours(&self) -> [u64; 24] {
        let mut hours = [0; 24];
        for row in self.heat() {
            for (sum, count) in hours.iter_mut().zip(row) {
                *sum += count;
            }
        }
        hours
    }

    /// Returns the number of messages in each hour of each day of the week, Monday first.
    pub fn heat(&self) -> [[u64; 24]; 7] {
        let mut heat = [[0; 24]; 7];
        for priced in &self.cells {
            let day = usize::from(priced.at.weekday().to_monday_zero_offset().unsigned_abs());
            let hour = usize::from(priced.at.hour().unsigned_abs());
            if let Some(count) = heat.get_mut(day).and_then(|row| row.get_mut(hour)) {
                *count += priced.cell.messages;
            }
        }
        heat
    }

    /// Returns a session's facts.
    pub fn facts(&self, id: SessionId) -> Option<&SessionFacts> {
        self.sessions.get(&id)
    }

    /// Returns the number of sessions with cells that are in the trash.
    pub fn trashed(&self) -> usize {
        let sessions: std::collections::HashSet<SessionId> = self
            .cells
            .iter()
            .map(|priced| priced.cell.session)
            .collect();
        let trashed = |id: &&SessionId| self.facts(**id).is_some_and(|facts| facts.trashed);
        sessions.iter().filter(trashed).count()
    }

    /// Replaces the projects of sessions by the names that `canonical` returns.
    pub fn rename_projects(&mut self, canonical: impl Fn(&str) -> Option<String>) {
        for facts in self.sessions.values_mut() {
            let id = facts.project.as_deref();
            if let Some(other) = id.and_then(&canonical) {
                facts.project = Some(other);
            }
        }
    }

    fn project_names(&self) -> project::Names {
        let sessions = self.sessions.values();
        project::Names::of(sessions.filter_map(|facts| {
            let project = facts.project.as_deref()?;
            Some((project, facts.cwd.as_deref()))
        }))
    }
}

/// Returns the start of a time slot.
fn slot_start(slot: i64) -> Timestamp {
    Timestamp::from_second(slot.saturating_mul(SLOT)).unwrap_or(Timestamp::UNIX_EPOCH)
}
