//! Asking one of the two: what they are given, what they may use, and what follows from how it ended.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::threads::Ear;
use super::{Duet, Pause, message_to};
use crate::chat::TurnEnd;
use crate::door::{Door, TalkEvent};
use crate::pair::{PairEvent, Seat, Todo, words};
use crate::run::{self, Answered, Brief};
use tertulia_agents::{Agent, AgentError, Chair, FailureKind, Part, ToolSide};
use tertulia_core::entry::{Body, Role, Thought};

impl Duet {
    /// Has whoever sits there answer.
    pub(super) async fn ask(
        &mut self,
        seat: Seat,
        door: &mut dyn Door,
        cancel: &CancellationToken,
    ) -> Option<Pause> {
        if let Err(error) = self.load(door).await {
            return Some(Pause::Unreadable(error.to_string()));
        }
        if let Some(pause) = self.take_up(seat, door).await {
            return Some(pause);
        }
        let agent = match self.agent(seat, door).await {
            Ok(agent) => agent,
            Err(error) => {
                self.talk.fail(&words::speaker(seat), &error, door).await;
                return self.failed(seat, error);
            }
        };
        self.compact_if_due(seat, &agent, door, cancel).await;
        let mut answered = self.answer(seat, &agent, false, door, cancel).await;
        if let TurnEnd::Failed(error) = &answered.end
            && error.kind == FailureKind::TooLong
            && answered.said.is_empty()
        {
            self.compact(seat, &agent, door, cancel).await;
            answered = self.answer(seat, &agent, true, door, cancel).await;
        }
        self.heard = answered.said.pop().map(|kept| kept.message.content);
        match answered.end {
            TurnEnd::Answered => {
                if seat == Seat::Instructor {
                    let progress = self.progress();
                    door.show(TalkEvent::Pair(&PairEvent::Round(progress)));
                    self.keep_thoughts(door).await;
                }
                None
            }
            TurnEnd::Cancelled => Some(Pause::Stopped(seat)),
            TurnEnd::Refused => Some(Pause::Refused),
            TurnEnd::Failed(error) => self.failed(seat, error),
        }
    }

    /// A worker's failure is for the instructor to deal with, the instructor's for the human.
    fn failed(&self, seat: Seat, error: AgentError) -> Option<Pause> {
        (seat == Seat::Instructor).then_some(Pause::Failed(error))
    }

    /// Tells whoever was cut off before that they were.
    async fn take_up(&mut self, seat: Seat, door: &mut dyn Door) -> Option<Pause> {
        let fresh = std::mem::take(&mut self.fresh);
        let text = match seat {
            Seat::Worker if !fresh => words::TAKE_UP,
            Seat::Instructor if self.has_used_tools() => words::REPLY_AFTER_TOOLS,
            Seat::Instructor if self.was_cut_off() => words::REPLY_AGAIN,
            _ => return None,
        };
        if seat == Seat::Worker {
            door.show(TalkEvent::Pair(&PairEvent::TakenUp));
        }
        let message = message_to(seat, &words::narrator(), text.to_owned());
        self.tell(message, door).await
    }

    /// Whether the instructor's thread ends in the middle of a reply for which tools were used.
    fn has_used_tools(&self) -> bool {
        let said = self.threads.of(Seat::Instructor).said.iter().rev();
        let reply = said.take_while(|said| said.words.role != Role::User);
        reply.into_iter().any(|said| said.words.role == Role::Tool)
    }

    /// Whether the instructor's thread ends in the middle of a reply.
    fn was_cut_off(&self) -> bool {
        let last = self.threads.of(Seat::Instructor).last();
        last.is_some_and(|words| words.role != Role::User)
    }

