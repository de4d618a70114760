//! Searches one file line by line, and formats the matches.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};

use regex::bytes::Regex;

use super::walk::{Halt, Watch};

/// Maximum number of matches shown.
const MOST_MATCHES: usize = 200;
/// Maximum number of bytes shown of a line.
const LONGEST_LINE: usize = 400;
/// Number of bytes shown before the match in a long line.
const LEAD: usize = 80;
/// Number of bytes searched for a NUL, which marks a binary file.
const SNIFF: usize = 8 * 1024;
/// Number of lines between two checks of the watch.
const LINES_PER_LOOK: u64 = 1024;

/// The matches found so far.
pub(super) struct Hits {
    context: usize,
    /// Maximum number of bytes of all lines.
    room: usize,
    lines: Vec<String>,
    matches: usize,
    full: bool,
}

impl Hits {
    /// Creates an empty list. Each match is shown with `context` lines around it.
    pub(super) fn new(context: usize, room: usize) -> Hits {
        Hits {
            context,
            room: room.saturating_sub(128),
            lines: Vec::new(),
            matches: 0,
            full: false,
        }
    }

    /// Returns the lines, and a mark if there are more.
    pub(super) fn finish(mut self) -> Vec<String> {
        if self.full {
            self.lines.push(format!(
                "[{} matches are shown, there are more: narrow the pattern or the path]",
                self.matches
            ));
        } else if self.matches == 0 {
            self.lines.push("[no matches]".to_owned());
        }
        self.lines
    }

    fn push(&mut self, line: String) -> Result<(), Halt> {
        if line.len() + 1 > self.room {
            self.full = true;
            return Err(Halt::Enough);
        }
        self.room -= line.len() + 1;
        self.lines.push(line);
        Ok(())
    }
}

/// Adds the matches of one file. Binary and unreadable files have none.
pub(super) fn search(
    file: impl Read,
    name: &str,
    regex: &Regex,
    watch: &Watch,
    hits: &mut Hits,
) -> Result<(), Halt> {
    let mut reader = BufReader::with_capacity(SNIFF, file);
    if !reader.fill_buf().is_ok_and(|start| !start.contains(&0)) {
        return Ok(());
    }
    let mut passage = Passage {
        name,
        context: hits.context,
        before: VecDeque::new(),
        after: 0,
        shown: None,
    };
    let (mut line, mut number) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        number += 1;
        if number % LINES_PER_LOOK == 0 {
            watch.check()?;
        }
        passage.line(number, without_end(&line), regex, hits)?;
        line.clear();
    }
    Ok(())
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Position of the search in a file, and the state of the context lines.
struct Passage<'a> {
    name: &'a str,
    context: usize,
    /// Last lines that were not shown.
    before: VecDeque<(u64, String)>,
    /// Number of following lines to show.
    after: usize,
    /// Number of the last line shown.
    shown: Option<u64>,
}

impl Passage<'_> {
    fn line(
        &mut self,
        number: u64,
        line: &[u8],
        regex: &Regex,
        hits: &mut Hits,
    ) -> Result<(), Halt> {
        let Some(found) = regex.find(line) else {
            return self.beside(number, line, hits);
        };
        if hits.matches == MOST_MATCHES {
            hits.full = true;
            return Err(Halt::Enough);
        }
        let first = self.before.front().map_or(number, |(first, _)| *first);
        let adjoins = self.shown.is_some_and(|shown| shown + 1 == first);
        if self.context > 0 && !adjoins && !hits.lines.is_empty() {
            hits.push("--".to_owned())?;
        }
        for (number, text) in self.before.drain(..) {
            hits.push(format!("{}-{number}-{text}", self.name))?;
        }
        let text = excerpt(line, found.start());
        hits.push(format!("{}:{number}:{text}", self.name))?;
        hits.matches += 1;
        (self.after, self.shown) = (self.context, Some(number));
        Ok(())
    }

    /// Handles a line without a match.
    fn beside(&mut self, number: u64, line: &[u8], hits: &mut Hits) -> Result<(), Halt> {
        if self.context == 0 {
            return Ok(());
        }
        let text = excerpt(line, 0);
        if self.after > 0 {
            self.after -= 1;
            self.shown = Some(number);
            return hits.push(format!("{}-{number}-{text}", self.name));
        }
        if self.before.len() == self.context {
            self.before.pop_front();
        }
        self.before.push_back((number, text));
        Ok(())
    }
}

