//! The task of a live session on the server: connects the engine's session task with a hosted session.

use std::sync::Arc;

use tertulia_agents::approval::{Permissions, ToolRequest, Verdict};
use tertulia_core::entry::Kind;
use tertulia_engine::error::ErrorBody;
use tertulia_engine::event::{SessionEnd, SessionEvent, SessionState};
use tertulia_engine::live::{CommandOutcome, SessionCommand};
use tertulia_engine::message_queue::MessageQueue;
use tertulia_engine::notification::Occasion;
use tertulia_engine::prompt::Prompt;
use tertulia_engine::spec::ParticipantSpec;
use tertulia_engine::task::{self, Controls, Limits, Observer, Step, TaskEnd};
use tertulia_store::UnsentMessage;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::host::Which;
use crate::hosted::{HostedSession, ReplyTo, SessionAction, SessionRequest};
use crate::hub::Hub;
use crate::protocol::{Answer, LivePhase, TurnStatus};

/// Runs the live session of a hosted session until it ends.
pub async fn run(
    hub: Arc<Hub>,
    hosted: Arc<HostedSession>,
    mut which: Which,
    participants: ParticipantSpec,
    mut requests: mpsc::UnboundedReceiver<SessionRequest>,
) {
    let Some(task) = hosted.task() else { return };
    let controls = Controls {
        stop: task.stop.clone(),
        insist: task.insist.clone(),
    };
    let limits = Limits {
        idle: Some(hub.limits().idle),
        approval: Some(hub.limits().patience),
    };
    loop {
        let mut observer = RoomObserver {
            hub: hub.clone(),
            hosted: hosted.clone(),
            saving: None,
        };
        let spec = hub.spec(hosted.id(), &participants);
        let setup = hub.host().prepare(which, &spec);
        let end = task::run(setup, &mut requests, &mut observer, &controls, limits).await;
        if let TaskEnd::Failed(error) = end {
            hosted.fail(&mut requests, &error);
            break;
        }
        if hosted.end(&requests) {
            break;
        }
        // A request arrived while the session was closing: opens it again.
        which = opened_as(&hosted, which);
        hosted.enter(LivePhase::Opening, hub.host().now());
    }
    hub.read_along(&hosted);
    hub.sweep(&hosted);
}

/// Returns the session that a hosted session continues with.
fn opened_as(hosted: &HostedSession, which: Which) -> Which {
    match hosted.floor().meta {
        Some(meta) => Which::Known(meta.id),
        None => which,
    }
}

/// Publishes the events of a session to its hosted session.
struct RoomObserver {
    hub: Arc<Hub>,
    hosted: Arc<HostedSession>,
    /// The client that waits for the result of `session_save`.
    saving: Option<ReplyTo>,
}

impl RoomObserver {
    /// Tells the user that the session needs them.
    fn call_user(&self, occasion: Occasion, text: &str) {
        let (id, who) = (self.hosted.id(), self.hosted.speaker());
        self.hub.host().notify(id, occasion, &who, text);
    }
}

impl Observer for RoomObserver {
    type Request = SessionRequest;

    fn publish(&mut self, event: SessionEvent) {
        let event = match event {
            // Clients learn it from the reply to their request.
            SessionEvent::Started { .. } => return,
            SessionEvent::Moved { to } => return self.hub.moved(&self.hosted, to),
            SessionEvent::Notice { tone, text, error } => SessionEvent::Notice {
                tone,
                text: self.hub.host().complete_hints(&text),
                error,
            },
            event => event,
        };
        self.hosted.publish(event);
    }

    fn ask(&mut self, request: &ToolRequest) -> Option<oneshot::Receiver<Verdict>> {
        let answer = self.hosted.ask(request)?;
        self.call_user(Occasion::Permission, &request.preview);
        Some(answer)
    }

    fn withdraw(&mut self) {
        self.hosted.forget_question();
    }

    fn opened(&mut self, permissions: Permissions, queue: &MessageQueue) {
        self.hosted.permit(permissions, queue);
        self.hub.forget_policy(self.hosted.id());
        self.hosted.enter(LivePhase::Waiting, self.hub.host().now());
        let hosted = Arc::downgrade(&self.hosted);
        queue.publish_to(move |event| {
            if let Some(hosted) = hosted.upgrade() {
                hosted.publish(event);
            }
        });
    }

    fn begins(&mut self, message: &UnsentMessage) -> CancellationToken {
        let now = self.hub.host().now();
        self.hosted.begin_message(&message.client_id, now)
    }

    fn take(&mut self, request: SessionRequest) -> Step {
        if matches!(request.action, SessionAction::Next) {
            return Step::Next;
        }
        if request.cancel.is_cancelled() {
            self.hosted.take_up();
            self.hosted.dismiss(&request, None);
            return Step::Done;
        }
        if matches!(request.action, SessionAction::GoOn | SessionAction::Compact) {
            self.hosted.carry_out(&request, self.hub.host().now());
        }
        // After it is running, so that its message is never unknown.
        self.hosted.take_up();
        let command = match request.action {
            SessionAction::Open => return Step::Done,
            SessionAction::Switch(spec) => {
                let (hub, id) = (self.hub.clone(), self.hosted.id());
                return Step::Switch(Box::pin(async move {
                    hub.host().chat_agent(Which::Known(id), &spec).await
                }));
            }
            SessionAction::Permit(change) => {
                self.hosted.change_permissions(&change);
                return Step::Done;
            }
            SessionAction::Save => {
                self.saving = request.asker;
                SessionCommand::Save
            }
            SessionAction::As(name) => SessionCommand::As(name),
            SessionAction::Compact => SessionCommand::Compact,
            SessionAction::GoOn => SessionCommand::Say(Prompt::default()),
            SessionAction::Next => return Step::Next,
        };
        Step::Execute(command, request.cancel)
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
        let calls = self.hosted.is_answering()
            && matches!(
                outcome.status,
                TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Paused
            );
        let kind = state.meta.as_ref().map_or(Kind::Chat, |meta| meta.kind);
        self.hosted.finish(outcome, state, self.hub.host().now());
        // Queued messages begin the next turn: the user is not needed yet.
        if calls && !self.hosted.is_busy() {
            let occasion = match kind {
                Kind::Chat => Occasion::Ended,
                Kind::Team | Kind::Pair => Occasion::Person,
            };
            self.call_user(occasion, &self.hosted.last_answer());
        }
    }

    fn is_needed(&self) -> bool {
        self.hub.wants(&self.hosted)
    }

    fn leaving(&mut self, state: SessionState) {
        let now = self.hub.host().now();
        if self.hosted.is_answering() {
            // The turn was abandoned. Its partial answer is in the draft.
            let cancelled = CommandOutcome::plain(TurnStatus::Cancelled);
            self.hosted.finish(cancelled, state, now);
        }
        self.hosted.enter(LivePhase::Leaving, now);
    }

    fn closed(&mut self, end: &SessionEnd) {
        if end.unsaved {
            self.hub.left_unsaved(self.hosted.id(), end);
        }
    }

    fn crashed(&mut self, error: &ErrorBody) {
        self.hosted.forget_question();
        if self.hosted.is_answering() {
            let failed = CommandOutcome {
                error: Some(error.clone()),
                ..CommandOutcome::plain(TurnStatus::Failed)
            };
            let state = self.hosted.floor();
            self.hosted.finish(failed, state, self.hub.host().now());
        }
        self.hosted.publish(SessionEvent::NotOpened {
            error: error.clone(),
        });
        self.hosted.publish(SessionEvent::Gone {
            farewell: SessionEnd::default(),
        });
    }
}
