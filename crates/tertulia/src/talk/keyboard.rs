//! Reads the keyboard of a session line by line.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::Notify;

/// Lines as they are typed. Reading starts with the first request for a line.
#[derive(Debug, Default)]
pub struct Keyboard {
    typed: Option<Arc<Typed>>,
    /// Lines typed ahead of a question, kept as later messages.
    ahead: VecDeque<Vec<u8>>,
    /// Whether messages are read later, so that a line that answers no question can be kept.
    goes_on: bool,
}

impl Keyboard {
    /// Returns a keyboard whose lines are the messages of a session.
    pub fn of_a_session() -> Keyboard {
        Keyboard {
            goes_on: true,
            ..Keyboard::default()
        }
    }

    /// Returns the next line with its line ending, or `None` at the end of input.
    pub async fn line(&mut self) -> Option<Vec<u8>> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.typed().next().await,
        }
    }

    /// Returns the next line, skipping those that were put aside: they were typed before the
    /// question.
    pub async fn fresh_line(&mut self) -> Option<Vec<u8>> {
        self.typed().next().await
    }

    /// Puts aside everything typed so far, including input that is still unread.
    pub fn put_aside(&mut self) {
        let typed = self.typed().clone();
        let mut lines = typed.locked();
        lines.read_what_is_there();
        self.ahead.append(&mut lines.whole);
    }

    /// Returns true if more was typed or pasted than the lines that were taken.
    pub fn has_more(&mut self) -> bool {
        let typed = self.typed().clone();
        let mut lines = typed.locked();
        lines.read_what_is_there();
        !lines.whole.is_empty() || !lines.begun.is_empty()
    }

    /// Keeps a line that answered no question as a later message. Returns whether it is kept.
    pub fn keep_for_later(&mut self, line: Vec<u8>) -> bool {
        let keeps = self.goes_on && !line.trim_ascii().is_empty();
        if keeps {
            self.ahead.push_back(line);
        }
        keeps
    }

    fn typed(&mut self) -> &Arc<Typed> {
        self.typed.get_or_insert_with(listen)
    }
}

/// Input that was typed and not yet taken.
#[derive(Debug, Default)]
struct Typed {
    lines: Mutex<Lines>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Lines {
    whole: VecDeque<Vec<u8>>,
    /// Beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    ended: bool,
}

impl Typed {
    fn locked(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Option<Vec<u8>> {
        loop {
            {
                let mut lines = self.locked();
                match lines.whole.pop_front() {
                    Some(line) => return Some(line),
                    None if lines.ended => return None,
                    None => {}
                }
            }
            // `notify_one` stores a permit if a line arrived in between.
            self.more.notified().await;
        }
    }
}

impl Lines {
    /// Reads what is available without waiting.
    fn read_what_is_there(&mut self) {
        let mut buffer = [0; 4096];
        while !self.ended && is_readable(Some(&Timespec::default())) {
            match rustix::io::read(io::stdin(), &mut buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                Ok(count @ 1..) => self.take(&buffer[..count]),
                Ok(_) | Err(_) => self.end(),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.whole.push_back(std::mem::take(&mut self.begun));
            }
        }
    }

    fn end(&mut self) {
        self.ended = true;
        if !self.begun.is_empty() {
            self.whole.push_back(std::mem::take(&mut self.begun));
        }
    }
}

/// Reads on a thread of its own, which polls without holding the lock: a blocking read from a
/// terminal cannot be cancelled, so it must delay neither the exit of the program nor `put_aside`.
fn listen() -> Arc<Typed> {
    let typed = Arc::new(Typed::default());
    let ours = typed.clone();
    std::thread::spawn(move || {
        loop {
            is_readable(None);
            let mut lines = ours.locked();
            lines.read_what_is_there();
            let ended = lines.ended;
            drop(lines);
            ours.more.notify_one();
            if ended {
                break;
            }
        }
    });
    typed
}

/// Returns true if stdin has input or has ended. Without a limit, waits for that.
fn is_readable(limit: Option<&Timespec>) -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    match poll(&mut watched, limit) {
        Ok(count) => count > 0,
        // The read reports the error.
        Err(error) => error != Errno::INTR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_or_wait_for_their_end() {
        let mut lines = Lines::default();
        lines.take(b"one\ntw");
        lines.take(b"o\n\nthree");
        assert_eq!(lines.whole, [&b"one\n"[..], b"two\n", b"\n"]);
        lines.end();
        assert_eq!(lines.whole.pop_back().as_deref(), Some(&b"three"[..]));
        assert!(lines.ended && lines.begun.is_empty());
    }
}
