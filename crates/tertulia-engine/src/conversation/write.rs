//! Saves entries durably, or holds them in memory if that is not possible now.

use std::collections::BTreeMap;

use tokio_util::sync::CancellationToken;

use super::Conversation;
use crate::context::{Thread, concerns};
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::log_writer::Recorded;
use crate::notice::Notice;
use crate::policy::LoggedMessage;
use tertulia_core::entry::{Body, Entry, Message};
use tertulia_store::{LockHolder, StoreResult};

impl Conversation {
    /// Saves entries, or holds them if that is not possible now; messages without a thread get
    /// `thread`. Returns the messages among them, or `None` if the log refuses them.
    pub(super) async fn write(
        &mut self,
        thread: Thread,
        bodies: Vec<Body>,
        frontend: &mut dyn Frontend,
    ) -> Option<Vec<LoggedMessage>> {
        let bodies = self.policy.complete(threaded(thread, bodies));
        let bodies = self.with_terms(bodies);
        let recorded = match self.record(bodies.clone(), frontend).await {
            Ok(recorded) => recorded,
            Err(error) => {
                frontend.show(Notice::Refused(error).into());
                return None;
            }
        };
        let holder = match recorded.left {
            Some(from) => self.writer.holder_of(from).await,
            None => None,
        };
        self.show_recorded(&recorded, holder, frontend);
        // Entries held before are written in the same append and come first. The contexts have
        // them already.
        let known = recorded.entries.len().saturating_sub(bodies.len());
        let mut entries = recorded.entries.into_iter().skip(known);
        let mut messages = Vec::new();
        for body in bodies {
            let entry = entries.next();
            self.remember(entry.as_ref(), &body);
            if let Body::Message(message) = body {
                if entry.is_none() {
                    frontend.show(SessionEvent::Held {
                        message: Box::new(message.clone()),
                    });
                }
                messages.push(self.logged(entry.as_ref(), message));
            }
        }
        if let Some(error) = recorded.trouble {
            self.unsaved = true;
            // A turn writes several times, and each fails for the same reason.
            if !std::mem::replace(&mut self.told_unsaved, true) {
                frontend.show(Notice::Unsaved(error).into());
            }
        }
        Some(messages)
    }

    /// Adds an entry to the contexts that it concerns: as the log has it, or as it is held.
    fn remember(&mut self, entry: Option<&Entry>, body: &Body) {
        let logged = entry.map_or(body, |entry| &entry.body);
        for (thread, context) in &mut self.contexts {
            if concerns(body, *thread) {
                context.add(entry.map(|entry| entry.seq), logged, body);
            }
        }
    }

    /// Returns a message with its id and its text in the log. A held message gets a new id.
    fn logged(&self, entry: Option<&Entry>, mut message: Message) -> LoggedMessage {
        if let Some(logged) = entry.and_then(Entry::message) {
            message.attachments.clone_from(&logged.attachments);
        }
        let logged = entry.and_then(|entry| Some(entry.message()?.content.clone()));
        LoggedMessage {
            id: entry.map_or_else(
                || self.writer.sessions().clock().entry_id(),
                |entry| entry.id,
            ),
            seq: entry.map(|entry| entry.seq),
            logged: logged.filter(|logged| *logged != message.content),
            message,
        }
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
        let mut shown = false;
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
                held = waits.next(), if !shown => {
                    shown = true;
                    frontend.show(Notice::Waiting(held).into());
                }
            }
        }
    }

    /// Tries to save held entries. Returns true if all are saved.
    pub async fn save_held(&mut self, frontend: &mut dyn Frontend) -> bool {
        if self.writer.has_unsaved() {
            self.cancel = CancellationToken::new();
            self.write(None, Vec::new(), frontend).await;
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

    fn show_recorded(
        &mut self,
        recorded: &Recorded,
        holder: Option<LockHolder>,
        frontend: &mut dyn Frontend,
    ) {
        if let Some(from) = recorded.left {
            let to = self.writer.id();
            frontend.show(SessionEvent::Moved { to });
            frontend.show(Notice::SteppedAside { from, to, holder }.into());
        }
        if recorded.trouble.is_none() && self.unsaved {
            (self.unsaved, self.told_unsaved) = (false, false);
            frontend.show(Notice::SavedAgain.into());
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
}

/// Sets the thread of messages that have none.
fn threaded(thread: Thread, mut bodies: Vec<Body>) -> Vec<Body> {
    for body in &mut bodies {
        match (body, thread) {
            (Body::Message(message), _) if message.thread.is_none() => {
                message.thread = thread.map(|role| role.name().to_owned());
            }
            (Body::Thought(thought), Some(role)) => role.name().clone_into(&mut thought.thread),
            _ => {}
        }
    }
    bodies
}
