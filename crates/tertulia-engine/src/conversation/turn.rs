//! The result of a turn.

use super::Conversation;
use crate::answer::TurnEnd;
use crate::error::{ErrorBody, ErrorKind};
use crate::event::{Tone, TurnStatus, UserMessage};
use crate::pair::{Pause, Progress, Wait, text};
use crate::team::events::{Next, Why};
use crate::team::policy::TeamTurn;
use tertulia_agents::AgentError;

/// How a turn ended.
#[derive(Debug)]
pub enum TurnResult {
    /// In a chat.
    Chat(TurnEnd),
    /// In a team.
    Team(TeamTurn),
    /// In a pair, with its progress.
    Pair(Pause, Progress),
}

impl TurnResult {
    /// Returns the status: the one table.
    pub fn status(&self) -> TurnStatus {
        match self {
            TurnResult::Chat(end) => match end {
                TurnEnd::Answered => TurnStatus::Completed,
                TurnEnd::Cancelled => TurnStatus::Cancelled,
                TurnEnd::Failed(_) => TurnStatus::Failed,
                TurnEnd::Refused => TurnStatus::Refused,
            },
            TurnResult::Team(round) => match &round.next {
                None => TurnStatus::Refused,
                Some(Next::Paused { .. }) => TurnStatus::Paused,
                Some(Next::WaitFor {
                    why: Why::Stopped, ..
                }) => TurnStatus::Cancelled,
                Some(Next::WaitFor {
                    why: Why::Failed, ..
                }) => TurnStatus::Failed,
                Some(Next::WaitFor { .. } | Next::Ask { .. }) => TurnStatus::Completed,
            },
            TurnResult::Pair(pause, _) => match pause {
                Pause::Waits(Wait::Done) => TurnStatus::Completed,
                Pause::Waits(_) => TurnStatus::Paused,
                Pause::Stopped(_) => TurnStatus::Cancelled,
                Pause::Failed(_)
                | Pause::WorkerFails(_)
                | Pause::Unsaved
                | Pause::Unreadable(_) => TurnStatus::Failed,
                Pause::Refused => TurnStatus::Refused,
            },
        }
    }

    /// Returns the agent's failure that ended the turn.
    pub fn failure(&self) -> Option<&AgentError> {
        match self {
            TurnResult::Chat(TurnEnd::Failed(error))
            | TurnResult::Pair(Pause::Failed(error) | Pause::WorkerFails(error), _) => Some(error),
            TurnResult::Team(round) if round.ended_by_failure() => round.failed.as_ref(),
            TurnResult::Chat(_) | TurnResult::Team(_) | TurnResult::Pair(..) => None,
        }
    }

    /// Returns the error for the client that started the turn. A team's failures were reported when
    /// they happened.
    pub fn error(&self) -> Option<ErrorBody> {
        match self {
            TurnResult::Team(_) => None,
            TurnResult::Pair(Pause::Unreadable(why), _) => {
                Some(ErrorBody::new(ErrorKind::Failed, why))
            }
            TurnResult::Chat(_) | TurnResult::Pair(..) => self.failure().map(ErrorBody::from),
        }
    }

    /// Returns true if a message to a team addressed no member, so that none was asked.
    pub fn asked_no_member(&self) -> bool {
        matches!(self, TurnResult::Team(round) if round.asked_no_member())
    }

    /// Returns true if the message had no addressee and no member spoke.
    pub fn had_no_addressee(&self) -> bool {
        matches!(self, TurnResult::Team(round) if round.had_no_addressee())
    }

    /// Describes how the turn ended, if the events did not.
    pub fn ending(&self) -> Option<UserMessage> {
        match self {
            TurnResult::Pair(pause, progress) => {
                let words = text::ending(pause, progress);
                Some(match text::is_warning(pause) {
                    true => UserMessage::warning(words),
                    false => UserMessage::note(words),
                })
            }
            TurnResult::Chat(_) | TurnResult::Team(_) => None,
        }
    }

    /// Returns what the user should read when it is their turn.
    pub fn notes(&self, conversation: &Conversation) -> Vec<UserMessage> {
        let advice = match self {
            TurnResult::Chat(TurnEnd::Cancelled) => Some("(stopped)"),
            TurnResult::Team(round) if matches!(round.next, Some(Next::Paused { .. })) => {
                Some("send a message to continue with the queue")
            }
            TurnResult::Team(_) if self.had_no_addressee() => Some(
                "nobody was addressed: name the next speaker with [NEXT: name]; /members lists the members",
            ),
            TurnResult::Pair(Pause::Stopped(_) | Pause::Failed(_) | Pause::WorkerFails(_), _)
                if conversation.unfinished().is_some() =>
            {
                Some("/go continues the unfinished work; anything else goes to the instructor")
            }
            TurnResult::Chat(_) | TurnResult::Team(_) | TurnResult::Pair(..) => None,
        };
        let advice = advice.map(UserMessage::note);
        self.ending().into_iter().chain(advice).collect()
    }

    /// Returns what a screen shows at the end of the turn. A chat's failure is an entry of the log,
    /// which lacks its hint.
    pub fn screen_notes(&self, conversation: &Conversation) -> Vec<UserMessage> {
        match self {
            TurnResult::Chat(_) => {
                let Some(error) = self.failure() else {
                    return Vec::new();
                };
                let hint = error.hint.as_deref().into_iter();
                let ways = "/retry asks again · /agents chooses another agent";
                hint.chain([ways]).map(UserMessage::note).collect()
            }
            TurnResult::Team(_) | TurnResult::Pair(..) => self.notes(conversation),
        }
    }
}

impl UserMessage {
    /// Returns true if it is more than a note.
    pub fn is_warning(&self) -> bool {
        self.tone != Tone::Note
    }
}
