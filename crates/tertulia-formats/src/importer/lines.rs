//! Reads files of JSON lines with bounded memory. Lines that are damaged or too long are counted.

use std::io::{self, BufRead, Read};

use serde_json::Value;

/// Maximum length of a line. Longer ones are skipped.
const LINE_LIMIT: u64 = 64_000_000;

/// Reads JSON objects, one per line.
pub struct JsonLines<'a> {
    input: Box<dyn BufRead + 'a>,
    buffer: Vec<u8>,
    number: usize,
}

/// A line of the file.
#[derive(Debug, PartialEq)]
pub enum JsonLine {
    /// An object, with the number of its line.
    Object(usize, Value),
    /// The number of a line that is not a JSON object, or too long.
    Damaged(usize),
}

impl std::fmt::Debug for JsonLines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JsonLines at line {}", self.number)
    }
}

impl<'a> JsonLines<'a> {
    /// Reads lines from `input`.
    pub fn new(input: Box<dyn BufRead + 'a>) -> JsonLines<'a> {
        JsonLines {
            input,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// Reads the next line that is not empty. Returns `None` at the end.
    pub fn next_line(&mut self) -> io::Result<Option<JsonLine>> {
        loop {
            self.buffer.clear();
            let mut limited = (&mut self.input).take(LINE_LIMIT);
            if limited.read_until(b'\n', &mut self.buffer)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let is_cut = limited.limit() == 0 && !self.buffer.ends_with(b"\n");
            if is_cut {
                self.input.skip_until(b'\n')?;
                return Ok(Some(JsonLine::Damaged(self.number)));
            }
            let line = self.buffer.trim_ascii();
            let line = match self.number {
                1 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
                _ => line,
            };
            if line.is_empty() {
                continue;
            }
            return Ok(Some(match serde_json::from_slice::<Value>(line) {
                Ok(value) if value.is_object() => JsonLine::Object(self.number, value),
                _ => JsonLine::Damaged(self.number),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn damaged_lines_are_counted_and_the_others_read() {
        let content = b"\xef\xbb\xbf{\"a\":1}\n\n[1]\r\n{\"b\":\r\n{\"c\":\"\xff\"}\n{\"d\":2}";
        let mut lines = JsonLines::new(Box::new(&content[..]));
        let mut read = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            read.push(line);
        }
        assert_eq!(
            read,
            [
                JsonLine::Object(1, json!({ "a": 1 })),
                JsonLine::Damaged(3),
                JsonLine::Damaged(4),
                JsonLine::Damaged(5),
                JsonLine::Object(6, json!({ "d": 2 })),
            ]
        );
    }
}
