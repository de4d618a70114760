//! Runs a program on a real pseudo-terminal: input, and output through a terminal emulator.
//!
//! No fixed sleeps: every wait ends as soon as its condition is true.

mod keys;
mod line;
pub mod picture;
mod screen;

pub use keys::Manner;
pub use screen::Screen;

use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::waiting::DEADLINE;
use line::{Heard, Line};
use screen::Emulator;

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width.
    pub columns: u16,
    /// Height.
    pub rows: u16,
}

impl Size {
    /// Creates a size, in the usual order: 80×24.
    pub const fn new(columns: u16, rows: u16) -> Size {
        Size { columns, rows }
    }

    fn nonzero(self) -> (NonZeroU16, NonZeroU16) {
        let not_nothing = |n| NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN);
        (not_nothing(self.rows), not_nothing(self.columns))
    }
}

/// State shared by the reader thread and the test.
struct Seen {
    emulator: Emulator,
    raw: Vec<u8>,
    over: bool,
}

type Shared = Arc<(Mutex<Seen>, Condvar)>;

/// A program on its terminal. The program is killed on drop.
pub struct Terminal {
    child: Child,
    status: Option<ExitStatus>,
    line: Option<Line>,
    stop: Option<OwnedFd>,
    listener: Option<JoinHandle<()>>,
    seen: Shared,
    manner: Manner,
}

impl Terminal {
    /// Starts a command on a terminal. The environment is what the command sets, plus `TERM` if
    /// that is not set.
    pub fn open(command: &mut Command, size: Size) -> Terminal {
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        let (line, child) = Line::open(command, size);
        let seen: Shared = Arc::new((
            Mutex::new(Seen {
                emulator: Emulator::new(size),
                raw: Vec::new(),
                over: false,
            }),
            Condvar::new(),
        ));
        let (theirs, ours) = std::io::pipe().unwrap();
        let listener = std::thread::spawn({
            let (line, seen) = (line.again(), seen.clone());
            move || listen(line, &seen, &OwnedFd::from(theirs))
        });
        Terminal {
            child,
            status: None,
            line: Some(line),
            stop: Some(ours.into()),
            listener: Some(listener),
            seen,
            manner: Manner::Xterm,
        }
    }

    /// Uses the kitty keyboard protocol as soon as the program enables it.
    pub fn with_clear_keys(mut self) -> Terminal {
        self.manner = Manner::Kitty;
        self
    }

    /// Presses keys by name: `^r`, `Esc`, `Alt+Enter PgUp`.
    pub fn keys(&mut self, names: &str) {
        let manner = match self.seen().emulator.wants_clear_keys() {
            true => self.manner,
            false => Manner::Xterm,
        };
        let keys = names.split(' ').map(|name| keys::bytes(name, manner));
        self.send(keys.collect::<Vec<_>>().concat());
    }

    /// Types a text, with a carriage return for each line end, as the Enter key sends it.
    pub fn type_text(&mut self, text: &str) {
        self.send(text.replace('\n', "\r"));
    }

    /// Pastes a text with bracketed paste. Panics if the program has not enabled it.
    pub fn paste(&mut self, text: &str) {
        let marks = self.look(|screen| screen.marks_pastes());
        assert!(marks, "no program asked to be told about pastes");
        self.send(format!("\x1b[200~{}\x1b[201~", text.replace('\n', "\r")));
    }

    /// Turns the mouse wheel up or down at a position.
    pub fn wheel(&mut self, up: bool, (row, column): (u16, u16)) {
        let button = if up { 64 } else { 65 };
        self.send(format!("\x1b[<{button};{};{}M", column + 1, row + 1));
    }

    /// Drags with the left mouse button.
    pub fn drag(&mut self, from: (u16, u16), to: (u16, u16)) {
        let event = |button, (row, column): (u16, u16), end| {
            format!("\x1b[<{button};{};{}{end}", column + 1, row + 1)
        };
        self.send(event(0, from, 'M') + &event(32, to, 'M') + &event(0, to, 'm'));
    }

