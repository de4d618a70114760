//! Draws the input and the completion popup above it.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Widget};
use tertulia_engine::text::fit;
use unicode_segmentation::UnicodeSegmentation;

use super::brush::clear;
use crate::completion::{Candidate, Offer};
use crate::input::Input;
use crate::input::layout::{Row, row_of_characters};
use crate::text;
use crate::theme::Theme;

/// Width that a candidate's name may have in any case; a long note beside it is cut.
const WIDEST_NAME: usize = 40;
/// Columns of the mark before a candidate.
const MARK_COLUMNS: usize = 2;
/// Columns between the name of a candidate and its note.
const BESIDE: usize = 2;

/// Draws the input and returns the position of the terminal cursor.
pub fn draw(input: &Input, area: Rect, buffer: &mut Buffer, theme: Theme) -> Option<Position> {
    let area = area.intersection(*buffer.area());
    if area.is_empty() {
        return None;
    }
    blank(area, buffer, theme.text());
    let seen = input.seen();
    let height = usize::from(area.height);
    // The area may be lower than requested: keep the cursor inside it.
    let top = seen.top.max((seen.row + 1).saturating_sub(height));
    let label = u16::try_from(input.label_columns()).unwrap_or(0);
    if label > 0 {
        let text = input.shown_label();
        buffer.set_stringn(area.x, area.y, text, area.width.into(), theme.human());
    }
    let words = Rect {
        x: area.x.saturating_add(label).min(area.right()),
        width: area.width.saturating_sub(label),
        ..area
    };
    if let Some(placeholder) = input.placeholder() {
        let text = text::cut(placeholder, words.width.into());
        buffer.set_stringn(words.x, words.y, text, words.width.into(), theme.dim());
    }
    let rows = seen.layout.rows().iter().skip(top);
    for (y, row) in (words.y..words.bottom()).zip(rows) {
        draw_row(
            input,
            row,
            Rect {
                y,
                height: 1,
                ..words
            },
            buffer,
            theme,
        );
    }
    draw_hidden(seen.layout.rows().len(), top, label, area, buffer, theme);
    let column = u16::try_from(seen.column).unwrap_or(u16::MAX);
    let row = u16::try_from(seen.row - top).unwrap_or(u16::MAX);
    Some(Position {
        x: words.x.saturating_add(column).min(area.right() - 1),
        y: words.y.saturating_add(row).min(area.bottom() - 1),
    })
}

/// Draws the number of rows above and below the visible ones into the columns of the label.
fn draw_hidden(rows: usize, top: usize, label: u16, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let below = rows.saturating_sub(top + usize::from(area.height));
    let signs = [(top, "↑", area.y), (below, "↓", area.bottom() - 1)];
    for (count, sign, y) in signs.into_iter().filter(|(count, ..)| *count > 0) {
        let row = Rect {
            y,
            width: label.saturating_sub(1),
            height: 1,
            ..area
        };
        blank(row, buffer, theme.text());
        let room = usize::from(row.width);
        // Without the room for a number, the arrow says enough.
        let text = match format!("{sign}{count}") {
            text if text::width(&text) <= room => text,
            _ => sign.to_owned(),
        };
        buffer.set_stringn(row.x, y, text, room, theme.dim());
    }
}

fn draw_row(input: &Input, row: &Row, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let found = input.found().unwrap_or_default();
    let mut x = area.x;
    for shown in row_of_characters(input.shown(), row) {
        let style = if shown.folded {
            theme.dim()
        } else if found.contains(&shown.at) {
            theme.found()
        } else {
            theme.text()
        };
        let room = usize::from(area.right() - x);
        (x, _) = buffer.set_stringn(x, area.y, shown.symbol, room, style);
        if x >= area.right() {
            break;
        }
    }
}

