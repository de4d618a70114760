//! Draws toasts in the upper right corner.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, clear, write};
use crate::item::Tone;
use crate::text::{cut, fold, width};
use crate::toast::Toasts;

/// Maximum width of a toast.
const MOST_COLUMNS: u16 = 60;
/// Columns besides the text: the mark and the spaces around it.
const MARGIN: usize = 4;
/// Maximum number of rows of a toast.
const MOST_ROWS: usize = 2;
/// Bytes that are wrapped at most: more than can be shown.
const MOST_BYTES: usize = 4096;

/// Draws the toasts over the screen.
pub fn draw(toasts: &Toasts, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    let theme = look.theme;
    let mut top = area.top();
    for toast in toasts.seen(look.now) {
        let (mark, style) = match toast.tone {
            Tone::Note => ("·", theme.text()),
            Tone::Warning => ("!", theme.warning()),
            Tone::Error => ("✗", theme.error()),
        };
        let style = match toast.is_fading(look.now) {
            true => style.patch(theme.dim()),
            false => style,
        };
        let rows = folded(mark, &toast.text, area.width.min(MOST_COLUMNS));
        let columns = rows.iter().map(|row| width(row)).max().unwrap_or_default();
        let columns = u16::try_from(columns).unwrap_or(area.width).min(area.width);
        for row in rows {
            let place = Rect::new(area.right() - columns, top, columns, 1).intersection(area);
            clear(buffer, place);
            write(buffer, place, &row, style);
            top = top.saturating_add(1);
        }
    }
}

/// Wraps a message; an ellipsis marks text that does not fit.
fn folded(mark: &str, text: &str, columns: u16) -> Vec<String> {
    let room = usize::from(columns);
    let text = &text[..text.floor_char_boundary(MOST_BYTES)];
    let (mut lines, goes_on) = fold(text, room.saturating_sub(MARGIN), MOST_ROWS);
    if let Some(last) = lines.last_mut().filter(|_| goes_on) {
        *last = cut(
            &format!("{}…", last.trim_end()),
            room.saturating_sub(MARGIN),
        );
    }
    let rows = lines.iter().enumerate().map(|(number, line)| {
        let mark = if number == 0 { mark } else { " " };
        cut(&format!(" {mark} {} ", line.trim_end()), room)
    });
    rows.collect()
}
