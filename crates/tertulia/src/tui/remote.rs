//! A talk that a server leads, as the screen sees it: what happens comes over a socket, orders go back. The
//! screen may go at any time; the talk stays.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use tertulia_agents::approval::{PermissionChange, Verdict};
use tertulia_core::id::SessionId;
use tertulia_engine::event::{SessionEnd, SessionEvent, Tone, UserMessage};
use tertulia_server::call::{Call, Ear, Mouth};
use tertulia_server::protocol::{Answer, Ask, Id, Reply};

use super::mailbox::Mailbox;
use super::news::{News, Order, Ticket};
use crate::error::{CommandError, CommandResult, ErrorKind};

/// A talk that a server leads.
#[derive(Debug)]
pub struct Remote {
    asks: mpsc::Sender<Ask>,
    news: Mailbox<News>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What both directions know.
#[derive(Debug)]
struct Shared {
    /// The session, which may change when somebody else writes to it.
    session: Mutex<SessionId>,
    /// How many questions there were, and the call that the last one is about.
    question: Mutex<(Ticket, Option<String>)>,
    /// What is always allowed.
    always: Mutex<Vec<String>>,
    /// Whether the person has left: then a silent end is right.
    leaving: Mutex<bool>,
    /// Whether the person has ended the session: then it does not run on.
    ended: Mutex<bool>,
}

impl Remote {
    /// Follows a session over a connection that was asked to.
    pub fn follow(call: Call, session: SessionId, news: Mailbox<News>) -> CommandResult<Remote> {
        let (asks, taken) = mpsc::channel();
        let shared = Arc::new(Shared {
            session: Mutex::new(session),
            question: Mutex::new((0, None)),
            always: Mutex::default(),
            leaving: Mutex::new(false),
            ended: Mutex::new(false),
        });
        let Call { mouth, ear, .. } = call;
        let speaker = thread("orders", move || speak(mouth, &taken))?;
        let listener = thread("news", {
            let (news, shared) = (news.clone(), shared.clone());
            move || listen(ear, &news, &shared)
        })?;
        Ok(Remote {
            asks,
            news,
            shared,
            threads: vec![speaker, listener],
        })
    }

    /// What happened.
    pub fn news(&self) -> &Mailbox<News> {
        &self.news
    }

    /// Gives an order.
    pub fn order(&self, order: Order) {
        let session_id = locked(&self.shared.session).to_string();
        match order {
            Order::Say(text) => self.ask(Ask::Say { session_id, text }),
            Order::As(name) => self.ask(Ask::As { session_id, name }),
            Order::Compact => self.ask(Ask::Compact { session_id }),
            Order::End => {
                *locked(&self.shared.leaving) = true;
                *locked(&self.shared.ended) = true;
                self.ask(Ask::Stop { session_id });
                self.ask(Ask::Detach {
                    session_id: locked(&self.shared.session).to_string(),
                });
            }
            Order::Leave => {
                *locked(&self.shared.leaving) = true;
                self.ask(Ask::Detach { session_id });
            }
        }
    }

    /// Stops whoever is answering.
    pub fn cancel(&self) {
        let session_id = Some(locked(&self.shared.session).to_string());
        self.ask(Ask::Cancel { session_id });
    }

    /// Answers a question, if it is still the last one.
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

    /// Waits until nobody speaks or listens any more, after [`News::Gone`].
    pub fn join(self) {
        drop(self.asks);
        for thread in self.threads {
            // A panic on it was told when it happened.
            let _ = thread.join();
        }
    }

    fn ask(&self, ask: Ask) {
        // A server that is gone has said so.
        let _ = self.asks.send(ask);
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> CommandResult<JoinHandle<()>> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work);
    thread.map_err(|error| {
        CommandError::new(ErrorKind::Failed, "cannot follow the session").because(error)
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name of requests that somebody is to answer.
fn order_id() -> Id {
    Id::Text("order".to_owned())
}

/// Passes orders on, and hangs up when there are no more.
fn speak(mut mouth: Mouth, asks: &mpsc::Receiver<Ask>) {
    for ask in asks {
        // Only of this it matters whether something is wrong with it: nobody answers then.
        let id = matches!(ask, Ask::Say { .. } | Ask::Compact { .. }).then(order_id);
        if mouth.say(id, ask).is_err() {
            break;
        }
    }
    mouth.hang_up();
}

/// Passes on what happens, until the session is not followed any more.
fn listen(mut ear: Ear, news: &Mailbox<News>, shared: &Shared) {
    let end = loop {
        let (id, answer) = match ear.hear() {
            Ok(Reply { id, answer }) => (id, answer),
            Err(error) => break Some(error.to_string()),
        };
        match answer {
            Answer::Happening { happening, .. } => {
                news.post(told(*happening, shared));
            }
            Answer::Detached { .. } => break None,
            Answer::Goodbye { reason } => break Some(reason),
            Answer::Error(trouble) => {
                let event = SessionEvent::notice(Tone::Error, trouble.sentence());
                news.post(News::Session(event));
                if id == Some(order_id()) {
                    news.post(News::Refused);
                }
            }
            _ => {}
        }
    };
    let left = *locked(&shared.leaving);
    if let Some(reason) = end.filter(|_| !left) {
        let error = CommandError::new(ErrorKind::Failed, format!("disconnected from the session: {reason}"))
            .hint("every message is saved: `tertulia attach` reconnects, `tertulia -c` continues without a server");
        news.post(News::NotOpened(Box::new(error)));
    }
    news.post(News::Gone(farewell(shared, left)));
}

/// What is said to who leaves.
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

/// Converts an event of the server for the screen.
fn told(event: SessionEvent, shared: &Shared) -> News {
    match event {
        SessionEvent::NotOpened { error } => return News::NotOpened(Box::new(error.into())),
        SessionEvent::MayI { request } => {
            let mut question = locked(&shared.question);
            *question = (question.0 + 1, Some(request.call.id.clone()));
            return News::Permission(question.0, request);
        }
        // The server has closed the session, or a client has stopped it: the next message opens it
        // again.
        SessionEvent::Gone { farewell } => {
            let words = farewell.told.into_iter().map(|told| told.text);
            let words: Vec<String> = words.collect();
            return News::Rested(words.join("; "));
        }
        SessionEvent::Permissions { ref state } => {
            locked(&shared.always).clone_from(&state.always);
        }
        SessionEvent::Settled { .. } => locked(&shared.question).1 = None,
        SessionEvent::Moved { to } => *locked(&shared.session) = to,
        _ => {}
    }
    News::Session(event)
}