    async fn answer(
        &mut self,
        seat: Seat,
        agent: &Arc<dyn Agent>,
        shorten: bool,
        door: &mut dyn Door,
        cancel: &CancellationToken,
    ) -> Answered {
        let speaker = words::speaker(seat);
        door.show(TalkEvent::Asked(&speaker));
        let brief = Brief {
            shorten,
            ..self.brief(seat, agent)
        };
        let place = self.place_mut(seat);
        let equipment = std::mem::take(&mut place.equipment);
        let before = self.talk.equip(equipment);
        let occupied = run::Seat {
            agent: agent.clone(),
            speaker: speaker.clone(),
        };
        let mut ear = Ear::new(door);
        let answered = self.talk.answer(&occupied, brief, &mut ear, cancel).await;
        let heard = ear.heard();
        let equipment = self.talk.equip(before);
        self.place_mut(seat).equipment = equipment;
        self.threads.take_in(heard);
        if let TurnEnd::Failed(error) = &answered.end
            && seat == Seat::Instructor
        {
            door.show(TalkEvent::Failed(&speaker, error));
        }
        answered
    }

    /// Thoughts are worth keeping, and nothing waits for them: they go with what is written next.
    async fn keep_thoughts(&mut self, door: &mut dyn Door) {
        let Some(text) = self.threads.take_thoughts() else {
            return;
        };
        let thread = Seat::Instructor.name().to_owned();
        let text = words::cut(&text);
        self.opening.push(Body::Thought(Thought { thread, text }));
        let waits = self
            .pair()
            .is_none_or(|pair| matches!(pair.todo(), Todo::Wait(_)));
        if waits {
            let thought = std::mem::take(&mut self.opening);
            self.put_down(thought, door).await;
        }
    }

    async fn agent(
        &mut self,
        seat: Seat,
        door: &mut dyn Door,
    ) -> Result<Arc<dyn Agent>, AgentError> {
        let chosen = match seat {
            Seat::Worker => self
                .pair()
                .and_then(|pair| pair.last_reply.as_ref()?.worker_model.clone()),
            Seat::Instructor => None,
        };
        let place = self.place(seat);
        let Some(model) = chosen else {
            return Ok(place.agent.clone());
        };
        let model = meant(&place.agent, model).await;
        door.show(TalkEvent::Pair(&PairEvent::Chose(model.clone())));
        (place.with_model)(&model)
    }

    fn brief(&self, seat: Seat, agent: &Arc<dyn Agent>) -> Brief {
        let system = match seat {
            Seat::Instructor => self.system.as_str(),
            Seat::Worker => words::WORKER,
        };
        let messages = self.threads.given(seat, system, agent.tools());
        let newest = messages.last();
        Brief {
            part: Part {
                system: system.to_owned(),
                from: newest.map_or_else(String::new, |words| words.speaker.clone()),
                words: newest.map_or_else(String::new, |words| words.content.clone()),
                next: Vec::new(),
                seat: match seat {
                    Seat::Instructor => Chair::Instructor,
                    Seat::Worker => Chair::Worker,
                },
            },
            messages,
            thread: Some(seat.name().to_owned()),
            shorten: false,
        }
    }
}

/// The model that a name means: `opus` is the first of the provider's that is called so.
async fn meant(agent: &Arc<dyn Agent>, name: String) -> String {
    if agent.tools() != ToolSide::Ours {
        return name;
    }
    match agent.models().await {
        Ok(models) => closest(&models, &name).unwrap_or(name),
        // What a provider cannot list it may still know.
        Err(_) => name,
    }
}

fn closest(models: &[String], name: &str) -> Option<String> {
    let wanted = name.to_lowercase();
    let exact = models.iter().find(|model| **model == name);
    let like = || {
        models
            .iter()
            .find(|model| model.to_lowercase().contains(&wanted))
    };
    exact.or_else(like).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_mean_the_first_model_that_has_them() {
        let models = [
            "claude-sonnet-4-5",
            "claude-opus-4-6",
            "claude-opus-4-5",
            "opus",
        ];
        let models = models.map(str::to_owned);
        let check = |name, expected: Option<&str>| {
            assert_eq!(closest(&models, name).as_deref(), expected, "{name}");
        };
        check("Sonnet", Some("claude-sonnet-4-5"));
        check("opus", Some("opus"));
        check("claude-opus", Some("claude-opus-4-6"));
        check("gpt", None);
    }
}
