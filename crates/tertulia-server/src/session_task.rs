//! The task of a live session on the server: connects the engine's session task with a room.

use std::sync::Arc;

use tertulia_agents::approval::{Permissions, ToolRequest, Verdict};
use tertulia_engine::error::ErrorBody;
use tertulia_engine::event::{SessionEnd, SessionEvent, SessionState, UserMessage};
use tertulia_engine::live::{CommandOutcome, SessionCommand};
use tertulia_engine::setup::{Participants, Setup};
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};
use tertulia_engine::task::{self, Controls, Limits, Observer, Step, TaskEnd};
use tokio::sync::{mpsc, oneshot};

use crate::host::Which;
use crate::hub::Hub;
use crate::protocol::{Answer, TalkState, TurnStatus};
use crate::room::{Order, Room, Voice, What};

/// Runs the live session of a room until it ends.
pub async fn run(
    hub: Arc<Hub>,
    room: Arc<Room>,
    mut which: Which,
    participants: ParticipantSpec,
    mut orders: mpsc::UnboundedReceiver<Order>,
) {
    let Some(talk) = room.talk() else { return };
    let mut switched = false;
    let controls = Controls {
        stop: talk.stop.clone(),
        insist: talk.insist.clone(),
    };
    let limits = Limits {
        idle: Some(hub.limits().idle),
        approval: Some(hub.limits().patience),
    };
    loop {
        let mut observer = RoomObserver {
            hub: hub.clone(),
            room: room.clone(),
            saving: None,
        };
        let spec = hub.spec(room.id(), &participants);
        let setup = prepare(&hub, which, &spec, switched);
        let end = task::run(setup, &mut orders, &mut observer, &controls, limits).await;
        switched = end == TaskEnd::Reopen;
        if switched {
            which = opened_as(&room, which);
            room.enter(TalkState::Opening, hub.host().now());
            continue;
        }
        if let TaskEnd::Failed(error) = end {
            room.fail(&mut orders, &error);
            break;
        }
        if room.end(&orders) {
            break;
        }
        // An order arrived while the session was closing: opens it again.
        which = opened_as(&room, which);
        room.enter(TalkState::Opening, hub.host().now());
    }
    hub.sweep(&room);
}

/// Returns the session that a room continues with.
fn opened_as(room: &Room, which: Which) -> Which {
    match room.floor().meta {
        Some(meta) => Which::Known(meta.id),
        None => which,
    }
}

/// Prepares a session with its agents. After a switch, adds a notice that names the new agent.
async fn prepare(
    hub: &Hub,
    which: Which,
    spec: &SessionSpec,
    switched: bool,
) -> Result<Setup, ErrorBody> {
    let mut setup = hub.host().prepare(which, spec).await?;
    setup.options.model_switched = switched;
    if let (true, Participants::Chat(agent)) = (switched, &setup.participants) {
        let model = agent.model().map(|model| format!(" with {model}"));
        let model = model.unwrap_or_default();
        let words = format!("{} answers{model} from now on", agent.name());
        setup.notices.push(UserMessage::note(words));
    }
    Ok(setup)
}

/// Publishes the events of a session to its room.
struct RoomObserver {
    hub: Arc<Hub>,
    room: Arc<Room>,
    /// The client that waits for the result of `session_save`.
    saving: Option<Voice>,
}

impl Observer for RoomObserver {
    type Request = Order;

    fn publish(&mut self, event: SessionEvent) {
        let event = match event {
            // Clients learn it from the reply to their request.
            SessionEvent::Started { .. } => return,
            SessionEvent::Moved { to } => return self.hub.moved(&self.room, to),
            SessionEvent::Notice { tone, text, error } => SessionEvent::Notice {
                tone,
                text: self.hub.host().complete_hints(&text),
                error,
            },
            event => event,
        };
        self.room.publish(event);
    }

    fn ask(&mut self, request: &ToolRequest) -> Option<oneshot::Receiver<Verdict>> {
        self.room.ask(request)
    }

    fn withdraw(&mut self) {
        self.room.forget_question();
    }

    fn opened(&mut self, permissions: Permissions) {
        self.room.permit(permissions);
        self.room.enter(TalkState::Waiting, self.hub.host().now());
    }

    fn take(&mut self, order: Order) -> Step {
        self.room.take_up();
        if order.cancel.is_cancelled() {
            self.room.dismiss(&order, None);
            return Step::Done;
        }
        if matches!(order.what, What::Say(_) | What::Compact) {
            self.room.carry_out(&order, self.hub.host().now());
        }
        let command = match order.what {
            What::Open => return Step::Done,
            What::Reopen => return Step::Reopen,
            What::Permit(change) => {
                self.room.change_permissions(&change);
                return Step::Done;
            }
            What::Save => {
                self.saving = order.asker;
                SessionCommand::Save
            }
            What::As(name) => SessionCommand::As(name),
            What::Compact => SessionCommand::Compact,
            What::Say(text) => SessionCommand::Say(text),
        };
        Step::Execute(command, order.cancel)
    }

    fn finish(&mut self, mut outcome: CommandOutcome, state: SessionState) {
        if let Some(asker) = self.saving.take() {
            let success = outcome.status == TurnStatus::Completed;
            asker.tell(Answer::SessionSaved { success });
        }
        if outcome.error.is_some() && outcome.status == TurnStatus::Failed {
            // The client that asked gets the hint with the error.
            outcome.notices.clear();
        }
        self.room.finish(outcome, state, self.hub.host().now());
    }

    fn is_needed(&self) -> bool {
        self.hub.wants(&self.room)
    }

    fn leaving(&mut self, state: SessionState) {
        let now = self.hub.host().now();
        if self.room.is_answering() {
            // The turn was abandoned. Its partial answer is in the draft.
            let cancelled = CommandOutcome::plain(TurnStatus::Cancelled);
            self.room.finish(cancelled, state, now);
        }
        self.room.enter(TalkState::Leaving, now);
    }

    fn closed(&mut self, end: &SessionEnd) {
        if end.unsaved {
            self.hub.left_unsaved(self.room.id(), end);
        }
    }

    fn crashed(&mut self, error: &ErrorBody) {
        self.room.forget_question();
        if self.room.is_answering() {
            let failed = CommandOutcome {
                error: Some(error.clone()),
                ..CommandOutcome::plain(TurnStatus::Failed)
            };
            let state = self.room.floor();
            self.room.finish(failed, state, self.hub.host().now());
        }
        self.room.publish(SessionEvent::NotOpened {
            error: error.clone(),
        });
        self.room.publish(SessionEvent::Gone {
            farewell: SessionEnd::default(),
        });
    }
}
