//! Lays out a transcript item as rows: head line, text, and closing line.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;
use tertulia_core::entry::{Speaker, SpeakerKind, ToolOutcome};

use super::super::item::{Item, Said, Tone, Used, What};
use super::super::markdown::{Blocks, Form};
use super::super::theme::Theme;
use crate::text::wrap::{Margin, Row};
use crate::text::{self, cut};

/// Layout parameters shared by all items.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) width: u16,
    pub(super) theme: Theme,
    pub(super) zone: TimeZone,
    /// Times of this day are shown without the date.
    pub(super) today: Option<Date>,
    /// Agents in order of appearance, with the colour chosen for them.
    pub(super) speakers: Vec<(String, Option<String>)>,
}

impl Look {
    /// Registers an agent, so that it gets its own colour.
    pub(super) fn meet(&mut self, item: &Item) {
        if let What::Said(said) = &item.what
            && said.speaker.kind == SpeakerKind::Ai
            && !self.speakers.iter().any(|(id, _)| *id == said.speaker.id)
        {
            self.speakers.push((said.speaker.id.clone(), None));
        }
    }

    fn speaker(&self, speaker: &Speaker) -> Style {
        let place = self.speakers.iter().position(|(id, _)| *id == speaker.id);
        let chosen = place
            .and_then(|place| self.speakers[place].1.as_deref())
            .and_then(|colour| self.theme.named(colour));
        match (chosen, speaker.kind, place) {
            (Some(chosen), _, _) => chosen,
            (None, SpeakerKind::Ai, Some(place)) => self.theme.speaker(place),
            (None, SpeakerKind::Human, _) => self.theme.human(),
            _ => self.theme.strong(),
        }
    }
}

/// Rows of one item.
#[derive(Debug)]
pub(super) struct Layout {
    width: u16,
    theme: Theme,
    head: Vec<Row>,
    body: Option<Blocks>,
    foot: Vec<Row>,
}

/// A position in an item that is independent of the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A row before the text.
    Head(usize),
    /// A byte of the text.
    Text(usize),
    /// A row after the text.
    Foot(usize),
}

impl Layout {
    /// Lays out an item. `before`, the layout of a prefix of the text, is extended instead of
    /// redone.
    pub(super) fn new(item: &Item, look: &Look, before: Option<Layout>) -> Layout {
        let body = form(item, look.theme).map(|form| {
            let fresh = || Blocks::new(form, look.width, look.theme);
            let mut body = before
                .filter(|before| before.fits(look))
                .and_then(|before| before.body)
                .unwrap_or_else(fresh);
            body.upto(&text(item));
            body
        });
        Layout {
            width: look.width,
            theme: look.theme,
            head: head(item, look),
            body,
            foot: foot(item, look),
        }
    }

    /// Returns true if width and theme still match.
    pub(super) fn fits(&self, look: &Look) -> bool {
        self.width == look.width && self.theme == look.theme
    }

    /// Adds rows for text appended to the item.
    pub(super) fn grow(&mut self, item: &Item) {
        if let Some(body) = &mut self.body {
            body.upto(&text(item));
        }
    }

    fn body_len(&self) -> usize {
        self.body.as_ref().map_or(0, Blocks::len)
    }

    /// Number of rows.
    pub(super) fn height(&self) -> usize {
        self.head.len() + self.body_len() + self.foot.len()
    }

    /// Returns one row.
    pub(super) fn row(&self, row: usize) -> Option<&Row> {
        match self.mark(row) {
            Mark::Head(row) => self.head.get(row),
            Mark::Text(_) => self.body.as_ref()?.get(row - self.head.len()),
            Mark::Foot(row) => self.foot.get(row),
        }
    }

    /// Converts a row to a position that is independent of the width.
    pub(super) fn mark(&self, row: usize) -> Mark {
        let Some(below) = row.checked_sub(self.head.len()) else {
            return Mark::Head(row);
        };
        match self.body.as_ref().and_then(|body| body.get(below)) {
            Some(row) => Mark::Text(row.source.start),
            None => Mark::Foot(below - self.body_len().min(below)),
        }
    }

