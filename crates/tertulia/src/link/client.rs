//! The near end of a link to a store on another machine.

use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use tertulia_core::entry::{Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Cursor;
use tertulia_core::session::Line;
use tertulia_store::sync::{Branch, BranchPage, BranchSource, MergedEnd, NewBranch, Partner};
use tertulia_store::{StoreError, StoreResult};

use super::SshUrl;
use super::lines::{Arrival, Cut, Lines, LinkLimits, in_words};
use super::wire::{self, Answer, Hello, Request};
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};

/// What a shell says if there is no such program.
const NO_SUCH_PROGRAM: i32 = 127;
/// What ssh says if it could not connect.
const NO_CONNECTION: i32 = 255;
/// Pause between looks whether the other end has left.
const PAUSE: Duration = Duration::from_millis(5);
/// Signs of life within the time that the other end waits for one.
const SIGNS: u32 = 3;

/// A store at the other end of a pipe. Requests block: a command that exchanges sessions has nothing
/// else to do meanwhile.
pub struct Remote {
    url: SshUrl,
    pipe: Arc<Mutex<Pipe>>,
    heard: Arc<Heard>,
    /// Dropped when no more signs of life are needed.
    alive: Mutex<Option<Sender<()>>>,
}

/// What the reading thread knows of the requests.
#[derive(Debug, Default)]
struct Heard {
    /// An answer is waited for.
    is_asked: AtomicBool,
    /// Changes of the other store are waited for.
    is_watched: AtomicBool,
    /// Number of sessions in the pages so far.
    listed: AtomicUsize,
}

struct Pipe {
    child: Child,
    limits: LinkLimits,
    /// `None` once the link is cut.
    lines: Option<Lines>,
}

impl Remote {
    /// Connects to a store. `changed` is called whenever the other end says that it has changed.
    pub fn connect(url: &SshUrl, changed: impl Fn() + Send + 'static) -> CommandResult<Remote> {
        let program = env::text(env::SSH).unwrap_or_else(|| "ssh".to_owned());
        Remote::connect_with(url, &program, LinkLimits::default(), changed)
    }

    fn connect_with(
        url: &SshUrl,
        program: &str,
        limits: LinkLimits,
        changed: impl Fn() + Send + 'static,
    ) -> CommandResult<Remote> {
        let failed = |error: io::Error| {
            CommandError::new(ErrorKind::Failed, format!("{url} cannot be reached")).because(error)
        };
        let mut child = url.command(program).spawn().map_err(failed)?;
        let (Some(requests), Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let heard = Arc::new(Heard::default());
        // The first line is asked for by connecting.
        heard.is_asked.store(true, Ordering::SeqCst);
        let listening = Listening {
            heard: heard.clone(),
            changed,
        };
        let lines = Lines::start(said, requests, limits, move |line| listening.admit(line));
        let mut pipe = Pipe {
            child,
            limits,
            lines: Some(lines.map_err(failed)?),
        };
        pipe.greet(url)?;
        let pipe = Arc::new(Mutex::new(pipe));
        let alive = show_life(&pipe, limits.silence / SIGNS).map_err(failed)?;
        Ok(Remote {
            url: url.clone(),
            pipe,
            heard,
            alive: Mutex::new(Some(alive)),
        })
    }

    /// Asks the other end to say when its store changes. From then on it waits for requests without
    /// limit.
    pub fn watch(&self) -> StoreResult<()> {
        self.heard.is_watched.store(true, Ordering::SeqCst);
        self.ask::<()>(&Request::Watch)?;
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Ends the link. Fails if the other end does not leave; then it is stopped.
    pub fn close(self) -> CommandResult<()> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let silence = pipe.limits.silence;
        match pipe.close(silence) {
            true => Ok(()),
            false => Err(CommandError::new(
                ErrorKind::Failed,
                format!(
                    "{} did not leave within {} after the end, and was stopped",
                    self.url,
                    in_words(silence)
                ),
            )
            .hint("everything was exchanged before")),
        }
    }

    fn most_sessions(&self) -> usize {
        let pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        pipe.limits.sessions
    }

    fn ask<T: DeserializeOwned>(&self, request: &Request) -> StoreResult<T> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let cut = |reason: Cut| StoreError::Unreachable {
            place: self.url.to_string(),
            reason: reason.to_string(),
        };
        let line = wire::encoded(request, pipe.limits.line)?;
        let Some(lines) = &pipe.lines else {
            return Err(cut(Cut::Ended));
        };
        self.heard.is_asked.store(true, Ordering::SeqCst);
        let answer = lines.write(line).and_then(|()| match lines.next() {
            Arrival::Line(line) => wire::decoded::<T>(&line),
            Arrival::Woken => Err(Cut::Ended),
            Arrival::Cut(cut) => Err(cut),
        });
        match answer {
            Ok(Answer::Ok(value)) => Ok(value),
            Ok(Answer::Failed(failure)) => Err(failure.into()),
            Ok(Answer::Changed) => {
                pipe.stop();
                Err(cut(Cut::Unasked))
            }
            Err(reason) => {
                pipe.stop();
                Err(cut(reason))
            }
        }
    }
}

/// Sees every line of the other end first.
struct Listening<F: Fn()> {
    heard: Arc<Heard>,
    changed: F,
}

