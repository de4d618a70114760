//! Saves entries durably, or holds them in memory if that is not possible now.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use super::{LoggedMessage, Runner, said_in};
use crate::chat::{Effect, Event};
use crate::context::{ContextMessage, prompt_message};
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::log_writer::Recorded;
use crate::notice::Notice;
use crate::team::names;
use tertulia_agents::PromptMessage;
use tertulia_core::entry::{Body, Entry, Message, SpeakerKind, Tasked};
use tertulia_core::id::EntryId;
use tertulia_core::team::markers;
use tertulia_store::StoreResult;

impl Runner {
    /// Saves entries and reports the result to [`Chat`](crate::chat::Chat). Returns the effects.
    pub(super) async fn save(
        &mut self,
        bodies: Vec<Body>,
        frontend: &mut dyn Frontend,
    ) -> Vec<Effect> {
        match self.write(bodies, frontend).await {
            None => self.chat.step(Event::Refused),
            Some(kept) => {
                self.said.extend(kept.into_iter().filter(|kept| {
                    kept.message.speaker.kind == SpeakerKind::Ai && !kept.message.content.is_empty()
                }));
                self.chat.step(Event::Saved)
            }
        }
    }

    /// Saves entries, or holds them if that is not possible now. Returns the messages among them,
    /// or `None` if the log refuses them.
    pub(super) async fn write(
        &mut self,
        bodies: Vec<Body>,
        frontend: &mut dyn Frontend,
    ) -> Option<Vec<LoggedMessage>> {
        let bodies = self.threaded(self.addressed(bodies));
        let messages: Vec<Message> = bodies.iter().filter_map(message_of).cloned().collect();
        let said: Vec<PromptMessage> = messages.iter().map(prompt_message).collect();
        let recorded = match self.record(bodies, frontend).await {
            Ok(recorded) => recorded,
            Err(error) => {
                frontend.show(Notice::Refused(error).into());
                return None;
            }
        };
        self.turn.extend(said.iter().cloned());
        self.show_recorded(&recorded, frontend);
        let places = self.places_of(&recorded, &messages);
        match recorded.trouble {
            Some(error) => {
                self.unsaved = true;
                for message in &messages {
                    frontend.show(SessionEvent::Held {
                        message: Box::new(message.clone()),
                    });
                }
                if self.remembers() {
                    let held = said
                        .into_iter()
                        .map(|words| ContextMessage { seq: None, words });
                    self.context.messages.extend(held);
                }
                frontend.show(Notice::Unsaved(error).into());
            }
            None => self.remember(&recorded.entries, said.len()),
        }
        let kept = places.into_iter().zip(messages);
        Some(
            kept.map(|((id, logged), message)| LoggedMessage {
                id,
                message,
                logged,
            })
            .collect(),
        )
    }

    /// Records entries. Shows when it waits for another process, and gives up when the turn is
    /// stopped.
    async fn record(
        &mut self,
        bodies: Vec<Body>,
        frontend: &mut dyn Frontend,
    ) -> StoreResult<Recorded> {
        let patience = self.writer.sessions().store().patience().clone();
        let (id, cancel) = (self.writer.id(), self.cancel.clone());
        let mut waits = patience.waits();
        let mut told = false;
        let mut given_up = None;
        let recorded = self.writer.record(bodies);
        tokio::pin!(recorded);
        loop {
            tokio::select! {
                biased;
                recorded = &mut recorded => return recorded,
                () = cancel.cancelled(), if given_up.is_none() => {
                    given_up = Some(patience.give_up(Some(id)));
                }
                held = waits.next(), if !told => {
                    told = true;
                    frontend.show(Notice::Waiting(held).into());
                }
            }
        }
    }

    /// Tries to save held entries. Returns true if all are saved.
    pub async fn save_held(&mut self, frontend: &mut dyn Frontend) -> bool {
        if self.writer.has_unsaved() {
            self.cancel = CancellationToken::new();
            self.write(Vec::new(), frontend).await;
        }
        !self.writer.has_unsaved()
    }

    /// Tries to save held entries at the end of a conversation, without showing anything. Returns
    /// true if all are saved.
    pub async fn save_at_last(&mut self) -> bool {
        // The caller offers unsaved entries as a file.
        !self.writer.has_unsaved()
            || self.writer.record(Vec::new()).await.is_ok() && !self.writer.has_unsaved()
    }

