//! Draws the transcript.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use regex::Regex;

use super::brush::{counted, grouped};
use crate::geometry::right_of_gutter;
use crate::keymap::{self, Action, Where};
use crate::text::wrap::Row;
use crate::text::{self, cut};
use crate::theme::Theme;
use crate::transcript::{Standing, Transcript};

/// Draws a transcript that was made to [fit](Transcript::fit) the area.
pub fn draw(transcript: &Transcript, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    let current = transcript.current_hit();
    for (number, seen) in (0..area.height).zip(transcript.rows()) {
        let y = area.y + number;
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        let words = right_of_gutter(line);
        if seen.is_own {
            draw_own(line, words.x - line.x, theme, buffer);
        }
        draw_row(seen.row, words, buffer);
        if let Some(pattern) = transcript.pattern() {
            let here = current.filter(|(row, _)| *row == usize::from(number));
            let nth = here.map(|(_, nth)| nth);
            draw_hits(seen.row, pattern, nth, words, theme, buffer);
        }
        if seen.stands_out {
            buffer.set_style(line, theme.chosen());
        }
        if let Some(part) = seen.selected {
            let part = Rect {
                x: words.x.saturating_add(part.start),
                width: part.end - part.start,
                ..words
            };
            buffer.set_style(part.intersection(words), theme.chosen());
        }
    }
    draw_bar(transcript, theme, area, buffer);
    draw_bottom(transcript, theme, area, buffer);
}

/// Marks a row of a message of a person: by its background, and by a bar in the gutter for terminals
/// that have no shades.
fn draw_own(line: Rect, gutter: u16, theme: Theme, buffer: &mut Buffer) {
    buffer.set_style(line, theme.own());
    if gutter > 0 {
        buffer.set_stringn(line.x, line.y, "▌", 1, theme.human());
    }
}

/// Draws one row of text.
pub fn draw_row(row: &Row, line: Rect, buffer: &mut Buffer) {
    let mut x = line.x;
    for span in &row.line.spans {
        let room = usize::from(line.right().saturating_sub(x));
        let style = row.line.style.patch(span.style);
        (x, _) = buffer.set_stringn(x, line.y, &span.content, room, style);
    }
}

/// Highlights the hits of a search in a row, and among them the current one, if it is here.
fn draw_hits(
    row: &Row,
    pattern: &Regex,
    current: Option<usize>,
    area: Rect,
    theme: Theme,
    buffer: &mut Buffer,
) {
    let text = row.line.to_string();
    let mut hits = 0;
    for hit in pattern.find_iter(&text) {
        let style = match current == Some(hits) {
            true => theme.current_hit(),
            false => theme.hit(),
        };
        mark(&text, hit.range(), area, style, buffer);
        hits += 1;
    }
    // A hit that goes on in the next row is in neither of the two.
    if current.is_some_and(|nth| nth >= hits) {
        buffer.set_style(area, theme.current_hit());
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

/// Draws the search field, or the position in the search and the number of new lines below, on the
/// last row.
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
        return;
    }
    let found = transcript.standing().map(|standing| match standing {
        Standing::Searching(0) => " searching… ".to_owned(),
        Standing::Searching(count) => format!(" searching… {} so far ", grouped(count as u64)),
        Standing::At(place, count) => {
            format!(" {} of {} ", grouped(place as u64), grouped(count as u64))
        }
    });
    let new = match transcript.new_rows() {
        0 => None,
        rows => {
            let rows = counted(rows as u64, "new line");
            let key = keymap::key_of(Where::Talk, Action::ToEnd);
            Some(match key {
                Some(key) => format!(" ↓ {rows} · {key} "),
                None => format!(" ↓ {rows} "),
            })
        }
    };
    let parts: Vec<String> = found.into_iter().chain(new).collect();
    if !parts.is_empty() {
        let text = cut(&parts.join("·"), width.saturating_sub(1));
        let columns = u16::try_from(text::width(&text)).unwrap_or(area.width);
        let x = area.right().saturating_sub(columns + 1).max(area.x);
        buffer.set_stringn(x, y, text, width, theme.chosen());
    }
}
