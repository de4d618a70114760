//! The current state of a live session, including the partial answer: for clients that join late.

use tertulia_agents::AgentEvent;
use tertulia_core::entry::{Entry, Role, ToolCall};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_engine::notification::LONGEST_TEXT;
use tertulia_engine::team::events::Output;

use tertulia_engine::event::{SessionEvent, SessionState};

/// State of a live session.
#[derive(Debug)]
pub struct LiveState {
    floor: SessionState,
    answering: bool,
    /// The last `Asked` event: the speaker in a team or pair that is answering.
    asked: Option<SessionEvent>,
    text: String,
    thought: String,
    /// The last to-do list.
    todos: Option<SessionEvent>,
    /// The last state of the queue.
    queue: Option<SessionEvent>,
    /// Tool calls that have not completed.
    calls: Vec<ToolCall>,
    /// The pending approval request.
    question: Option<SessionEvent>,
    /// The tool permissions in force.
    permissions: Option<SessionEvent>,
    /// The messages that wait, and drafts.
    unsent: Option<SessionEvent>,
    /// Beginning of the last answer.
    last_answer: String,
}

impl LiveState {
    /// Creates the state of a session of which nothing is known yet.
    pub fn blank(id: SessionId) -> LiveState {
        LiveState {
            floor: SessionState::blank(id),
            answering: false,
            asked: None,
            text: String::new(),
            thought: String::new(),
            todos: None,
            queue: None,
            calls: Vec::new(),
            question: None,
            permissions: None,
            unsent: None,
            last_answer: String::new(),
        }
    }

    /// Returns the beginning of the last answer.
    pub fn last_answer(&self) -> &str {
        &self.last_answer
    }

    /// Returns the state at the last time that the user could write, plus all later entries.
    pub fn floor(&self) -> &SessionState {
        &self.floor
    }

    /// Returns the name of the agent that answers, or answered last.
    pub fn speaker(&self) -> String {
        if let Some(SessionEvent::Asked { speaker }) = &self.asked {
            return speaker.display_name.clone();
        }
        let meta = self.floor.meta.as_ref();
        let last = meta.and_then(|meta| meta.answered_by.clone());
        last.unwrap_or_else(|| "the agent".to_owned())
    }

    /// Applies an event.
    pub fn take(&mut self, session_event: &SessionEvent) {
        match session_event {
            SessionEvent::Opened { floor } | SessionEvent::Over { floor } => {
                *self = LiveState {
                    floor: floor.as_ref().clone(),
                    permissions: self.permissions.take(),
                    unsent: self.unsent.take(),
                    last_answer: std::mem::take(&mut self.last_answer),
                    ..LiveState::blank(floor.id)
                };
            }
            SessionEvent::Began => self.answering = true,
            SessionEvent::Text { text } => self.text.push_str(text),
            SessionEvent::Thought { text } => self.thought.push_str(text),
            SessionEvent::Heard { event } => self.heard(event, session_event),
            SessionEvent::Durable { .. } => {
                if let Some(entry) = session_event.entry() {
                    self.durable(&entry);
                }
            }
            SessionEvent::Held { .. } => {
                self.floor.unsaved = true;
                self.said();
            }
            SessionEvent::Asked { .. } => {
                self.said();
                self.asked = Some(session_event.clone());
            }
            SessionEvent::Failed { .. } => self.said(),
            SessionEvent::Routed {
                output: Output::Queue(_),
            } => self.queue = Some(session_event.clone()),
            SessionEvent::MayI { .. } => self.question = Some(session_event.clone()),
            SessionEvent::Settled { .. } => self.question = None,
            SessionEvent::Permissions { .. } => self.permissions = Some(session_event.clone()),
            SessionEvent::Unsent { messages, .. } => {
                let event = || session_event.clone();
                self.unsent = (!messages.is_empty()).then(event);
            }
            SessionEvent::Moved { to } => self.floor.id = *to,
            SessionEvent::Gone { .. } | SessionEvent::NotOpened { .. } => {
                *self = LiveState {
                    floor: self.floor.clone(),
                    unsent: self.unsent.take(),
                    ..LiveState::blank(self.floor.id)
                };
            }
            SessionEvent::Routed { .. }
            | SessionEvent::Pair { .. }
            | SessionEvent::Started { .. }
            | SessionEvent::Printed { .. }
            | SessionEvent::Withdrawn { .. }
            | SessionEvent::Notice { .. } => {}
        }
    }

