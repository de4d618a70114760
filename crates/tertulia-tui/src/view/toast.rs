//! Draws toasts into one row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::brush::{Look, clear, write};
use crate::geometry::row;
use crate::item::Tone;
use crate::text::{cut, one_line, width};
use crate::toast::{Toast, Toasts};

/// Columns before a toast.
const GAP: u16 = 1;
/// Bytes of a toast that are looked at: more than can be shown.
const MOST_BYTES: usize = 4096;

/// Draws the newest toast.
pub fn draw(toasts: &Toasts, look: Look, area: Rect, buffer: &mut Buffer) {
    draw_at(toasts, look, after(row(area, 0), GAP), buffer);
}

/// Draws the newest toast at the right end of a row, whose begin stays visible.
pub fn draw_right(toasts: &Toasts, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = row(area, 0);
    let Some(toast) = toasts.seen(look.now).last() else {
        return;
    };
    let columns = u16::try_from(width(&words(toast))).unwrap_or(area.width);
    let at = area.width.saturating_sub(columns);
    draw_at(toasts, look, after(area, at), buffer);
}

fn draw_at(toasts: &Toasts, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    let Some(toast) = toasts.seen(look.now).last() else {
        return;
    };
    let text = words(toast);
    let room = usize::from(area.width);
    let text = match width(&text) > room {
        true => cut(text.trim_end(), room),
        false => text,
    };
    let place = Rect {
        width: u16::try_from(width(&text)).unwrap_or(area.width),
        ..area
    };
    clear(buffer, place);
    write(buffer, place, &text, style(toast, look));
}

/// Returns the text with its mark, and a space on both sides.
fn words(toast: &Toast) -> String {
    let mark = match toast.tone {
        Tone::Note => "·",
        Tone::Warning => "!",
        Tone::Error => "✗",
    };
    let text = &toast.text[..toast.text.floor_char_boundary(MOST_BYTES)];
    format!(" {mark} {} ", one_line(text).trim())
}

/// A background of its own tells a toast from the line that it stands on.
fn style(toast: &Toast, look: Look) -> ratatui::style::Style {
    let theme = look.theme;
    let style = match toast.tone {
        Tone::Note => theme.text(),
        Tone::Warning => theme.warning(),
        Tone::Error => theme.error(),
    };
    match toast.is_fading(look.now) {
        true => style.patch(theme.dim()),
        false => style.add_modifier(Modifier::REVERSED),
    }
}

/// Returns the part of a row after so many columns.
fn after(area: Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width);
    Rect {
        x: area.x + columns,
        width: area.width - columns,
        ..area
    }
}