    /// Converts a position back to a row.
    pub(super) fn row_of(&self, mark: Mark) -> usize {
        match (mark, &self.body) {
            (Mark::Head(row), _) => row.min(self.head.len().saturating_sub(1)),
            (Mark::Text(byte), Some(body)) => self.head.len() + body.row_of(byte),
            (Mark::Text(_), None) => 0,
            (Mark::Foot(row), _) => self.head.len() + self.body_len() + row,
        }
    }
}

/// Text of an item, as it is copied, searched and shown.
pub(super) fn text(item: &Item) -> Cow<'_, str> {
    match &item.what {
        What::Said(said) => Cow::Borrowed(&said.text),
        What::Thought(text) | What::Notice { text, .. } => Cow::Borrowed(text),
        What::Used(used) => Cow::Owned(details(used)),
        What::Restored { .. } => Cow::Borrowed(""),
    }
}

/// Approximate memory use of an item in bytes.
pub(super) fn weight(item: &Item) -> usize {
    let content = match &item.what {
        What::Said(said) => said.text.len(),
        What::Thought(text) | What::Notice { text, .. } => text.len(),
        What::Used(used) => {
            argument_weight(&used.call.arguments)
                + used.output.as_ref().map_or(0, |(text, _)| text.len())
        }
        What::Restored { .. } => 0,
    };
    content + size_of::<Item>()
}

fn argument_weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(argument_weight).sum(),
        Value::Object(values) => values.values().map(argument_weight).sum(),
        _ => size_of::<Value>(),
    }
}

/// How the text of an item is formatted; `None` if it is not shown.
fn form(item: &Item, theme: Theme) -> Option<Form> {
    let plain = |style, margin| {
        Some(Form::Plain {
            style,
            margin,
            diff: false,
        })
    };
    match &item.what {
        What::Said(said) if said.text.is_empty() => None,
        // Messages of people are shown as written.
        What::Said(said) if said.speaker.kind != SpeakerKind::Ai => {
            plain(theme.text(), Margin::default())
        }
        What::Said(_) => Some(Form::Markdown),
        What::Thought(_) => plain(
            theme.dim().add_modifier(Modifier::ITALIC),
            Margin::even("┊ ", theme.dim()),
        ),
        What::Notice { tone, .. } => {
            let (sign, style) = match tone {
                Tone::Note => ("· ", theme.dim()),
                Tone::Warning => ("! ", theme.warning()),
                Tone::Error => ("✗ ", theme.error()),
            };
            let margin = Margin {
                first: vec![Span::styled(sign, style)],
                rest: vec![Span::styled("  ", style)],
            };
            plain(style, margin)
        }
        What::Used(used) if !used.folded => Some(Form::Plain {
            style: theme.dim(),
            margin: Margin::even("    ", theme.dim()),
            diff: used.output.as_ref().is_some_and(|(text, _)| is_diff(text)),
        }),
        What::Used(_) | What::Restored { .. } => None,
    }
}

fn is_diff(text: &str) -> bool {
    text.starts_with("--- ") || text.starts_with("@@ ") || text.contains("\n@@ ")
}

/// Arguments and output of a tool call as text.
fn details(used: &Used) -> String {
    let mut text = String::new();
    match &used.call.arguments {
        Value::Object(arguments) => {
            for (name, value) in arguments {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{name}: {}", words(value));
            }
        }
        Value::Null => {}
        other => {
            let _ = writeln!(text, "{}", words(other));
        }
    }
    if let Some((output, _)) = &used.output {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(output);
    }
    text
}