    /// Returns events that recreate the state for a client that joins: as they happened, with text
    /// joined.
    pub fn replay(&self) -> Vec<SessionEvent> {
        let mut all = vec![SessionEvent::Opened {
            floor: Box::new(self.floor.clone()),
        }];
        all.extend(self.permissions.clone());
        all.extend(self.unsent.clone());
        if !self.answering {
            return all;
        }
        all.push(SessionEvent::Began);
        all.extend(self.queue.clone());
        all.extend(self.asked.clone());
        all.extend(self.todos.clone());
        all.extend(self.calls.iter().map(|call| SessionEvent::Heard {
            event: AgentEvent::ToolStarted(call.clone()),
        }));
        if !self.thought.is_empty() {
            let text = self.thought.clone();
            all.push(SessionEvent::Thought { text });
        }
        if !self.text.is_empty() {
            let text = self.text.clone();
            all.push(SessionEvent::Text { text });
        }
        all.extend(self.question.clone());
        all
    }

    fn heard(&mut self, event: &AgentEvent, session_event: &SessionEvent) {
        match event {
            AgentEvent::Todos(_) => self.todos = Some(session_event.clone()),
            AgentEvent::ToolStarted(call) => self.calls.push(call.clone()),
            AgentEvent::ToolCompleted { id, .. } => self.calls.retain(|call| call.id != *id),
            _ => {}
        }
    }

    fn durable(&mut self, entry: &Entry) {
        let id = self.floor.id;
        let meta = self
            .floor
            .meta
            .get_or_insert_with(|| SessionMeta::blank(id));
        meta.apply(entry);
        if let Some(message) = entry.message().filter(|one| one.role == Role::Assistant) {
            let letters = message.content.chars().take(LONGEST_TEXT);
            self.last_answer = letters.collect();
            self.said();
        }
    }

    /// Clears the partial answer, which is a message now.
    fn said(&mut self) {
        self.text.clear();
        self.thought.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_agents::approval::{Approval, PermissionState};
    use tertulia_core::entry::{Speaker, SpeakerKind};

    fn id() -> SessionId {
        "01890000-0000-7000-8000-000000000001".parse().unwrap()
    }

    fn text(text: &str) -> SessionEvent {
        SessionEvent::Text { text: text.into() }
    }

    #[test]
    fn who_joins_later_sees_what_is_always_allowed() {
        let mut moment = LiveState::blank(id());
        let floor = || Box::new(SessionState::blank(id()));
        let permissions = SessionEvent::Permissions {
            state: PermissionState {
                mode: Approval::Ask,
                always: vec!["file_edit".into()],
            },
        };
        moment.take(&SessionEvent::Opened { floor: floor() });
        moment.take(&permissions);
        moment.take(&SessionEvent::Over { floor: floor() });
        assert_eq!(moment.replay()[1..], [permissions]);
        // Permissions end with the conversation.
        let farewell = tertulia_engine::event::SessionEnd::default();
        moment.take(&SessionEvent::Gone { farewell });
        assert_eq!(moment.replay().len(), 1);
    }

    #[test]
    fn who_joins_in_the_middle_hears_what_is_being_said() {
        let mut moment = LiveState::blank(id());
        assert_eq!(moment.replay().len(), 1);
        moment.take(&SessionEvent::Began);
        let asked = SessionEvent::Asked {
            speaker: Speaker::plain("ben", SpeakerKind::Ai),
        };
        moment.take(&asked);
        moment.take(&text("one "));
        moment.take(&text("two"));
        let replay = moment.replay();
        assert_eq!(replay[1..], [SessionEvent::Began, asked, text("one two")]);
        let floor = Box::new(SessionState::blank(id()));
        moment.take(&SessionEvent::Over { floor });
        assert_eq!(moment.replay().len(), 1);
    }
}
