//! The status line: who is there and what they do, which talk it is, what it costs, and whether it is saved.
//!
//! A line that is too long loses its parts in a fixed order, so that what is left stands where people are used
//! to find it. What the agent does and whether the talk is saved are never lost.

use jiff::SignedDuration;
use tertulia_core::entry::Usage;

use super::columns::{cut, width};
use super::view::brush::counted;
use crate::moment::lasting;

/// What stands between two parts of a group.
pub const DOT: &str = " · ";
/// What stands at least between two groups.
pub const GAP: usize = 2;
/// Names are no longer than this, however much room there is.
const NAME_COLUMNS: usize = 24;
/// A title that is shorter than this says nothing.
const LEAST_TITLE: usize = 12;
/// A name that is shorter than this is nobody's.
const LEAST_NAME: usize = 8;

/// What the status line tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// What the agent does.
    pub agent: AgentState,
    /// Who that is.
    pub who: String,
    /// The model that answers.
    pub model: Option<String>,
    /// What the talk is called.
    pub title: Option<String>,
    /// Its short id.
    pub short: String,
    /// How many messages were restored, if it was resumed.
    pub restored: Option<u64>,
    /// How many messages there are.
    pub messages: u64,
    /// What it has cost so far.
    pub tokens: Usage,
    /// The same in dollars, where that is known.
    pub cost: Option<f64>,
    /// Whether it is saved.
    pub saving: Saving,
    /// The team that talks.
    pub team: Option<TeamStatus>,
    /// How far an instructor and a worker are.
    pub pair: Option<PairStatus>,
    /// Which tools run unasked beyond the default policy, in words.
    pub permissions: Option<String>,
    /// Whether the full transcript is being read.
    pub reading: bool,
    /// How many things came while the end was out of sight.
    pub unseen: usize,
}

/// What an agent does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It can be asked.
    Ready,
    /// It was asked, and nothing came yet.
    Thinking,
    /// It answers.
    Speaking,
    /// It uses this tool.
    UsingTool(String),
    /// It waits for leave to use this tool.
    Waiting(String),
    /// It is asked again.
    Retrying {
        /// Which attempt, from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
    },
    /// It could not answer.
    Failed,
    /// The talk is being opened.
    Opening,
    /// The talk is being left.
    Leaving,
}

/// Whether a talk is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::enum_variant_names,
    reason = "it is what the line says while it lasts"
)]
pub enum Saving {
    /// All of it is.
    Saved,
    /// It is being saved.
    Saving,
    /// Some of it could not be.
    Unsaved,
    /// Nothing of it is kept.
    Nothing,
}

/// The team that talks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamStatus {
    /// What it is called.
    pub name: String,
    /// How many take part.
    pub members: usize,
}

/// How far an instructor and a worker are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairStatus {
    /// How often the instructor has replied.
    pub round: u64,
    /// How often the worker may still be called, in words.
    pub remaining: String,
    /// Since the run began.
    pub elapsed: SignedDuration,
}

/// A part of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it tells.
    pub kind: Kind,
    /// In words.
    pub text: String,
}

/// What a part tells, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What the agent does.
    State,
    /// Who that is.
    Who,
    /// The team.
    Team,
    /// The model.
    Model,
    /// The title.
    Title,
    /// The short id.
    Short,
    /// How many messages were restored.
    Restored,
    /// How many there are.
    Messages,
    /// Which tools run unasked.
    Permissions,
    /// How much is new out of sight.
    Unseen,
    /// That the full transcript is being read.
    Reading,
    /// The round and the budget of a pair.
    Pair,
    /// How long the pair has been at it.
    Elapsed,
    /// The tokens.
    Tokens,
    /// The dollars.
    Cost,
    /// Whether it is saved.
    Saving,
}

/// A side of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Who is there.
    Left,
    /// Which talk it is.
    Middle,
    /// What it costs, and whether it is saved.
    Right,
}

impl Kind {
    /// On which side it stands.
    pub fn group(self) -> Group {
        match self {
            Kind::State | Kind::Who | Kind::Team | Kind::Model => Group::Left,
            Kind::Title | Kind::Short | Kind::Restored | Kind::Messages => Group::Middle,
            _ => Group::Right,
        }
    }
}

