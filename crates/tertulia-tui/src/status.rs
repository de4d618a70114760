//! Status line: agent and its state, session, cost, and whether it is saved.
//!
//! A line that is too long loses its parts in a fixed order, so that the rest stays in its usual
//! place. The state of the agent and whether the session is saved are never lost.

use jiff::SignedDuration;
use tertulia_agents::approval::Approval;
use tertulia_core::entry::Usage;
use tertulia_engine::pair::text::lasting;

use super::view::brush::counted;
use crate::text::{cut, width};

/// Names a folder by its last part. Permission requests have the whole path.
fn folder_name(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next();
    format!(
        "in {}",
        cut(
            name.filter(|name| !name.is_empty()).unwrap_or("/"),
            FOLDER_COLUMNS
        )
    )
}

/// Separator between parts of a group.
pub const DOT: &str = " · ";
/// Minimum gap between groups.
pub const GAP: usize = 2;
/// Maximum width of a name.
const NAME_COLUMNS: usize = 24;
/// Maximum width of what an agent asks permission for.
const WISH_COLUMNS: usize = 40;
/// Maximum width of the name of a folder.
const FOLDER_COLUMNS: usize = 20;
/// Minimum legible width of a title.
const LEAST_TITLE: usize = 16;
/// Minimum legible width of a name.
const LEAST_NAME: usize = 8;

/// Content of the status line.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// State of the agent.
    pub agent: AgentState,
    /// Name of the agent.
    pub who: String,
    /// Model.
    pub model: Option<String>,
    /// Title of the session.
    pub title: Option<String>,
    /// Short id of the session.
    pub short: String,
    /// Folder that the session works in.
    pub folder: Option<String>,
    /// Whether it is another folder than that of the program.
    pub is_elsewhere: bool,
    /// Number of restored messages, if it was resumed.
    pub restored: Option<u64>,
    /// Number of messages.
    pub messages: u64,
    /// Tokens used.
    pub tokens: Usage,
    /// Used part of the agent's context in percent, if known.
    pub context: Option<u64>,
    /// Cost in dollars, if known.
    pub cost: Option<f64>,
    /// Whether the session is saved.
    pub saving: Saving,
    /// Team.
    pub team: Option<TeamStatus>,
    /// Progress of a pair.
    pub pair: Option<PairStatus>,
    /// The tool policy, if it is the default one.
    pub policy: Option<String>,
    /// Description of the permissions beyond the default policy.
    pub permissions: Option<String>,
    /// Whether the transcript is in reading mode.
    pub reading: bool,
    /// Number of rows added out of sight.
    pub unseen: usize,
}

/// State of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// It can be prompted.
    Ready,
    /// It was prompted, and no text came yet.
    Thinking,
    /// It answers.
    Speaking,
    /// It uses this tool.
    UsingTool(String),
    /// This shell command of the user runs.
    Running(String),
    /// It waits for permission to use this tool.
    Waiting(String),
    /// The request is retried.
    Retrying {
        /// Number of the attempt, from 1.
        attempt: u32,
        /// Maximum number of attempts.
        of: u32,
    },
    /// The last turn failed.
    Failed,
    /// It cannot be prompted.
    Unavailable,
    /// The session is being opened.
    Opening,
    /// The session is being left.
    Leaving,
}

/// Whether a session is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    clippy::enum_variant_names,
    reason = "it is what the line says while it lasts"
)]
pub enum Saving {
    /// Everything is saved.
    Saved,
    /// Saving is in progress.
    Saving,
    /// Some messages could not be saved.
    Unsaved,
    /// The session is ephemeral.
    Nothing,
    /// The session is only read.
    ReadOnly,
    /// Everything is saved, encrypted.
    Sealed,
    /// Nothing was said yet.
    Blank,
}

/// Team in the status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamStatus {
    /// Name.
    pub name: String,
    /// Number of members.
    pub members: usize,
}

/// Progress of a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairStatus {
    /// Number of instructor replies.
    pub round: u64,
    /// Description of the remaining worker calls.
    pub remaining: String,
    /// Time since the run started.
    pub elapsed: SignedDuration,
}

