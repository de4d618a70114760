//! Subjects of questions: everything that the screen asks the user, with its answers and their
//! effects.

use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::Line;
use tertulia_agents::approval::{ToolRequest, Verdict};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_engine::text::effects::{self, Weight};
use tertulia_engine::text::permissions::covers;
use tertulia_engine::text::{ago, tools};

use crate::diff;
use crate::effect::IfOpen;
use crate::live::Ticket;
use crate::overlay::Reaction;
use crate::text::fold;
use crate::text::wrap::{Margin, Row};
use crate::theme::Theme;
use crate::view::brush::counted;

/// What is asked. A new variant is a new question, asked and answered like the others.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Whether an agent may use a tool.
    Permission(Box<Permission>),
    /// Whether to resume an earlier session of a team or start a new one.
    Restore(Box<Earlier>),
    /// What to do with a session that another program has open.
    Held {
        /// Session id.
        id: SessionId,
        /// The program that has the session open.
        holder: String,
    },
    /// Whether to continue the unfinished work of a pair.
    Unfinished {
        /// The question.
        question: String,
        /// What is unfinished.
        detail: String,
    },
    /// Whether to use a model that the agent does not list.
    UnlistedModel {
        /// Name of the agent.
        agent: String,
        /// Name of the model.
        model: String,
    },
}

/// A request for permission to use a tool.
#[derive(Clone, Debug)]
pub struct Permission {
    /// Ticket of the request.
    pub ticket: Ticket,
    /// The request.
    pub request: ToolRequest,
    /// Display name of the agent.
    pub who: String,
    /// Place of the call among those of the same message, from 1, and their number, if there are
    /// several.
    pub place: Option<(usize, usize)>,
}

/// An earlier session that can be resumed.
#[derive(Clone, Debug)]
pub struct Earlier {
    id: SessionId,
    team: Option<String>,
    title: String,
    updated_at: Timestamp,
    messages: u64,
}

impl Earlier {
    /// Describes a session.
    pub fn new(meta: &SessionMeta) -> Earlier {
        Earlier {
            id: meta.id,
            team: meta.team.clone(),
            title: meta.title_or_untitled().to_owned(),
            updated_at: meta.updated_at,
            messages: meta.messages,
        }
    }
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call.
    Once,
    /// Allow this call, and what is equal to it until the session ends.
    Session,
    /// Deny this call.
    Deny,
    /// Deny this call, and write what to do instead.
    Instead,
    /// Resume the earlier session.
    Resume,
    /// Start a new session.
    New,
    /// Read the session that another program has open.
    Read,
    /// Continue in a fork of it.
    Fork,
    /// Take it over.
    TakeOver,
    /// Yes.
    Yes,
    /// No.
    No,
}

/// An answer with its key.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Letter that chooses it.
    pub letter: char,
    /// The answer.
    pub answer: Answer,
    /// Labels with the letter, the most telling first; a narrow screen shows the first that fit.
    pub labels: [&'static str; 3],
}

