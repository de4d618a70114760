//! The near end of a link to a store on another machine.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use tertulia_core::entry::{Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Cursor;
use tertulia_core::session::Line;
use tertulia_store::sync::{Branch, BranchPage, BranchSource, NewBranch, Partner};
use tertulia_store::{StoreError, StoreResult};

use super::SshUrl;
use super::wire::{self, Answer, Hello, Request};
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};

/// What a shell says if there is no such program.
const NO_SUCH_PROGRAM: i32 = 127;
/// What ssh says if it could not connect.
const NO_CONNECTION: i32 = 255;

/// A store at the other end of a pipe. Requests block: a command that exchanges sessions has nothing
/// else to do meanwhile.
pub struct Remote {
    url: SshUrl,
    pipe: Mutex<Pipe>,
}

struct Pipe {
    child: Child,
    /// `None` once the link is cut.
    requests: Option<ChildStdin>,
    answers: Receiver<Answer>,
}

impl Remote {
    /// Connects to a store. `changed` is called whenever the other end says that it has changed.
    pub fn connect(url: &SshUrl, changed: impl Fn() + Send + 'static) -> CommandResult<Remote> {
        let program = env::text(env::SSH).unwrap_or_else(|| "ssh".to_owned());
        let failed = |error: io::Error| {
            CommandError::new(ErrorKind::Failed, format!("{url} cannot be reached")).because(error)
        };
        let mut child = url.command(&program).spawn().map_err(failed)?;
        let (Some(requests), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let mut said = BufReader::new(said);
        let mut line = String::new();
        let greeted = said.read_line(&mut line).map_err(failed)?;
        let hello: Option<Hello> = serde_json::from_str(&line).ok();
        match hello {
            Some(hello) if hello.tertulia_sync == wire::VERSION => {}
            Some(hello) => {
                drop(requests);
                let _ = child.wait();
                return Err(other_version(url, hello.tertulia_sync));
            }
            None => {
                drop(requests);
                let status = child.wait().map_err(failed)?;
                return Err(no_answer(url, greeted > 0, status.code()));
            }
        }
        let (sender, answers) = channel();
        let thread = std::thread::Builder::new().name("tertulia-link".to_owned());
        thread
            .spawn(move || listen(said, &sender, &changed))
            .map_err(failed)?;
        Ok(Remote {
            url: url.clone(),
            pipe: Mutex::new(Pipe {
                child,
                requests: Some(requests),
                answers,
            }),
        })
    }

    /// Asks the other end to say when its store changes.
    pub fn watch(&self) -> StoreResult<()> {
        self.ask(&Request::Watch)
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> StoreResult<T> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = |reason: String| StoreError::Unreachable {
            place: self.url.to_string(),
            reason,
        };
        let mut line = serde_json::to_vec(request).map_err(|error| cut(error.to_string()))?;
        line.push(b'\n');
        let Some(requests) = &mut pipe.requests else {
            return Err(cut("the link was cut".to_owned()));
        };
        let sent = requests.write_all(&line).and_then(|()| requests.flush());
        let answer = sent.ok().and_then(|()| pipe.answers.recv().ok());
        match answer {
            Some(Answer::Ok(value)) => wire::read(value).map_err(cut),
            Some(Answer::Failed(failure)) => Err(failure.into()),
            Some(Answer::Changed) | None => {
                pipe.requests = None;
                Err(cut("the link was cut".to_owned()))
            }
        }
    }
}

/// Reads what the other end says, until the link is cut.
fn listen(said: BufReader<ChildStdout>, answers: &Sender<Answer>, changed: &dyn Fn()) {
    for line in said.lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Answer::Changed) => changed(),
            Ok(answer) => {
                if answers.send(answer).is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    // A watcher notices that the link is cut when it asks.
    changed();
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // The other end leaves when nothing more can be asked.
        self.requests = None;
        let _ = self.child.wait();
    }
}

fn other_version(url: &SshUrl, found: u32) -> CommandError {
    let older = if found > wire::VERSION {
        "this"
    } else {
        "that"
    };
    CommandError::new(
        ErrorKind::Failed,
        format!(
            "{url} speaks version {found} of the sync protocol, this program version {}",
            wire::VERSION
        ),
    )
    .hint(format!("upgrade tertulia on {older} machine"))
}

fn no_answer(url: &SshUrl, said_something: bool, code: Option<i32>) -> CommandError {
    let error = |words: &str| CommandError::new(ErrorKind::Failed, format!("{url}: {words}"));
    match code {
        _ if said_something => error("it prints other text than tertulia's")
            .hint("its shell must print nothing when a command is run over ssh"),
        Some(NO_SUCH_PROGRAM) => error("there is no program tertulia, or no ssh here").hint(
            "install tertulia there, in a folder of the PATH that ssh commands have, and ssh here",
        ),
        Some(NO_CONNECTION) => error("ssh could not connect")
            .hint("try the same address with ssh; TERTULIA_SSH names another command"),
        _ => error("tertulia there ended without an answer"),
    }
}

#[async_trait]
impl BranchSource for Remote {
    async fn head_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
        self.ask(&Request::HeadAt { id, seq })
    }

    async fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        let request = Request::Lines { id, after, limit };
        self.ask(&request).map(wire::lines)
    }

    async fn origins(&self, id: SessionId) -> StoreResult<Vec<Origin>> {
        self.ask(&Request::Origins { id })
    }
}

#[async_trait]
impl Partner for Remote {
    async fn page(&self, cursor: Option<Cursor>, limit: usize) -> StoreResult<BranchPage> {
        let cursor = cursor.map(|cursor| cursor.to_string());
        self.ask(&Request::Page { cursor, limit })
    }

    async fn family(&self, root: SessionId) -> StoreResult<Vec<Branch>> {
        self.ask(&Request::Family { root })
    }

    async fn has(&self, origin: &Origin) -> StoreResult<bool> {
        let origin = origin.clone();
        self.ask(&Request::Has { origin })
    }

    async fn create(&self, new: &NewBranch) -> StoreResult<Branch> {
        self.ask(&Request::Create {
            root: new.root,
            beside: new.beside,
            base: new.base.clone(),
            entries: wire::texts(&new.entries),
        })
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.ask(&Request::Append {
            id,
            after,
            entries: wire::texts(entries),
        })
    }
}
