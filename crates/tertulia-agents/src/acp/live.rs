//! A running agent: its process, the connection to it, and the current listener.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol as protocol;
use protocol::v1::{ConnectionTo, Responder};
use protocol::{UntypedMessage, is_connection_terminated, is_incoming_transport_closed};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::adapter::Manner;
use super::failure;
use super::wire::{self, Noise};
use crate::AgentError;
use crate::process::{self, Finished, Input, Limits, ProcessError, Program, StderrLine};
use crate::scratch::Scratch;

/// Time that an agent has to end by itself after its standard input is closed.
const FAREWELL: Duration = Duration::from_secs(3);
/// An agent that replays its history continues after its response. The replay counts as complete
/// after this much silence,
const QUIET: Duration = Duration::from_millis(250);
/// or after this time at the latest.
const LOUD: Duration = Duration::from_secs(5);
/// Number of messages that may wait in each direction.
const ROOM: usize = 64;

/// A message that an agent sends on its own.
pub(super) enum Incoming {
    /// A session update.
    Update(Value),
    /// A permission request for a tool.
    Permission(Value, Box<Responder<Value>>),
}

/// Why a request has no response.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The agent responded with an error.
    Told(AgentError),
    /// The agent is gone.
    Gone,
}

/// State shared between the connection and its user.
struct Shared {
    /// When the agent last sent anything.
    heard: watch::Sender<Instant>,
    noise: Mutex<Noise>,
    listener: Mutex<Option<mpsc::Sender<Incoming>>>,
    /// Limits the number of updates on their way to the listener.
    room: Arc<Semaphore>,
    stderr: StderrLine,
}

/// A running agent. When dropped, its stdin is closed, and then it is killed with all its
/// processes.
pub(super) struct Live {
    connection: ConnectionTo<protocol::Agent>,
    shared: Arc<Shared>,
    task: JoinHandle<Result<Finished, ProcessError>>,
    closing: DropGuard,
    kill: CancellationToken,
    /// Response to `initialize`.
    pub(super) abilities: Option<Value>,
    /// Restrictions under which the process was started.
    pub(super) manner: Manner,
    /// Temporary home in place of the user's; removed when the process has ended.
    _scratch: Option<Scratch>,
    /// Session of the last prompt.
    pub(super) session: Option<super::session::Open>,
    /// Whether its last answer was cancelled: some agents still send parts of it.
    pub(super) stopped: bool,
    /// Kinds of tools that it was told to run unasked from now on.
    pub(super) always: BTreeSet<String>,
}

/// How the process ended.
pub(super) struct Ending {
    pub(super) process: Result<Finished, ProcessError>,
    pub(super) noise: Noise,
}

impl Live {
    /// Starts the agent. Failures to start show at the first request.
    pub(super) async fn start(
        program: Program,
        manner: Manner,
        scratch: Option<Scratch>,
        grace: Duration,
    ) -> Option<Live> {
        let shared = Arc::new(Shared {
            heard: watch::Sender::new(Instant::now()),
            noise: Mutex::new(Noise::default()),
            listener: Mutex::new(None),
            room: Arc::new(Semaphore::new(ROOM)),
            stderr: StderrLine::default(),
        });
        let (closing, kill) = (CancellationToken::new(), CancellationToken::new());
        let (connected, connection) = oneshot::channel();
        let task = tokio::spawn(serve(
            program,
            shared.clone(),
            closing.clone(),
            kill.clone(),
            connected,
            grace,
        ));
        let closing = closing.drop_guard();
        Some(Live {
            connection: connection.await.ok()?,
            shared,
            task,
            closing,
            kill,
            manner,
            _scratch: scratch,
            abilities: None,
            session: None,
            stopped: false,
            always: BTreeSet::new(),
        })
    }

    /// Returns whether the agent can take requests.
    pub(super) fn alive(&self) -> bool {
        !self.task.is_finished()
            && self.connection.termination().is_none()
            && !self.connection.is_incoming_closed()
    }

    /// Last line of the agent's standard error.
    pub(super) fn stderr(&self) -> &StderrLine {
        &self.shared.stderr
    }

