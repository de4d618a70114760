//! A session that a server runs: events arrive over a socket, commands go back. The TUI may detach
//! at any time; the session keeps running.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use tertulia_agents::approval::{PermissionChange, Verdict};
use tertulia_core::id::SessionId;
use tertulia_engine::error::ErrorKind;
use tertulia_engine::event::{SessionEnd, SessionEvent, Tone, UserMessage};
use tertulia_server::call::{Call, ReplyReader, RequestWriter};
use tertulia_server::protocol::{Answer, Ask, Id, Reply};

use super::event_queue::EventQueue;
use super::live::{LiveCommand, LiveEvent, Ticket};
use crate::error::{TuiError, TuiResult};

/// A session that a server runs.
#[derive(Debug)]
pub struct Remote {
    asks: mpsc::Sender<Ask>,
    events: EventQueue<LiveEvent>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// State shared by the sending and the receiving thread.
#[derive(Debug)]
struct Shared {
    /// Id of the input of this screen, for what is typed and not sent.
    input: String,
    /// Id of the session, which changes if it continues in a fork.
    session: Mutex<SessionId>,
    /// Number of permission questions so far, and the tool call of the open one.
    question: Mutex<(Ticket, Option<String>)>,
    /// Permissions that are always granted.
    always: Mutex<Vec<String>>,
    /// Whether the user has detached, so that the end of the connection is no error.
    leaving: Mutex<bool>,
    /// Whether the person has ended the session: then it does not run on.
    ended: Mutex<bool>,
}

impl Remote {
    /// Follows a session over a connection that is subscribed to it.
    pub fn follow(
        call: Call,
        session: SessionId,
        events: EventQueue<LiveEvent>,
    ) -> TuiResult<Remote> {
        let (asks, taken) = mpsc::channel();
        let shared = Arc::new(Shared {
            // No other program that is connected to this server has the number.
            input: format!("screen-{}", std::process::id()),
            session: Mutex::new(session),
            question: Mutex::new((0, None)),
            always: Mutex::default(),
            leaving: Mutex::new(false),
            ended: Mutex::new(false),
        });
        let Call { writer, reader, .. } = call;
        let sender = thread("commands", move || send(writer, &taken))?;
        let listener = thread("events", {
            let (events, shared) = (events.clone(), shared.clone());
            move || listen(reader, &events, &shared)
        })?;
        Ok(Remote {
            asks,
            events,
            shared,
            threads: vec![sender, listener],
        })
    }

    /// Returns the queue of events.
    pub fn events(&self) -> &EventQueue<LiveEvent> {
        &self.events
    }

    /// Sends a command.
    pub fn command(&self, command: LiveCommand) {
        let session_id = locked(&self.shared.session).to_string();
        match command {
            LiveCommand::Say(text) => self.ask(Ask::Say {
                session_id,
                text,
                attach: true,
                client_id: None,
                again: false,
            }),
            LiveCommand::Queue { client_id, text } => self.ask(Ask::Say {
                session_id,
                text,
                attach: true,
                client_id: Some(client_id),
                again: false,
            }),
            LiveCommand::EditQueued { client_id, text } => self.ask(Ask::EditQueued {
                session_id,
                client_id,
                text,
            }),
            LiveCommand::Withdraw { client_id } => self.ask(Ask::Withdraw {
                session_id,
                client_id,
            }),
            LiveCommand::KeepDraft(text) => self.ask(Ask::KeepDraft {
                session_id,
                client_id: self.shared.input.clone(),
                text,
            }),
            // Not offered over the protocol; the screen says so before.
            LiveCommand::Run(_) => self.events.push(LiveEvent::Refused),
            LiveCommand::As(name) => self.ask(Ask::As { session_id, name }),
            LiveCommand::Switch(spec) => self.ask(Ask::SessionConfigure {
                session_id: Some(session_id),
                agent: spec.agent,
                model: spec.model,
                approve: None,
                revoke: Vec::new(),
            }),
            LiveCommand::Compact => self.ask(Ask::Compact { session_id }),
            LiveCommand::End => {
                *locked(&self.shared.leaving) = true;
                *locked(&self.shared.ended) = true;
                self.ask(Ask::Stop { session_id });
                self.ask(Ask::Detach {
                    session_id: locked(&self.shared.session).to_string(),
                });
            }
            LiveCommand::Leave => {
                *locked(&self.shared.leaving) = true;
                self.ask(Ask::Detach { session_id });
            }
        }
    }

    /// Cancels the running answer.
    pub fn cancel(&self) {
        let session_id = Some(locked(&self.shared.session).to_string());
        self.ask(Ask::Cancel { session_id });
    }

