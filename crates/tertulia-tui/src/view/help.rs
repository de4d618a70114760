//! Draws the help overlay.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::brush::{Look, hints, write, write_right};
use super::picker::draw_line;
use crate::geometry::{row, rows};
use crate::help::{Help, Line};
use crate::one_line::OneLine;
use crate::text::{cut, width};

/// Draws the help overlay.
pub fn draw(help: &Help, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let theme = look.theme;
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 3), usize::from(height >= 2));
    let gap = usize::from(height >= 8);
    let list = rows(area, head + gap, height.saturating_sub(head + gap + keys));
    let (lines, after) = help.seen(usize::from(list.height));
    let left = match after {
        0 => rows(area, 0, head),
        after => {
            let more = format!("{after} more lines");
            write_right(buffer, rows(area, 0, head), &more, theme.dim())
        }
    };
    let left = write(buffer, left, "Help", theme.heading());
    let cursor = draw_filter(help, look, left, buffer);
    if lines.is_empty() {
        let words = help.filter().map_or("", OneLine::text);
        write(buffer, list, &format!("no help on '{words}'"), theme.dim());
    }
    let columns = help.key_columns(usize::from(area.width));
    for (number, line) in lines.iter().enumerate() {
        let place = row(list, number);
        match line {
            Line::Gap => {}
            Line::Part(part) => {
                write(buffer, place, part, theme.heading());
            }
            Line::Row(keys, what) => {
                let keys = cut(keys, columns);
                let gap = " ".repeat(columns + 2 - width(&keys));
                let left = write(buffer, place, "  ", theme.text());
                let left = write(buffer, left, &keys, theme.strong());
                let left = write(buffer, left, &gap, theme.text());
                write(buffer, left, what, theme.text());
            }
        }
    }
    let hint: &[(&str, &str)] = match (help.is_typing(), help.filter()) {
        (true, _) => &[("↑↓", "scroll"), ("Enter", "keep"), ("Esc", "show all")],
        (false, Some(_)) => &[("↑↓", "scroll"), ("/", "find"), ("Esc", "show all")],
        (false, None) => &[("↑↓", "scroll"), ("/", "find"), ("Esc", "back")],
    };
    hints(buffer, rows(area, height - keys, keys), theme, hint);
    cursor
}

/// Draws the words that are searched for and returns the cursor position while they are typed.
fn draw_filter(help: &Help, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let filter = help.filter()?;
    let left = write(buffer, area, " / ", look.theme.heading());
    let cursor = draw_line(filter, "words to find", look.theme, left, buffer);
    cursor.filter(|_| help.is_typing())
}
