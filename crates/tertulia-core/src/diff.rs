//! Difference of two sessions: messages or tool calls that only one of them has, and those that
//! changed. [`words`](mod@words) compares two texts word by word.

mod item;
#[cfg(test)]
mod tests;
pub mod words;

use std::cell::OnceCell;

use crate::align::{Step, align};
use crate::entry::{Entry, Kind};
pub use item::Item;
use item::Likeness;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Messages, with their tool calls.
    Messages,
    /// Tool calls, with their results.
    Tools,
}

impl Scope {
    /// Returns the name of this many items.
    pub const fn items(self, count: usize) -> &'static str {
        match (self, count) {
            (Scope::Messages, 1) => "message",
            (Scope::Messages, _) => "messages",
            (Scope::Tools, 1) => "tool call",
            (Scope::Tools, _) => "tool calls",
        }
    }
}

/// What two sessions have in common before they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Common {
    /// The first entries, by hash: one session is a fork of the other, or both of a third.
    Ancestor,
    /// Equal or similar messages: one session may be a replay or a second import of the other.
    Alignment,
    /// Nothing.
    None,
}

impl Common {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            Common::Ancestor => "ancestor",
            Common::Alignment => "alignment",
            Common::None => "none",
        }
    }
}

/// One row of two sessions shown side by side.
#[derive(Clone, Copy, Debug)]
pub enum SideBySide<'c, 'a> {
    /// This many items that do not differ.
    Equal(usize),
    /// Items that resemble each other.
    Changed(&'c Item<'a>, &'c Item<'a>),
    /// Items that only one session has. They stand in one row only because both come next.
    Only(Option<&'c Item<'a>>, Option<&'c Item<'a>>),
}

/// Two sessions side by side, without the entries that they share by hash.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// What is compared.
    pub scope: Scope,
    /// Items of the first session.
    pub a: Vec<Item<'a>>,
    /// Items of the second session.
    pub b: Vec<Item<'a>>,
    /// How the items correspond, in order.
    pub steps: Vec<Step>,
}

impl<'a> Comparison<'a> {
    /// Compares the entries of two sessions after the last entry that they share. Speakers are told
    /// apart by role; in two team sessions, also by name.
    pub fn of(
        scope: Scope,
        (kind_a, a): (Kind, &'a [Entry]),
        (kind_b, b): (Kind, &'a [Entry]),
    ) -> Comparison<'a> {
        let by_name = kind_a == Kind::Team && kind_b == Kind::Team;
        let [a, b] = [a, b].map(|entries| match scope {
            Scope::Messages => item::messages(entries, by_name),
            Scope::Tools => item::tool_calls(entries),
        });
        let [keys_a, keys_b] =
            [&a, &b].map(|items| items.iter().map(Item::key).collect::<Vec<_>>());
        let cache = |items: &[Item<'_>]| vec![OnceCell::<Likeness>::new(); items.len()];
        let (cache_a, cache_b) = (cache(&a), cache(&b));
        let steps = align(&keys_a, &keys_b, |at_a, at_b| {
            if a[at_a].class() != b[at_b].class() {
                return 0.0;
            }
            let one = cache_a[at_a].get_or_init(|| Likeness::of(&a[at_a].text()));
            one.to(cache_b[at_b].get_or_init(|| Likeness::of(&b[at_b].text())))
        });
        Comparison { scope, a, b, steps }
    }

    /// Returns true if the sessions do not differ.
    pub fn is_identical(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.all(|step| matches!(step, Step::Equal(..)))
    }

    /// Returns how many items both have unchanged.
    pub fn equal(&self) -> usize {
        let steps = self.steps.iter();
        steps.filter(|step| matches!(step, Step::Equal(..))).count()
    }

    /// Returns true if both have an item that is equal or similar.
    pub fn has_common(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step, Step::Equal(..) | Step::Changed(..)))
    }

    /// Returns the items that only the first session has.
    pub fn only_a(&self) -> impl Iterator<Item = &Item<'a>> {
        self.steps.iter().filter_map(|step| match step {
            Step::OnlyA(at) => self.a.get(*at),
            _ => None,
        })
    }

    /// Returns the items that only the second session has.
    pub fn only_b(&self) -> impl Iterator<Item = &Item<'a>> {
        self.steps.iter().filter_map(|step| match step {
            Step::OnlyB(at) => self.b.get(*at),
            _ => None,
        })
    }

    /// Returns the pairs of items that changed.
    pub fn changed(&self) -> impl Iterator<Item = (&Item<'a>, &Item<'a>)> {
        self.steps.iter().filter_map(|step| match step {
            Step::Changed(a, b) => self.a.get(*a).zip(self.b.get(*b)),
            _ => None,
        })
    }

    /// Returns the rows in which the sessions are shown side by side.
    pub fn rows(&self) -> Vec<SideBySide<'_, 'a>> {
        let mut rows = Vec::new();
        let (mut equal, mut only_a, mut only_b) = (0, Vec::new(), Vec::new());
        for step in &self.steps {
            match *step {
                Step::Equal(..) => equal += 1,
                _ => {
                    rows.extend((equal > 0).then(|| SideBySide::Equal(std::mem::take(&mut equal))))
                }
            }
            match *step {
                Step::OnlyA(a) => only_a.push(&self.a[a]),
                Step::OnlyB(b) => only_b.push(&self.b[b]),
                Step::Equal(..) => beside(&mut only_a, &mut only_b, &mut rows),
                Step::Changed(a, b) => {
                    beside(&mut only_a, &mut only_b, &mut rows);
                    rows.push(SideBySide::Changed(&self.a[a], &self.b[b]));
                }
            }
        }
        beside(&mut only_a, &mut only_b, &mut rows);
        rows.extend((equal > 0).then_some(SideBySide::Equal(equal)));
        rows
    }
}

/// Moves items that only one session has into rows, as long as both have some in one row.
fn beside<'c, 'a>(
    only_a: &mut Vec<&'c Item<'a>>,
    only_b: &mut Vec<&'c Item<'a>>,
    rows: &mut Vec<SideBySide<'c, 'a>>,
) {
    let count = only_a.len().max(only_b.len());
    let row = |at: usize| SideBySide::Only(only_a.get(at).copied(), only_b.get(at).copied());
    rows.extend((0..count).map(row));
    only_a.clear();
    only_b.clear();
}
