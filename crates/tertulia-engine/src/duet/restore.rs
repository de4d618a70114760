//! Going on with a pair: the row of the session says how far it is; what was said is read only when
//! somebody is to be asked, and only as far back as they could be given it.

use super::{Duet, Seating};
use crate::chat::{INTERRUPTED, result_of};
use crate::context::{dangling, summary};
use crate::door::{Door, Notice, TalkEvent};
use crate::pair::{Pair, Seat};
use crate::record::Recorder;
use crate::run::{CONTEXT_BYTES, Talk, Terms};
use tertulia_agents::{AgentError, FailureKind};
use tertulia_core::entry::{Body, Budgeted, Entry, Paired, Role, ToolOutcome};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Log, Summary};
use tertulia_store::{StoreError, StoreResult};

impl Duet {
    /// A talk that goes on: what a crash left half said is kept, what it left running is ended, and the
    /// human has the floor.
    pub async fn resume(
        recorder: Recorder,
        left: Option<SessionId>,
        mut seating: Seating,
        terms: Terms,
        door: &mut dyn Door,
    ) -> StoreResult<Duet> {
        let agent = seating.instructor.agent.clone();
        let (talk, _) = Talk::reopen(recorder, left, agent, terms, door).await?;
        let talk = talk.by_brief();
        let summary = talk.recorder().summary().cloned();
        let pair = summary.as_ref().and_then(|summary| summary.pair.clone());
        let at = pair.as_ref().and_then(|pair| pair.paired_at);
        let known = match (&summary, at) {
            (Some(summary), Some(at)) => entry_at(&talk, summary, at).await?,
            _ => None,
        };
        let mut opening = Vec::new();
        if let Some(Body::Paired(known)) = known.map(|entry| entry.body) {
            // What the instructor was told at the beginning holds to the end.
            seating.paired.system.clone_from(&known.system);
            compare_models(&known, &seating.paired, door);
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
        let mut duet = Duet::around(talk, seating, opening);
        duet.threads.unread = true;
        Ok(duet)
    }

    /// Reads back what the two remember, if that has not been done, and closes calls that never came back.
    pub(super) async fn load(&mut self, door: &mut dyn Door) -> StoreResult<()> {
        if !std::mem::take(&mut self.threads.unread) {
            return Ok(());
        }
        let Some(summary) = self.summary().cloned() else {
            return Ok(());
        };
        let pair = summary.pair.clone().unwrap_or_default();
        let sessions = self.talk.recorder().sessions();
        let mut log = sessions
            .load_back(&summary, |log| is_enough(&pair, log))
            .await?;
        let damage = std::mem::take(&mut log.damage);
        if !damage.is_empty() {
            door.show(TalkEvent::Notice(Notice::Damaged(damage)));
        }
        for seat in [Seat::Instructor, Seat::Worker] {
            if let Some(summed) = pair.summary_of(seat) {
                let entry = entry_at(&self.talk, &summary, summed.at).await?;
                if let Some(Body::Compacted(compacted)) = entry.map(|entry| entry.body) {
                    self.threads.of_mut(seat).summary = Some(self::summary(&compacted.summary));
                }
            }
        }
        let newer = |entry: &Entry| {
            let thread = entry
                .message()
                .and_then(|message| message.thread.as_deref());
            let seat = Seat::of_thread(thread);
            let summed = seat.and_then(|seat| pair.summary_of(seat));
            summed.is_none_or(|summed| entry.seq > summed.upto)
        };
        log.entries.retain(newer);
        self.threads.remember(&log.entries);
        self.close_calls(door).await;
        Ok(())
    }

    /// Closes calls whose results never came, in the log too.
    async fn close_calls(&mut self, door: &mut dyn Door) {
        let mut results = Vec::new();
        for seat in [Seat::Instructor, Seat::Worker] {
            for call in dangling(&self.threads.of(seat).said) {
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
        door.show(TalkEvent::Notice(Notice::ClosedCalls(results.len())));
        let mut ear = super::Ear::new(door);
        self.talk.put_down(results, &mut ear).await;
        let heard = ear.heard();
        self.threads.take_in(heard);
    }

    /// The words of an entry that the fold points to.
    pub(super) async fn words_at(
        &self,
        place: impl Fn(&Pair) -> Option<Seq>,
    ) -> StoreResult<Option<String>> {
        let entry = self.pointed_to(place).await?;
        Ok(entry.and_then(|entry| Some(entry.message()?.content.clone())))
    }

    /// The entry that the fold points to. One that cannot be read is an error: what stands in its place
    /// would be taken for what was said.
    async fn pointed_to(&self, place: impl Fn(&Pair) -> Option<Seq>) -> StoreResult<Option<Entry>> {
        let (Some(at), Some(summary)) = (self.pair().and_then(place), self.summary()) else {
            return Ok(None);
        };
        match entry_at(&self.talk, summary, at).await? {
            Some(entry) => Ok(Some(entry)),
            None => Err(StoreError::Refused(format!(
                "entry {at} of this session cannot be read; `tertulia doctor` shows the damage"
            ))),
        }
    }

    /// Why the worker did not finish, if it failed.
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

    /// What the worker had said when it was cut off or failed, since it was last told something.
    pub(super) async fn last_words_of_worker(&self) -> StoreResult<String> {
        let Some(summary) = self.summary() else {
            return Ok(String::new());
        };
        let sessions = self.talk.recorder().sessions();
        let asked =
            |entry: &Entry| in_thread(entry, Seat::Worker) && role(entry) == Some(Role::User);
        let log = sessions
            .load_back(summary, |log| log.entries.iter().any(asked))
            .await?;
        let since = log.entries.iter().rposition(asked).unwrap_or(0);
        let said = log.entries[since..]
            .iter()
            .filter(|entry| in_thread(entry, Seat::Worker) && role(entry) == Some(Role::Assistant));
        let said = said.filter_map(|entry| Some(entry.message()?.content.as_str()));
        let said: Vec<&str> = said.filter(|words| !words.trim().is_empty()).collect();
        Ok(said.join("\n\n"))
    }
}

fn in_thread(entry: &Entry, seat: Seat) -> bool {
    let thread = entry
        .message()
        .and_then(|message| message.thread.as_deref());
    Seat::of_thread(thread) == Some(seat)
}

fn role(entry: &Entry) -> Option<Role> {
    entry.message().map(|message| message.role)
}

async fn entry_at(talk: &Talk, summary: &Summary, at: Seq) -> StoreResult<Option<Entry>> {
    let log = talk.recorder().sessions().load_one(summary, at).await?;
    Ok(log.entries.into_iter().find(|entry| entry.seq == at))
}

fn compare_models(known: &Paired, now: &Paired, door: &mut dyn Door) {
    for (seat, known, now) in [
        (Seat::Instructor, &known.instructor, &now.instructor),
        (Seat::Worker, &known.worker, &now.worker),
    ] {
        if let (Some(recorded), Some(chosen)) = (&known.model, &now.model)
            && recorded != chosen
        {
            door.show(TalkEvent::Notice(Notice::OtherModelOf {
                member: format!("the {}", seat.name()),
                recorded: recorded.clone(),
                now: chosen.clone(),
            }));
        }
    }
}

/// Whether everything is read that one of the two could be given.
fn is_enough(pair: &Pair, log: &Log) -> bool {
    let first = log.entries.first().map(|entry| entry.seq);
    [Seat::Instructor, Seat::Worker].into_iter().all(|seat| {
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
