//! Cards of tool calls: one line when folded, the change or the output when unfolded, and the newest
//! output while the tool runs.

use std::borrow::Cow;
use std::fmt::Write;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;
use tertulia_core::entry::ToolOutcome;
use tertulia_engine::text::tools::{self, Verb};

use super::super::item::{COMMAND, Used};
use super::super::markdown::Form;
use super::super::theme::Theme;
use super::layout::fitted;
use crate::text;
use crate::text::program_output;
use crate::text::wrap::{Breaks, Margin, Piece, Row, rows};

/// Margin of what is below the line of a card.
const INDENT: &str = "    ";
/// Number of lines shown of a tool that is running.
const LIVE_LINES: usize = 5;

/// Summarises a call in one line: what it does, to what, how many lines it changes, and how it ended.
pub(super) fn line(used: &Used, width: usize, theme: Theme) -> Line<'static> {
    let fold = if used.folded { "  ▸ " } else { "  ▾ " };
    let (verb, object) = tools::heading(&used.call);
    let mut end: Vec<(String, Style)> = Vec::new();
    let output = used.output.as_ref();
    if let Some(lines) = tools::lines(&used.call, output.map(|(text, _)| text.as_str())) {
        let lines = lines.to_string();
        let signs = lines.split(' ').map(|count| match count.starts_with('+') {
            true => (format!(" {count}"), theme.added()),
            false => (format!(" {count}"), theme.removed()),
        });
        end.extend(signs);
    }
    match output {
        None => end.push((" …".to_owned(), theme.dim())),
        Some((text, outcome)) => {
            let style = match outcome {
                ToolOutcome::Ok => theme.added(),
                ToolOutcome::Failed | ToolOutcome::Interrupted => theme.error(),
                ToolOutcome::Denied => theme.warning(),
            };
            end.push((format!(" {}", outcome.sign()), style));
            let words = tools::ending(&used.call, text, *outcome);
            if !words.is_empty() {
                end.push((format!(" {words}"), theme.dim()));
            }
        }
    }
    let taken: usize = [fold, &verb].into_iter().map(text::width).sum();
    let ends: usize = end.iter().map(|(text, _)| text::width(text)).sum();
    let mut parts: Vec<(Cow<'_, str>, Style)> = vec![
        (Cow::Borrowed(fold), theme.dim()),
        (Cow::Owned(verb), theme.strong()),
    ];
    // A long ending, such as the words of a denial, leaves half of the line to the object.
    let room = width.saturating_sub(taken + 1 + ends.min(width / 2));
    if !object.is_empty() && room > 0 {
        let shown = text::cut(&object, room);
        parts.push((Cow::Owned(format!(" {shown}")), theme.text()));
    }
    parts.extend(
        end.into_iter()
            .map(|(text, style)| (Cow::Owned(text), style)),
    );
    fitted(parts, width)
}

/// Text of an unfolded card: the change, or the arguments and the output.
pub(super) fn details(used: &Used) -> String {
    let output = used.output.as_ref();
    let result = output.map(|(text, _)| text.as_str());
    if let Some(change) = tools::change(&used.call, result) {
        // The result of a change that was made says no more than the change itself.
        return match output {
            Some((text, outcome)) if *outcome != ToolOutcome::Ok => {
                format!("{change}\n\n{}", tools::readable_output(text, *outcome))
            }
            _ => change,
        };
    }
    let mut text = match tools::command(&used.call) {
        Some(command) => format!("$ {command}\n"),
        // The line above has the command.
        None if used.call.name == COMMAND => String::new(),
        None => arguments(&used.call.arguments),
    };
    if let Some((output, outcome)) = output {
        let output = tools::readable_output(output, *outcome);
        if !text.is_empty() && tools::verb(&used.call) != Verb::Run {
            text.push('\n');
        }
        text.push_str(&program_output(&output));
    }
    text
}

/// Formats arguments, one per line.
fn arguments(arguments: &Value) -> String {
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut text = String::new();
    match arguments {
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
    text
}

/// How the text of an unfolded card is drawn.
pub(super) fn form(used: &Used, theme: Theme) -> Form {
    let output = used.output.as_ref().map(|(text, _)| text.as_str());
    Form::Plain {
        style: theme.dim(),
        margin: Margin::even(INDENT, theme.dim()),
        diff: tools::lines(&used.call, output).is_some() || output.is_some_and(is_diff),
        widest: usize::MAX,
    }
}

fn is_diff(text: &str) -> bool {
    text.starts_with("--- ") || text.starts_with("@@ ") || text.contains("\n@@ ")
}

/// Draws the newest output of a tool that is running.
pub(super) fn live(used: &Used, width: usize, theme: Theme) -> Vec<Row> {
    let mut out = Vec::new();
    if used.output.is_some() || used.live.is_empty() {
        return out;
    }
    let style = theme.dim();
    let margin = Margin {
        first: vec![Span::styled("  │ ", theme.frame())],
        rest: vec![Span::styled("  │ ", theme.frame())],
    };
    for line in program_output(&used.live).lines() {
        let piece = Piece {
            source: 0..0,
            ..Piece::exact(line, style, 0)
        };
        rows(&[piece], &margin, width, Breaks::Anywhere, &mut out);
    }
    out.drain(..out.len().saturating_sub(LIVE_LINES));
    out
}
