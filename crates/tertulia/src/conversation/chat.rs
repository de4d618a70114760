//! One human and one agent, as a pure machine: an event comes in, effects go out as data.
//!
//! ```text
//! Said → Save the words → Saved → Ask the agent → Heard … Heard → Ended → Save the answer → Saved → over
//! ```
//!
//! The order is the promise: words are durable before an agent sees them, an answer before anybody
//! goes on.

use jiff::{SignedDuration, Timestamp};

use crate::agent::{AgentError, AgentEvent, FailureKind};
use crate::entry::{Body, Failed, MESSAGE_LIMIT, Message, Role, Speaker, SpeakerKind, Usage};

/// Text that has been on the screen for so long is kept, even if the answer is not finished.
const KEEP_AFTER: SignedDuration = SignedDuration::from_millis(700);

/// The machine.
#[derive(Debug)]
pub struct Chat {
    human: Speaker,
    agent: Speaker,
    model: Option<String>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// The human has the floor.
    Idle,
    /// The human's words are being saved.
    Hearing,
    /// The agent is answering.
    Answering(Answer),
    /// The answer is being saved.
    Closing(TurnEnd),
}

#[derive(Debug, Default)]
struct Answer {
    text: String,
    /// Bytes that came after the limit was reached.
    cut: usize,
    usage: Option<Usage>,
    /// Since when there is text that no draft holds.
    unkept_since: Option<Timestamp>,
}

/// What happens to a talk.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The human said something.
    Said(String),
    /// What was to be saved is saved, or is held in memory because it cannot be.
    Saved,
    /// What was to be saved was refused: it may not be in the log.
    Refused,
    /// The agent said something.
    Heard(AgentEvent, Timestamp),
    /// Time has passed.
    Tick(Timestamp),
    /// The agent has ended.
    Ended(Result<(), AgentError>),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Make these entries durable, then say [`Event::Saved`].
    Save(Vec<Body>),
    /// Ask the agent.
    Ask,
    /// Keep the half-written answer.
    KeepDraft(String),
    /// The human has the floor again.
    TurnOver(TurnEnd),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// With an answer.
    Answered,
    /// The agent was stopped.
    Cancelled,
    /// The agent failed.
    Failed(AgentError),
    /// The words were not taken.
    Refused,
}

impl Chat {
    /// A talk in which the human has the floor.
    pub fn new(human: Speaker, agent: Speaker, model: Option<String>) -> Chat {
        Chat {
            human,
            agent,
            model,
            phase: Phase::Idle,
        }
    }

    /// The speaker that answers.
    pub fn agent(&self) -> &Speaker {
        &self.agent
    }

    /// What follows from an event. One that does not fit the phase changes nothing.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        match (std::mem::replace(&mut self.phase, Phase::Idle), event) {
            (Phase::Idle, Event::Said(words)) => {
                self.phase = Phase::Hearing;
                vec![Effect::Save(vec![self.message(
                    &self.human,
                    Role::User,
                    words,
                )])]
            }
            (Phase::Hearing, Event::Saved) => {
                self.phase = Phase::Answering(Answer::default());
                vec![Effect::Ask]
            }
            (Phase::Hearing | Phase::Closing(_), Event::Refused) => {
                vec![Effect::TurnOver(TurnEnd::Refused)]
            }
            (Phase::Answering(mut answer), Event::Heard(heard, at)) => {
                answer.hear(heard, at);
                self.keep(answer, at)
            }
            (Phase::Answering(answer), Event::Tick(at)) => self.keep(answer, at),
            (Phase::Answering(answer), Event::Ended(result)) => self.close(answer, result),
            (Phase::Closing(end), Event::Saved) => vec![Effect::TurnOver(end)],
            (phase, _) => {
                self.phase = phase;
                Vec::new()
            }
        }
    }

    fn keep(&mut self, mut answer: Answer, now: Timestamp) -> Vec<Effect> {
        let due = answer
            .unkept_since
            .is_some_and(|since| now.duration_since(since) >= KEEP_AFTER);
        let effects = if due {
            answer.unkept_since = None;
            vec![Effect::KeepDraft(answer.text.clone())]
        } else {
            Vec::new()
        };
        self.phase = Phase::Answering(answer);
        effects
    }

    fn close(&mut self, answer: Answer, result: Result<(), AgentError>) -> Vec<Effect> {
        let silent = answer.text.is_empty();
        let result = match result {
            Ok(()) if silent => Err(AgentError::new(
                FailureKind::Failed,
                format!("{} ended without an answer", self.agent.display_name),
            )),
            other => other,
        };
        let mut bodies = Vec::new();
        if !silent {
            let mut message = Message {
                usage: answer.usage,
                model: self.model.clone(),
                interrupted: result.is_err(),
                ..plain(&self.agent, Role::Assistant, answer.text)
            };
            if answer.cut > 0 {
                message
                    .content
                    .push_str(&format!("\n[cut here: {} more bytes]", answer.cut));
            }
            bodies.push(Body::Message(message));
        }
        let end = match result {
            Ok(()) => TurnEnd::Answered,
            Err(error) if error.kind == FailureKind::Cancelled => {
                if silent {
                    bodies.push(self.failure(&error));
                }
                TurnEnd::Cancelled
            }
            Err(error) => {
                bodies.push(self.failure(&error));
                TurnEnd::Failed(error)
            }
        };
        self.phase = Phase::Closing(end);
        vec![Effect::Save(bodies)]
    }

    fn failure(&self, error: &AgentError) -> Body {
        Body::Failed(Failed {
            agent: self.agent.name.clone(),
            kind: error.kind.name().to_owned(),
            message: error.message.clone(),
            retry_at: None,
        })
    }

    fn message(&self, speaker: &Speaker, role: Role, content: String) -> Body {
        Body::Message(plain(speaker, role, content))
    }
}