/// Formats a line; of a long one, the part around the match.
fn excerpt(line: &[u8], at: usize) -> String {
    if line.len() <= LONGEST_LINE {
        return String::from_utf8_lossy(line).into_owned();
    }
    let is_border = |at: &usize| line.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let nearest = |at: usize| (at..=line.len()).find(is_border).unwrap_or(at);
    let start = nearest(at.saturating_sub(LEAD));
    let end = nearest((start + LONGEST_LINE).min(line.len()));
    let text = String::from_utf8_lossy(&line[start..end]);
    let missing = line.len() - (end - start);
    let lead = if start > 0 { "…" } else { "" };
    format!("{lead}{text}… [{missing} more bytes in this line]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    fn found(files: &[(&str, &[u8])], pattern: &str, context: usize) -> Vec<String> {
        let regex = Regex::new(pattern).unwrap();
        let watch = Watch::start(&CancellationToken::new(), Duration::from_secs(5));
        let mut hits = Hits::new(context, 64 * 1024);
        for (name, text) in files {
            if search(*text, name, &regex, &watch, &mut hits).is_err() {
                break;
            }
        }
        hits.finish()
    }

    #[test]
    fn lines_are_found_with_those_around() {
        let text = b"one\ntwo\nthree\r\nfour\nfive\nsix\nseven\nthree".as_slice();
        assert_eq!(
            found(&[("f", text)], "three$", 0),
            ["f:3:three", "f:8:three"]
        );
        assert_eq!(
            found(&[("f", text), ("g", b"three")], "three", 1),
            [
                "f-2-two",
                "f:3:three",
                "f-4-four",
                "--",
                "f-7-seven",
                "f:8:three",
                "--",
                "g:1:three"
            ]
        );
        assert_eq!(
            found(&[("f", text)], "two|four", 1),
            ["f-1-one", "f:2:two", "f-3-three", "f:4:four", "f-5-five"]
        );
        assert_eq!(found(&[("f", text)], "zzz", 2), ["[no matches]"]);
    }

    #[test]
    fn binary_files_are_passed_by_and_other_bytes_shown() {
        assert_eq!(found(&[("f", b"a\0b\na")], "a", 0), ["[no matches]"]);
        assert_eq!(found(&[("f", b"caf\xe9")], "caf", 0), ["f:1:caf\u{fffd}"]);
    }

    #[test]
    fn long_lines_show_what_is_around_the_match() {
        let line = format!("{}needle{}", "€".repeat(3000), "€".repeat(3000));
        let found = found(&[("f", line.as_bytes())], "needle", 0);
        assert!(found[0].contains("needle") && !found[0].contains('\u{fffd}'));
        assert!(found[0].len() < LONGEST_LINE + 80, "{}", found[0].len());
        assert!(found[0].ends_with("more bytes in this line]"));
    }

    #[test]
    fn there_is_an_end_to_matches() {
        let found_in = |text: &str| found(&[("f", text.as_bytes())], "x", 0);
        assert_eq!(found_in(&"x\n".repeat(200)).len(), 200);
        let lines = found_in(&"x\n".repeat(201));
        assert_eq!(lines.len(), 201);
        assert!(lines[200].starts_with("[200 matches are shown, there are more"));
        let wide = format!("{}\n", "x".repeat(399)).repeat(190);
        let lines = found_in(&wide);
        assert!(lines.join("\n").len() <= 64 * 1024);
        assert!(lines.last().unwrap().contains("there are more"));
    }
}
