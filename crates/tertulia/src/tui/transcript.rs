//! What was said and done, as far as it is loaded: a window over a talk of any length, and a view into that window.
//!
//! Nothing here counts rows of the whole talk. The view hangs on one row of one thing, and what lies around it is laid out when
//! it comes near; so it stays where it is whatever comes before or after, and a talk of any length costs what a screen does.

mod find;
mod keys;
mod layout;
mod scroll;
mod select;
mod window;

use std::collections::VecDeque;

use crossterm::event::KeyEvent;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tertulia_core::entry::ToolOutcome;
use tertulia_core::id::Seq;

use super::item::{Item, What};
use super::theme::Theme;
use super::wrap::Row;
use find::Find;
use layout::{Layout, Look, Mark};
use scroll::Place;
pub use scroll::Spot;
use select::Selection;
pub use window::{Loaded, Wanted};

/// The first thing gets this number, so that there are enough for those that come before it.
const ORIGIN: u64 = 1 << 62;

/// A transcript.
#[derive(Debug)]
pub struct Transcript {
    /// What is loaded, without gaps.
    items: VecDeque<Entry>,
    /// The number of the first of them. Numbers are kept while a thing is loaded.
    first: u64,
    /// How many entries the log has.
    total: u64,
    /// Whether there is more before what is loaded, and between it and `tail`.
    more_before: bool,
    more_after: bool,
    /// The newest things, while what is loaded lies further back: they may not be in the log yet.
    tail: VecDeque<Entry>,
    /// What was asked for and did not come yet; what could not be had.
    asked: Option<Wanted>,
    failed: Option<Wanted>,
    /// Where to go when that is loaded.
    goal: Option<Seq>,
    bytes: usize,
    look: Look,
    height: u16,
    place: Place,
    /// What the top row meant before the last resize: going back and forth must not creep.
    held: Option<(Spot, Mark)>,
    /// The rows that are seen, from the top.
    visible: Vec<Spot>,
    /// How many things came while the end was out of sight.
    unseen: usize,
    selection: Selection,
    /// The thing that was jumped to, until one moves on.
    marked: Option<u64>,
    find: Option<Find>,
    /// What is being typed to be found.
    typing: Option<String>,
    /// Rows that are laid out, about.
    laid: usize,
    /// How many layouts were made, all told: what the tests count.
    #[cfg(test)]
    made: usize,
}

/// A thing, and its rows once they are needed.
#[derive(Debug)]
struct Entry {
    item: Item,
    layout: Option<Layout>,
}

impl Entry {
    fn new(item: Item) -> Entry {
        Entry { item, layout: None }
    }

    fn is_streaming(&self) -> bool {
        matches!(&self.item.what, What::Said(said) if said.streaming)
    }
}

/// What a key or the mouse did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// Nothing that is seen.
    Nothing,
    /// Something that is seen.
    Changed,
    /// The person wants this text.
    Copy(String),
    /// What was looked for is nowhere in what is loaded.
    NotFound(String),
    /// The person is done with reading.
    Leave,
    /// The key means nothing here.
    Pass(KeyEvent),
}

impl Transcript {
    /// Nothing loaded yet of a log with so many entries.
    pub fn new(total: u64) -> Transcript {
        Transcript {
            items: VecDeque::new(),
            first: ORIGIN,
            total,
            more_before: total > 0,
            more_after: false,
            tail: VecDeque::new(),
            asked: None,
            failed: None,
            goal: None,
            bytes: 0,
            look: Look {
                width: 80,
                theme: Theme::default(),
                zone: TimeZone::UTC,
                today: None,
                speakers: Vec::new(),
            },
            height: 24,
            place: Place::End,
            held: None,
            visible: Vec::new(),
            unseen: 0,
            selection: Selection::None,
            marked: None,
            find: None,
            typing: None,
            laid: 0,
            #[cfg(test)]
            made: 0,
        }
    }

    /// Where times are shown for, and which day needs no date.
    pub fn clock(&mut self, zone: TimeZone, today: Date) {
        self.look.zone = zone;
        self.look.today = Some(today);
        self.forget_layouts();
    }

    /// The colours that a team chose for its members, by their ids, in its order.
    pub fn speakers(&mut self, speakers: Vec<(String, Option<String>)>) {
        self.look.speakers = speakers;
        for entry in self.items.iter().chain(&self.tail) {
            self.look.meet(&entry.item);
        }
        self.forget_layouts();
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.total == 0 && self.items.is_empty() && self.tail.is_empty()
    }

    /// Something new at the end.
    pub fn push(&mut self, item: Item) {
        self.look.meet(&item);
        self.bytes += layout::weight(&item);
        self.total = self.total.max(item.seq.map_or(0, |seq| seq.0));
        if self.place != Place::End {
            self.unseen += 1;
        }
        self.newest().push_back(Entry::new(item));
        self.drop_far();
    }

    /// Where new things go.
    fn newest(&mut self) -> &mut VecDeque<Entry> {
        if self.more_after {
            &mut self.tail
        } else {
            &mut self.items
        }
    }

    /// More of what is being said. Whether somebody is saying something.
    pub fn stream(&mut self, text: &str) -> bool {
        let speaking = self
            .newest()
            .iter_mut()
            .rev()
            .find(|entry| entry.is_streaming());
        let Some(entry) = speaking else {
            return false;
        };
        if let What::Said(said) = &mut entry.item.what {
            // The rows of nothing are not those of markdown.
            if said.text.is_empty() {
                entry.layout = None;
            }
            said.text.push_str(text);
        }
        self.bytes += text.len();
        true
    }

