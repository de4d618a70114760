//! Grouping of cells.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use jiff::civil::Date;

use super::{Amount, Figures, PricedCell};
use crate::id::SessionId;

/// What figures are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Local day.
    Day,
    /// Week, from Monday.
    Week,
    /// Month.
    Month,
    /// Hour of the day.
    Hour,
    /// Model.
    Model,
    /// Agent.
    Agent,
    /// Project.
    Project,
    /// Team.
    Team,
    /// Session.
    Session,
    /// Tool.
    Tool,
    /// File that tools read or changed.
    File,
}

impl By {
    /// Returns the name, as in the command line.
    pub const fn name(self) -> &'static str {
        match self {
            By::Day => "day",
            By::Week => "week",
            By::Month => "month",
            By::Hour => "hour",
            By::Model => "model",
            By::Agent => "agent",
            By::Project => "project",
            By::Team => "team",
            By::Session => "session",
            By::Tool => "tool",
            By::File => "file",
        }
    }

    /// Returns true if the groups are in order of time.
    pub const fn is_time(self) -> bool {
        matches!(self, By::Day | By::Week | By::Month | By::Hour)
    }
}

/// A group and its sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Key; `None` for what has none, such as sessions without a team.
    pub key: Option<String>,
    /// Title, if the group is a session. Empty until the caller adds it.
    pub title: Option<String>,
    /// The sum.
    pub amount: Amount,
}

impl Figures {
    /// Groups the figures. Groups of time are in order, others have the most tokens first. Tools and
    /// files have no cells, hence no groups here.
    pub fn by(&self, by: By) -> Vec<Group> {
        let named = |name: Option<&str>| Some(name.map(str::to_owned));
        let groups = match by {
            By::Day => self.group(|priced| Some(Some(priced.at.date().to_string()))),
            By::Week => self.group(|priced| Some(Some(week_of(priced.at.date())))),
            By::Month => self.group(|priced| {
                let date = priced.at.date();
                Some(Some(format!("{:04}-{:02}", date.year(), date.month())))
            }),
            By::Hour => self.group(|priced| Some(Some(format!("{:02}", priced.at.hour())))),
            // Words of people and of tools belong to no model and no agent.
            By::Model => self.group(|priced| {
                let cell = &priced.cell;
                let is_answer = cell.agent.is_some() || cell.model.is_some();
                named(cell.model.as_deref()).filter(|_| is_answer)
            }),
            By::Agent => self.group(|priced| {
                let agent = priced.cell.agent.as_deref()?;
                named(Some(agent))
            }),
            By::Project => self.by_project(),
            By::Team => self.group(|priced| {
                let facts = self.facts(priced.cell.session);
                named(facts.and_then(|facts| facts.team.as_deref()))
            }),
            By::Session => self.group(|priced| Some(Some(priced.cell.session.to_string()))),
            By::Tool | By::File => BTreeMap::new(),
        };
        let mut groups: Vec<Group> = groups
            .into_iter()
            .map(|(key, amount)| Group {
                key,
                title: None,
                amount,
            })
            .collect();
        if !by.is_time() {
            let rank = |group: &Group| (group.amount.tokens(), group.amount.messages);
            groups.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.key.cmp(&b.key)));
        }
        groups
    }

    /// Groups by project. Each has a name of its own, also if their folders have the same.
    fn by_project(&self) -> BTreeMap<Option<String>, Amount> {
        let facts = |id: SessionId| self.facts(id);
        let groups = self.group(|priced| {
            let facts = facts(priced.cell.session);
            Some(facts.and_then(|facts| facts.project.as_deref()))
        });
        let names = self.project_names();
        let groups = groups.into_iter();
        groups
            .map(|(id, amount)| (id.map(|_| names.get(id).to_owned()), amount))
            .collect()
    }

    /// Returns the sessions with the most messages, at most `count`.
    pub fn longest(&self, count: usize) -> Vec<Group> {
        let mut sessions = self.by(By::Session);
        sessions.retain(|group| group.amount.messages > 0);
        sessions.sort_by(|a, b| {
            let messages = b.amount.messages.cmp(&a.amount.messages);
            messages.then_with(|| a.key.cmp(&b.key))
        });
        sessions.truncate(count);
        sessions
    }

    /// Sums the cells by key; cells without one are left out.
    pub(super) fn group<K: Ord + Hash>(
        &self,
        key: impl Fn(&PricedCell) -> Option<K>,
    ) -> BTreeMap<K, Amount> {
        let mut groups: BTreeMap<K, (Amount, HashSet<SessionId>)> = BTreeMap::new();
        for priced in &self.cells {
            if let Some(key) = key(priced) {
                let (amount, sessions) = groups.entry(key).or_default();
                amount.add(&priced.cell, priced.cost);
                sessions.insert(priced.cell.session);
            }
        }
        let counted = groups.into_iter().map(|(key, (amount, sessions))| {
            let sessions = sessions.len() as u64;
            (key, Amount { sessions, ..amount })
        });
        counted.collect()
    }
}

/// Most days that are filled in: a date that is far off would make too many.
const MOST_DAYS: usize = 3660;

/// Returns groups by day with an empty group for each day between them, at most ten years back.
pub fn with_empty_days(days: &[Group]) -> Vec<Group> {
    let date_of = |group: &Group| {
        group
            .key
            .as_deref()
            .and_then(|key| key.parse::<Date>().ok())
    };
    let mut filled: Vec<Group> = Vec::new();
    let mut expected: Option<Date> = None;
    for group in days.iter().rev() {
        let date = date_of(group);
        while let (Some(next), Some(date)) = (expected, date)
            && next > date
            && filled.len() < MOST_DAYS
        {
            filled.push(Group {
                key: Some(next.to_string()),
                title: None,
                amount: Amount::default(),
            });
            expected = next.yesterday().ok();
        }
        if filled.len() >= MOST_DAYS {
            break;
        }
        filled.push(group.clone());
        expected = date.and_then(|date| date.yesterday().ok());
    }
    filled.reverse();
    filled
}

/// Returns the ISO week of a day, such as `2026-W47`.
fn week_of(date: Date) -> String {
    let week = date.iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}
