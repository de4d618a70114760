//! Splits bytes into lines of limited length. The rest of a line that is too long is discarded as
//! it arrives.

use std::collections::VecDeque;

/// A line, or the report of one that is too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framed {
    /// A complete line, without its line feed.
    Line(Vec<u8>),
    /// A line exceeded the limit. Reported once, as soon as it does.
    TooLong,
}

/// Incremental line splitter.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    begun: Vec<u8>,
    /// True while the rest of a line that is too long is discarded.
    skipping: bool,
    whole: VecDeque<Framed>,
}

impl Framer {
    /// Creates a splitter for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Framer {
        Framer {
            limit,
            begun: Vec::new(),
            skipping: false,
            whole: VecDeque::new(),
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.grow(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_line();
        }
        self.grow(bytes);
    }

    /// Returns the next complete line, if there is one.
    pub fn next_line(&mut self) -> Option<Framed> {
        self.whole.pop_front()
    }

    /// Returns the size of the incomplete line.
    pub fn begun(&self) -> usize {
        self.begun.len()
    }

    /// Discards the incomplete line, as if it were too long.
    pub fn let_go(&mut self) {
        self.begun = Vec::new();
        self.skipping = true;
        self.whole.push_back(Framed::TooLong);
    }

    /// Ends the input: the incomplete line counts as a line.
    pub fn end(&mut self) {
        self.end_line();
    }

    fn grow(&mut self, bytes: &[u8]) {
        if self.skipping {
            return;
        }
        if self.begun.len() + bytes.len() > self.limit {
            return self.let_go();
        }
        self.begun.extend_from_slice(bytes);
    }

    fn end_line(&mut self) {
        self.skipping = false;
        let line = std::mem::take(&mut self.begun);
        // Empty lines are ignored.
        if !line.trim_ascii().is_empty() {
            self.whole.push_back(Framed::Line(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(limit: usize, parts: &[&[u8]]) -> Vec<Framed> {
        let mut framer = Framer::new(limit);
        parts.iter().for_each(|part| framer.push(part));
        framer.end();
        std::iter::from_fn(|| framer.next_line()).collect()
    }

    fn line(text: &str) -> Framed {
        Framed::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn half_lines_wait_for_their_end() {
        assert_eq!(
            cut(9, &[b"a", b"b\nc", b"", b"d\n\r\n\ne"]),
            [line("ab"), line("cd"), line("e")]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_at_once() {
        let mut framer = Framer::new(3);
        framer.push(b"abc\nabcd");
        assert_eq!(framer.next_line(), Some(line("abc")));
        assert_eq!(framer.next_line(), Some(Framed::TooLong));
        framer.push(b"efgh");
        framer.push(b"ijkl\nxy\n");
        assert_eq!(framer.next_line(), Some(line("xy")));
        assert_eq!(framer.next_line(), None);
        assert!(framer.begun.capacity() <= 8);
    }

    proptest! {
        /// The lines do not depend on how the bytes arrive.
        #[test]
        fn pieces_make_no_difference(parts in prop::collection::vec("[ab\n]{0,5}", 0..10)) {
            let whole = parts.concat();
            let pieces: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
            prop_assert_eq!(cut(4, &pieces), cut(4, &[whole.as_bytes()]));
        }
    }
}
