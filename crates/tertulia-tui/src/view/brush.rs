//! Drawing primitives shared by all views. None of them draws outside its area, however small.

use jiff::Timestamp;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

use crate::geometry::row;
use crate::text::{cut, width};
use crate::theme::Theme;

/// Symbols up to this size are a single character and always stay in their cell.
const PLAIN_BYTES: usize = 4;
/// Bytes that tmux keeps per cell; other terminals keep at least as many.
const BYTES_OF_A_CELL: usize = 21;
/// Zero width joiner, which joins several emoji into one.
const JOINER: char = '\u{200d}';

/// Between two keys and their meanings.
const GAP: &str = " · ";
/// Key that leaves what is on the screen.
const WAY_OUT: &str = "Esc";

/// Theme and time, needed by every view.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colours.
    pub theme: Theme,
    /// Current time, from which ages are computed.
    pub now: Timestamp,
}

/// Writes text into the first row of an area and returns the rest of the row.
pub fn write(buffer: &mut Buffer, area: Rect, text: &str, style: Style) -> Rect {
    let row = row(area, 0).intersection(buffer.area);
    if row.is_empty() {
        return row;
    }
    let columns = usize::from(row.width);
    let (end, _) = buffer.set_stringn(row.x, row.y, cut(text, columns), columns, style);
    Rect {
        x: end,
        width: row.right().saturating_sub(end),
        ..row
    }
}

/// Writes text right-aligned into the first row of an area and returns the row before it.
pub fn write_right(buffer: &mut Buffer, area: Rect, text: &str, style: Style) -> Rect {
    let row = row(area, 0).intersection(buffer.area);
    let text = cut(text, usize::from(row.width));
    let taken = u16::try_from(width(&text)).unwrap_or(row.width);
    let left = row.width.saturating_sub(taken);
    write(
        buffer,
        Rect {
            x: row.x + left,
            width: row.width - left,
            ..row
        },
        &text,
        style,
    );
    // Leaves a gap, so that two texts do not run together.
    Rect {
        width: left.saturating_sub(1),
        ..row
    }
}

/// Draws a horizontal line across the first row of an area.
pub fn rule(buffer: &mut Buffer, area: Rect, theme: Theme) {
    let line = "─".repeat(usize::from(area.width));
    write(buffer, area, &line, theme.frame());
}

/// Draws keys and their meanings, as many as fit completely. The way out (Esc) is never left out for
/// another key.
pub fn hints(buffer: &mut Buffer, area: Rect, theme: Theme, hints: &[(&str, &str)]) {
    let mut left = row(area, 0);
    let columns = |(key, what): &(&str, &str)| width(key) + 1 + width(what);
    let is_out = |(key, _): &&(&str, &str)| *key == WAY_OUT;
    let gap = width(GAP);
    let mut kept = hints
        .iter()
        .find(is_out)
        .map_or(0, |out| columns(out) + gap);
    let mut begin = "";
    for hint in hints {
        if is_out(&hint) {
            kept = 0;
        }
        if width(begin) + columns(hint) + kept > usize::from(left.width) {
            continue;
        }
        left = write(buffer, left, begin, theme.dim());
        left = write(buffer, left, hint.0, theme.strong());
        left = write(buffer, left, " ", theme.dim());
        left = write(buffer, left, hint.1, theme.dim());
        begin = GAP;
    }
}

/// Clears an area. Also clears a wide character that reaches into it from the left: the cell under
/// its second half would not be drawn.
pub fn clear(buffer: &mut Buffer, area: Rect) {
    let area = area.intersection(buffer.area);
    let beside = Rect {
        x: area.x.saturating_sub(1),
        width: area.x.min(1),
        ..area
    };
    for place in beside.positions().filter(|_| area.width > 0) {
        let cell = buffer.cell_mut(place);
        if let Some(cell) = cell.filter(|cell| cell.cell_width() > 1) {
            cell.set_symbol(" ");
        }
    }
    Clear.render(area, buffer);
}

