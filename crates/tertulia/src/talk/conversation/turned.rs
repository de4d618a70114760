//! How a turn ended: for scripts, for people, and as a failure.

use tertulia_agents::AgentError;
use tertulia_core::pair::Wait;
use tertulia_engine::chat::TurnEnd;
use tertulia_engine::duet::Pause;
use tertulia_engine::table::Round;
use tertulia_engine::team::events::{Next, Why};

use super::{Conversation, Turned};
use crate::error::{CommandError, ErrorKind};
use crate::talk::frontend::{End, Failure, Output};
use crate::talk::paired;

impl Turned {
    /// How it ended, for scripts.
    pub fn end(&self, conversation: &Conversation) -> End<'_> {
        let status = match self {
            Turned::Chat(end) => chat_status(end),
            Turned::Team(round) => team_status(round),
            Turned::Pair(pause, _) => pair_status(pause),
        };
        // What becomes of one of several was told when it happened.
        let failure = self.failure().filter(|_| matches!(self, Turned::Chat(_)));
        End {
            session: conversation.talk().writer().id(),
            status,
            failure,
            waiting_for: conversation.waiting_for(),
        }
    }

    /// What a person reads when it is their turn, and whether it should not be overlooked.
    pub fn notes(&self, conversation: &Conversation) -> Vec<(bool, String)> {
        let note = |words: &str| (false, words.to_owned());
        let advice = match self {
            Turned::Chat(TurnEnd::Cancelled) => Some(note("(stopped)")),
            Turned::Team(round) if matches!(round.floor, Some(Next::Paused { .. })) => {
                Some(note("send a message to continue with the queue"))
            }
            Turned::Team(_) if self.went_to_nobody() => Some(note(
                "nobody was addressed: name the next speaker with [NEXT: name]; /members lists the members",
            )),
            Turned::Pair(Pause::Stopped(_) | Pause::Failed(_) | Pause::WorkerFails(_), _)
                if conversation.left_undone().is_some() =>
            {
                Some(note(
                    "/go continues the unfinished work; anything else goes to the instructor",
                ))
            }
            Turned::Chat(_) | Turned::Team(_) | Turned::Pair(..) => None,
        };
        self.ending().into_iter().chain(advice).collect()
    }

    /// How it ended where that was not shown, and whether it should not be overlooked.
    pub fn ending(&self) -> Option<(bool, String)> {
        match self {
            Turned::Pair(pause, progress) => {
                Some((paired::is_warning(pause), paired::ending(pause, progress)))
            }
            Turned::Chat(_) | Turned::Team(_) => None,
        }
    }

    /// Whether the words named nobody, and nobody spoke.
    pub fn went_to_nobody(&self) -> bool {
        matches!(self, Turned::Team(round) if round.went_to_nobody())
    }

    /// The failure of an agent that it ended with.
    pub fn failure(&self) -> Option<&AgentError> {
        match self {
            Turned::Chat(TurnEnd::Failed(error))
            | Turned::Pair(Pause::Failed(error) | Pause::WorkerFails(error), _) => Some(error),
            Turned::Team(round) if round.ended_by_failure() => round.failed.as_ref(),
            Turned::Chat(_) | Turned::Team(_) | Turned::Pair(..) => None,
        }
    }

    /// The failure that a single turn ends with. What the door has not told yet is told by it, once.
    pub fn error(&self, frontend: &mut Output<'_>) -> Option<CommandError> {
        match (self, self.failure()) {
            (Turned::Chat(_), error) => error.cloned().map(CommandError::from),
            (Turned::Team(_), error) => {
                let failure = error.and_then(|_| frontend.take_failure());
                failure.map(could_not_answer)
            }
            (Turned::Pair(Pause::Unreadable(why), _), _) => {
                Some(CommandError::new(ErrorKind::Failed, why))
            }
            (Turned::Pair(..), error) => error.cloned().map(for_the_human),
        }
    }
}

fn chat_status(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Answered => "completed",
        TurnEnd::Cancelled => "cancelled",
        TurnEnd::Failed(_) => "failed",
        TurnEnd::Refused => "refused",
    }
}

fn team_status(round: &Round) -> &'static str {
    match &round.floor {
        None => "refused",
        Some(Next::Paused { .. }) => "paused",
        Some(Next::WaitFor {
            why: Why::Stopped, ..
        }) => "cancelled",
        Some(Next::WaitFor {
            why: Why::Failed, ..
        }) => "failed",
        Some(Next::WaitFor { .. } | Next::Ask { .. }) => "completed",
    }
}

fn pair_status(pause: &Pause) -> &'static str {
    match pause {
        Pause::Waits(Wait::Done) => "completed",
        Pause::Waits(_) => "paused",
        Pause::Stopped(_) => "cancelled",
        Pause::Failed(_) | Pause::WorkerFails(_) | Pause::Unsaved | Pause::Unreadable(_) => {
            "failed"
        }
        Pause::Refused => "refused",
    }
}

/// The last of a team who was asked failed, and nobody else was to speak.
fn could_not_answer(failure: Failure) -> CommandError {
    let error = CommandError::new(ErrorKind::Agent, failure.words);
    error.hint(failure.hint.unwrap_or_else(|| {
        "`tertulia team check CONFIG` shows the agent of each member, `tertulia agents` lists those that are ready".to_owned()
    }))
}

/// One of a pair failed, and the human is to deal with it.
fn for_the_human(error: AgentError) -> CommandError {
    let choose =
        "`tertulia agents` lists the agents that are ready; choose with --instructor and --worker";
    let hint = error.hint.clone().unwrap_or_else(|| choose.to_owned());
    AgentError {
        hint: Some(hint),
        ..error
    }
    .into()
}
