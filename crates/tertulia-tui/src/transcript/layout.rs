//! Lays out a transcript item as rows: head line, text, and closing line.

use std::borrow::Cow;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;
use tertulia_core::entry::{Speaker, SpeakerKind};
use tertulia_engine::text::grouped;

use super::super::item::{By, Item, Tone, What};
use super::super::markdown::{Blocks, Form, PROSE};
use super::super::theme::Theme;
use super::card;
use crate::text::wrap::{Margin, Row};
use crate::text::{self, cut};

/// Lines above which a message of a person is folded, and lines shown of it then.
const LONG: usize = 20;
const FOLDED: usize = 10;
/// The same in bytes, for a message of few lines.
const LONG_BYTES: usize = 3000;
const FOLDED_BYTES: usize = 800;

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
        if let Some(speaker) = item.speaker()
            && speaker.kind == SpeakerKind::Ai
            && !self.speakers.iter().any(|(id, _)| *id == speaker.id)
        {
            self.speakers.push((speaker.id.clone(), None));
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

/// How an item is shown among others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// Whether it is the first of its speaker.
    pub(super) begins: bool,
    /// Whether a long message of a person is cut.
    pub(super) folded: bool,
}

/// Rows of one item.
#[derive(Debug)]
pub(super) struct Layout {
    width: u16,
    theme: Theme,
    head: Vec<Row>,
    body: Option<Blocks>,
    foot: Vec<Row>,
    /// Whether only the beginning of a long message is shown.
    is_folded: bool,
}

/// A long message of a person, such as a paste, of which only the beginning is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fold {
    /// End of the part that is shown.
    pub(super) end: usize,
    /// Number of lines after it.
    pub(super) lines: usize,
}

