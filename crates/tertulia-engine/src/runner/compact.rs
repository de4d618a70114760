//! Compaction: an agent summarises the older part of a context. The log keeps all of it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ask::{tell, tokens_of};
use super::{CONTEXT_BYTES, Frontend, Notice, Runner};
use crate::context::{
    Context, ContextMessage, SUMMARISE, context, older, shortened, summary, total_weight, weight,
};
use crate::tokens;
use tertulia_agents::approval::Approval;
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, PromptMessage, ToolSide,
};
use tertulia_core::entry::human;
use tertulia_core::entry::{Body, Compacted, MESSAGE_LIMIT, Role, Usage};

/// Tokens of the newest messages that are never summarised, without a threshold.
const KEEP: u64 = 8_000;

/// Result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// The older part is summarised.
    Done,
    /// There is no older part.
    Nothing,
    /// It could not be summarised, which was reported.
    Failed,
}

/// What an agent would get, to decide whether that is too much.
pub(crate) struct Prompt {
    /// The messages.
    pub(crate) messages: Vec<PromptMessage>,
    /// Description of the tools.
    pub(crate) tools: String,
    /// Tokens of the last answer and its prompt, as the agent reported them.
    pub(crate) reported: u64,
}

/// What a compaction works on.
pub(crate) struct Compacting<'a> {
    /// The agent that summarises.
    pub(crate) agent: &'a Arc<dyn Agent>,
    /// The thread, in a pair.
    pub(crate) thread: Option<String>,
    /// Number of the oldest messages that may be summarised.
    pub(crate) past: usize,
}

