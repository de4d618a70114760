//! Draws the tool permission dialog.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use tertulia_agents::approval::{Risk, Verdict};

use super::draw_answers;
use crate::dialog::approval::{ANSWERS, Approval, LineKind, OTHER_LINES};
use crate::geometry::{DIALOG_COLUMNS, DIALOG_FRAME, dialog_inside, dialog_lines, row, rows};
use crate::text::cut;
use crate::view::brush::{Look, framed, hints, write, write_right};

/// Maximum width of a tool name.
const NAME_COLUMNS: usize = 32;

/// Draws the dialog.
pub fn draw(approval: &Approval, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let size = area.as_size();
    let lines = approval.lines(dialog_inside(size).width);
    let seen = dialog_lines(size, lines.len(), OTHER_LINES);
    let request = approval.request();
    let style = match request.risk {
        Risk::Low => theme.frame(),
        Risk::Medium => theme.warning(),
        Risk::High => theme.error(),
    };
    let height = u16::try_from(seen + OTHER_LINES).unwrap_or(u16::MAX);
    let wanted = (DIALOG_COLUMNS, height.saturating_add(DIALOG_FRAME.height));
    // The tool and its risk come first, and the name is cut so that it cannot push the risk out of
    // view.
    let title = format!(
        "{} ({} risk) for {}",
        cut(&request.call.name, NAME_COLUMNS),
        request.risk.name(),
        approval.who()
    );
    let inside = framed(buffer, area, wanted, (&title, style));
    // The answers always get a line; the preview gets the next.
    let height = usize::from(inside.height);
    let preview = rows(inside, 0, seen.min(height.saturating_sub(1)));
    let top = approval.top(lines.len(), usize::from(preview.height));
    for (number, line) in lines
        .iter()
        .skip(top)
        .take(preview.height.into())
        .enumerate()
    {
        let style = match line.kind {
            LineKind::Same => theme.text(),
            LineKind::Added => theme.added(),
            LineKind::Removed => theme.removed(),
            LineKind::Place => theme.heading(),
            LineKind::Note => theme.dim(),
        };
        write(buffer, row(preview, number), &line.text, style);
    }
    let below = rows(inside, preview.height.into(), height);
    if below.height >= 2 {
        let more = lines.len() - top - usize::from(preview.height).min(lines.len() - top);
        draw_rest(approval, (top, more), look, below, buffer);
    }
    let answers = ANSWERS.map(|answer| match answer {
        Verdict::Yes => "y once",
        Verdict::Always => "a this session",
        Verdict::No => "n no",
    });
    let chosen = ANSWERS
        .iter()
        .position(|answer| *answer == approval.chosen());
    let last = row(inside, height.saturating_sub(1));
    let is_awake = approval.is_awake(look.now);
    if approval.is_writing() && is_awake {
        let keys = [
            ("Tab", "answer"),
            ("Esc", "no"),
            ("", "you are writing below"),
        ];
        return hints(buffer, last, theme, &keys);
    }
    let enter = match approval.chosen() {
        Verdict::Yes => "allow once",
        Verdict::Always => "allow for this session",
        Verdict::No => "no",
    };
    draw_answers(
        &answers,
        (chosen.unwrap_or_default(), &[("Enter", enter)]),
        is_awake,
        theme,
        last,
        buffer,
    );
}

/// Shows how many preview lines are hidden and what "always" would allow.
fn draw_rest(
    approval: &Approval,
    (before, after): (usize, usize),
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) {
    let theme = look.theme;
    let hidden = match (before, after) {
        (0, 0) => String::new(),
        (before, 0) => format!("↑ {before} lines before"),
        (0, after) => format!("↓ {after} more lines"),
        (before, after) => format!("↑ {before} lines before, ↓ {after} more"),
    };
    let first = row(area, 0);
    write_right(buffer, first, &hidden, theme.warning());
    if area.height >= 3 {
        write(buffer, row(area, 1), &approval.always(), theme.dim());
    }
}
