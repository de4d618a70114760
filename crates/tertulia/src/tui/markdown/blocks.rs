//! A text cut into its outermost blocks. All but the last are drawn once, for good.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use super::super::highlight::{self, Highlights};
use super::super::theme::Theme;
use super::super::wrap::{Breaks, Piece, Row};
use super::{Form, marked_rows, render};

/// What of a text is looked at in one go. A block that is longer is cut, so that what is still open stays cheap to draw again.
/// (Tests have less time, and want to see it happen.)
pub(super) const WINDOW: usize = if cfg!(test) { 4_096 } else { 65_536 };
/// How far before the end of the window a space is looked for when a line without end is cut.
const REACH: usize = 512;

/// The rows of a text that may still grow.
#[derive(Debug)]
pub struct Blocks {
    form: Form,
    width: u16,
    theme: Theme,
    /// The rows of everything before `start`.
    done: Vec<Row>,
    /// Where the last block begins.
    start: usize,
    /// The rows of the last block, and of the text up to where.
    open: Vec<Row>,
    seen: usize,
    /// Up to where the text was looked through for blocks.
    outlined: usize,
    /// If the last block goes on with code that was cut: how such code begins.
    fence: Option<String>,
    /// Whether the last block goes on with what was cut.
    joined: bool,
    highlights: Highlights,
    /// How many bytes were drawn, all told: what the tests count.
    #[cfg(test)]
    pub(super) work: usize,
}

/// The outermost blocks of a text.
struct Outline {
    /// Where they begin: always at the beginning of a line, the first at 0 whatever comes before it.
    starts: Vec<usize>,
    /// How the last one begins, if it is code between fences.
    fence: Option<String>,
}

impl Blocks {
    /// Nothing yet.
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

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.done.len() + self.open.len()
    }

    /// One row.
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

    /// The row that shows this byte of the text, or the last before it.
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

    /// Draws what is new in a text that begins with the one that was given last.
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

    /// Whether blocks have an empty row between them.
    fn parts_blocks(&self) -> bool {
        matches!(self.form, Form::Markdown)
    }

    /// Draws what can change no more within one window; whether there may be more of it.
    fn settle(&mut self, text: &str) -> bool {
        let rest = &text[self.start..];
        let full = rest.len() > WINDOW;
        let window = &rest[..rest.floor_char_boundary(WINDOW)];
        // A line that has not ended may still turn out to be anything.
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
        self.fence = outline.fence.or(self.fence.take());
        self.joined = true;
        true
    }

    /// Draws a part for good.
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
            } => {
                let mut out = Vec::new();
                let mut at = start;
                for line in part.split_inclusive('\n') {
                    let shown = line.strip_suffix('\n').unwrap_or(line);
                    let shown = shown.strip_suffix('\r').unwrap_or(shown);
                    let sign = diff.then(|| highlight::diff(shown, self.theme)).flatten();
                    let pieces = vec![Piece::exact(shown, sign.unwrap_or(*style), at)];
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
            // Every line stands for itself.
            (Form::Plain { .. }, _) => Outline {
                starts: if text.is_empty() {
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
                // Only the block that was cut goes on with its fence.
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

/// Where to cut a line that does not end.
fn line_cut(window: &str) -> usize {
    let from = window.floor_char_boundary(window.len().saturating_sub(REACH));
    match window[from..].rfind(' ') {
        Some(at) => from + at + 1,
        None => window.len(),
    }
}

/// What of markdown is known here.
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
            // What comes before the first block goes with it.
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

/// The fence that code begins with, without its language: what was cut is too long for colours.
fn fence_of(block: &str) -> String {
    let sign = |c: &char| ['`', '~'].contains(c);
    let mut fence: String = block.trim_start().chars().take_while(sign).collect();
    fence.push('\n');
    fence
}
