//! Renders markdown as rows from the events of its parser.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::super::highlight::Highlights;
use super::super::theme::{Palette, Theme};
use super::blocks::options;
use super::code::Code;
use super::table::Table;
use super::{PROSE, marked_rows};
use crate::text::wrap::{Breaks, Margin, Piece, Row, width_of};

/// Mark of an item of a list without numbers.
const BULLET: &str = "• ";
/// Columns that the margin leaves for the text, if possible.
const LEGIBLE: usize = 8;

/// Renders a text; `start` is its offset in the whole text.
pub(super) fn rows(
    text: &str,
    start: usize,
    width: usize,
    theme: Theme,
    highlights: &mut Highlights,
) -> Vec<Row> {
    let parser = Parser::new_ext(text, options());
    let mut definitions: Vec<Range<usize>> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| definition.span.clone())
        .collect();
    definitions.sort_unstable_by_key(|span| span.start);
    let mut render = Render {
        text,
        width,
        theme,
        highlights,
        out: Vec::new(),
        frames: Vec::new(),
        lists: Vec::new(),
        styles: vec![theme.text()],
        links: Vec::new(),
        pieces: Vec::new(),
        begins: None,
        gap: false,
        code: None,
        table: None,
        definitions: definitions.into(),
    };
    for (event, range) in parser.into_offset_iter() {
        render.event(event, range);
    }
    render.flush(text.len());
    render.definitions_before(text.len());
    let mut rows = render.out;
    let mut latest = 0;
    for row in &mut rows {
        // Looking up a byte needs ascending offsets.
        latest = text.floor_char_boundary(row.source.start).max(latest);
        let end = text.ceil_char_boundary(row.source.end).max(latest);
        row.source = start + latest..start + end;
    }
    rows
}

