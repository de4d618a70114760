//! Splits a text into top-level blocks. All but the last are rendered once and kept.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use super::super::diff;
use super::super::highlight::Highlights;
use super::super::theme::Theme;
use super::{Form, marked_rows, render};
use crate::text::wrap::{Breaks, Piece, Row};

/// Maximum number of bytes examined at once. A longer block is split, so that rendering the open
/// block again stays cheap. (Small in tests, which need to exercise the split.)
pub(super) const WINDOW: usize = if cfg!(test) { 4_096 } else { 65_536 };
/// Distance before the end of the window within which a space is looked for to split an endless
/// line.
const REACH: usize = 512;

/// Rows of a text that may still grow.
#[derive(Debug)]
pub struct Blocks {
    form: Form,
    width: u16,
    theme: Theme,
    /// Rows of everything before `start`.
    done: Vec<Row>,
    /// Offset of the last block.
    start: usize,
    /// Rows of the last block, and the text length they cover.
    open: Vec<Row>,
    seen: usize,
    /// Offset up to which blocks have been looked for.
    outlined: usize,
    /// Opening fence to prepend if the last block continues a split code block.
    fence: Option<String>,
    /// Whether the last block continues a split block.
    joined: bool,
    highlights: Highlights,
    /// Total number of bytes rendered, for tests.
    #[cfg(test)]
    pub(super) work: usize,
}

/// Top-level blocks of a text.
struct Outline {
    /// Offsets of the blocks: always at a line start; the first is 0, including anything before it.
    starts: Vec<usize>,
    /// Opening fence of the last block if it is fenced code.
    fence: Option<String>,
}

impl Blocks {
    /// Creates an empty text.
    pub fn new(form: Form, width: u16, theme: Theme) -> Blocks {
        Blocks {
            form,
            width,
            theme,
            done: Vec::new(),
            start: 0,
            open: Vec::new(),
            seen: 0,
            outlined: 0,
            fence: None,
            joined: false,
            highlights: Highlights::default(),
            #[cfg(test)]
            work: 0,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.done.len() + self.open.len()
    }

    /// Returns one row.
    pub fn get(&self, row: usize) -> Option<&Row> {
        match row.checked_sub(self.done.len()) {
            None => self.done.get(row),
            Some(row) => self.open.get(row),
        }
    }

    /// All rows.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Row> {
        self.done.iter().chain(&self.open)
    }

    /// Row that shows a byte of the text, or the last row before it.
    pub fn row_of(&self, byte: usize) -> usize {
        let before = |row: &Row| row.source.start <= byte;
        let open = self.open.partition_point(before);
        let rows = if open > 0 {
            self.done.len() + open
        } else {
            self.done.partition_point(before)
        };
        rows.saturating_sub(1)
    }

    /// Renders the new part of a text; the text must start with the previously given one.
    pub fn upto(&mut self, text: &str) {
        if text.len() == self.seen {
            return;
        }
        while self.settle(text) {}
        let rest = &text[self.start..];
        let rows = self.draw(rest, self.start);
        self.open.clear();
        if !rows.is_empty() && !self.done.is_empty() && !self.joined && self.parts_blocks() {
            self.open.push(blank(self.start));
        }
        self.open.extend(rows);
        self.seen = text.len();
    }

    /// Returns true if an empty row separates blocks.
    fn parts_blocks(&self) -> bool {
        matches!(self.form, Form::Markdown)
    }

    /// Renders the final blocks of one window; returns true if there may be more.
    fn settle(&mut self, text: &str) -> bool {
        let rest = &text[self.start..];
        let full = rest.len() > WINDOW;
        let window = &rest[..rest.floor_char_boundary(WINDOW)];
        // The meaning of an unfinished line may still change.
        let whole = window.rfind('\n').map_or(0, |at| at + 1);
        if !full && self.start + whole == self.outlined {
            return false;
        }
        self.outlined = self.start + whole;
        let outline = self.outline(&window[..whole]);
        if outline.starts.last().is_some_and(|last| *last > 0) {
            for pair in outline.starts.windows(2) {
                let (from, to) = (pair[0], pair[1]);
                self.keep(&rest[from..to], self.start + from);
                self.fence = None;
                self.joined = false;
            }
            self.start += outline.starts.last().copied().unwrap_or_default();
            return true;
        }
        if !full {
            return false;
        }
        let end = if whole > 0 { whole } else { line_cut(window) };
        self.keep(&rest[..end], self.start);
        self.start += end;
        if outline.fence.is_some() || self.fence.is_some() {
            // The frame of the code ends with its last part.
            self.done.pop();
        }
        self.fence = outline.fence.or(self.fence.take());
        self.joined = true;
        true
    }

