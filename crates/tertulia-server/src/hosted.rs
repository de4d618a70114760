//! The shared state of a session that is followed or running: publishes its events to the client
//! that started the turn and to all followers.

mod messages;
mod reading;
mod request;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tertulia_agents::approval::{PermissionChange, Permissions, ToolRequest, Verdict};
use tertulia_core::id::SessionId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::live_state::LiveState;
use crate::protocol::{Answer, Detail, ErrorBody, ErrorKind, LivePhase, LiveSessionInfo};
use crate::recent_events::RecentEvents;
use crate::reply_stream::ReplyStream;
pub use messages::{Opening, gone};
pub use request::{ClientId, ReplyTo, SessionAction, SessionRequest};
use state::{Running, State};
use tertulia_engine::event::{SessionEvent, SessionState};
use tertulia_engine::live::CommandOutcome;
use tertulia_engine::message_queue::MessageQueue;

/// Maximum number of queued requests.
const QUEUE: usize = 32;

/// The shared state of a session that is followed or running.
#[derive(Debug)]
pub struct HostedSession {
    state: Mutex<State>,
}

/// A queued request.
#[derive(Clone, Debug)]
struct Queued {
    client: ClientId,
    cancel: CancellationToken,
    /// Id that the client gave the message.
    client_id: Option<String>,
    /// The client that receives the answer as a stream, if any.
    asker: Option<ReplyTo>,
}

/// Handle of a running conversation.
#[derive(Clone, Debug)]
pub struct TaskHandle {
    requests: mpsc::UnboundedSender<SessionRequest>,
    /// Stops the conversation.
    pub stop: CancellationToken,
    /// Aborts the running turn without waiting for it.
    pub insist: CancellationToken,
    /// Cancelled when the conversation has ended.
    pub gone: CancellationToken,
    phase: LivePhase,
    /// The client that receives events while the conversation opens.
    opener: Option<ReplyTo>,
    queued: Vec<Queued>,
    /// The tool permissions, once the conversation is open.
    permissions: Option<Permissions>,
    /// The messages that wait, once the conversation is open; its failure, if it could not be opened.
    messages: watch::Sender<Option<Result<MessageQueue, ErrorBody>>>,
}

