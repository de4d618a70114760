//! The policy of a chat: every message of the user goes to one agent.

use std::sync::Arc;

use crate::answer::TurnEnd;
use crate::conversation::TurnResult;
use crate::policy::{Ask, Effect, Event};
use tertulia_agents::Agent;
use tertulia_core::entry::{Body, Message, Role, Speaker, SpeakerKind, human, plain};

/// A chat with one agent.
#[derive(Debug)]
pub struct Chat {
    agent: Arc<dyn Agent>,
    /// The model of the last answer.
    model: Option<String>,
    compact_at: Option<u64>,
    /// Entries to save before the first message.
    opening: Vec<Body>,
}

impl Chat {
    /// Creates a chat in which the user has the turn. The context is compacted above `compact_at`
    /// tokens.
    pub fn new(agent: Arc<dyn Agent>, compact_at: Option<u64>) -> Chat {
        Chat {
            model: agent.model().map(str::to_owned),
            agent,
            compact_at,
            opening: Vec::new(),
        }
    }

    /// Sets the entries that are saved together with the first message.
    #[must_use]
    pub fn with_opening(mut self, opening: Vec<Body>) -> Chat {
        self.opening = opening;
        self
    }

    /// Returns the agent.
    pub fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }

    /// Processes an event.
    pub fn step(&mut self, event: Event) -> Effect {
        match event {
            Event::Said { text, .. } => {
                // Saved with the message, so that a session resumes with its agent however the
                // answer ends.
                let message = Message {
                    asked: Some(self.agent.name().to_owned()),
                    ..plain(&human(), Role::User, text)
                };
                let mut bodies = self.opening.clone();
                bodies.push(Body::Message(message));
                Effect::Append(bodies)
            }
            Event::Saved(_) => {
                self.opening.clear();
                Effect::Ask(Box::new(Ask {
                    agent: Ok(self.agent.clone()),
                    other_model: None,
                    speaker: Speaker::plain(self.agent.name(), SpeakerKind::Ai),
                    model: self.model.clone(),
                    thread: None,
                    prompt: None,
                    part: None,
                    access: None,
                    compact_at: self.compact_at,
                }))
            }
            Event::Answered(answered) => {
                self.model = answered.model;
                Effect::WaitFor(TurnResult::Chat(answered.end))
            }
            Event::Refused | Event::Loaded | Event::Recalled(..) | Event::Unreadable(_) => {
                Effect::WaitFor(TurnResult::Chat(TurnEnd::Refused))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Answered;
    use std::time::Duration;
    use tertulia_agents::demo::Demo;
    use tertulia_core::entry::Lost;

    fn chat() -> Chat {
        Chat::new(Arc::new(Demo::new("demo", Duration::ZERO)), None)
    }

    fn said(text: &str) -> Event {
        Event::Said {
            by: None,
            text: text.to_owned(),
        }
    }

    #[test]
    fn words_are_saved_before_the_agent_is_asked() {
        let mut chat = chat();
        let Effect::Append(bodies) = chat.step(said("  hello\n")) else {
            panic!("nothing is saved")
        };
        let [Body::Message(message)] = &bodies[..] else {
            panic!("{bodies:?}")
        };
        assert_eq!(
            (message.content.as_str(), message.role),
            ("  hello\n", Role::User)
        );
        assert_eq!(message.asked.as_deref(), Some("demo"));
        let effect = chat.step(Event::Saved(Vec::new()));
        assert!(matches!(effect, Effect::Ask(_)), "{effect:?}");
        let answered = Answered {
            end: TurnEnd::Answered,
            said: Vec::new(),
            thoughts: String::new(),
            model: None,
        };
        let effect = chat.step(Event::Answered(answered));
        assert!(matches!(
            effect,
            Effect::WaitFor(TurnResult::Chat(TurnEnd::Answered))
        ));
    }

    #[test]
    fn a_refusal_gives_the_user_the_turn() {
        let mut chat = chat();
        chat.step(said("x"));
        let effect = chat.step(Event::Refused);
        assert!(matches!(
            effect,
            Effect::WaitFor(TurnResult::Chat(TurnEnd::Refused))
        ));
    }

    #[test]
    fn the_opening_is_saved_once_with_the_first_message_that_is_accepted() {
        let opening = Body::Lost(Lost {
            reason: String::new(),
        });
        let mut chat = chat().with_opening(vec![opening.clone()]);
        let mut appended = |event| match chat.step(event) {
            Effect::Append(bodies) => bodies,
            _ => Vec::new(),
        };
        for refused in ["one", "two"] {
            let bodies = appended(said(refused));
            assert_eq!((bodies.len(), &bodies[0]), (2, &opening));
            appended(Event::Refused);
        }
        appended(said("three"));
        appended(Event::Saved(Vec::new()));
        assert_eq!(appended(said("four")).len(), 1);
    }
}
