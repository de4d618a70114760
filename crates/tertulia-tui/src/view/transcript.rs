//! Draws the transcript.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::text::wrap::Row;
use crate::text::{self, cut};
use crate::theme::Theme;
use crate::transcript::Transcript;

/// Draws a transcript that was made to [fit](Transcript::fit) the area.
pub fn draw(transcript: &Transcript, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    for (y, (row, stands_out)) in (area.y..area.bottom()).zip(transcript.rows()) {
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        draw_row(row, line, buffer);
        if let Some(pattern) = transcript.pattern() {
            let text = row.line.to_string();
            for hit in pattern.find_iter(&text) {
                mark(&text, hit.range(), line, theme.found(), buffer);
            }
        }
        if stands_out {
            buffer.set_style(line, theme.chosen());
        }
    }
    draw_bar(transcript, theme, area, buffer);
    draw_bottom(transcript, theme, area, buffer);
}

fn draw_row(row: &Row, line: Rect, buffer: &mut Buffer) {
    let mut x = line.x;
    for span in &row.line.spans {
        let room = usize::from(line.right().saturating_sub(x));
        let style = row.line.style.patch(span.style);
        (x, _) = buffer.set_stringn(x, line.y, &span.content, room, style);
    }
}

/// Highlights a part of a row.
fn mark(text: &str, part: std::ops::Range<usize>, line: Rect, style: Style, buffer: &mut Buffer) {
    let columns = |text: &str| u16::try_from(text::width(text)).unwrap_or(u16::MAX);
    let found = Rect {
        x: line.x.saturating_add(columns(&text[..part.start])),
        width: columns(&text[part]),
        ..line
    };
    buffer.set_style(found.intersection(line), style);
}

/// Draws a scroll bar in the last column if not everything is visible.
fn draw_bar(transcript: &Transcript, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if !transcript.has_bar(area.width) {
        return;
    }
    let Some(extent) = transcript.extent() else {
        return;
    };
    let height = u64::from(area.height);
    let total = extent.total.max(1);
    let scaled = |part: u64| u128::from(part) * u128::from(height) / u128::from(total);
    let thumb = scaled(extent.to.saturating_sub(extent.from)).clamp(1, u128::from(height));
    let start = if transcript.follows() {
        u128::from(height) - thumb
    } else {
        scaled(extent.from).min(u128::from(height) - thumb)
    };
    for (number, y) in (area.y..area.bottom()).enumerate() {
        let inside = (start..start + thumb).contains(&(number as u128));
        let symbol = if inside { "█" } else { "│" };
        buffer.set_stringn(area.right() - 1, y, symbol, 1, theme.frame());
    }
}

/// Draws the search field, or the number of new items below, on the last row.
fn draw_bottom(transcript: &Transcript, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let y = area.bottom() - 1;
    let width = usize::from(area.width);
    if let Some(words) = transcript.typing() {
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        buffer.set_style(line, Style::reset());
        let shown = cut(&format!("/{words}▏"), width);
        let padded = format!(
            "{shown}{}",
            " ".repeat(width - text::width(&shown).min(width))
        );
        buffer.set_stringn(area.x, y, padded, width, theme.strong());
    } else if transcript.unseen() > 0 {
        let text = cut(
            &format!(" ↓ {} new ", transcript.unseen()),
            width.saturating_sub(1),
        );
        let columns = u16::try_from(text::width(&text)).unwrap_or(area.width);
        let x = area.right().saturating_sub(columns + 1).max(area.x);
        buffer.set_stringn(x, y, text, width, theme.chosen());
    }
}
