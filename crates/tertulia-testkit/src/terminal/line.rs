//! The pseudo-terminal, with the program at one end and the test at the other.
//!
//! Opened without a crate, because crates keep copies of the test's end: the terminal does not hang
//! up as long as one of them is open.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::Size;

/// The test's end (the pty master).
pub struct Line {
    end: File,
}

/// Result of reading.
pub enum Heard {
    /// Number of bytes that the program wrote.
    Bytes(usize),
    /// The program's end is closed, or reading was stopped.
    Over,
}

impl Line {
    /// Opens a pseudo-terminal and starts the program on it as its controlling terminal. The
    /// environment is only what the command sets.
    pub fn open(command: &Command, size: Size) -> (Line, Child) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        // Non-blocking, so that a write to a full terminal can time out.
        fcntl_setfl(&ours, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
        let line = Line { end: ours.into() };
        line.resize(size);
        let child = spawn(command, &theirs);
        (line, child)
    }

    /// Returns another handle of the same end.
    pub fn again(&self) -> Line {
        let end = self.end.try_clone().unwrap();
        Line { end }
    }

    /// Changes the size, which notifies the program.
    pub fn resize(&self, size: Size) {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.end, size).unwrap();
    }

    /// Reads output of the program. Blocks until there is some, or until `stop` is readable or
    /// closed.
    pub fn hear(&mut self, buffer: &mut [u8], stop: &OwnedFd) -> Heard {
        loop {
            let mut ends = [
                PollFd::new(&self.end, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            match poll(&mut ends, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other.unwrap(),
            };
            if !ends[1].revents().is_empty() {
                return Heard::Over;
            }
            match self.end.read(buffer) {
                Ok(count @ 1..) => return Heard::Bytes(count),
                Err(error) if may_be_tried_again(&error) => {}
                // Linux returns EIO when the program's end is closed.
                Ok(_) | Err(_) => return Heard::Over,
            }
        }
    }

    /// Writes input. Panics if the program does not read it within `patience`; a program that has
    /// exited is not an error.
    pub fn say(&mut self, mut bytes: &[u8], patience: Duration) {
        let begun = Instant::now();
        while !bytes.is_empty() {
            match self.end.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if may_be_tried_again(&error) => {
                    let left = bytes.len();
                    assert!(
                        begun.elapsed() < patience,
                        "{left} bytes of what is typed are not read within {patience:?}"
                    );
                    wait_for_room(&self.end);
                }
                Err(_) => return,
            }
        }
    }
}

fn may_be_tried_again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Waits briefly, or until there is room: the terminal may report room late.
fn wait_for_room(end: &File) {
    let mut ends = [PollFd::new(end, PollFlags::OUT)];
    let a_while = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let _ = poll(&mut ends, Some(&a_while));
}

/// Starts the program with `setsid`, which gives it a session of its own with this controlling
/// terminal; doing so here would need code between fork and exec.
fn spawn(command: &Command, terminal: &OwnedFd) -> Child {
    let stream = || Stdio::from(terminal.as_fd().try_clone_to_owned().unwrap());
    let mut inner = Command::new("setsid");
    inner
        .args(["--ctty", "--"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .stdin(stream())
        .stdout(stream())
        .stderr(stream());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            inner.env(name, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        inner.current_dir(folder);
    }
    inner.spawn().unwrap()
}
