//! The shared state of a session that is followed or running: publishes its events to the client
//! that started the turn and to all followers.

mod state;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tertulia_agents::approval::{PermissionChange, Permissions, ToolRequest, Verdict};
use tertulia_core::id::SessionId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::live_state::LiveState;
use crate::outbox::Outbox;
use crate::protocol::{Answer, Detail, ErrorBody, ErrorKind, Id, TalkInfo, TalkState};
use crate::recent_events::RecentEvents;
use crate::reply_stream::ReplyStream;
use state::{Running, State};
use tertulia_engine::event::{SessionEvent, SessionState};
use tertulia_engine::live::CommandOutcome;

/// Maximum number of queued orders.
const QUEUE: usize = 32;

/// Client number.
pub type ClientId = u64;

/// A client to reply to, and the request id of its replies.
#[derive(Clone, Debug)]
pub struct Voice {
    /// The client.
    pub client: ClientId,
    /// The request id.
    pub id: Option<Id>,
    /// The queue of its replies.
    pub outbox: Outbox,
    /// False after the client has closed its sending side: then it cannot answer approval requests.
    pub speaks: Arc<AtomicBool>,
}

impl Voice {
    /// Sends a reply.
    pub fn tell(&self, answer: Answer) {
        self.outbox.post(self.id.as_ref(), answer);
    }

    fn can_answer(&self) -> bool {
        self.speaks.load(Ordering::Relaxed) && self.outbox.end().is_none()
    }
}

/// An order for a conversation.
#[derive(Debug)]
pub struct Order {
    /// The command.
    pub what: What,
    /// The client that gave it.
    pub client: ClientId,
    /// The client that receives the answer as a stream, if any.
    pub asker: Option<Voice>,
    /// Cancels the order, queued or running.
    pub cancel: CancellationToken,
}

/// Command for a conversation.
#[derive(Debug)]
pub enum What {
    /// Sends a message of the user.
    Say(String),
    /// Sets the team member as whom the user writes.
    As(Option<String>),
    /// Compacts the older part of the context.
    Compact,
    /// Retries saving held messages and reports the result to the client.
    Save,
    /// Changes the tool permissions.
    Permit(PermissionChange),
    /// Opens the conversation again, with another agent.
    Reopen,
    /// Only opens the conversation.
    Open,
}

/// The shared state of a session that is followed or running.
#[derive(Debug)]
pub struct Room {
    state: Mutex<State>,
}

/// Handle of a running conversation.
#[derive(Clone, Debug)]
pub struct Talk {
    orders: mpsc::UnboundedSender<Order>,
    /// Stops the conversation.
    pub stop: CancellationToken,
    /// Aborts the running turn without waiting for it.
    pub insist: CancellationToken,
    /// Cancelled when the conversation has ended.
    pub gone: CancellationToken,
    phase: TalkState,
    /// The client that receives events while the conversation opens.
    opener: Option<Voice>,
    /// Queued orders: the client and the token of each.
    queued: Vec<(ClientId, CancellationToken)>,
    /// The tool permissions, once the conversation is open.
    permissions: Option<Permissions>,
}

