//! Draws a preview of a session: some of its messages, each cut to a few lines.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use tertulia_core::entry::SpeakerKind;
use tertulia_core::id::Seq;
use tertulia_engine::text::ago;

use super::brush::{Look, write};
use crate::geometry::row;
use crate::item::{Item, Said, Tone, What};
use crate::markdown::{Blocks, Form};
use crate::text::fold;

/// Maximum number of lines per message.
const MOST_LINES: usize = 8;

/// Bytes of a message that are rendered, per column of each line that is shown.
const BYTES: usize = 4;

/// Draws the end of a session, aligned to the bottom of an area.
pub fn draw_end(items: &[Item], look: Look, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.height);
    let mut blocks = Vec::new();
    let mut count = 0;
    for item in items.iter().rev() {
        if count >= room {
            break;
        }
        let block = strokes(item, look, usize::from(area.width), false);
        count += block.len() + usize::from(!blocks.is_empty());
        blocks.push(block);
    }
    blocks.reverse();
    let lines = blocks.join(&Line::default());
    let from = lines.len().saturating_sub(room);
    draw(&lines[from..], area, buffer);
}

/// Draws the messages around an entry, which is among the items.
pub fn draw_around(items: &[Item], at: Seq, look: Look, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.height);
    let hit = items.iter().position(|item| item.seq == Some(at));
    let hit = hit.unwrap_or_default();
    // One message before for context, then as much as fits.
    let mut lines = Vec::new();
    for (number, item) in items.iter().enumerate().skip(hit.saturating_sub(1)) {
        if lines.len() >= room {
            break;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(strokes(item, look, usize::from(area.width), number == hit));
    }
    draw(&lines, area, buffer);
}

fn draw(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (number, line) in lines.iter().enumerate().take(usize::from(area.height)) {
        let mut left = row(area, number);
        for span in &line.spans {
            left = write(buffer, left, &span.content, line.style.patch(span.style));
        }
    }
}

fn strokes(item: &Item, look: Look, columns: usize, is_meant: bool) -> Vec<Line<'static>> {
    let theme = look.theme;
    match &item.what {
        What::Said(said) => said_strokes(said, look, columns, is_meant),
        What::Used(used) => vec![Line::styled(format!("→ {}", used.call.name), theme.dim())],
        What::Thought { .. } => Vec::new(),
        What::Notice { tone, text } => {
            let style = match tone {
                Tone::Note => theme.dim(),
                Tone::Warning => theme.warning(),
                Tone::Error => theme.error(),
            };
            body(text, columns, style)
        }
        What::Summary { upto, .. } => {
            let words = format!("(entries 1–{upto} summarised)");
            vec![Line::styled(words, theme.dim())]
        }
        What::Restored { messages } => {
            vec![Line::styled(
                format!("({messages} messages restored)"),
                theme.dim(),
            )]
        }
    }
}

fn said_strokes(said: &Said, look: Look, columns: usize, is_meant: bool) -> Vec<Line<'static>> {
    let theme = look.theme;
    let mut style = match said.speaker.kind {
        SpeakerKind::Human => theme.human(),
        SpeakerKind::Ai => theme.speaker(0),
        SpeakerKind::System | SpeakerKind::Tool => theme.dim(),
    };
    if is_meant {
        style = style.patch(theme.chosen());
    }
    let age = said.at.map(|at| format!(" · {}", ago(at, look.now)));
    let head = format!("{}{}", said.speaker.display_name, age.unwrap_or_default());
    let mut strokes = vec![Line::styled(head, style)];
    strokes.extend(match said.speaker.kind {
        SpeakerKind::Ai => rendered(&said.text, columns, look),
        _ => body(&said.text, columns, theme.text()),
    });
    strokes
}

/// The first lines of a message in markdown, rendered as in the transcript.
fn rendered(text: &str, columns: usize, look: Look) -> Vec<Line<'static>> {
    let text = text.trim_end();
    // What is not shown need not be rendered with every frame.
    let most = (MOST_LINES * columns * BYTES).max(BYTES);
    let shown = &text[..text.floor_char_boundary(most)];
    let width = u16::try_from(columns).unwrap_or(u16::MAX).max(1);
    let mut blocks = Blocks::new(Form::Markdown, width, look.theme);
    blocks.upto(shown);
    let is_more = blocks.len() > MOST_LINES || shown.len() < text.len();
    let rows = (0..blocks.len().min(MOST_LINES)).filter_map(|row| blocks.get(row));
    let mut lines: Vec<Line<'static>> = rows.map(|row| row.line.clone()).collect();
    if is_more && let Some(last) = lines.last_mut() {
        *last = Line::from("…");
    }
    lines
}

fn body(text: &str, columns: usize, style: Style) -> Vec<Line<'static>> {
    let (mut lines, more) = fold(text.trim_end(), columns, MOST_LINES);
    if more && let Some(last) = lines.last_mut() {
        *last = "…".to_owned();
    }
    let lines = lines.into_iter();
    lines.map(|line| Line::styled(line, style)).collect()
}
