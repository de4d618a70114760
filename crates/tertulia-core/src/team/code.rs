//! Finds the code in a text by the rules of CommonMark: fenced and indented blocks, also in quotes
//! and lists, and code spans. Markers inside code are not markers.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

/// Maximum indentation of a line that opens a fence, a quote or a list item.
const DEEPEST: usize = 3;
/// Maximum nesting of quotes and lists; deeper ones are treated as plain text, to bound the time.
const MOST_NESTED: usize = 32;
/// Minimum number of characters of a fence.
const SHORTEST_FENCE: usize = 3;

/// A part of a text that is code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Byte range, including fences or backticks.
    pub range: Range<usize>,
    /// True for a block (fenced or indented), false for a code span.
    pub fenced: bool,
}

/// Returns all code in a text, in order, without overlaps. Runs in linear time.
pub fn code(text: &str) -> Vec<Code> {
    let mut blocks = Blocks {
        text,
        ..Blocks::default()
    };
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        blocks.line(start, line);
        start += line.len();
    }
    blocks.end(start);
    blocks.found
}

/// A block that contains other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Quote,
    /// A list item, with the column where its text begins.
    Item(usize),
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: char,
    length: usize,
    start: usize,
    /// Number of containers around the fence: it ends when one of them ends.
    depth: usize,
}

/// Block structure of the lines read so far.
#[derive(Default)]
struct Blocks<'a> {
    text: &'a str,
    open: Vec<Container>,
    fence: Option<Fence>,
    /// The open paragraph; code spans do not extend beyond it.
    paragraph: Option<Range<usize>>,
    found: Vec<Code>,
    /// True once the text has a line of plain text. Indented lines before it are not treated as
    /// code.
    begun: bool,
}

impl Blocks<'_> {
    fn line(&mut self, start: usize, line: &str) {
        let (held, rest) = self.held(line);
        if let Some(fence) = self.fence {
            if held < fence.depth {
                self.close_fence(start);
            } else {
                if ends_fence(rest, fence) {
                    self.close_fence(start + line.len());
                }
                return;
            }
        }
        if rest.trim().is_empty() {
            self.close_paragraph();
            self.open.truncate(held);
            return;
        }
        let (opened, rest) = containers(rest);
        let begins = begins_fence(rest);
        // Lazy continuation: a paragraph goes on even if a line lacks the markers of its
        // containers.
        let lazy = opened.is_empty() && begins.is_none() && self.paragraph.is_some();
        if !lazy {
            if held < self.open.len() || !opened.is_empty() {
                self.close_paragraph();
            }
            self.open.truncate(held);
            let room = MOST_NESTED.saturating_sub(held);
            self.open.extend(opened.into_iter().take(room));
        }
        match begins {
            Some((mark, length)) => {
                self.close_paragraph();
                self.fence = Some(Fence {
                    mark,
                    length,
                    start,
                    depth: self.open.len(),
                });
            }
            None if self.begun && self.paragraph.is_none() && is_indented(rest) => {
                self.found.push(Code {
                    range: start..start + line.len(),
                    fenced: true,
                })
            }
            None => {
                self.begun = true;
                self.running_text(start..start + line.len(), rest.starts_with('#'));
            }
        }
    }

    fn running_text(&mut self, line: Range<usize>, heading: bool) {
        if heading {
            self.close_paragraph();
        }
        let start = self
            .paragraph
            .as_ref()
            .map_or(line.start, |lines| lines.start);
        self.paragraph = Some(start..line.end);
        if heading {
            self.close_paragraph();
        }
    }

    fn end(&mut self, end: usize) {
        self.close_paragraph();
        self.close_fence(end);
    }

    fn close_fence(&mut self, end: usize) {
        if let Some(fence) = self.fence.take() {
            self.found.push(Code {
                range: fence.start..end,
                fenced: true,
            });
        }
    }

    fn close_paragraph(&mut self) {
        if let Some(lines) = self.paragraph.take() {
            let spans = spans(&self.text[lines.clone()]);
            self.found.extend(spans.into_iter().map(|span| Code {
                range: lines.start + span.start..lines.start + span.end,
                fenced: false,
            }));
        }
    }

    /// Returns how many of the open containers a line continues, and the line without their
    /// markers.
    fn held<'l>(&self, line: &'l str) -> (usize, &'l str) {
        let mut rest = line;
        for (depth, container) in self.open.iter().enumerate() {
            let inside = match container {
                Container::Quote => quoted(rest),
                Container::Item(_) if rest.trim().is_empty() => Some(rest),
                Container::Item(columns) => {
                    (indent(rest) >= *columns).then(|| unindented(rest, *columns))
                }
            };
            match inside {
                Some(inside) => rest = inside,
                None => return (depth, rest),
            }
        }
        (self.open.len(), rest)
    }
}

