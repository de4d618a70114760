//! Draws an error dialog.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::dialog::failure::{Failure, OTHER_LINES};
use crate::geometry::{DIALOG_COLUMNS, dialog_inside, dialog_lines, row, rows};
use crate::view::brush::{Look, framed, hints, write, write_right};

/// Draws the dialog.
pub fn draw(failure: &Failure, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let size = area.as_size();
    let lines = failure.lines(dialog_inside(size).width);
    let seen = dialog_lines(size, lines.len(), OTHER_LINES);
    let height = u16::try_from(seen + OTHER_LINES + 2).unwrap_or(u16::MAX);
    let title = (failure.title(), theme.error());
    let inside = framed(buffer, area, (DIALOG_COLUMNS, height), title);
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
    let keys = [("Enter", "close"), ("Ctrl+Y", copy), ("↑↓", "scroll")];
    hints(buffer, row(inside, seen + 1), theme, &keys);
}
