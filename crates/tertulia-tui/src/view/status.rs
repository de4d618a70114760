//! Draws the status line.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::brush::{Look, write};
use crate::geometry::row;
use crate::status::{AgentState, DOT, GAP, Group, Kind, Part, Saving, Status, group_columns};
use crate::theme::Theme;

/// Draws the line into the first row of an area.
pub fn draw(status: &Status, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = row(area, 0).intersection(buffer.area);
    let columns = usize::from(area.width);
    let parts = status.parts(columns);
    let wide = |group| group_columns(&parts, group);
    let (left, middle, right) = (wide(Group::Left), wide(Group::Middle), wide(Group::Right));
    let right_at = columns.saturating_sub(right);
    // Centred if there is room, so that it does not move whenever text beside it changes.
    let least = left + GAP;
    let most = right_at.saturating_sub(GAP + middle).max(least);
    let middle_at = (columns.saturating_sub(middle) / 2).clamp(least, most);
    for (group, at) in [
        (Group::Left, 0),
        (Group::Middle, middle_at),
        (Group::Right, right_at),
    ] {
        let parts = parts.iter().filter(|part| part.kind.group() == group);
        draw_group(status, parts, look.theme, from(area, at), buffer);
    }
}

/// Returns the part of a row from a column on.
fn from(area: Rect, column: usize) -> Rect {
    let column = u16::try_from(column).unwrap_or(area.width).min(area.width);
    Rect {
        x: area.x + column,
        width: area.width - column,
        ..area
    }
}

fn draw_group<'a>(
    status: &Status,
    parts: impl Iterator<Item = &'a Part>,
    theme: Theme,
    mut area: Rect,
    buffer: &mut Buffer,
) {
    for (number, part) in parts.enumerate() {
        if number > 0 {
            area = write(buffer, area, DOT, theme.dim());
        }
        area = write(buffer, area, &part.text, style(status, part.kind, theme));
    }
}

fn style(status: &Status, kind: Kind, theme: Theme) -> Style {
    match kind {
        Kind::State => state_style(&status.agent, theme),
        Kind::Saving => match status.saving {
            Saving::Saved | Saving::Saving | Saving::Sealed | Saving::Blank => theme.dim(),
            Saving::Nothing | Saving::ReadOnly => theme.warning(),
            Saving::Unsaved => theme.loud(),
        },
        Kind::Who => theme.strong(),
        Kind::Title | Kind::Pair => theme.text(),
        Kind::Unseen | Kind::Reading | Kind::Permissions => theme.warning(),
        _ => theme.dim(),
    }
}

fn state_style(state: &AgentState, theme: Theme) -> Style {
    match state {
        AgentState::Ready => theme.added(),
        AgentState::Thinking
        | AgentState::Speaking
        | AgentState::UsingTool(_)
        | AgentState::Running(_) => theme.heading(),
        AgentState::Waiting(_) | AgentState::Retrying { .. } | AgentState::Unavailable => {
            theme.warning()
        }
        AgentState::Failed => theme.loud(),
        AgentState::Opening | AgentState::Leaving => theme.dim(),
    }
}