/// A part of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Kind.
    pub kind: Kind,
    /// Text.
    pub text: String,
}

/// Kinds of parts, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// State of the agent.
    State,
    /// Name of the agent.
    Who,
    /// Team.
    Team,
    /// Model.
    Model,
    /// Title.
    Title,
    /// Short id.
    Short,
    /// Folder that the session works in, if it is that of the program.
    Folder,
    /// Folder that the session works in, if it is another one.
    Elsewhere,
    /// Number of restored messages.
    Restored,
    /// Number of messages.
    Messages,
    /// The default tool policy.
    Policy,
    /// Permissions.
    Permissions,
    /// Number of rows added out of sight.
    Unseen,
    /// Reading mode.
    Reading,
    /// Round and budget of a pair.
    Pair,
    /// Elapsed time of a pair.
    Elapsed,
    /// Used part of the context.
    Context,
    /// Cost.
    Cost,
    /// Tokens.
    Tokens,
    /// Whether the session is saved.
    Saving,
}

/// A group of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Agent.
    Left,
    /// Session.
    Middle,
    /// Cost, and whether it is saved.
    Right,
}

impl Kind {
    /// Group of the part.
    pub fn group(self) -> Group {
        match self {
            Kind::State | Kind::Who | Kind::Team | Kind::Model => Group::Left,
            Kind::Title
            | Kind::Short
            | Kind::Folder
            | Kind::Elsewhere
            | Kind::Restored
            | Kind::Messages => Group::Middle,
            _ => Group::Right,
        }
    }
}

/// A way to shorten the line.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Cut the part as far as necessary, but keep this many columns.
    Cut(Kind, usize),
    /// Drop the part.
    Drop(Kind),
    /// Name the default tool policy in one word.
    Brief,
    /// Drop the details of the agent's state, such as the tool name.
    Plain,
    /// Abbreviate the less urgent of the agent's state and the saving state.
    Terse,
    /// Abbreviate both.
    Terser,
}

/// Steps in order of application, until the rest fits.
const STEPS: &[Step] = &[
    Step::Cut(Kind::Title, LEAST_TITLE),
    Step::Drop(Kind::Folder),
    Step::Drop(Kind::Messages),
    Step::Brief,
    Step::Drop(Kind::Tokens),
    Step::Drop(Kind::Cost),
    Step::Drop(Kind::Model),
    Step::Drop(Kind::Elapsed),
    Step::Drop(Kind::Context),
    Step::Drop(Kind::Title),
    Step::Cut(Kind::Elsewhere, LEAST_NAME),
    Step::Drop(Kind::Policy),
    Step::Plain,
    Step::Drop(Kind::Team),
    Step::Cut(Kind::Who, LEAST_NAME),
    Step::Drop(Kind::Restored),
    Step::Drop(Kind::Elsewhere),
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
    /// Parts that fit into a width.
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

    /// Gives the title the space left over after other parts were dropped.
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
        let team = |team: &TeamStatus| format!("{}, {}", name(&team.name), team.members);
        add(Kind::Team, self.team.as_ref().map(team));
        add(Kind::Model, self.model.as_deref().map(name));
        let title = self.title.as_deref().filter(|title| !title.is_empty());
        add(Kind::Title, title.map(|title| quoted(title, columns)));
        add(Kind::Short, Some(name(&self.short)));
        let folder = match self.is_elsewhere {
            true => Kind::Elsewhere,
            false => Kind::Folder,
        };
        add(folder, self.folder.as_deref().map(folder_name));
        let restored = |count: u64| format!("restored {count}");
        add(Kind::Restored, self.restored.map(restored));
        let are_more = self.restored != Some(self.messages) && self.messages > 0;
        let messages = counted(self.messages, "message");
        add(Kind::Messages, are_more.then_some(messages));
        add(Kind::Policy, self.policy.clone());
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
        let context = self.context.map(|percent| match percent {
            0 => "ctx <1 %".to_owned(),
            percent => format!("ctx {percent} %"),
        });
        add(Kind::Context, context);
        add(Kind::Cost, self.cost.and_then(dollars));
        add(Kind::Tokens, tokens(self.tokens));
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
            Step::Brief => reword(Kind::Policy, Approval::Ask.name()),
            Step::Plain => reword(Kind::State, &format!("● {}", self.agent.word())),
            Step::Terse if state_first => reword(Kind::Saving, self.saving.mark()),
            Step::Terse => reword(Kind::State, "●"),
            Step::Terser if state_first => reword(Kind::State, "●"),
            Step::Terser => reword(Kind::Saving, self.saving.mark()),
        }
    }
}

