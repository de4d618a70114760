//! Prompts of a team's members, and the summary of what they do not contain any more.

use std::sync::Arc;

use super::{Stage, Team, TeamAgent};
use crate::conversation::Compaction;
use crate::policy::{Ask, Effect};
use crate::team::events::Turn;
use crate::team::memory::{Recalled, Spoken};
use crate::team::prompt::{FittedPrompt, Material, prompt};
use crate::team::queue::Item;
use crate::team::summary::{Batch, SummaryRequest, SummaryResult};
use tertulia_agents::{Agent, Part, PromptMessage, ToolSide};
use tertulia_core::entry::Role;
use tertulia_core::id::EntryId;
use tertulia_core::team::markers::{self, Intent};

impl Team {
    /// Prompts a member. Before that, lets it summarise what its prompt leaves out, if that is due and
    /// was not tried just now.
    pub(super) fn ask(&mut self, turn: Turn, item: Item, is_summarised: bool) -> Effect {
        self.forget();
        let target = &item.request.target;
        let member = self.router.members().iter();
        let member = member.clone().find(|member| member.id == *target);
        let (Some(member), Some(agent)) = (member, self.agents.get(target)) else {
            // Unreachable: the queue holds only members, and the router does not prompt people.
            return self.wait(None);
        };
        let Some(recalled) = self.memory.recall(item.request.parent) else {
            return self.wait(None);
        };
        let fitted = self.fitted(agent, &recalled, item.request.intent);
        if let (Ok(agent), false) = (&agent.agent, is_summarised)
            && let Some(batch) = self.summaries.due(left_out(&recalled, &fitted))
        {
            let request = summary_request(agent, batch);
            self.stage = Stage::Summarising(turn, item);
            return Effect::Summarise(request);
        }
        let (prompt, part) = self.prompt(agent, &recalled, fitted);
        let speaker = member.speaker();
        let ask = Ask {
            agent: agent.agent.clone(),
            other_model: None,
            speaker: speaker.clone(),
            model: None,
            thread: None,
            prompt: Some(prompt),
            part: Some(part),
            access: None,
            compact_at: None,
        };
        self.asked += 1;
        self.stage = Stage::Asking {
            turn,
            parent: item.request.parent,
            speaker,
        };
        Effect::Ask(Box::new(ask))
    }

    /// Returns a request for a summary of all messages that the next prompt would leave out, or why
    /// there is none. The first member with an agent writes it.
    pub fn compaction(&self) -> Result<Box<SummaryRequest>, Compaction> {
        if !self.summaries.is_on() {
            return Err(Compaction::Off);
        }
        let members = self.router.members().iter();
        let mut agents = members.filter_map(|member| {
            let of = self.agents.get(&member.id)?;
            Some((of, of.agent.as_ref().ok()?))
        });
        let newest = self.memory.newest();
        let recalled = newest.and_then(|newest| self.memory.recall(newest));
        let (Some((of, agent)), Some(recalled)) = (agents.next(), recalled) else {
            return Err(Compaction::Nothing);
        };
        let fitted = self.fitted(of, &recalled, Intent::P2);
        let batch = self.summaries.batch(left_out(&recalled, &fitted));
        match batch {
            Some(batch) => Ok(summary_request(agent, batch)),
            None => Err(Compaction::Nothing),
        }
    }

    /// Processes the result of a summary.
    pub fn summarised(&mut self, result: SummaryResult) {
        self.summaries.end(result);
    }

    /// Drops the messages that no prompt contains any more.
    pub(super) fn forget(&mut self) {
        let waiting = self.router.queue().items().iter();
        let mut awaited: Vec<EntryId> = waiting.map(|item| item.request.parent).collect();
        awaited.extend(self.router.asked().map(|(_, item)| item.request.parent));
        let left = self.memory.forget(&awaited);
        self.summaries.take(left);
    }

    /// Builds the text of a member's prompt, with the summary if messages are missing in it.
    fn fitted(&self, agent: &TeamAgent, recalled: &Recalled<'_>, intent: Intent) -> FittedPrompt {
        let tools = agent.agent.as_ref().map(|agent| agent.tools());
        let material = Material {
            system: &agent.system,
            system_apart: tools == Ok(ToolSide::Ours),
            task: self.task.as_deref(),
            summary: self.summaries.text(false),
            recalled,
            intent,
        };
        let fitted = prompt(agent.layout, &material, self.max_bytes);
        let summary = self.summaries.text(fitted.left_out > 0);
        if material.summary == summary {
            return fitted;
        }
        prompt(
            agent.layout,
            &Material {
                summary,
                ..material
            },
            self.max_bytes,
        )
    }

    /// Makes a prompt of its text.
    fn prompt(
        &self,
        agent: &TeamAgent,
        recalled: &Recalled<'_>,
        fitted: FittedPrompt,
    ) -> (PromptMessage, Part) {
        let system = &agent.system;
        let newest = recalled.message;
        let part = Part {
            system: system.clone(),
            from: newest.from.clone(),
            words: newest.text.clone(),
            next: handed_over(system),
            ..Part::default()
        };
        let room = self.max_bytes.saturating_sub(fitted.text.len());
        let prompt = PromptMessage {
            attachments: recalled.files(room),
            ..PromptMessage::plain(Role::User, &newest.from, fitted.text)
        };
        (prompt, part)
    }
}

fn summary_request(agent: &Arc<dyn Agent>, batch: Batch) -> Box<SummaryRequest> {
    Box::new(SummaryRequest {
        agent: agent.clone(),
        batch,
    })
}

/// Returns the earlier messages that a prompt has no room for.
fn left_out<'a, 'b>(recalled: &'a Recalled<'b>, fitted: &FittedPrompt) -> &'a [&'b Spoken] {
    &recalled.context[..fitted.left_out]
}

/// Returns the names in the `[NEXT]` markers of a member's instructions.
fn handed_over(system: &str) -> Vec<String> {
    let next = markers::parse(system).next.into_iter();
    next.map(|addressee| addressee.name).collect()
}
