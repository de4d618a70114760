//! Difference of two lists of texts, such as lines or words.
//!
//! Texts are numbered before they are compared, so that the generic algorithm is compiled once.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag, group_diff_ops};

/// Number of unchanged lines around a change in a unified diff.
const CONTEXT: usize = 3;

/// What happened to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Both lists have it.
    Equal,
    /// Only the old list has it.
    Delete,
    /// Only the new list has it.
    Insert,
}

impl Change {
    /// Returns the sign before a line in a unified diff.
    pub const fn sign(self) -> char {
        match self {
            Change::Equal => ' ',
            Change::Delete => '-',
            Change::Insert => '+',
        }
    }
}

/// Corresponding parts of both lists, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whether the parts are equal.
    pub equal: bool,
    /// Part of the old list.
    pub old: Range<usize>,
    /// Part of the new list.
    pub new: Range<usize>,
}

/// Difference of two lists of texts.
#[derive(Debug)]
pub struct TextDiff<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
}

impl<'a> TextDiff<'a> {
    /// Compares two lists. After `limit`, a difference that is larger than necessary is used.
    pub fn new(old: Vec<&'a str>, new: Vec<&'a str>, limit: Option<Duration>) -> TextDiff<'a> {
        let mut numbers = HashMap::new();
        let numbered_old = numbered(&old, &mut numbers);
        let numbered_new = numbered(&new, &mut numbers);
        let deadline = limit.map(|limit| Instant::now() + limit);
        let ops = compare(&numbered_old, &numbered_new, deadline);
        TextDiff { old, new, ops }
    }

    /// Compares the lines of two texts, with their line feeds.
    pub fn of_lines(old: &'a str, new: &'a str, limit: Option<Duration>) -> TextDiff<'a> {
        let lines = |text: &'a str| text.split_inclusive('\n').collect();
        TextDiff::new(lines(old), lines(new), limit)
    }

    /// Returns corresponding parts of both lists, in order.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.ops.iter().map(|op| Part {
            equal: op.tag() == DiffTag::Equal,
            old: op.old_range(),
            new: op.new_range(),
        })
    }

    /// Returns all texts with what happened to them: where both lists differ, those of the old list first.
    pub fn changes(&self) -> impl Iterator<Item = (Change, &'a str)> {
        self.ops.iter().flat_map(|op| self.changes_in(op))
    }

    fn changes_in(&self, op: &DiffOp) -> Vec<(Change, &'a str)> {
        let with = |change, texts: &[&'a str]| -> Vec<(Change, &'a str)> {
            texts.iter().map(|text| (change, *text)).collect()
        };
        let (old, new) = (&self.old[op.old_range()], &self.new[op.new_range()]);
        if op.tag() == DiffTag::Equal {
            return with(Change::Equal, old);
        }
        let mut changes = with(Change::Delete, old);
        changes.extend(with(Change::Insert, new));
        changes
    }

    /// Returns the share of texts that both lists have, from 0 to 1.
    pub fn ratio(&self) -> f64 {
        let equal: usize = self
            .parts()
            .filter(|part| part.equal)
            .map(|part| part.old.len())
            .sum();
        match self.old.len() + self.new.len() {
            0 => 1.0,
            all => 2.0 * equal as f64 / all as f64,
        }
    }

    /// Returns a unified diff of lines, without the names of the files. `line_end_mark` is the line that
    /// follows a last line without line feed, if any.
    pub fn unified(&self, line_end_mark: Option<&str>) -> String {
        let mut text = String::new();
        for hunk in group_diff_ops(self.ops.clone(), CONTEXT) {
            let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
                continue;
            };
            let old = span(first.old_range().start..last.old_range().end);
            let new = span(first.new_range().start..last.new_range().end);
            let _ = writeln!(text, "@@ -{old} +{new} @@");
            for (change, line) in hunk.iter().flat_map(|op| self.changes_in(op)) {
                text.push(change.sign());
                text.push_str(line);
                if line.ends_with('\n') {
                    continue;
                }
                text.push('\n');
                if let Some(mark) = line_end_mark {
                    text.push_str(mark);
                    text.push('\n');
                }
            }
        }
        text
    }
}

/// Formats lines of a hunk as its header names them: the first, counted from 1, and how many.
fn span(lines: Range<usize>) -> String {
    match lines.len() {
        1 => format!("{}", lines.start + 1),
        // No lines: after the line before.
        0 => format!("{},0", lines.start),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn numbered<'a>(texts: &[&'a str], numbers: &mut HashMap<&'a str, u32>) -> Vec<u32> {
    let number = |text: &&'a str| {
        let next = numbers.len() as u32;
        *numbers.entry(text).or_insert(next)
    };
    texts.iter().map(number).collect()
}

fn compare(old: &[u32], new: &[u32], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    // Capturing cannot fail.
    let _ = myers::diff_deadline(&mut hook, old, 0..old.len(), new, 0..new.len(), deadline);
    hook.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_unified_diff() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("10\n", "ten\n") + "end";
        let diff = TextDiff::of_lines(&old, &new, None);
        assert_eq!(
            diff.unified(Some("\\ No newline at end of file")),
            "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n\
             @@ -18,3 +18,4 @@\n 18\n 19\n 20\n+end\n\\ No newline at end of file\n"
        );
        let of = |old, new| TextDiff::of_lines(old, new, None).unified(None);
        assert_eq!(of("", "a\nb"), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(of("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(of("same\n", "same\n"), "");
    }

    #[test]
    fn the_ratio_is_that_of_common_texts() {
        let ratio = |old: &str, new: &str| {
            let words = |text| str::split_whitespace(text).collect();
            TextDiff::new(words(old), words(new), None).ratio()
        };
        assert_eq!(ratio("", ""), 1.0);
        assert_eq!(ratio("a b", "c"), 0.0);
        assert_eq!(ratio("a b c d", "a b x d"), 0.75);
    }

    proptest! {
        #[test]
        fn both_lists_can_be_made_from_the_changes(
            old in prop::collection::vec("[abc]", 0..20),
            new in prop::collection::vec("[abc]", 0..20),
        ) {
            let texts = |list: &'_ [String]| list.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
            let (a, b) = (texts(&old), texts(&new));
            let diff = TextDiff::new(a.split(' ').collect(), b.split(' ').collect(), None);
            let side = |without: Change| {
                let kept = diff.changes().filter(|(change, _)| *change != without);
                kept.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
            };
            prop_assert_eq!(side(Change::Insert), a.as_str());
            prop_assert_eq!(side(Change::Delete), b.as_str());
        }
    }
}
