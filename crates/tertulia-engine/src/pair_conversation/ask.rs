//! Prompts the instructor or the worker: model, prompt, tool access, and the result.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{PairConversation, Pause, message_to};
use crate::chat::TurnEnd;
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::pair::{PairEvent, PairRole, Todo, words};
use crate::runner::{Answered, Participant, PromptOverride};
use tertulia_agents::{Agent, AgentError, FailureKind, Part, ToolSide};
use tertulia_core::entry::{Body, Role, Thought};

impl PairConversation {
    /// Prompts an agent. Returns the reason if the conversation pauses after it.
    pub(super) async fn ask(
        &mut self,
        seat: PairRole,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<Pause> {
        if let Err(error) = self.load(frontend).await {
            return Some(Pause::Unreadable(error.to_string()));
        }
        if let Some(pause) = self.take_up(seat, frontend).await {
            return Some(pause);
        }
        let agent = match self.agent(seat, frontend).await {
            Ok(agent) => agent,
            Err(error) => {
                self.runner
                    .fail(&words::speaker(seat), &error, frontend)
                    .await;
                return self.failed(seat, error);
            }
        };
        self.compact_if_due(seat, &agent, frontend, cancel).await;
        let mut answered = self.answer(seat, &agent, false, frontend, cancel).await;
        if let TurnEnd::Failed(error) = &answered.end
            && error.kind == FailureKind::TooLong
            && answered.said.is_empty()
        {
            self.compact(seat, &agent, frontend, cancel).await;
            answered = self.answer(seat, &agent, true, frontend, cancel).await;
        }
        self.heard = answered.said.pop().map(|kept| kept.message.content);
        match answered.end {
            TurnEnd::Answered => {
                if seat == PairRole::Instructor {
                    let progress = self.progress();
                    frontend.show(SessionEvent::Pair {
                        event: PairEvent::Round(progress),
                    });
                    self.keep_thoughts(frontend).await;
                }
                None
            }
            TurnEnd::Cancelled => Some(Pause::Stopped(seat)),
            TurnEnd::Refused => Some(Pause::Refused),
            TurnEnd::Failed(error) => self.failed(seat, error),
        }
    }

    /// Pauses if the instructor failed; a worker's failure is reported to the instructor.
    fn failed(&self, seat: PairRole, error: AgentError) -> Option<Pause> {
        (seat == PairRole::Instructor).then_some(Pause::Failed(error))
    }

    /// Sends a message to an agent whose previous answer was cut off, which says so.
    async fn take_up(&mut self, seat: PairRole, frontend: &mut dyn Frontend) -> Option<Pause> {
        let fresh = std::mem::take(&mut self.fresh);
        let text = match seat {
            PairRole::Worker if !fresh => words::TAKE_UP,
            PairRole::Instructor if self.has_used_tools() => words::REPLY_AFTER_TOOLS,
            PairRole::Instructor if self.was_cut_off() => words::REPLY_AGAIN,
            _ => return None,
        };
        if seat == PairRole::Worker {
            frontend.show(SessionEvent::Pair {
                event: PairEvent::TakenUp,
            });
        }
        let message = message_to(seat, &words::narrator(), text.to_owned());
        self.tell(message, frontend).await
    }

    /// Returns true if the instructor's thread ends within a reply for which tools have run.
    fn has_used_tools(&self) -> bool {
        let said = self
            .threads
            .of(PairRole::Instructor)
            .context
            .messages
            .iter()
            .rev();
        let reply = said.take_while(|said| said.words.role != Role::User);
        reply.into_iter().any(|said| said.words.role == Role::Tool)
    }

    /// Returns true if the instructor's thread ends within a reply.
    fn was_cut_off(&self) -> bool {
        let last = self.threads.of(PairRole::Instructor).last();
        last.is_some_and(|words| words.role != Role::User)
    }

    async fn answer(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        shorten: bool,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Answered {
        let speaker = words::speaker(seat);
        frontend.show(SessionEvent::Asked {
            speaker: speaker.clone(),
        });
        let prompt_override = PromptOverride {
            shorten,
            ..self.prompt_override(seat, agent)
        };
        let agent_of = self.agent_of_mut(seat);
        let equipment = std::mem::take(&mut agent_of.equipment);
        let before = self.runner.equip(equipment);
        let occupied = Participant {
            agent: agent.clone(),
            speaker: speaker.clone(),
        };
        let answered = self
            .runner
            .answer(&occupied, prompt_override, frontend, cancel)
            .await;
        let heard = self.runner.take_written();
        let equipment = self.runner.equip(before);
        self.agent_of_mut(seat).equipment = equipment;
        self.threads.take_in(heard);
        if let TurnEnd::Failed(error) = &answered.end
            && seat == PairRole::Instructor
        {
            frontend.show(SessionEvent::Failed {
                speaker: speaker.clone(),
                error: error.clone(),
            });
        }
        answered
    }

    /// Adds the instructor's reasoning to the entries that the next write saves. Writes at once
    /// only if the pair waits for the user.
    async fn keep_thoughts(&mut self, frontend: &mut dyn Frontend) {
        let Some(text) = self.threads.take_thoughts() else {
            return;
        };
        let thread = PairRole::Instructor.name().to_owned();
        let text = words::cut(&text);
        self.opening.push(Body::Thought(Thought { thread, text }));
        let waits = self
            .pair()
            .is_none_or(|pair| matches!(pair.todo(), Todo::Wait(_)));
        if waits {
            let thought = std::mem::take(&mut self.opening);
            self.put_down(thought, frontend).await;
        }
    }

    async fn agent(
        &mut self,
        seat: PairRole,
        frontend: &mut dyn Frontend,
    ) -> Result<Arc<dyn Agent>, AgentError> {
        let chosen = match seat {
            PairRole::Worker => self
                .pair()
                .and_then(|pair| pair.last_reply.as_ref()?.worker_model.clone()),
            PairRole::Instructor => None,
        };
        let agent_of = self.agent_of(seat);
        let Some(model) = chosen else {
            return Ok(agent_of.agent.clone());
        };
        let model = meant(&agent_of.agent, model).await;
        frontend.show(SessionEvent::Pair {
            event: PairEvent::Chose(model.clone()),
        });
        (agent_of.with_model)(&model)
    }

    fn prompt_override(&self, seat: PairRole, agent: &Arc<dyn Agent>) -> PromptOverride {
        let system = match seat {
            PairRole::Instructor => self.system.as_str(),
            PairRole::Worker => words::WORKER,
        };
        let messages = self.threads.given(seat, system, agent.tools());
        let newest = messages.last();
        PromptOverride {
            part: Part {
                system: system.to_owned(),
                from: newest.map_or_else(String::new, |words| words.speaker.clone()),
                words: newest.map_or_else(String::new, |words| words.content.clone()),
                next: Vec::new(),
                role: Some(seat),
            },
            messages,
            thread: Some(seat.name().to_owned()),
            shorten: false,
        }
    }
}

/// Resolves a model name: `opus` is the provider's model of exactly that name, else the first that
/// contains it.
async fn meant(agent: &Arc<dyn Agent>, name: String) -> String {
    if agent.tools() != ToolSide::Ours {
        return name;
    }
    match agent.models().await {
        Ok(models) => closest(&models, &name).unwrap_or(name),
        // The provider may know the model although it cannot list its models.
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
