//! Draws a question to the user.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::dialog::question::Question;
use crate::dialog::subject::{Answer, Subject};
use crate::geometry::{row, rows};
use crate::text::{cut, width};
use crate::theme::Theme;
use crate::view::brush::{Look, clear, hints, rule, write, write_right};
use crate::view::transcript::draw_row;

/// Columns around an answer.
const AROUND: usize = 3;

/// Draws the question and returns the cursor position, if text is written in it.
pub fn draw(question: &Question, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let area = area.intersection(buffer.area);
    clear(buffer, area);
    let height = usize::from(area.height);
    if height >= 2 {
        draw_heading(question, look, row(area, 0), buffer);
    }
    let inside = match area.width {
        0..5 => area,
        width => Rect {
            x: area.x + 1,
            width: width - 2,
            ..area
        },
    };
    let details = rows(inside, 1, question.seen(area.height));
    let lines = question.rows(area.width);
    let seen = usize::from(details.height);
    let top = question.top(lines.len(), seen);
    for (number, line) in lines.iter().skip(top).take(seen).enumerate() {
        draw_row(line, row(details, number), buffer);
    }
    if height >= 4 || height == 3 && lines.is_empty() {
        let after = lines.len() - top - seen.min(lines.len() - top);
        let hidden = hidden(top, after);
        draw_meaning(question, &hidden, look, row(inside, height - 2), buffer);
    }
    draw_choices(
        question,
        look,
        row(inside, height.saturating_sub(1)),
        buffer,
    )
}

/// Draws the heading on a line across the screen. The mark comes first, so that no name can push it
/// out of view.
fn draw_heading(question: &Question, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let (mark, style) = question.subject().mark(theme);
    rule(buffer, area, theme);
    let wide = usize::from(area.width);
    let mark = match mark.as_str() {
        "" => mark,
        mark => format!(" {mark} "),
    };
    let mark_columns = width(&mark) + 2;
    if wide > mark_columns {
        let right = Rect {
            width: area.width - 2,
            ..area
        };
        write_right(buffer, right, &mark, style);
    }
    let room = wide.saturating_sub(mark_columns + 4);
    let title = format!(" {} ", cut(&question.subject().heading(), room));
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

/// Draws what the chosen answer means, or else a note about the answers.
fn draw_meaning(question: &Question, hidden: &str, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let subject = question.subject();
    let left = write_right(buffer, area, hidden, theme.warning());
    // A longer text is part of the details.
    let note = Some(subject.note()).filter(|note| width(note) <= usize::from(area.width));
    let answer = question.chosen().answer;
    let meaning = match (question.instead(), subject) {
        (Some(_), Subject::Permission(asked)) => {
            format!("what should {} do instead?", asked.who)
        }
        _ if !question.has_chosen() => note.unwrap_or_default(),
        _ => match note.filter(|_| answer == Answer::Session) {
            Some(note) => note.replacen("a:", "Enter:", 1),
            None => format!("Enter: {}", subject.meaning(answer)),
        },
    };
    write(buffer, left, &meaning, theme.dim());
}

fn draw_choices(
    question: &Question,
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let theme = look.theme;
    if let Some(instead) = question.instead() {
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
    let is_awake = question.is_awake(look.now);
    let (_, out) = question.subject().way_out();
    if question.is_writing() && is_awake {
        let keys = [
            ("Tab", "answer"),
            ("Esc", out),
            ("", "you are writing below"),
        ];
        hints(buffer, area, theme, &keys);
        return None;
    }
    let default = question.subject().meaning(question.chosen().answer);
    let keys = [("Enter", default), ("Esc", out)];
    // The meaning of an answer that is chosen stands above it.
    let keys = match question.has_chosen() {
        true => &[][..],
        false if default == out => &keys[..1],
        false => &keys,
    };
    draw_answers(question, keys, is_awake, theme, area, buffer);
    None
}

/// Draws the answers side by side with key hints; highlights the chosen one. Dim without hints while
/// the question does not accept keys yet.
fn draw_answers(
    question: &Question,
    keys: &[(&str, &str)],
    is_awake: bool,
    theme: Theme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let labels = labels(question, usize::from(area.width));
    let mut left = row(area, 0);
    for (number, label) in labels.enumerate() {
        let style = match (is_awake, number == question.chosen_place()) {
            (false, _) => theme.dim(),
            (true, true) => theme.strong().patch(theme.chosen()),
            (true, false) => theme.strong(),
        };
        left = write(buffer, left, &format!(" {label} "), style);
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

/// Returns the most telling labels of the answers that fit into a width.
fn labels(question: &Question, columns: usize) -> impl Iterator<Item = &'static str> {
    let choices = question.choices();
    let needed = |size: usize| -> usize {
        let labels = choices.iter().map(|choice| choice.labels[size]);
        labels.map(|label| width(label) + AROUND).sum()
    };
    let size = (0..2)
        .find(|size| needed(*size) <= columns + 1)
        .unwrap_or(2);
    choices.iter().map(move |choice| choice.labels[size])
}
