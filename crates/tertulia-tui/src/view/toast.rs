//! Draws toasts into one row.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::brush::{Look, clear, write};
use crate::geometry::row;
use crate::item::Tone;
use crate::text::{cut, one_line, width};
use crate::toast::{Toast, Toasts};

/// Columns before the first toast and between two.
const GAP: u16 = 1;
/// Bytes of a toast that are looked at: more than can be shown.
const MOST_BYTES: usize = 4096;

/// Draws the newest toast, and older ones that fit beside it.
pub fn draw(toasts: &Toasts, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = row(area, 0).intersection(buffer.area);
    let mut left = after(area, GAP);
    let all: Vec<&Toast> = toasts.seen(look.now).collect();
    for (number, toast) in all.iter().rev().enumerate() {
        let text = words(toast);
        let room = usize::from(left.width);
        if number > 0 && width(&text) > room {
            return;
        }
        let text = match width(&text) > room {
            true => cut(text.trim_end(), room),
            false => text,
        };
        let columns = u16::try_from(width(&text)).unwrap_or(left.width);
        let place = Rect {
            width: columns.min(left.width),
            ..left
        };
        clear(buffer, place);
        write(buffer, place, &text, style(toast, look));
        left = after(left, place.width.saturating_add(GAP));
    }
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