const fn choice(letter: char, answer: Answer, labels: [&'static str; 3]) -> Choice {
    Choice {
        letter,
        answer,
        labels,
    }
}

const PERMISSION: &[Choice] = &[
    choice('y', Answer::Once, ["y once", "y once", "y"]),
    choice('a', Answer::Session, ["a this session", "a session", "a"]),
    choice('n', Answer::Deny, ["n no", "n no", "n"]),
    choice(
        'i',
        Answer::Instead,
        ["i no, and say what to do instead", "i but…", "i"],
    ),
];
const RESTORE: &[Choice] = &[
    choice('r', Answer::Resume, ["[R] Resume", "[R] Resume", "R"]),
    choice('n', Answer::New, ["[N] New", "[N] New", "N"]),
];
const HELD: &[Choice] = &[
    choice('r', Answer::Read, ["r read only", "r read", "r"]),
    choice('f', Answer::Fork, ["f fork", "f fork", "f"]),
    choice('t', Answer::TakeOver, ["t take over", "t take over", "t"]),
];
const YES_NO: &[Choice] = &[
    choice('y', Answer::Yes, ["y yes", "y yes", "y"]),
    choice('n', Answer::No, ["n no", "n no", "n"]),
];

impl Subject {
    /// The answers in display order.
    pub fn choices(&self) -> &'static [Choice] {
        match self {
            Subject::Permission(_) => PERMISSION,
            Subject::Restore(_) => RESTORE,
            Subject::Held { .. } => HELD,
            Subject::Unfinished { .. } | Subject::UnlistedModel { .. } => YES_NO,
        }
    }

    /// The answer that Enter alone gives: one that does no harm if the key was meant for something
    /// else.
    fn default_answer(&self) -> Answer {
        match self {
            Subject::Permission(_) => Answer::Deny,
            Subject::Restore(_) => Answer::Resume,
            Subject::Held { .. } => Answer::Read,
            Subject::Unfinished { .. } | Subject::UnlistedModel { .. } => Answer::No,
        }
    }

    /// Index of the default answer.
    pub fn default_choice(&self) -> usize {
        let default = self.default_answer();
        let mut choices = self.choices().iter();
        choices
            .position(|choice| choice.answer == default)
            .unwrap_or_default()
    }

    /// Effect of an answer.
    pub fn reaction(&self, answer: Answer) -> Reaction {
        match (answer, self) {
            (Answer::Once, _) => Reaction::Answer(Verdict::Yes),
            (Answer::Session, _) => Reaction::Answer(Verdict::Always),
            (Answer::Deny | Answer::Instead, _) => Reaction::Answer(Verdict::No),
            (Answer::Resume, Subject::Restore(earlier)) => Reaction::ResumeEarlier(earlier.id),
            (Answer::New, _) => Reaction::StartNew,
            (Answer::Fork, Subject::Held { id, .. }) => Reaction::Open(*id, IfOpen::Fork),
            (Answer::TakeOver, Subject::Held { id, .. }) => Reaction::Open(*id, IfOpen::TakeOver),
            (Answer::Yes, Subject::Unfinished { .. }) => Reaction::Continue,
            (Answer::Yes, Subject::UnlistedModel { model, .. }) => {
                Reaction::UseModel(model.clone())
            }
            _ => Reaction::Close,
        }
    }

    /// Effect of Esc and Ctrl+C, and what the screen calls it.
    pub fn way_out(&self) -> (Reaction, &'static str) {
        match self {
            Subject::Permission(_) => (Reaction::Answer(Verdict::No), "no"),
            Subject::Restore(_) => (Reaction::Return, "decide later"),
            Subject::Held { .. } => (Reaction::Close, "read only"),
            Subject::Unfinished { .. } | Subject::UnlistedModel { .. } => (Reaction::Close, "no"),
        }
    }

    /// Returns true if a turn that begins makes the question obsolete.
    pub fn ends_with_turn(&self) -> bool {
        matches!(
            self,
            Subject::Unfinished { .. } | Subject::UnlistedModel { .. }
        )
    }

    /// The question in one line.
    pub fn heading(&self) -> String {
        match self {
            Subject::Permission(asked) => {
                format!("{} wants to {}", asked.who, tools::wish(&asked.request))
            }
            Subject::Restore(earlier) => match &earlier.team {
                Some(team) => format!("Resume the earlier session of {team}?"),
                None => "Resume the earlier session?".to_owned(),
            },
            Subject::Held { .. } => "This session is open elsewhere".to_owned(),
            Subject::Unfinished { question, .. } => question.clone(),
            Subject::UnlistedModel { agent, model } => {
                format!("'{model}' is not listed by {agent}; use it anyway?")
            }
        }
    }

    /// What the user is needed for, for the status line.
    pub fn wish(&self) -> String {
        match self {
            Subject::Permission(asked) => tools::wish(&asked.request),
            Subject::Restore(_) => "resume or new?".to_owned(),
            Subject::Held { .. } => "read, fork or take over?".to_owned(),
            Subject::Unfinished { .. } => "yes or no?".to_owned(),
            Subject::UnlistedModel { .. } => "use this model?".to_owned(),
        }
    }

    /// Mark at the right end of the heading, and how urgent both are.
    pub fn mark(&self, theme: Theme) -> (String, Style) {
        match self {
            Subject::Permission(asked) => {
                let (words, weight) = effects::effect(&asked.request);
                let style = match weight {
                    Weight::Light => theme.heading(),
                    Weight::Usual => theme.warning(),
                    Weight::Grave => theme.error(),
                };
                let mark = match asked.place {
                    Some((place, count)) => format!("{place} of {count} · {words}"),
                    None => words,
                };
                (mark, style)
            }
            _ => (String::new(), theme.warning()),
        }
    }

    /// Explains the answers as long as none is chosen.
    pub fn note(&self) -> String {
        match self {
            Subject::Permission(asked) => format!("a: {}", covers(&asked.request)),
            Subject::Held { .. } => "Take over: the other window continues in a fork.".to_owned(),
            Subject::Restore(_) | Subject::Unfinished { .. } | Subject::UnlistedModel { .. } => {
                String::new()
            }
        }
    }

    /// Describes the effect of an answer that is chosen.
    pub fn meaning(&self, answer: Answer) -> &'static str {
        match (answer, self) {
            (Answer::Once, _) => "allow this once",
            (Answer::Session, _) => "allow it for this session",
            (Answer::Deny | Answer::No, _) => "no",
            (Answer::Instead, _) => "no, then write what to do instead",
            (Answer::Resume, _) => "resume the earlier session",
            (Answer::New, _) => "start a new session",
            (Answer::Read, _) => "read only",
            (Answer::Fork, _) => "continue in a fork",
            (Answer::TakeOver, _) => "take over; the other window continues in a fork",
            (Answer::Yes, Subject::UnlistedModel { .. }) => "use this model",
            (Answer::Yes, _) => "yes, continue",
        }
    }

    /// Details below the heading, folded to a width.
    pub fn details(&self, columns: usize, theme: Theme, now: Timestamp) -> Vec<Row> {
        let mut out = Vec::new();
        match self {
            Subject::Permission(asked) => {
                let preview = asked.request.preview.trim_end_matches('\n');
                let (margin, text) = (Margin::default(), theme.text());
                if !asked.request.folder.is_empty() && asked.request.call.name != tools::WORK_IN {
                    let folder = format!("in {}", asked.request.folder);
                    plain(&folder, theme.dim(), columns, &mut out);
                }
                match tools::verb(&asked.request.call).changes() {
                    true => out.extend(diff::rows(preview, 0, (&margin, text), columns, theme)),
                    false => plain(preview, text, columns, &mut out),
                }
            }
            Subject::Restore(earlier) => {
                let facts = [
                    counted(earlier.messages, "message"),
                    ago(earlier.updated_at, now),
                    earlier.id.short(),
                ];
                plain(&earlier.title, theme.strong(), columns, &mut out);
                plain(&facts.join(" · "), theme.dim(), columns, &mut out);
            }
            Subject::Held { holder, .. } => {
                let words = format!("Open in {holder}.");
                plain(&words, theme.text(), columns, &mut out);
            }
            Subject::Unfinished { detail, .. } => plain(detail, theme.text(), columns, &mut out),
            Subject::UnlistedModel { .. } => {}
        }
        out
    }
}

/// Folds text. All of its spaces are shown: nothing may hide behind them.
pub fn plain(text: &str, style: Style, columns: usize, out: &mut Vec<Row>) {
    if text.is_empty() {
        return;
    }
    let (lines, _) = fold(text, columns, usize::MAX);
    out.extend(lines.into_iter().map(|line| Row {
        line: Line::styled(line, style),
        source: 0..0,
    }));
}
