//! The transcript window: decides which part of a long transcript is loaded. Requests more near the
//! edges and drops items far from the view.

use tertulia_core::id::Seq;

use super::super::item::{Item, What};
use super::layout::weight;
use super::scroll::{Place, Spot};
use super::select::Selection;
use super::{Entry, ORIGIN, Transcript};

/// Maximum number of loaded items; visible items are never dropped.
pub(super) const MOST_ITEMS: usize = 2_000;
/// Maximum size of the loaded items in bytes.
const MOST_BYTES: usize = 32_000_000;
/// Distance to an edge, in items, at which more is requested; and the same for large items.
const NEAR: usize = 100;
const NEAR_IF_BIG: usize = 5;
/// Number of items per request.
const PAGE: usize = 400;
/// Number of newest items kept while the view is elsewhere.
const TAIL: usize = 200;

/// Request of a transcript for more items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The last `count` items before this entry.
    Before {
        /// Entry.
        seq: Seq,
        /// Maximum number of items.
        count: usize,
    },
    /// The first `count` items after this entry.
    After {
        /// Entry.
        seq: Seq,
        /// Maximum number of items.
        count: usize,
    },
    /// About `count` items around this entry, including it.
    Around {
        /// Entry.
        seq: Seq,
        /// Approximate number of items.
        count: usize,
    },
}

/// Answer to a [`Wanted`] request. Items of one entry always come together; there may be fewer
/// items than requested if they are large.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The request it answers.
    pub wanted: Wanted,
    /// Items, oldest first.
    pub items: Vec<Item>,
    /// Whether there are items before these.
    pub more_before: bool,
    /// Whether there are items after these.
    pub more_after: bool,
}

impl Transcript {
    /// Returns the next request. Each is returned once, until [`Transcript::put`] or
    /// [`Transcript::not_loaded`] answers it.
    pub fn wants(&mut self) -> Option<Wanted> {
        if self.asked.is_some() {
            return None;
        }
        let (first, last) = self.seen_range();
        let count = PAGE;
        let wanted = if let Some(seq) = self.goal {
            Wanted::Around { seq, count }
        } else if self.more_before && first < self.near() {
            let seq = self.first_seq();
            Wanted::Before { seq, count }
        } else if self.more_after && last + self.near() >= self.items.len() {
            let seq = self.last_seq();
            Wanted::After { seq, count }
        } else {
            return None;
        };
        if self.failed == Some(wanted) {
            return None;
        }
        self.asked = Some(wanted);
        self.asked
    }

    /// Records that a request failed. It is repeated when the user scrolls.
    pub fn not_loaded(&mut self, wanted: Wanted) {
        if self.asked == Some(wanted) {
            self.asked = None;
            self.failed = Some(wanted);
            self.goal = None;
        }
    }

    /// First loaded entry, or the one after the end of the log.
    pub(super) fn first_seq(&self) -> Seq {
        let first = self.items.iter().find_map(|entry| entry.item.seq);
        first.unwrap_or(Seq(self.total).next())
    }

    /// Last loaded entry.
    pub(super) fn last_seq(&self) -> Seq {
        let last = self.items.iter().rev().find_map(|entry| entry.item.seq);
        last.unwrap_or(Seq::START)
    }

    /// Adds loaded items; returns false if they are no longer wanted.
    pub fn put(&mut self, mut loaded: Loaded) -> bool {
        if self.asked != Some(loaded.wanted) {
            return false;
        }
        self.asked = None;
        let fits = match loaded.wanted {
            Wanted::Before { seq, .. } => seq == self.first_seq(),
            Wanted::After { seq, .. } => seq == self.last_seq(),
            Wanted::Around { .. } => true,
        };
        // The window has changed meanwhile; the request will be repeated.
        if !fits {
            return false;
        }
        for item in &mut loaded.items {
            if let What::Used(used) = &mut item.what
                && let Some(late) = self.late.iter().find(|late| late.0 == used.call.id)
            {
                used.output.get_or_insert((late.1.clone(), late.2));
            }
            self.look.meet(item);
            self.bytes += weight(item);
        }
        match loaded.wanted {
            Wanted::Before { seq, .. } => {
                self.first -= loaded.items.len() as u64;
                // Its speaker may have begun before it.
                if let Some(first) = self.items.front_mut() {
                    first.layout = None;
                }
                for item in loaded.items.into_iter().rev() {
                    self.items.push_front(Entry::new(item));
                }
                // If nothing new came there is nothing more; avoids repeating the request forever.
                self.more_before = loaded.more_before && self.first_seq() < seq;
            }
            Wanted::After { seq, .. } => {
                let more =
                    loaded.more_after && loaded.items.iter().any(|item| item.seq > Some(seq));
                self.put_after(loaded.items, more);
            }
            Wanted::Around { seq, .. } => {
                self.park_tail();
                self.forget_loaded();
                self.more_before = loaded.more_before;
                self.put_after(loaded.items, loaded.more_after);
                self.goal = None;
                self.show(seq);
            }
        }
        self.arrange();
        self.arrive();
        self.drop_far();
        true
    }

    /// Appends items, and then the tail once there is no gap before it.
    fn put_after(&mut self, items: Vec<Item>, more: bool) {
        let newest = self.tail.iter().find_map(|entry| entry.item.seq);
        let known = |item: &Item| newest.is_some_and(|newest| item.seq >= Some(newest));
        let mut met = false;
        for item in items {
            if known(&item) {
                met = true;
                self.bytes -= weight(&item).min(self.bytes);
            } else if !met {
                self.items.push_back(Entry::new(item));
            }
        }
        self.more_after = more && !met;
        if !self.more_after {
            self.items.append(&mut self.tail);
        }
    }

