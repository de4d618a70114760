//! Transcript of a session: a window of loaded items over a log of any length, and a view into that
//! window.
//!
//! The rows of the whole session are never counted. The view is anchored to one row of one item,
//! and items around it are laid out when they come near; so the view stays in place whatever is
//! added before or after it, and a session of any length costs no more than a screen.

mod card;
mod find;
mod keys;
mod layout;
mod scroll;
mod select;
mod thoughts;
mod window;

use std::collections::VecDeque;
use std::ops::Range;

use crossterm::event::KeyEvent;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tertulia_core::entry::{SpeakerKind, ToolOutcome};
use tertulia_core::id::Seq;

use super::item::{Item, What};
use super::theme::Theme;
use crate::text::wrap::Row;
use find::Find;
pub use find::{ItemKey, Matches, Scan, Scanned, Standing, matches};
use layout::{Layout, Look, Mark, Shown};
use scroll::Place;
pub use scroll::Spot;
use select::Selection;
pub use window::{Loaded, Wanted};

/// Number of the first item, high enough to leave room for items loaded before it.
const ORIGIN: u64 = 1 << 62;

/// Number of lines that are shown of a running command.
const LIVE_LINES: usize = 8;
/// Maximum number of bytes of them: a line may have no end.
const LIVE_BYTES: usize = 4000;

/// Loaded items and the view into them.
#[derive(Debug)]
pub struct Transcript {
    /// Loaded items, without gaps.
    items: VecDeque<Entry>,
    /// Number of the first loaded item. An item keeps its number while it is loaded.
    first: u64,
    /// Number of entries in the log.
    total: u64,
    /// Whether there is more before the loaded items, and between them and `tail`.
    more_before: bool,
    more_after: bool,
    /// Outputs of tool calls that were not loaded when they came: id, text and outcome.
    late: Vec<(String, String, ToolOutcome)>,
    /// Newest items while the loaded ones lie further back; some may not be in the log yet.
    tail: VecDeque<Entry>,
    /// The pending request, and the last request that failed.
    asked: Option<Wanted>,
    failed: Option<Wanted>,
    /// Entry to scroll to once it is loaded.
    goal: Option<Seq>,
    bytes: usize,
    look: Look,
    height: u16,
    place: Place,
    /// Meaning of the top row before the last resize, so that resizing back and forth does not
    /// shift the view.
    held: Option<(Spot, Mark)>,
    /// Visible rows, from the top.
    visible: Vec<Spot>,
    /// Last row when the end was seen, and number of rows that have come after it.
    seen_end: Option<Spot>,
    new_rows: usize,
    selection: Selection,
    /// Column at which the mouse button was pressed.
    pressed: u16,
    /// Item that was jumped to, until the view is scrolled.
    marked: Option<u64>,
    find: Option<Find>,
    /// Number of searches so far.
    finds: u64,
    /// Search text being typed.
    typing: Option<String>,
    /// Approximate number of rows laid out.
    laid: usize,
    /// Total number of layouts made, for tests.
    #[cfg(test)]
    made: usize,
}

/// An item, and its rows once they are needed.
#[derive(Debug)]
struct Entry {
    item: Item,
    layout: Option<Layout>,
    /// Whether a long message is shown as a whole.
    unfolded: bool,
}

impl Entry {
    fn new(item: Item) -> Entry {
        Entry {
            item,
            layout: None,
            unfolded: false,
        }
    }

    fn is_streaming(&self) -> bool {
        matches!(&self.item.what, What::Said(said) if said.streaming)
    }

    /// Returns true for a message of a person.
    fn is_own(&self) -> bool {
        matches!(&self.item.what, What::Said(said) if said.speaker.kind == SpeakerKind::Human)
    }

    /// Whether the item is folded; `None` if it cannot be.
    fn is_folded(&self) -> Option<bool> {
        match &self.item.what {
            What::Used(used) => Some(used.folded),
            What::Summary { folded, .. } | What::Thought { folded, .. } => Some(*folded),
            _ => layout::fold_of(&self.item).map(|_| !self.unfolded),
        }
    }

