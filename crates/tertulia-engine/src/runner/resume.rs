//! Resumes a session: loads the context, and repairs what a crash left open.

use std::sync::Arc;

use super::ask::{marker_prefix, tell};
use super::{CONTEXT_BYTES, Frontend, Notice, RunOptions, Runner, SessionEvent, said_in};
use crate::chat::{INTERRUPTED, result_of};
use crate::context::{dangling, summary};
use crate::log_writer::LogWriter;
use crate::withdrawn::{Withdrawals, withdraw};
use tertulia_agents::Agent;
use tertulia_agents::process::end_orphans;
use tertulia_core::entry::{Body, Kind, ToolOutcome};
use tertulia_core::id::SessionId;
use tertulia_core::session::{Log, SessionMeta, Status};
use tertulia_store::StoreResult;

impl Runner {
    /// Resumes a chat: loads its context, recovers a draft, ends orphaned processes and closes open
    /// tool calls. `left` is the original session if `writer` has forked it.
    pub async fn resume(
        writer: LogWriter,
        left: Option<SessionId>,
        agent: Arc<dyn Agent>,
        options: RunOptions,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<Runner> {
        let (mut runner, _) = Runner::reopen(writer, left, agent, options, frontend).await?;
        runner.read_back(frontend).await?;
        Ok(runner)
    }

    /// Creates the runner of a resumed session, recovers its draft and ends orphaned processes.
    /// Also returns whether a draft was recovered: an agent was cut off within an answer.
    pub(crate) async fn reopen(
        mut writer: LogWriter,
        left: Option<SessionId>,
        agent: Arc<dyn Agent>,
        options: RunOptions,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<(Runner, bool)> {
        let mut recovered = false;
        if let Some(from) = left {
            let to = writer.id();
            frontend.show(SessionEvent::Moved { to });
            tell(frontend, Notice::SteppedAside { from, to });
        } else if let Some(entry) = writer.recover_draft().await? {
            recovered = true;
            let speaker = entry
                .message()
                .map(|message| message.speaker.display_name.clone());
            let speaker = speaker.unwrap_or_default();
            tell(frontend, Notice::Recovered { speaker });
            frontend.show(SessionEvent::durable(&entry));
        }
        let mut runner = Runner::begin(writer, agent, options);
        runner.alone = left.is_none();
        runner.end_orphans(recovered, frontend).await;
        Ok((runner, recovered))
    }

    /// Loads the end of the log into the context, backwards until `enough` returns true, and
    /// closes tool calls without results.
    pub(crate) async fn look_back(
        &mut self,
        enough: impl FnMut(&Log) -> bool,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<Log> {
        let Some(meta) = self.writer.meta().cloned() else {
            return Ok(Log::default());
        };
        let sessions = self.writer.sessions();
        let mut log = sessions.load_back(&meta, enough).await?;
        self.take_in(&log);
        let damage = std::mem::take(&mut log.damage);
        if !damage.is_empty() {
            tell(frontend, Notice::Damaged(damage));
        }
        self.close_calls(frontend).await?;
        Ok(log)
    }

    /// Ends processes that a killed run left behind for this session, unless another process has
    /// the session open.
    async fn end_orphans(&self, recovered: bool, frontend: &mut dyn Frontend) {
        let meta = self.writer.meta();
        // In a team or pair, another agent may have been prompted after the last message.
        let cut_off = meta.is_some_and(|meta| {
            meta.status == Status::Active || meta.kind != Kind::Chat || recovered
        });
        if !self.alone || !cut_off {
            return;
        }
        let prefix = marker_prefix(self.writer.id());
        let ended = tokio::task::spawn_blocking(move || end_orphans(&prefix)).await;
        if let Some(count) = ended.ok().filter(|count| *count > 0) {
            tell(frontend, Notice::EndedOrphans(count));
        }
    }

    async fn read_back(&mut self, frontend: &mut dyn Frontend) -> StoreResult<()> {
        let Some(meta) = self.writer.meta().cloned() else {
            return Ok(());
        };
        let name = self.agent.name();
        let native = meta.natives.iter().find(|native| native.agent == name);
        self.chat.link(native.map(|native| native.id.clone()));
        if meta.status == Status::Active && self.alone {
            tell(frontend, Notice::Unanswered);
        }
        self.look_back(|log| is_enough(&meta, log), frontend)
            .await?;
        if let (Some(recorded), Some(now)) = (&meta.model, self.agent.model())
            && recorded != now
            && !self.options.model_switched
        {
            let (recorded, now) = (recorded.clone(), now.to_owned());
            tell(frontend, Notice::OtherModel { recorded, now });
        }
        Ok(())
    }

    /// Sets the context: the newest compaction summary, and the messages that it does not cover.
    fn take_in(&mut self, log: &Log) {
        let newest = log
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.body {
                Body::Compacted(compacted) => Some(compacted),
                _ => None,
            });
        self.context.summary = newest.map(|compacted| summary(&compacted.summary));
        let covered = newest.map(|compacted| compacted.upto);
        let withdrawn = Withdrawals::of(&log.entries);
        self.context.messages = log
            .entries
            .iter()
            .filter(|entry| covered.is_none_or(|covered| entry.seq > covered))
            .filter_map(said_in)
            .map(|mut said| {
                if let Some(agent) = said.seq.and_then(|seq| withdrawn.get(&seq)) {
                    withdraw(&mut said.words, agent);
                }
                said
            })
            .collect();
        self.turn_start = self.context.messages.len();
        self.reported = last_usage(log);
    }

    /// Adds results for tool calls without results, to the context and the log.
    async fn close_calls(&mut self, frontend: &mut dyn Frontend) -> StoreResult<()> {
        let open = dangling(&self.context.messages);
        if open.is_empty() {
            return Ok(());
        }
        tell(frontend, Notice::ClosedCalls(open.len()));
        let stopped = ToolOutcome::Interrupted;
        let results = open
            .iter()
            .map(|call| result_of(call, INTERRUPTED, stopped));
        // If they cannot be saved, the next resume closes them.
        self.write(results.collect(), frontend).await;
        self.turn.clear();
        self.turn_start = self.context.messages.len();
        Ok(())
    }
}

/// Returns the tokens of the last prompt and answer as the agent reported them, or `None` if they
/// were only estimated or the context was compacted since.
fn last_usage(log: &Log) -> Option<u64> {
    let since = log.entries.iter().rev();
    let since = since.take_while(|entry| !matches!(entry.body, Body::Compacted(_)));
    let mut usages = since.filter_map(|entry| entry.message()?.usage);
    let usage = usages.next().filter(|usage| !usage.estimated)?;
    Some(usage.input + usage.output)
}

/// Returns true if the loaded part covers everything that an agent's context could hold.
fn is_enough(meta: &SessionMeta, log: &Log) -> bool {
    let first = log.entries.first().map(|entry| entry.seq);
    if meta
        .compacted
        .is_some_and(|upto| first.is_some_and(|first| first <= upto))
    {
        return true;
    }
    let size: usize = log
        .messages()
        .map(|(_, message)| message.content.len())
        .sum();
    size > CONTEXT_BYTES
}
