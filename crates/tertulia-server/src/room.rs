//! A session that is followed or talked in: what happens there is told to whoever asked and to who follows.

mod state;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tertulia_agents::approval::{PermissionChange, Permissions, ToolRequest, Verdict};
use tertulia_core::id::SessionId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::happening::{Floor, Happening};
use crate::host::Ended;
use crate::moment::Moment;
use crate::outbox::Outbox;
use crate::protocol::{Answer, Detail, ErrorKind, Id, Status, TalkInfo, TalkState, Trouble};
use crate::telling::Telling;
use crate::window::Window;
use state::{Running, State};

/// How many orders may wait in a talk.
const QUEUE: usize = 32;

/// A client, by its number.
pub type ClientId = u64;

/// Somebody to be told, and under which name of a request.
#[derive(Clone, Debug)]
pub struct Voice {
    /// Which client.
    pub client: ClientId,
    /// The name of the request.
    pub id: Option<Id>,
    /// Where its answers go.
    pub outbox: Outbox,
    /// Whether it may still say something: one that only reads cannot be asked.
    pub speaks: Arc<AtomicBool>,
}

impl Voice {
    /// Tells it something.
    pub fn tell(&self, answer: Answer) {
        self.outbox.post(self.id.as_ref(), answer);
    }

    fn can_answer(&self) -> bool {
        self.speaks.load(Ordering::Relaxed) && self.outbox.end().is_none()
    }
}

/// What a talk is to do.
#[derive(Debug)]
pub struct Order {
    /// What.
    pub what: What,
    /// Whose it is.
    pub client: ClientId,
    /// Who is told token by token, if anybody is.
    pub asker: Option<Voice>,
    /// Stops it, before it begins or while it runs.
    pub cancel: CancellationToken,
}

/// What is to be done.
#[derive(Debug)]
pub enum What {
    /// Somebody says something.
    Say(String),
    /// Whoever writes is this person from now on.
    As(Option<String>),
    /// The older part is summed up.
    Compact,
    /// What is held is saved, if it can be, and whoever asked is told.
    Save,
    /// The tool permissions are changed.
    Permit(PermissionChange),
    /// Nothing but opening.
    Open,
}

/// A session that is followed or talked in.
#[derive(Debug)]
pub struct Room {
    state: Mutex<State>,
}

/// The talk, from outside.
#[derive(Clone, Debug)]
pub struct Talk {
    orders: mpsc::Sender<Order>,
    /// Ends it.
    pub stop: CancellationToken,
    /// Drops what is being answered: nobody waits any more.
    pub insist: CancellationToken,
    /// It has ended.
    pub gone: CancellationToken,
    phase: TalkState,
    /// Who is told what happens while it opens.
    opener: Option<Voice>,
    /// What waits to be done, each with whose it is and what stops it.
    queued: Vec<(ClientId, CancellationToken)>,
    /// The tool permissions, once it is open.
    permissions: Option<Permissions>,
}

