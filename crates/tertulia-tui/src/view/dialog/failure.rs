//! Draws an error dialog.

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};

use super::MOST_COLUMNS;
use crate::dialog::failure::Failure;
use crate::view::brush::{Look, framed, hints, row, rows, write, write_right};

/// Lines inside the frame besides the text: a gap and the keys.
const OTHER_LINES: usize = 2;

/// Largest size of the inside for a screen size.
pub fn inside(size: Size) -> Size {
    let columns = size.width.min(MOST_COLUMNS);
    Size::new(columns.saturating_sub(4), size.height.saturating_sub(2))
}

/// Number of text lines visible for a screen size.
pub fn seen_lines(size: Size, count: usize) -> usize {
    let room = usize::from(inside(size).height);
    room.saturating_sub(OTHER_LINES).max(1).min(count)
}

/// Draws the dialog.
pub fn draw(failure: &Failure, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let size = area.as_size();
    let lines = failure.lines(inside(size).width);
    let seen = seen_lines(size, lines.len());
    let height = u16::try_from(seen + OTHER_LINES + 2).unwrap_or(u16::MAX);
    let title = (failure.title(), theme.error());
    let inside = framed(buffer, area, (MOST_COLUMNS, height), title);
    let text = rows(inside, 0, seen);
    let top = failure.top(lines.len(), seen);
    for (number, line) in lines.iter().skip(top).take(seen).enumerate() {
        write(buffer, row(text, number), line, theme.text());
    }
    let after = lines.len().saturating_sub(top + seen);
    if after > 0 {
        let more = format!("↓ {after} more lines");
        write_right(buffer, row(inside, seen), &more, theme.warning());
    }
    let copy = if failure.is_copied() {
        "copied"
    } else {
        "copy"
    };
    let keys = [("c", copy), ("Esc", "go on"), ("↑↓", "scroll")];
    hints(buffer, row(inside, seen + 1), theme, &keys);
}