    /// Returns the ids of messages just recorded, and their text in the log if it differs. Held
    /// messages get new ids.
    fn places_of(
        &self,
        recorded: &Recorded,
        messages: &[Message],
    ) -> Vec<(EntryId, Option<String>)> {
        if recorded.trouble.is_some() {
            let new = || self.writer.sessions().clock().entry_id();
            return messages.iter().map(|_| (new(), None)).collect();
        }
        let entries = recorded.entries.iter();
        let written: Vec<(EntryId, &Message)> = entries
            .filter_map(|entry| Some((entry.id, entry.message()?)))
            .collect();
        // Messages held before are written in the same append and come first.
        let held = written.len().saturating_sub(messages.len());
        let pairs = written[held..].iter().zip(messages);
        pairs
            .map(|((id, logged), said)| {
                let differs = logged.content != said.content;
                (*id, differs.then(|| logged.content.clone()))
            })
            .collect()
    }

    /// Resolves the `[NEXT]` markers of messages to addressees and records `[TEAM_TASK]`, in the
    /// same append as the messages.
    fn addressed(&self, bodies: Vec<Body>) -> Vec<Body> {
        if self.members.is_empty() {
            return bodies;
        }
        let mut all = Vec::with_capacity(bodies.len());
        for mut body in bodies {
            let mut task = None;
            if let Body::Message(message) = &mut body
                && matches!(message.speaker.kind, SpeakerKind::Human | SpeakerKind::Ai)
                && !message.interrupted
            {
                let read = markers::parse(&message.content);
                if message.addressees.is_empty() {
                    message.addressees = names::resolve(&self.members, &read.next);
                }
                task = read.task.map(|task| markers::cut_task(&task).text);
            }
            all.push(body);
            all.extend(task.map(|task| Body::Tasked(Tasked { task })));
        }
        all
    }

    /// Sets the thread of messages to that of the prompted agent.
    fn threaded(&self, mut bodies: Vec<Body>) -> Vec<Body> {
        let thread = self
            .prompt_override
            .as_ref()
            .and_then(|prompt_override| prompt_override.thread.as_ref());
        for body in &mut bodies {
            if let Body::Message(message) = body
                && message.thread.is_none()
            {
                message.thread = thread.cloned();
            }
        }
        bodies
    }

    pub(super) fn show_recorded(&mut self, recorded: &Recorded, frontend: &mut dyn Frontend) {
        if let Some(from) = recorded.left {
            let to = self.writer.id();
            frontend.show(SessionEvent::Moved { to });
            frontend.show(Notice::SteppedAside { from, to }.into());
        }
        if recorded.trouble.is_none() && self.unsaved {
            self.unsaved = false;
            frontend.show(Notice::SavedAgain.into());
        }
        if self.by_brief {
            self.written
                .entries
                .extend(recorded.entries.iter().cloned());
        }
        let mut redacted = BTreeMap::new();
        for entry in &recorded.entries {
            frontend.show(SessionEvent::durable(entry));
            for (kind, count) in &entry.redacted {
                *redacted.entry(kind.clone()).or_insert(0) += count;
            }
        }
        if !redacted.is_empty() {
            frontend.show(Notice::Redacted(redacted).into());
        }
        if let Some(bytes) = recorded.near_limit {
            frontend.show(Notice::NearLimit { bytes }.into());
        }
    }

    /// Adds the last `new` messages of `entries` to the context: later turns see redacted text.
    /// Messages before these were held, and are in the context already.
    pub(super) fn remember(&mut self, entries: &[Entry], new: usize) {
        let said: Vec<ContextMessage> = entries.iter().filter_map(said_in).collect();
        let known = said.len().saturating_sub(new);
        if self.remembers() {
            self.context.messages.extend(said.into_iter().skip(known));
        }
    }

    /// Returns true in a chat. Teams and pairs keep their own contexts, so that this one would only
    /// grow.
    fn remembers(&self) -> bool {
        self.prompt_override.is_none() && self.members.is_empty() && !self.by_brief
    }
}

fn message_of(body: &Body) -> Option<&Message> {
    match body {
        Body::Message(message) => Some(message),
        _ => None,
    }
}