fn words(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

fn head(item: &Item, look: &Look) -> Vec<Row> {
    match &item.what {
        What::Said(said) => vec![Row::default(), row(speaker_line(said, look))],
        What::Thought(_) => vec![Row::default()],
        What::Notice { .. } => Vec::new(),
        What::Used(used) => vec![row(tool_line(used, look))],
        What::Restored { messages } => vec![Row::default(), row(restored_line(*messages, look))],
    }
}

fn foot(item: &Item, look: &Look) -> Vec<Row> {
    match &item.what {
        What::Said(said) if said.interrupted => {
            let mark = cut("⏹ interrupted", usize::from(look.width));
            let end = said.text.len();
            vec![Row {
                line: Line::styled(mark, look.theme.warning()),
                source: end..end,
            }]
        }
        _ => Vec::new(),
    }
}

fn row(line: Line<'static>) -> Row {
    Row { line, source: 0..0 }
}

/// Merge spans in one line, cut to the width.
fn fitted(parts: Vec<(Cow<'_, str>, Style)>, width: usize) -> Line<'static> {
    let mut left = width;
    let mut spans = Vec::new();
    for (text, style) in parts {
        if left == 0 {
            break;
        }
        let shown = cut(&text, left);
        left = left.saturating_sub(text::width(&shown));
        spans.push(Span::styled(shown, style));
    }
    Line::from(spans)
}

fn speaker_line(said: &Said, look: &Look) -> Line<'static> {
    let dim = look.theme.dim();
    let name: Cow<'_, str> = Cow::Borrowed(&said.speaker.display_name);
    let mut parts = vec![(name, look.speaker(&said.speaker))];
    if !said.to.is_empty() {
        parts.push((Cow::Owned(format!(" → {}", said.to.join(", "))), dim));
    }
    if let Some(at) = said.at {
        let at = at.to_zoned(look.zone.clone());
        let form = if Some(at.date()) == look.today {
            "%H:%M"
        } else {
            "%Y-%m-%d %H:%M"
        };
        parts.push((Cow::Owned(format!("  {}", at.strftime(form))), dim));
    }
    if let Some(model) = &said.model {
        parts.push((Cow::Owned(format!("  {model}")), dim));
    }
    fitted(parts, usize::from(look.width))
}

/// Summarises a tool call in one line: name, first argument, outcome, number of output lines.
fn tool_line(used: &Used, look: &Look) -> Line<'static> {
    let theme = look.theme;
    let width = usize::from(look.width);
    let sign = if used.folded { "  ▸ " } else { "  ▾ " };
    let (end, style, count) = match &used.output {
        None => (" …", theme.dim(), String::new()),
        Some((text, outcome)) => {
            let count = match text.lines().count() {
                0 => String::new(),
                1 => " 1 line".to_owned(),
                lines => format!(" {lines} lines"),
            };
            match outcome {
                ToolOutcome::Ok => (" ✓", theme.added(), count),
                ToolOutcome::Failed | ToolOutcome::Interrupted => (" ✗", theme.error(), count),
                ToolOutcome::Denied => (" ⊘", theme.warning(), " denied".to_owned()),
            }
        }
    };
    let name = &used.call.name;
    let taken = text::width(sign) + text::width(name) + text::width(end) + text::width(&count) + 1;
    let mut parts = vec![
        (Cow::Borrowed(sign), theme.dim()),
        (Cow::Borrowed(name.as_str()), theme.strong()),
    ];
    let room = width.saturating_sub(taken);
    if let Some(argument) = first_argument(&used.call.arguments)
        && room > 0
    {
        let shown = cut(argument.trim(), room);
        parts.push((Cow::Owned(format!(" {shown}")), theme.text()));
    }
    parts.push((Cow::Borrowed(end), style));
    parts.push((Cow::Owned(count), theme.dim()));
    fitted(parts, width)
}

fn first_argument(arguments: &Value) -> Option<Cow<'_, str>> {
    match arguments {
        Value::Object(values) => values.values().next().map(words),
        Value::Array(values) => values.first().map(words),
        Value::Null => None,
        other => Some(words(other)),
    }
}

fn restored_line(messages: u64, look: &Look) -> Line<'static> {
    let width = usize::from(look.width);
    let words = match messages {
        1 => "── restored: 1 message ".to_owned(),
        several => format!("── restored: {several} messages "),
    };
    let rest = "─".repeat(width.saturating_sub(text::width(&words)));
    Line::styled(cut(&format!("{words}{rest}"), width), look.theme.frame())
}
