//! Short messages in the upper right corner.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::brush::{Look, clear, write};
use crate::tui::columns::{cut, width};
use crate::tui::item::Tone;
use crate::tui::toast::Toasts;

/// How wide a message is at most.
const MOST_COLUMNS: u16 = 60;

/// Draws the messages over what is there.
pub fn draw(toasts: &Toasts, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    let theme = look.theme;
    for (toast, y) in toasts.seen(look.now).zip(area.top()..area.bottom()) {
        let (mark, style) = match toast.tone {
            Tone::Note => ("·", theme.text()),
            Tone::Warning => ("!", theme.warning()),
            Tone::Error => ("✗", theme.error()),
        };
        let style = match toast.is_fading(look.now) {
            true => style.patch(theme.dim()),
            false => style,
        };
        let room = usize::from(area.width.min(MOST_COLUMNS));
        let text = cut(&format!(" {mark} {} ", toast.text), room);
        let columns = u16::try_from(width(&text)).unwrap_or(area.width);
        let place = Rect {
            x: area.right() - columns.min(area.width),
            y,
            width: columns.min(area.width),
            height: 1,
        };
        clear(buffer, place);
        write(buffer, place, &text, style);
    }
}