/// Shortens every symbol so that it stays in its cell. tmux draws bytes beyond its limit into the
/// following cells, and a trailing joiner absorbs the next character; both would remain on the
/// screen because ratatui does not know of them. Only the view is cut, not the text that can be
/// copied.
/// Without `has_flags`, flags are drawn as the letters they are made of.
pub fn keep_in_cells(buffer: &mut Buffer, has_flags: bool) {
    if !has_flags {
        spell_flags(buffer);
    }
    for cell in &mut buffer.content {
        let letter = cell.symbol();
        if letter.len() <= PLAIN_BYTES {
            continue;
        }
        let kept = kept(letter);
        if kept.len() < letter.len() {
            let kept = kept.to_owned();
            cell.set_symbol(&kept);
        }
    }
}

/// Draws flags as letters. Multiplexers take the two parts of a flag for two characters, one of which
/// would remain on the screen.
fn spell_flags(buffer: &mut Buffer) {
    let columns = usize::from(buffer.area.width).max(1);
    for place in 0..buffer.content.len() {
        let Some((first, second)) = flag(buffer.content[place].symbol()) else {
            continue;
        };
        buffer.content[place].set_char(first);
        let next = buffer.content.get_mut(place + 1);
        if let Some(next) = next.filter(|_| (place + 1) % columns != 0) {
            next.set_char(second);
        }
    }
}

/// Letters of a flag, which is a pair of regional indicators.
fn flag(symbol: &str) -> Option<(char, char)> {
    const FIRST: u32 = 0x1f1e6;
    let mut letters = symbol.chars().map(|letter| {
        let place = u32::from(letter).checked_sub(FIRST)?;
        let place = u8::try_from(place).ok().filter(|place| *place < 26)?;
        Some(char::from(b'A' + place))
    });
    Some((letters.next()??, letters.next()??)).filter(|_| letters.next().is_none())
}

/// Returns the part of a symbol that stays in its cell.
fn kept(letter: &str) -> &str {
    let kept = &letter[..letter.floor_char_boundary(BYTES_OF_A_CELL)];
    let kept = match kept.len() < letter.len() {
        // A tag sequence (subdivision flag) is invalid without its end: remove all of it.
        true => kept.trim_end_matches(|c| matches!(c, '\u{e0000}'..='\u{e007f}')),
        false => kept,
    };
    kept.trim_end_matches(JOINER)
}

/// Draws a framed box in the middle of an area, clipped to the area, clears its content and returns
/// the inside.
pub fn framed(
    buffer: &mut Buffer,
    area: Rect,
    (columns, lines): (u16, u16),
    (title, style): (&str, Style),
) -> Rect {
    let area = area.intersection(buffer.area);
    let (width, height) = (columns.min(area.width), lines.min(area.height));
    let frame = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    clear(buffer, frame);
    let room = usize::from(width.saturating_sub(4));
    let title = match cut(title, room) {
        title if title.is_empty() => title,
        title => format!(" {title} "),
    };
    let block = Block::bordered().border_style(style).title(title);
    let inside = block.inner(frame);
    block.render(frame, buffer);
    // A space on both sides, if the inside is wide enough.
    if inside.width > 4 {
        return Rect {
            x: inside.x + 1,
            width: inside.width - 2,
            ..inside
        };
    }
    inside
}

