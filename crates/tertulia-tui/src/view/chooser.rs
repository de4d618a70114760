//! Draws the list of agents or models.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::brush::{Look, hints, write};
use super::picker::draw_line;
use crate::chooser::{Chooser, Choosing, Offer};
use crate::geometry::{chooser_areas, row};
use crate::text::{cut, fold, width};

/// Maximum width of the column of names.
const MOST_NAME: usize = 32;
/// Maximum width of the column of details.
const MOST_DETAIL: usize = 36;
/// Columns between two columns of text.
const GAP: usize = 2;

/// Draws the list and returns the cursor position.
pub fn draw(chooser: &Chooser, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let (areas, theme) = (chooser_areas(area), look.theme);
    let head = match chooser.choosing() {
        Choosing::Agent => "Agents".to_owned(),
        Choosing::Model(agent) => format!("Models of {agent}"),
    };
    write(buffer, areas.head, &head, theme.heading());
    let left = write(buffer, areas.query, "> ", theme.heading());
    let cursor = draw_line(chooser.query(), "type to filter", theme, left, buffer);
    let seen = usize::from(areas.list.height).max(1);
    let (chosen, top) = chooser.places(seen);
    let offers = chooser.fitting();
    let columns = Columns::of(&offers);
    for (place, offer) in offers.iter().enumerate().skip(top).take(seen) {
        let line = row(areas.list, place - top).intersection(buffer.area);
        draw_offer(offer, place == chosen, columns, look, line, buffer);
    }
    if offers.is_empty() {
        let words = match (chooser.is_loading(), chooser.is_complete()) {
            (true, _) => "…",
            (false, _) if chooser.query().is_empty() => "It does not list its models. Type a name.",
            (false, _) => match chooser.choosing() {
                Choosing::Agent => "No agent matches.",
                Choosing::Model(_) => "No model matches; Enter uses what you typed.",
            },
        };
        write(buffer, areas.list, words, theme.dim());
    }
    draw_notes(chooser, look, areas.notes, buffer);
    let enter = match (chooser.only_lists(), chooser.choosing()) {
        (Some(_), _) => None,
        (None, Choosing::Agent) => Some(("Enter", "use this agent from now on")),
        (None, Choosing::Model(_)) => Some(("Enter", "use this model from now on")),
    };
    let keys = [("Esc", "back")].into_iter().chain(enter);
    let keys: Vec<(&str, &str)> = keys.chain([("↑↓", "choose")]).collect();
    hints(buffer, areas.keys, theme, &keys);
    cursor
}

/// Widths of the columns.
#[derive(Clone, Copy)]
struct Columns {
    name: usize,
    detail: usize,
}

impl Columns {
    fn of(offers: &[&Offer]) -> Columns {
        let widest = |text: fn(&Offer) -> &str, most: usize| {
            let widths = offers.iter().map(|offer| width(text(offer)));
            widths.max().unwrap_or_default().min(most)
        };
        Columns {
            name: widest(|offer| &offer.name, MOST_NAME),
            detail: widest(|offer| &offer.detail, MOST_DETAIL),
        }
    }
}

fn draw_offer(
    offer: &Offer,
    is_chosen: bool,
    columns: Columns,
    look: Look,
    line: Rect,
    buffer: &mut Buffer,
) {
    let theme = look.theme;
    let mark = if is_chosen { "› " } else { "  " };
    let mut left = write(buffer, line, mark, theme.heading());
    let (sign, style) = match (offer.is_current, offer.is_ready) {
        (true, _) => ("● ", theme.added()),
        (false, true) => ("○ ", theme.text()),
        (false, false) => ("✗ ", theme.dim()),
    };
    left = write(buffer, left, sign, style);
    let style = match offer.is_ready {
        true => theme.text(),
        false => theme.dim(),
    };
    left = write(buffer, left, &padded(&offer.name, columns.name), style);
    left = write(
        buffer,
        left,
        &padded(&offer.detail, columns.detail),
        theme.dim(),
    );
    let state = match (offer.is_current, offer.is_ready) {
        (true, true) => "in use",
        (true, false) => "in use, not ready",
        (false, true) => "",
        (false, false) => "not ready",
    };
    let remark = offer.remark.as_str();
    let both = match (state, remark) {
        (state, "") => state.to_owned(),
        ("", remark) => remark.to_owned(),
        (state, remark) => format!("{state}: {remark}"),
    };
    write(buffer, left, &both, theme.dim());
    if is_chosen {
        buffer.set_style(line, theme.chosen());
    }
}

/// Fills a text up to a column width, and the gap after it.
fn padded(text: &str, columns: usize) -> String {
    match columns {
        0 => String::new(),
        columns => {
            let text = cut(text, columns);
            let gap = " ".repeat(columns - width(&text).min(columns) + GAP);
            format!("{text}{gap}")
        }
    }
}

/// Draws what could not be done, or else the whole remark of the chosen row, which its line may cut.
fn draw_notes(chooser: &Chooser, look: Look, area: Rect, buffer: &mut Buffer) {
    let theme = look.theme;
    let (text, style) = match (chooser.trouble(), chooser.only_lists(), chooser.chosen()) {
        (Some(trouble), ..) => (trouble, theme.warning()),
        (None, Some(why), _) => (why, theme.dim()),
        (None, None, Some(offer)) => (offer.remark.as_str(), theme.text()),
        (None, None, None) => return,
    };
    let (lines, _) = fold(text, usize::from(area.width), usize::from(area.height));
    for (number, line) in lines.iter().enumerate() {
        write(buffer, row(area, number), line, style);
    }
}
