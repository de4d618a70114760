//! Draws the dialog about a session that another program has open.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{CHOOSE, draw_answers};
use crate::dialog::held::{ANSWERS, Held};
use crate::geometry::row;
use crate::text::fold;
use crate::view::brush::{Look, framed, write};

/// Width of the dialog.
const COLUMNS: u16 = 72;
/// Maximum number of lines that name the other program.
const MOST_LINES: usize = 4;

/// Draws the dialog.
pub fn draw(held: &Held, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let columns = usize::from(COLUMNS.min(area.width).saturating_sub(4));
    let words = format!("It is open in {}.", held.holder);
    let (lines, _) = fold(&words, columns, MOST_LINES);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX) + 5;
    let title = ("Another program has this session open", theme.heading());
    let inside = framed(buffer, area, (COLUMNS, height), title);
    let answers_at = usize::from(inside.height).saturating_sub(2);
    for (number, line) in lines.iter().take(answers_at).enumerate() {
        write(buffer, row(inside, number), line, theme.text());
    }
    let answers = ANSWERS.map(|(_, _, label)| label);
    draw_answers(
        &answers,
        (held.chosen, CHOOSE),
        held.quiet.is_over(look.now),
        theme,
        row(inside, answers_at),
        buffer,
    );
    let (hint, style) = match held.is_puzzled {
        true => ("Press R, F or T, or Esc to read.", theme.warning()),
        false => (
            "After a take-over the other program goes on in a fork.",
            theme.dim(),
        ),
    };
    write(buffer, row(inside, answers_at + 1), hint, style);
}
