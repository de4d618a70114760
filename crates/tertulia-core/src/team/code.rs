//! Which parts of a text are code, by the rules of CommonMark: fenced and indented blocks, also in quotes
//! and lists, and code within a line. What stands there was written about, not said.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

/// Deeper than this, a line is not the beginning of a fence, a quote or a list item.
const DEEPEST: usize = 3;
/// Deeper than this, quotes and lists are running text: nobody writes so, and it would take long.
const MOST_NESTED: usize = 32;
/// The fewest characters of a fence.
const SHORTEST_FENCE: usize = 3;

/// A part of a text that is code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where, in bytes, with its fences or backticks.
    pub range: Range<usize>,
    /// Whether it is a block, fenced or indented.
    pub fenced: bool,
}

/// All code in a text, in order, without overlaps. Takes time in proportion to the text.
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

/// What holds other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Quote,
    /// A list item, whose text stands so many columns in.
    Item(usize),
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: char,
    length: usize,
    start: usize,
    /// How many containers it stands in: it ends with them.
    depth: usize,
}

/// The block structure up to some line.
#[derive(Default)]
struct Blocks<'a> {
    text: &'a str,
    open: Vec<Container>,
    fence: Option<Fence>,
    /// The lines of running text just before; code within lines does not reach beyond them.
    paragraph: Option<Range<usize>>,
    found: Vec<Code>,
    /// Whether anything was said before: nobody begins with code that nothing announces.
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
        // A line of running text goes on even if it leaves out the marks of what it stands in.
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

    /// How many of the open containers a line still stands in, and what it is in the innermost.
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

/// The containers that begin on a line, and the rest of it.
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

/// A line of a quote without its mark.
fn quoted(line: &str) -> Option<&str> {
    if indent(line) > DEEPEST {
        return None;
    }
    let inside = line.trim_start_matches(' ').strip_prefix('>')?;
    Some(inside.strip_prefix(' ').unwrap_or(inside))
}

/// The first line of a list item: how far in its text stands, and that text.
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
    // Text that stands more than four columns after the mark is indented code of an item.
    let gap = match indent(inside) {
        gap @ 1..=4 if !inside.trim().is_empty() => gap,
        _ => 1,
    };
    Some((before + mark + gap, unindented(inside, gap)))
}

/// How many columns of white space a line begins with.
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

/// A line without its first columns of white space. A tab that reaches further goes as a whole.
fn unindented(line: &str, columns: usize) -> &str {
    let cut = (0..=line.len())
        .take_while(|at| line.is_char_boundary(*at))
        .find(|at| indent(&line[..*at]) >= columns || !line[*at..].starts_with([' ', '\t']));
    &line[cut.unwrap_or(0)..]
}

/// The mark and the length of the fence that begins with this line.
fn begins_fence(line: &str) -> Option<(char, usize)> {
    let (mark, length, info) = fence(line)?;
    // With backticks after it, it is code within a line.
    (mark == '~' || !info.contains('`')).then_some((mark, length))
}

/// Whether a line that begins a block is indented so deeply that the block is code.
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

/// Code within running text: from some backticks to the next that are exactly as many.
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
        // A backslash takes the first backtick away, but only where code would begin.
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

/// Where backticks stand, as many as stand together.
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
