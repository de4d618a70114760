//! Compaction: an agent summarises the older part of a context. The log keeps all of it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Conversation;
use super::ask::{Asking, tokens_of};
use super::request::with_files;
use crate::context::{
    CONTEXT_BYTES, ContextMessage, SUMMARISE, Thread, context, older, shortened, total_weight,
};
use crate::frontend::Frontend;
use crate::notice::Notice;
use crate::policy::Policy;
use crate::single_answer::single_answer;
use crate::team::summary::{SummaryRequest, SummaryResult, TeamSummary};
use crate::tokens;
use tertulia_agents::{Agent, AgentError, FailureKind, PromptMessage, ToolSide};
use tertulia_core::entry::human;
use tertulia_core::entry::{Body, Compacted, Role, Usage};
use tertulia_core::redact::redact;
use tertulia_core::team::markers;

/// Tokens of the newest messages that are never summarised, without a threshold.
const KEEP: u64 = 8_000;

/// Smallest room in bytes that is tried for the request of a team's summary.
const LEAST_ROOM: usize = 2_000;

/// Result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// The older part is summarised.
    Done,
    /// There is no older part.
    Nothing,
    /// It could not be summarised, which was reported.
    Failed,
    /// The settings turn it off.
    Off,
}

/// Returns how many tokens of the newest messages stay as they are.
fn kept(threshold: Option<u64>) -> u64 {
    threshold.map_or(KEEP, |threshold| threshold / 4)
}

