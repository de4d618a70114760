//! Text search in the whole session. The loaded items are searched here; the log is searched part by
//! part by the store service, newest part first, while the user reads on.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use tertulia_core::id::Seq;

use super::layout::{self, Mark};
use super::{Did, Entry, Spot, Transcript};
use crate::item::Item;

/// Place of an item in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemKey {
    /// Its log entry, or the last one before it.
    pub seq: Seq,
    /// Number of items between the first one of the entry and this one.
    pub ordinal: usize,
}

/// Number of matches by item; items without a match are left out.
pub type Matches = BTreeMap<ItemKey, usize>;

/// Request to search a part of the log.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Number of the search: the answer to an earlier one is dropped.
    pub ticket: u64,
    /// Pattern to look for.
    pub pattern: Regex,
    /// Last entry to search.
    pub upto: Seq,
}

/// Answer to a [`Scan`].
#[derive(Clone, Debug)]
pub struct Scanned {
    /// Matches in the part.
    pub matches: Matches,
    /// The entry before the part; [`Seq::START`] if there is no earlier part.
    pub after: Seq,
}

/// One match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hit {
    key: ItemKey,
    /// Index among the matches of the item.
    nth: usize,
}

/// A search, and how far it is.
#[derive(Debug)]
pub(super) struct Find {
    words: String,
    pattern: Regex,
    ticket: u64,
    /// Matches in the log after `searched`.
    found: Matches,
    /// The log is searched after this entry.
    searched: Seq,
    /// Whether the answer to a request is still to come.
    asked: bool,
    /// The match that is shown.
    at: Option<Hit>,
    /// Whether to show the next match below (true) or above once it is found.
    seeks: Option<bool>,
    /// Whether the item of `at` is still to be loaded.
    is_loading: bool,
    /// Position of `at`, from 1, and the number of matches.
    standing: (usize, usize),
}

/// What the search has found so far, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The log is being searched, with this many matches so far.
    Searching(usize),
    /// The match at this position is shown, out of this many.
    At(usize, usize),
}

/// Pattern for a text. Smart case: case-sensitive only if the text contains an uppercase letter.
fn pattern(words: &str) -> Option<Regex> {
    let pattern = RegexBuilder::new(&regex::escape(words))
        .case_insensitive(!words.chars().any(char::is_uppercase))
        .build();
    pattern.ok().filter(|_| !words.is_empty())
}

/// Counts the matches in consecutive items of a log.
pub fn matches(items: &[Item], pattern: &Regex) -> Matches {
    let keyed = keys(Seq::START, items.iter()).zip(items);
    counted(keyed, pattern)
}

fn counted<'a>(items: impl Iterator<Item = (ItemKey, &'a Item)>, pattern: &Regex) -> Matches {
    let counts = items.map(|(key, item)| (key, pattern.find_iter(&layout::text(item)).count()));
    counts.filter(|(_, count)| *count > 0).collect()
}

/// Keys of consecutive items that follow the entry `before`.
fn keys<'a>(before: Seq, items: impl Iterator<Item = &'a Item>) -> impl Iterator<Item = ItemKey> {
    let mut last: Option<ItemKey> = None;
    items.map(move |item| {
        let seq = item.seq.or(last.map(|key| key.seq)).unwrap_or(before);
        let ordinal = match last {
            Some(key) if key.seq == seq => key.ordinal + 1,
            _ => 0,
        };
        *last.insert(ItemKey { seq, ordinal })
    })
}

impl Transcript {
    /// Starts a search upwards from the visible rows, since the text was most likely written
    /// before.
    pub fn find(&mut self, words: &str) -> Did {
        self.finds += 1;
        let ticket = self.finds;
        let is_whole = !self.more_before && !self.more_after;
        self.find = pattern(words).map(|pattern| Find {
            words: words.to_owned(),
            pattern,
            ticket,
            found: Matches::new(),
            searched: if is_whole {
                Seq::START
            } else {
                Seq(self.total)
            },
            asked: false,
            at: None,
            seeks: None,
            is_loading: false,
            standing: (0, 0),
        });
        match self.find {
            Some(_) => self.find_next(false),
            None => Did::Changed,
        }
    }

    /// Ends the search.
    pub fn end_find(&mut self) {
        self.find = None;
    }

    /// Pattern to highlight.
    pub fn pattern(&self) -> Option<&Regex> {
        self.find.as_ref().map(|find| &find.pattern)
    }

    /// What the search has found so far; `None` without a search or a match.
    pub fn standing(&self) -> Option<Standing> {
        let find = self.find.as_ref()?;
        let (place, count) = find.standing;
        match find.searched > Seq::START {
            true => Some(Standing::Searching(count)),
            false => (place > 0).then_some(Standing::At(place, count)),
        }
    }

    /// Returns the next part of the log to search, each once.
    pub fn wants_scan(&mut self) -> Option<Scan> {
        let find = self.find.as_mut()?;
        if find.asked || find.searched == Seq::START {
            return None;
        }
        find.asked = true;
        Some(Scan {
            ticket: find.ticket,
            pattern: find.pattern.clone(),
            upto: find.searched,
        })
    }

