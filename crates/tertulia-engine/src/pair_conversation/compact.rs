//! Compaction of the context of one of the two agents.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::PairConversation;
use crate::frontend::Frontend;
use crate::runner::{Compacting, Prompt, half_of};
use tertulia_agents::{Agent, PromptMessage, ToolSide};
use tertulia_core::pair::PairRole;

impl PairConversation {
    /// Compacts the context of an agent that would get more tokens than it should.
    pub(super) async fn compact_if_due(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) {
        let Some(threshold) = self.agent_of(seat).compact_at else {
            return;
        };
        let thread = self.threads.of(seat);
        // A text has no more tokens than bytes, and counting them all takes its time.
        if agent.tools() == ToolSide::Its || thread.weight() as u64 <= threshold {
            return;
        }
        let said = thread.context.messages.iter().map(|said| &said.words);
        let messages: Vec<PromptMessage> =
            thread.context.summary.iter().chain(said).cloned().collect();
        let prompt = Prompt {
            messages,
            tools: String::new(),
            reported: 0,
        };
        if prompt.exceeds(threshold).await {
            self.compact_beyond(seat, agent, threshold / 4, frontend, cancel)
                .await;
        }
    }

    /// Compacts at least the older half, because the agent cannot read more.
    pub(super) async fn compact(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) {
        let thread = self.threads.of(seat);
        let half = half_of(&thread.context.messages[..thread.past()]).await;
        self.compact_beyond(seat, agent, half, frontend, cancel)
            .await;
    }

    async fn compact_beyond(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        keep: u64,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) {
        let compacting = Compacting {
            agent,
            thread: Some(seat.name().to_owned()),
            past: self.threads.of(seat).past(),
        };
        let mut context = std::mem::take(&mut self.threads.of_mut(seat).context);
        self.runner
            .compact_context(&mut context, &compacting, keep, frontend, cancel)
            .await;
        self.threads.of_mut(seat).context = context;
    }
}
