//! Going on with a talk: what was said is read back, and what a crash left open is closed.

use std::sync::Arc;

use super::ask::{marker_prefix, tell};
use super::{CONTEXT_BYTES, Door, Notice, Talk, TalkEvent, Terms, said_in};
use crate::chat::{INTERRUPTED, result_of};
use crate::context::{dangling, summary};
use crate::record::Recorder;
use crate::withdrawn::{Withdrawals, withdraw};
use tertulia_agents::Agent;
use tertulia_agents::process::end_orphans;
use tertulia_core::entry::{Body, Kind, ToolOutcome};
use tertulia_core::id::SessionId;
use tertulia_core::session::{Log, Status, Summary};
use tertulia_store::StoreResult;

impl Talk {
    /// A talk that goes on: reads back what was said, and repairs what a crash left behind.
    pub async fn resume(
        recorder: Recorder,
        left: Option<SessionId>,
        agent: Arc<dyn Agent>,
        terms: Terms,
        door: &mut dyn Door,
    ) -> StoreResult<Talk> {
        let (mut talk, _) = Talk::reopen(recorder, left, agent, terms, door).await?;
        talk.read_back(door).await?;
        Ok(talk)
    }

    /// Takes up the pen again and ends what a killed program left running. Whether somebody had been cut
    /// off in the middle of an answer.
    pub(crate) async fn reopen(
        mut recorder: Recorder,
        left: Option<SessionId>,
        agent: Arc<dyn Agent>,
        terms: Terms,
        door: &mut dyn Door,
    ) -> StoreResult<(Talk, bool)> {
        let mut recovered = false;
        if let Some(from) = left {
            let to = recorder.id();
            tell(door, Notice::SteppedAside { from, to });
        } else if let Some(entry) = recorder.recover_draft().await? {
            recovered = true;
            let speaker = entry
                .message()
                .map(|message| message.speaker.display_name.clone());
            let speaker = speaker.unwrap_or_default();
            tell(door, Notice::Recovered { speaker });
            door.show(TalkEvent::Durable(&entry));
        }
        let mut talk = Talk::begin(recorder, agent, terms);
        talk.alone = left.is_none();
        talk.end_orphans(recovered, door).await;
        Ok((talk, recovered))
    }

    /// The end of the log, back to where `enough` says that it is; calls that never came back are closed.
    pub(crate) async fn look_back(
        &mut self,
        enough: impl FnMut(&Log) -> bool,
        door: &mut dyn Door,
    ) -> StoreResult<Log> {
        let Some(summary) = self.recorder.summary().cloned() else {
            return Ok(Log::default());
        };
        let sessions = self.recorder.sessions();
        let mut log = sessions.load_back(&summary, enough).await?;
        self.take_in(&log);
        let damage = std::mem::take(&mut log.damage);
        if !damage.is_empty() {
            tell(door, Notice::Damaged(damage));
        }
        self.close_calls(door).await?;
        Ok(log)
    }

    /// Ends what a killed program has left running for this session. Nobody else has it open.
    async fn end_orphans(&self, recovered: bool, door: &mut dyn Door) {
        let summary = self.recorder.summary();
        // Among several, somebody may have been asked after the last who spoke.
        let cut_off = summary.is_some_and(|summary| {
            summary.status == Status::Active || summary.kind != Kind::Chat || recovered
        });
        if !self.alone || !cut_off {
            return;
        }
        let prefix = marker_prefix(self.recorder.id());
        let ended = tokio::task::spawn_blocking(move || end_orphans(&prefix)).await;
        if let Some(count) = ended.ok().filter(|count| *count > 0) {
            tell(door, Notice::EndedOrphans(count));
        }
    }

    async fn read_back(&mut self, door: &mut dyn Door) -> StoreResult<()> {
        let Some(summary) = self.recorder.summary().cloned() else {
            return Ok(());
        };
        let name = self.agent.name();
        let native = summary.natives.iter().find(|native| native.agent == name);
        self.chat.link(native.map(|native| native.id.clone()));
        if summary.status == Status::Active && self.alone {
            tell(door, Notice::Unanswered);
        }
        self.look_back(|log| is_enough(&summary, log), door).await?;
        if let (Some(recorded), Some(now)) = (&summary.model, self.agent.model())
            && recorded != now
        {
            let (recorded, now) = (recorded.clone(), now.to_owned());
            tell(door, Notice::OtherModel { recorded, now });
        }
        Ok(())
    }

    /// Remembers what agents are given: the newest summary, and what was said after what it covers.
    fn take_in(&mut self, log: &Log) {
        let newest = log
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.body {
                Body::Compacted(compacted) => Some(compacted),
                _ => None,
            });
        self.summary = newest.map(|compacted| summary(&compacted.summary));
        let covered = newest.map(|compacted| compacted.upto);
        let withdrawn = Withdrawals::of(&log.entries);
        self.past = log
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
        self.turn_start = self.past.len();
        self.reported = last_usage(log);
    }

    /// Closes calls whose results never came, in the log too.
    async fn close_calls(&mut self, door: &mut dyn Door) -> StoreResult<()> {
        let open = dangling(&self.past);
        if open.is_empty() {
            return Ok(());
        }
        let stopped = ToolOutcome::Interrupted;
        let results = open
            .iter()
            .map(|call| result_of(call, INTERRUPTED, stopped));
        let recorded = self.recorder.record(results.collect()).await?;
        tell(door, Notice::ClosedCalls(open.len()));
        self.show_recorded(&recorded, door);
        match recorded.trouble {
            // Nothing is lost: whoever resumes next closes them.
            Some(error) => tell(door, Notice::Unsaved(error)),
            None => self.remember(&recorded.entries, open.len()),
        }
        self.turn_start = self.past.len();
        Ok(())
    }
}

/// The tokens of the last answer, as its agent told them: all that it was given, and what it said. Nothing, if
/// the older part was summed up since.
fn last_usage(log: &Log) -> Option<u64> {
    let since = log.entries.iter().rev();
    let since = since.take_while(|entry| !matches!(entry.body, Body::Compacted(_)));
    let mut usages = since.filter_map(|entry| entry.message()?.usage);
    let usage = usages.next().filter(|usage| !usage.estimated)?;
    Some(usage.input + usage.output)
}

/// Whether everything is read that an agent could be given.
fn is_enough(summary: &Summary, log: &Log) -> bool {
    let first = log.entries.first().map(|entry| entry.seq);
    if summary
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
