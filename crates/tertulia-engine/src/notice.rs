//! [`Notice`]: what a user should know about a running conversation, besides its messages.

use std::collections::BTreeMap;
use std::error::Error;

use crate::error::ErrorBody;
use crate::event::{SessionEvent, Tone};
use crate::text::fit;
use tertulia_agents::AgentError;
use tertulia_core::id::SessionId;
use tertulia_core::price;
use tertulia_core::session::Damage;
use tertulia_store::{HeldLock, LockHolder, StoreError};

/// How the notice begins that the older part is being summarised.
pub const COMPACTING: &str = "summarising the ";
/// Says that the older part was summarised.
pub const COMPACTED: &str = "context summarised; the log keeps every message";

/// Something that the human should know.
#[derive(Debug)]
pub enum Notice {
    /// Another program writes to the session: the session continues in a fork.
    SteppedAside {
        /// The session that was left.
        from: SessionId,
        /// The fork.
        to: SessionId,
        /// The other program, if it is known.
        holder: Option<LockHolder>,
    },
    /// A half-written answer was read back.
    Recovered {
        /// Who was speaking.
        speaker: String,
    },
    /// The last message has no answer: the program ended before.
    Unanswered,
    /// Tools had been called for and never came back: so many calls were closed.
    ClosedCalls(usize),
    /// A shell command of the user had not ended: it was closed.
    ClosedCommand(String),
    /// So many processes still ran for this session, left by a program that was killed, and were ended.
    EndedOrphans(usize),
    /// The session's answers came from another model.
    OtherModel {
        /// The model of the last answer.
        recorded: String,
        /// The model that answers now.
        now: String,
    },
    /// The older part is being summed up.
    Compacting {
        /// How many messages.
        messages: usize,
    },
    /// The older part was summed up.
    Compacted,
    /// Messages that are too long for the agent are given without their middles.
    Shortened,
    /// The older part could not be summed up; the session continues unchanged.
    NotCompacted(AgentError),
    /// Speakers of this session are not in the team any more; what they said keeps their names.
    Missing(Vec<String>),
    /// A member answered with another model before.
    OtherModelOf {
        /// The member.
        member: String,
        /// The model of their last answer.
        recorded: String,
        /// The model that answers now.
        now: String,
    },
    /// These had been asked and did not get to answer before the program ended.
    NotHeard(Vec<String>),
    /// Another program keeps everybody else from writing: saving waits for it.
    Waiting(HeldLock),
    /// Nothing can be saved; the session continues in memory.
    Unsaved(StoreError),
    /// What could not be saved is saved now.
    SavedAgain,
    /// Secrets were replaced, so many of each kind.
    Redacted(BTreeMap<String, u32>),
    /// The log nears its limit.
    NearLimit {
        /// Its size.
        bytes: u64,
    },
    /// The words may not be in the log.
    Refused(StoreError),
    /// Some entries cannot be read.
    Damaged(Vec<Damage>),
}

impl Notice {
    /// Returns the notice that another model answers than was recorded, if that is so: of the only
    /// agent, or of a member.
    pub fn other_model(
        member: Option<String>,
        recorded: Option<&str>,
        now: Option<&str>,
    ) -> Option<Notice> {
        let (recorded, now) = (recorded?.to_owned(), now?.to_owned());
        (price::base_model(&recorded) != price::base_model(&now)).then_some(match member {
            None => Notice::OtherModel { recorded, now },
            Some(member) => Notice::OtherModelOf {
                member,
                recorded,
                now,
            },
        })
    }

    /// Returns how urgent it is.
    pub fn tone(&self) -> Tone {
        match self {
            Notice::SteppedAside { .. }
            | Notice::NotCompacted(_)
            | Notice::OtherModel { .. }
            | Notice::Missing(_)
            | Notice::OtherModelOf { .. }
            | Notice::Waiting(_)
            | Notice::Unsaved(_)
            | Notice::NearLimit { .. }
            | Notice::Refused(_)
            | Notice::Damaged(_) => Tone::Warning,
            Notice::Recovered { .. }
            | Notice::Unanswered
            | Notice::ClosedCalls(_)
            | Notice::ClosedCommand(_)
            | Notice::EndedOrphans(_)
            | Notice::Compacting { .. }
            | Notice::Compacted
            | Notice::Shortened
            | Notice::NotHeard(_)
            | Notice::SavedAgain
            | Notice::Redacted(_) => Tone::Note,
        }
    }

