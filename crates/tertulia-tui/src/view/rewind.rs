//! Draws the list of messages to rewind to.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tertulia_engine::text::ago;

use super::brush::{Look, counted, hints, rule, write, write_right};
use crate::geometry::{rewind_areas, row, rows};
use crate::rewind::Rewind;
use crate::text::fold;

/// Draws the list.
pub fn draw(rewind: &Rewind, look: Look, area: Rect, buffer: &mut Buffer) {
    let (areas, theme) = (rewind_areas(area), look.theme);
    write(
        buffer,
        areas.head,
        "Rewind to just before…",
        theme.heading(),
    );
    let seen = usize::from(areas.list.height).max(1);
    let (chosen, top) = rewind.places(seen);
    let moments = rewind.moments().iter().enumerate();
    for (place, moment) in moments.skip(top).take(seen) {
        let line = row(areas.list, place - top).intersection(buffer.area);
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
        write(buffer, areas.list, words, theme.dim());
    }
    if let Some(moment) = rewind.chosen() {
        rule(buffer, areas.message, theme);
        draw_changed(rewind, look, row(areas.message, 0), buffer);
        let inside = rows(areas.message, 1, usize::from(areas.message.height));
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
    hints(buffer, areas.keys, theme, &keys);
}

/// Says which files the session has changed since: they stay as they are.
fn draw_changed(rewind: &Rewind, look: Look, area: Rect, buffer: &mut Buffer) {
    let files = rewind.changed();
    if files.is_empty() {
        return;
    }
    let count = counted(files.len() as u64, "file");
    let words = format!(
        " {count} changed since, not put back: {} ",
        files.join(", ")
    );
    let place = Rect {
        x: area.x + area.width.min(2),
        width: area.width.saturating_sub(4),
        ..area
    };
    write(buffer, place, &words, look.theme.warning());
}
