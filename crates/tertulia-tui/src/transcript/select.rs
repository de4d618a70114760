//! Selection of items or rows. Copies the text as it was written, not as it is drawn.

use std::cmp::Ordering;
use std::ops::Range;

use super::layout::{self, Layout, Mark};
use super::{Did, Spot, Transcript, What};
use crate::markdown::code_blocks;
use crate::text::columns;

/// Current selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// No selection.
    None,
    /// Whole items between two ends, in either direction.
    Messages {
        /// Start of the selection.
        from: u64,
        /// Moving end.
        to: u64,
    },
    /// Part of a row.
    Part {
        /// Row.
        spot: Spot,
        /// Column at which it starts.
        from: u16,
        /// Moving end, exclusive.
        to: u16,
    },
    /// Rows.
    Lines {
        /// Start of the selection.
        from: Spot,
        /// Moving end.
        to: Spot,
    },
}

impl Transcript {
    /// Returns true if a row is selected.
    pub(super) fn is_selected(&self, spot: Spot) -> bool {
        match self.selection {
            Selection::None => false,
            Selection::Part {
                spot: row,
                from,
                to,
            } => row == spot && from == to,
            Selection::Messages { from, to } => (from.min(to)..=from.max(to)).contains(&spot.id),
            Selection::Lines { from, to } => (from.min(to)..=from.max(to)).contains(&spot),
        }
    }

    /// Selected columns of a row, if only a part of it is selected.
    pub(super) fn selected_part(&self, row: Spot) -> Option<Range<u16>> {
        match self.selection {
            Selection::Part { spot, from, to } if spot == row && from != to => {
                Some(from.min(to)..from.max(to))
            }
            _ => None,
        }
    }

    /// Returns true if there is a selection.
    pub fn has_selection(&self) -> bool {
        self.selection != Selection::None
    }

    /// Clears the selection.
    pub fn deselect(&mut self) {
        self.selection = Selection::None;
    }

    /// Starts selecting rows at the last visible one.
    pub fn select_lines(&mut self) {
        if let Some(spot) = self.visible.last().copied() {
            self.selection = Selection::Lines {
                from: spot,
                to: spot,
            };
        }
    }

    /// Starts selecting items at the last visible one.
    pub fn select_messages(&mut self) {
        if let Some(Spot { id, .. }) = self.visible.last().copied() {
            self.selection = Selection::Messages { from: id, to: id };
        }
    }

    /// Moves the end of the selection down or up by rows or items.
    pub(super) fn extend(&mut self, by: isize) {
        match self.selection {
            Selection::None => {}
            Selection::Part { spot: from, .. } => {
                let to = self.moved(from, by);
                self.selection = Selection::Lines { from, to };
                self.follow(to);
            }
            Selection::Lines { from, to } => {
                let to = self.moved(to, by);
                self.selection = Selection::Lines { from, to };
                self.follow(to);
            }
            Selection::Messages { from, to } => {
                let last = self.id(self.items.len().saturating_sub(1));
                let to = to.saturating_add_signed(by as i64).clamp(self.first, last);
                self.selection = Selection::Messages { from, to };
                self.follow(Spot { id: to, row: 0 });
            }
        }
    }

    /// Scrolls just far enough to make a row visible.
    fn follow(&mut self, spot: Spot) {
        let (Some(first), Some(last)) = (self.visible.first(), self.visible.last()) else {
            return;
        };
        if spot < *first {
            self.place = super::Place::Top(spot);
            self.arrange();
        } else if spot > *last {
            let above = isize::try_from(self.height.saturating_sub(1)).unwrap_or(0);
            self.place = super::Place::Top(self.moved(spot, -above));
            self.arrange();
        }
    }

    /// Mouse button down on a screen row: starts a selection.
    pub fn press(&mut self, row: u16, column: u16) -> Did {
        let Some(spot) = self.visible.get(usize::from(row)).copied() else {
            self.deselect();
            return Did::Changed;
        };
        self.pressed = column;
        self.selection = Selection::Part {
            spot,
            from: column,
            to: column,
        };
        Did::Changed
    }

    /// Mouse drag to a place on the screen: extends the selection, by columns within one row and by
    /// rows beyond it; scrolls above the first and below the last row.
    pub fn drag(&mut self, row: i32, column: u16) -> Did {
        let (Selection::Lines { from, .. } | Selection::Part { spot: from, .. }) = self.selection
        else {
            return Did::Nothing;
        };
        if row < 0 {
            self.scroll(-1);
        } else if row >= i32::from(self.height) {
            self.scroll(1);
        }
        let last = self.visible.len().saturating_sub(1);
        let row = usize::try_from(row.max(0)).unwrap_or(0).min(last);
        if let Some(to) = self.visible.get(row).copied() {
            self.selection = match from == to {
                true => self.part_of(from, column),
                false => Selection::Lines { from, to },
            };
        }
        Did::Changed
    }

    /// Part of a row from the pressed column to another one, both included.
    fn part_of(&self, spot: Spot, column: u16) -> Selection {
        let (from, to) = match column.cmp(&self.pressed) {
            Ordering::Less => (self.pressed.saturating_add(1), column),
            Ordering::Equal => (column, column),
            Ordering::Greater => (self.pressed, column.saturating_add(1)),
        };
        Selection::Part { spot, from, to }
    }