impl AgentState {
    /// State in one or two words.
    pub fn word(&self) -> &'static str {
        match self {
            AgentState::Ready => "ready",
            AgentState::Thinking => "thinking",
            AgentState::Speaking => "speaking",
            AgentState::UsingTool(_) => "at work",
            AgentState::Running(_) => "running",
            AgentState::Waiting(_) => "needs you",
            AgentState::Retrying { .. } => "retrying",
            AgentState::Failed => "FAILED",
            AgentState::Unavailable => "not available",
            AgentState::Opening => "opening",
            AgentState::Leaving => "leaving",
        }
    }

    /// State in full, with a leading dot.
    fn words(&self) -> String {
        match self {
            AgentState::UsingTool(tool) => format!("● {}…", cut(tool, NAME_COLUMNS)),
            AgentState::Running(command) => format!("● running: {}", cut(command, NAME_COLUMNS)),
            AgentState::Waiting(wish) => format!("● needs you: {}", cut(wish, WISH_COLUMNS)),
            AgentState::Retrying { attempt, of } => format!("● retrying, {attempt} of {of}"),
            state => format!("● {}", state.word()),
        }
    }
}

impl Saving {
    /// State in one or two words.
    pub fn word(self) -> &'static str {
        match self {
            Saving::Saved => "saved",
            Saving::Saving => "saving…",
            Saving::Unsaved => "UNSAVED",
            Saving::Nothing => "not kept",
            Saving::ReadOnly => "read only",
            Saving::Sealed => "sealed",
            Saving::Blank => "",
        }
    }

    /// State in one or two characters, where there is no room for a word.
    fn mark(self) -> &'static str {
        match self {
            Saving::Saved => "✓",
            Saving::Saving => "…",
            Saving::Unsaved => "!!",
            Saving::Nothing => "∅",
            Saving::ReadOnly => "ro",
            Saving::Sealed => "✓",
            Saving::Blank => "",
        }
    }
}

/// Width of a group.
pub fn group_columns(parts: &[Part], group: Group) -> usize {
    let texts = parts.iter().filter(|part| part.kind.group() == group);
    let columns = |part: &Part| width(&part.text) + width(DOT);
    texts.map(columns).sum::<usize>().saturating_sub(width(DOT))
}

/// Width of the whole line.
fn taken(parts: &[Part]) -> usize {
    let groups = [Group::Left, Group::Middle, Group::Right];
    let columns = groups.map(|group| group_columns(parts, group));
    let gaps = columns.iter().filter(|columns| **columns > 0).count();
    columns.iter().sum::<usize>() + gaps.saturating_sub(1) * GAP
}

/// Quotes a title and cuts it to a width.
fn quoted(title: &str, columns: usize) -> String {
    format!("\"{}\"", cut(title, columns.saturating_sub(2)))
}

/// Formats tokens sent and received: `↑1.2k ↓340`.
fn tokens(usage: Usage) -> Option<String> {
    if usage.input == 0 && usage.output == 0 {
        return None;
    }
    let about = if usage.estimated { "~" } else { "" };
    Some(format!(
        "{about}↑{} ↓{}",
        rounded(usage.input),
        rounded(usage.output)
    ))
}

/// Formats a number in about five columns: `340`, `1.2k`, `45k`, `1.2M`.
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
    // Rounds down, so that the number is never overstated.
    match number / (size / 10) {
        tenths @ 0..100 => format!("{}.{}{}", tenths / 10, tenths % 10, UNITS[unit]),
        tenths => format!("{}{}", tenths / 10, UNITS[unit]),
    }
}

/// Formats a cost; `None` if nothing is known to have been spent.
pub fn dollars(cost: f64) -> Option<String> {
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
