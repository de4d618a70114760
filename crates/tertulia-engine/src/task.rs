//! The task of a live session: opens it, executes the requests of its frontends one by one, and
//! closes it. There is one task per live session, whether the frontend is a screen in this process
//! or clients of a server; what differs between them is behind [`Observer`].

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::{ErrorBody, ErrorKind};
use crate::event::{SessionEnd, SessionEvent, SessionState, TurnStatus};
use crate::frontend::Frontend;
use crate::live::{CommandOutcome, LiveSession, SessionCommand};
use crate::message_queue::{MessageQueue, WithdrawReason};
use crate::prompt::Prompt;
use crate::setup::{ChatAgent, Setup};
use tertulia_agents::approval::{Permissions, ToolRequest, Verdict};
use tertulia_core::entry::{Kind, Role};
use tertulia_core::team::markers::Unmarked;
use tertulia_store::UnsentMessage;

/// Connects a session task with its frontends.
pub trait Observer: Send {
    /// A command as its frontend sent it.
    type Request: Send;

    /// Publishes an event.
    fn publish(&mut self, event: SessionEvent);

    /// Publishes a permission request. Returns `None` if no frontend can answer it.
    fn ask(&mut self, request: &ToolRequest) -> Option<oneshot::Receiver<Verdict>>;

    /// Withdraws the permission request, answered or not.
    fn withdraw(&mut self);

    /// Called once the session is open, with its permissions and its queue.
    fn opened(&mut self, permissions: Permissions, queue: &MessageQueue);

    /// Called when the turn of a queued message begins. Returns what cancels it.
    fn begins(&mut self, message: &UnsentMessage) -> CancellationToken;

    /// Decides what to do with a request.
    fn take(&mut self, request: Self::Request) -> Step;

    /// Called with the result of an executed command.
    fn finish(&mut self, outcome: CommandOutcome, state: SessionState);

    /// Returns true if an idle session must stay open.
    fn is_needed(&self) -> bool;

    /// Called when the session is about to close, with its last state.
    fn leaving(&mut self, state: SessionState);

    /// Called when the session is closed, before the last event.
    fn closed(&mut self, end: &SessionEnd);

    /// Called when the task has panicked; the session is closed and unlocked.
    fn crashed(&mut self, error: &ErrorBody);
}

/// What to do with a request.
pub enum Step {
    /// Execute a command. The token cancels it.
    Execute(SessionCommand, CancellationToken),
    /// Run a turn with the next queued message, if one waits.
    Next,
    /// Let the agent that the future prepares answer from now on.
    Switch(BoxFuture<'static, Result<ChatAgent, ErrorBody>>),
    /// Nothing is left to do.
    Done,
    /// Close the session.
    Close,
}

/// Stops a session task from outside.
#[derive(Clone, Debug, Default)]
pub struct Controls {
    /// Closes the session after the running command.
    pub stop: CancellationToken,
    /// Aborts the running command, and closes the session without waiting for its agents.
    pub insist: CancellationToken,
}

/// Time limits of a session task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Time after which an idle session is closed.
    pub idle: Option<Duration>,
    /// Time after which a permission request is denied.
    pub approval: Option<Duration>,
}

/// How a session task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// The session was closed.
    Closed,
    /// The session could not be opened, or its task panicked.
    Failed(ErrorBody),
}

/// Runs a session until it is closed. A panic ends only this session.
pub async fn run<O: Observer>(
    setup: impl Future<Output = Result<Setup, ErrorBody>>,
    requests: &mut mpsc::UnboundedReceiver<O::Request>,
    observer: &mut O,
    controls: &Controls,
    limits: Limits,
) -> TaskEnd {
    let task = Task {
        requests,
        publisher: Publisher {
            observer: &mut *observer,
            filter: None,
            patience: limits.approval,
        },
        controls,
        idle: limits.idle,
    };
    // On the heap: threads of a server have small stacks.
    let running = Box::pin(task.run(setup));
    match AssertUnwindSafe(running).catch_unwind().await {
        Ok(end) => end,
        Err(_) => {
            let error = ErrorBody::new(
                ErrorKind::Failed,
                "internal error: the session task crashed",
            )
            .hint("every message is saved: `tertulia -c` continues the session");
            observer.crashed(&error);
            TaskEnd::Failed(error)
        }
    }
}