    /// Mouse button up: copies a dragged selection; a click on the head of a tool call, or on the rows
    /// around the text of a long message, toggles its fold.
    pub fn release(&mut self) -> Did {
        let from = match self.selection {
            Selection::Part { spot, from, to } if from == to => spot,
            Selection::Part { .. } | Selection::Lines { .. } => {
                let text = self.selected();
                return match text.is_empty() {
                    true => Did::Changed,
                    false => Did::Copy(text),
                };
            }
            Selection::None | Selection::Messages { .. } => return Did::Nothing,
        };
        self.deselect();
        let is_beside = |layout: &Layout| !matches!(layout.mark(from.row), Mark::Text(_));
        if self.layout_at(from).is_some_and(is_beside)
            && let Some(index) = self.index(from.id)
        {
            self.toggle(index);
        }
        Did::Changed
    }

    /// Text of the selection, as it was written.
    pub fn selected(&mut self) -> String {
        match self.selection {
            Selection::None => String::new(),
            Selection::Part { spot, from, to } if from == to => self.lines_between(spot, spot),
            Selection::Part { spot, from, to } => {
                let row = self.layout_at(spot).and_then(|layout| layout.row(spot.row));
                let line = row.map(|row| row.line.to_string()).unwrap_or_default();
                columns(&line, from.min(to)..from.max(to)).trim().to_owned()
            }
            Selection::Messages { from, to } => {
                let parts = self
                    .between(from.min(to), from.max(to))
                    .map(|index| layout::text(&self.items[index].item).into_owned())
                    .filter(|text| !text.is_empty());
                parts.collect::<Vec<_>>().join("\n\n")
            }
            Selection::Lines { from, to } => self.lines_between(from.min(to), from.max(to)),
        }
    }

    /// Text to copy: the selection. A single row of a code block stands for the whole block, and
    /// without a selection the last visible block is meant.
    pub(super) fn copied(&mut self) -> Option<String> {
        let code = match self.selection {
            Selection::None => return self.code_among(&self.visible),
            Selection::Lines { from, to } if from == to => self.code_among(&[from]),
            Selection::Part { spot, from, to } if from == to => self.code_among(&[spot]),
            _ => None,
        };
        Some(code.unwrap_or_else(|| self.selected()))
    }

    /// Code of the last of some rows that is in a code block.
    fn code_among(&self, spots: &[Spot]) -> Option<String> {
        let mut known = None;
        for spot in spots.iter().rev() {
            let entry = &self.items[self.index(spot.id)?];
            let What::Said(said) = &entry.item.what else {
                continue;
            };
            let mark = entry.layout.as_ref().map(|layout| layout.mark(spot.row));
            let (Some(Mark::Text(byte)), false) = (mark, entry.is_own()) else {
                continue;
            };
            let blocks = match known.take() {
                Some((id, blocks)) if id == spot.id => blocks,
                _ => code_blocks(&said.text),
            };
            let here =
                |(range, _): &&(Range<usize>, String)| (range.start..=range.end).contains(&byte);
            if let Some((_, code)) = blocks.iter().find(here) {
                return Some(code.trim_end_matches('\n').to_owned());
            }
            known = Some((spot.id, blocks));
        }
        None
    }

    /// Indices of the items in a range that are still loaded.
    fn between(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let end = self.first + self.items.len() as u64;
        let start = from.clamp(self.first, end) - self.first;
        let end = to.saturating_add(1).clamp(self.first, end) - self.first;
        usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0)
    }

    fn lines_between(&mut self, from: Spot, to: Spot) -> String {
        let mut parts = Vec::new();
        for index in self.between(from.id, to.id) {
            let id = self.id(index);
            let first = if id == from.id { from.row } else { 0 };
            let height = self.lay(index).height();
            let last = if id == to.id {
                to.row
            } else {
                height.saturating_sub(1)
            };
            let part = self.part(index, first, last);
            if !part.is_empty() {
                parts.push(part);
            }
        }
        parts.join("\n")
    }

    /// Source text of some rows of an item. If only head rows are selected, returns them as drawn.
    fn part(&mut self, index: usize, first: usize, last: usize) -> String {
        self.lay(index);
        let entry = &self.items[index];
        let Some(layout) = &entry.layout else {
            return String::new();
        };
        let text = layout::text(&entry.item);
        let start = match layout.mark(first) {
            Mark::Head(_) => 0,
            Mark::Text(byte) => byte,
            Mark::Foot(_) => text.len(),
        };
        let end = match layout.mark(last) {
            Mark::Head(_) => {
                let shown = (first..=last).filter_map(|row| layout.row(row));
                let lines = shown.map(|row| row.line.to_string().trim().to_owned());
                return lines
                    .filter(|line| !line.is_empty())
                    .collect::<Vec<_>>()
                    .join("\n");
            }
            Mark::Text(_) => layout.row(last).map_or(text.len(), |row| row.source.end),
            Mark::Foot(_) => text.len(),
        };
        let part = text.get(start..end.max(start)).unwrap_or_default();
        part.trim_end_matches(['\n', '\r']).to_owned()
    }
}