impl Prompt {
    /// Returns true if the prompt has more tokens than the threshold and compaction would help: the
    /// only trigger.
    pub(crate) async fn exceeds(self, threshold: u64) -> bool {
        let reported = self.reported;
        let counted = tokio::task::spawn_blocking(move || {
            let said: u64 = self.messages.iter().map(tokens_of).sum();
            (said, tokens::count(&self.tools))
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
}

/// Returns how many tokens of the newest messages stay as they are.
fn kept(threshold: Option<u64>) -> u64 {
    threshold.map_or(KEEP, |threshold| threshold / 4)
}

impl Runner {
    /// Compacts the context of a chat if its agent would get more tokens than it should.
    pub(super) async fn compact_if_due(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) {
        let Some(threshold) = self.options.compact_at else {
            return;
        };
        let reported = self.told.map(|(tokens, _)| tokens).or(self.reported);
        let reported = reported.unwrap_or(0);
        // An agent with a memory of its own takes care of it.
        if self.prompt_override.is_some()
            || self.agent.tools() == ToolSide::Its
            || self.tokens_at_most().max(reported) <= threshold
        {
            return;
        }
        let prompt = Prompt {
            messages: self.given().cloned().collect(),
            tools: self.tools_as_text(),
            reported,
        };
        if prompt.exceeds(threshold).await {
            self.compact_beyond(kept(Some(threshold)), frontend, cancel)
                .await;
        }
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

    fn past_of_turn(&self) -> &[ContextMessage] {
        &self.context.messages[..self.turn_start.min(self.context.messages.len())]
    }

    fn given(&self) -> impl Iterator<Item = &PromptMessage> {
        let past = self.past_of_turn().iter().map(|said| &said.words);
        self.context.summary.iter().chain(past).chain(&self.turn)
    }

    /// Returns the size of what the agent would get, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.given().map(|words| weight(words) as u64).sum()
    }

    /// Returns an upper limit of the tokens without counting: those that the agent reported last,
    /// and one per byte since then. Counting everything before each answer would cost more than a
    /// save.
    fn tokens_at_most(&self) -> u64 {
        let weight = self.weight() + self.tools_as_text().len() as u64;
        match self.told {
            Some((tokens, then)) => tokens + self.weight().saturating_sub(then),
            None => weight,
        }
    }

    /// Compacts the context of a chat now, because the user asks for it or the agent cannot read
    /// more: at least the older half, however short it is.
    pub async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Compaction {
        if self.prompt_override.is_some() {
            return Compaction::Nothing;
        }
        let half = half_of(self.past_of_turn()).await;
        let keep = kept(self.options.compact_at).min(half);
        self.compact_beyond(keep, frontend, cancel).await
    }

    async fn compact_beyond(
        &mut self,
        keep: u64,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Compaction {
        let agent = self.agent.clone();
        let compacting = Compacting {
            agent: &agent,
            thread: None,
            past: self.past_of_turn().len(),
        };
        let mut context = std::mem::take(&mut self.context);
        let before = context.messages.len();
        let done = self
            .compact_context(&mut context, &compacting, keep, frontend, cancel)
            .await;
        if done == Compaction::Done {
            (self.told, self.reported) = (None, None);
            self.turn_start -= before - context.messages.len();
        }
        self.context = context;
        done
    }

    /// Summarises the oldest messages of a context, all but the newest that have at most `keep`
    /// tokens.
    pub(crate) async fn compact_context(
        &mut self,
        context: &mut Context,
        compacting: &Compacting<'_>,
        keep: u64,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Compaction {
        let past = context.messages[..compacting.past].to_vec();
        let cut = tokio::task::spawn_blocking(move || older(&past, keep, tokens_of)).await;
        let Ok(mut cut) = cut else {
            return Compaction::Nothing;
        };
        let (words, usage, upto) = loop {
            let past = &context.messages[..cut];
            let Some(upto) = past.last().and_then(|said| said.seq) else {
                return Compaction::Nothing;
            };
            tell(frontend, Notice::Compacting { messages: cut });
            let before = context.summary.as_ref();
            match self.summarise(compacting.agent, before, past, cancel).await {
                Ok((words, usage)) => break (words, usage, upto),
                // Even that was too much at once: less of it, and the rest the next time.
                Err(error) if error.kind == FailureKind::TooLong && cut > 1 => cut /= 2,
                Err(error) => {
                    tell(frontend, Notice::NotCompacted(error));
                    return Compaction::Failed;
                }
            }
        };
        let entry = Body::Compacted(Compacted {
            upto,
            summary: words.clone(),
            agent: compacting.agent.name().to_owned(),
            model: compacting.agent.model().map(str::to_owned),
            usage,
            thread: compacting.thread.clone(),
        });
        self.put_down(vec![entry], frontend).await;
        context.summary = Some(summary(&words));
        context.messages.drain(..cut);
        tell(frontend, Notice::Compacted);
        Compaction::Done
    }

    /// Lets an agent summarise messages, with the summary of what was before them.
    async fn summarise(
        &self,
        agent: &Arc<dyn Agent>,
        before: Option<&PromptMessage>,
        past: &[ContextMessage],
        cancel: &CancellationToken,
    ) -> Result<(String, Option<Usage>), AgentError> {
        let asked = PromptMessage::plain(Role::User, &human().display_name, SUMMARISE);
        let mut messages = context(before, past, &[asked], CONTEXT_BYTES);
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
        let question = AgentRequest {
            total: messages.len() as u64,
            messages,
            marker: self.agent_marker(),
            approval: Approval::None,
            ephemeral: true,
            ..AgentRequest::default()
        };
        let (sink, mut listener) = AgentSink::open(cancel);
        let agent = agent.clone();
        let answer = async move { agent.answer(&question, &sink).await };
        let listen = async {
            let (mut words, mut usage) = (String::new(), None);
            while let Some(event) = listener.events.recv().await {
                match event {
                    // An agent that does not stop has no summary to give.
                    AgentEvent::Text(text) if words.len() < MESSAGE_LIMIT / 2 => {
                        words.push_str(&text)
                    }
                    AgentEvent::Usage(told) => usage = Some(told),
                    _ => {}
                }
            }
            (words, usage)
        };
        let (result, (words, usage)) = tokio::join!(answer, listen);
        result?;
        if words.trim().is_empty() {
            let error = AgentError::new(FailureKind::Failed, "the agent gave no summary");
            return Err(error);
        }
        Ok((words, usage))
    }
}

/// Returns half of the tokens of messages.
pub(crate) async fn half_of(past: &[ContextMessage]) -> u64 {
    let past = past.to_vec();
    let counted = tokio::task::spawn_blocking(move || {
        past.iter().map(|said| tokens_of(&said.words)).sum::<u64>()
    });
    counted.await.map_or(0, |tokens| tokens / 2)
}
