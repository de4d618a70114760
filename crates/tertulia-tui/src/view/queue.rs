//! Draws the queue of team members waiting to speak, and the queued messages of the user.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, write};
use crate::geometry::row;
use crate::queue::{NEXT, Queue, THEN, more};
use crate::text::{cut, one_line, width};
use crate::type_ahead::TypeAhead;

/// Draws the line into the first row of an area, if any member waits.
pub fn draw(queue: &Queue, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let area = row(area, 0).intersection(buffer.area);
    let (seen, left) = queue.seen(usize::from(area.width));
    if seen.is_empty() {
        return;
    }
    let mut area = write(buffer, area, NEXT, theme.dim());
    for (place, words) in seen.iter().enumerate() {
        if place > 0 {
            area = write(buffer, area, THEN, theme.dim());
        }
        let style = if place == 0 {
            theme.strong()
        } else {
            theme.text()
        };
        area = write(buffer, area, words, style);
    }
    write(buffer, area, &more(left), theme.dim());
}

/// Draws the first queued message of the user, or what can be done with the edited one.
pub fn draw_ahead(ahead: &TypeAhead, look: Look, area: Rect, buffer: &mut Buffer) {
    let dim = look.theme.dim();
    if let Some((place, count)) = ahead.edited() {
        let which = match count {
            1 => "editing the queued message".to_owned(),
            count => format!("editing queued message {place} of {count}"),
        };
        let text = format!("{which} · Enter keep · Ctrl+X remove");
        write(buffer, area, &text, dim);
        return;
    }
    let mut waiting = ahead.waiting();
    let Some(first) = waiting.next() else {
        return;
    };
    let more = match waiting.len() {
        0 => String::new(),
        more => format!(" (+{more})"),
    };
    let (before, after) = ("queued: ", format!("{more} · ↑ edit"));
    let room = usize::from(area.width).saturating_sub(width(before) + width(&after));
    let text = format!("{before}{}{after}", cut(&one_line(first), room.max(1)));
    write(buffer, area, &text, dim);
}