    /// Returns its text.
    pub fn text(&self) -> String {
        match self {
            Notice::SteppedAside { from, to, holder } => {
                let holder = holder.as_ref().filter(|holder| holder.pid > 0);
                let who = holder.map_or_else(|| "another program".to_owned(), ToString::to_string);
                format!(
                    "{who} is writing to session {}; continuing in a fork, {} (--take-over continues the session itself)",
                    from.short(),
                    to.short()
                )
            }
            Notice::Recovered { speaker } => format!(
                "{speaker} was cut off in the middle of an answer; what had arrived is kept as an interrupted message"
            ),
            Notice::Unanswered => {
                "the last message has no answer; /retry (or --retry) asks again".to_owned()
            }
            Notice::ClosedCalls(calls) => format!(
                "closed as interrupted: {} without a result",
                count(*calls, "tool call", "tool calls")
            ),
            Notice::ClosedCommand(command) => {
                format!("closed as interrupted: !{}", fit(command, 60))
            }
            Notice::EndedOrphans(processes) => format!(
                "ended {} of the interrupted answer that still ran",
                count(*processes, "process", "processes")
            ),
            Notice::Compacting { messages } => {
                format!("{COMPACTING}{}", count(*messages, "oldest message", "oldest messages"))
            }
            Notice::Compacted => COMPACTED.to_owned(),
            Notice::Shortened => {
                "a message is too long for the model: its middle is left out of the prompt; the log keeps all of it"
                    .to_owned()
            }
            Notice::NotCompacted(error) => {
                format!("older messages could not be summarised: {error}")
            }
            Notice::OtherModel { recorded, now } => {
                format!("this session was recorded with the model {recorded}; {now} answers now")
            }
            Notice::Missing(names) => format!(
                "no longer in the team: {}; their messages keep their names, and `--map OLD=NEW` on the command line reseats them",
                names.join(", ")
            ),
            Notice::OtherModelOf {
                member,
                recorded,
                now,
            } => format!("{member} answered with the model {recorded} before; {now} answers now"),
            Notice::NotHeard(names) => format!(
                "still queued when tertulia exited: {0} (ask again with [NEXT: {0}])",
                names.join(", ")
            ),
            Notice::Waiting(held) => held.waiting_text(),
            Notice::Unsaved(error) => format!(
                "not saved: {}. The session continues in memory, and saving is tried again with the next message",
                chain(error)
            ),
            Notice::SavedAgain => "saved: every message so far is on disk".to_owned(),
            Notice::Redacted(kinds) => format!("redacted before saving: {}", redaction_counts(kinds)),
            Notice::NearLimit { bytes } => format!(
                "this session is {} MB of at most 100 MB: start a new one soon, or fork an earlier part with `tertulia fork REF:N`",
                bytes / 1_000_000
            ),
            Notice::Refused(error) => format!("not sent: {}", chain(error)),
            Notice::Damaged(damaged) => format!(
                "damaged in this session: {}, the first: {}; `tertulia doctor` lists all",
                count(damaged.len(), "entry", "entries"),
                damaged.first().map(Damage::to_string).unwrap_or_default()
            ),
        }
    }
}

impl From<Notice> for SessionEvent {
    fn from(notice: Notice) -> SessionEvent {
        SessionEvent::Notice {
            tone: notice.tone(),
            text: notice.text(),
            error: match notice {
                Notice::Refused(error) => Some(ErrorBody::from(&error)),
                _ => None,
            },
        }
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    }
}

fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}

/// Formats numbers of redacted secrets per kind.
pub fn redaction_counts(kinds: &BTreeMap<String, u32>) -> String {
    kinds
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect::<Vec<_>>()
        .join(", ")
}
