//! A session in this process: its task runs on a worker of the runtime and speaks to the screen in
//! data, so that drawing waits neither for an agent nor for a disk.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tertulia_agents::approval::{PermissionChange, Permissions, ToolRequest, Verdict};
use tertulia_core::id::SessionId;
use tertulia_engine::error::{ErrorBody, ErrorKind};
use tertulia_engine::event::{SessionEnd, SessionEvent, SessionState, Tone};
use tertulia_engine::live::{CommandOutcome, SessionCommand};
use tertulia_engine::message_queue::{MessageQueue, WithdrawReason};
use tertulia_engine::prompt::Prompt;
use tertulia_engine::setup::{ChatAgent, Setup};
use tertulia_engine::spec::AgentSpec;
use tertulia_engine::task::{self, Controls, Limits, Observer, Step};
use tertulia_store::{Sessions, UnsentMessage};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::event_queue::EventQueue;
use super::live::{LiveCommand, LiveEvent, Ticket};
use crate::error::TuiError;
use crate::host::Host;

/// Pause before the first look whether another program has taken the session over, and between looks at a
/// store that does not tell of changes.
const WATCH: Duration = Duration::from_secs(2);

/// Time without a key after which what is in the input is saved.
const CALM: Duration = Duration::from_millis(300);

/// What the session is asked for.
#[derive(Debug)]
enum Given {
    /// A command, and what cancels it.
    Command(LiveCommand, CancellationToken),
    /// To run a turn with the next queued message.
    Next,
}

/// What cancels the running command.
type Cancel = Arc<Mutex<CancellationToken>>;

/// Where the answer to the last permission request goes, and its ticket.
type Question = Arc<Mutex<Option<(Ticket, oneshot::Sender<Verdict>)>>>;

/// A session in this process.
#[derive(Debug)]
pub struct LocalSession {
    commands: mpsc::UnboundedSender<Given>,
    events: EventQueue<LiveEvent>,
    cancel: Cancel,
    /// Changes of the queue, in their order.
    changes: mpsc::UnboundedSender<LiveCommand>,
    /// The messages that wait, once the session is open.
    queue: Arc<OnceLock<MessageQueue>>,
    /// Id of the input of this screen.
    input: String,
    controls: Controls,
    question: Question,
    permissions: Permissions,
    task: Option<JoinHandle<()>>,
}

impl LocalSession {
    /// Opens a session in a task of its own.
    pub fn start(setup: Setup, host: Arc<dyn Host>, events: EventQueue<LiveEvent>) -> LocalSession {
        let (commands, mut taken) = mpsc::unbounded_channel();
        let (changes, changed) = mpsc::unbounded_channel();
        let (cancel, queue) = (Cancel::default(), Arc::new(OnceLock::new()));
        let input = setup.sessions.clock().entry_id().to_string();
        let permissions = setup.options.rules.clone();
        let (controls, question) = (Controls::default(), Question::default());
        let state = permissions.state();
        events.push(LiveEvent::Session(SessionEvent::Permissions { state }));
        let mut screen = ScreenObserver {
            events: events.clone(),
            question: question.clone(),
            ticket: 0,
            session: Arc::new(Mutex::new(setup.target.id())),
            host: Some(host.clone()),
            cancel: cancel.clone(),
            queue: queue.clone(),
            changes: Some((changed, commands.clone(), input.clone())),
        };
        let (sessions, id) = (setup.sessions.clone(), screen.session.clone());
        let watch = watch(sessions, id, events.clone(), host);
        let stops = controls.clone();
        let task = tokio::spawn(async move {
            let setup = async { Ok(setup) };
            let limits = Limits::default();
            let run = task::run(setup, &mut taken, &mut screen, &stops, limits);
            tokio::pin!(run, watch);
            tokio::select! {
                _ = &mut run => {}
                () = &mut watch => drop(run.await),
            }
        });
        LocalSession {
            commands,
            events,
            cancel,
            changes,
            queue,
            input,
            controls,
            question,
            permissions,
            task: Some(task),
        }
    }

    /// What happened.
    pub fn events(&self) -> &EventQueue<LiveEvent> {
        &self.events
    }