    /// Takes the matches of a part of the log; `None` if it could not be read, which ends the search
    /// of the log.
    pub fn scanned(&mut self, ticket: u64, scanned: Option<Scanned>) -> Did {
        let Some(find) = self.find.as_mut().filter(|find| find.ticket == ticket) else {
            return Did::Nothing;
        };
        find.asked = false;
        match scanned {
            Some(scanned) => {
                find.found.extend(scanned.matches);
                // A part without an end would be asked for forever.
                find.searched = scanned.after.min(find.searched.back(1));
            }
            None => find.searched = Seq::START,
        }
        self.seek()
    }

    /// Goes to the next match below or above, around the ends of the session.
    pub fn find_next(&mut self, below: bool) -> Did {
        let Some(find) = &mut self.find else {
            return Did::Nothing;
        };
        find.seeks = Some(below);
        self.seek()
    }

    /// Goes to the match that is sought, if it is known by now.
    fn seek(&mut self) -> Did {
        let Some(find) = &self.find else {
            return Did::Nothing;
        };
        let known = Known::of(self, find);
        let hit = find.seeks.map(|below| self.sought(find, &known, below));
        let at = match hit {
            Some(Sought::Hit(hit)) => Some(hit),
            _ => find.at,
        };
        let standing = known.standing(at);
        let words = find.words.clone();
        if let Some(find) = &mut self.find {
            find.standing = standing;
        }
        match hit {
            Some(Sought::Hit(hit)) => self.go_to(hit),
            Some(Sought::Nothing) => {
                self.find.iter_mut().for_each(|find| find.seeks = None);
                Did::NotFound(words)
            }
            Some(Sought::Unknown) | None => Did::Changed,
        }
    }

    fn sought(&self, find: &Find, known: &Known<'_>, below: bool) -> Sought {
        let (from, next) = match below {
            true => {
                let from = match find.at {
                    Some(hit) => (hit.key, hit.nth + 1),
                    None => (self.visible_key(self.visible.first()), 0),
                };
                (from, known.below(from.0, from.1))
            }
            false => {
                let from = match find.at {
                    Some(hit) => (hit.key, hit.nth),
                    None => (self.visible_key(self.visible.last()), usize::MAX),
                };
                (from, known.above(from.0, from.1))
            }
        };
        if let Some(hit) = next {
            let (low, high) = (from.0.seq.min(hit.key.seq), from.0.seq.max(hit.key.seq));
            return match self.has_unsearched(find, low, high) {
                true => Sought::Unknown,
                false => Sought::Hit(hit),
            };
        }
        if find.searched > Seq::START {
            return Sought::Unknown;
        }
        let around = match below {
            true => known.below(ItemKey::default(), 0),
            false => known.above(LAST, usize::MAX),
        };
        around.map_or(Sought::Nothing, Sought::Hit)
    }

    /// Returns true if entries between these two are neither searched nor loaded.
    fn has_unsearched(&self, find: &Find, low: Seq, high: Seq) -> bool {
        let upto = high.back(1).min(find.searched);
        let (first, last) = (self.first_seq(), self.last_seq());
        let before_window = low.next() <= upto.min(first.back(1));
        let after_window = low.max(last).next() <= upto;
        before_window || after_window
    }

    fn visible_key(&self, spot: Option<&Spot>) -> ItemKey {
        let index = spot.and_then(|spot| self.index(spot.id));
        let key = index.and_then(|index| self.keyed().nth(index));
        key.map_or(LAST, |(key, _)| key)
    }

    /// Loaded items with their keys, without those in `tail`.
    fn keyed(&self) -> impl Iterator<Item = (ItemKey, &Item)> {
        keyed(self.before_items(), &self.items)
    }

    /// The entry before the loaded items.
    fn before_items(&self) -> Seq {
        match self.more_before {
            true => self.first_seq().back(1),
            false => Seq::START,
        }
    }

    /// Shows a match, loading the items around it if necessary.
    fn go_to(&mut self, hit: Hit) -> Did {
        let is_loaded = self.keyed().any(|(key, _)| key == hit.key);
        if let Some(find) = &mut self.find {
            (find.at, find.seeks, find.is_loading) = (Some(hit), None, !is_loaded);
        }
        match is_loaded {
            true => self.reveal_hit(),
            false => self.jump(hit.key.seq),
        }
        Did::Changed
    }

    /// Scrolls to a match whose item was just loaded.
    pub(super) fn arrive(&mut self) {
        if self.find.as_ref().is_some_and(|find| find.is_loading) {
            self.reveal_hit();
        }
    }

    fn reveal_hit(&mut self) {
        let Some((index, byte)) = self.hit_place() else {
            return;
        };
        if let Some(find) = &mut self.find {
            find.is_loading = false;
        }
        self.marked = None;
        let is_hidden = match layout::fold_of(&self.items[index].item) {
            Some(fold) => byte >= fold.end,
            None => true,
        };
        if is_hidden && self.items[index].is_folded() == Some(true) {
            self.toggle(index);
        }
        let row = self.lay(index).row_of(Mark::Text(byte));
        let id = self.id(index);
        self.reveal(Spot { id, row });
    }

