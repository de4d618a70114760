//! Draws the activity line above the input during a turn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, write};
use crate::activity::{Activity, Doing};
use crate::geometry::row;

/// Draws the line into the first row of an area, if there is any activity.
pub fn draw(activity: &Activity, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = row(area, 0).intersection(buffer.area);
    let Some(line) = activity.line(look.now, usize::from(area.width)) else {
        return;
    };
    let theme = look.theme;
    let style = match activity.doing() {
        Some(Doing::Waiting | Doing::Retrying { .. }) => theme.warning(),
        _ => theme.heading(),
    };
    let left = write(buffer, area, &line.mark.to_string(), style);
    let left = write(buffer, left, " ", theme.text());
    let left = write(buffer, left, &line.what, theme.text());
    write(buffer, left, &line.rest, theme.dim());
}