    /// Answers a permission question, if it is still the open one.
    pub fn answer(&self, ticket: Ticket, verdict: Verdict) {
        let tool_id = {
            let mut question = locked(&self.shared.question);
            match question.0 == ticket {
                true => question.1.take(),
                false => None,
            }
        };
        let Some(tool_id) = tool_id else {
            return;
        };
        let session_id = locked(&self.shared.session).to_string();
        self.ask(Ask::Verdict {
            session_id,
            tool_id,
            reason: verdict.reason().map(str::to_owned),
            verdict,
        });
    }

    /// Changes the tool permissions, also while an agent answers.
    pub fn permit(&self, change: PermissionChange) {
        let session_id = Some(locked(&self.shared.session).to_string());
        let always = || locked(&self.shared.always).clone();
        let (approve, revoke) = match change {
            PermissionChange::Mode(mode) => (Some(mode), Vec::new()),
            PermissionChange::Revoke(key) => (None, vec![key]),
            PermissionChange::RevokeAll => (None, always()),
        };
        self.ask(Ask::SessionConfigure {
            session_id,
            agent: None,
            model: None,
            approve,
            revoke,
        });
    }

    /// Waits for both threads to end, after [`LiveEvent::Gone`].
    pub fn join(self) {
        drop(self.asks);
        for thread in self.threads {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }

    fn ask(&self, ask: Ask) {
        // The receiving thread has already reported a server that is gone.
        let _ = self.asks.send(ask);
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> TuiResult<JoinHandle<()>> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work);
    thread.map_err(|error| TuiError::failed("cannot follow the session", &error))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Id of requests after whose errors the TUI must not wait for an answer.
fn turn_id() -> Id {
    Id::Text("order".to_owned())
}

/// Sends commands, and closes the connection when there are no more.
fn send(mut writer: RequestWriter, asks: &mpsc::Receiver<Ask>) {
    for ask in asks {
        // After an error to one of these, no answer follows.
        let is_awaited = match &ask {
            Ask::Say { .. } | Ask::Compact { .. } => true,
            Ask::SessionConfigure { agent, model, .. } => agent.is_some() || model.is_some(),
            _ => false,
        };
        let id = is_awaited.then(turn_id);
        if writer.send(id, ask).is_err() {
            break;
        }
    }
    writer.close();
}

/// Passes events on until the session is no longer followed.
fn listen(mut reader: ReplyReader, events: &EventQueue<LiveEvent>, shared: &Shared) {
    let end = loop {
        let (id, answer) = match reader.read() {
            Ok(Reply { id, answer }) => (id, answer),
            Err(error) => break Some(error.to_string()),
        };
        match answer {
            Answer::Event { event, .. } => {
                events.push(live_event(*event, shared));
            }
            Answer::Detached { .. } => break None,
            Answer::Goodbye { reason } => break Some(reason),
            Answer::Error(trouble) => {
                let event = SessionEvent::notice(Tone::Error, trouble.sentence());
                events.push(LiveEvent::Session(event));
                if id == Some(turn_id()) {
                    events.push(LiveEvent::Refused);
                }
            }
            _ => {}
        }
    };
    let left = *locked(&shared.leaving);
    if let Some(reason) = end.filter(|_| !left) {
        let error = TuiError::new(ErrorKind::Failed, format!("disconnected from the session: {reason}"))
            .hint("every message is saved: `tertulia attach` reconnects, `tertulia -c` continues without a server");
        events.push(LiveEvent::NotOpened(Box::new(error)));
    }
    events.push(LiveEvent::Gone(farewell(shared, left)));
}

/// Returns the closing message for a user who detaches.
fn farewell(shared: &Shared, left: bool) -> SessionEnd {
    let short = locked(&shared.session).short();
    let note = format!("Still running. Reattach with: tertulia attach {short}");
    SessionEnd {
        told: match left && !*locked(&shared.ended) {
            true => vec![UserMessage::note(note)],
            false => Vec::new(),
        },
        ..SessionEnd::default()
    }
}

/// Converts an event of the server for the TUI.
fn live_event(event: SessionEvent, shared: &Shared) -> LiveEvent {
    match event {
        SessionEvent::NotOpened { error } => return LiveEvent::NotOpened(Box::new(error.into())),
        SessionEvent::MayI { request } => {
            let mut question = locked(&shared.question);
            *question = (question.0 + 1, Some(request.call.id.clone()));
            return LiveEvent::Permission(question.0, request);
        }
        // The server has closed the session, or a client has stopped it: the next message opens it
        // again.
        SessionEvent::Gone { farewell } => {
            let words = farewell.told.into_iter().map(|told| told.text);
            let words: Vec<String> = words.collect();
            return LiveEvent::Rested(words.join("; "));
        }
        SessionEvent::Permissions { ref state } => {
            locked(&shared.always).clone_from(&state.always);
        }
        SessionEvent::Settled { .. } => locked(&shared.question).1 = None,
        SessionEvent::Moved { to } => *locked(&shared.session) = to,
        _ => {}
    }
    LiveEvent::Session(event)
}
