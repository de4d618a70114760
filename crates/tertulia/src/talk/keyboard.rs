//! The keyboard of a talk, read line by line.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::Notify;

/// Lines as they are typed. Nothing is read before the first line is asked for.
#[derive(Debug, Default)]
pub struct Keyboard {
    typed: Option<Arc<Typed>>,
    /// Typed before something else was asked.
    ahead: VecDeque<Vec<u8>>,
    /// Whether words are asked for later, so that a line can wait for that.
    goes_on: bool,
}

impl Keyboard {
    /// A keyboard from which one line after the other is said.
    pub fn of_a_session() -> Keyboard {
        Keyboard {
            goes_on: true,
            ..Keyboard::default()
        }
    }

    /// The next line with its end, or nothing when there are no more.
    pub async fn line(&mut self) -> Option<Vec<u8>> {
        match self.ahead.pop_front() {
            Some(line) => Some(line),
            None => self.typed().next().await,
        }
    }

    /// A line that is typed from now on: what was typed before was meant for something else, and
    /// waits.
    pub async fn fresh_line(&mut self) -> Option<Vec<u8>> {
        self.typed().next().await
    }

    /// Puts aside what was typed so far, also what nobody has read yet.
    pub fn put_aside(&mut self) {
        let typed = self.typed().clone();
        let mut lines = typed.locked();
        lines.read_what_is_there();
        self.ahead.append(&mut lines.whole);
    }

    /// Keeps a line that was no answer to a question until words are asked for. Returns whether it is kept.
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

/// What was typed and not yet taken.
#[derive(Debug, Default)]
struct Typed {
    lines: Mutex<Lines>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Lines {
    whole: VecDeque<Vec<u8>>,
    /// The beginning of a line whose end has not come.
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
            // A permit waits here if something came in between.
            self.more.notified().await;
        }
    }
}

impl Lines {
    /// Takes what can be had without waiting.
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

/// Reads on a thread of its own, which waits where nothing is held: nothing can take a read from a
/// terminal back, so it must not hold up the end of the program, nor whoever puts lines aside.
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

/// Whether there is something to read, its end included; without a limit it waits until there is.
fn is_readable(limit: Option<&Timespec>) -> bool {
    let stdin = io::stdin();
    let mut watched = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    match poll(&mut watched, limit) {
        Ok(count) => count > 0,
        // Reading tells what is wrong.
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
