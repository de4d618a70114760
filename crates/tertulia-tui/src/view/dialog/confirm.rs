//! Draws a yes/no dialog.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{CHOOSE, draw_answers};
use crate::dialog::confirm::Confirm;
use crate::geometry::row;
use crate::text::fold;
use crate::view::brush::{Look, framed, write};

/// Width of the dialog.
const COLUMNS: u16 = 64;
/// Maximum number of lines of detail.
const MOST_LINES: usize = 10;

/// Draws the dialog.
pub fn draw(confirm: &Confirm, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let columns = usize::from(COLUMNS.min(area.width).saturating_sub(4));
    let (lines, _) = match confirm.detail.is_empty() {
        true => (Vec::new(), false),
        false => fold(&confirm.detail, columns, MOST_LINES),
    };
    let gap = u16::from(!lines.is_empty());
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX) + gap + 3;
    let title = (confirm.question.as_str(), theme.warning());
    let inside = framed(buffer, area, (COLUMNS, height), title);
    let last = usize::from(inside.height).saturating_sub(1);
    for (number, line) in lines.iter().take(last).enumerate() {
        write(buffer, row(inside, number), line, theme.text());
    }
    let chosen = usize::from(!confirm.says_yes);
    let answers = ["y yes", "n no"];
    let is_awake = confirm.quiet.is_over(look.now);
    let place = row(inside, last);
    draw_answers(&answers, (chosen, CHOOSE), is_awake, theme, place, buffer);
}