    /// Sends a command.
    pub fn command(&self, command: LiveCommand) {
        use LiveCommand::{EditQueued, KeepDraft, Queue, Withdraw};
        if matches!(
            command,
            Queue { .. } | EditQueued { .. } | Withdraw { .. } | KeepDraft(_)
        ) {
            if let (KeepDraft(text), Some(queue)) = (&command, self.queue.get()) {
                // At once, so that it is there when the session is closed.
                queue.set_typed(&self.input, text.clone());
            }
            // A session that is gone has said so.
            let _ = self.changes.send(command);
            return;
        }
        // A new command is not cancelled by what cancelled the one before, and can be cancelled before
        // it has begun. Leaving may still have to cancel the running one.
        let cancel = CancellationToken::new();
        if command != LiveCommand::Leave {
            *locked(&self.cancel) = cancel.clone();
        }
        // A session that is gone has said so.
        let _ = self.commands.send(Given::Command(command, cancel));
    }

    /// Stops the running turn.
    pub fn cancel(&self) {
        if let Some(queue) = self.queue.get() {
            queue.withdraw(WithdrawReason::Cancelled);
        }
        locked(&self.cancel).cancel();
    }

    /// Drops the running turn without waiting. What was on the screen is in the draft.
    pub fn abort(&self) {
        self.controls.insist.cancel();
    }

    /// Answers a permission request, if it is still the last one: an answer must not reach a later
    /// request.
    pub fn answer(&self, ticket: Ticket, verdict: Verdict) {
        let mut last = locked(&self.question);
        if let Some((_, asked)) = last.take_if(|(asked, _)| *asked == ticket) {
            // The turn may have been stopped meanwhile.
            let _ = asked.send(verdict);
        }
    }

    /// Changes the tool permissions, also during a turn.
    pub fn permit(&self, change: &PermissionChange) {
        self.permissions.change(change);
        let state = self.permissions.state();
        self.events
            .push(LiveEvent::Session(SessionEvent::Permissions { state }));
    }

