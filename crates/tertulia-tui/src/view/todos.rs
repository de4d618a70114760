//! Draws the todo list of an agent.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use tertulia_agents::{Todo, TodoState};

use super::brush::{Look, write};
use crate::geometry::row;
use crate::theme::Theme;
use crate::todos::Todos;

/// Draws the list into an area of the height that it requested; in a single row, only the current
/// item.
pub fn draw(todos: &Todos, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    if todos.is_empty() {
        return;
    }
    let left = write(buffer, area, &todos.heading(), theme.dim());
    if area.height == 1 {
        if let Some(todo) = todos.current() {
            let left = write(buffer, left, " · ", theme.dim());
            draw_todo(todo, theme, left, buffer);
        }
        return;
    }
    for (number, todo) in todos.seen(area.height.into()).iter().enumerate() {
        let left = write(buffer, row(area, number + 1), "  ", theme.text());
        draw_todo(todo, theme, left, buffer);
    }
}

fn draw_todo(todo: &Todo, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let (mark, style) = look_of(todo.state, theme);
    let left = write(buffer, area, mark, style);
    let left = write(buffer, left, " ", theme.text());
    write(buffer, left, &todo.text, style);
}

fn look_of(state: TodoState, theme: Theme) -> (&'static str, Style) {
    match state {
        TodoState::Pending => ("☐", theme.text()),
        TodoState::InProgress => ("◐", theme.strong()),
        TodoState::Completed => ("☑", theme.dim()),
        TodoState::Cancelled => ("✗", theme.dim()),
    }
}
