//! A talk as the server leads it.

use async_trait::async_trait;
use tertulia_agents::approval::{Permissions, ToolRequest, Verdict};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::pair::Wait;
use tertulia_engine::chat::TurnEnd;
use tertulia_engine::duet::Pause;
use tertulia_engine::event::{
    QueuedMember, SessionEnd, SessionState, Tone, TurnStatus, UserMessage,
};
use tertulia_engine::frontend::{Frontend, TalkEvent};
use tertulia_engine::team::events::{Next, Why};
use tertulia_server::host::{Ended, HostedTalk};
use tertulia_server::protocol::{ErrorBody, ErrorKind as Wire};
use tokio_util::sync::CancellationToken;

use super::trouble::trouble;
use crate::error::{CommandError, CommandResult};
use crate::talk::Leaving;
use crate::talk::conversation::{Conversation, Turned};
use crate::talk::opening::{Cast, Opening, StartedFrontend};
use crate::tui::{floor, item};
use crate::ui::{self, Ui};

/// A talk, and as whom somebody speaks in it.
pub struct Served {
    conversation: Conversation,
    seat: Option<String>,
    leaving: Leaving,
    introduction: String,
    failed: bool,
}

impl Served {
    /// Opens it.
    pub async fn open(opening: Opening, frontend: &mut dyn Frontend) -> CommandResult<Served> {
        let leaving = opening.leaving.clone();
        let introduction = opening.introduction.clone();
        let seat = match &opening.cast {
            Cast::Team { seat, .. } => seat.clone(),
            Cast::Chat(_) | Cast::Pair { .. } => None,
        };
        Ok(Served {
            conversation: opening.open(&mut Entrance(frontend)).await?,
            seat,
            leaving,
            introduction,
            failed: false,
        })
    }

    /// Writes the session back to the file that it came from.
    async fn write_back(&self) -> Option<UserMessage> {
        let copied = self.conversation.talk().writer().copy().await;
        let why = copied.err()?;
        Some(UserMessage::warning(format!(
            "saved, but not in the session file: {why}"
        )))
    }
}

/// The server's door: which session it is in is known from the floor.
struct Entrance<'a>(&'a mut dyn Frontend);

#[async_trait]
impl Frontend for Entrance<'_> {
    fn show(&mut self, event: TalkEvent<'_>) {
        self.0.show(event);
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        self.0.approve(request).await
    }
}

impl StartedFrontend for Entrance<'_> {
    fn started(&mut self, _: SessionId, _: Option<u64>) {}
}

#[async_trait]
impl HostedTalk for Served {
    fn kind(&self) -> Kind {
        match &self.conversation {
            Conversation::Chat(_) => Kind::Chat,
            Conversation::Team(_) => Kind::Team,
            Conversation::Pair(_) => Kind::Pair,
        }
    }

    fn floor(&self) -> SessionState {
        let floor = floor::of(&self.conversation, self.seat.as_deref(), self.failed);
        let waiting = floor.waiting.into_iter().map(|waiting| QueuedMember {
            name: waiting.name,
            intent: waiting.intent,
            is_you: waiting.is_you,
        });
        SessionState {
            id: floor.id,
            meta: floor.meta,
            introduction: self.introduction.clone(),
            writer: floor.writer,
            unsaved: floor.unsaved,
            waiting: waiting.collect(),
            undone: floor.undone.map(|undone| undone.words),
            failed: floor.failed,
        }
    }

    fn permissions(&self) -> Permissions {
        self.conversation.talk().permissions().clone()
    }

