//! State of a hosted session and its transitions. Nothing in it blocks.

use jiff::Timestamp;
use serde_json::Value;
use tertulia_agents::approval::Verdict;
use tertulia_core::entry::Entry;
use tertulia_core::id::SessionId;
use tertulia_formats::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{ClientId, Queued, ReplyTo, SessionAction, SessionRequest, TaskHandle};
use crate::live_state::LiveState;
use crate::protocol::{Answer, Detail, LivePhase, TurnStatus};
use crate::recent_events::RecentEvents;
use crate::reply_stream::ReplyStream;
use tertulia_engine::error::ErrorBody;
use tertulia_engine::event::SessionEvent;

/// State of a hosted session.
#[derive(Debug)]
pub(super) struct State {
    pub(super) id: SessionId,
    pub(super) window: RecentEvents,
    pub(super) moment: LiveState,
    pub(super) followers: Vec<(ReplyTo, Detail)>,
    pub(super) task: Option<TaskHandle>,
    pub(super) running: Option<Running>,
    pub(super) question: Option<(String, oneshot::Sender<Verdict>)>,
    /// Ids that clients gave messages which are held in memory, because they could not be saved.
    pub(super) held: Vec<String>,
    /// Whether an approval request waits for clients that are not connected now.
    pub(super) awaits_clients: bool,
    /// Ends the reading of what another program writes to the session.
    pub(super) reading: Option<CancellationToken>,
    pub(super) since: Timestamp,
}

/// The running request.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) client: ClientId,
    pub(super) asker: Option<ReplyTo>,
    pub(super) telling: ReplyStream,
    pub(super) cancel: CancellationToken,
    /// Id that the client gave the message.
    pub(super) client_id: Option<String>,
}

impl State {
    /// Returns true if a message with this id is queued, being answered, held or saved.
    pub(super) fn has_message(&self, client_id: &str) -> bool {
        let is = |known: Option<&String>| known.is_some_and(|known| known == client_id);
        let meta = self.moment.floor().meta.as_ref();
        let task = self.task.as_ref();
        task.is_some_and(|task| task.queued.iter().any(|one| is(one.client_id.as_ref())))
            || self
                .running
                .as_ref()
                .is_some_and(|one| is(one.client_id.as_ref()))
            || self.held.iter().any(|held| held == client_id)
            || meta.is_some_and(|meta| meta.client_ids.iter().any(|known| known == client_id))
    }

    /// Removes a request from the list of queued ones.
    pub(super) fn take_queued(&mut self, is_it: impl Fn(&Queued) -> bool) -> Option<Queued> {
        let task = self.task.as_mut()?;
        let place = task.queued.iter().position(is_it)?;
        Some(task.queued.remove(place))
    }

    /// Ends the request of a message that is not sent. The client is told if it waits for an answer.
    fn withdraw(&mut self, client_id: &str) {
        let is_it = |queued: &Queued| queued.client_id.as_deref() == Some(client_id);
        let asker = self.take_queued(is_it).and_then(|queued| queued.asker);
        if let Some(asker) = asker {
            asker.tell(self.complete(TurnStatus::Cancelled, &ReplyStream::default()));
        }
    }

    pub(super) fn publish(&mut self, event: SessionEvent) {
        self.moment.take(&event);
        if let SessionEvent::Withdrawn { client_id, .. } = &event {
            self.withdraw(client_id);
        }
        if let SessionEvent::Held { message } = &event {
            self.held.extend(message.client_id.clone());
        }
        if let Some(running) = &mut self.running {
            for answer in running.telling.tell(self.id, &event) {
                if let Some(asker) = &running.asker {
                    asker.tell(answer);
                }
            }
        } else if let Some(opener) = self.task.as_ref().and_then(|task| task.opener.as_ref()) {
            for answer in ReplyStream::default().tell(self.id, &event) {
                opener.tell(answer);
            }
        }
        let message = match self.followers.is_empty() {
            true => None,
            false => event.entry().and_then(|entry| message(self.id, &entry)),
        };
        let n = self.window.push(event.clone());
        self.followers
            .retain(|(reply_to, _)| reply_to.outbox.end().is_none());
        for (reply_to, detail) in &self.followers {
            match (detail, &message) {
                (Detail::Full, _) => reply_to.tell(Answer::Event {
                    session_id: self.id.to_string(),
                    n,
                    replayed: false,
                    event: Box::new(event.clone()),
                }),
                (Detail::Messages, Some(message)) => reply_to.tell(message.clone()),
                (Detail::Messages, None) => {}
            }
        }
    }