struct Task<'a, O: Observer> {
    requests: &'a mut mpsc::UnboundedReceiver<O::Request>,
    publisher: Publisher<'a, O>,
    controls: &'a Controls,
    idle: Option<Duration>,
}

impl<O: Observer> Task<'_, O> {
    async fn run(mut self, setup: impl Future<Output = Result<Setup, ErrorBody>>) -> TaskEnd {
        let opening = Box::pin(open(setup, &mut self.publisher));
        let opened = tokio::select! {
            biased;
            () = self.controls.insist.cancelled() => {
                self.gone(SessionEnd::default());
                return TaskEnd::Closed;
            }
            () = self.controls.stop.cancelled() => Err(stopped()),
            opened = opening => opened,
        };
        let mut session = match opened {
            Ok(session) => session,
            Err(error) => return self.not_opened(error),
        };
        self.publisher.filter_for(session.kind());
        let floor = Box::new(session.state());
        self.publisher
            .observer
            .publish(SessionEvent::Opened { floor });
        let queue = match session.open_queue().await {
            Ok(queue) => queue,
            Err(error) => return self.not_opened(error),
        };
        let permissions = session.permissions();
        self.publisher.observer.opened(permissions, &queue);
        self.serve(&mut session, &queue).await;
        queue
            .close(match self.controls.stop.is_cancelled() {
                true => WithdrawReason::Stopped,
                false => WithdrawReason::HolderEnded,
            })
            .await;
        self.publisher.observer.leaving(session.state());
        let gently = !self.controls.insist.is_cancelled();
        let end = session.close(gently).await;
        self.publisher.observer.closed(&end);
        self.gone(end);
        match self.controls.stop.is_cancelled() {
            true => TaskEnd::Failed(stopped()),
            false => TaskEnd::Closed,
        }
    }

    fn not_opened(&mut self, error: ErrorBody) -> TaskEnd {
        let event = SessionEvent::NotOpened {
            error: error.clone(),
        };
        self.publisher.observer.publish(event);
        self.gone(SessionEnd::default());
        TaskEnd::Failed(error)
    }

    fn gone(&mut self, farewell: SessionEnd) {
        let event = SessionEvent::Gone { farewell };
        self.publisher.observer.publish(event);
    }

    /// Executes requests until the session is to be closed.
    async fn serve(&mut self, session: &mut LiveSession, queue: &MessageQueue) {
        let changed = Arc::new(Notify::new());
        let wakes = changed.clone();
        session.permissions().on_change(move || wakes.notify_one());
        session.record_terms(&mut self.publisher).await;
        loop {
            let request = tokio::select! {
                biased;
                () = self.controls.stop.cancelled() => return,
                () = changed.notified() => {
                    session.record_terms(&mut self.publisher).await;
                    continue;
                }
                request = self.requests.recv() => request,
                () = sleep(self.idle) => {
                    // Unsaved entries keep the session open; saving is retried.
                    let saved = self.retry_saving(session).await;
                    if self.publisher.observer.is_needed() || !saved {
                        continue;
                    }
                    return;
                }
            };
            let Some(request) = request else { return };
            let insist = &self.controls.insist;
            let outcome = match self.publisher.observer.take(request) {
                Step::Next => match self.run_next(session, queue).await {
                    ControlFlow::Continue(None) => continue,
                    ControlFlow::Continue(ran) => ran,
                    ControlFlow::Break(()) => None,
                },
                Step::Execute(command, cancel) => {
                    let execution = session.execute(command, &mut self.publisher, &cancel);
                    insist.run_until_cancelled(Box::pin(execution)).await
                }
                Step::Switch(agent) => {
                    let switch = async { session.switch(agent.await, &mut self.publisher).await };
                    insist.run_until_cancelled(Box::pin(switch)).await
                }
                Step::Done => continue,
                Step::Close => None,
            };
            let Some(outcome) = outcome else { return };
            self.publisher.flush();
            queue.move_to(session.state().id).await;
            self.publisher.observer.finish(outcome, session.state());
        }
    }

    /// Runs a turn with the next queued message, if one waits. Breaks if the session is to be closed.
    async fn run_next(
        &mut self,
        session: &mut LiveSession,
        queue: &MessageQueue,
    ) -> ControlFlow<(), Option<CommandOutcome>> {
        let next = tokio::select! {
            biased;
            () = self.controls.stop.cancelled() => return ControlFlow::Break(()),
            next = queue.next() => next,
        };
        let Some(message) = next else {
            return ControlFlow::Continue(None);
        };
        let cancel = self.publisher.observer.begins(&message);
        let execution = session.execute(command_of(message), &mut self.publisher, &cancel);
        let running = self
            .controls
            .insist
            .run_until_cancelled(Box::pin(execution));
        let Some(outcome) = running.await else {
            return ControlFlow::Break(());
        };
        queue.finish(outcome.status == TurnStatus::Refused).await;
        ControlFlow::Continue(Some(outcome))
    }

    /// Retries to save held messages. Returns true if everything is saved.
    async fn retry_saving(&mut self, session: &mut LiveSession) -> bool {
        if !session.state().unsaved {
            return true;
        }
        let saved = session.save(&mut self.publisher).await;
        let floor = Box::new(session.state());
        self.publisher
            .observer
            .publish(SessionEvent::Over { floor });
        saved
    }
}

