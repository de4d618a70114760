//! Draws the list of messages to rewind to.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, hints, row, rows, rule, write, write_right};
use crate::columns::fold;
use crate::rewind::Rewind;
use tertulia_engine::text::ago;

/// Below this height the full text of the chosen message is not shown.
const LOW: usize = 12;

/// Areas of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    head: Rect,
    /// List of messages.
    pub list: Rect,
    whole: Rect,
    keys: Rect,
}

/// Divides an area; a small one goes to the list first.
pub fn parts(area: Rect) -> Parts {
    let height = usize::from(area.height);
    let (head, keys) = (usize::from(height >= 3), usize::from(height >= 2));
    let gap = usize::from(height >= 8);
    let whole = if height >= LOW { height / 3 } else { 0 };
    let above = head + gap;
    let below = whole + keys;
    Parts {
        head: rows(area, 0, head),
        list: rows(area, above, height.saturating_sub(above + below)),
        whole: rows(area, height - below.min(height), whole),
        keys: rows(area, height - keys, keys),
    }
}

/// Draws the list.
pub fn draw(rewind: &Rewind, look: Look, area: Rect, buffer: &mut Buffer) {
    let (parts, theme) = (parts(area), look.theme);
    write(buffer, parts.head, "Rewind to before", theme.heading());
    let seen = usize::from(parts.list.height).max(1);
    let (chosen, top) = rewind.places(seen);
    let moments = rewind.moments().iter().enumerate();
    for (place, moment) in moments.skip(top).take(seen) {
        let line = row(parts.list, place - top).intersection(buffer.area);
        let mark = if place == chosen { "› " } else { "  " };
        let left = write(buffer, line, mark, theme.heading());
        let left = write_right(buffer, left, &ago(moment.at, look.now), theme.dim());
        write(buffer, left, moment.text.trim_start(), theme.text());
        if place == chosen {
            buffer.set_style(line, theme.chosen());
        }
    }
    if rewind.moments().is_empty() {
        let words = match (rewind.is_reading(), rewind.trouble()) {
            (_, Some(why)) => why,
            (true, None) => "…",
            (false, None) => "You have not sent a message yet.",
        };
        write(buffer, parts.list, words, theme.dim());
    }
    if let Some(moment) = rewind.chosen() {
        rule(buffer, parts.whole, theme);
        let inside = rows(parts.whole, 1, usize::from(parts.whole.height));
        let most = usize::from(inside.height);
        let (lines, _) = fold(&moment.text, usize::from(inside.width), most);
        for (number, line) in lines.iter().enumerate() {
            write(buffer, row(inside, number), line, theme.text());
        }
    }
    let keys = [
        ("Enter", "continue from before it, in a fork"),
        ("↑↓", "choose"),
        ("Esc", "stay"),
    ];
    hints(buffer, parts.keys, theme, &keys);
}
