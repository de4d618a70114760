//! Runs one program, for one turn or for a whole session: feeds its stdin, streams its stdout, and
//! ends the whole tree of processes that it started, however the turn ends.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tokio_util::sync::CancellationToken;

mod confine;
pub mod guard;
mod hold;
mod input;
mod orphans;
mod stderr;
mod tree;
mod utf8;

pub use confine::{Confined, Kernel};
pub use hold::Hold;
use input::Feed;
pub use input::Input;
pub use orphans::end_orphans;
pub use stderr::StderrLine;
use tree::Tree;
pub use utf8::Utf8Stream;

/// Environment variable that carries [`Program::marker`] to every descendant.
pub const MARKER_VAR: &str = "TERTULIA_RUN";
/// Maximum number of bytes kept from the end of stderr.
pub const STDERR_TAIL: usize = 16 * 1024;

const CHUNK: usize = 16 * 1024;
/// Maximum time that stdout may stay open after the program itself has exited.
const DRAIN: Duration = Duration::from_millis(500);
/// Maximum time that the pipes may stay open after all known processes have ended.
const TIDY: Duration = Duration::from_millis(100);
/// Size of the largest pipe of an unprivileged program: more output than this after the program's
/// exit comes from other processes.
const PIPE_MOST: u64 = 1 << 20;

/// Program to run. Has no `Debug`: `env` may hold secrets.
#[derive(Clone)]
pub struct Program {
    /// A name looked up in `PATH`, or a path.
    pub command: PathBuf,
    /// Arguments after the command.
    pub args: Vec<String>,
    /// Variables set on top of the inherited environment.
    pub env: Vec<(String, String)>,
    /// Inherited variables that are removed.
    pub without: Vec<String>,
    /// Working directory; the current directory if `None`.
    pub work_dir: Option<PathBuf>,
    /// Unique for this run (for example a UUID): identifies the processes of the run.
    pub marker: String,
    /// What the program may write; everything that the user may if `None`.
    pub confined: Option<Confined>,
}

/// Time and output limits of a program.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest silence on stdout and stderr together.
    pub idle: Option<Duration>,
    /// Longest run.
    pub total: Option<Duration>,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// Interval at which descendants are recorded while the program runs: one that leaves the
    /// program's session and environment can be found later only if it was recorded.
    pub record: Duration,
    /// Maximum number of stdout bytes handed on; the rest is read, counted and discarded.
    pub output: usize,
    /// Pauses the time limits while the program waits for something else.
    pub hold: Hold,
    /// Receives the last line of standard error while the program runs.
    pub stderr: StderrLine,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: None,
            total: None,
            grace: Duration::from_secs(5),
            record: Duration::from_secs(2),
            output: 16 << 20,
            hold: Hold::default(),
            stderr: StderrLine::default(),
        }
    }
}

/// A run that ended by itself, with any exit status.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// End of the program's stderr.
    pub stderr_tail: String,
    /// Number of bytes that the program wrote to stdout.
    pub stdout_bytes: u64,
    /// Number of those bytes that were not handed on: over the limit, or the receiver was closed.
    pub stdout_dropped: u64,
}