/// Left margin of a list item or a block quote.
struct Frame {
    /// Mark before the first row, used once.
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

struct Render<'t, 'h> {
    text: &'t str,
    width: usize,
    theme: Theme,
    highlights: &'h mut Highlights,
    out: Vec<Row>,
    frames: Vec<Frame>,
    /// Next number of each enclosing list.
    lists: Vec<Option<u64>>,
    /// Stack of styles; never empty.
    styles: Vec<Style>,
    /// Address of each enclosing link, and its text so far.
    links: Vec<(String, String)>,
    /// Pieces of the current line.
    pieces: Vec<Piece<'t>>,
    /// Source offset of the next row, including its markup.
    begins: Option<usize>,
    /// Whether an empty row precedes the next block.
    gap: bool,
    code: Option<Code>,
    table: Option<Table<'t>>,
    /// Link definitions not shown yet, in order.
    definitions: VecDeque<Range<usize>>,
}

impl<'t> Render<'t, '_> {
    fn event(&mut self, event: Event<'t>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, range),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push(&text, range),
                None => self.words(text, self.style(), range),
            },
            Event::Code(text) => self.inline_code(text, range),
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text, range),
            Event::SoftBreak | Event::HardBreak => self.line_out(),
            Event::Rule => self.rule(range),
            Event::TaskListMarker(done) => self.task(done, range),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.words(text, self.style(), range);
            }
        }
    }

    fn start(&mut self, tag: Tag<'t>, range: Range<usize>) {
        match tag {
            Tag::Emphasis => self.push_style(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(self.theme.strong()),
            Tag::Strikethrough => {
                self.push_style(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.link(&dest_url);
                self.piece(Cow::Borrowed("image: "), self.theme.dim(), range);
            }
            Tag::TableHead => {
                self.push_style(self.theme.strong());
                self.table_line(range);
            }
            Tag::TableRow => self.table_line(range),
            Tag::TableCell | Tag::Superscript | Tag::Subscript => {}
            block => self.start_block(block, range),
        }
    }

    fn start_block(&mut self, tag: Tag<'t>, range: Range<usize>) {
        self.flush(range.start);
        self.definitions_before(range.start);
        self.gap_out();
        self.begins.get_or_insert(range.start);
        match tag {
            Tag::Heading { level, .. } => {
                self.push_style(self.theme.level(level as usize));
            }
            Tag::BlockQuote(_) => self.frames.push(Frame {
                first: None,
                rest: Span::styled("│ ", self.theme.dim()),
            }),
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                self.code = Some(Code::new(&info, range.start));
            }
            Tag::CodeBlock(CodeBlockKind::Indented) => {
                self.code = Some(Code::new("", range.start));
            }
            Tag::List(number) => self.lists.push(number),
            Tag::Item => self.item(),
            Tag::Table(alignments) => self.table = Some(Table::new(alignments)),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop_style(),
            TagEnd::Link | TagEnd::Image => self.end_link(range),
            TagEnd::TableHead => self.pop_style(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                if let Some(table) = &mut self.table {
                    table.cell(cell, self.theme);
                }
            }
            TagEnd::TableRow | TagEnd::Superscript | TagEnd::Subscript => {}
            block => self.end_block(block, range.end),
        }
    }

    fn end_block(&mut self, tag: TagEnd, end: usize) {
        self.flush(end);
        self.gap = match tag {
            TagEnd::Heading(_) => {
                self.pop_style();
                true
            }
            TagEnd::CodeBlock => {
                self.code_out();
                true
            }
            TagEnd::Table => {
                self.table_out();
                true
            }
            TagEnd::BlockQuote(_) => {
                self.definitions_before(end);
                self.frames.pop();
                true
            }
            TagEnd::Item => {
                self.definitions_before(end);
                self.end_item();
                self.gap
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap || self.lists.is_empty()
            }
            _ => true,
        };
    }

    fn item(&mut self) {
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => BULLET.to_owned(),
        };
        let indent = " ".repeat(mark.chars().count());
        self.frames.push(Frame {
            first: Some(Span::styled(mark, self.theme.dim())),
            rest: Span::raw(indent),
        });
    }

    /// Marks an item as a task: a box takes the place of the bullet, or follows the number.
    fn task(&mut self, done: bool, range: Range<usize>) {
        let mark = if done { "☑ " } else { "☐ " };
        let bullet = self
            .frames
            .last_mut()
            .and_then(|frame| frame.first.as_mut());
        match bullet.filter(|first| first.content == BULLET) {
            Some(first) => *first = Span::styled(mark, self.theme.text()),
            None => self.piece(Cow::Borrowed(mark), self.theme.text(), range),
        }
    }

    fn end_item(&mut self) {
        // An empty item still shows its mark.
        if self
            .frames
            .last()
            .is_some_and(|frame| frame.first.is_some())
        {
            self.line_out();
        }
        self.frames.pop();
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn pop_style(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    fn piece(&mut self, text: Cow<'t, str>, style: Style, source: Range<usize>) {
        if let Some((_, shown)) = self.links.last_mut() {
            shown.push_str(&text);
        }
        self.pieces.push(Piece {
            text,
            style,
            source,
        });
    }

    fn words(&mut self, text: CowStr<'t>, style: Style, range: Range<usize>) {
        self.piece(text.into(), style, range);
    }

    fn inline_code(&mut self, text: CowStr<'t>, range: Range<usize>) {
        let style = self.style().patch(self.theme.code());
        let at = self.text[range.clone()]
            .find(&*text)
            .map_or(range.clone(), |at| {
                range.start + at..range.start + at + text.len()
            });
        // Without colours, the backticks mark the code.
        let plain = self.theme.palette == Palette::Plain;
        if plain {
            self.piece(Cow::Borrowed("`"), style, range.start..at.start);
        }
        self.words(text, style, at.clone());
        if plain {
            self.piece(Cow::Borrowed("`"), style, at.end..range.end);
        }
    }

    /// Shows HTML as written.
    fn html(&mut self, text: &CowStr<'t>, range: Range<usize>) {
        let mut at = range.start;
        for line in text.split_inclusive('\n') {
            let shown = line.trim_end_matches(['\n', '\r']);
            let source = at..at + shown.len();
            self.piece(Cow::Owned(shown.to_owned()), self.style(), source);
            if line.len() > shown.len() {
                self.line_out();
            }
            at += line.len();
        }
    }

    fn link(&mut self, address: &str) {
        self.links.push((address.to_owned(), String::new()));
        self.push_style(self.theme.link());
    }

    /// Appends the address of a link unless its text is the address, so that the text cannot
    /// disguise the target.
    fn end_link(&mut self, range: Range<usize>) {
        self.pop_style();
        let Some((address, shown)) = self.links.pop() else {
            return;
        };
        if !address.is_empty() && shown != address {
            let text = format!(" ({address})");
            self.piece(Cow::Owned(text), self.theme.dim(), range.end..range.end);
        }
    }

    fn table_line(&mut self, range: Range<usize>) {
        if let Some(table) = &mut self.table {
            table.line(range);
        }
    }

    fn rule(&mut self, range: Range<usize>) {
        self.flush(range.start);
        self.definitions_before(range.start);
        self.gap_out();
        let margin = self.margin();
        let width = self.width.min(PROSE);
        let room = width.saturating_sub(width_of(&margin.first)).max(1);
        let mut spans = margin.first;
        spans.push(Span::styled("─".repeat(room), self.theme.frame()));
        self.emit(vec![Row {
            line: Line::from(spans),
            source: range,
        }]);
        self.gap = true;
    }

    fn code_out(&mut self) {
        if let Some(code) = self.code.take() {
            let margin = self.margin();
            let rows = code.rows(&margin, self.width, self.theme, self.highlights);
            // Copied code does not include its fence.
            self.begins = None;
            self.emit(rows);
        }
    }

    fn table_out(&mut self) {
        if let Some(table) = self.table.take() {
            let margin = self.margin();
            let rows = table.rows(&margin, self.width, self.theme);
            self.emit(rows);
        }
    }

    /// Ends the current line.
    fn line_out(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        let margin = self.margin();
        let mut rows = Vec::new();
        let width = self.width.min(PROSE);
        marked_rows(pieces, &margin, width, Breaks::Words, self.theme, &mut rows);
        self.emit(rows);
    }

    /// Ends the current line, if any, and extends its source up to `end`.
    fn flush(&mut self, end: usize) {
        if self.pieces.is_empty() {
            return;
        }
        self.line_out();
        if let Some(row) = self.out.last_mut() {
            // Closing markup belongs to the row; line breaks do not.
            let text = self.text[..end].trim_end();
            row.source.end = row.source.end.max(text.len());
        }
    }

    fn emit(&mut self, mut rows: Vec<Row>) {
        if let Some(row) = rows.first_mut()
            && let Some(begins) = self.begins.take()
        {
            row.source.start = row.source.start.min(begins);
            if row.source.end == 0 {
                row.source = begins..begins;
            }
        }
        self.out.append(&mut rows);
    }

    fn gap_out(&mut self) {
        if !std::mem::take(&mut self.gap) {
            return;
        }
        let spans = clamped(self.frames.iter().map(|frame| &frame.rest), self.width);
        let seen = spans.iter().any(|span| !span.content.trim().is_empty());
        let at = self.out.last().map_or(0, |row| row.source.end);
        self.out.push(Row {
            line: Line::from(if seen { spans } else { Vec::new() }),
            source: at..at,
        });
    }

    /// Shows the link definitions before `end` as written.
    fn definitions_before(&mut self, end: usize) {
        if self
            .definitions
            .front()
            .is_none_or(|span| span.start >= end)
        {
            return;
        }
        self.gap_out();
        while let Some(span) = self.definitions.pop_front_if(|span| span.start < end) {
            let mut at = span.start;
            for line in self.text[span].split_inclusive('\n') {
                let shown = line.trim_end();
                let piece = Piece::exact(shown, self.theme.dim(), at);
                self.piece(piece.text, piece.style, piece.source);
                self.line_out();
                at += line.len();
            }
        }
        self.gap = true;
    }

    /// Margin of the next block. Each item mark is used once.
    fn margin(&mut self) -> Margin {
        let rest = clamped(self.frames.iter().map(|frame| &frame.rest), self.width);
        let mut marks = Vec::with_capacity(self.frames.len());
        for frame in &mut self.frames {
            marks.push(frame.first.take().unwrap_or_else(|| frame.rest.clone()));
        }
        Margin {
            first: clamped(marks.iter(), self.width),
            rest,
        }
    }
}

/// Keeps as many of the innermost spans as leave room for text.
fn clamped<'s>(
    spans: impl DoubleEndedIterator<Item = &'s Span<'static>>,
    width: usize,
) -> Vec<Span<'static>> {
    let room = width.saturating_sub(LEGIBLE.min(width));
    let mut used = 0;
    let mut kept: Vec<Span<'static>> = spans
        .rev()
        .take_while(|span| {
            used += width_of(std::slice::from_ref(*span));
            used <= room
        })
        .cloned()
        .collect();
    kept.reverse();
    kept
}
