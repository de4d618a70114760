//! [`MessageQueue`]: messages of the user that wait for the running turn, for all frontends of a live
//! session. They are on disk before a frontend is told that they are queued, and the end of each is told
//! to all. What is left of them after a crash is never sent by itself: it is a draft.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia_core::id::SessionId;
use tertulia_core::session::SessionMeta;
use tertulia_store::{Sessions, StoreResult, Unsent, UnsentMessage};
use tokio::sync::Notify;

use crate::error::{ErrorBody, ErrorKind};
use crate::event::SessionEvent;

/// Maximum number of queued messages.
const LONGEST: usize = 32;
/// Number of ended messages whose end is remembered, for frontends that ask again.
const REMEMBERED: usize = 64;

/// A frontend, by a number of its own.
pub type FrontendId = u64;

/// Why a message that waited is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithdrawReason {
    /// The user cancelled the running turn.
    Cancelled,
    /// The user removed it from the queue, or from the drafts.
    Removed,
    /// The session was stopped.
    Stopped,
    /// The program that had the session open has ended it.
    HolderEnded,
    /// The program that had the session open was killed.
    Restarted,
    /// It could not be sent, and an error has said why.
    Refused,
}

/// What became of a message that a frontend wants to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It waits.
    Queued,
    /// It waits already, or is being answered.
    Duplicate,
    /// It was withdrawn before.
    Withdrawn(WithdrawReason),
}

/// Publishes an event to all frontends.
type Publish = Box<dyn Fn(SessionEvent) + Send + Sync>;

/// Messages of the user that wait for the running turn.
#[derive(Clone)]
pub struct MessageQueue(Arc<Inner>);

impl std::fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MessageQueue").field(&self.state()).finish()
    }
}

struct Inner {
    sessions: Sessions,
    project: Option<String>,
    state: Mutex<State>,
    /// Held while the words are written, so that they are written in the order of their changes.
    writing: tokio::sync::Mutex<()>,
    publish: Mutex<Option<Publish>>,
    /// Wakes the session when the message that is edited is put back.
    released: Notify,
}

#[derive(Debug)]
struct State {
    id: SessionId,
    /// Queued messages in their order, and drafts.
    messages: Vec<UnsentMessage>,
    /// The message of the running turn: it may not be in the log yet.
    running: Option<UnsentMessage>,
    /// What frontends have in their inputs, by their keys.
    typed: BTreeMap<String, UnsentMessage>,
    /// The message that a frontend edits: it and those after it wait.
    editing: Option<(FrontendId, String)>,
    /// Ends of messages.
    ended: VecDeque<(String, WithdrawReason)>,
    /// What was written last, and for which session.
    written: Option<(SessionId, Unsent)>,
    is_closed: bool,
}

impl State {
    fn queued(&self) -> impl Iterator<Item = &UnsentMessage> {
        self.messages.iter().filter(|message| message.is_queued)
    }

    fn find(&mut self, client_id: &str) -> Option<&mut UnsentMessage> {
        let mut messages = self.messages.iter_mut();
        messages.find(|message| message.client_id == client_id)
    }

    fn end(&mut self, client_id: &str, reason: WithdrawReason) {
        self.ended.push_back((client_id.to_owned(), reason));
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
        if self.editing.as_ref().is_some_and(|(_, id)| id == client_id) {
            self.editing = None;
        }
    }

    fn at_rest(&self, project: Option<&String>) -> Unsent {
        let running = self.running.iter();
        let messages = running.chain(&self.messages).chain(self.typed.values());
        let messages: Vec<UnsentMessage> = messages.cloned().collect();
        Unsent {
            project: project.filter(|_| !messages.is_empty()).cloned(),
            messages,
            sealed: None,
        }
    }
}