    /// Waits for the task to end, after [`LiveEvent::Gone`].
    pub async fn join(mut self) {
        if let Some(task) = self.task.take() {
            // A panic in it was told when it happened.
            let _ = task.await;
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes events of a session on to the screen.
struct ScreenObserver {
    events: EventQueue<LiveEvent>,
    question: Question,
    /// Number of permission requests so far.
    ticket: Ticket,
    /// The session, which changes when it goes on in a fork.
    session: Arc<Mutex<SessionId>>,
    /// Prepares another agent.
    host: Option<Arc<dyn Host>>,
    cancel: Cancel,
    queue: Arc<OnceLock<MessageQueue>>,
    /// Changes of the queue, where the session is asked to go on, and the id of the input; taken when the
    /// session is open.
    changes: Option<Changes>,
}

type Changes = (
    mpsc::UnboundedReceiver<LiveCommand>,
    mpsc::UnboundedSender<Given>,
    String,
);

/// Carries out the changes of the queue one after the other, so that they are written in their order.
async fn change_queue(queue: MessageQueue, changes: Changes, events: EventQueue<LiveEvent>) {
    let (mut changes, session, input) = changes;
    queue.adopt_orphans().await;
    let mut is_typing = false;
    loop {
        let change = match is_typing {
            true => match tokio::time::timeout(CALM, changes.recv()).await {
                Ok(change) => change,
                Err(_) => {
                    queue.save_typed().await;
                    is_typing = false;
                    continue;
                }
            },
            false => changes.recv().await,
        };
        let Some(change) = change else { return };
        let done = match change {
            LiveCommand::KeepDraft(text) => {
                queue.set_typed(&input, text);
                is_typing = true;
                Ok(())
            }
            LiveCommand::Queue { client_id, text } => {
                let put = queue
                    .put(UnsentMessage::typed(client_id, queue.now(), text))
                    .await;
                if put.is_ok() {
                    // A session that is gone has withdrawn it.
                    let _ = session.send(Given::Next);
                }
                put.map(drop)
            }
            LiveCommand::EditQueued { client_id, text } => match text {
                Some(text) => queue.edit(&client_id, text).await.map(drop),
                None => {
                    queue.begin_editing(&client_id, 0);
                    Ok(())
                }
            },
            LiveCommand::Withdraw { client_id } => {
                queue.remove(&client_id).await;
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            let event = SessionEvent::notice(Tone::Error, error.sentence());
            events.push(LiveEvent::Session(event));
        }
    }
}

/// Prepares an agent on a thread that may block.
async fn prepared(host: Option<Arc<dyn Host>>, spec: AgentSpec) -> Result<ChatAgent, ErrorBody> {
    let failed = |why: &str| ErrorBody::new(ErrorKind::Failed, why);
    let host = host.ok_or_else(|| failed("agents are not known here"))?;
    let runtime = tokio::runtime::Handle::current();
    let work = tokio::task::spawn_blocking(move || runtime.block_on(host.chat_agent(&spec)));
    match work.await {
        Ok(agent) => agent.map_err(|error| ErrorBody::new(error.kind, error.sentence())),
        Err(_) => Err(failed("internal error: the agent could not be prepared")),
    }
}

/// Reports once that another program has taken the session over.
async fn watch(
    sessions: Sessions,
    session: Arc<Mutex<SessionId>>,
    events: EventQueue<LiveEvent>,
    host: Arc<dyn Host>,
) {
    tokio::time::sleep(WATCH).await;
    let mut changes = host.lock_changes();
    loop {
        let id = *locked(&session);
        let holder = sessions.store().holder(id).await;
        if let Ok(Some(holder)) = holder
            && sessions.store().patience().is_other(&holder)
        {
            events.push(LiveEvent::TakenOver);
            return;
        }
        match &mut changes {
            Some(changes) => changes.next().await,
            None => tokio::time::sleep(WATCH).await,
        }
    }
}

impl ScreenObserver {
    fn event(&self, event: SessionEvent) {
        self.events.push(LiveEvent::Session(event));
    }
}

impl Observer for ScreenObserver {
    type Request = Given;

    fn publish(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::NotOpened { error } => {
                self.events
                    .push(LiveEvent::NotOpened(Box::new(error.into())));
            }
            SessionEvent::Gone { farewell } => self.events.push(LiveEvent::Gone(farewell)),
            SessionEvent::Moved { to } => {
                *locked(&self.session) = to;
                self.event(SessionEvent::Moved { to });
            }
            SessionEvent::Notice { tone, text, error } => {
                // On the screen, commands take the place of flags.
                let text =
                    text.replace("`--map OLD=NEW` on the command line", "`/team map OLD=NEW`");
                self.event(SessionEvent::Notice { tone, text, error });
            }
            event => self.event(event),
        }
    }

    fn ask(&mut self, request: &ToolRequest) -> Option<oneshot::Receiver<Verdict>> {
        let (answer, verdict) = oneshot::channel();
        self.ticket += 1;
        *locked(&self.question) = Some((self.ticket, answer));
        let request = Box::new(request.clone());
        self.events
            .push(LiveEvent::Permission(self.ticket, request));
        Some(verdict)
    }

    fn withdraw(&mut self) {
        locked(&self.question).take();
    }

    fn opened(&mut self, _: Permissions, queue: &MessageQueue) {
        let events = self.events.clone();
        queue.publish_to(move |event| events.push(LiveEvent::Session(event)));
        if let Some(changes) = self.changes.take() {
            tokio::spawn(change_queue(queue.clone(), changes, self.events.clone()));
        }
        // A session is opened once.
        let _ = self.queue.set(queue.clone());
    }

    fn begins(&mut self, _: &UnsentMessage) -> CancellationToken {
        let cancel = CancellationToken::new();
        *locked(&self.cancel) = cancel.clone();
        cancel
    }

    fn take(&mut self, given: Given) -> Step {
        let (command, cancel) = match given {
            Given::Command(command, cancel) => (command, cancel),
            Given::Next => return Step::Next,
        };
        let command = match command {
            LiveCommand::Say(text) => SessionCommand::Say(Prompt::typed(text)),
            LiveCommand::Run(command) => SessionCommand::Run(command),
            LiveCommand::As(name) => SessionCommand::As(name),
            LiveCommand::Compact => SessionCommand::Compact,
            LiveCommand::Switch(spec) => {
                return Step::Switch(Box::pin(prepared(self.host.clone(), spec)));
            }
            LiveCommand::Leave | LiveCommand::End => return Step::Close,
            // These do not come this way.
            LiveCommand::Queue { .. }
            | LiveCommand::EditQueued { .. }
            | LiveCommand::Withdraw { .. }
            | LiveCommand::KeepDraft(_) => return Step::Done,
        };
        Step::Execute(command, cancel)
    }

    fn finish(&mut self, outcome: CommandOutcome, state: SessionState) {
        for notice in outcome.notices {
            self.event(SessionEvent::notice(notice.tone, notice.text));
        }
        let floor = Box::new(state);
        self.event(SessionEvent::Over { floor });
    }

    fn is_needed(&self) -> bool {
        true
    }

    fn leaving(&mut self, _: SessionState) {}

    fn closed(&mut self, _: &SessionEnd) {}

    fn crashed(&mut self, error: &ErrorBody) {
        let error = TuiError::from(error.clone());
        self.events.push(LiveEvent::NotOpened(Box::new(error)));
        self.events.push(LiveEvent::Gone(SessionEnd::default()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tertulia_agents::approval::Risk;
    use tertulia_core::entry::ToolCall;

    use super::*;

    fn session() -> (LocalSession, ScreenObserver, mpsc::UnboundedReceiver<Given>) {
        let (commands, taken) = mpsc::unbounded_channel();
        let (events, question) = (EventQueue::default(), Question::default());
        let (cancel, queue) = (Cancel::default(), Arc::new(OnceLock::new()));
        let observer = ScreenObserver {
            events: events.clone(),
            question: question.clone(),
            ticket: 0,
            session: Arc::new(Mutex::new(
                "01a10000-0000-7000-8000-000000000001".parse().unwrap(),
            )),
            host: None,
            cancel: cancel.clone(),
            queue: queue.clone(),
            changes: None,
        };
        let session = LocalSession {
            commands,
            events,
            cancel,
            changes: mpsc::unbounded_channel().0,
            queue,
            input: "input".to_owned(),
            controls: Controls::default(),
            question,
            permissions: Permissions::default(),
            task: None,
        };
        (session, observer, taken)
    }

    fn request() -> ToolRequest {
        ToolRequest {
            call: ToolCall {
                id: "1".to_owned(),
                name: "shell".to_owned(),
                arguments: json!({}),
            },
            risk: Risk::High,
            preview: String::new(),
            folder: String::new(),
            key: "shell".to_owned(),
            is_edit: false,
        }
    }

    #[test]
    fn an_answer_reaches_only_what_it_was_given_to() {
        let (session, mut observer, _commands) = session();
        // The first request is not waited for any more.
        drop(observer.ask(&request()));
        let mut second = observer.ask(&request()).unwrap();
        session.answer(1, Verdict::Yes);
        assert!(second.try_recv().is_err());
        session.answer(2, Verdict::No);
        assert_eq!(second.try_recv(), Ok(Verdict::No));
    }

    #[test]
    fn what_has_not_begun_can_be_stopped() {
        let (session, _observer, mut commands) = session();
        let mut given = |command| {
            session.command(command);
            match commands.try_recv().unwrap() {
                Given::Command(_, cancel) => cancel,
                Given::Next => panic!("nothing is queued"),
            }
        };
        let first = given(LiveCommand::Compact);
        session.cancel();
        assert!(first.is_cancelled());
        // What comes after it is not.
        let second = given(LiveCommand::Say("next".to_owned()));
        assert!(!second.is_cancelled());
        // Who leaves stops it, however late.
        let _ = given(LiveCommand::Leave);
        session.cancel();
        assert!(second.is_cancelled());
    }

    #[tokio::test]
    async fn a_panic_is_shown_and_ends_the_session() {
        let (session, mut observer, mut commands) = session();
        let setup = async { Err(Vec::new().pop().unwrap()) };
        let (controls, limits) = (Controls::default(), Limits::default());
        task::run(setup, &mut commands, &mut observer, &controls, limits).await;
        let events: Vec<LiveEvent> = session.events().take().await.into();
        let [LiveEvent::NotOpened(error), LiveEvent::Gone(_)] = &events[..] else {
            unreachable!("{events:?}")
        };
        assert!(error.to_string().contains("the session task crashed"));
    }
}
