//! Questions and messages that stand before everything else.

pub mod approval;
pub mod confirm;
pub mod failure;
pub mod restore;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{hints, row, write};
use crate::tui::theme::Theme;

/// The widest dialog. Longer lines are hard to read.
pub const MOST_COLUMNS: u16 = 100;

/// How an answer is chosen where the letters alone do not say.
const CHOOSE: &[(&str, &str)] = &[("←→", "choose"), ("Enter", "answer")];

/// Draws answers beside each other, and the keys for them. One is chosen; those that are not awake are dim.
fn draw_answers(
    answers: &[&str],
    (chosen, keys): (usize, &[(&str, &str)]),
    is_awake: bool,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let mut left = row(area, 0);
    for (number, answer) in answers.iter().enumerate() {
        let style = match (is_awake, number == chosen) {
            (false, _) => theme.dim(),
            (true, true) => theme.strong().patch(theme.chosen()),
            (true, false) => theme.strong(),
        };
        left = write(buffer, left, &format!(" {answer} "), style);
        left = write(buffer, left, " ", theme.text());
    }
    if is_awake {
        let room = Rect {
            x: left.x.saturating_add(1).min(left.right()),
            width: left.width.saturating_sub(1),
            ..left
        };
        hints(buffer, room, theme, keys);
    }
}