async fn open<O: Observer>(
    setup: impl Future<Output = Result<Setup, ErrorBody>>,
    publisher: &mut Publisher<'_, O>,
) -> Result<LiveSession, ErrorBody> {
    let mut setup = setup.await?;
    let notices = std::mem::take(&mut setup.notices);
    let session = LiveSession::open(setup, publisher).await?;
    for notice in notices {
        publisher.show(SessionEvent::notice(notice.tone, notice.text));
    }
    Ok(session)
}

/// Returns what a queued message asks for.
fn command_of(message: UnsentMessage) -> SessionCommand {
    if message.is_command {
        return SessionCommand::Run(message.text);
    }
    let prompt = match message.attaches {
        true => Prompt::typed(message.text),
        false => Prompt::from(message.text),
    };
    SessionCommand::Say(prompt.sent_as(Some(message.client_id)))
}

async fn sleep(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

fn stopped() -> ErrorBody {
    ErrorBody::new(ErrorKind::Interrupted, "the session was stopped")
}

/// The frontend of the conversation: publishes its events.
struct Publisher<'a, O: Observer> {
    observer: &'a mut O,
    /// Holds back text of a team member that may be a marker.
    filter: Option<Unmarked>,
    patience: Option<Duration>,
}

impl<O: Observer> Publisher<'_, O> {
    /// Hides markers if the conversation is a team's.
    fn filter_for(&mut self, kind: Kind) {
        self.filter = (kind == Kind::Team).then(Unmarked::default);
    }

    /// Publishes the text that was held back, at the end of a message.
    fn flush(&mut self) {
        if let Some(filter) = &mut self.filter {
            let text = std::mem::take(filter).finish();
            if !text.is_empty() {
                self.observer.publish(SessionEvent::Text { text });
            }
        }
    }
}

#[async_trait]
impl<O: Observer> Frontend for Publisher<'_, O> {
    fn show(&mut self, event: SessionEvent) {
        let event = match event {
            SessionEvent::Text { text } => {
                let text = match &mut self.filter {
                    Some(filter) => filter.push(&text),
                    None => text,
                };
                if text.is_empty() {
                    return;
                }
                SessionEvent::Text { text }
            }
            SessionEvent::Durable { .. } if self.filter.is_some() => {
                let entry = event.entry();
                let message = entry.as_ref().and_then(|entry| entry.message());
                if message.is_some_and(|message| message.role == Role::Assistant) {
                    self.flush();
                }
                event
            }
            SessionEvent::Asked { .. } => {
                self.flush();
                event
            }
            event => event,
        };
        self.observer.publish(event);
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        let Some(answered) = self.observer.ask(request) else {
            return Verdict::Unanswered;
        };
        // Withdrawn also if the turn is aborted while it waits.
        let question = Question(self.observer);
        let verdict = tokio::select! {
            verdict = answered => verdict.unwrap_or(Verdict::No),
            () = sleep(self.patience) => Verdict::Unanswered,
        };
        drop(question);
        verdict
    }
}

/// Withdraws a permission request on drop.
struct Question<'a, O: Observer>(&'a mut O);

impl<O: Observer> Drop for Question<'_, O> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}