/// Draws the completion candidates into the lowest rows above the input.
pub fn draw_popup(input: &Input, above: Rect, buffer: &mut Buffer, theme: Theme) {
    let above = above.intersection(*buffer.area());
    let (popup, rows) = input.popup_areas(above);
    if rows.is_empty() {
        return;
    }
    let offers = input.completion().offers(usize::from(rows.height));
    let (place, count) = input.completion().position();
    let is_part = count > offers.len();
    if popup != rows {
        let count = if is_part {
            format!(" {place}/{count} ")
        } else {
            String::new()
        };
        let block = Block::bordered().border_style(theme.frame());
        clear(buffer, popup);
        block
            .title_bottom(Line::from(count).right_aligned())
            .render(popup, buffer);
    }
    let widest = name_columns(&offers, usize::from(rows.width));
    for (y, offer) in (rows.top()..rows.bottom()).zip(&offers) {
        let row = Rect {
            y,
            height: 1,
            ..rows
        };
        draw_offer(offer, widest, row, buffer, theme);
    }
    if is_part && popup == rows {
        let count = format!(" {place}/{count}");
        let columns = u16::try_from(count.len()).unwrap_or(u16::MAX);
        if columns < rows.width / 2 {
            let x = rows.right() - columns;
            buffer.set_stringn(x, rows.bottom() - 1, &count, count.len(), theme.dim());
        }
    }
}

/// Columns for the names of candidates: what the notes beside them leave.
fn name_columns(offers: &[Offer<'_>], columns: usize) -> usize {
    let widest = |shown: fn(&Candidate) -> &str| {
        let texts = offers.iter().map(|offer| shown(offer.candidate));
        texts.map(text::width).max().unwrap_or(0)
    };
    let name = widest(Candidate::shown);
    let note = match widest(|candidate| &candidate.note) {
        0 => 0,
        note => note + BESIDE,
    };
    let left = columns.saturating_sub(MARK_COLUMNS + note);
    name.min(left.max(WIDEST_NAME))
}

/// Graphemes of a name that are shown in so many columns, with their places; a name that is too long
/// loses its middle, because paths differ at their ends.
fn shown_part(name: &str, columns: usize) -> Vec<(Option<usize>, &str)> {
    let all: Vec<(Option<usize>, &str)> = name
        .graphemes(true)
        .enumerate()
        .map(
            |(place, cluster)| match cluster.contains(char::is_control) {
                true => (Some(place), "\u{fffd}"),
                false => (Some(place), cluster),
            },
        )
        .collect();
    let needed: usize = all.iter().map(|(_, symbol)| text::width(symbol)).sum();
    if needed <= columns {
        return all;
    }
    let Some(room) = columns.checked_sub(1) else {
        return Vec::new();
    };
    let head = fitting(all.iter(), room / 3);
    let tail = fitting(all[head..].iter().rev(), room - room / 3);
    let mut shown = all[..head].to_vec();
    shown.push((None, "…"));
    shown.extend(&all[all.len() - tail..]);
    shown
}

/// Number of graphemes that fit into so many columns.
fn fitting<'a>(
    graphemes: impl Iterator<Item = &'a (Option<usize>, &'a str)>,
    columns: usize,
) -> usize {
    let used = graphemes.scan(0, |used, (_, symbol)| {
        *used += text::width(symbol);
        Some(*used)
    });
    used.take_while(|used| *used <= columns).count()
}

fn draw_offer(offer: &Offer<'_>, widest: usize, row: Rect, buffer: &mut Buffer, theme: Theme) {
    let base = if offer.chosen {
        theme.chosen()
    } else {
        theme.text()
    };
    blank(row, buffer, base);
    let mark = if offer.chosen { "▸ " } else { "  " };
    let room = usize::from(row.width);
    let (mut x, y) = buffer.set_stringn(row.x, row.y, mark, room, base);
    let name_end = row
        .right()
        .min(x.saturating_add(u16::try_from(widest).unwrap_or(u16::MAX)));
    let name = offer.candidate.shown();
    for (place, symbol) in shown_part(name, usize::from(name_end.saturating_sub(x))) {
        let place = place.and_then(|place| u32::try_from(place).ok());
        let style = match place.is_some_and(|place| offer.fitting.contains(&place)) {
            true => base.patch(theme.found()),
            false => base,
        };
        let left = usize::from(name_end.saturating_sub(x));
        (x, _) = buffer.set_stringn(x, y, symbol, left, style);
    }
    let x = name_end.saturating_add(2);
    if x < row.right() {
        let left = usize::from(row.right() - x);
        let note = fit(&offer.candidate.note, left);
        buffer.set_stringn(x, y, note, left, base.patch(theme.dim()));
    }
}

fn blank(area: Rect, buffer: &mut Buffer, style: Style) {
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position) {
            cell.reset();
            cell.set_style(style);
        }
    }
}

#[cfg(test)]
mod tests;
