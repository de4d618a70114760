//! Bytes to lines. No more is kept of a line than it may be long: the rest of one that is longer is let go of
//! as it comes.

use std::collections::VecDeque;

/// A line, or that it was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framed {
    /// A whole line, without its end.
    Line(Vec<u8>),
    /// A line grew longer than it may. It is told once, when it does.
    TooLong,
}

/// Cuts a stream of bytes into lines.
#[derive(Debug)]
pub struct Framer {
    limit: usize,
    begun: Vec<u8>,
    /// Whether the rest of a line that is too long is being let go of.
    skipping: bool,
    whole: VecDeque<Framed>,
}

impl Framer {
    /// For lines of at most so many bytes.
    pub fn new(limit: usize) -> Framer {
        Framer {
            limit,
            begun: Vec::new(),
            skipping: false,
            whole: VecDeque::new(),
        }
    }

    /// Takes in more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.grow(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_line();
        }
        self.grow(bytes);
    }

    /// The next line, if there is a whole one.
    pub fn next_line(&mut self) -> Option<Framed> {
        self.whole.pop_front()
    }

    /// How much of a line that has no end yet is kept.
    pub fn begun(&self) -> usize {
        self.begun.len()
    }

    /// Lets go of the line that has no end yet, as if it were too long.
    pub fn let_go(&mut self) {
        self.begun = Vec::new();
        self.skipping = true;
        self.whole.push_back(Framed::TooLong);
    }

    /// Nothing follows: what was begun is a line, too.
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
        // An empty line asks for nothing.
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
        /// However the bytes arrive, the lines are the same.
        #[test]
        fn pieces_make_no_difference(parts in prop::collection::vec("[ab\n]{0,5}", 0..10)) {
            let whole = parts.concat();
            let pieces: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
            prop_assert_eq!(cut(4, &pieces), cut(4, &[whole.as_bytes()]));
        }
    }
}