    /// Index of the item of the match that is shown, and the offset of the match in its text.
    fn hit_place(&self) -> Option<(usize, usize)> {
        let find = self.find.as_ref()?;
        let hit = find.at?;
        let index = self.keyed().position(|(key, _)| key == hit.key)?;
        let text = layout::text(&self.items[index].item);
        let mut starts = find.pattern.find_iter(&text).map(|found| found.start());
        Some((index, starts.nth(hit.nth)?))
    }

    /// The match that is shown, if it is visible: index of its row, and its index among the matches
    /// of the row.
    pub fn current_hit(&self) -> Option<(usize, usize)> {
        let find = self.find.as_ref()?;
        let (index, byte) = self.hit_place()?;
        let id = self.id(index);
        let layout = self.items[index].layout.as_ref()?;
        let row = layout.row_of(Mark::Text(byte));
        let seen = self
            .visible
            .iter()
            .position(|spot| *spot == Spot { id, row })?;
        let text = layout::text(&self.items[index].item);
        let line = layout.row(row)?.source.start.min(byte);
        Some((seen, find.pattern.find_iter(text.get(line..byte)?).count()))
    }
}

/// Comes after all items.
const LAST: ItemKey = ItemKey {
    seq: Seq(u64::MAX),
    ordinal: usize::MAX,
};

fn keyed<'a>(
    before: Seq,
    entries: impl IntoIterator<Item = &'a Entry> + Copy,
) -> impl Iterator<Item = (ItemKey, &'a Item)> {
    let items = |entry: &'a Entry| &entry.item;
    keys(before, entries.into_iter().map(items)).zip(entries.into_iter().map(items))
}

/// Result of looking for the next match.
#[derive(Clone, Copy, Debug)]
enum Sought {
    Hit(Hit),
    /// It may be in a part of the log that is not searched yet.
    Unknown,
    /// There is no match.
    Nothing,
}

/// All matches known so far: those of the loaded items, which may be newer than the log, and those of
/// the rest of the log.
struct Known<'a> {
    loaded: Matches,
    found: &'a Matches,
    transcript: &'a Transcript,
}

impl<'a> Known<'a> {
    fn of(transcript: &'a Transcript, find: &'a Find) -> Known<'a> {
        let mut loaded = counted(transcript.keyed(), &find.pattern);
        if transcript.more_after {
            let tail = keyed(Seq(transcript.total), &transcript.tail);
            loaded.extend(counted(tail, &find.pattern));
        }
        Known {
            loaded,
            found: &find.found,
            transcript,
        }
    }

    /// Returns true if the entry is among the loaded ones.
    fn is_loaded(&self, seq: Seq) -> bool {
        let transcript = self.transcript;
        if transcript.items.is_empty() && transcript.tail.is_empty() {
            return false;
        }
        let tail = transcript.tail.iter().find_map(|entry| entry.item.seq);
        let in_tail = transcript.more_after && tail.is_some_and(|tail| seq >= tail);
        let after = !transcript.more_after || seq <= transcript.last_seq();
        let before = !transcript.more_before || seq >= transcript.first_seq();
        in_tail || before && after
    }

    fn count(&self, key: ItemKey) -> usize {
        let found = || self.found.get(&key).filter(|_| !self.is_loaded(key.seq));
        self.loaded.get(&key).or_else(found).copied().unwrap_or(0)
    }

    /// The last match before the match with this index.
    fn above(&self, key: ItemKey, nth: usize) -> Option<Hit> {
        if let Some(nth) = nth.min(self.count(key)).checked_sub(1) {
            return Some(Hit { key, nth });
        }
        let loaded = self.loaded.range(..key).next_back();
        let mut found = self.found.range(..key).rev();
        let found = found.find(|(key, _)| !self.is_loaded(key.seq));
        let (key, count) = loaded.into_iter().chain(found).max()?;
        let nth = count.checked_sub(1)?;
        Some(Hit { key: *key, nth })
    }

    /// The first match from the match with this index on.
    fn below(&self, key: ItemKey, nth: usize) -> Option<Hit> {
        if nth < self.count(key) {
            return Some(Hit { key, nth });
        }
        let after = || {
            use std::ops::Bound::{Excluded, Unbounded};
            (Excluded(key), Unbounded)
        };
        let loaded = self.loaded.range(after()).next();
        let mut found = self.found.range(after());
        let found = found.find(|(key, _)| !self.is_loaded(key.seq));
        let (key, _) = loaded.into_iter().chain(found).min()?;
        Some(Hit { key: *key, nth: 0 })
    }

    /// Position of a match, from 1, and the number of all.
    fn standing(&self, at: Option<Hit>) -> (usize, usize) {
        let (mut before, mut all) = (0, 0);
        let found = self.found.iter();
        let found = found.filter(|(key, _)| !self.is_loaded(key.seq));
        for (key, count) in self.loaded.iter().chain(found) {
            all += count;
            if at.is_some_and(|at| *key < at.key) {
                before += count;
            }
        }
        (at.map_or(0, |at| before + at.nth + 1), all)
    }
}
