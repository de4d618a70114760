//! Scroll position of the transcript.

use ratatui::layout::Size;

use super::super::item::{Item, What};
use super::super::theme::Theme;
use super::layout::{Layout, Mark, Shown, weight};
use super::select::Selection;
use super::{Entry, Seq, Transcript};
use crate::geometry::gutter;

/// Laid-out rows above which distant layouts are dropped.
const MOST_ROWS: usize = 20_000;
/// Number of items that stay laid out on either side of the view.
const NEARBY: usize = 100;
/// Rows that an item has besides its text, if it is not laid out.
const HEAD_ROWS: usize = 2;
/// Minimum width for a scroll bar.
const NARROW: u16 = 10;

/// A row of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Item number.
    pub(super) id: u64,
    /// Row within the item.
    pub(super) row: usize,
}

/// Anchor of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The end; the view follows new items.
    End,
    /// This row is at the top.
    Top(Spot),
}

/// Visible part of the whole, for the scroll bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First visible row, from 0.
    pub from: u64,
    /// End of the visible range, exclusive.
    pub to: u64,
    /// Total number of rows.
    pub total: u64,
}

impl Transcript {
    /// Lays out the visible rows for a screen size. Must be called before every draw.
    pub fn fit(&mut self, size: Size, theme: Theme) {
        let bar = u16::from(self.has_bar(size.width));
        let width = size.width.saturating_sub(bar + gutter(size.width)).max(1);
        if width != self.look.width || theme != self.look.theme {
            let marks = self.marks();
            self.look.width = width;
            self.look.theme = theme;
            for entry in self.items.iter_mut().chain(&mut self.tail) {
                entry.layout = None;
            }
            self.laid = 0;
            self.restore(marks);
        }
        self.height = size.height;
        self.arrange();
        self.forget_far_rows();
    }

    /// Returns true if the last column is reserved for a scroll bar.
    pub fn has_bar(&self, width: u16) -> bool {
        width >= NARROW
    }

    /// Converts the kept spots (top row, selection) to positions independent of the width.
    fn marks(&self) -> Vec<(u64, Mark)> {
        let mut spots = Vec::new();
        if let Place::Top(spot) = self.place {
            spots.push(spot);
        }
        if let Selection::Lines { from, to } = self.selection {
            spots.extend([from, to]);
        }
        let mark = |spot: Spot| match (self.held, self.layout_at(spot)) {
            (Some((held, mark)), _) if held == spot => (spot.id, mark),
            (_, Some(layout)) => (spot.id, layout.mark(spot.row)),
            (_, None) => (spot.id, Mark::Head(spot.row)),
        };
        spots.into_iter().map(mark).collect()
    }

    fn restore(&mut self, marks: Vec<(u64, Mark)>) {
        let mut spots = Vec::new();
        let top = marks.first().map(|(_, mark)| *mark);
        for (id, mark) in marks {
            let row = match self.index(id) {
                Some(index) => self.lay(index).row_of(mark),
                None => 0,
            };
            spots.push(Spot { id, row });
        }
        let mut spots = spots.into_iter();
        if let Place::Top(spot) = &mut self.place
            && let Some(now) = spots.next()
        {
            *spot = now;
            self.held = top.map(|mark| (now, mark));
        }
        if let Selection::Lines { from, to } = &mut self.selection {
            *from = spots.next().unwrap_or(*from);
            *to = spots.next().unwrap_or(*to);
        }
    }

    /// Returns the layout of an item, computing it if necessary.
    pub(super) fn lay(&mut self, index: usize) -> &Layout {
        let stale = match &self.items[index].layout {
            Some(layout) => !layout.fits(&self.look),
            None => true,
        };
        let begins = stale && self.begins(index);
        let entry = &mut self.items[index];
        if stale {
            #[cfg(test)]
            {
                self.made += 1;
            }
            entry.layout = None;
        }
        let grows = matches!(
            entry.item.what,
            What::Said(_) | What::Thought { folded: false, .. }
        );
        let (item, look, laid) = (&entry.item, &self.look, &mut self.laid);
        let folded = !entry.unfolded;
        let layout = entry.layout.get_or_insert_with(|| {
            let layout = Layout::new(item, look, None, Shown { begins, folded });
            *laid += layout.height();
            layout
        });
        if grows {
            layout.grow(item);
        }
        layout
    }

