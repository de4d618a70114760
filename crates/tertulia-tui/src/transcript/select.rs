//! Selection of items or rows. Copies the text as it was written, not as it is drawn.

use super::layout::{self, Mark};
use super::{Did, Spot, Transcript};

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
            Selection::Messages { from, to } => (from.min(to)..=from.max(to)).contains(&spot.id),
            Selection::Lines { from, to } => (from.min(to)..=from.max(to)).contains(&spot),
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
    pub fn press(&mut self, row: u16) -> Did {
        let Some(spot) = self.visible.get(usize::from(row)).copied() else {
            self.deselect();
            return Did::Changed;
        };
        self.selection = Selection::Lines {
            from: spot,
            to: spot,
        };
        Did::Changed
    }

    /// Mouse drag to a screen row: extends the selection; scrolls above the first and below the
    /// last row.
    pub fn drag(&mut self, row: i32) -> Did {
        let Selection::Lines { from, .. } = self.selection else {
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
            self.selection = Selection::Lines { from, to };
        }
        Did::Changed
    }

    /// Mouse button up: copies a dragged selection; a click on the head of a tool call toggles its
    /// fold.
    pub fn release(&mut self) -> Did {
        let Selection::Lines { from, to } = self.selection else {
            return Did::Nothing;
        };
        if from != to {
            return Did::Copy(self.selected());
        }
        self.deselect();
        let on_head = self
            .layout_at(from)
            .is_some_and(|layout| matches!(layout.mark(from.row), Mark::Head(_)));
        if on_head && let Some(index) = self.index(from.id) {
            self.toggle(index);
        }
        Did::Changed
    }

    /// Text of the selection, as it was written.
    pub fn selected(&mut self) -> String {
        match self.selection {
            Selection::None => String::new(),
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
