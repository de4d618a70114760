//! The last line that a program wrote to standard error, to show why it is silent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum length of a line in characters; the rest is cut.
const LONGEST: usize = 200;

/// Last line of a program's standard error, shared between its run and its observers.
#[derive(Clone, Debug, Default)]
pub struct StderrLine {
    line: Arc<Mutex<String>>,
    /// Lines that contain one of these are ignored.
    noise: &'static [&'static str],
}

impl StderrLine {
    /// Creates a `StderrLine` that ignores lines that contain one of `noise`.
    pub fn without(noise: &'static [&'static str]) -> StderrLine {
        StderrLine {
            line: Arc::default(),
            noise,
        }
    }

    /// Records output of the program.
    pub(super) fn push(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let says_something = |line: &&str| {
            !line.trim().is_empty() && !self.noise.iter().any(|noise| line.contains(noise))
        };
        if let Some(line) = text.lines().rfind(says_something) {
            *self.lock() = line.trim().chars().take(LONGEST).collect();
        }
    }

    /// Returns the last line, if there is one since the last call.
    pub fn take(&self) -> Option<String> {
        let line = std::mem::take(&mut *self.lock());
        (!line.is_empty()).then_some(line)
    }

    fn lock(&self) -> MutexGuard<'_, String> {
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
}