impl MessageQueue {
    /// Creates the queue of a session that this process has opened. What an earlier process left is a
    /// draft.
    pub async fn open(
        sessions: Sessions,
        id: SessionId,
        meta: Option<&SessionMeta>,
        project: Option<String>,
    ) -> StoreResult<MessageQueue> {
        let mut messages = sessions.unsent(id, meta).await?;
        let mut ended = VecDeque::new();
        for message in &mut messages {
            if std::mem::take(&mut message.is_queued) {
                ended.push_back((message.client_id.clone(), WithdrawReason::Restarted));
            }
        }
        Ok(MessageQueue(Arc::new(Inner {
            sessions,
            project,
            state: Mutex::new(State {
                id,
                messages,
                running: None,
                typed: BTreeMap::new(),
                editing: None,
                ended,
                written: None,
                is_closed: false,
            }),
            writing: tokio::sync::Mutex::default(),
            publish: Mutex::default(),
            released: Notify::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what publishes the changes, and publishes what there is.
    pub fn publish_to(&self, publish: impl Fn(SessionEvent) + Send + Sync + 'static) {
        *self.publisher() = Some(Box::new(publish));
        if !self.state().messages.is_empty() {
            self.tell(self.event());
        }
    }

    fn publisher(&self) -> MutexGuard<'_, Option<Publish>> {
        let publish = self.0.publish.lock();
        publish.unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, event: SessionEvent) {
        if let Some(publish) = &*self.publisher() {
            publish(event);
        }
    }

    /// Describes the messages.
    pub fn event(&self) -> SessionEvent {
        let state = self.state();
        SessionEvent::Unsent {
            messages: state.messages.clone(),
            editing: state.editing.as_ref().map(|(_, id)| id.clone()),
        }
    }

    /// Returns true if no message waits.
    pub fn is_empty(&self) -> bool {
        self.state().queued().next().is_none()
    }

    /// Returns true if a message is queued or is that of the running turn.
    pub fn has(&self, client_id: &str) -> bool {
        let state = self.state();
        let is = |message: &UnsentMessage| message.client_id == client_id;
        state.queued().any(is) || state.running.as_ref().is_some_and(is)
    }

    fn is_draft(&self, client_id: &str) -> bool {
        let state = self.state();
        let mut drafts = state.messages.iter().filter(|message| !message.is_queued);
        drafts.any(|draft| draft.client_id == client_id)
    }

    /// Returns the end of a message that was withdrawn.
    pub fn end_of(&self, client_id: &str) -> Option<WithdrawReason> {
        let state = self.state();
        let mut ended = state.ended.iter().rev();
        ended
            .find(|(id, _)| id == client_id)
            .map(|(_, reason)| *reason)
    }

    /// Queues a message. It is durable on return. If nothing waits before it, it is taken even if it cannot
    /// be written: then the session tells what is wrong.
    pub async fn put(&self, message: UnsentMessage) -> Result<Put, ErrorBody> {
        let _writing = self.0.writing.lock().await;
        let client_id = message.client_id.clone();
        if self.has(&client_id) {
            return Ok(Put::Duplicate);
        }
        if let Some(reason) = self.end_of(&client_id) {
            return Ok(Put::Withdrawn(reason));
        }
        // An earlier process withdrew it.
        if self.is_draft(&client_id) {
            return Ok(Put::Withdrawn(WithdrawReason::Restarted));
        }
        let is_first = {
            let mut state = self.state();
            if state.is_closed {
                return Err(closed());
            }
            if state.queued().count() >= LONGEST {
                let words = format!("{LONGEST} messages wait in this session already");
                return Err(ErrorBody::new(ErrorKind::Busy, words));
            }
            let is_first = state.queued().next().is_none() && state.running.is_none();
            state.messages.push(UnsentMessage {
                is_queued: true,
                ..message
            });
            is_first
        };
        if let Err(error) = self.write().await
            && !is_first
        {
            self.state()
                .messages
                .retain(|one| one.client_id != client_id);
            return Err(ErrorBody::from(&error));
        }
        // Cancelling may have been faster.
        if let Some(reason) = self.end_of(&client_id) {
            return Ok(Put::Withdrawn(reason));
        }
        self.tell(self.event());
        Ok(Put::Queued)
    }

    /// Takes the next message, which begins a turn. Waits while a frontend edits it. Returns `None` if no
    /// message waits.
    pub async fn next(&self) -> Option<UnsentMessage> {
        loop {
            let released = self.0.released.notified();
            {
                let mut state = self.state();
                let next = state.messages.iter().position(|one| one.is_queued)?;
                let id = &state.messages[next].client_id;
                let is_edited = state
                    .editing
                    .as_ref()
                    .is_some_and(|(_, edited)| edited == id);
                if !is_edited {
                    let message = state.messages.remove(next);
                    state.running = Some(message.clone());
                    drop(state);
                    self.tell(self.event());
                    return Some(message);
                }
            }
            released.await;
        }
    }

    /// Notes that the turn of a message has ended. One that was refused is not in the log: its words go back
    /// to the user.
    pub async fn finish(&self, refused: bool) {
        let Some(message) = self.state().running.take() else {
            return;
        };
        if refused {
            self.give_back(vec![message], WithdrawReason::Refused);
        }
        self.save().await;
    }

    /// Lets a frontend edit a queued message: until it is put back, it and those after it wait. Returns
    /// false if it does not wait any more.
    pub fn begin_editing(&self, client_id: &str, frontend: FrontendId) -> bool {
        {
            let mut state = self.state();
            let waits = state.queued().any(|one| one.client_id == client_id);
            if !waits {
                return false;
            }
            state.editing = Some((frontend, client_id.to_owned()));
        }
        self.0.released.notify_waiters();
        self.tell(self.event());
        true
    }

    /// Puts a message that was edited back at its place. Returns false if it does not wait any more.
    pub async fn edit(&self, client_id: &str, text: String) -> Result<bool, ErrorBody> {
        let before = {
            let mut state = self.state();
            let now = self.0.sessions.clock().now();
            let Some(message) = state.find(client_id).filter(|one| one.is_queued) else {
                return Ok(false);
            };
            let before = std::mem::replace(&mut message.text, text);
            message.at = now;
            before
        };
        let saved = {
            let _writing = self.0.writing.lock().await;
            self.write().await
        };
        if saved.is_err()
            && let Some(message) = self.state().find(client_id)
        {
            message.text = before;
        }
        self.release(None);
        saved
            .map(|()| true)
            .map_err(|error| ErrorBody::from(&error))
    }

    /// Ends the editing by a frontend, or by any.
    pub fn release(&self, frontend: Option<FrontendId>) {
        {
            let mut state = self.state();
            let is_its = |(by, _): &mut (FrontendId, String)| frontend.is_none_or(|one| one == *by);
            state.editing.take_if(|editing| is_its(editing));
        }
        self.0.released.notify_waiters();
        self.tell(self.event());
    }

    /// Removes a queued message or a draft. Returns false if there is none.
    pub async fn remove(&self, client_id: &str) -> bool {
        let removed = {
            let mut state = self.state();
            let place = state
                .messages
                .iter()
                .position(|one| one.client_id == client_id);
            let removed = place.map(|place| state.messages.remove(place));
            if removed.is_some() {
                state.end(client_id, WithdrawReason::Removed);
            }
            removed
        };
        let Some(message) = removed else { return false };
        self.0.released.notify_waiters();
        self.tell(SessionEvent::Withdrawn {
            client_id: message.client_id,
            text: message.text,
            reason: WithdrawReason::Removed,
        });
        self.tell(self.event());
        self.save().await;
        true
    }

    /// Withdraws all queued messages: they are drafts from now on.
    pub fn withdraw(&self, reason: WithdrawReason) {
        let withdrawn: Vec<UnsentMessage> = {
            let mut state = self.state();
            let (queued, drafts) = state.messages.drain(..).partition(|one| one.is_queued);
            state.messages = drafts;
            queued
        };
        if !withdrawn.is_empty() {
            self.give_back(withdrawn, reason);
        }
        self.0.released.notify_waiters();
    }

    /// Makes drafts of messages, and tells the frontends.
    fn give_back(&self, messages: Vec<UnsentMessage>, reason: WithdrawReason) {
        let mut events = Vec::new();
        {
            let mut state = self.state();
            for message in messages {
                state.end(&message.client_id, reason);
                events.push(SessionEvent::Withdrawn {
                    client_id: message.client_id.clone(),
                    text: message.text.clone(),
                    reason,
                });
                state.messages.push(UnsentMessage {
                    is_queued: false,
                    ..message
                });
            }
        }
        events.into_iter().for_each(|event| self.tell(event));
        self.tell(self.event());
    }

    /// Notes what a frontend has in its input, by a key of its own. It is saved with the next change, by
    /// [`MessageQueue::save_typed`] or when the session is closed.
    pub fn set_typed(&self, key: &str, text: String) {
        let mut state = self.state();
        if text.trim().is_empty() {
            state.typed.remove(key);
        } else {
            let typed = UnsentMessage::typed(key.to_owned(), self.now(), text);
            state.typed.insert(key.to_owned(), typed);
        }
    }

    /// Saves what frontends have in their inputs.
    pub async fn save_typed(&self) {
        self.save().await;
    }

    /// Returns the time of the session's clock.
    pub fn now(&self) -> Timestamp {
        self.0.sessions.clock().now()
    }

    /// Takes over what the user left in sessions of this project that have no entries.
    pub async fn adopt_orphans(&self) {
        let Some(project) = &self.0.project else {
            return;
        };
        let own = self.state().id;
        let found = self.0.sessions.take_orphaned_unsent(project, own).await;
        let Ok(found) = found else { return };
        if found.is_empty() {
            return;
        }
        let drafts = found.into_iter().map(|message| UnsentMessage {
            is_queued: false,
            ..message
        });
        self.state().messages.extend(drafts);
        self.save().await;
        self.tell(self.event());
    }

    /// Follows the session to another one, in which it continues.
    pub async fn move_to(&self, to: SessionId) {
        let from = std::mem::replace(&mut self.state().id, to);
        if from == to {
            return;
        }
        self.save().await;
        // The other program may have words of its own there.
        let ours = self.state().at_rest(None);
        let is_ours = |message: &UnsentMessage| {
            let mut ours = ours.messages.iter();
            ours.any(|one| one.client_id == message.client_id)
        };
        let left = self.0.sessions.unsent(from, None).await;
        if left.is_ok_and(|left| !left.is_empty() && left.iter().all(is_ours)) {
            let _ = self.0.sessions.keep_unsent(from, Unsent::default()).await;
        }
    }

    /// Ends the queue: what waits is withdrawn, and nothing is taken any more.
    pub async fn close(&self, reason: WithdrawReason) {
        self.state().is_closed = true;
        self.withdraw(reason);
        self.save().await;
    }

    /// Writes the words if they have changed; a failure is told when it matters: by the next message that is queued.
    async fn save(&self) {
        let _writing = self.0.writing.lock().await;
        let _ = self.write().await;
    }

    async fn write(&self) -> StoreResult<()> {
        let (id, unsent) = {
            let state = self.state();
            let unsent = state.at_rest(self.0.project.as_ref());
            if state.written.as_ref() == Some(&(state.id, unsent.clone())) {
                return Ok(());
            }
            (state.id, unsent)
        };
        self.0.sessions.keep_unsent(id, unsent.clone()).await?;
        self.state().written = Some((id, unsent));
        Ok(())
    }
}

fn closed() -> ErrorBody {
    ErrorBody::new(ErrorKind::NotFound, "this session has ended")
}
