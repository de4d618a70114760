//! Draws the question for permission to use a tool.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use tertulia_agents::approval::Risk;

use super::draw_answers;
use crate::dialog::approval::{Approval, CHOICES, Choice};
use crate::geometry::{row, rows};
use crate::text::{cut, width};
use crate::view::brush::{Look, clear, hints, rule, write, write_right};
use crate::view::transcript::draw_row;

/// Answers, the most telling first; a narrow screen shows the first that fit.
const LABELS: [[&str; CHOICES.len()]; 4] = [
    [
        "y once",
        "a this session",
        "n no",
        "i no, and say what to do instead",
    ],
    ["y once", "a this session", "n no", "i instead…"],
    ["y once", "a session", "n no", "i but…"],
    ["y", "a", "n", "i"],
];
/// Columns around an answer.
const AROUND: usize = 3;

/// Draws the question and returns the cursor position, if text is written in it.
pub fn draw(approval: &Approval, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let area = area.intersection(buffer.area);
    clear(buffer, area);
    let height = usize::from(area.height);
    if height >= 2 {
        draw_heading(approval, look, row(area, 0), buffer);
    }
    let inside = match area.width {
        0..5 => area,
        width => Rect {
            x: area.x + 1,
            width: width - 2,
            ..area
        },
    };
    let preview = rows(inside, 1, approval.seen(area.height));
    let lines = approval.rows(area.width);
    let seen = usize::from(preview.height);
    let top = approval.top(lines.len(), seen);
    for (number, line) in lines.iter().skip(top).take(seen).enumerate() {
        draw_row(line, row(preview, number), buffer);
    }
    if height >= 4 {
        let after = lines.len() - top - seen.min(lines.len() - top);
        let hidden = hidden(top, after);
        draw_meaning(approval, &hidden, look, row(inside, height - 2), buffer);
    }
    draw_choices(
        approval,
        look,
        row(inside, height.saturating_sub(1)),
        buffer,
    )
}

/// Draws who wants to do what on a line across the screen. The risk comes first, so that no name can
/// push it out of view.
fn draw_heading(approval: &Approval, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let risk = approval.request().risk;
    let style = match risk {
        Risk::Low => theme.heading(),
        Risk::Medium => theme.warning(),
        Risk::High => theme.error(),
    };
    rule(buffer, area, theme);
    let wide = usize::from(area.width);
    let risk = format!(" {} risk ", risk.name());
    let risk_columns = width(&risk) + 2;
    if wide > risk_columns {
        let right = Rect {
            width: area.width - 2,
            ..area
        };
        write_right(buffer, right, &risk, style);
    }
    let room = wide.saturating_sub(risk_columns + 4);
    let title = format!(" {} ", cut(&approval.heading(), room));
    let left = Rect {
        x: area.x + area.width.min(2),
        width: area.width.saturating_sub(2),
        ..area
    };
    if room > 0 {
        write(buffer, left, &title, style);
    }
}

/// Describes the rows that are not seen.
fn hidden(before: usize, after: usize) -> String {
    match (before, after) {
        (0, 0) => String::new(),
        (before, 0) => format!("PgUp ↑ {before} lines before"),
        (0, after) => format!("PgDn ↓ {after} more lines"),
        (before, after) => format!("PgUp ↑ {before}, PgDn ↓ {after} more lines"),
    }
}

/// Draws what the chosen answer means, or else what "this session" would allow.
fn draw_meaning(approval: &Approval, hidden: &str, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let left = write_right(buffer, area, hidden, theme.warning());
    // A longer text is part of the preview.
    let always = Some(approval.always()).filter(|always| width(always) <= usize::from(area.width));
    let meaning = match (approval.instead(), approval.chosen()) {
        (Some(_), _) => format!("what should {} do instead?", approval.who()),
        (None, _) if !approval.has_chosen() => always.unwrap_or_default(),
        (None, Choice::Once) => "Enter: allow this once".to_owned(),
        (None, Choice::Session) => match always {
            Some(always) => always.replacen("a:", "Enter:", 1),
            None => "Enter: allow it for this session".to_owned(),
        },
        (None, Choice::No) => "Enter: no".to_owned(),
        (None, Choice::Instead) => "Enter: no, then write what to do instead".to_owned(),
    };
    write(buffer, left, &meaning, theme.dim());
}

fn draw_choices(
    approval: &Approval,
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let theme = look.theme;
    if let Some(instead) = approval.instead() {
        let keys = [("Enter", "tell"), ("Esc", "back")];
        let field = write(buffer, area, "instead> ", theme.strong());
        let wide = field.width > 40;
        let field = Rect {
            width: field.width - if wide { 24 } else { 0 },
            ..field
        };
        let (seen, column) = instead.seen(field.width);
        write(buffer, field, seen, theme.text());
        let rest = Rect {
            x: field.right() + 2,
            width: area.right().saturating_sub(field.right() + 2),
            ..field
        };
        hints(buffer, rest, theme, &keys);
        return Some(Position::new(field.x + column, field.y));
    }
    let is_awake = approval.is_awake(look.now);
    if approval.is_writing() && is_awake {
        let keys = [
            ("Tab", "answer"),
            ("Esc", "no"),
            ("", "you are writing below"),
        ];
        hints(buffer, area, theme, &keys);
        return None;
    }
    let fits = |labels: &&[&str; CHOICES.len()]| {
        let needed: usize = labels.iter().map(|label| width(label) + AROUND).sum();
        needed <= usize::from(area.width) + 1
    };
    let labels = LABELS.iter().find(fits).unwrap_or(&LABELS[3]);
    let chosen = CHOICES
        .iter()
        .position(|(_, choice)| *choice == approval.chosen());
    let enter: &[(&str, &str)] = match approval.has_chosen() {
        true => &[],
        false => &[("Enter", "no")],
    };
    draw_answers(
        labels,
        (chosen.unwrap_or_default(), enter),
        is_awake,
        theme,
        area,
        buffer,
    );
    None
}