    fn height_of(&mut self, index: usize) -> usize {
        self.lay(index).height()
    }

    /// Determines the visible rows.
    pub(super) fn arrange(&mut self) {
        let room = usize::from(self.height);
        self.visible.clear();
        match self.place {
            Place::Top(spot) if self.index(spot.id).is_some() => {
                self.fill_down(spot, room);
                let short = self.visible.len() < room;
                let at_end = match self.visible.last().copied() {
                    Some(last) => self.moved(last, 1) == last,
                    None => true,
                };
                if (short || at_end) && room > 0 {
                    // Leave no empty rows at the bottom while there are rows above.
                    self.fill_up(room);
                    self.place = match self.visible.first() {
                        Some(first) if self.more_after => Place::Top(*first),
                        _ => Place::End,
                    };
                }
            }
            _ => {
                self.place = Place::End;
                self.fill_up(room);
            }
        }
        match self.place {
            Place::End => {
                self.new_rows = 0;
                self.seen_end = self.visible.last().copied();
            }
            Place::Top(_) => self.count_new_rows(),
        }
    }

    fn fill_down(&mut self, spot: Spot, room: usize) {
        let Some(start) = self.index(spot.id) else {
            return;
        };
        let mut row = spot.row.min(self.height_of(start).saturating_sub(1));
        for index in start..self.items.len() {
            let height = self.height_of(index);
            let id = self.id(index);
            while row < height {
                if self.visible.len() == room {
                    return;
                }
                self.visible.push(Spot { id, row });
                row += 1;
            }
            row = 0;
        }
    }

