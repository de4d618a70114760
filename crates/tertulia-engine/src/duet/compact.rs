//! Summing up the older part of a thread for whoever remembers it. The log keeps all of it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Duet;
use crate::context::{Said, older, summary};
use crate::frontend::Frontend;
use crate::notice::Notice;
use crate::run::tokens_of;
use tertulia_agents::{Agent, FailureKind, PromptMessage, ToolSide};
use tertulia_core::entry::{Body, Compacted};
use tertulia_core::pair::PairRole;

impl Duet {
    /// Sums up the older part if somebody would be given more tokens than they should.
    pub(super) async fn compact_if_due(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) {
        let Some(threshold) = self.place(seat).compact_at else {
            return;
        };
        let thread = self.threads.of(seat);
        // A text has no more tokens than bytes, and counting them all takes its time.
        if agent.tools() == ToolSide::Its || thread.weight() as u64 <= threshold {
            return;
        }
        let said = thread.said.iter().map(|said| &said.words);
        let given: Vec<PromptMessage> = thread.summary.iter().chain(said).cloned().collect();
        let counted = tokio::task::spawn_blocking(move || given.iter().map(tokens_of).sum::<u64>());
        if counted.await.is_ok_and(|tokens| tokens > threshold) {
            self.compact_beyond(seat, agent, threshold / 4, frontend, cancel)
                .await;
        }
    }

    /// Sums up at least the older half, because somebody cannot read more. Whether it could be done.
    pub(super) async fn compact(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> bool {
        let past = self.past(seat).to_vec();
        let counted = tokio::task::spawn_blocking(move || {
            past.iter().map(|said| tokens_of(&said.words)).sum::<u64>()
        });
        let half = counted.await.map_or(0, |tokens| tokens / 2);
        self.compact_beyond(seat, agent, half, frontend, cancel)
            .await
    }

    fn past(&self, seat: PairRole) -> &[Said] {
        let thread = self.threads.of(seat);
        &thread.said[..thread.past()]
    }

    /// Sums up all but the newest that weigh at most `keep`.
    async fn compact_beyond(
        &mut self,
        seat: PairRole,
        agent: &Arc<dyn Agent>,
        keep: u64,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> bool {
        let past = self.past(seat).to_vec();
        let cut = tokio::task::spawn_blocking(move || older(&past, keep, tokens_of)).await;
        let Ok(mut cut) = cut else {
            return false;
        };
        let (words, usage, upto) = loop {
            let past = &self.past(seat)[..cut];
            let Some(upto) = past.last().and_then(|said| said.seq) else {
                return false;
            };
            let messages = past.len();
            frontend.show(Notice::Compacting { messages }.into());
            let before = self.threads.of(seat).summary.as_ref();
            let summed = self.talk.summarise(agent, before, past, cancel).await;
            match summed {
                Ok((words, usage)) => break (words, usage, upto),
                // Even that was too much at once: less of it, and the rest the next time.
                Err(error) if error.kind == FailureKind::TooLong && cut > 1 => cut /= 2,
                Err(error) => {
                    frontend.show(Notice::NotCompacted(error).into());
                    return false;
                }
            }
        };
        let entry = Body::Compacted(Compacted {
            upto,
            summary: words.clone(),
            agent: agent.name().to_owned(),
            model: agent.model().map(str::to_owned),
            usage,
            thread: Some(seat.name().to_owned()),
        });
        self.put_down(vec![entry], frontend).await;
        let thread = self.threads.of_mut(seat);
        thread.summary = Some(summary(&words));
        thread.said.drain(..cut);
        frontend.show(Notice::Compacted.into());
        true
    }
}