/// A message without anything but words.
pub fn plain(speaker: &Speaker, role: Role, content: String) -> Message {
    Message {
        speaker: speaker.clone(),
        role,
        content,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        model: None,
        interrupted: false,
    }
}

/// The human at the keyboard.
pub fn human() -> Speaker {
    Speaker {
        id: "human".into(),
        name: "you".into(),
        display_name: "You".into(),
        kind: SpeakerKind::Human,
    }
}

impl Answer {
    fn hear(&mut self, event: AgentEvent, at: Timestamp) {
        match event {
            AgentEvent::Usage(usage) => self.usage = Some(usage),
            AgentEvent::Text(text) => {
                self.unkept_since.get_or_insert(at);
                // Text has no NUL; some programs print one all the same.
                let text = text.replace('\0', "\u{fffd}");
                let room = (MESSAGE_LIMIT - 100).saturating_sub(self.text.len());
                let fits = if self.cut > 0 {
                    0
                } else {
                    floor_char_boundary(&text, room)
                };
                self.text.push_str(&text[..fits]);
                self.cut += text.len() - fits;
            }
            _ => {}
        }
    }
}

fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chat() -> Chat {
        Chat::new(
            human(),
            Speaker::plain("demo", SpeakerKind::Ai),
            Some("m".into()),
        )
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn text(words: &str, millis: i64) -> Event {
        Event::Heard(AgentEvent::Text(words.into()), at(millis))
    }

    fn asked() -> Chat {
        let mut chat = chat();
        chat.step(Event::Said("hello".into()));
        assert_eq!(chat.step(Event::Saved), [Effect::Ask]);
        chat
    }

    fn saved(effects: &[Effect]) -> Vec<&Body> {
        effects
            .iter()
            .flat_map(|effect| match effect {
                Effect::Save(bodies) => bodies.iter().collect(),
                _ => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn words_are_saved_before_the_agent_is_asked() {
        let mut chat = chat();
        let effects = chat.step(Event::Said("  hello\n".into()));
        let [Body::Message(message)] = saved(&effects)[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(
            (message.content.as_str(), message.role),
            ("  hello\n", Role::User)
        );
        assert_eq!(chat.step(Event::Saved), [Effect::Ask]);
    }

    #[test]
    fn the_answer_is_saved_before_the_turn_is_over() {
        let mut chat = asked();
        assert_eq!(chat.step(text("good ", 0)), []);
        assert_eq!(chat.step(text("day", 10)), []);
        chat.step(Event::Heard(
            AgentEvent::Usage(Usage {
                input: 1,
                output: 2,
            }),
            at(11),
        ));
        let effects = chat.step(Event::Ended(Ok(())));
        let [Body::Message(message)] = saved(&effects)[..] else {
            panic!("{effects:?}")
        };
        assert_eq!(message.content, "good day");
        assert_eq!(
            (message.interrupted, message.usage),
            (
                false,
                Some(Usage {
                    input: 1,
                    output: 2
                })
            )
        );
        assert_eq!(
            chat.step(Event::Saved),
            [Effect::TurnOver(TurnEnd::Answered)]
        );
    }

    #[test]
    fn what_was_seen_for_a_while_is_kept() {
        let mut chat = asked();
        assert_eq!(chat.step(text("a", 0)), []);
        assert_eq!(chat.step(Event::Tick(at(600))), []);
        assert_eq!(
            chat.step(Event::Tick(at(800))),
            [Effect::KeepDraft("a".into())]
        );
        assert_eq!(chat.step(Event::Tick(at(9000))), []);
        assert_eq!(chat.step(text("b", 9100)), []);
        assert_eq!(
            chat.step(text("c", 9900)),
            [Effect::KeepDraft("abc".into())]
        );
    }

    #[test]
    fn failure_and_cancel_keep_what_was_said() {
        let failed = AgentError::new(FailureKind::Timeout, "slow");
        let mut chat = asked();
        chat.step(text("half", 0));
        let effects = chat.step(Event::Ended(Err(failed.clone())));
        let [Body::Message(message), Body::Failed(failure)] = saved(&effects)[..] else {
            panic!("{effects:?}")
        };
        assert!(message.interrupted);
        assert_eq!(
            (failure.kind.as_str(), failure.message.as_str()),
            ("timeout", "slow")
        );
        assert_eq!(
            chat.step(Event::Saved),
            [Effect::TurnOver(TurnEnd::Failed(failed))]
        );

        let mut chat = asked();
        chat.step(text("half", 0));
        let effects = chat.step(Event::Ended(Err(AgentError::cancelled())));
        assert!(matches!(saved(&effects)[..], [Body::Message(message)] if message.interrupted));
        assert_eq!(
            chat.step(Event::Saved),
            [Effect::TurnOver(TurnEnd::Cancelled)]
        );
    }

    #[test]
    fn silence_is_a_failure() {
        let mut chat = asked();
        let effects = chat.step(Event::Ended(Ok(())));
        assert!(matches!(saved(&effects)[..], [Body::Failed(_)]));
        assert!(matches!(
            chat.step(Event::Saved)[..],
            [Effect::TurnOver(TurnEnd::Failed(_))]
        ));
    }

    #[test]
    fn a_longer_answer_is_cut_with_a_mark() {
        let mut chat = asked();
        chat.step(text(&"漢".repeat(400_000), 0));
        chat.step(text("more", 1));
        let effects = chat.step(Event::Ended(Ok(())));
        let [Body::Message(message)] = saved(&effects)[..] else {
            panic!()
        };
        assert!(message.content.len() <= MESSAGE_LIMIT);
        assert!(
            message.content.ends_with(" more bytes]"),
            "{}",
            &message.content[message.content.len() - 60..]
        );
    }

    #[test]
    fn a_refusal_gives_the_floor_back() {
        let mut chat = chat();
        chat.step(Event::Said("x".into()));
        assert_eq!(
            chat.step(Event::Refused),
            [Effect::TurnOver(TurnEnd::Refused)]
        );
        assert_eq!(chat.step(Event::Said("y".into())).len(), 1);
    }

    fn events() -> impl Strategy<Value = Event> {
        prop_oneof![
            "[a-z]{0,3}".prop_map(Event::Said),
            Just(Event::Saved),
            Just(Event::Refused),
            ("[a-z]{0,3}", 0i64..5000).prop_map(|(words, millis)| text(&words, millis)),
            (0i64..5000).prop_map(|millis| Event::Tick(at(millis))),
            Just(Event::Ended(Ok(()))),
            Just(Event::Ended(Err(AgentError::cancelled()))),
        ]
    }

    proptest! {
        /// Whatever happens in whatever order, the machine never asks before it has saved, and the
        /// human gets the floor back.
        #[test]
        fn never_wedged_and_never_hasty(events in prop::collection::vec(events(), 0..60)) {
            let mut chat = chat();
            let mut saving = false;
            for event in events {
                let was_saved = matches!(event, Event::Saved);
                let effects = chat.step(event);
                if effects.contains(&Effect::Ask) {
                    prop_assert!(saving && was_saved);
                }
                saving = if effects.is_empty() { saving && !was_saved } else {
                    effects.iter().any(|effect| matches!(effect, Effect::Save(_)))
                };
            }
            chat.step(Event::Saved);
            chat.step(Event::Ended(Ok(())));
            chat.step(Event::Saved);
            prop_assert!(matches!(chat.phase, Phase::Idle));
        }
    }
}
