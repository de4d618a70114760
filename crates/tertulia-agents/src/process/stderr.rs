//! The last line that a program wrote to standard error, to show why it is silent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum length of a line in characters; the rest is cut.
const LONGEST: usize = 200;

/// Last line of a program's standard error, shared between its run and its observers.
#[derive(Clone, Debug, Default)]
pub struct StderrLine {
    line: Arc<Mutex<Tail>>,
    /// Lines that contain one of these are ignored.
    noise: &'static [&'static str],
}

/// End of the output so far.
#[derive(Debug, Default)]
struct Tail {
    /// The last complete line that says something, until it is taken.
    line: String,
    /// Beginning of a line whose end has not arrived.
    begun: Vec<u8>,
    /// Whether that beginning was taken already.
    taken: bool,
}

impl StderrLine {
    /// Creates a `StderrLine` that ignores lines that contain one of `noise`.
    pub fn without(noise: &'static [&'static str]) -> StderrLine {
        StderrLine {
            line: Arc::default(),
            noise,
        }
    }

    /// Records output of the program, which may end anywhere in a line.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut tail = self.lock();
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            let room = (4 * LONGEST).saturating_sub(tail.begun.len());
            tail.begun.extend(bytes.iter().take(room));
            tail.taken = false;
            return;
        };
        let mut whole = std::mem::take(&mut tail.begun);
        whole.extend_from_slice(&bytes[..end]);
        let text = String::from_utf8_lossy(&whole);
        if let Some(line) = text.lines().rev().find_map(|line| self.worth(line)) {
            tail.line = line;
        }
        tail.begun = bytes[end + 1..].iter().take(4 * LONGEST).copied().collect();
        tail.taken = false;
    }

    /// Returns the last line, if there is one since the last call. A line that is not complete
    /// counts: a program may wait after it.
    pub fn take(&self) -> Option<String> {
        let mut tail = self.lock();
        let line = std::mem::take(&mut tail.line);
        let line = (!line.is_empty()).then_some(line);
        if std::mem::replace(&mut tail.taken, true) {
            return line;
        }
        let begun = String::from_utf8_lossy(&tail.begun);
        self.worth(&begun).or(line)
    }

    /// Returns a line as it is shown, if it says something.
    fn worth(&self, line: &str) -> Option<String> {
        let is_noise = self.noise.iter().any(|noise| line.contains(noise));
        let line: String = line.trim().chars().take(LONGEST).collect();
        (!line.is_empty() && !is_noise).then_some(line)
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_says_something_is_told_once() {
        let line = StderrLine::without(&["color support"]);
        assert_eq!(line.take(), None);
        line.push(b"EROFS: read-only file system\nWarning: 256-color support\n\n");
        assert_eq!(line.take().as_deref(), Some("EROFS: read-only file system"));
        assert_eq!(line.take(), None);
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_one_line() {
        let line = StderrLine::without(&["color support"]);
        line.push(b"EROFS: read-on");
        line.push("ly — ".as_bytes().split_at(4).0);
        line.push("ly — ".as_bytes().split_at(4).1);
        line.push(b"file system\nWarning: 256-col");
        line.push(b"or support\n");
        assert_eq!(
            line.take().as_deref(),
            Some("EROFS: read-only — file system")
        );
        line.push(b"Password: ");
        assert_eq!(line.take().as_deref(), Some("Password:"));
        assert_eq!(line.take(), None);
    }
}