/// Why a run did not end by itself.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The program does not exist.
    #[error("program not found: {}", .command.display())]
    NotFound {
        /// The program.
        command: PathBuf,
    },
    /// The file exists but cannot be run: permission, format or a missing interpreter.
    #[error("program cannot be executed: {}", .command.display())]
    NotExecutable {
        /// The program.
        command: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The working directory is missing or not a directory.
    #[error("not a directory to work in: {}", .path.display())]
    WorkDir {
        /// The folder.
        path: PathBuf,
    },
    /// The program cannot be confined, so it was not started.
    #[error("it cannot be kept from writing files: {reason}")]
    Unconfined {
        /// What is missing or wrong.
        reason: String,
    },
    /// The program could not be started for another reason.
    #[error("program could not be started")]
    Spawn(#[source] io::Error),
    /// The program was silent for too long.
    #[error("no output for {limit:?}")]
    Idle {
        /// The limit.
        limit: Duration,
        /// End of the program's standard error.
        stderr_tail: String,
    },
    /// The program ran for too long.
    #[error("not finished after {limit:?}")]
    Timeout {
        /// The limit.
        limit: Duration,
        /// End of the program's standard error.
        stderr_tail: String,
    },
    /// The caller cancelled the run.
    #[error("cancelled")]
    Cancelled,
    /// Communication with the running program failed.
    #[error("lost contact with the program")]
    Io(#[source] io::Error),
}

/// Runs `program` to its end and sends its stdout to `on_stdout` as it arrives (a full channel
/// makes the program wait). Returns when the whole process tree is gone; dropping the future kills
/// the tree at once.
pub async fn run(
    program: &Program,
    stdin: impl Into<Input<'_>>,
    limits: &Limits,
    cancel: &CancellationToken,
    on_stdout: mpsc::Sender<Vec<u8>>,
) -> Result<Finished, ProcessError> {
    if cancel.is_cancelled() {
        return Err(ProcessError::Cancelled);
    }
    let mut child = spawn(program)?;
    // Declared after `child`, so dropped before it: the pid is not reaped before the tree is ended.
    let mut tree = Tree::of(&child, &program.marker);
    let mut pipes = Pipes::new(&mut child, stdin.into(), limits, on_stdout);
    let outcome = drive(&mut child, &mut pipes, &mut tree, limits, cancel).await;
    end(&mut child, &mut pipes, &mut tree, limits.grace).await;
    tree.disarm();
    let stderr_tail = pipes.tail.text();
    match outcome {
        Ok(status) => Ok(Finished {
            status,
            stderr_tail,
            stdout_bytes: pipes.counted,
            stdout_dropped: pipes.counted - pipes.handed,
        }),
        Err(Stop::Idle(limit)) => Err(ProcessError::Idle { limit, stderr_tail }),
        Err(Stop::Timeout(limit)) => Err(ProcessError::Timeout { limit, stderr_tail }),
        Err(Stop::Cancelled) => Err(ProcessError::Cancelled),
        Err(Stop::Io(error)) => Err(ProcessError::Io(error)),
    }
}

fn spawn(program: &Program) -> Result<Child, ProcessError> {
    let mut command = Command::new(&program.command);
    command.args(&program.args);
    for name in &program.without {
        command.env_remove(name);
    }
    command.envs(program.env.iter().map(|(k, v)| (k, v)));
    command
        .env(MARKER_VAR, &program.marker)
        .process_group(0)
        .kill_on_drop(true);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(dir) = &program.work_dir {
        // Checked first: a failed chdir looks the same as a missing program.
        if !dir.is_dir() {
            return Err(ProcessError::WorkDir { path: dir.clone() });
        }
        command.current_dir(dir);
    }
    let spawned = match &program.confined {
        Some(confined) => confine::spawn(&mut command, confined)?,
        None => command.spawn(),
    };
    spawned.map_err(|source| {
        let command = program.command.clone();
        let base = program.work_dir.as_deref().unwrap_or(Path::new("."));
        // A file that exists but is "not found" lacks its interpreter or loader.
        let there = command.components().count() > 1 && base.join(&command).exists();
        match source.kind() {
            io::ErrorKind::NotFound if !there => ProcessError::NotFound { command },
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                ProcessError::NotExecutable { command, source }
            }
            _ if source.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
                ProcessError::NotExecutable { command, source }
            }
            _ => ProcessError::Spawn(source),
        }
    })
}

enum Stop {
    Idle(Duration),
    Timeout(Duration),
    Cancelled,
    Io(io::Error),
}

/// Pumps until the program has exited and its output has ended (or is overdue), or must stop.
async fn drive(
    child: &mut Child,
    pipes: &mut Pipes<'_>,
    tree: &mut Tree,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<ExitStatus, Stop> {
    let mut clock = limits.hold.clock();
    let mut exit: Option<(ExitStatus, Instant, u64)> = None;
    let mut watch = interval_at(Instant::now() + limits.record, limits.record);
    watch.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let running = exit.is_none();
        let drained = match exit {
            Some((status, ..)) if pipes.ended() => return Ok(status),
            // Time spent waiting for a slow receiver does not count, as long as the content of the
            // pipe can still be the program's own output.
            Some((_, at, counted)) if pipes.counted - counted < PIPE_MOST => {
                Some(at.max(pipes.unblocked) + DRAIN)
            }
            Some((_, at, _)) => Some(at + DRAIN),
            None => None,
        };
        let total = clock.total(limits.total);
        let silent = clock.silent(limits.idle, pipes.heard);
        tokio::select! {
            // In this order so that a flood of output cannot hide anything else, and so that output
            // already there counts before silence does.
            biased;
            () = cancel.cancelled() => return Err(Stop::Cancelled),
            status = child.wait(), if running => {
                let status = status.map_err(Stop::Io)?;
                exit = Some((status, Instant::now(), pipes.counted));
            }
            () = clock.changed() => {}
            limit = expired(total), if running => return Err(Stop::Timeout(limit)),
            _ = expired(drained.map(|at| (DRAIN, at))), if !pipes.blocked() => {
                if let Some((status, ..)) = exit {
                    return Ok(status);
                }
            }
            _ = watch.tick() => drop(tree.look(false)),
            done = pipes.step() => done.map_err(Stop::Io)?,
            limit = expired(silent), if running && !pipes.blocked() => {
                return Err(Stop::Idle(limit));
            }
        }
    }
}