    /// Moves the newest items to `tail`.
    fn park_tail(&mut self) {
        if !self.more_after {
            let from = self.group_start(self.items.len().saturating_sub(TAIL));
            self.tail = self.items.split_off(from);
        }
    }

    /// Index of the first item with the same log entry as this item.
    fn group_start(&self, index: usize) -> usize {
        let mut start = index;
        while start > 0
            && start < self.items.len()
            && self.items[start].item.seq == self.items[start - 1].item.seq
        {
            start -= 1;
        }
        start
    }

    fn forget_loaded(&mut self) {
        let gone: usize = self.items.iter().map(|entry| weight(&entry.item)).sum();
        self.bytes = self.bytes.saturating_sub(gone);
        self.items.clear();
        self.first = ORIGIN;
        self.visible.clear();
        self.selection = Selection::None;
        self.marked = None;
        self.place = Place::End;
    }

    /// Replaces the window by the tail; returns false if the tail is empty.
    pub(super) fn return_to_tail(&mut self) -> bool {
        if self.tail.is_empty() {
            return false;
        }
        let tail = std::mem::take(&mut self.tail);
        self.forget_loaded();
        self.items = tail;
        self.more_before = true;
        self.more_after = false;
        self.asked = None;
        true
    }

    /// Scrolls an entry to the top, loading the items around it if necessary.
    pub fn jump(&mut self, seq: Seq) {
        self.failed = None;
        let before = seq < self.first_seq() && self.more_before;
        let after = seq > self.last_seq() && self.more_after;
        if self.items.is_empty() || before || after {
            self.goal = Some(seq);
            self.asked = None;
            return;
        }
        self.goal = None;
        self.show(seq);
        self.arrange();
    }

    /// Scrolls to the first item at or after an entry.
    fn show(&mut self, seq: Seq) {
        let at = self
            .items
            .iter()
            .position(|entry| entry.item.seq.is_some_and(|here| here >= seq))
            .or(self.items.len().checked_sub(1));
        if let Some(index) = at {
            let id = self.id(index);
            self.place = Place::Top(Spot { id, row: 0 });
            self.marked = Some(id);
        }
    }

    /// Drops items far from the view if there are too many or they are too large.
    pub fn drop_far(&mut self) {
        let mut last = None;
        while let Some(entry) = self.tail.front() {
            let is_much = self.tail.len() > MOST_ITEMS || self.tail.len() > TAIL && self.is_heavy();
            // Items of one entry go together: what is left of an entry is not loaded again.
            let same = last.is_some() && entry.item.seq == last;
            if !is_much && !same {
                break;
            }
            last = entry.item.seq.or(last);
            self.bytes = self.bytes.saturating_sub(weight(&entry.item));
            self.tail.pop_front();
        }
        if self.items.len() <= MOST_ITEMS && self.bytes <= MOST_BYTES {
            return;
        }
        let (first, last) = self.seen_range();
        let spare_before = first.saturating_sub(2 * self.near());
        let spare_after = self.items.len().saturating_sub(last + 2 * self.near());
        let excess = self.items.len().saturating_sub(MOST_ITEMS - PAGE);
        if spare_before >= spare_after {
            self.drop_before(spare_before, excess);
        } else {
            self.drop_after(spare_after, excess);
        }
    }

    /// Number of items to keep beyond the view.
    fn near(&self) -> usize {
        match self.bytes > MOST_BYTES / 2 {
            true => NEAR_IF_BIG,
            false => NEAR,
        }
    }

    fn is_heavy(&self) -> bool {
        self.bytes > MOST_BYTES * 3 / 4
    }

    fn drop_before(&mut self, spare: usize, excess: usize) {
        // Items of one entry go together: what is left of an entry is not loaded again.
        let spare = self.group_start(spare);
        let mut dropped = 0;
        let mut last = None;
        while dropped < spare {
            let same = last.is_some()
                && self
                    .items
                    .front()
                    .is_some_and(|entry| entry.item.seq == last);
            if dropped >= excess && !self.is_heavy() && !same {
                break;
            }
            let Some(entry) = self.items.pop_front() else {
                break;
            };
            last = entry.item.seq.or(last);
            self.bytes = self.bytes.saturating_sub(weight(&entry.item));
            dropped += 1;
        }
        if dropped > 0 {
            self.first += dropped as u64;
            self.more_before = true;
            self.asked = self
                .asked
                .filter(|asked| !matches!(asked, Wanted::Before { .. }));
        }
    }

    fn drop_after(&mut self, spare: usize, excess: usize) {
        let keep = self.items.len() - spare;
        let mut dropped = 0;
        if !self.more_after {
            let from = self.group_start(self.items.len().saturating_sub(TAIL.min(spare)));
            self.tail = self.items.split_off(from);
            dropped = self.tail.len();
        }
        let mut last = None;
        while let Some(entry) = self.items.back() {
            let wanted = self.items.len() <= keep || dropped >= excess && !self.is_heavy();
            let same = last.is_some() && entry.item.seq == last;
            if wanted && !same {
                break;
            }
            last = entry.item.seq.or(last);
            self.bytes = self.bytes.saturating_sub(weight(&entry.item));
            self.items.pop_back();
            dropped += 1;
        }
        self.more_after = true;
        self.asked = self
            .asked
            .filter(|asked| !matches!(asked, Wanted::After { .. }));
    }
}