    /// Returns events that recreate the state for a client that joins; none while opening, because
    /// all events follow.
    pub(super) fn replay(&self) -> Vec<SessionEvent> {
        match &self.task {
            Some(task) if task.phase != LivePhase::Opening => self.moment.replay(),
            None if self.reading.is_some() => self.moment.replay(),
            _ => Vec::new(),
        }
    }

    pub(super) fn complete(&self, status: TurnStatus, telling: &ReplyStream) -> Answer {
        let meta = self.moment.floor().meta.as_ref();
        Answer::Complete {
            status,
            session_id: self.id.to_string(),
            message_count: meta.map_or(0, |meta| meta.messages),
            usage: telling.usage(),
        }
    }

    /// Reports to the client of a request that it is not executed.
    pub(super) fn dismiss(&self, request: &SessionRequest, trouble: Option<ErrorBody>) {
        let Some(asker) = &request.asker else { return };
        if matches!(request.action, SessionAction::Save) {
            return asker.tell(Answer::SessionSaved { success: false });
        }
        let status = match &trouble {
            Some(_) => TurnStatus::Failed,
            None => TurnStatus::Cancelled,
        };
        if let Some(trouble) = trouble {
            asker.tell(Answer::Error(trouble));
        }
        asker.tell(self.complete(status, &ReplyStream::default()));
    }

    pub(super) fn can_ask(&self) -> bool {
        let asker = self
            .running
            .as_ref()
            .and_then(|running| running.asker.as_ref());
        let followers = self.followers.iter();
        let watching = followers
            .filter(|(_, detail)| *detail == Detail::Full)
            .map(|(reply_to, _)| reply_to);
        self.awaits_clients || asker.into_iter().chain(watching).any(ReplyTo::can_answer)
    }

    pub(super) fn stop_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            reading.cancel();
        }
    }

    pub(super) fn stop_reading_without_followers(&mut self) {
        let mut details = self.followers.iter().map(|(_, detail)| *detail);
        if !details.any(|detail| detail == Detail::Full) {
            self.stop_reading();
        }
    }

    pub(super) fn deny_if_no_client_can_answer(&mut self) {
        if !self.can_ask() {
            self.settle(None, Verdict::No);
        }
    }

    pub(super) fn settle(&mut self, tool_id: Option<&str>, verdict: Verdict) -> bool {
        let fits = |asked: &String| tool_id.is_none_or(|tool_id| tool_id == asked);
        let Some((tool_id, answer)) = self.question.take_if(|(asked, _)| fits(asked)) else {
            return false;
        };
        // The turn that asked may have been aborted meanwhile.
        let _ = answer.send(verdict.clone());
        self.publish(SessionEvent::Settled { tool_id, verdict });
        true
    }
}

/// Converts a durable entry for followers of messages.
fn message(session: SessionId, entry: &Entry) -> Option<Answer> {
    entry.message()?;
    let Value::Object(mut message) = json::entry(entry) else {
        return None;
    };
    message.shift_remove("type");
    // In a reply, `id` is the request id.
    message.shift_remove("id");
    Some(Answer::Message {
        session_id: session.to_string(),
        entry_id: entry.id.to_string(),
        message,
    })
}