/// Ends the tree and reads on meanwhile: a program that blocks on a full pipe cannot end properly.
async fn end(child: &mut Child, pipes: &mut Pipes<'_>, tree: &mut Tree, grace: Duration) {
    pipes.hush();
    let (mut reaped, mut last) = (false, None);
    let ending = tree.end(grace);
    tokio::pin!(ending);
    while last.is_none() || !reaped || !pipes.ended() {
        tokio::select! {
            biased;
            // The last output may still be in the pipe after all processes have ended.
            () = &mut ending, if last.is_none() => last = Some((TIDY, Instant::now() + TIDY)),
            _ = child.wait(), if !reaped => reaped = true,
            _ = expired(last) => return,
            done = pipes.step() => if done.is_err() { pipes.close() },
        }
    }
}

async fn expired(limit: Option<(Duration, Instant)>) -> Duration {
    match limit {
        Some((limit, at)) => {
            sleep_until(at).await;
            limit
        }
        None => pending().await,
    }
}

/// Tertulia's ends of the program's three pipes.
struct Pipes<'a> {
    feed: Feed<'a>,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    sink: Option<mpsc::Sender<Vec<u8>>>,
    /// A chunk that was read but did not fit into the full channel; reading pauses until it does.
    waiting: Option<Vec<u8>>,
    room: usize,
    counted: u64,
    handed: u64,
    tail: Tail,
    line: StderrLine,
    heard: Instant,
    unblocked: Instant,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl<'a> Pipes<'a> {
    fn new(
        child: &mut Child,
        input: Input<'a>,
        limits: &Limits,
        sink: mpsc::Sender<Vec<u8>>,
    ) -> Self {
        let feed = Feed::new(input);
        Self {
            stdin: child.stdin.take().filter(|_| !feed.ended()),
            feed,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            sink: Some(sink),
            waiting: None,
            room: limits.output,
            counted: 0,
            handed: 0,
            tail: Tail::default(),
            line: limits.stderr.clone(),
            heard: Instant::now(),
            unblocked: Instant::now(),
            out: vec![0; CHUNK],
            err: vec![0; CHUNK],
        }
    }

    fn ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none() && self.waiting.is_none()
    }

    fn blocked(&self) -> bool {
        self.waiting.is_some()
    }

    /// Stops feeding input and handing on output.
    fn hush(&mut self) {
        (self.stdin, self.sink, self.waiting) = (None, None, None);
    }

    fn close(&mut self) {
        (self.stdin, self.stdout, self.stderr) = (None, None, None);
    }

    /// Does one write or read, whichever is ready first. Cancel-safe: dropping the future loses
    /// nothing.
    async fn step(&mut self) -> io::Result<()> {
        tokio::select! {
            written = write(&mut self.stdin, &mut self.feed) => match written {
                Ok(n) => {
                    self.feed.advance(n);
                    if n == 0 || self.feed.ended() {
                        self.stdin = None;
                    }
                }
                // A program need not read all of its input.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.stdin = None,
                Err(e) => return Err(e),
            },
            count = read(&mut self.stdout, &mut self.out), if self.waiting.is_none() => match count? {
                0 => self.stdout = None,
                n => self.accept(n),
            },
            count = read(&mut self.stderr, &mut self.err) => match count? {
                0 => self.stderr = None,
                n => {
                    self.heard = Instant::now();
                    self.tail.push(&self.err[..n]);
                    self.line.push(&self.err[..n]);
                }
            },
            () = room(&self.sink), if self.waiting.is_some() => {
                // The receiver caused the silence, not the program.
                self.unblocked = Instant::now();
                self.heard = self.unblocked;
                if let Some(chunk) = self.waiting.take() {
                    self.offer(chunk);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self, n: usize) {
        self.heard = Instant::now();
        self.counted += n as u64;
        let kept = n.min(self.room);
        self.room -= kept;
        if kept > 0 {
            self.offer(self.out[..kept].to_vec());
        }
    }

    fn offer(&mut self, chunk: Vec<u8>) {
        let Some(sink) = &self.sink else { return };
        let size = chunk.len() as u64;
        match sink.try_send(chunk) {
            Ok(()) => self.handed += size,
            Err(TrySendError::Full(chunk)) => self.waiting = Some(chunk),
            Err(TrySendError::Closed(_)) => self.sink = None,
        }
    }
}

async fn write(pipe: &mut Option<ChildStdin>, feed: &mut Feed<'_>) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.write(feed.next().await).await,
        None => pending().await,
    }
}

async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => pending().await,
    }
}

/// Waits until the channel can take a chunk, or is closed.
async fn room(sink: &Option<mpsc::Sender<Vec<u8>>>) {
    match sink {
        Some(sink) => drop(sink.reserve().await),
        None => pending().await,
    }
}

/// Last [`STDERR_TAIL`] bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(STDERR_TAIL);
        self.cut |= excess > 0;
        self.bytes.drain(..excess);
    }

    fn text(mut self) -> String {
        // The cut may split a character: its remaining bytes are dropped.
        let torn = |&&b: &&u8| b & 0xc0 == 0x80;
        let skip = if self.cut {
            self.bytes.iter().take(3).take_while(torn).count()
        } else {
            0
        };
        String::from_utf8_lossy(&self.bytes.make_contiguous()[skip..]).into_owned()
    }
}