/// How a line that is too long gets shorter.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// By as much of the part as has to go, but so many columns stay.
    Cut(Kind, usize),
    /// By the whole part.
    Drop(Kind),
    /// By the name of the tool.
    Plain,
    /// By the word of what is less urgent, the agent's state or the saving.
    Terse,
    /// By both words.
    Terser,
}

/// In this order, until the rest fits.
const STEPS: &[Step] = &[
    Step::Cut(Kind::Title, LEAST_TITLE),
    Step::Drop(Kind::Messages),
    Step::Drop(Kind::Cost),
    Step::Drop(Kind::Tokens),
    Step::Drop(Kind::Model),
    Step::Drop(Kind::Elapsed),
    Step::Drop(Kind::Title),
    Step::Plain,
    Step::Drop(Kind::Team),
    Step::Cut(Kind::Who, LEAST_NAME),
    Step::Drop(Kind::Restored),
    Step::Drop(Kind::Short),
    Step::Drop(Kind::Unseen),
    Step::Drop(Kind::Reading),
    Step::Drop(Kind::Pair),
    Step::Drop(Kind::Who),
    Step::Drop(Kind::Permissions),
    Step::Terse,
    Step::Terser,
];

impl Status {
    /// The parts that fit into so many columns.
    pub fn parts(&self, columns: usize) -> Vec<Part> {
        let mut parts = self.all(columns);
        for step in STEPS {
            let over = taken(&parts).saturating_sub(columns);
            if over == 0 {
                break;
            }
            self.shorten(&mut parts, *step, over);
        }
        self.regrow_title(&mut parts, columns);
        parts
    }

    /// Gives the title the room that the parts which had to go did not need.
    fn regrow_title(&self, parts: &mut [Part], columns: usize) {
        let spare = columns.saturating_sub(taken(parts));
        let title = parts.iter_mut().find(|part| part.kind == Kind::Title);
        if let (Some(part), Some(title)) = (title, &self.title) {
            part.text = quoted(title, width(&part.text) + spare);
        }
    }

    fn all(&self, columns: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut add = |kind, text: Option<String>| {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                parts.push(Part { kind, text });
            }
        };
        let name = |name: &str| cut(name, NAME_COLUMNS);
        add(Kind::State, Some(self.agent.words()));
        add(Kind::Who, Some(name(&self.who)));
        let team = |team: &TeamStatus| format!("team {} ({})", name(&team.name), team.members);
        add(Kind::Team, self.team.as_ref().map(team));
        add(Kind::Model, self.model.as_deref().map(name));
        let title = self.title.as_deref().filter(|title| !title.is_empty());
        add(Kind::Title, title.map(|title| quoted(title, columns)));
        add(Kind::Short, Some(name(&self.short)));
        let restored = |count: u64| format!("restored {count}");
        add(Kind::Restored, self.restored.map(restored));
        let are_more = self.restored != Some(self.messages) && self.messages > 0;
        let messages = counted(self.messages, "message");
        add(Kind::Messages, are_more.then_some(messages));
        add(Kind::Permissions, self.permissions.clone());
        let unseen = format!("↓ {} new", self.unseen);
        add(Kind::Unseen, (self.unseen > 0).then_some(unseen));
        let reading = self.reading.then(|| "full transcript".to_owned());
        add(Kind::Reading, reading);
        let pair =
            |pair: &PairStatus| format!("round {}, {}", pair.round, cut(&pair.remaining, 40));
        add(Kind::Pair, self.pair.as_ref().map(pair));
        let elapsed = self.pair.as_ref().map(|pair| lasting(pair.elapsed));
        add(Kind::Elapsed, elapsed);
        add(Kind::Tokens, tokens(self.tokens));
        add(Kind::Cost, self.cost.and_then(dollars));
        add(Kind::Saving, Some(self.saving.word().to_owned()));
        parts
    }

    fn shorten(&self, parts: &mut Vec<Part>, step: Step, over: usize) {
        let mut reword = |kind, text: &str| {
            if let Some(part) = parts.iter_mut().find(|part| part.kind == kind) {
                part.text = text.to_owned();
            }
        };
        let state_first = self.agent == AgentState::Failed && self.saving != Saving::Unsaved;
        match step {
            Step::Cut(kind, least) => {
                if let Some(part) = parts.iter_mut().find(|part| part.kind == kind) {
                    let room = width(&part.text).saturating_sub(over).max(least);
                    part.text = match kind {
                        Kind::Title => quoted(self.title.as_deref().unwrap_or_default(), room),
                        _ => cut(&part.text, room),
                    };
                }
            }
            Step::Drop(kind) => parts.retain(|part| part.kind != kind),
            Step::Plain => reword(Kind::State, &format!("● {}", self.agent.word())),
            Step::Terse if state_first => reword(Kind::Saving, self.saving.mark()),
            Step::Terse => reword(Kind::State, "●"),
            Step::Terser if state_first => reword(Kind::State, "●"),
            Step::Terser => reword(Kind::Saving, self.saving.mark()),
        }
    }
}