impl HostedSession {
    /// Creates an empty hosted session. Event numbers start at the current time in microseconds, so that no
    /// number is used twice.
    pub fn new(id: SessionId, now: Timestamp, awaits_clients: bool) -> HostedSession {
        let n = u64::try_from(now.as_microsecond()).unwrap_or(0);
        HostedSession {
            state: Mutex::new(State {
                id,
                window: RecentEvents::new(n),
                moment: LiveState::blank(id),
                followers: Vec::new(),
                task: None,
                running: None,
                question: None,
                held: Vec::new(),
                awaits_clients,
                reading: None,
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
    pub fn task(&self) -> Option<TaskHandle> {
        self.state().task.clone()
    }

    /// Returns true if there is neither a follower nor a running conversation.
    pub fn is_empty(&self) -> bool {
        let state = self.state();
        state.task.is_none() && state.followers.is_empty()
    }

    /// Returns true if a turn is running.
    pub fn is_answering(&self) -> bool {
        self.state().running.is_some()
    }

    /// Returns true if a request is running or queued, or the conversation is opening.
    pub fn is_busy(&self) -> bool {
        let state = self.state();
        let waits = |task: &TaskHandle| !task.queued.is_empty() || task.phase == LivePhase::Opening;
        state.running.is_some() || state.task.as_ref().is_some_and(waits)
    }

    /// Returns true if the conversation only waits for input and everything is saved: closing it
    /// loses nothing.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        let waits = |task: &TaskHandle| task.queued.is_empty() && task.phase == LivePhase::Waiting;
        state.running.is_none()
            && !state.moment.floor().unsaved
            && state.task.as_ref().is_some_and(waits)
    }

    /// Returns true if the conversation is open or opening.
    pub fn is_open(&self) -> bool {
        let state = self.state();
        let open =
            |task: &TaskHandle| task.phase != LivePhase::Leaving && !task.stop.is_cancelled();
        state.task.as_ref().is_some_and(open)
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

    /// Returns true if a request of this client is running or queued.
    pub fn works_for(&self, client: ClientId) -> bool {
        let state = self.state();
        let runs = state
            .running
            .as_ref()
            .is_some_and(|running| running.client == client);
        let waits = state
            .task
            .as_ref()
            .is_some_and(|task| task.queued.iter().any(|queued| queued.client == client));
        runs || waits
    }

    /// Returns the current state.
    pub fn floor(&self) -> SessionState {
        self.state().moment.floor().clone()
    }

    /// Starts a conversation. Returns the receiver of its requests.
    pub fn begin(
        &self,
        opener: Option<ReplyTo>,
        now: Timestamp,
    ) -> mpsc::UnboundedReceiver<SessionRequest> {
        let (requests, waiting) = mpsc::unbounded_channel();
        let mut state = self.state();
        state.since = now;
        state.stop_reading();
        state.task = Some(TaskHandle {
            requests,
            stop: CancellationToken::new(),
            insist: CancellationToken::new(),
            gone: CancellationToken::new(),
            phase: LivePhase::Opening,
            opener,
            queued: Vec::new(),
            permissions: None,
            messages: watch::Sender::new(None),
        });
        waiting
    }

    /// Queues a request for the conversation.
    pub fn submit(&self, request: SessionRequest) -> Result<(), ErrorBody> {
        let mut state = self.state();
        let task = state.task.as_mut().ok_or_else(gone)?;
        if task.queued.len() >= QUEUE {
            let words = format!("{QUEUE} requests wait in this session already");
            return Err(ErrorBody::new(ErrorKind::Busy, words));
        }
        let queued = Queued {
            client: request.client,
            cancel: request.cancel.clone(),
            client_id: None,
            asker: request.asker.clone(),
        };
        task.requests.send(request).map_err(|_| gone())?;
        task.queued.push(queued);
        Ok(())
    }

    /// Sets the phase of the conversation.
    pub fn enter(&self, phase: LivePhase, now: Timestamp) {
        let mut state = self.state();
        state.since = now;
        if let Some(task) = &mut state.task {
            task.phase = phase;
            task.opener = None;
        }
    }

    /// Sets the tool permissions of the opened conversation and publishes them.
    pub fn permit(&self, permissions: Permissions, messages: &MessageQueue) {
        let mut state = self.state();
        let shown = permissions.state();
        if let Some(task) = &mut state.task {
            task.permissions = Some(permissions);
            task.messages.send_replace(Some(Ok(messages.clone())));
        }
        state.publish(SessionEvent::Permissions { state: shown });
    }

    /// Returns true if the tool permissions can be changed immediately, even during a turn.
    pub fn is_permitted(&self) -> bool {
        let state = self.state();
        state
            .task
            .as_ref()
            .is_some_and(|task| task.permissions.is_some())
    }

    /// Changes the tool permissions and publishes them.
    pub fn change_permissions(&self, change: &PermissionChange) {
        let mut state = self.state();
        let task = state.task.as_ref();
        if let Some(permissions) = task.and_then(|task| task.permissions.clone()) {
            permissions.change(change);
            state.publish(SessionEvent::Permissions {
                state: permissions.state(),
            });
        }
    }

    /// Ends the conversation unless requests are queued. Returns true if it has ended.
    pub fn end(&self, requests: &mpsc::UnboundedReceiver<SessionRequest>) -> bool {
        let mut state = self.state();
        if !requests.is_empty() {
            return false;
        }
        if let Some(task) = state.task.take() {
            task.gone.cancel();
        }
        true
    }

    /// Ends a conversation that could not be opened or was stopped, and reports that to the clients
    /// of all queued requests. A client that requests something in reply opens the session anew, possibly
    /// with another agent.
    pub fn fail(&self, requests: &mut mpsc::UnboundedReceiver<SessionRequest>, error: &ErrorBody) {
        let mut state = self.state();
        while let Ok(request) = requests.try_recv() {
            state.dismiss(&request, Some(error.clone()));
        }
        if let Some(task) = state.task.take() {
            let failed = Err(error.clone());
            task.messages.send_if_modified(|messages| {
                let is_opening = messages.is_none();
                messages.get_or_insert(failed);
                is_opening
            });
            task.gone.cancel();
        }
    }

    /// Removes the next request that is no message from the list of queued ones.
    pub fn take_up(&self) {
        self.state()
            .take_queued(|queued| queued.client_id.is_none());
    }

    /// Marks a request as running.
    pub fn carry_out(&self, request: &SessionRequest, now: Timestamp) {
        let mut state = self.state();
        state.since = now;
        state.running = Some(Running {
            client: request.client,
            asker: request.asker.clone(),
            telling: ReplyStream::default(),
            cancel: request.cancel.clone(),
            client_id: None,
        });
    }

    /// Publishes an event.
    pub fn publish(&self, event: SessionEvent) {
        self.state().publish(event);
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

    /// Reports to the client that its request is not executed.
    pub fn dismiss(&self, request: &SessionRequest, trouble: Option<ErrorBody>) {
        self.state().dismiss(request, trouble);
    }

    /// Subscribes a client; replaces an earlier subscription of the same client.
    pub fn follow(&self, reply_to: ReplyTo, detail: Detail, since: Option<u64>) {
        let mut state = self.state();
        state
            .followers
            .retain(|(known, _)| known.client != reply_to.client);
        let session_id = state.id.to_string();
        let missed = since.and_then(|since| state.window.since(since));
        reply_to.tell(Answer::Subscribed {
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
                    state.replay().into_iter().map(|event| (n, event)).collect(),
                ),
            };
            for (n, event) in all {
                reply_to.tell(Answer::Event {
                    session_id: session_id.clone(),
                    n,
                    replayed,
                    event: Box::new(event),
                });
            }
        }
        state.followers.push((reply_to, detail));
    }

    /// Ends a subscription. Returns true if there was one.
    pub fn unfollow(&self, client: ClientId) -> bool {
        let mut state = self.state();
        let before = state.followers.len();
        state
            .followers
            .retain(|(reply_to, _)| reply_to.client != client);
        state.deny_if_no_client_can_answer();
        state.stop_reading_without_followers();
        state.followers.len() < before
    }

    /// Notes that a client has disconnected (`entirely`) or closed its sending side. The
    /// conversation continues.
    pub fn lose(&self, client: ClientId, entirely: bool) {
        if entirely && let Some(messages) = self.open_messages() {
            messages.release(Some(client));
        }
        let mut state = self.state();
        if entirely {
            state
                .followers
                .retain(|(reply_to, _)| reply_to.client != client);
            if let Some(running) = &mut state.running
                && running.client == client
            {
                running.asker = None;
            }
            state.stop_reading_without_followers();
        }
        state.deny_if_no_client_can_answer();
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

    /// Stops the conversation.
    pub fn stop(&self) -> Option<TaskHandle> {
        let state = self.state();
        let task = state.task.clone()?;
        task.stop.cancel();
        if let Some(running) = &state.running {
            running.cancel.cancel();
        }
        Some(task)
    }

    /// Moves the hosted session to another session, in which the conversation continues.
    pub fn move_to(&self, to: SessionId) {
        let mut state = self.state();
        state.publish(SessionEvent::Moved { to });
        state.id = to;
    }

    /// Returns the conversation's description for `ps`.
    pub fn info(&self) -> Option<LiveSessionInfo> {
        let state = self.state();
        let task = state.task.as_ref()?;
        let meta = state.moment.floor().meta.as_ref();
        Some(LiveSessionInfo {
            session_id: state.id.to_string(),
            title: meta.and_then(|meta| meta.title.clone()),
            kind: meta.map(|meta| meta.kind.name().to_owned()),
            agents: meta.map(|meta| meta.agents.clone()).unwrap_or_default(),
            state: match (&state.question, &state.running) {
                (Some(_), _) => LivePhase::Asking,
                (None, Some(_)) => LivePhase::Answering,
                (None, None) => task.phase,
            },
            since: state.since.to_string(),
            queued: task.queued.len(),
            followers: state.followers.len(),
        })
    }
}