impl<F: Fn()> Listening<F> {
    fn admit(&self, line: &str) -> Result<bool, Cut> {
        if line == wire::CHANGED {
            return match self.heard.is_watched.load(Ordering::SeqCst) {
                true => {
                    (self.changed)();
                    Ok(false)
                }
                false => Err(Cut::Unasked),
            };
        }
        match self.heard.is_asked.swap(false, Ordering::SeqCst) {
            true => Ok(true),
            false => Err(Cut::Unasked),
        }
    }
}

impl<F: Fn()> Drop for Listening<F> {
    fn drop(&mut self) {
        // A watcher notices that the link is cut when it asks.
        (self.changed)();
    }
}

/// Tells the other end from time to time that this one is there, unless it is asked something.
fn show_life(pipe: &Arc<Mutex<Pipe>>, every: Duration) -> io::Result<Sender<()>> {
    let (alive, ended) = channel();
    let pipe: Weak<Mutex<Pipe>> = Arc::downgrade(pipe);
    let thread = std::thread::Builder::new().name("tertulia-link-life".to_owned());
    thread.spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(every) {
            let Some(pipe) = pipe.upgrade() else {
                return;
            };
            // A request under way is a sign of life, too.
            if let Ok(pipe) = pipe.try_lock()
                && let Some(lines) = &pipe.lines
                && let Ok(line) = wire::encoded(&Request::Alive, pipe.limits.line)
            {
                // The next request notices that the link is cut.
                let _ = lines.write(line);
            }
        }
    })?;
    Ok(alive)
}

impl Pipe {
    /// Reads the first line of the other end.
    fn greet(&mut self, url: &SshUrl) -> CommandResult<()> {
        let arrival = self.lines.as_ref().map(Lines::next);
        let line = match arrival {
            Some(Arrival::Line(line)) => line,
            Some(Arrival::Cut(Cut::Ended) | Arrival::Woken) | None => {
                self.lines = None;
                let status = self.wait(self.limits.silence);
                return Err(no_answer(url, status.flatten()));
            }
            Some(Arrival::Cut(cut @ Cut::Silent(_))) => {
                self.stop();
                let words = format!("{url} cannot be reached: {cut}");
                return Err(CommandError::new(ErrorKind::Failed, words).hint(
                    "if ssh asks for a password, use a key: `ssh-copy-id HOST`; \
                     or try the same address with ssh",
                ));
            }
            Some(Arrival::Cut(_)) => {
                self.stop();
                return Err(other_text(url));
            }
        };
        match serde_json::from_str(&line) {
            Ok(Hello { tertulia_sync, .. }) if tertulia_sync == wire::VERSION => Ok(()),
            Ok(Hello { tertulia_sync, .. }) => {
                self.close(self.limits.silence);
                Err(other_version(url, tertulia_sync))
            }
            Err(_) => {
                self.stop();
                Err(other_text(url))
            }
        }
    }

    /// Ends the link. The other end leaves when nothing more can be asked. Returns false if it had to
    /// be stopped.
    fn close(&mut self, within: Duration) -> bool {
        self.lines = None;
        let has_left = self.wait(within).is_some();
        if !has_left {
            self.stop();
        }
        has_left
    }

    /// Waits until the other end has left. Returns its exit code; `None` if it stays.
    fn wait(&mut self, within: Duration) -> Option<Option<i32>> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status.code()),
                Err(_) => return Some(None),
                Ok(None) if began.elapsed() >= within => return None,
                Ok(None) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn stop(&mut self) {
        self.lines = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.close(self.limits.silence);
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

fn other_text(url: &SshUrl) -> CommandError {
    let words = format!("{url}: it prints other text than tertulia's");
    CommandError::new(ErrorKind::Failed, words)
        .hint("its shell must print nothing when a command is run over ssh")
}

fn no_answer(url: &SshUrl, code: Option<i32>) -> CommandError {
    let error = |words: &str| CommandError::new(ErrorKind::Failed, format!("{url}: {words}"));
    match code {
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
        self.ask::<wire::FewLines>(&request).map(Into::into)
    }

    async fn origins(&self, id: SessionId) -> StoreResult<Vec<Origin>> {
        self.ask(&Request::Origins { id })
    }

    async fn fixed(&self, id: SessionId) -> StoreResult<Seq> {
        self.ask(&Request::Fixed { id })
    }
}

#[async_trait]
impl Partner for Remote {
    async fn page(&self, cursor: Option<Cursor>, limit: usize) -> StoreResult<BranchPage> {
        if cursor.is_none() {
            self.heard.listed.store(0, Ordering::SeqCst);
        }
        let cursor = cursor.map(|cursor| cursor.to_string());
        let page: BranchPage = self.ask(&Request::Page { cursor, limit })?;
        let more = page.branches.len() + page.damaged.len();
        let listed = self.heard.listed.fetch_add(more, Ordering::SeqCst) + more;
        match listed <= self.most_sessions() {
            true => Ok(page),
            false => Err(StoreError::Refused(format!(
                "{} lists more than {} sessions, which are too many for a link",
                self.url,
                self.most_sessions()
            ))),
        }
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

    async fn merge_end(&self, id: SessionId, end: &MergedEnd) -> StoreResult<Head> {
        self.ask(&Request::MergeEnd {
            id,
            after: end.after,
            common: end.common,
            fixed: end.fixed,
            entries: wire::texts(&end.entries),
        })
    }
}

#[cfg(test)]
mod tests;