    /// Renders a part and keeps its rows.
    fn keep(&mut self, part: &str, start: usize) {
        let rows = self.draw(part, start);
        if !rows.is_empty() && !self.done.is_empty() && !self.joined && self.parts_blocks() {
            self.done.push(blank(start));
        }
        self.done.extend(rows);
        self.highlights = Highlights::default();
    }

    fn draw(&mut self, part: &str, start: usize) -> Vec<Row> {
        #[cfg(test)]
        {
            self.work += part.len();
        }
        let width = usize::from(self.width);
        match &self.form {
            Form::Plain {
                style,
                margin,
                diff,
                widest,
            } => {
                if *diff {
                    return diff::rows(part, start, (margin, *style), width, self.theme);
                }
                let width = width.min(*widest);
                let mut out = Vec::new();
                let mut at = start;
                for line in part.split_inclusive('\n') {
                    let shown = line.strip_suffix('\n').unwrap_or(line);
                    let shown = shown.strip_suffix('\r').unwrap_or(shown);
                    let pieces = vec![Piece::exact(shown, *style, at)];
                    marked_rows(pieces, margin, width, Breaks::Words, self.theme, &mut out);
                    at += line.len();
                }
                out
            }
            Form::Markdown => {
                self.highlights.begin();
                match &self.fence {
                    None => render::rows(part, start, width, self.theme, &mut self.highlights),
                    Some(fence) => {
                        let mut rows = render::rows(
                            &format!("{fence}{part}"),
                            0,
                            width,
                            self.theme,
                            &mut self.highlights,
                        );
                        // The frame of the code began with its first part.
                        rows.drain(..1.min(rows.len()));
                        for row in &mut rows {
                            let moved = |at: usize| (at.max(fence.len()) - fence.len()) + start;
                            row.source = moved(row.source.start)..moved(row.source.end);
                        }
                        rows
                    }
                }
            }
        }
    }

    fn outline(&self, text: &str) -> Outline {
        match (&self.form, &self.fence) {
            // Plain lines are independent of each other; those of a diff are numbered.
            (Form::Plain { diff, .. }, _) => Outline {
                starts: if text.is_empty() || *diff {
                    vec![0]
                } else {
                    vec![0, text.len()]
                },
                fence: None,
            },
            (Form::Markdown, None) => outline(text),
            (Form::Markdown, Some(fence)) => {
                let mut outline = outline(&format!("{fence}{text}"));
                for start in &mut outline.starts {
                    *start = start.saturating_sub(fence.len());
                }
                // Only the split block itself continues with its fence.
                if outline.starts.len() == 1 {
                    outline.fence = None;
                }
                outline
            }
        }
    }
}

fn blank(at: usize) -> Row {
    Row {
        source: at..at,
        ..Row::default()
    }
}

/// Offset at which to split an endless line.
fn line_cut(window: &str) -> usize {
    let from = window.floor_char_boundary(window.len().saturating_sub(REACH));
    match window[from..].rfind(' ') {
        Some(at) => from + at + 1,
        None => window.len(),
    }
}

/// Supported markdown extensions.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

fn outline(text: &str) -> Outline {
    let mut found = Outline {
        starts: vec![0],
        fence: None,
    };
    let mut depth = 0usize;
    let mut first = true;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
            // Text before the first block belongs to it.
            if !first {
                found.starts.push(start);
            }
            first = false;
            found.fence = match &event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                    Some(fence_of(&text[range.start..]))
                }
                _ => None,
            };
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// Opening fence of a code block, without the language: a split block is too long to highlight.
fn fence_of(block: &str) -> String {
    let sign = |c: &char| ['`', '~'].contains(c);
    let mut fence: String = block.trim_start().chars().take_while(sign).collect();
    fence.push('\n');
    fence
}
