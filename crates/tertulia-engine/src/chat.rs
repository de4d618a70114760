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
}

impl Chat {
    /// Creates a chat in which the user has the turn. The context is compacted above `compact_at`
    /// tokens.
    pub fn new(agent: Arc<dyn Agent>, compact_at: Option<u64>) -> Chat {
        Chat {
            model: agent.model().map(str::to_owned),
            agent,
            compact_at,
        }
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
                Effect::Append(vec![Body::Message(message)])
            }
            Event::Saved(_) => Effect::Ask(Box::new(Ask {
                agent: Ok(self.agent.clone()),
                other_model: None,
                speaker: Speaker::plain(self.agent.name(), SpeakerKind::Ai),
                model: self.model.clone(),
                thread: None,
                prompt: None,
                part: None,
                access: None,
                compact_at: self.compact_at,
            })),
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
}
