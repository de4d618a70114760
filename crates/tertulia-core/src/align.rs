//! Alignment of two sequences: which items both have, which only resemble each other, and which only
//! one of them has.
//!
//! Equal items are found as in a patience diff: items that occur once in both sequences are anchors,
//! the longest run of anchors in the same order stays, and the gaps between them are aligned in the
//! same way. Where every item repeats, the n-th occurrence in one sequence is paired with the n-th in
//! the other. The cost is bounded by the number of items times its logarithm, whatever the items are.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

/// Content of an item: items with equal keys are equal.
pub type Key = u128;

/// Likeness from which two items count as one that changed.
pub const ALIKE: f32 = 0.5;

/// Maximum depth of anchors within gaps. Ordinary sequences need a few levels; without a limit,
/// contrived ones would need one per item.
const DEPTH: usize = 48;

/// Size of a gap, in pairs of items, up to which the best pairs are searched among all of them.
const SMALL_GAP: usize = 1024;

/// Number of candidates per item in a larger gap.
const CANDIDATES: usize = 16;

/// Number of items without a pair in a larger gap after which only one of `SOME` is tried, until one
/// has a pair.
const MISSES: usize = 256;
const SOME: usize = 8;

/// One step through both sequences, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Both have the item.
    Equal(usize, usize),
    /// The items resemble each other.
    Changed(usize, usize),
    /// Only the first sequence has the item.
    OnlyA(usize),
    /// Only the second sequence has the item.
    OnlyB(usize),
}

impl Step {
    fn swapped(self) -> Step {
        match self {
            Step::Equal(a, b) => Step::Equal(b, a),
            Step::Changed(a, b) => Step::Changed(b, a),
            Step::OnlyA(a) => Step::OnlyB(a),
            Step::OnlyB(b) => Step::OnlyA(b),
        }
    }
}

/// Aligns two sequences. `likeness` returns how much an item of the first resembles one of the second,
/// from 0 to 1. Every item is in exactly one step, and both sequences stay in order. Swapping the
/// sequences swaps the result.
pub fn align(a: &[Key], b: &[Key], mut likeness: impl FnMut(usize, usize) -> f32) -> Vec<Step> {
    // Ties are broken in favour of the first sequence. The order of the arguments must not matter, so
    // the content decides which sequence is the first.
    if a <= b {
        Alignment::new(a, b, &mut likeness).run()
    } else {
        let mut swapped = |b: usize, a: usize| likeness(a, b);
        let steps = Alignment::new(b, a, &mut swapped).run();
        let steps = steps.into_iter().map(Step::swapped).collect();
        only_a_first(steps)
    }
}

/// Puts the items of the first sequence before those of the second wherever both have some between
/// two common items.
fn only_a_first(steps: Vec<Step>) -> Vec<Step> {
    let mut sorted = Vec::with_capacity(steps.len());
    let mut held = Vec::new();
    for step in steps {
        match step {
            Step::OnlyB(_) => held.push(step),
            Step::OnlyA(_) => sorted.push(step),
            Step::Equal(..) | Step::Changed(..) => {
                sorted.append(&mut held);
                sorted.push(step);
            }
        }
    }
    sorted.append(&mut held);
    sorted
}

struct Alignment<'a> {
    a: &'a [Key],
    b: &'a [Key],
    likeness: &'a mut dyn FnMut(usize, usize) -> f32,
    steps: Vec<Step>,
}

