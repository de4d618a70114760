//! A question that is answered by a line.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::tui::dialog::ask::Ask;
use crate::tui::view::brush::{Look, framed, hints, row, write};
use crate::tui::view::picker::draw_line;

/// How wide it is.
const COLUMNS: u16 = 64;

/// Draws the question. Where the cursor is.
pub fn draw(ask: &Ask, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let theme = look.theme;
    let title = (ask.question.as_str(), theme.heading());
    let inside = framed(buffer, area, (COLUMNS, 5), title);
    let left = write(buffer, row(inside, 0), "> ", theme.heading());
    let cursor = draw_line(&ask.line, &ask.placeholder, theme, left, buffer);
    hints(
        buffer,
        row(inside, 2),
        theme,
        &[("Enter", "keep"), ("Esc", "leave it")],
    );
    cursor
}