impl Room {
    /// Creates an empty room. Event numbers start at the current time in microseconds, so that no
    /// number is used twice.
    pub fn new(id: SessionId, now: Timestamp) -> Room {
        let n = u64::try_from(now.as_microsecond()).unwrap_or(0);
        Room {
            state: Mutex::new(State {
                id,
                window: RecentEvents::new(n),
                moment: LiveState::blank(id),
                followers: Vec::new(),
                talk: None,
                running: None,
                question: None,
                since: now,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session id.
    pub fn id(&self) -> SessionId {
        self.state().id
    }

    /// Returns the running conversation, if any.
    pub fn talk(&self) -> Option<Talk> {
        self.state().talk.clone()
    }

    /// Returns true if there is neither a follower nor a running conversation.
    pub fn is_empty(&self) -> bool {
        let state = self.state();
        state.talk.is_none() && state.followers.is_empty()
    }

    /// Returns true if a turn is running.
    pub fn is_answering(&self) -> bool {
        self.state().running.is_some()
    }

    /// Returns true if an order is running or queued, or the conversation is opening.
    pub fn is_busy(&self) -> bool {
        let state = self.state();
        let waits = |talk: &Talk| !talk.queued.is_empty() || talk.phase == TalkState::Opening;
        state.running.is_some() || state.talk.as_ref().is_some_and(waits)
    }

    /// Returns true if the conversation only waits for input and everything is saved: closing it
    /// loses nothing.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        let waits = |talk: &Talk| talk.queued.is_empty() && talk.phase == TalkState::Waiting;
        state.running.is_none()
            && !state.moment.floor().unsaved
            && state.talk.as_ref().is_some_and(waits)
    }

    /// Returns true if the conversation is open or opening.
    pub fn is_open(&self) -> bool {
        let state = self.state();
        let open = |talk: &Talk| talk.phase != TalkState::Leaving && !talk.stop.is_cancelled();
        state.talk.as_ref().is_some_and(open)
    }

    /// Returns when the state last changed.
    pub fn since(&self) -> Timestamp {
        self.state().since
    }

    /// Returns true if a client follows with full detail.
    pub fn is_watched(&self) -> bool {
        let state = self.state();
        state
            .followers
            .iter()
            .any(|(_, detail)| *detail == Detail::Full)
    }

    /// Returns true if an order of this client is running or queued.
    pub fn works_for(&self, client: ClientId) -> bool {
        let state = self.state();
        let runs = state
            .running
            .as_ref()
            .is_some_and(|running| running.client == client);
        let waits = state
            .talk
            .as_ref()
            .is_some_and(|talk| talk.queued.iter().any(|(whose, _)| *whose == client));
        runs || waits
    }

    /// Returns the current state.
    pub fn floor(&self) -> SessionState {
        self.state().moment.floor().clone()
    }

    /// Starts a conversation. Returns the receiver of its orders.
    pub fn begin(&self, opener: Option<Voice>, now: Timestamp) -> mpsc::UnboundedReceiver<Order> {
        let (orders, waiting) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.since = now;
        state.talk = Some(Talk {
            orders,
            stop: CancellationToken::new(),
            insist: CancellationToken::new(),
            gone: CancellationToken::new(),
            phase: TalkState::Opening,
            opener,
            queued: Vec::new(),
            permissions: None,
        });
        waiting
    }

    /// Queues an order for the conversation.
    pub fn order(&self, order: Order) -> Result<(), ErrorBody> {
        let mut state = self.state();
        let gone = || ErrorBody::new(ErrorKind::NotFound, "this session has ended");
        let talk = state.talk.as_mut().ok_or_else(gone)?;
        if talk.queued.len() >= QUEUE {
            let words = format!("{QUEUE} queries wait in this session already");
            return Err(ErrorBody::new(ErrorKind::Busy, words));
        }
        let queued = (order.client, order.cancel.clone());
        talk.orders.send(order).map_err(|_| gone())?;
        talk.queued.push(queued);
        Ok(())
    }

    /// Sets the phase of the conversation.
    pub fn enter(&self, phase: TalkState, now: Timestamp) {
        let mut state = self.state();
        state.since = now;
        if let Some(talk) = &mut state.talk {
            talk.phase = phase;
            talk.opener = None;
        }
    }

    /// Sets the tool permissions of the opened conversation and publishes them.
    pub fn permit(&self, permissions: Permissions) {
        let mut state = self.state();
        let shown = permissions.state();
        if let Some(talk) = &mut state.talk {
            talk.permissions = Some(permissions);
        }
        state.publish(SessionEvent::Permissions { state: shown });
    }

    /// Returns true if the tool permissions can be changed immediately, even during a turn.
    pub fn is_permitted(&self) -> bool {
        let state = self.state();
        state
            .talk
            .as_ref()
            .is_some_and(|talk| talk.permissions.is_some())
    }

    /// Changes the tool permissions and publishes them.
    pub fn change_permissions(&self, change: &PermissionChange) {
        let mut state = self.state();
        let talk = state.talk.as_ref();
        if let Some(permissions) = talk.and_then(|talk| talk.permissions.clone()) {
            permissions.change(change);
            state.publish(SessionEvent::Permissions {
                state: permissions.state(),
            });
        }
    }

    /// Ends the conversation unless orders are queued. Returns true if it has ended.
    pub fn end(&self, orders: &mpsc::UnboundedReceiver<Order>) -> bool {
        let mut state = self.state();
        if !orders.is_empty() {
            return false;
        }
        if let Some(talk) = state.talk.take() {
            talk.gone.cancel();
        }
        true
    }

    /// Ends a conversation that could not be opened or was stopped, and reports that to the clients
    /// of all queued orders. A client that orders something in reply opens the session anew, possibly
    /// with another agent.
    pub fn fail(&self, orders: &mut mpsc::UnboundedReceiver<Order>, error: &ErrorBody) {
        let mut state = self.state();
        while let Ok(order) = orders.try_recv() {
            state.dismiss(&order, Some(error.clone()));
        }
        if let Some(talk) = state.talk.take() {
            talk.gone.cancel();
        }
    }

    /// Removes the next order from the list of queued ones.
    pub fn take_up(&self) {
        let mut state = self.state();
        if let Some(talk) = &mut state.talk
            && !talk.queued.is_empty()
        {
            talk.queued.remove(0);
        }
    }

    /// Marks an order as running.
    pub fn carry_out(&self, order: &Order, now: Timestamp) {
        let mut state = self.state();
        state.since = now;
        state.running = Some(Running {
            client: order.client,
            asker: order.asker.clone(),
            telling: ReplyStream::default(),
            cancel: order.cancel.clone(),
        });
    }

    /// Publishes an event.
    pub fn publish(&self, happening: SessionEvent) {
        self.state().publish(happening);
    }

    /// Ends the running turn: publishes its notices and the new state, and completes the client's
    /// request.
    pub fn finish(&self, outcome: CommandOutcome, floor: SessionState, now: Timestamp) {
        let mut state = self.state();
        for told in outcome.notices {
            state.publish(SessionEvent::notice(told.tone, told.text));
        }
        state.publish(SessionEvent::Over {
            floor: Box::new(floor),
        });
        state.since = now;
        let Some(running) = state.running.take() else {
            return;
        };
        let Some(asker) = running.asker else {
            return;
        };
        if let Some(trouble) = outcome.error {
            asker.tell(Answer::Error(trouble));
        }
        asker.tell(state.complete(outcome.status, &running.telling));
    }

    /// Reports to the client that its order is not executed.
    pub fn dismiss(&self, order: &Order, trouble: Option<ErrorBody>) {
        self.state().dismiss(order, trouble);
    }

    /// Subscribes a client; replaces an earlier subscription of the same client.
    pub fn follow(&self, voice: Voice, detail: Detail, since: Option<u64>) {
        let mut state = self.state();
        state
            .followers
            .retain(|(known, _)| known.client != voice.client);
        let session_id = state.id.to_string();
        let missed = since.and_then(|since| state.window.since(since));
        voice.tell(Answer::Subscribed {
            session_id: session_id.clone(),
            n: state.window.n(),
            fresh: missed.is_none(),
        });
        if detail == Detail::Full {
            let n = state.window.n();
            let (replayed, all) = match missed {
                Some(missed) => (false, missed),
                None => (
                    true,
                    state.replay().into_iter().map(|what| (n, what)).collect(),
                ),
            };
            for (n, happening) in all {
                voice.tell(Answer::Happening {
                    session_id: session_id.clone(),
                    n,
                    replayed,
                    happening: Box::new(happening),
                });
            }
        }
        state.followers.push((voice, detail));
    }

    /// Ends a subscription. Returns true if there was one.
    pub fn unfollow(&self, client: ClientId) -> bool {
        let mut state = self.state();
        let before = state.followers.len();
        state.followers.retain(|(voice, _)| voice.client != client);
        state.settle_if_nobody_can();
        state.followers.len() < before
    }

    /// Notes that a client has disconnected (`entirely`) or closed its sending side. The
    /// conversation continues.
    pub fn lose(&self, client: ClientId, entirely: bool) {
        let mut state = self.state();
        if entirely {
            state.followers.retain(|(voice, _)| voice.client != client);
            if let Some(running) = &mut state.running
                && running.client == client
            {
                running.asker = None;
            }
        }
        state.settle_if_nobody_can();
    }

    /// Publishes an approval request. Returns `None` if no client can answer it.
    pub fn ask(&self, request: &ToolRequest) -> Option<oneshot::Receiver<Verdict>> {
        let mut state = self.state();
        if !state.can_ask() {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        state.question = Some((request.call.id.clone(), answer));
        state.publish(SessionEvent::MayI {
            request: Box::new(request.clone()),
        });
        Some(answered)
    }

    /// Answers the approval request for this tool call. Returns true if there was one.
    pub fn answer(&self, tool_id: &str, verdict: Verdict) -> bool {
        self.state().settle(Some(tool_id), verdict)
    }

    /// Returns true if approval of this tool call is pending.
    pub fn asks_about(&self, tool_id: &str) -> bool {
        let state = self.state();
        state
            .question
            .as_ref()
            .is_some_and(|(asked, _)| asked == tool_id)
    }

    /// Withdraws the approval request.
    pub fn forget_question(&self) {
        self.state().settle(None, Verdict::No);
    }

    /// Cancels the running turn and this client's queued orders. Returns true if there were any.
    pub fn cancel(&self, client: ClientId) -> bool {
        let state = self.state();
        let mut any = false;
        if let Some(running) = &state.running {
            running.cancel.cancel();
            any = true;
        }
        for (whose, cancel) in state.talk.iter().flat_map(|talk| &talk.queued) {
            if *whose == client {
                cancel.cancel();
                any = true;
            }
        }
        any
    }

    /// Stops the conversation.
    pub fn stop(&self) -> Option<Talk> {
        let state = self.state();
        let talk = state.talk.clone()?;
        talk.stop.cancel();
        if let Some(running) = &state.running {
            running.cancel.cancel();
        }
        Some(talk)
    }

    /// Moves the room to another session, in which the conversation continues.
    pub fn move_to(&self, to: SessionId) {
        let mut state = self.state();
        state.publish(SessionEvent::Moved { to });
        state.id = to;
    }

    /// Returns the conversation's description for `ps`.
    pub fn info(&self) -> Option<TalkInfo> {
        let state = self.state();
        let talk = state.talk.as_ref()?;
        let meta = state.moment.floor().meta.as_ref();
        Some(TalkInfo {
            session_id: state.id.to_string(),
            title: meta.and_then(|meta| meta.title.clone()),
            kind: meta.map(|meta| meta.kind.name().to_owned()),
            agents: meta.map(|meta| meta.agents.clone()).unwrap_or_default(),
            state: match (&state.question, &state.running) {
                (Some(_), _) => TalkState::Asking,
                (None, Some(_)) => TalkState::Answering,
                (None, None) => talk.phase,
            },
            since: state.since.to_string(),
            queued: talk.queued.len(),
            followers: state.followers.len(),
        })
    }
}
