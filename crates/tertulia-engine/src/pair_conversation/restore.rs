//! Resumes a pair session: its metadata contains the state. Messages are loaded only before the
//! first prompt, and only as many as the contexts can hold.

use super::{PairConversation, PairRoster};
use crate::chat::{INTERRUPTED, result_of};
use crate::context::{dangling, summary};
use crate::frontend::Frontend;
use crate::log_writer::LogWriter;
use crate::notice::Notice;
use crate::pair::{Pair, PairRole};
use crate::runner::{CONTEXT_BYTES, RunOptions, Runner};
use tertulia_agents::{AgentError, FailureKind};
use tertulia_core::entry::{Body, Budgeted, Entry, Paired, Role, ToolOutcome};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Log, SessionMeta};
use tertulia_store::{StoreError, StoreResult};

impl PairConversation {
    /// Resumes a session: recovers a draft, ends orphaned processes, and gives the user the turn.
    /// `left` is the original session if `writer` has forked it.
    pub async fn resume(
        writer: LogWriter,
        left: Option<SessionId>,
        mut seating: PairRoster,
        options: RunOptions,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<PairConversation> {
        let agent = seating.instructor.agent.clone();
        let (runner, _) = Runner::reopen(writer, left, agent, options, frontend).await?;
        let runner = runner.by_brief();
        let meta = runner.writer().meta().cloned();
        let pair = meta.as_ref().and_then(|meta| meta.pair.clone());
        let at = pair.as_ref().and_then(|pair| pair.paired_at);
        let known = match (&meta, at) {
            (Some(meta), Some(at)) => entry_at(&runner, meta, at).await?,
            _ => None,
        };
        let mut opening = Vec::new();
        if let Some(Body::Paired(known)) = known.map(|entry| entry.body) {
            // The instructor keeps the system prompt that the session began with.
            seating.paired.system.clone_from(&known.system);
            compare_models(&known, &seating.paired, frontend);
            let now = Paired {
                round: known.round,
                ..seating.paired.clone()
            };
            if now != known {
                opening.push(Body::Paired(seating.paired.clone()));
            }
        } else {
            opening.push(Body::Paired(seating.paired.clone()));
        }
        if let Some(budget) = seating.budget {
            opening.push(Body::Budgeted(Budgeted { budget }));
        }
        let mut pair = PairConversation::around(runner, seating, opening);
        pair.threads.unread = true;
        Ok(pair)
    }

    /// Loads the contexts of the two agents, unless that is done, and closes tool calls without
    /// results.
    pub(super) async fn load(&mut self, frontend: &mut dyn Frontend) -> StoreResult<()> {
        if !self.threads.unread {
            return Ok(());
        }
        let Some(meta) = self.meta().cloned() else {
            self.threads.unread = false;
            return Ok(());
        };
        let pair = meta.pair.clone().unwrap_or_default();
        let sessions = self.runner.writer().sessions();
        let mut log = sessions
            .load_back(&meta, |log| is_enough(&pair, log))
            .await?;
        let damage = std::mem::take(&mut log.damage);
        if !damage.is_empty() {
            frontend.show(Notice::Damaged(damage).into());
        }
        for seat in [PairRole::Instructor, PairRole::Worker] {
            if let Some(summed) = pair.summary_of(seat) {
                let entry = entry_at(&self.runner, &meta, summed.at).await?;
                if let Some(Body::Compacted(compacted)) = entry.map(|entry| entry.body) {
                    self.threads.of_mut(seat).context.summary = Some(summary(&compacted.summary));
                }
            }
        }
        let newer = |entry: &Entry| {
            let thread = entry
                .message()
                .and_then(|message| message.thread.as_deref());
            let seat = PairRole::of_thread(thread);
            let summed = seat.and_then(|seat| pair.summary_of(seat));
            summed.is_none_or(|summed| entry.seq > summed.upto)
        };
        log.entries.retain(newer);
        // Only now: if reading fails, the next turn tries again.
        self.threads.unread = false;
        self.threads.remember(&log.entries);
        self.close_calls(frontend).await;
        Ok(())
    }

    /// Adds results for tool calls without results, to the contexts and the log.
    async fn close_calls(&mut self, frontend: &mut dyn Frontend) {
        let mut results = Vec::new();
        for seat in [PairRole::Instructor, PairRole::Worker] {
            for call in dangling(&self.threads.of(seat).context.messages) {
                let mut result = result_of(&call, INTERRUPTED, ToolOutcome::Interrupted);
                if let Body::Message(message) = &mut result {
                    message.thread = Some(seat.name().to_owned());
                }
                results.push(result);
            }
        }
        if results.is_empty() {
            return;
        }
        frontend.show(Notice::ClosedCalls(results.len()).into());
        self.runner.put_down(results, frontend).await;
        let heard = self.runner.take_written();
        self.threads.take_in(heard);
    }

    /// Returns the text of a message that the state points to.
    pub(super) async fn words_at(
        &self,
        agent_of: impl Fn(&Pair) -> Option<Seq>,
    ) -> StoreResult<Option<String>> {
        let entry = self.pointed_to(agent_of).await?;
        Ok(entry.and_then(|entry| Some(entry.message()?.content.clone())))
    }

    /// Returns an entry that the state points to. An unreadable entry is an error, because the
    /// caller's default would pass for the message.
    async fn pointed_to(
        &self,
        agent_of: impl Fn(&Pair) -> Option<Seq>,
    ) -> StoreResult<Option<Entry>> {
        let (Some(at), Some(meta)) = (self.pair().and_then(agent_of), self.meta()) else {
            return Ok(None);
        };
        match entry_at(&self.runner, meta, at).await? {
            Some(entry) => Ok(Some(entry)),
            None => Err(StoreError::Refused(format!(
                "entry {at} of this session cannot be read; `tertulia doctor` shows the damage"
            ))),
        }
    }

    /// Returns the error of the worker, if it failed.
    pub(super) async fn failure_of_worker(&self) -> StoreResult<Option<AgentError>> {
        let entry = self.pointed_to(|pair| pair.report_at).await?;
        Ok(match entry.map(|entry| entry.body) {
            Some(Body::Failed(failed)) => Some(AgentError::new(
                FailureKind::of_name(&failed.kind),
                failed.message,
            )),
            _ => None,
        })
    }

    /// Returns the worker's text since the last message to it.
    pub(super) async fn last_words_of_worker(&self) -> StoreResult<String> {
        let Some(meta) = self.meta() else {
            return Ok(String::new());
        };
        let sessions = self.runner.writer().sessions();
        let asked =
            |entry: &Entry| in_thread(entry, PairRole::Worker) && role(entry) == Some(Role::User);
        let log = sessions
            .load_back(meta, |log| log.entries.iter().any(asked))
            .await?;
        let since = log.entries.iter().rposition(asked).unwrap_or(0);
        let said = log.entries[since..].iter().filter(|entry| {
            in_thread(entry, PairRole::Worker) && role(entry) == Some(Role::Assistant)
        });
        let said = said.filter_map(|entry| Some(entry.message()?.content.as_str()));
        let said: Vec<&str> = said.filter(|words| !words.trim().is_empty()).collect();
        Ok(said.join("\n\n"))
    }
}

fn in_thread(entry: &Entry, seat: PairRole) -> bool {
    let thread = entry
        .message()
        .and_then(|message| message.thread.as_deref());
    PairRole::of_thread(thread) == Some(seat)
}

fn role(entry: &Entry) -> Option<Role> {
    entry.message().map(|message| message.role)
}

async fn entry_at(runner: &Runner, meta: &SessionMeta, at: Seq) -> StoreResult<Option<Entry>> {
    let log = runner.writer().sessions().load_one(meta, at).await?;
    Ok(log.entries.into_iter().find(|entry| entry.seq == at))
}

fn compare_models(known: &Paired, now: &Paired, frontend: &mut dyn Frontend) {
    for (seat, known, now) in [
        (PairRole::Instructor, &known.instructor, &now.instructor),
        (PairRole::Worker, &known.worker, &now.worker),
    ] {
        if let (Some(recorded), Some(chosen)) = (&known.model, &now.model)
            && recorded != chosen
        {
            frontend.show(
                Notice::OtherModelOf {
                    member: format!("the {}", seat.name()),
                    recorded: recorded.clone(),
                    now: chosen.clone(),
                }
                .into(),
            );
        }
    }
}

/// Returns true if the loaded part covers everything that the two contexts could hold.
fn is_enough(pair: &Pair, log: &Log) -> bool {
    let first = log.entries.first().map(|entry| entry.seq);
    [PairRole::Instructor, PairRole::Worker]
        .into_iter()
        .all(|seat| {
            let covered = pair
                .summary_of(seat)
                .is_some_and(|summed| first.is_some_and(|first| first <= summed.upto));
            let said = log.messages().filter(|(entry, _)| in_thread(entry, seat));
            covered
                || said
                    .map(|(_, message)| message.content.len())
                    .sum::<usize>()
                    > CONTEXT_BYTES
        })
}
