//! Decides to which session and which sequence number a row of a damaged database belongs.
//!
//! A line names its sequence number, and its hash covers the hash of the line before it: it fits
//! exactly one place. The columns of its row, and the index, are hints that a flipped bit makes wrong.

use std::collections::{HashMap, HashSet};

use super::image::{Candidate, Image};
use super::remains::Opening;
use tertulia_core::entry::{Hash, line_follows};
use tertulia_core::id::{Seq, SessionId};

/// Limit of parents to try for lines that do not continue the line before their hinted place:
/// enough for a few displaced lines, and bounded if a large part of the file is gone.
const MOST_TRIES: usize = 1_000_000;

/// A place in a log: the number of its session, and a sequence number.
pub(super) type Place = (i64, Seq);

/// A row that may hold an entry.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) rowid: i64,
    /// The place by the row's columns.
    pub(super) columns: Place,
    pub(super) candidate: Candidate,
    /// Content of the line, if it is readable.
    pub(super) content: Option<Content>,
}

/// What a readable line says of itself.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) seq: Seq,
    pub(super) hash: Hash,
    /// Number of entries of the same append that follow it.
    pub(super) then: u32,
    pub(super) opening: Option<Opening>,
}

/// Where a row belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The line continues the line before this place, or is an unaltered opening.
    Proven(Place),
    /// The hints say so, and nothing before the place contradicts them.
    Hinted(Place),
    /// The hints say so, but the line was altered: it does not continue the line before it.
    Altered(Place),
    /// A proven line has the place that the hints name.
    Nowhere,
}

impl Verdict {
    pub(super) fn place(self) -> Option<Place> {
        match self {
            Verdict::Proven(place) | Verdict::Hinted(place) | Verdict::Altered(place) => {
                Some(place)
            }
            Verdict::Nowhere => None,
        }
    }
}

/// The rows of a damaged database, and what else is known of their places.
pub(super) struct Placement<'a> {
    image: &'a Image<'a>,
    rows: &'a [Row],
    /// Places by the index, for each rowid.
    index: &'a HashMap<i64, Vec<Place>>,
    /// Ids of sessions, by their numbers.
    ids: &'a HashMap<i64, SessionId>,
    /// Hashes of the readable lines at each place that a hint names.
    hashes: HashMap<Place, Vec<Hash>>,
}