impl<'a> Alignment<'a> {
    fn new(
        a: &'a [Key],
        b: &'a [Key],
        likeness: &'a mut dyn FnMut(usize, usize) -> f32,
    ) -> Alignment<'a> {
        Alignment {
            a,
            b,
            likeness,
            steps: Vec::with_capacity(a.len().max(b.len())),
        }
    }

    fn run(mut self) -> Vec<Step> {
        self.gap(0..self.a.len(), 0..self.b.len(), 0);
        self.steps
    }

    /// Aligns the items between two common ones.
    fn gap(&mut self, mut a: Range<usize>, mut b: Range<usize>, depth: usize) {
        while !a.is_empty() && !b.is_empty() && self.a[a.start] == self.b[b.start] {
            self.steps.push(Step::Equal(a.start, b.start));
            (a.start, b.start) = (a.start + 1, b.start + 1);
        }
        let mut tail = 0;
        while a.len() > tail
            && b.len() > tail
            && self.a[a.end - 1 - tail] == self.b[b.end - 1 - tail]
        {
            tail += 1;
        }
        let (a_end, b_end) = (a.end - tail, b.end - tail);
        let anchors = match depth < DEPTH {
            true => self.anchors(a.start..a_end, b.start..b_end),
            false => Vec::new(),
        };
        if anchors.is_empty() {
            self.resembling(a.start..a_end, b.start..b_end);
        } else {
            let (mut from_a, mut from_b) = (a.start, b.start);
            for (at_a, at_b) in anchors {
                self.gap(from_a..at_a, from_b..at_b, depth + 1);
                self.steps.push(Step::Equal(at_a, at_b));
                (from_a, from_b) = (at_a + 1, at_b + 1);
            }
            self.gap(from_a..a_end, from_b..b_end, depth + 1);
        }
        let ends = (a_end..a.end).zip(b_end..b.end);
        self.steps.extend(ends.map(|(a, b)| Step::Equal(a, b)));
    }

    /// Returns pairs of equal items in the order of both sequences, as many as such a selection has.
    fn anchors(&self, a: Range<usize>, b: Range<usize>) -> Vec<(usize, usize)> {
        if a.is_empty() || b.is_empty() {
            return Vec::new();
        }
        let mut places: HashMap<Key, (Vec<usize>, Vec<usize>)> = HashMap::with_capacity(a.len());
        for at in a.clone() {
            places.entry(self.a[at]).or_default().0.push(at);
        }
        for at in b {
            if let Some((_, in_b)) = places.get_mut(&self.b[at]) {
                in_b.push(at);
            }
        }
        let pairs = |is_wanted: fn(usize, usize) -> bool| -> Vec<(usize, usize)> {
            let wanted = places.values();
            let wanted = wanted.filter(|(in_a, in_b)| is_wanted(in_a.len(), in_b.len()));
            let pairs = wanted.flat_map(|(in_a, in_b)| in_a.iter().zip(in_b));
            pairs.map(|(a, b)| (*a, *b)).collect()
        };
        let mut all = pairs(|in_a, in_b| in_a == 1 && in_b == 1);
        if all.is_empty() {
            all = pairs(|_, _| true);
        }
        all.sort_unstable();
        rising(&all)
    }

    /// Pairs the items of a gap that resemble each other.
    fn resembling(&mut self, a: Range<usize>, b: Range<usize>) {
        let pairs = match a.len().saturating_mul(b.len()) <= SMALL_GAP {
            true => self.best_pairs(&a, &b),
            false => self.near_pairs(&a, &b),
        };
        let (mut from_a, mut from_b) = (a.start, b.start);
        for (at_a, at_b) in pairs {
            self.steps.extend((from_a..at_a).map(Step::OnlyA));
            self.steps.extend((from_b..at_b).map(Step::OnlyB));
            self.steps.push(Step::Changed(at_a, at_b));
            (from_a, from_b) = (at_a + 1, at_b + 1);
        }
        self.steps.extend((from_a..a.end).map(Step::OnlyA));
        self.steps.extend((from_b..b.end).map(Step::OnlyB));
    }

    /// Returns the pairs with the greatest sum of likeness, in the order of both sequences.
    fn best_pairs(&mut self, a: &Range<usize>, b: &Range<usize>) -> Vec<(usize, usize)> {
        if a.is_empty() || b.is_empty() {
            return Vec::new();
        }
        // `best` has the sum for the items from each place on: one more row and column than items.
        let width = b.len() + 1;
        let mut best = vec![0.0_f32; (a.len() + 1) * width];
        let mut like = vec![0.0_f32; a.len() * b.len()];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                let likeness = (self.likeness)(a.start + i, b.start + j);
                let paired = match likeness >= ALIKE {
                    true => likeness + best[(i + 1) * width + j + 1],
                    false => 0.0,
                };
                like[i * b.len() + j] = likeness;
                let skipped = best[(i + 1) * width + j].max(best[i * width + j + 1]);
                best[i * width + j] = paired.max(skipped);
            }
        }
        let mut pairs = Vec::new();
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            let here = best[i * width + j];
            let likeness = like[i * b.len() + j];
            if likeness >= ALIKE && here <= likeness + best[(i + 1) * width + j + 1] {
                pairs.push((a.start + i, b.start + j));
                (i, j) = (i + 1, j + 1);
            } else if here <= best[(i + 1) * width + j] {
                i += 1;
            } else {
                j += 1;
            }
        }
        pairs
    }

    /// Returns pairs in the order of both sequences. Each item is compared only with a few at about the
    /// same place, and after many without a pair only some items are tried: a long gap is rather
    /// another conversation than one that was edited.
    fn near_pairs(&mut self, a: &Range<usize>, b: &Range<usize>) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let (mut from, mut misses) = (b.start, 0);
        for (number, at_a) in a.clone().enumerate() {
            if misses >= MISSES && !number.is_multiple_of(SOME) {
                continue;
            }
            let same_place = b.start + number.saturating_sub(CANDIDATES / 2);
            let first = from.max(same_place).min(b.end);
            let mut candidates = first..b.end.min(first + CANDIDATES);
            match candidates.find(|at_b| (self.likeness)(at_a, *at_b) >= ALIKE) {
                Some(at_b) => {
                    pairs.push((at_a, at_b));
                    (from, misses) = (at_b + 1, 0);
                }
                None => misses += 1,
            }
        }
        pairs
    }
}

/// Returns the longest selection of pairs, sorted by their first number, in which the second number
/// rises too.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // `ends[n]` is the pair that ends a rising selection of n + 1 pairs with the smallest second
    // number, `before` the pair before each in its selection.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, second)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *second);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut selection = Vec::with_capacity(ends.len());
    let mut last = ends.last().copied();
    while let Some(at) = last {
        selection.push(pairs[at]);
        last = before[at];
    }
    selection.reverse();
    selection
}