/// Formats a count with its noun: "1 message", "2 messages".
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// Formats a number with digit groups: `12 345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(buffer: &Buffer) -> Vec<String> {
        let columns = usize::from(buffer.area.width).max(1);
        let cells: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        cells.chunks(columns).map(|row| row.concat()).collect()
    }

    #[test]
    fn strokes_stay_within_their_area() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        let area = Rect::new(1, 0, 5, 1);
        let left = write(&mut buffer, area, "漢字漢字", Style::new());
        assert_eq!(left, Rect::new(6, 0, 0, 1));
        let beyond = Rect::new(20, 20, 5, 5);
        assert!(write(&mut buffer, beyond, "x", Style::new()).is_empty());
        assert_eq!(shown(&buffer), [" 漢 字 …  "]);
    }

    #[test]
    fn the_way_out_is_named_even_if_little_fits() {
        let shown = |columns| {
            let area = Rect::new(0, 0, columns, 1);
            let mut buffer = Buffer::empty(area);
            let keys = [
                ("Enter", "resume"),
                ("^R", "name"),
                ("^T", "tag"),
                ("Esc", "back"),
            ];
            hints(&mut buffer, area, Theme::default(), &keys);
            shown(&buffer)[0].trim_end().to_owned()
        };
        assert_eq!(shown(80), "Enter resume · ^R name · ^T tag · Esc back");
        assert_eq!(shown(42), "Enter resume · ^R name · ^T tag · Esc back");
        assert_eq!(shown(41), "Enter resume · ^R name · Esc back");
        assert_eq!(shown(25), "Enter resume · Esc back");
        assert_eq!(shown(22), "^R name · Esc back");
        assert_eq!(shown(9), "Esc back");
        assert_eq!(shown(7), "");
    }

    #[test]
    fn flags_are_spelled_where_they_cannot_be_drawn() {
        let shown = |has_flags| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
            buffer.set_string(0, 0, "a🇪🇸b漢🇩", Style::new());
            keep_in_cells(&mut buffer, has_flags);
            shown(&buffer)[0].trim_end().to_owned()
        };
        assert!(shown(true).starts_with("a🇪🇸"));
        assert!(shown(false).starts_with("aESb漢"), "{}", shown(false));
    }

    #[test]
    fn two_texts_share_a_row() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        let left = write_right(&mut buffer, Rect::new(0, 0, 8, 1), "end", Style::new());
        write(&mut buffer, left, "beginning", Style::new());
        assert_eq!(shown(&buffer), ["beg… end"]);
    }

    #[test]
    fn a_box_is_never_larger_than_the_screen() {
        for (columns, lines) in [(0, 0), (1, 1), (2, 2), (3, 9), (9, 3)] {
            let area = Rect::new(0, 0, columns, lines);
            let mut buffer = Buffer::empty(area);
            let inside = framed(&mut buffer, area, (40, 10), ("title", Style::new()));
            assert_eq!(inside, inside.intersection(area));
        }
    }

    #[test]
    fn half_a_letter_is_none() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
        let row = buffer.area;
        write(&mut buffer, row, "漢字漢字", Style::new());
        clear(&mut buffer, Rect::new(3, 0, 2, 1));
        write(&mut buffer, Rect::new(3, 0, 2, 1), "ab", Style::new());
        assert_eq!(shown(&buffer), ["漢  ab 字 "]);
        let drawn = Buffer::empty(buffer.area);
        let drawn = drawn.diff(&buffer).into_iter();
        let drawn: String = drawn.map(|(_, _, cell)| cell.symbol()).collect();
        assert_eq!(drawn, "漢ab字");
    }

    #[test]
    fn every_letter_stays_in_its_cell() {
        let check = |letter: &str, expected: &str| {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 2, 1));
            buffer[(0, 0)].set_symbol(letter);
            keep_in_cells(&mut buffer, true);
            assert_eq!(buffer[(0, 0)].symbol(), expected);
            assert_eq!(width(expected), width(letter), "{letter:?}");
        };
        check("漢", "漢");
        check("e\u{301}", "e\u{301}");
        check("👩🏽‍🚀", "👩🏽‍🚀");
        check("👩‍👩‍👧", "👩‍👩‍👧");
        check("👩‍👩‍👧‍👦", "👩‍👩‍👧");
        check("👩\u{200d}", "👩");
        check(&"👩\u{200d}".repeat(9), "👩‍👩‍👩");
        check(
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "🏴",
        );
        let tower = format!("a{}", "\u{301}".repeat(10));
        check(&format!("{tower}{}", "\u{301}".repeat(30)), &tower);
    }

    #[test]
    fn long_numbers_are_grouped() {
        let check = |number, expected: &str| assert_eq!(grouped(number), expected);
        check(0, "0");
        check(9999, "9999");
        check(12_345, "12 345");
        check(1_234_567, "1 234 567");
    }
}