    /// Sends raw bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let line = self.line.as_mut().expect("the terminal was closed");
        line.say(bytes.as_ref(), DEADLINE);
    }

    /// Changes the window size.
    pub fn resize(&mut self, size: Size) {
        // The emulator first, because the program redraws for the new size.
        self.seen().emulator.resize(size);
        self.line.as_ref().unwrap().resize(size);
    }

    /// Waits until a predicate is true. The predicate never sees a partial frame of a program that
    /// uses synchronized updates.
    #[track_caller]
    pub fn wait_for(&mut self, what: &str, mut is_so: impl FnMut(Screen<'_>) -> bool) {
        let begun = Instant::now();
        let shared = self.seen.clone();
        let mut seen = shared.0.lock().unwrap();
        loop {
            if !seen.emulator.is_updating() && is_so(seen.emulator.screen()) {
                return;
            }
            let left = DEADLINE.saturating_sub(begun.elapsed());
            if seen.over || left.is_zero() {
                let why = if seen.over {
                    "the program has ended"
                } else {
                    "time is up"
                };
                let screen = seen.emulator.screen().framed();
                drop(seen);
                panic!("not seen: {what} ({why})\n{screen}");
            }
            seen = shared.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Waits until a text is visible in one row.
    #[track_caller]
    pub fn sees(&mut self, words: &str) {
        self.wait_for(&format!("{words:?}"), |screen| screen.has(words));
    }

    /// Waits until a text is no longer visible.
    #[track_caller]
    pub fn sees_no_more(&mut self, words: &str) {
        self.wait_for(&format!("no more {words:?}"), |screen| !screen.has(words));
    }

    /// Calls a function with the current screen.
    pub fn look<T>(&self, look: impl FnOnce(Screen<'_>) -> T) -> T {
        look(self.seen().emulator.screen())
    }

    /// Returns all rows as one text.
    pub fn contents(&self) -> String {
        self.look(|screen| screen.text())
    }

    /// Returns one row, from 0.
    pub fn row(&self, row: u16) -> String {
        self.look(|screen| screen.row(row))
    }

    /// Returns row and column of the cursor, if it is visible.
    pub fn cursor(&self) -> Option<(u16, u16)> {
        self.look(|screen| screen.cursor())
    }

    /// Returns true if the alternate screen is active.
    pub fn is_alternate(&self) -> bool {
        self.look(|screen| screen.is_alternate())
    }

    /// Returns every byte that the program wrote.
    pub fn raw(&self) -> Vec<u8> {
        self.seen().raw.clone()
    }

    /// Returns everything that the program wrote, as text.
    pub fn raw_text(&self) -> String {
        String::from_utf8_lossy(&self.seen().raw).into_owned()
    }

    /// Returns all clipboard writes, in base64.
    pub fn clipboard(&self) -> Vec<Vec<u8>> {
        self.seen().emulator.clipboard().to_vec()
    }

    /// Returns the number of bells.
    pub fn bells(&self) -> usize {
        self.seen().emulator.bells()
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the program only.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Kills the program with SIGKILL and waits for it.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        self.status = Some(self.child.wait().unwrap());
    }

    /// Closes the terminal while the program is running.
    pub fn close(&mut self) {
        drop(self.stop.take());
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
        drop(self.line.take());
    }

    /// Waits for the program and its output to end. Returns the exit code, or 128 plus the number
    /// of the signal.
    #[track_caller]
    pub fn exit_code(&mut self) -> i32 {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.status {
                break status;
            }
            self.status = self.child.try_wait().unwrap();
            if begun.elapsed() > DEADLINE {
                let screen = self.look(|screen| screen.framed());
                panic!("it does not end within {DEADLINE:?}\n{screen}");
            }
            self.hears_for(Duration::from_millis(5));
        };
        // The last output may still arrive, unless another process keeps the terminal open.
        while self.listener.is_some() && !self.seen().over && begun.elapsed() < DEADLINE {
            self.hears_for(Duration::from_millis(5));
        }
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
    }

    /// Waits until more output arrives, at most this long.
    fn hears_for(&self, at_most: Duration) {
        let seen = self.seen.0.lock().unwrap();
        drop(self.seen.1.wait_timeout(seen, at_most).unwrap());
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.stop.take());
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

/// Feeds the emulator and sends its replies, until the terminal is closed.
fn listen(mut line: Line, shared: &Shared, stop: &OwnedFd) {
    let mut buffer = [0; 16 * 1024];
    loop {
        let heard = line.hear(&mut buffer, stop);
        let mut seen = match shared.0.lock() {
            Ok(seen) => seen,
            // A predicate panicked: the test has already failed.
            Err(_) => return,
        };
        let Heard::Bytes(count) = heard else {
            seen.over = true;
            shared.1.notify_all();
            return;
        };
        seen.raw.extend_from_slice(&buffer[..count]);
        let reply = seen.emulator.process(&buffer[..count]);
        drop(seen);
        shared.1.notify_all();
        line.say(&reply, DEADLINE);
    }
}