    fn fold(&mut self, folded: bool) {
        match &mut self.item.what {
            What::Used(used) => used.folded = folded,
            What::Summary { folded: own, .. } | What::Thought { folded: own, .. } => *own = folded,
            _ => self.unfolded = !folded,
        }
        self.layout = None;
    }
}

/// A visible row, and how it differs from others.
#[derive(Clone, Debug)]
pub struct VisibleRow<'t> {
    /// Row.
    pub row: &'t Row,
    /// Whether it belongs to a message of a person.
    pub is_own: bool,
    /// Whether it is selected, or the head of the item that was jumped to.
    pub stands_out: bool,
    /// Selected columns, if only a part of it is selected.
    pub selected: Option<Range<u16>>,
}

/// Outcome of a key or a mouse event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// No visible change.
    Nothing,
    /// Visible change.
    Changed,
    /// Copy this text.
    Copy(String),
    /// The search text does not occur in the session.
    NotFound(String),
    /// Leave reading mode.
    Leave,
    /// The key has no meaning here.
    Pass(KeyEvent),
}

impl Transcript {
    /// Creates an empty transcript of a log with `total` entries.
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
            late: Vec::new(),
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
            seen_end: None,
            new_rows: 0,
            selection: Selection::None,
            pressed: 0,
            marked: None,
            find: None,
            finds: 0,
            typing: None,
            laid: 0,
            #[cfg(test)]
            made: 0,
        }
    }

    /// Sets the time zone for times, and the day that is shown without its date.
    pub fn clock(&mut self, zone: TimeZone, today: Date) {
        self.look.zone = zone;
        self.look.today = Some(today);
        self.forget_layouts();
    }

    /// Sets the agents by id, in their order, with the colours the team file chooses for them.
    pub fn speakers(&mut self, speakers: Vec<(String, Option<String>)>) {
        self.look.speakers = speakers;
        for entry in self.items.iter().chain(&self.tail) {
            self.look.meet(&entry.item);
        }
        self.forget_layouts();
    }

    /// Returns true if there is nothing to show but notices.
    pub fn has_only_notices(&self) -> bool {
        let mut entries = self.items.iter().chain(&self.tail);
        entries.all(|entry| matches!(entry.item.what, What::Notice { .. }))
    }

    /// Returns true if older items are not loaded.
    pub fn has_more_before(&self) -> bool {
        self.more_before
    }

    /// Appends a new item.
    pub fn push(&mut self, item: Item) {
        self.look.meet(&item);
        self.bytes += layout::weight(&item);
        self.total = self.total.max(item.seq.map_or(0, |seq| seq.0));
        self.fold_thought();
        self.newest().push_back(Entry::new(item));
        self.drop_far();
    }

    /// The queue that takes new items.
    fn newest(&mut self) -> &mut VecDeque<Entry> {
        if self.more_after {
            &mut self.tail
        } else {
            &mut self.items
        }
    }

    /// Appends text to the streaming message; returns false if there is none.
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
            // A layout made without text has no body to extend.
            if said.text.is_empty() {
                entry.layout = None;
            }
            said.text.push_str(text);
        }
        self.bytes += text.len();
        true
    }

    /// Returns true if a message is streaming in.
    pub fn is_streaming(&self) -> bool {
        let newest = match self.more_after {
            true => &self.tail,
            false => &self.items,
        };
        newest.iter().rev().any(Entry::is_streaming)
    }

    /// Marks streaming messages as interrupted: no more text follows.
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

    /// Replaces the streaming message, or the last item if there is none.
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
        // Rows of a text that was only extended stay valid.
        let goes_on = match (&entry.item.what, &item.what) {
            (What::Said(old), What::Said(new)) => {
                old.speaker.kind == new.speaker.kind
                    && !old.text.is_empty()
                    && new.text.starts_with(&old.text)
            }
            _ => false,
        };
        let kept = entry.layout.take().filter(|_| goes_on);
        // A message always has a heading.
        let shown = Shown {
            begins: true,
            folded: !entry.unfolded,
        };
        entry.layout = kept.map(|kept| Layout::new(&item, look, Some(kept), shown));
        entry.item = item;
        self.bytes = (self.bytes + more).saturating_sub(less);
    }

    /// Adds the output of a tool call; returns false if the call is not loaded.
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
            used.end(output, outcome);
        }
        self.bytes += output.len();
        true
    }

    /// Keeps the output of a tool call that is not loaded yet.
    pub fn keep_output(&mut self, call: &str, output: &str, outcome: ToolOutcome) {
        self.late
            .push((call.to_owned(), output.to_owned(), outcome));
    }

    /// Adds output of the newest running tool call, of which the last lines are shown.
    pub fn printed(&mut self, text: &str) {
        let is_running = |entry: &&mut Entry| matches!(&entry.item.what, What::Used(used) if used.output.is_none());
        let entries = self.tail.iter_mut().rev();
        let found = entries.chain(self.items.iter_mut().rev()).find(is_running);
        if let Some(entry) = found
            && let What::Used(used) = &mut entry.item.what
        {
            entry.layout = None;
            used.live.push_str(text);
            used.live = last_lines(&used.live).to_owned();
        }
    }

    /// Shows the newest output of a tool that is running.
    pub fn show_output(&mut self, call: &str, tail: String) {
        let mut entries = self.newest().iter_mut().rev();
        let used = entries.find_map(|entry| match &mut entry.item.what {
            What::Used(used) if used.call.id == call => Some((&mut entry.layout, used)),
            _ => None,
        });
        if let Some((layout, used)) = used.filter(|(_, used)| used.output.is_none()) {
            used.live = tail;
            *layout = None;
        }
    }

    /// Returns true if an item is the first of its speaker: it gets a heading.
    fn begins(&self, index: usize) -> bool {
        let speaker = self.items[index].item.speaker();
        let before = self.items.iter().take(index).rev();
        let before = before.filter_map(|entry| entry.item.speaker()).next();
        before.map(|speaker| &speaker.id) != speaker.map(|speaker| &speaker.id)
    }

    /// Folds or unfolds one tool call or long message.
    fn toggle(&mut self, index: usize) -> bool {
        let Some(entry) = self.items.get_mut(index) else {
            return false;
        };
        let Some(folded) = entry.is_folded() else {
            return false;
        };
        entry.fold(!folded);
        self.arrange();
        true
    }

    /// Folds or unfolds all loaded tool calls and long messages.
    pub fn fold_all(&mut self, folded: bool) {
        for entry in self.items.iter_mut().chain(&mut self.tail) {
            if entry.is_folded() == Some(!folded) {
                entry.fold(folded);
            }
        }
        self.arrange();
    }

    fn any_folded(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|entry| entry.is_folded() == Some(true))
    }

    /// Visible rows from the top.
    pub fn rows(&self) -> impl Iterator<Item = VisibleRow<'_>> {
        self.visible.iter().filter_map(|spot| {
            let entry = &self.items[self.index(spot.id)?];
            let layout = entry.layout.as_ref()?;
            let mark = layout.mark(spot.row);
            let is_head = matches!(mark, Mark::Head(_));
            let is_marked = is_head && self.marked == Some(spot.id);
            let row = layout.row(spot.row)?;
            Some(VisibleRow {
                row,
                // The first row of a head is the gap before the message.
                is_own: entry.is_own() && mark != Mark::Head(0),
                stands_out: self.is_selected(*spot) || is_marked && !row.line.spans.is_empty(),
                selected: self.selected_part(*spot),
            })
        })
    }

    /// Number of rows that have come below since the end was seen.
    pub fn new_rows(&self) -> usize {
        self.new_rows
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

/// Returns the last lines of a text.
fn last_lines(text: &str) -> &str {
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(LIVE_BYTES))..];
    let whole = text.strip_suffix('\n').unwrap_or(text);
    let feeds = whole.rmatch_indices('\n').map(|(at, _)| at + 1);
    &text[feeds.take(LIVE_LINES).nth(LIVE_LINES - 1).unwrap_or(0)..]
}

#[cfg(test)]
mod tests;