    async fn say(
        &mut self,
        words: String,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Ended {
        let seat = self.seat.as_deref();
        let mut ended = match self.conversation.say(words, seat, frontend, cancel).await {
            Ok(turned) => {
                self.failed = turned.failure().is_some();
                let endings = floor::endings(&turned, &self.conversation);
                let (status, trouble) = how(turned);
                // Whoever asked is told the hint with the failure.
                let notices = match &trouble {
                    Some(_) => Vec::new(),
                    None => endings.into_iter().map(told).collect(),
                };
                Ended {
                    status,
                    trouble,
                    notices,
                }
            }
            Err(error) => Ended {
                status: TurnStatus::Refused,
                trouble: Some(ErrorBody::new(Wire::Usage, error.to_string())),
                notices: vec![UserMessage::warning(error.to_string())],
            },
        };
        ended.notices.extend(self.write_back().await);
        ended
    }

    fn take_seat(&mut self, name: Option<String>) -> Result<(), String> {
        self.seat = self
            .conversation
            .seat_of(name.as_deref().unwrap_or_default())?;
        Ok(())
    }

    async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let compacted = self.conversation.compact(frontend, cancel).await;
        floor::not_compacted(compacted).map(str::to_owned)
    }

    async fn save(&mut self, frontend: &mut dyn Frontend) -> bool {
        self.conversation.talk_mut().save_held(frontend).await
    }

    async fn leave(&mut self, gently: bool) -> SessionEnd {
        if gently {
            self.conversation.leave().await;
        }
        let mut ui = Ui::holding();
        if let Some(words) = self.conversation.unheard(&self.leaving) {
            ui.note(&words);
        }
        let talk = self.conversation.talk_mut();
        let unsaved = self.leaving.farewell(talk, &mut ui).await;
        SessionEnd {
            unsaved: unsaved.is_some(),
            told: held(&mut ui),
        }
    }
}

/// How a turn ended, and why it failed where nobody was told.
fn how(turned: Turned) -> (TurnStatus, Option<ErrorBody>) {
    let failed = |error: tertulia_agents::AgentError| {
        let trouble = trouble(&CommandError::from(error));
        (TurnStatus::Failed, Some(trouble))
    };
    match turned {
        Turned::Chat(TurnEnd::Answered) => (TurnStatus::Completed, None),
        Turned::Chat(TurnEnd::Cancelled) => (TurnStatus::Cancelled, None),
        Turned::Chat(TurnEnd::Refused) => (TurnStatus::Refused, None),
        Turned::Chat(TurnEnd::Failed(error)) => failed(error),
        Turned::Team(round) => match round.floor {
            None => (TurnStatus::Refused, None),
            Some(Next::Paused { .. }) => (TurnStatus::Paused, None),
            Some(Next::WaitFor {
                why: Why::Stopped, ..
            }) => (TurnStatus::Cancelled, None),
            // It was told when it happened.
            Some(Next::WaitFor {
                why: Why::Failed, ..
            }) => (TurnStatus::Failed, None),
            Some(Next::WaitFor { .. } | Next::Ask { .. }) => (TurnStatus::Completed, None),
        },
        Turned::Pair(pause, _) => match pause {
            Pause::Waits(Wait::Done) => (TurnStatus::Completed, None),
            Pause::Waits(_) => (TurnStatus::Paused, None),
            Pause::Stopped(_) => (TurnStatus::Cancelled, None),
            Pause::Failed(error) | Pause::WorkerFails(error) => failed(error),
            Pause::Unsaved => (TurnStatus::Failed, None),
            Pause::Unreadable(why) => (TurnStatus::Failed, Some(ErrorBody::new(Wire::Failed, why))),
            Pause::Refused => (TurnStatus::Refused, None),
        },
    }
}

fn told((tone, text): (item::Tone, String)) -> UserMessage {
    let tone = match tone {
        item::Tone::Note => Tone::Note,
        item::Tone::Warning => Tone::Warning,
        item::Tone::Error => Tone::Error,
    };
    UserMessage { tone, text }
}

/// What the command line would have said.
pub fn held(ui: &mut Ui) -> Vec<UserMessage> {
    let all = ui.take_held().into_iter();
    all.map(|told| match told {
        ui::Told::Note(text) | ui::Told::Data(text) => UserMessage::note(text),
        ui::Told::Warning(text) => UserMessage::warning(text),
        ui::Told::Error { message, hints, .. } => UserMessage {
            tone: Tone::Error,
            text: [vec![message], hints].concat().join("; "),
        },
    })
    .collect()
}