impl Asking<'_> {
    /// Decides whether a context is compacted before the agent is asked: if the agent would get more
    /// tokens than its threshold. Besides, the user can ask for it, and an agent that rejects a prompt
    /// as too long causes it.
    pub(super) async fn compact_if_due(&mut self) {
        let Some(threshold) = self.ask.compact_at else {
            return;
        };
        // An agent with a memory of its own takes care of it.
        if self.agent.tools() == ToolSide::Its || self.context().past().is_empty() {
            return;
        }
        if self.needs_compaction(threshold).await {
            let keep = kept(Some(threshold));
            self.compact_beyond(keep).await;
        }
    }

    /// Returns true if the prompt has more tokens than the threshold and compaction would help.
    async fn needs_compaction(&mut self, threshold: u64) -> bool {
        let tools = self.tools_as_text();
        let context = self.context();
        let reported = context.reported.map_or(0, |reported| reported.tokens);
        // An upper limit of the tokens: those that the agent reported last, and one per byte since
        // then. Counting everything before each answer would cost more than a save.
        let weight = context.weight();
        let at_most = match context.reported {
            Some(last) if last.weight.is_some() => {
                last.tokens + weight.saturating_sub(last.weight.unwrap_or(weight))
            }
            _ => weight + tools.len() as u64,
        };
        if at_most.max(reported) <= threshold {
            return false;
        }
        let messages: Vec<PromptMessage> = context.given().cloned().collect();
        let counted = tokio::task::spawn_blocking(move || {
            let said: u64 = messages.iter().map(tokens_of).sum();
            (said, tokens::count(&tools))
        });
        let Ok((said, tools)) = counted.await else {
            return false;
        };
        // The provider's count covers the whole prompt, and the answer that is part of it now.
        let whole = (said + tools).max(reported);
        // If the tools are most of it, summarising few messages again and again would not help.
        let counted = if tools <= threshold / 2 { whole } else { said };
        counted > threshold && said > kept(Some(threshold))
    }

    /// Describes the tools as the agent gets them.
    fn tools_as_text(&self) -> String {
        let specs = self.tool_specs();
        let texts = specs.iter().map(|spec| {
            let parameters = spec.parameters.to_string();
            format!("{} {} {parameters}", spec.name, spec.description)
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Compacts at least the older half of the context, because the agent cannot read more.
    pub(super) async fn compact(&mut self) -> Compaction {
        let half = half_of(self.context().past()).await;
        let keep = kept(self.ask.compact_at).min(half);
        self.compact_beyond(keep).await
    }

    async fn compact_beyond(&mut self, keep: u64) -> Compaction {
        let (thread, agent, cancel) = (self.ask.thread, &self.agent, &self.cancel);
        self.conversation
            .compact_beyond(thread, agent, keep, self.frontend, cancel)
            .await
    }
}

impl Conversation {
    /// Compacts now, because the user asks for it: at least the older half of a chat's context,
    /// however short it is; what a team's prompts leave out. Returns `None` for pairs.
    pub async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Option<Compaction> {
        if let Policy::Team(team) = &self.policy {
            let request = match team.compaction() {
                Ok(request) => request,
                Err(why) => return Some(why),
            };
            self.cancel = cancel.clone();
            return Some(self.compact_team(*request, frontend).await);
        }
        let (Policy::Chat(chat), Some(context)) = (&self.policy, self.contexts.get(&None)) else {
            return None;
        };
        let agent = chat.agent().clone();
        let half = half_of(context.past()).await;
        let keep = kept(self.options.compact_at).min(half);
        self.cancel = cancel.clone();
        let done = self
            .compact_beyond(None, &agent, keep, frontend, cancel)
            .await;
        Some(done)
    }

    /// Summarises the oldest messages of a context, all but the newest that have at most `keep`
    /// tokens.
    async fn compact_beyond(
        &mut self,
        thread: Thread,
        agent: &Arc<dyn Agent>,
        keep: u64,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Compaction {
        let Some(context) = self.contexts.get(&thread) else {
            return Compaction::Nothing;
        };
        let past = context.past().to_vec();
        let cut = tokio::task::spawn_blocking(move || older(&past, keep, tokens_of)).await;
        let Ok(mut cut) = cut else {
            return Compaction::Nothing;
        };
        let (words, usage, upto) = loop {
            let past = &context.messages()[..cut];
            let Some(upto) = past.last().and_then(|said| said.seq) else {
                return Compaction::Nothing;
            };
            frontend.show(Notice::Compacting { messages: cut }.into());
            match self.summarise(agent, context.summary(), past, cancel).await {
                Ok((words, usage)) => break (words, usage, upto),
                // Even that was too much at once: less of it, and the rest the next time.
                Err(error) if error.kind == FailureKind::TooLong && cut > 1 => cut /= 2,
                Err(error) => {
                    frontend.show(Notice::NotCompacted(error).into());
                    return Compaction::Failed;
                }
            }
        };
        let entry = Body::Compacted(Compacted {
            upto,
            summary: words.clone(),
            agent: agent.name().to_owned(),
            model: agent.model().map(str::to_owned),
            usage,
            thread: thread.map(|role| role.name().to_owned()),
        });
        self.write(None, vec![entry], frontend).await;
        if let Some(context) = self.contexts.get_mut(&thread) {
            context.compact(cut, &words);
        }
        frontend.show(Notice::Compacted.into());
        Compaction::Done
    }

    async fn compact_team(
        &mut self,
        request: SummaryRequest,
        frontend: &mut dyn Frontend,
    ) -> Compaction {
        if let Err(error) = self.may_work(&*request.agent, frontend).await {
            frontend.show(Notice::NotCompacted(error).into());
            return Compaction::Failed;
        }
        let result = self.summarise_team(request, frontend).await;
        let done = match &result {
            SummaryResult::Made(_) => Compaction::Done,
            SummaryResult::Failed | SummaryResult::NotAsked => Compaction::Failed,
        };
        if let Policy::Team(team) = &mut self.policy {
            team.summarised(result);
        }
        done
    }

    /// Lets an agent summarise messages of a team, and saves the summary.
    pub(super) async fn summarise_team(
        &mut self,
        request: SummaryRequest,
        frontend: &mut dyn Frontend,
    ) -> SummaryResult {
        let SummaryRequest { agent, batch } = request;
        // The question whether it may work in this folder comes with its prompt.
        if self.asks_about_folder(&*agent) {
            return SummaryResult::NotAsked;
        }
        let cancel = self.cancel.clone();
        let (mut count, mut room) = (batch.len(), batch.room);
        let Some(mut upto) = batch.upto(count) else {
            return SummaryResult::NotAsked;
        };
        let (words, usage) = loop {
            frontend.show(Notice::Compacting { messages: count }.into());
            let messages = with_files(vec![batch.request(count, room)], &agent);
            match self.summary_of(&agent, messages, &cancel).await {
                Ok((words, usage)) => break (words.trim().to_owned(), usage),
                // Even that was too much at once: less of it, and the rest the next time.
                Err(error) if error.kind == FailureKind::TooLong && room > LEAST_ROOM => {
                    match batch.upto(count / 2) {
                        Some(end) => (count, upto) = (count / 2, end),
                        None => room /= 2,
                    }
                }
                Err(error) => {
                    frontend.show(Notice::NotCompacted(error).into());
                    return SummaryResult::Failed;
                }
            }
        };
        let entry = Body::Compacted(Compacted {
            upto,
            summary: words.clone(),
            agent: agent.name().to_owned(),
            model: agent.model().map(str::to_owned),
            usage,
            thread: None,
        });
        if self.write(None, vec![entry], frontend).await.is_none() {
            return SummaryResult::Failed;
        }
        frontend.show(Notice::Compacted.into());
        SummaryResult::Made(TeamSummary {
            upto,
            text: markers::shown(&redact(&words).text),
        })
    }

    /// Lets an agent summarise messages, with the summary of what was before them.
    async fn summarise(
        &self,
        agent: &Arc<dyn Agent>,
        before: Option<&PromptMessage>,
        past: &[ContextMessage],
        cancel: &CancellationToken,
    ) -> Result<(String, Option<Usage>), AgentError> {
        let asked = PromptMessage::plain(Role::User, human().prompt_name(), SUMMARISE);
        let mut messages = with_files(context(before, past, &[asked], CONTEXT_BYTES), agent);
        loop {
            let room = total_weight(&messages) / 2;
            match self.summary_of(agent, messages.clone(), cancel).await {
                // Of several messages, the caller summarises fewer; a single one is shortened.
                Err(error) if error.kind == FailureKind::TooLong && past.len() == 1 => {
                    messages = shortened(messages, room).ok_or(error)?;
                }
                result => return result,
            }
        }
    }

    /// Returns an agent's answer to messages that end with the request for a summary.
    async fn summary_of(
        &self,
        agent: &Arc<dyn Agent>,
        messages: Vec<PromptMessage>,
        cancel: &CancellationToken,
    ) -> Result<(String, Option<Usage>), AgentError> {
        let marker = self.agent_marker(agent);
        let nothing = "the agent gave no summary";
        let answer = single_answer(agent, messages, marker, nothing, cancel).await?;
        Ok((answer.text, answer.usage))
    }
}

/// Returns half of the tokens of messages.
async fn half_of(past: &[ContextMessage]) -> u64 {
    let past = past.to_vec();
    let counted = tokio::task::spawn_blocking(move || {
        past.iter().map(|said| tokens_of(&said.words)).sum::<u64>()
    });
    counted.await.map_or(0, |tokens| tokens / 2)
}
