//! The policy of a chat: every message of the user goes to one agent.

use std::sync::Arc;

use crate::answer::TurnEnd;
use crate::context::Context;
use crate::conversation::TurnResult;
use crate::event::{SessionEvent, Tone};
use crate::policy::{Ask, Effect, Event, View};
use tertulia_agents::Agent;
use tertulia_core::entry::{Body, Message, Role, Speaker, SpeakerKind, human, plain};

/// Why the last message is not asked again.
const NOTHING_TO_RETRY: &str = "nothing to retry: the last message was answered, or stopped by you";

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

    /// Returns the entries that are to be saved before the first message.
    pub fn opening(&mut self) -> &mut Vec<Body> {
        &mut self.opening
    }

    /// Lets another agent answer the next message. Returns the one before it.
    pub fn switch(&mut self, agent: Arc<dyn Agent>, compact_at: Option<u64>) -> Arc<dyn Agent> {
        self.model = agent.model().map(str::to_owned);
        self.compact_at = compact_at;
        std::mem::replace(&mut self.agent, agent)
    }

    /// Saves an entry together with the first message, instead of an earlier one of its kind.
    pub fn open_with(&mut self, entry: Body) {
        self.opening.retain(|body| body.kind() != entry.kind());
        self.opening.push(entry);
    }

    /// Returns the agent.
    pub fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }

    /// Processes an event.
    pub fn step(&mut self, event: Event, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        match event {
            // Asks again for the answer to the last message, which is in the log already.
            Event::Said { prompt, .. } if prompt.text.is_empty() => {
                let context = view.contexts.get(&None);
                if context.is_some_and(Context::is_unanswered) {
                    return self.ask();
                }
                shown.push(SessionEvent::notice(Tone::Warning, NOTHING_TO_RETRY));
                Effect::WaitFor(TurnResult::Chat(TurnEnd::Refused))
            }
            Event::Said { prompt, .. } => {
                // Saved with the message, so that a session resumes with its agent however the
                // answer ends.
                let message = Message {
                    asked: Some(self.agent.name().to_owned()),
                    attachments: prompt.attached,
                    client_id: prompt.client_id,
                    ..plain(&human(), Role::User, prompt.text)
                };
                let mut bodies = self.opening.clone();
                bodies.push(Body::Message(message));
                Effect::Append(bodies)
            }
            Event::Saved(_) => {
                self.opening.clear();
                self.ask()
            }
            Event::Answered(answered) => {
                self.model = answered.model;
                Effect::WaitFor(TurnResult::Chat(answered.end))
            }
            Event::Refused
            | Event::Loaded
            | Event::Recalled(..)
            | Event::Unreadable(_)
            | Event::Summarised(_) => Effect::WaitFor(TurnResult::Chat(TurnEnd::Refused)),
        }
    }

    fn ask(&self) -> Effect {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Answered, Contexts};
    use std::time::Duration;
    use tertulia_agents::demo::Demo;
    use tertulia_core::entry::Lost;

    fn chat() -> Chat {
        Chat::new(Arc::new(Demo::new("demo", Duration::ZERO)), None)
    }

    /// Processes an event without a context.
    fn step(chat: &mut Chat, event: Event) -> Effect {
        step_in(chat, event, &Contexts::new())
    }

    fn step_in(chat: &mut Chat, event: Event, contexts: &Contexts) -> Effect {
        let view = View {
            meta: None,
            unsaved: false,
            cancelled: false,
            now: jiff::Timestamp::UNIX_EPOCH,
            contexts,
        };
        chat.step(event, &view, &mut Vec::new())
    }

    /// A context of these messages; an answer that was cut off ends in `…`.
    fn contexts(messages: &[(&Speaker, Role, &str)]) -> Contexts {
        let mut context = Context::default();
        for (speaker, role, text) in messages {
            let message = Message {
                interrupted: text.ends_with('…'),
                ..plain(speaker, *role, (*text).to_owned())
            };
            let body = Body::Message(message);
            context.add(None, &body, &body);
        }
        Contexts::from([(None, context)])
    }

    #[test]
    fn an_unanswered_message_is_asked_again_without_another_one() {
        let (you, demo) = (human(), Speaker::plain("demo", SpeakerKind::Ai));
        let asks = |messages: &[(&Speaker, Role, &str)]| {
            let effect = step_in(&mut chat(), said(""), &contexts(messages));
            match effect {
                Effect::Ask(_) => true,
                Effect::WaitFor(TurnResult::Chat(TurnEnd::Refused)) => false,
                other => panic!("{other:?}"),
            }
        };
        let question = (&you, Role::User, "why?");
        assert!(asks(&[question]));
        assert!(asks(&[question, (&demo, Role::Assistant, "Because of…")]));
        assert!(!asks(&[question, (&demo, Role::Assistant, "Because.")]));
        assert!(!asks(&[]));
    }

    fn said(text: &str) -> Event {
        Event::Said {
            by: None,
            prompt: text.into(),
        }
    }

    #[test]
    fn words_are_saved_before_the_agent_is_asked() {
        let mut chat = chat();
        let Effect::Append(bodies) = step(&mut chat, said("  hello\n")) else {
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
        let effect = step(&mut chat, Event::Saved(Vec::new()));
        assert!(matches!(effect, Effect::Ask(_)), "{effect:?}");
        let answered = Answered {
            end: TurnEnd::Answered,
            said: Vec::new(),
            model: None,
        };
        let effect = step(&mut chat, Event::Answered(answered));
        assert!(matches!(
            effect,
            Effect::WaitFor(TurnResult::Chat(TurnEnd::Answered))
        ));
    }

    #[test]
    fn a_refusal_gives_the_user_the_turn() {
        let mut chat = chat();
        step(&mut chat, said("x"));
        let effect = step(&mut chat, Event::Refused);
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
        let mut appended = |event| match step(&mut chat, event) {
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