impl AgentState {
    /// In one or two words.
    pub fn word(&self) -> &'static str {
        match self {
            AgentState::Ready => "ready",
            AgentState::Thinking => "thinking",
            AgentState::Speaking => "speaking",
            AgentState::UsingTool(_) => "at work",
            AgentState::Waiting(_) => "asks you",
            AgentState::Retrying { .. } => "trying again",
            AgentState::Failed => "FAILED",
            AgentState::Opening => "opening",
            AgentState::Leaving => "leaving",
        }
    }

    /// With all there is to say, and the dot before it.
    fn words(&self) -> String {
        match self {
            AgentState::UsingTool(tool) => format!("● uses {}", cut(tool, NAME_COLUMNS)),
            AgentState::Waiting(tool) => format!("● asks you about {}", cut(tool, NAME_COLUMNS)),
            AgentState::Retrying { attempt, of } => format!("● trying again, {attempt} of {of}"),
            state => format!("● {}", state.word()),
        }
    }
}

impl Saving {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Saving::Saved => "saved",
            Saving::Saving => "saving…",
            Saving::Unsaved => "UNSAVED",
            Saving::Nothing => "not kept",
        }
    }

    /// In a letter or two, where there is no room for a word.
    fn mark(self) -> &'static str {
        match self {
            Saving::Saved => "✓",
            Saving::Saving => "…",
            Saving::Unsaved => "!!",
            Saving::Nothing => "∅",
        }
    }
}

/// The columns of a group.
pub fn group_columns(parts: &[Part], group: Group) -> usize {
    let texts = parts.iter().filter(|part| part.kind.group() == group);
    let columns = |part: &Part| width(&part.text) + width(DOT);
    texts.map(columns).sum::<usize>().saturating_sub(width(DOT))
}

/// The columns of a whole line.
fn taken(parts: &[Part]) -> usize {
    let groups = [Group::Left, Group::Middle, Group::Right];
    let columns = groups.map(|group| group_columns(parts, group));
    let gaps = columns.iter().filter(|columns| **columns > 0).count();
    columns.iter().sum::<usize>() + gaps.saturating_sub(1) * GAP
}

/// A title in quotes, in so many columns.
fn quoted(title: &str, columns: usize) -> String {
    format!("\"{}\"", cut(title, columns.saturating_sub(2)))
}

/// Tokens sent and received: `↑1.2k ↓340 tokens`.
fn tokens(usage: Usage) -> Option<String> {
    if usage.input == 0 && usage.output == 0 {
        return None;
    }
    let about = if usage.estimated { "~" } else { "" };
    Some(format!(
        "{about}↑{} ↓{} tokens",
        rounded(usage.input),
        rounded(usage.output)
    ))
}

/// A number in at most five columns or so: `340`, `1.2k`, `45k`, `1.2M`.
fn rounded(number: u64) -> String {
    const UNITS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    if number < 1000 {
        return number.to_string();
    }
    let mut size = 1000;
    let mut unit = 0;
    while number / size >= 1000 && unit + 1 < UNITS.len() {
        size *= 1000;
        unit += 1;
    }
    // Never more than there were: what is cut off is not rounded up.
    match number / (size / 10) {
        tenths @ 0..100 => format!("{}.{}{}", tenths / 10, tenths % 10, UNITS[unit]),
        tenths => format!("{}{}", tenths / 10, UNITS[unit]),
    }
}

fn dollars(cost: f64) -> Option<String> {
    if !cost.is_finite() || cost <= 0.0 {
        return None;
    }
    if cost < 0.01 {
        return Some("<$0.01".to_owned());
    }
    Some(cut(&format!("${cost:.2}"), NAME_COLUMNS))
}

#[cfg(test)]
mod tests;