    fn fill_up(&mut self, room: usize) {
        self.visible.clear();
        'all: for index in (0..self.items.len()).rev() {
            let id = self.id(index);
            for row in (0..self.height_of(index)).rev() {
                if self.visible.len() == room {
                    break 'all;
                }
                self.visible.push(Spot { id, row });
            }
        }
        self.visible.reverse();
    }

    /// Moves a spot down or up by a number of rows, stopping at the first or last row.
    pub(super) fn moved(&mut self, spot: Spot, by: isize) -> Spot {
        let Some(mut index) = self.index(spot.id) else {
            return spot;
        };
        let mut row = spot.row;
        let mut left = by.unsigned_abs();
        if by < 0 {
            while left > row && index > 0 {
                left -= row + 1;
                index -= 1;
                // An item without rows counts as none: continue with the item before it.
                match self.height_of(index).checked_sub(1) {
                    Some(last) => row = last,
                    None => {
                        left += 1;
                        row = 0;
                    }
                }
            }
            row = row.saturating_sub(left);
        } else {
            let mut height = self.height_of(index);
            while row + left >= height && index + 1 < self.items.len() {
                left -= height.saturating_sub(row).min(left);
                row = 0;
                index += 1;
                height = self.height_of(index);
            }
            row = (row + left).min(height.saturating_sub(1));
        }
        Spot {
            id: self.id(index),
            row,
        }
    }

    /// Scrolls down, or up if `by` is negative.
    pub fn scroll(&mut self, by: isize) {
        self.failed = None;
        self.marked = None;
        if let Some(top) = self.visible.first().copied() {
            self.place = Place::Top(self.moved(top, by));
            self.arrange();
        }
    }

    /// Scrolls by screens; one row stays visible.
    pub fn page(&mut self, by: isize) {
        let rows = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.scroll(by.saturating_mul(rows));
    }

    /// Goes to the beginning of the session.
    pub fn go_to_top(&mut self) {
        self.failed = None;
        if self.more_before {
            self.jump(Seq::START.next());
        } else if !self.items.is_empty() {
            self.place = Place::Top(Spot {
                id: self.first,
                row: 0,
            });
            self.arrange();
        }
    }

    /// Goes to the end and follows new items.
    pub fn go_to_end(&mut self) {
        self.failed = None;
        self.goal = None;
        if self.more_after && !self.return_to_tail() {
            self.jump(Seq(self.total));
            return;
        }
        self.place = Place::End;
        self.arrange();
    }

    /// Returns true if the view follows new items.
    pub fn follows(&self) -> bool {
        self.place == Place::End
    }

    /// Scrolls so that a row is visible, if it is not.
    pub(super) fn reveal(&mut self, spot: Spot) {
        if self.visible.contains(&spot) {
            return;
        }
        let above = isize::try_from(self.height / 3).unwrap_or(0);
        self.place = Place::Top(self.moved(spot, -above));
        self.arrange();
    }

    /// Visible part in rows; `None` if everything is visible. The rows of items that are not laid out
    /// are estimated by their length, and those of entries that are not loaded by the average.
    pub fn extent(&self) -> Option<Extent> {
        let top = *self.visible.first()?;
        let first = self.index(top.id)?;
        let all_seen = first == 0 && top.row == 0 && self.follows() && !self.more_before;
        if all_seen {
            return None;
        }
        let rows = |entry: &Entry| self.estimated_rows(entry);
        let above: u64 = self.items.iter().take(first).map(rows).sum();
        let loaded = above + self.items.iter().skip(first).map(rows).sum::<u64>();
        let average = (loaded / self.items.len().max(1) as u64).max(1);
        let seqs = || self.items.iter().filter_map(|entry| entry.item.seq);
        let before = match self.more_before {
            true => seqs().next().map_or(0, |seq| seq.0.saturating_sub(1)),
            false => 0,
        };
        let after = match self.more_after {
            true => {
                self.total
                    - seqs()
                        .next_back()
                        .map_or(self.total, |seq| seq.0.min(self.total))
            }
            false => 0,
        };
        let from = before * average + above + top.row as u64;
        Some(Extent {
            from,
            to: from + self.visible.len() as u64,
            total: (before + after) * average + loaded,
        })
    }

    /// Rows of an item, estimated if it is not laid out.
    fn estimated_rows(&self, entry: &Entry) -> u64 {
        let rows = match &entry.layout {
            Some(layout) => layout.height(),
            None if matches!(&entry.item.what, What::Used(used) if used.folded) => 1,
            None => {
                let bytes = weight(&entry.item).saturating_sub(size_of::<Item>());
                HEAD_ROWS + bytes / usize::from(self.look.width).max(1)
            }
        };
        rows as u64
    }

    /// Counts the rows that came after the end was seen last.
    fn count_new_rows(&mut self) {
        let tail = self.tail.iter().map(|entry| self.estimated_rows(entry));
        let mut rows = usize::try_from(tail.sum::<u64>()).unwrap_or(usize::MAX);
        let Some(end) = self.seen_end else {
            self.new_rows = 0;
            return;
        };
        if let Some(index) = self.index(end.id) {
            rows += self.height_of(index).saturating_sub(end.row + 1);
            for later in index + 1..self.items.len() {
                rows += self.height_of(later);
            }
        }
        self.new_rows = rows;
    }

    /// Drops the rows of items far from the view; they are laid out again when they come near.
    fn forget_far_rows(&mut self) {
        if self.laid <= MOST_ROWS {
            return;
        }
        let (first, last) = self.seen_range();
        let near = first.saturating_sub(NEARBY)..last.saturating_add(NEARBY);
        let mut kept = 0;
        for (index, entry) in self.items.iter_mut().enumerate() {
            if near.contains(&index) || entry.is_streaming() {
                kept += entry.layout.as_ref().map_or(0, Layout::height);
            } else {
                entry.layout = None;
            }
        }
        self.laid = kept;
    }

    /// Indices of the first and the last visible item.
    pub(super) fn seen_range(&self) -> (usize, usize) {
        let end = self.items.len().saturating_sub(1);
        if self.place == Place::End {
            let first = self.visible.first().and_then(|spot| self.index(spot.id));
            return (first.unwrap_or(end), end);
        }
        let at = |spot: Option<&Spot>| spot.and_then(|spot| self.index(spot.id));
        let first = at(self.visible.first()).unwrap_or(0);
        (first, at(self.visible.last()).unwrap_or(first))
    }
}