    /// Sends a request and waits for the response.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Result<Value, Unanswered> {
        let request = UntypedMessage {
            method: method.to_owned(),
            params,
        };
        let answer = self.connection.send_request(request).block_task().await;
        answer.map_err(|error| {
            if is_connection_terminated(&error) || is_incoming_transport_closed(&error) {
                return Unanswered::Gone;
            }
            let data = error.data.unwrap_or_default();
            let code = i64::from(i32::from(error.code));
            let methods = self.abilities.as_ref().map(|told| &told["authMethods"]);
            Unanswered::Told(failure::with_logins(
                failure::of_error(code, &error.message, &data),
                methods.unwrap_or(&Value::Null),
            ))
        })
    }

    /// Sends a notification.
    pub(super) fn tell(&self, method: &str, params: Value) {
        let message = UntypedMessage {
            method: method.to_owned(),
            params,
        };
        // The request that waits for the agent fails if the agent is gone.
        let _ = self.connection.send_notification(message);
    }

    /// Registers a listener. Messages that arrive without a listener are discarded.
    pub(super) fn listen(&self) -> mpsc::Receiver<Incoming> {
        let (sender, receiver) = mpsc::channel(ROOM);
        *lock(&self.shared.listener) = Some(sender);
        receiver
    }

    /// Waits until pending messages have arrived, be it history or an answer that was cancelled.
    pub(super) async fn settle(&self) {
        // Gives up after `LOUD`, since an agent may never be silent.
        let _ = timeout(LOUD, self.silent(Instant::now(), QUIET)).await;
    }

    /// Waits until nothing has come from the agent for `limit`, counted from `since` at the
    /// earliest.
    pub(super) async fn silent(&self, since: Instant, limit: Duration) {
        let heard = self.shared.heard.subscribe();
        loop {
            let last = (*heard.borrow()).max(since);
            match last.checked_add(limit) {
                Some(at) if at <= Instant::now() => return,
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Ends the agent and waits until none of its processes is left: at once, or after it had time
    /// to end by itself.
    pub(super) async fn end(self, at_once: bool) -> Ending {
        if at_once {
            self.kill.cancel();
        }
        drop(self.closing);
        let process = self
            .task
            .await
            .unwrap_or_else(|error| Err(ProcessError::Io(std::io::Error::other(error))));
        let noise = lock(&self.shared.noise).clone();
        Ending { process, noise }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Owns the process and the connection for as long as both last.
async fn serve(
    program: Program,
    shared: Arc<Shared>,
    closing: CancellationToken,
    kill: CancellationToken,
    connected: oneshot::Sender<ConnectionTo<protocol::Agent>>,
    grace: Duration,
) -> Result<Finished, ProcessError> {
    let (input, to_agent) = mpsc::channel(ROOM);
    let (output, from_agent) = mpsc::channel(ROOM);
    let limits = Limits {
        grace,
        output: usize::MAX,
        stderr: shared.stderr.clone(),
        ..Limits::default()
    };
    let run = process::run(&program, Input::Chunks(to_agent), &limits, &kill, output);
    tokio::pin!(run);
    // Boxed so that it can be dropped before the process is awaited: that closes its stdin.
    let mut talk = Box::pin(talk(shared, input, from_agent, connected));
    tokio::select! {
        biased;
        () = closing.cancelled() => {}
        _ = &mut talk => {}
        done = &mut run => {
            // The last messages may still be on their way.
            tokio::select! {
                _ = &mut talk => {}
                () = closing.cancelled() => {}
            }
            return done;
        }
    }
    drop(talk);
    if let Ok(done) = timeout(FAREWELL, &mut run).await {
        return done;
    }
    kill.cancel();
    run.await
}

/// Runs the protocol until one side closes the connection.
async fn talk(
    shared: Arc<Shared>,
    input: mpsc::Sender<Vec<u8>>,
    output: mpsc::Receiver<Vec<u8>>,
    connected: oneshot::Sender<ConnectionTo<protocol::Agent>>,
) -> Result<(), protocol::Error> {
    let (news, asked) = (shared.clone(), shared.clone());
    let messages = wire::messages(output, shared.room.clone(), move |sieve| {
        shared.heard.send_replace(Instant::now());
        lock(&shared.noise).clone_from(sieve.noise());
    });
    let transport = protocol::Lines::new(wire::lines_to(input), messages);
    protocol::Client
        .v1()
        .name("tertulia")
        .on_receive_notification(
            async move |message: UntypedMessage, _| {
                if message.method == "session/update" {
                    news.hand_on(Incoming::Update(message.params)).await;
                    news.room.add_permits(1);
                }
                Ok(())
            },
            protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |message: UntypedMessage, responder: Responder<Value>, _| {
                if message.method != "session/request_permission" {
                    let unknown = protocol::Error::method_not_found();
                    return responder.respond_with_error(unknown);
                }
                asked
                    .hand_on(Incoming::Permission(message.params, Box::new(responder)))
                    .await;
                Ok(())
            },
            protocol::on_receive_request!(),
        )
        .connect_with(transport, async move |connection| {
            let _ = connected.send(connection.clone());
            connection.incoming_closed().await;
            Ok(())
        })
        .await
}

impl Shared {
    async fn hand_on(&self, incoming: Incoming) {
        let listener = lock(&self.listener).clone();
        let unheard = match listener {
            Some(listener) => listener.send(incoming).await.err().map(|error| error.0),
            None => Some(incoming),
        };
        if let Some(Incoming::Permission(_, responder)) = unheard {
            let _ = responder.respond(super::permission::cancelled());
        }
    }
}
