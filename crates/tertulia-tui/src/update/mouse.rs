//! The mouse: the wheel scrolls, a click chooses, dragging selects.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::reading::followed;
use super::{overlay, scrolled, written_to};
use crate::effect::{Effect, Now};
use crate::geometry;
use crate::state::State;
use crate::transcript;

/// Rows per notch of the mouse wheel.
const NOTCH: isize = 3;

/// Applies a mouse event.
pub fn pointed(state: &mut State, mouse: MouseEvent, now: Now) -> Vec<Effect> {
    let by = match mouse.kind {
        MouseEventKind::ScrollUp => -NOTCH,
        MouseEventKind::ScrollDown => NOTCH,
        _ => 0,
    };
    let at = Position::new(mouse.column, mouse.row);
    let is_press = mouse.kind == MouseEventKind::Down(MouseButton::Left);
    if !state.overlays.is_empty() {
        return match by {
            0 if is_press => overlay::clicked(state, at, now),
            0 => Vec::new(),
            by => overlay::wheeled(state, by, now),
        };
    }
    if by != 0 {
        return scrolled(state, |transcript| transcript.scroll(by));
    }
    let areas = geometry::screen_areas(state);
    if is_press && !state.reading {
        let (_, rows) = state.input.popup_areas(geometry::above_rule(&areas));
        if rows.contains(at) {
            let row = usize::from(at.y - rows.y);
            let did = state.input.click(row, usize::from(rows.height));
            return written_to(state, did, now);
        }
    }
    let area = areas.transcript;
    let column = mouse
        .column
        .saturating_sub(geometry::right_of_gutter(area).x);
    let did = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) if area.contains(at) => {
            state.transcript.press(mouse.row - area.y, column)
        }
        MouseEventKind::Down(MouseButton::Left) => {
            state.transcript.deselect();
            transcript::Did::Changed
        }
        MouseEventKind::Drag(MouseButton::Left) => {
            state.transcript.drag(row_in(area, mouse.row), column)
        }
        MouseEventKind::Up(MouseButton::Left) => state.transcript.release(),
        _ => return Vec::new(),
    };
    followed(state, did, now)
}

fn row_in(area: Rect, row: u16) -> i32 {
    i32::from(row) - i32::from(area.y)
}
