//! Draws dialogs in front of everything else.

pub mod approval;
pub mod confirm;
pub mod failure;
pub mod held;
pub mod restore;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{hints, write};
use crate::geometry::row;
use crate::theme::Theme;

/// Key hints for answers whose labels do not explain how to choose.
const CHOOSE: &[(&str, &str)] = &[("←→", "choose"), ("Enter", "answer")];

/// Draws the answers side by side with their key hints; highlights the chosen one. Dim without
/// hints while the dialog does not accept keys yet.
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