impl Room {
    /// An empty one. Its happenings are numbered by the time, so that no number is ever used twice.
    pub fn new(id: SessionId, now: Timestamp) -> Room {
        let n = u64::try_from(now.as_microsecond()).unwrap_or(0);
        Room {
            state: Mutex::new(State {
                id,
                window: Window::new(n),
                moment: Moment::blank(id),
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

    /// Which session it is.
    pub fn id(&self) -> SessionId {
        self.state().id
    }

    /// The talk in it, if there is one.
    pub fn talk(&self) -> Option<Talk> {
        self.state().talk.clone()
    }

    /// Whether nobody follows it and nobody talks.
    pub fn is_empty(&self) -> bool {
        let state = self.state();
        state.talk.is_none() && state.followers.is_empty()
    }

    /// Whether somebody is answering.
    pub fn is_answering(&self) -> bool {
        self.state().running.is_some()
    }

    /// Whether something is being done or waits to be.
    pub fn is_busy(&self) -> bool {
        let state = self.state();
        let waits = |talk: &Talk| !talk.queued.is_empty() || talk.phase == TalkState::Opening;
        state.running.is_some() || state.talk.as_ref().is_some_and(waits)
    }

    /// Whether the talk only waits for words and holds nothing that is not saved: closing it loses nothing.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        let waits = |talk: &Talk| talk.queued.is_empty() && talk.phase == TalkState::Waiting;
        state.running.is_none()
            && !state.moment.floor().unsaved
            && state.talk.as_ref().is_some_and(waits)
    }

    /// Whether the talk is open, or being opened.
    pub fn is_open(&self) -> bool {
        let state = self.state();
        let open = |talk: &Talk| talk.phase != TalkState::Leaving && !talk.stop.is_cancelled();
        state.talk.as_ref().is_some_and(open)
    }

    /// Since when it is as it is.
    pub fn since(&self) -> Timestamp {
        self.state().since
    }

    /// Whether somebody follows everything.
    pub fn is_watched(&self) -> bool {
        let state = self.state();
        state
            .followers
            .iter()
            .any(|(_, detail)| *detail == Detail::Full)
    }

    /// Whether something of this client is being done or waits to be.
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

    /// How it stands.
    pub fn floor(&self) -> Floor {
        self.state().moment.floor().clone()
    }

    /// Begins a talk in it. Where its orders come from.
    pub fn begin(&self, opener: Option<Voice>, now: Timestamp) -> mpsc::Receiver<Order> {
        let (orders, waiting) = mpsc::channel(QUEUE);
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

    /// Gives the talk an order.
    pub fn order(&self, order: Order) -> Result<(), Trouble> {
        let mut state = self.state();
        let gone = || Trouble::new(ErrorKind::NotFound, "this session has ended");
        let talk = state.talk.as_mut().ok_or_else(gone)?;
        let queued = (order.client, order.cancel.clone());
        match talk.orders.try_send(order) {
            Ok(()) => {
                talk.queued.push(queued);
                Ok(())
            }
            Err(mpsc::error::TrySendError::Full(_)) => Err(Trouble::new(
                ErrorKind::Busy,
                format!("{QUEUE} queries wait in this session already"),
            )),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(gone()),
        }
    }

    /// The talk is opened or closed.
    pub fn enter(&self, phase: TalkState, now: Timestamp) {
        let mut state = self.state();
        state.since = now;
        if let Some(talk) = &mut state.talk {
            talk.phase = phase;
            talk.opener = None;
        }
    }

    /// The talk is open, under these tool permissions.
    pub fn permit(&self, permissions: Permissions) {
        let mut state = self.state();
        let shown = permissions.state();
        if let Some(talk) = &mut state.talk {
            talk.permissions = Some(permissions);
        }
        state.publish(Happening::Permissions { state: shown });
    }

    /// Whether the tool permissions can be changed at once, also while an agent answers.
    pub fn is_permitted(&self) -> bool {
        let state = self.state();
        state
            .talk
            .as_ref()
            .is_some_and(|talk| talk.permissions.is_some())
    }

    /// Changes the tool permissions, and tells everybody who follows.
    pub fn change_permissions(&self, change: &PermissionChange) {
        let mut state = self.state();
        let talk = state.talk.as_ref();
        if let Some(permissions) = talk.and_then(|talk| talk.permissions.clone()) {
            permissions.change(change);
            state.publish(Happening::Permissions {
                state: permissions.state(),
            });
        }
    }

    /// The talk is over, if nothing waits to be done. Whether it is.
    pub fn end(&self, orders: &mpsc::Receiver<Order>) -> bool {
        let mut state = self.state();
        if !orders.is_empty() {
            return false;
        }
        if let Some(talk) = state.talk.take() {
            talk.gone.cancel();
        }
        true
    }

    /// The next order does not wait any more.
    pub fn take_up(&self) {
        let mut state = self.state();
        if let Some(talk) = &mut state.talk
            && !talk.queued.is_empty()
        {
            talk.queued.remove(0);
        }
    }

    /// An order is being carried out.
    pub fn carry_out(&self, order: &Order, now: Timestamp) {
        let mut state = self.state();
        state.since = now;
        state.running = Some(Running {
            client: order.client,
            asker: order.asker.clone(),
            telling: Telling::default(),
            cancel: order.cancel.clone(),
        });
    }

    /// Tells what happened.
    pub fn publish(&self, happening: Happening) {
        self.state().publish(happening);
    }

    /// Nobody is answering any more.
    pub fn finish(&self, ended: Ended, floor: Floor, now: Timestamp) {
        let mut state = self.state();
        for told in ended.notices {
            state.publish(Happening::Notice {
                tone: told.tone,
                text: told.text,
            });
        }
        state.publish(Happening::Over {
            floor: Box::new(floor),
        });
        state.since = now;
        let Some(running) = state.running.take() else {
            return;
        };
        let Some(asker) = running.asker else {
            return;
        };
        if let Some(trouble) = ended.trouble {
            asker.tell(Answer::Error(trouble));
        }
        asker.tell(state.complete(ended.status, &running.telling));
    }

    /// An order that is not carried out any more.
    pub fn dismiss(&self, order: &Order, trouble: Option<Trouble>) {
        let Some(asker) = &order.asker else { return };
        if matches!(order.what, What::Save) {
            return asker.tell(Answer::SessionSaved { success: false });
        }
        let status = match &trouble {
            Some(_) => Status::Failed,
            None => Status::Cancelled,
        };
        if let Some(trouble) = trouble {
            asker.tell(Answer::Error(trouble));
        }
        asker.tell(self.state().complete(status, &Telling::default()));
    }

    /// Follows it. Who followed before under another name follows under this one.
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

    /// Follows it no more. Whether it was followed.
    pub fn unfollow(&self, client: ClientId) -> bool {
        let mut state = self.state();
        let before = state.followers.len();
        state.followers.retain(|(voice, _)| voice.client != client);
        state.settle_if_nobody_can();
        state.followers.len() < before
    }

    /// A client is gone, or says nothing more. The talk goes on.
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

    /// Asks whether a tool may be used. Nothing, if there is nobody to ask.
    pub fn ask(&self, request: &ToolRequest) -> Option<oneshot::Receiver<Verdict>> {
        let mut state = self.state();
        if !state.can_ask() {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        state.question = Some((request.call.id.clone(), answer));
        state.publish(Happening::MayI {
            request: Box::new(request.clone()),
        });
        Some(answered)
    }

    /// Answers the question about this call. Whether there was one.
    pub fn answer(&self, tool_id: &str, verdict: Verdict) -> bool {
        self.state().settle(Some(tool_id), verdict)
    }

    /// Whether this call is being asked about.
    pub fn asks_about(&self, tool_id: &str) -> bool {
        let state = self.state();
        state
            .question
            .as_ref()
            .is_some_and(|(asked, _)| asked == tool_id)
    }

    /// Nobody waits for the answer any more.
    pub fn forget_question(&self) {
        self.state().settle(None, Verdict::No);
    }

    /// Stops who is answering, and what this client asked for and waits. Whether there was anything.
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

    /// Ends the talk.
    pub fn stop(&self) -> Option<Talk> {
        let state = self.state();
        let talk = state.talk.clone()?;
        talk.stop.cancel();
        if let Some(running) = &state.running {
            running.cancel.cancel();
        }
        Some(talk)
    }

    /// The talk goes on in another session.
    pub fn move_to(&self, to: SessionId) {
        let mut state = self.state();
        state.publish(Happening::Moved { to });
        state.id = to;
    }

    /// The talk as a list shows it.
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
