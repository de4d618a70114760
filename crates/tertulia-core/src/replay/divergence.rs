//! Compares an original with its replay, turn by turn.

use std::time::Duration;

use super::{AnswerEnd, RecordedTurn};
use crate::text_diff::TextDiff;

/// Time limit for the search for the largest common part of two texts; after it, a smaller one is
/// used.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// First character of the scripts that may be written without spaces: Thai, and beyond it Chinese and
/// Japanese.
const FIRST_SPACELESS: char = '\u{e00}';

/// How a turn of the replay relates to the same turn of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnMatch {
    /// The same tool calls and the same text.
    Same,
    /// Other tool calls.
    OtherTools,
    /// The same tool calls, and another text.
    OtherText,
    /// One of the two has no complete answer.
    Missing,
    /// The agent failed, which the original agent did not.
    Failed,
}

impl TurnMatch {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            TurnMatch::Same => "same",
            TurnMatch::OtherTools => "other_tools",
            TurnMatch::OtherText => "other_text",
            TurnMatch::Missing => "missing",
            TurnMatch::Failed => "failed",
        }
    }
}

/// Comparison of one turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnComparison {
    /// The result.
    pub result: TurnMatch,
    /// Whether the tool calls are the same; `None` if there was nothing to compare.
    pub same_tools: Option<bool>,
    /// Whether the texts are the same; `None` if there was nothing to compare.
    pub same_text: Option<bool>,
    /// Similarity of the texts, from 0 to 1; `None` if there was nothing to compare.
    pub similarity: Option<f64>,
}

/// Comparison of an original with its replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The turns, in order.
    pub turns: Vec<TurnComparison>,
}

impl Comparison {
    /// Returns the index of the first turn that is not the same.
    pub fn first_divergence(&self) -> Option<usize> {
        let mut turns = self.turns.iter();
        turns.position(|turn| turn.result != TurnMatch::Same)
    }
}

/// Compares the turns of an original and its replay.
pub fn compare(original: &[RecordedTurn], replay: &[RecordedTurn]) -> Comparison {
    let count = original.len().max(replay.len());
    let turns = (0..count).map(|at| match (original.get(at), replay.get(at)) {
        (Some(original), Some(replay)) => compare_turn(original, replay),
        _ => uncompared(TurnMatch::Missing),
    });
    Comparison {
        turns: turns.collect(),
    }
}

fn compare_turn(original: &RecordedTurn, replay: &RecordedTurn) -> TurnComparison {
    match (&original.end, &replay.end) {
        (AnswerEnd::Complete, AnswerEnd::Complete)
        | (AnswerEnd::CutOff, AnswerEnd::CutOff)
        | (AnswerEnd::Failed(_), AnswerEnd::Failed(_)) => {}
        (_, AnswerEnd::Failed(_)) => return uncompared(TurnMatch::Failed),
        _ => return uncompared(TurnMatch::Missing),
    }
    let (ours, theirs) = (&original.calls, &replay.calls);
    let same_tools = ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(one, other)| one.is_same(other));
    let (ours, theirs) = (original.text.trim_end(), replay.text.trim_end());
    let same_text = ours == theirs;
    TurnComparison {
        result: match (same_tools, same_text) {
            (false, _) => TurnMatch::OtherTools,
            (true, false) => TurnMatch::OtherText,
            (true, true) => TurnMatch::Same,
        },
        same_tools: Some(same_tools),
        same_text: Some(same_text),
        similarity: Some(similarity(ours, theirs)),
    }
}

fn uncompared(result: TurnMatch) -> TurnComparison {
    TurnComparison {
        result,
        same_tools: None,
        same_text: None,
        similarity: None,
    }
}

/// Returns the similarity of two texts from 0 to 1, with four decimals: the part of their words that
/// they have in common, in order. Only equal texts have 1.
pub fn similarity(one: &str, other: &str) -> f64 {
    if one == other {
        return 1.0;
    }
    let diff = TextDiff::new(words(one), words(other), Some(DIFF_TIME));
    let ratio = (diff.ratio() * 10_000.0).round() / 10_000.0;
    // Texts that differ in spaces only, or long ones that differ in one word, would have 1.
    ratio.clamp(0.0, 0.9999)
}

/// Cuts a text into words and punctuation marks. Scripts that may be written without spaces are cut
/// into characters.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut word: Option<usize> = None;
    for (at, c) in text.char_indices() {
        if c.is_alphanumeric() && c < FIRST_SPACELESS {
            word.get_or_insert(at);
            continue;
        }
        words.extend(word.take().map(|from| &text[from..at]));
        if !c.is_whitespace() {
            words.push(&text[at..at + c.len_utf8()]);
        }
    }
    words.extend(word.map(|from| &text[from..]));
    words
}
