//! Hyperlinks (OSC 8) for addresses on the screen.
//!
//! ratatui draws cells, and a cell has no link. Since 0.30.1 a cell can have a forced width
//! ([`CellDiffOption::ForcedWidth`]) regardless of its content. So the first cell of each row of an
//! address holds the whole row: the sequence that starts the link, the letters, and the sequence
//! that ends it. The cells that it covers keep their letters but are
//! [skipped](CellDiffOption::Skip). This has the following properties:
//!
//! - A cell with a link never equals one without, even if the letter is the same. So when a link
//!   disappears, all its cells are drawn again, and when its address changes, so is the whole link:
//!   no cell stays linked to an old address.
//! - The sequence ends in the cell in which it starts: a partial update never leaves a link open.
//! - After a resize ratatui draws everything, including links. Addresses contain no wide letters.
//! - An address costs its length once per row, not once per letter.
//!
//! Addresses are found before anything is drawn over the text, because a partly covered address
//! would look like a shorter one. Links are laid after everything is drawn, and only on rows that
//! are still completely visible.
//!
//! Only visible text is linked: the target of a link is the text itself, so a link cannot lead
//! elsewhere. Only `http` and `https` are linked: a click must not open a file or start a program
//! because an agent wrote so. If the end of an address is uncertain there is no link, because a
//! truncated address leads nowhere or elsewhere.

mod address;
mod terminals;

use std::cmp::Ordering;
use std::num::NonZeroU16;
use std::ops::Range;

use ratatui::buffer::{Buffer, Cell, CellDiffOption};
use ratatui::layout::{Position, Rect};

use crate::text::width;
use crate::text::wrap::Row;
use address::Tail;
pub use terminals::can;

/// An address and its position on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Address.
    pub url: String,
    /// Its letters, row by row.
    runs: Vec<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    at: Position,
    text: String,
}

/// How a row of text continues in the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// Not at all: another word or another line follows.
    Apart,
    /// Directly, after a margin of this width: the text was wrapped within a word.
    Joined(u16),
    /// Unknown. A word that reaches the end of the row may be truncated.
    Unknown,
}

/// Determines from their source ranges how rows continue. The last row is not included.
pub fn joints<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Joint> {
    let mut joints = Vec::new();
    let mut before: Option<&Row> = None;
    for row in rows {
        joints.extend(before.map(|before| joint(before, row)));
        before = Some(row);
    }
    joints
}

fn joint(row: &Row, next: &Row) -> Joint {
    let last = row.line.spans.iter().rfind(|span| !span.content.is_empty());
    if row.source.is_empty() || last.is_none_or(|span| span.content.ends_with(' ')) {
        return Joint::Apart;
    }
    match next.source.start.cmp(&row.source.end) {
        Ordering::Greater => Joint::Apart,
        Ordering::Equal => margin(next).map_or(Joint::Unknown, Joint::Joined),
        // Another item begins, or the same source is shown again.
        Ordering::Less => Joint::Unknown,
    }
}

/// Width of the margin of a row, if it is certain: the text after it has as many bytes as the
/// source range (unless the text is displayed differently), and the margin consists of margin
/// characters.
fn margin(row: &Row) -> Option<u16> {
    let line = row.line.to_string();
    let start = line.len().checked_sub(row.source.len())?;
    let (margin, text) = line.split_at_checked(start)?;
    let is_margin = |letter: char| letter == ' ' || letter == '↪' || is_frame(letter);
    let is_sure = margin.chars().all(is_margin) && !text.starts_with(is_margin);
    u16::try_from(width(margin)).ok().filter(|_| is_sure)
}

/// Finds the addresses in an area of the screen. `joints` describes its rows from the first on;
/// missing ones count as unknown.
pub fn find(buffer: &Buffer, area: Rect, joints: &[Joint]) -> Vec<Link> {
    let area = area.intersection(buffer.area);
    let mut links = Vec::new();
    let mut text = Text::default();
    let mut margin = 0;
    for (number, y) in (area.top()..area.bottom()).enumerate() {
        let margin_here = std::mem::take(&mut margin).min(area.width);
        let row = Rect {
            x: area.x + margin_here,
            y,
            width: area.width - margin_here,
            height: 1,
        };
        let is_full = text.push_row(buffer, row);
        let joint = joints.get(number).copied().unwrap_or(Joint::Unknown);
        let tail = match joint {
            Joint::Joined(columns) if y + 1 < area.bottom() => {
                margin = columns;
                continue;
            }
            Joint::Apart => Tail::Known,
            Joint::Unknown if !is_full => Tail::Known,
            Joint::Joined(_) | Joint::Unknown => Tail::Unknown,
        };
        links.extend(std::mem::take(&mut text).links(tail));
    }
    links
}

