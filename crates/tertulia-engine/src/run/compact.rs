//! Summing up the older part of a talk for its agent. The log keeps all of it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ask::{tell, tokens_of};
use super::{CONTEXT_BYTES, Frontend, Notice, Talk};
use crate::context::{SUMMARISE, Said, context, older, shortened, summary, total_weight, weight};
use crate::tokens;
use tertulia_agents::approval::Approval;
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, PromptMessage, ToolSide,
};
use tertulia_core::entry::human;
use tertulia_core::entry::{Body, Compacted, MESSAGE_LIMIT, Role, Usage};

/// Without a threshold this much of the newest stays as it is, in tokens.
const KEEP: u64 = 8_000;

/// What came of summing up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// The older part is summed up.
    Done,
    /// There is no older part.
    Nothing,
    /// It could not be summed up, which was told.
    Failed,
}

impl Talk {
    /// Sums up the older part if the agent would be given more tokens than it should.
    pub(super) async fn compact_if_due(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) {
        let Some(threshold) = self.terms.compact_at else {
            return;
        };
        let told = self.told.map(|(tokens, _)| tokens).or(self.reported);
        let told = told.unwrap_or(0);
        // An agent with a memory of its own takes care of it.
        if self.brief.is_some()
            || self.agent.tools() == ToolSide::Its
            || self.tokens_at_most().max(told) <= threshold
        {
            return;
        }
        let given: Vec<PromptMessage> = self.given().cloned().collect();
        let tools = self.tools_as_text();
        let counted = tokio::task::spawn_blocking(move || {
            let said: u64 = given.iter().map(tokens_of).sum();
            (said, tokens::count(&tools))
        });
        let Ok((said, tools)) = counted.await else {
            return;
        };
        // What the provider counted has all of the prompt in it, and the answer that is now a part of it.
        let whole = (said + tools).max(told);
        // Where the tools are most of it, summing up what little is said again and again would help nobody.
        let counted = if tools <= threshold / 2 { whole } else { said };
        if counted > threshold && said > self.kept() {
            self.compact_beyond(self.kept(), frontend, cancel).await;
        }
    }

    /// The tools as the agent is told about them.
    fn tools_as_text(&self) -> String {
        let specs = self.tool_specs();
        let texts = specs.iter().map(|spec| {
            let parameters = spec.parameters.to_string();
            format!("{} {} {parameters}", spec.name, spec.description)
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// How much of the newest stays as it is, in tokens.
    fn kept(&self) -> u64 {
        self.terms
            .compact_at
            .map_or(KEEP, |threshold| threshold / 4)
    }

    fn past_of_turn(&self) -> &[Said] {
        &self.past[..self.turn_start.min(self.past.len())]
    }

    fn given(&self) -> impl Iterator<Item = &PromptMessage> {
        let past = self.past_of_turn().iter().map(|said| &said.words);
        self.summary.iter().chain(past).chain(&self.turn)
    }

    /// What the agent would be given, in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.given().map(|words| weight(words) as u64).sum()
    }

    /// How many tokens that is at most, known without counting: what the agent told last, and since then
    /// no more tokens than bytes. Counting all of it before each answer would cost more than a save.
    fn tokens_at_most(&self) -> u64 {
        let weight = self.weight() + self.tools_as_text().len() as u64;
        match self.told {
            Some((tokens, then)) => tokens + self.weight().saturating_sub(then),
            None => weight,
        }
    }

    /// Sums up the older part now, because somebody asks for it or the agent cannot read more: at least
    /// the older half, however short it is.
    pub async fn compact(
        &mut self,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Compaction {
        if self.brief.is_some() {
            return Compaction::Nothing;
        }
        let past = self.past_of_turn().to_vec();
        let counted = tokio::task::spawn_blocking(move || {
            past.iter().map(|said| tokens_of(&said.words)).sum::<u64>()
        });
        let half = counted.await.map_or(0, |tokens| tokens / 2);
        self.compact_beyond(self.kept().min(half), frontend, cancel)
            .await
    }

    /// Sums up all but the newest that weigh at most `keep`.
    async fn compact_beyond(
        &mut self,
        keep: u64,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Compaction {
        let past = self.past_of_turn().to_vec();
        let cut = tokio::task::spawn_blocking(move || older(&past, keep, tokens_of)).await;
        let Ok(mut cut) = cut else {
            return Compaction::Nothing;
        };
        let (words, usage, upto) = loop {
            let Some(upto) = self.past[..cut].last().and_then(|said| said.seq) else {
                return Compaction::Nothing;
            };
            tell(frontend, Notice::Compacting { messages: cut });
            match self.sum_up(cut, cancel).await {
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
            agent: self.agent.name().to_owned(),
            model: self.agent.model().map(str::to_owned),
            usage,
            thread: None,
        });
        match self.writer.record(vec![entry]).await {
            Err(error) => tell(frontend, Notice::Refused(error)),
            Ok(recorded) => {
                self.show_recorded(&recorded, frontend);
                if let Some(error) = recorded.trouble {
                    self.unsaved = true;
                    tell(frontend, Notice::Unsaved(error));
                }
            }
        }
        self.summary = Some(summary(&words));
        (self.told, self.reported) = (None, None);
        self.past.drain(..cut);
        self.turn_start -= cut;
        tell(frontend, Notice::Compacted);
        Compaction::Done
    }

    /// Has the agent sum up the oldest `cut` messages.
    async fn sum_up(
        &self,
        cut: usize,
        cancel: &CancellationToken,
    ) -> Result<(String, Option<Usage>), AgentError> {
        self.summarise(
            &self.agent,
            self.summary.as_ref(),
            &self.past[..cut],
            cancel,
        )
        .await
    }

    /// Has an agent sum up messages, with the summary of what was before them.
    pub(crate) async fn summarise(
        &self,
        agent: &Arc<dyn Agent>,
        before: Option<&PromptMessage>,
        past: &[Said],
        cancel: &CancellationToken,
    ) -> Result<(String, Option<Usage>), AgentError> {
        let asked = PromptMessage::plain(Role::User, &human().display_name, SUMMARISE);
        let mut messages = context(before, past, &[asked], CONTEXT_BYTES);
        loop {
            let room = total_weight(&messages) / 2;
            match self.summary_of(agent, messages.clone(), cancel).await {
                // Of several, fewer are summed up at a time; one can only be shortened.
                Err(error) if error.kind == FailureKind::TooLong && past.len() == 1 => {
                    messages = shortened(messages, room).ok_or(error)?;
                }
                result => return result,
            }
        }
    }

    /// An agent's answer to messages that end with the request for a summary.
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
