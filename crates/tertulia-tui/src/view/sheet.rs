//! Draws a sheet: read-only text in a box.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::brush::{Look, framed, hints, write, write_right};
use crate::geometry::{row, rows};
use crate::sheet::{Ink, Sheet};
use crate::theme::Theme;

/// Draws the sheet at the bottom of an area, above the status line if there is room for both.
pub fn draw(sheet: &Sheet, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let title = (sheet.title(), theme.heading());
    let (columns, lines) = sheet.size();
    let above = match lines < area.height {
        true => area.height - 1,
        false => area.height,
    };
    let bottom = Rect {
        y: area.y + above.saturating_sub(lines),
        height: lines.min(above),
        ..area
    };
    let inside = framed(buffer, bottom, (columns, lines), title);
    let height = usize::from(inside.height);
    let keys = usize::from(height >= 2);
    let text = rows(inside, 0, height - keys);
    let (seen, before, after) = sheet.seen(text.height.into());
    for (number, line) in seen.iter().enumerate() {
        write(
            buffer,
            row(text, number),
            &line.text,
            style(line.ink, theme),
        );
    }
    let last = rows(inside, height - keys, keys);
    let scrolls = before + after > 0;
    let left = match scrolls {
        true => write_right(buffer, last, &place(before, after), theme.dim()),
        false => last,
    };
    let hint = [("Esc", "back"), ("y", "copy"), ("↑↓", "scroll")];
    let count = if scrolls { hint.len() } else { hint.len() - 1 };
    hints(buffer, left, theme, &hint[..count]);
}

/// Describes how many rows are above and below the visible ones.
fn place(before: usize, after: usize) -> String {
    match (before, after) {
        (0, after) => format!("{after} below"),
        (before, 0) => format!("{before} above"),
        (before, after) => format!("{before} above, {after} below"),
    }
}

fn style(ink: Ink, theme: Theme) -> Style {
    match ink {
        Ink::Plain => theme.text(),
        Ink::Added => theme.added(),
        Ink::Removed => theme.removed(),
    }
}