    /// Whether somebody is saying something.
    pub fn is_streaming(&self) -> bool {
        let newest = match self.more_after {
            true => &self.tail,
            false => &self.items,
        };
        newest.iter().rev().any(Entry::is_streaming)
    }

    /// Nobody says anything any more: what did not become a message was cut off.
    pub fn settle(&mut self) {
        for entry in self.newest() {
            if let What::Said(said) = &mut entry.item.what
                && said.streaming
            {
                (said.streaming, said.interrupted) = (false, true);
                entry.layout = None;
            }
        }
    }

    /// More of what an agent thinks: goes on with its last thought, if nothing else came since.
    pub fn think(&mut self, text: &str) {
        let last = self.newest().back_mut().map(|entry| &mut entry.item.what);
        if let Some(What::Thought(thought)) = last {
            thought.push_str(text);
            self.bytes += text.len();
        } else {
            self.push(Item {
                seq: None,
                what: What::Thought(text.to_owned()),
            });
        }
    }

    /// Puts what was said in the place of what was being said; without that, in the place of the last thing.
    pub fn replace_last(&mut self, item: Item) {
        self.look.meet(&item);
        self.total = self.total.max(item.seq.map_or(0, |seq| seq.0));
        let newest = self.newest();
        let at = newest
            .iter()
            .rposition(Entry::is_streaming)
            .or(newest.len().checked_sub(1));
        let Some(at) = at else {
            self.push(item);
            return;
        };
        self.replace(at, item);
    }

    fn replace(&mut self, at: usize, item: Item) {
        let more = layout::weight(&item);
        let look = &self.look;
        let newest = match self.more_after {
            true => &mut self.tail,
            false => &mut self.items,
        };
        let Some(entry) = newest.get_mut(at) else {
            return;
        };
        let less = layout::weight(&entry.item);
        // The rows of a text that only went on are still right.
        let goes_on = match (&entry.item.what, &item.what) {
            (What::Said(old), What::Said(new)) => {
                old.speaker.kind == new.speaker.kind
                    && !old.text.is_empty()
                    && new.text.starts_with(&old.text)
            }
            _ => false,
        };
        let kept = entry.layout.take().filter(|_| goes_on);
        entry.layout = kept.map(|kept| Layout::new(&item, look, Some(kept)));
        entry.item = item;
        self.bytes = (self.bytes + more).saturating_sub(less);
    }

    /// What came of a tool. Whether its call is known.
    pub fn used(&mut self, call: &str, output: &str, outcome: ToolOutcome) -> bool {
        let is_it = |entry: &&mut Entry| matches!(&entry.item.what, What::Used(used) if used.call.id == call);
        let found = self
            .tail
            .iter_mut()
            .rev()
            .chain(self.items.iter_mut().rev())
            .find(is_it);
        let Some(entry) = found else {
            return false;
        };
        entry.layout = None;
        if let What::Used(used) = &mut entry.item.what {
            used.output = Some((output.to_owned(), outcome));
        }
        self.bytes += output.len();
        true
    }

    /// Folds or unfolds one tool.
    fn toggle(&mut self, index: usize) -> bool {
        let Some(entry) = self.items.get_mut(index) else {
            return false;
        };
        let What::Used(used) = &mut entry.item.what else {
            return false;
        };
        used.folded = !used.folded;
        entry.layout = None;
        self.arrange();
        true
    }

    /// Folds or unfolds all tools that are loaded.
    pub fn fold_all(&mut self, folded: bool) {
        for entry in self.items.iter_mut().chain(&mut self.tail) {
            if let What::Used(used) = &mut entry.item.what
                && used.folded != folded
            {
                used.folded = folded;
                entry.layout = None;
            }
        }
        self.arrange();
    }

    fn any_folded(&self) -> bool {
        let folded = |entry: &Entry| matches!(&entry.item.what, What::Used(used) if used.folded);
        self.items.iter().any(folded)
    }

    /// The rows that are seen, from the top; with each, whether it is to stand out.
    pub fn rows(&self) -> impl Iterator<Item = (&Row, bool)> {
        self.visible.iter().filter_map(|spot| {
            let layout = self.layout_at(*spot)?;
            let head = matches!(layout.mark(spot.row), Mark::Head(_));
            let marked = head && self.marked == Some(spot.id);
            let row = layout.row(spot.row)?;
            let stands_out = self.is_selected(*spot) || marked && !row.line.spans.is_empty();
            Some((row, stands_out))
        })
    }

    /// How many things came while the end was out of sight.
    pub fn unseen(&self) -> usize {
        self.unseen
    }

    fn index(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id.checked_sub(self.first)?).ok()?;
        (index < self.items.len()).then_some(index)
    }

    fn id(&self, index: usize) -> u64 {
        self.first + index as u64
    }

    fn layout_at(&self, spot: Spot) -> Option<&Layout> {
        self.items[self.index(spot.id)?].layout.as_ref()
    }

    fn forget_layouts(&mut self) {
        for entry in self.items.iter_mut().chain(&mut self.tail) {
            entry.layout = None;
        }
        self.laid = 0;
        self.arrange();
    }
}

#[cfg(test)]
mod tests;