/// Finds the addresses in a text that is complete.
pub fn addresses(text: &str) -> Vec<Range<usize>> {
    address::find(text, Tail::Known)
}

/// Turns found addresses into links where they are still visible.
pub fn lay(links: &[Link], buffer: &mut Buffer) {
    for link in links {
        for run in &link.runs {
            lay_run(&link.url, run, buffer);
        }
    }
}

/// Letters of connected rows, with their positions.
#[derive(Debug, Default)]
struct Text {
    letters: String,
    /// Position of each letter, by its first byte.
    places: Vec<(usize, Position)>,
}

impl Text {
    /// Appends a row; returns true if it is full, so that its end may not be the end of a word.
    fn push_row(&mut self, buffer: &Buffer, row: Rect) -> bool {
        let symbol = |x: u16| buffer[(x, row.y)].symbol();
        let is_blank = |x: &u16| symbol(*x).chars().all(|c| c == ' ' || is_frame(c));
        let Some(end) = (row.left()..row.right()).rev().find(|x| !is_blank(x)) else {
            return false;
        };
        for x in row.left()..=end {
            let place = Position::new(x, row.y);
            self.places.push((self.letters.len(), place));
            self.letters.push_str(symbol(x));
        }
        // A blank after the text shows that there was room; a scroll bar does not.
        !(end + 1..row.right()).any(|x| symbol(x) == " ")
    }

    fn links(&self, tail: Tail) -> Vec<Link> {
        let found = address::find(&self.letters, tail);
        let link = |range: Range<usize>| {
            let url = self.letters[range.clone()].to_owned();
            let first = self.places.partition_point(|(at, _)| *at < range.start);
            let last = self.places.partition_point(|(at, _)| *at < range.end);
            let mut runs: Vec<Run> = Vec::new();
            // An address is ASCII: each letter is a byte, a cell and a column.
            for ((_, at), letter) in self.places[first..last].iter().zip(url.chars()) {
                match runs.last_mut() {
                    Some(run) if run.at.y == at.y => run.text.push(letter),
                    _ => runs.push(Run {
                        at: *at,
                        text: letter.to_string(),
                    }),
                }
            }
            Link { url, runs }
        };
        found.into_iter().map(link).collect()
    }
}

/// Characters of frames, block quotes and scroll bars.
fn is_frame(letter: char) -> bool {
    ('\u{2500}'..='\u{259f}').contains(&letter)
}

fn lay_run(url: &str, run: &Run, buffer: &mut Buffer) {
    let place = |number: usize| Position::new(run.at.x + number as u16, run.at.y);
    let letters = run.text.split_inclusive(|_| true);
    let is_seen = |(number, letter): (usize, &str)| {
        let cell = buffer.cell(place(number));
        cell.is_some_and(|cell| is_free(cell) && cell.symbol() == letter)
    };
    if !letters.enumerate().all(is_seen) {
        return;
    }
    let mut start = 0;
    while start < run.text.len() {
        let style = buffer[place(start)].style();
        let is_same = |number: &usize| buffer[place(*number)].style() == style;
        let end = start + (start..run.text.len()).take_while(is_same).count();
        let columns = u16::try_from(end - start).ok().and_then(NonZeroU16::new);
        let Some(columns) = columns else {
            return;
        };
        for number in start + 1..end {
            buffer[place(number)].set_diff_option(CellDiffOption::Skip);
        }
        buffer[place(start)]
            .set_symbol(&linked(url, &run.text[start..end]))
            .set_diff_option(CellDiffOption::ForcedWidth(columns));
        start = end;
    }
}

fn is_free(cell: &Cell) -> bool {
    cell.diff_option == CellDiffOption::None
}

/// Wraps letters in a link. All rows of an address have the same id, so that a terminal treats them
/// as one link.
fn linked(url: &str, letters: &str) -> String {
    format!("\x1b]8;id={:x};{url}\x1b\\{letters}\x1b]8;;\x1b\\", id(url))
}

/// Hash of an address (FNV-1a): stable across frames, or the link would be redrawn in each.
fn id(url: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    url.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests;
