//! Draws the queue of team members waiting to speak.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, write};
use crate::geometry::row;
use crate::queue::{NEXT, Queue, THEN, more};

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