impl<'a> Placement<'a> {
    pub(super) fn new(
        image: &'a Image<'a>,
        rows: &'a [Row],
        index: &'a HashMap<i64, Vec<Place>>,
        ids: &'a HashMap<i64, SessionId>,
    ) -> Placement<'a> {
        let mut placement = Placement {
            image,
            rows,
            index,
            ids,
            hashes: HashMap::new(),
        };
        for row in rows {
            let Some(content) = &row.content else {
                continue;
            };
            for place in placement.possible(row, content) {
                let there = placement.hashes.entry(place).or_default();
                if !there.contains(&content.hash) {
                    there.push(content.hash);
                }
            }
        }
        placement
    }

    /// Decides where each row belongs.
    pub(super) fn decide(&self) -> Vec<Verdict> {
        let mut proven: Vec<Option<Place>> = self.rows.iter().map(|row| self.proven(row)).collect();
        self.search(&mut proven);
        let taken: HashSet<Place> = proven.iter().copied().flatten().collect();
        let decided = self.rows.iter().zip(&proven);
        decided
            .map(|(row, proven)| match proven {
                Some(place) => Verdict::Proven(*place),
                None => self.by_hints(row, &taken),
            })
            .collect()
    }

    /// Returns the hinted places of a row: those of the index first, as reading uses it.
    fn hints(&self, row: &Row) -> Vec<Place> {
        let within = row.candidate.within as u64;
        let indexed = self.index.get(&row.rowid).into_iter().flatten();
        let mut hints: Vec<Place> = indexed
            .map(|(no, seq)| (*no, Seq(seq.0.saturating_add(within))))
            .collect();
        if !hints.contains(&row.columns) {
            hints.push(row.columns);
        }
        hints.retain(|(no, seq)| *no > 0 && *seq > Seq::START);
        hints
    }

    /// Returns the places that a readable line can have: in the hinted sessions, where it says.
    fn possible(&self, row: &Row, content: &Content) -> Vec<Place> {
        let hints = self.hints(row);
        let agreeing: Vec<Place> = hints
            .iter()
            .copied()
            .filter(|(_, seq)| *seq == content.seq)
            .collect();
        match agreeing.is_empty() {
            false => agreeing,
            true => hints.iter().map(|(no, _)| (*no, content.seq)).collect(),
        }
    }

    fn line(&self, row: &Row) -> Option<String> {
        String::from_utf8(self.image.line(&row.candidate)?).ok()
    }

    /// Returns the hinted place of a row if its line fits there.
    fn proven(&self, row: &Row) -> Option<Place> {
        let content = row.content.as_ref()?;
        let possible = self.possible(row, content);
        if let Some(opening) = &content.opening {
            let named = |(no, _): &&Place| self.ids.get(no) == Some(&opening.session);
            let place = possible.iter().find(named).or(possible.first());
            return place.copied().filter(|_| opening.is_unaltered);
        }
        let line = self.line(row)?;
        possible.into_iter().find(|(no, seq)| {
            let parents = self.hashes.get(&(*no, seq.back(1)));
            let mut parents = parents.into_iter().flatten();
            parents.any(|parent| line_follows(&line, parent).is_some())
        })
    }

    /// Searches all sessions for the places of lines that no hint places: by the line before them,
    /// or else by the line after them.
    fn search(&self, proven: &mut [Option<Place>]) {
        let mut by_seq: HashMap<Seq, Vec<(i64, Hash)>> = HashMap::new();
        for ((no, seq), hashes) in &self.hashes {
            let there = by_seq.entry(*seq).or_default();
            there.extend(hashes.iter().map(|hash| (*no, *hash)));
        }
        let mut tries = MOST_TRIES;
        for at in 0..self.rows.len() {
            let row = &self.rows[at];
            let Some(content) = row.content.as_ref().filter(|_| proven[at].is_none()) else {
                continue;
            };
            if content.opening.is_some() {
                continue;
            }
            let Some(line) = self.line(row) else { continue };
            let before = by_seq.get(&content.seq.back(1));
            let parents = before.map(Vec::as_slice).unwrap_or_default();
            if parents.len() > tries {
                return;
            }
            tries -= parents.len();
            let mut parents = parents.iter();
            let parent = parents.find(|(_, hash)| line_follows(&line, hash).is_some());
            proven[at] = parent.map(|(no, _)| (*no, content.seq));
            if proven[at].is_none() && self.hints(row).len() > 1 {
                proven[at] = self.before_its_child(content, proven);
            }
        }
    }

    /// Returns the place before a proven line that continues this one.
    fn before_its_child(&self, content: &Content, proven: &[Option<Place>]) -> Option<Place> {
        let next = content.seq.next();
        let rows = self.rows.iter().zip(proven);
        let mut children = rows.filter(|(row, _)| {
            let there = row.content.as_ref();
            there.is_some_and(|there| there.seq == next && there.opening.is_none())
        });
        let (_, place) = children.find(|(row, _)| {
            let line = self.line(row);
            line.is_some_and(|line| line_follows(&line, &content.hash).is_some())
        })?;
        place.map(|(no, _)| (no, content.seq))
    }

    /// Places a row that nothing proves.
    fn by_hints(&self, row: &Row, taken: &HashSet<Place>) -> Verdict {
        let hints = self.hints(row);
        let mut free = hints.iter().copied().filter(|hint| !taken.contains(hint));
        let Some(content) = &row.content else {
            // Of two hints for an unreadable line the one that leaves the smaller gap.
            let place = free.min_by_key(|(_, seq)| *seq);
            return place.map_or(Verdict::Nowhere, Verdict::Altered);
        };
        let is_said = |(_, seq): &Place| *seq == content.seq;
        let said = free.clone().find(is_said);
        let said = said.or_else(|| hints.iter().copied().find(is_said));
        match said {
            Some((no, seq)) if self.hashes.contains_key(&(no, seq.back(1))) => {
                Verdict::Altered((no, seq))
            }
            Some(place) => Verdict::Hinted(place),
            None => free.next().map_or(Verdict::Nowhere, Verdict::Altered),
        }
    }
}