/// Returns the containers that a line opens, and the rest of the line.
fn containers(line: &str) -> (Vec<Container>, &str) {
    let mut opened = Vec::new();
    let mut rest = line;
    while opened.len() < MOST_NESTED {
        if let Some(inside) = quoted(rest) {
            opened.push(Container::Quote);
            rest = inside;
        } else if let Some((columns, inside)) = item(rest) {
            opened.push(Container::Item(columns));
            rest = inside;
        } else {
            break;
        }
    }
    (opened, rest)
}

/// Returns a line of a quote without its marker.
fn quoted(line: &str) -> Option<&str> {
    if indent(line) > DEEPEST {
        return None;
    }
    let inside = line.trim_start_matches(' ').strip_prefix('>')?;
    Some(inside.strip_prefix(' ').unwrap_or(inside))
}

/// Parses the first line of a list item: the column of its text, and the text.
fn item(line: &str) -> Option<(usize, &str)> {
    let before = indent(line);
    if before > DEEPEST {
        return None;
    }
    let line = line.trim_start_matches(' ');
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match line.as_bytes().get(digits)? {
        b'-' | b'+' | b'*' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let inside = &line[mark..];
    if !inside.is_empty() && !inside.starts_with([' ', '\t', '\n', '\r']) {
        return None;
    }
    // Text more than four columns after the marker is indented code within the item.
    let gap = match indent(inside) {
        gap @ 1..=4 if !inside.trim().is_empty() => gap,
        _ => 1,
    };
    Some((before + mark + gap, unindented(inside, gap)))
}

/// Returns the width of the leading white space, in columns.
fn indent(line: &str) -> usize {
    let mut columns = 0;
    for byte in line.bytes() {
        match byte {
            b' ' => columns += 1,
            b'\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

/// Removes leading white space up to a number of columns. A tab that extends further is removed as
/// a whole.
fn unindented(line: &str, columns: usize) -> &str {
    let cut = (0..=line.len())
        .take_while(|at| line.is_char_boundary(*at))
        .find(|at| indent(&line[..*at]) >= columns || !line[*at..].starts_with([' ', '\t']));
    &line[cut.unwrap_or(0)..]
}

/// Returns the marker and the length of the fence that a line opens.
fn begins_fence(line: &str) -> Option<(char, usize)> {
    let (mark, length, info) = fence(line)?;
    // With backticks in its info string, the line is a code span instead.
    (mark == '~' || !info.contains('`')).then_some((mark, length))
}

/// Returns true if a line that begins a block is indented enough to be code.
fn is_indented(line: &str) -> bool {
    let mut columns = 0;
    for letter in line.chars() {
        match letter {
            ' ' => columns += 1,
            '\t' => columns += DEEPEST + 1,
            _ => break,
        }
    }
    columns > DEEPEST
}

fn ends_fence(line: &str, open: Fence) -> bool {
    fence(line).is_some_and(|(mark, length, rest)| {
        mark == open.mark && length >= open.length && rest.trim().is_empty()
    })
}

fn fence(line: &str) -> Option<(char, usize, &str)> {
    if indent(line) > DEEPEST {
        return None;
    }
    let line = line.trim_start_matches(' ');
    let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= SHORTEST_FENCE).then_some((mark, length, rest))
}

/// Returns the code spans of a paragraph: from a run of backticks to the next run of the same
/// length.
fn spans(text: &str) -> Vec<Range<usize>> {
    let runs = runs(text);
    let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
    for run in &runs {
        by_length.entry(run.len()).or_default().push(run.start);
    }
    let mut spans: Vec<Range<usize>> = Vec::new();
    for run in runs {
        if spans.last().is_some_and(|span| run.start < span.end) {
            continue;
        }
        // A backslash escapes the first backtick, but only of an opening run.
        let start = run.start + usize::from(is_escaped(text, run.start));
        let length = run.end - start;
        let ends = by_length.get(&length).map_or(&[][..], Vec::as_slice);
        let after = ends.partition_point(|end| *end < run.end);
        if let Some(end) = ends.get(after).filter(|_| length > 0) {
            spans.push(start..end + length);
        }
    }
    spans
}

/// Returns the runs of adjacent backticks.
fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn is_escaped(text: &str, at: usize) -> bool {
    let before = text[..at].bytes().rev();
    before.take_while(|byte| *byte == b'\\').count() % 2 == 1
}
