//! The newest lines of output that is still being written, for people who wait for its end.

use std::collections::VecDeque;

/// Maximum number of lines.
const LINES: usize = 10;
/// Maximum number of bytes of a line.
const LINE_BYTES: usize = 200;

/// The last lines of a text that grows.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    lines: VecDeque<String>,
}

impl Tail {
    /// Returns the last lines of a whole text.
    pub(crate) fn of(text: &str) -> String {
        let mut tail = Tail::default();
        tail.push(text);
        tail.text()
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            if self.lines.back().is_none_or(|last| last.ends_with('\n')) {
                self.lines.push_back(String::new());
            }
            if self.lines.len() > LINES {
                self.lines.pop_front();
            }
            if let Some(last) = self.lines.back_mut() {
                write(last, piece);
            }
        }
    }

    /// Returns the lines.
    pub(crate) fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.trim_end()).collect();
        lines.join("\n")
    }
}

/// Continues a line. After a carriage return it is written anew, as progress bars do.
fn write(line: &mut String, piece: &str) {
    let words = piece.trim_end_matches(['\r', '\n']);
    match words.rsplit_once('\r') {
        Some((_, last)) => last.clone_into(line),
        None => {
            if line.ends_with('\r') {
                line.clear();
            }
            line.push_str(words);
        }
    }
    line.truncate(line.floor_char_boundary(LINE_BYTES));
    line.push_str(&piece[words.len()..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept() {
        assert_eq!(Tail::of("a\nb"), "a\nb");
        let many: String = (1..=30).map(|line| format!("{line}\n")).collect();
        assert_eq!(Tail::of(&many), "21\n22\n23\n24\n25\n26\n27\n28\n29\n30");
        let mut tail = Tail::default();
        for piece in ["one ", "line\ntw", "o\n", "x"] {
            tail.push(piece);
        }
        assert_eq!(tail.text(), "one line\ntwo\nx");
        assert_eq!(Tail::of(&"漢".repeat(10_000)).len(), 198);
    }

    #[test]
    fn a_progress_bar_is_one_line() {
        let mut tail = Tail::default();
        for piece in ["10 %\r", "20 %\r30 %", "\r40 %\r\ndone\n"] {
            tail.push(piece);
        }
        assert_eq!(tail.text(), "40 %\ndone");
    }
}
