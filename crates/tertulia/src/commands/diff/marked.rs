//! Lines of a text with the words that differ, and the heading of a message.

use anstyle::Style;
use jiff::Timestamp;
use tertulia_core::diff::Item;
use tertulia_core::diff::words::{WordOp, Words};
use tertulia_engine::text::columns::Span;

use crate::moment::clock;
use crate::ui::{ADDED, REMOVED, Ui, harmless};

/// Unchanged lines shown before and after a changed one.
const CONTEXT: usize = 2;

/// How texts are printed.
#[derive(Clone, Copy)]
pub struct Printing {
    /// Whether words that differ are coloured.
    pub colours: bool,
    /// Whether words that differ are marked: `[-old-]{+new+}`.
    pub marks: bool,
    /// Whether the output goes to a terminal, which text must not control.
    pub terminal: bool,
    /// The current time.
    pub now: Timestamp,
}

impl Printing {
    /// Words are marked where colours are missing, and where old and new ones stand in one line.
    pub fn new(ui: &Ui, one_line: bool, now: Timestamp) -> Printing {
        Printing {
            colours: ui.has_colours(),
            marks: one_line || !ui.has_colours(),
            terminal: ui.has_screen(),
            now,
        }
    }

    /// Returns text as it may be printed.
    pub fn safe(self, text: &str) -> String {
        match self.terminal {
            true => harmless(text),
            false => text.to_owned(),
        }
    }

    /// Styles text.
    pub fn styled(self, style: Style, text: &str) -> String {
        match self.colours && !text.is_empty() {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }

    /// Returns the speaker, place and time of a message or tool call.
    pub fn heading(self, item: &Item<'_>) -> String {
        let message = item.message;
        let mut text = format!(
            "{}  {} · {}",
            harmless(&message.speaker.display_name),
            item.entry.seq,
            clock(item.entry.at, self.now)
        );
        let result = item.result.map_or(message, |(_, result)| result);
        if let Some(outcome) = result.tool_outcome() {
            text.push_str(&format!(" · {} {}", outcome.sign(), outcome.name()));
        }
        if let Some(model) = &message.model {
            text.push_str(&format!(" · {}", harmless(model)));
        }
        text
    }

    /// Returns the lines of a changed text around its changes. `shows` selects the words to show.
    pub fn changed_lines(
        self,
        parts: &[Words<'_>],
        shows: impl Fn(WordOp) -> bool,
    ) -> Vec<MarkedLine> {
        let mut lines = vec![(Vec::new(), false)];
        for part in parts.iter().filter(|part| shows(part.op)) {
            for (number, line) in part.text.split('\n').enumerate() {
                if number > 0 {
                    lines.push((Vec::new(), false));
                }
                if let Some((spans, changed)) = lines.last_mut() {
                    *changed |= part.op != WordOp::Equal;
                    if !line.is_empty() {
                        spans.push(self.span(part.op, line));
                    }
                }
            }
        }
        around_changes(lines)
    }

    fn span(self, op: WordOp, text: &str) -> Span<Style> {
        let text = self.safe(text).replace('\t', "    ");
        let (style, mark) = match op {
            WordOp::Equal => (Style::new(), None),
            WordOp::Delete => (REMOVED, Some(("[-", "-]"))),
            WordOp::Insert => (ADDED, Some(("{+", "+}"))),
        };
        let text = match mark.filter(|_| self.marks) {
            Some((open, close)) => format!("{open}{text}{close}"),
            None => text,
        };
        Span { style, text }
    }
}

/// A line with its words, or lines that are left out because nothing differs in them.
pub enum MarkedLine {
    /// The words of a line.
    Words(Vec<Span<Style>>),
    /// This many lines without a change.
    Unchanged(usize),
}

/// Leaves out lines that are far from any change.
fn around_changes(lines: Vec<(Vec<Span<Style>>, bool)>) -> Vec<MarkedLine> {
    let changed: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].1).collect();
    let is_near = |at: usize| {
        let next = changed.partition_point(|changed| changed + CONTEXT < at);
        let next = changed.get(next);
        next.is_some_and(|changed| *changed <= at + CONTEXT)
    };
    let mut shown = Vec::new();
    for (at, (spans, _)) in lines.into_iter().enumerate() {
        match (is_near(at), shown.last_mut()) {
            (true, _) => shown.push(MarkedLine::Words(spans)),
            (false, Some(MarkedLine::Unchanged(count))) => *count += 1,
            (false, _) => shown.push(MarkedLine::Unchanged(1)),
        }
    }
    shown
}
