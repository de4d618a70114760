//! Draws the dialog that offers to resume an earlier session.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tertulia_engine::text::ago;

use super::{CHOOSE, draw_answers};
use crate::dialog::restore::{Chosen, Restore};
use crate::geometry::row;
use crate::text::fold;
use crate::view::brush::{Look, counted, framed, write};

/// Width of the dialog.
const COLUMNS: u16 = 72;
/// Maximum number of lines that show what the session was about.
const MOST_LINES: usize = 6;

/// Draws the dialog.
pub fn draw(restore: &Restore, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let columns = usize::from(COLUMNS.min(area.width).saturating_sub(4));
    let (gist, _) = match restore.gist.trim() {
        "" => (Vec::new(), false),
        gist => fold(gist, columns, MOST_LINES),
    };
    let mut facts = vec![
        counted(restore.messages, "message"),
        ago(restore.updated_at, look.now),
        restore.id.short(),
    ];
    if let Some(team) = &restore.team {
        facts.insert(0, format!("team {team}"));
    }
    let mut lines = vec![
        (restore.title.clone(), theme.strong()),
        (facts.join(" · "), theme.dim()),
        (String::new(), theme.text()),
    ];
    if !gist.is_empty() {
        lines.extend(gist.into_iter().map(|line| (line, theme.text())));
        lines.push((String::new(), theme.text()));
    }
    let height = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_add(4);
    let title = ("Resume an earlier session?", theme.heading());
    let inside = framed(buffer, area, (COLUMNS, height), title);
    let height = usize::from(inside.height);
    let answers_at = height.saturating_sub(2);
    for (number, (line, style)) in lines.iter().take(answers_at).enumerate() {
        write(buffer, row(inside, number), line, *style);
    }
    let answers = ["R resume", "N new session"];
    let chosen = usize::from(restore.chosen == Chosen::New);
    draw_answers(
        &answers,
        (chosen, CHOOSE),
        restore.quiet.is_over(look.now),
        theme,
        row(inside, answers_at),
        buffer,
    );
    let (hint, style) = match restore.is_puzzled {
        true => (
            "Press R to resume, N for a new session, or Esc.",
            theme.warning(),
        ),
        false => ("Esc: decide later", theme.dim()),
    };
    write(buffer, row(inside, answers_at + 1), hint, style);
}