/// How a message is folded; `None` if it is not long enough.
pub(super) fn fold_of(item: &Item) -> Option<Fold> {
    let What::Said(said) = &item.what else {
        return None;
    };
    let lines = said.text.lines().count();
    let is_long = lines > LONG || said.text.len() > LONG_BYTES;
    if said.speaker.kind != SpeakerKind::Human || !is_long {
        return None;
    }
    let shown = said.text.split_inclusive('\n').take(FOLDED);
    let end = shown.map(str::len).sum::<usize>();
    if lines > LONG && end <= LONG_BYTES {
        return Some(Fold {
            end,
            lines: lines - FOLDED,
        });
    }
    let end = said.text.floor_char_boundary(end.min(FOLDED_BYTES));
    Some(Fold {
        end,
        lines: said.text[end..].matches('\n').count(),
    })
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
    /// Lays out an item. `before`, the layout of a prefix of the text, is extended instead of redone.
    pub(super) fn new(item: &Item, look: &Look, before: Option<Layout>, shown: Shown) -> Layout {
        let fold = fold_of(item).filter(|_| shown.folded);
        let body = form(item, look.theme).map(|form| {
            let fresh = || Blocks::new(form, look.width, look.theme);
            let mut body = before
                .filter(|before| before.fits(look))
                .and_then(|before| before.body)
                .unwrap_or_else(fresh);
            let text = text(item);
            body.upto(fold.map_or(&*text, |fold| &text[..fold.end]));
            body
        });
        Layout {
            width: look.width,
            theme: look.theme,
            head: head(item, look, shown.begins),
            body,
            foot: match fold {
                Some(fold) => vec![fold_row(item, fold, look)],
                None => foot(item, look),
            },
            is_folded: fold.is_some(),
        }
    }

    /// Returns true if width and theme still match.
    pub(super) fn fits(&self, look: &Look) -> bool {
        self.width == look.width && self.theme == look.theme
    }

    /// Adds rows for text appended to the item.
    pub(super) fn grow(&mut self, item: &Item) {
        if let Some(body) = self.body.as_mut().filter(|_| !self.is_folded) {
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
        What::Thought { text, .. } | What::Notice { text, .. } | What::Summary { text, .. } => {
            Cow::Borrowed(text)
        }
        What::Used(used) => Cow::Owned(card::details(used)),
        What::Restored { .. } => Cow::Borrowed(""),
    }
}

/// Approximate memory use of an item in bytes.
pub(super) fn weight(item: &Item) -> usize {
    let content = match &item.what {
        What::Said(said) => said.text.len(),
        What::Thought { text, .. } | What::Notice { text, .. } | What::Summary { text, .. } => {
            text.len()
        }
        What::Used(used) => {
            argument_weight(&used.call.arguments)
                + used.live.len()
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
            widest: PROSE,
        })
    };
    match &item.what {
        What::Said(said) if said.text.is_empty() => None,
        // Messages of people are shown as written.
        What::Said(said) if said.speaker.kind != SpeakerKind::Ai => {
            plain(theme.text(), Margin::default())
        }
        What::Said(_) => Some(Form::Markdown),
        What::Thought { folded: false, .. } => plain(
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
        What::Used(used) if !used.folded => Some(card::form(used, theme)),
        What::Summary { folded: false, .. } => plain(theme.dim(), Margin::even("  ", theme.dim())),
        What::Used(_) | What::Thought { .. } | What::Summary { .. } | What::Restored { .. } => None,
    }
}

/// Rows before the text. `begins` says whether the item is the first of its speaker.
fn head(item: &Item, look: &Look, begins: bool) -> Vec<Row> {
    match &item.what {
        What::Said(said) => vec![Row::default(), row(speaker_line(said.by(), &said.to, look))],
        What::Thought { text, folded: true } => {
            vec![Row::default(), row(thought_line(text, look))]
        }
        What::Thought { .. } => vec![Row::default()],
        What::Notice { .. } => Vec::new(),
        What::Used(used) => {
            let line = row(card::line(used, usize::from(look.width), look.theme));
            match begins {
                true => vec![
                    Row::default(),
                    row(speaker_line(used.by(), &[], look)),
                    line,
                ],
                false => vec![line],
            }
        }
        What::Summary { upto, folded, .. } => vec![row(summary_line(*upto, *folded, look))],
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
        What::Used(used) => card::live(used, usize::from(look.width), look.theme),
        _ => Vec::new(),
    }
}

/// Row in place of the rest of a folded message.
fn fold_row(item: &Item, fold: Fold, look: &Look) -> Row {
    let more = match fold.lines {
        0 => format!(
            "{} more characters",
            grouped(text(item)[fold.end..].chars().count() as u64)
        ),
        lines => format!("{} more lines", grouped(lines as u64)),
    };
    let words = format!("… {more}, o unfolds");
    Row {
        line: Line::styled(cut(&words, usize::from(look.width)), look.theme.dim()),
        source: fold.end..text(item).len(),
    }
}

fn row(line: Line<'static>) -> Row {
    Row { line, source: 0..0 }
}

/// Merge spans in one line, cut to the width.
pub(super) fn fitted(parts: Vec<(Cow<'_, str>, Style)>, width: usize) -> Line<'static> {
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

fn speaker_line(by: By<'_>, to: &[String], look: &Look) -> Line<'static> {
    let dim = look.theme.dim();
    let name: Cow<'_, str> = Cow::Borrowed(&by.speaker.display_name);
    let mut parts = vec![(name, look.speaker(by.speaker))];
    if !to.is_empty() {
        parts.push((Cow::Owned(format!(" → {}", to.join(", "))), dim));
    }
    if let Some(at) = by.at {
        let at = at.to_zoned(look.zone.clone());
        let form = if Some(at.date()) == look.today {
            "%H:%M"
        } else {
            "%Y-%m-%d %H:%M"
        };
        parts.push((Cow::Owned(format!("  {}", at.strftime(form))), dim));
    }
    if let Some(model) = by.model {
        parts.push((Cow::Owned(format!("  {model}")), dim));
    }
    fitted(parts, usize::from(look.width))
}

/// Line in place of reasoning that is folded.
fn thought_line(text: &str, look: &Look) -> Line<'static> {
    // Of what is longer, nothing would be seen.
    let words: Vec<&str> = text
        .split_whitespace()
        .take(usize::from(look.width))
        .collect();
    let line = format!("▸ thought: {}", words.join(" "));
    let style = look.theme.dim().add_modifier(Modifier::ITALIC);
    Line::styled(cut(&line, usize::from(look.width)), style)
}

fn summary_line(upto: u64, folded: bool, look: &Look) -> Line<'static> {
    let how = if folded { " (o shows it)" } else { "" };
    let words = format!("· Summarised entries 1–{upto}{how}.");
    Line::styled(cut(&words, usize::from(look.width)), look.theme.dim())
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
