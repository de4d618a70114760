//! Splits bytes that arrive in chunks into lines.

/// Maximum length of a line in bytes; no program's event is longer.
pub(super) const LONGEST: usize = 10_000_000;

/// A line is longer than [`LONGEST`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Splits bytes into lines; a line may arrive in any number of chunks.
#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Returns the lines that are complete now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut lines = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            if self.rest.len() + piece.len() > LONGEST {
                return Err(TooLong);
            }
            self.rest.extend_from_slice(piece);
            if pieces.peek().is_some() {
                lines.push(self.take());
            }
        }
        Ok(lines)
    }

    /// Returns the last line, if it had no end.
    pub(super) fn finish(&mut self) -> String {
        self.take()
    }

    /// Decodes only complete lines, so that no character is split.
    fn take(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_they_are_cut_lines_are_the_same() {
        let text = "añ\n\n€😀z\r\nlast";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                found.extend(lines.push(piece).unwrap());
            }
            found.push(lines.finish());
            assert_eq!(found, ["añ", "", "€😀z\r", "last"]);
            assert_eq!(lines.finish(), "");
        }
    }

    #[test]
    fn a_line_has_an_end() {
        let mut lines = Lines::default();
        let half = vec![b'x'; LONGEST / 2];
        assert_eq!(lines.push(&half), Ok(vec![]));
        assert_eq!(lines.push(&half), Ok(vec![]));
        assert_eq!(lines.push(b"x"), Err(TooLong));
        let mut lines = Lines::default();
        for _ in 0..3 {
            assert_eq!(lines.push(&half), Ok(vec![]));
            assert_eq!(lines.push(b"\n").unwrap()[0].len(), half.len());
        }
    }
}
