//! [`Gate`], the frontend of a served conversation: publishes events to the room and asks for tool
//! approval there.

use std::sync::Arc;

use async_trait::async_trait;
use tertulia_agents::AgentEvent;
use tertulia_agents::approval::{ToolRequest, Verdict};
use tertulia_core::entry::{Kind, Role};
use tertulia_core::team::markers::Unmarked;
use tertulia_engine::frontend::{Frontend, Notice, TalkEvent};

use crate::hub::Hub;
use crate::room::Room;
use tertulia_engine::event::SessionEvent;

/// Frontend of a served conversation.
pub struct Gate {
    hub: Arc<Hub>,
    room: Arc<Room>,
    /// Filter that holds back text of a team member that may be a marker; only used for teams.
    words: Option<Unmarked>,
}

impl Gate {
    /// Creates the frontend of a room.
    pub fn new(hub: Arc<Hub>, room: Arc<Room>) -> Gate {
        Gate {
            hub,
            room,
            words: None,
        }
    }

    /// Hides markers if the conversation is a team's.
    pub fn of_kind(&mut self, kind: Kind) {
        self.words = (kind == Kind::Team).then(Unmarked::default);
    }

    /// Publishes the text that was held back, at the end of a message.
    pub fn hear_out(&mut self) {
        if let Some(words) = &mut self.words {
            let text = std::mem::take(words).finish();
            if !text.is_empty() {
                self.room.publish(SessionEvent::Text { text });
            }
        }
    }

    fn heard(&mut self, event: &AgentEvent) -> Option<SessionEvent> {
        Some(match event {
            AgentEvent::Text(text) => {
                let text = match &mut self.words {
                    Some(words) => words.push(text),
                    None => text.clone(),
                };
                if text.is_empty() {
                    return None;
                }
                SessionEvent::Text { text }
            }
            AgentEvent::Reasoning(text) => SessionEvent::Thought { text: text.clone() },
            event => SessionEvent::Heard {
                event: event.clone(),
            },
        })
    }

    fn notice(&mut self, notice: &Notice) -> SessionEvent {
        if let Notice::SteppedAside { to, .. } = notice {
            self.hub.moved(&self.room, *to);
        }
        let told = self.hub.host().notice(notice);
        SessionEvent::Notice {
            tone: told.tone,
            text: told.text,
        }
    }
}

#[async_trait]
impl Frontend for Gate {
    fn show(&mut self, event: TalkEvent<'_>) {
        let happening = match event {
            TalkEvent::Heard(event) => self.heard(event),
            TalkEvent::Durable(entry) => {
                let answers = entry
                    .message()
                    .is_some_and(|message| message.role == Role::Assistant);
                if answers {
                    self.hear_out();
                }
                Some(SessionEvent::durable(entry))
            }
            TalkEvent::Held(message) => Some(SessionEvent::Held {
                message: Box::new(message.clone()),
            }),
            TalkEvent::Asked(speaker) => {
                self.hear_out();
                Some(SessionEvent::Asked {
                    speaker: speaker.clone(),
                })
            }
            TalkEvent::Failed(speaker, error) => Some(SessionEvent::Failed {
                speaker: speaker.clone(),
                error: error.clone(),
            }),
            TalkEvent::Routed(output) => Some(SessionEvent::Routed {
                output: output.clone(),
            }),
            TalkEvent::Pair(event) => Some(SessionEvent::Pair {
                event: event.clone(),
            }),
            TalkEvent::Permissions(state) => Some(SessionEvent::Permissions {
                state: state.clone(),
            }),
            TalkEvent::Notice(notice) => Some(self.notice(&notice)),
        };
        if let Some(happening) = happening {
            self.room.publish(happening);
        }
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        let Some(answered) = self.room.ask(request) else {
            return Verdict::No;
        };
        // On drop, withdraws the approval request, also if the turn is aborted.
        let forgotten = Forgotten(self.room.clone());
        let patience = self.hub.limits().patience;
        let verdict = match tokio::time::timeout(patience, answered).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) | Err(_) => Verdict::No,
        };
        drop(forgotten);
        verdict
    }
}

/// Withdraws an approval request on drop.
struct Forgotten(Arc<Room>);

impl Drop for Forgotten {
    fn drop(&mut self) {
        self.0.forget_question();
    }
}
