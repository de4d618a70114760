//! Difference of two texts, word by word.

use std::ops::Range;

use crate::text_diff::{Part, TextDiff};

/// Maximum number of words, or of lines, that are compared one by one. The cost grows with the product
/// of length and difference, so longer texts are compared by lines, and even longer ones as a whole.
const MOST: usize = 5000;

/// What happened to a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordOp {
    /// Both texts have it.
    Equal,
    /// Only the second text has it.
    Insert,
    /// Only the first text has it.
    Delete,
}

impl WordOp {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            WordOp::Equal => "equal",
            WordOp::Insert => "insert",
            WordOp::Delete => "delete",
        }
    }
}

/// A part of a text. The equal and deleted parts make the first text, the equal and inserted ones the
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'a> {
    /// Which text has it.
    pub op: WordOp,
    /// The part.
    pub text: &'a str,
}

/// Compares two texts. Neighbouring parts have different operations.
pub fn words<'a>(a: &'a str, b: &'a str) -> Vec<Words<'a>> {
    let mut parts = Vec::new();
    let mut add = |op, text: &'a str| {
        if !text.is_empty() {
            parts.push(Words { op, text });
        }
    };
    for block in joined(blocks(a, b), a) {
        match block.equal {
            true => add(WordOp::Equal, &a[block.a]),
            false => {
                add(WordOp::Delete, &a[block.a]);
                add(WordOp::Insert, &b[block.b]);
            }
        }
    }
    parts
}

/// Corresponding bytes of two texts.
#[derive(Clone, Debug)]
struct Block {
    equal: bool,
    a: Range<usize>,
    b: Range<usize>,
}

fn blocks(a: &str, b: &str) -> Vec<Block> {
    for split in [token_ends, line_ends] {
        let (ends_a, ends_b) = (split(a), split(b));
        if ends_a.len() <= MOST && ends_b.len() <= MOST {
            return compared(a, &ends_a, b, &ends_b);
        }
    }
    vec![Block {
        equal: a == b,
        a: 0..a.len(),
        b: 0..b.len(),
    }]
}

fn compared(a: &str, ends_a: &[usize], b: &str, ends_b: &[usize]) -> Vec<Block> {
    let (pieces_a, pieces_b) = (pieces(a, ends_a), pieces(b, ends_b));
    let bytes = |ends: &[usize], range: Range<usize>| {
        let end = |count: usize| count.checked_sub(1).map_or(0, |last| ends[last]);
        end(range.start)..end(range.end)
    };
    let diff = TextDiff::new(pieces_a, pieces_b, None);
    let block = |part: Part| Block {
        equal: part.equal,
        a: bytes(ends_a, part.old),
        b: bytes(ends_b, part.new),
    };
    diff.parts().map(block).collect()
}

/// Joins changes with nothing but blanks between them: a changed phrase reads better than its words
/// one by one.
fn joined(blocks: Vec<Block>, a: &str) -> Vec<Block> {
    let mut joined: Vec<Block> = Vec::with_capacity(blocks.len());
    let mut blocks = blocks.into_iter().peekable();
    while let Some(mut block) = blocks.next() {
        let is_gap = block.equal
            && a[block.a.clone()].chars().all(|c| c == ' ')
            && joined.last().is_some_and(|last| !last.equal)
            && blocks.peek().is_some_and(|next| !next.equal);
        block.equal &= !is_gap;
        match joined.last_mut() {
            Some(last) if last.equal == block.equal => {
                (last.a.end, last.b.end) = (block.a.end, block.b.end);
            }
            _ => joined.push(block),
        }
    }
    joined
}

fn pieces<'a>(text: &'a str, ends: &[usize]) -> Vec<&'a str> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts
        .zip(ends)
        .map(|(start, end)| &text[start..*end])
        .collect()
}

fn token_ends(text: &str) -> Vec<usize> {
    let mut at = 0;
    // One more than is compared, so that the caller sees that there are too many.
    let tokens = tokens(text).take(MOST + 1);
    tokens
        .map(|token| {
            at += token.len();
            at
        })
        .collect()
}

fn line_ends(text: &str) -> Vec<usize> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').take(MOST + 1);
    lines
        .map(|line| {
            at += line.len();
            at
        })
        .collect()
}

/// Kind of character, by which a text is cut into words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Word,
    Blank,
    /// A word of its own: punctuation, line feeds, and characters of scripts without blanks.
    Alone,
}

fn sort(c: char) -> Sort {
    match c {
        '\n' => Sort::Alone,
        '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
            Sort::Alone
        }
        c if c.is_whitespace() => Sort::Blank,
        c if c.is_alphanumeric() || c == '_' => Sort::Word,
        // Marks that combine with the character before them belong to its word.
        '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => Sort::Word,
        _ => Sort::Alone,
    }
}

/// Cuts a text into words, blanks and punctuation, which make the text again.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut chars = rest.char_indices();
        let first = sort(chars.next()?.1);
        let is_other = |(_, c): &(usize, char)| first == Sort::Alone || sort(*c) != first;
        let end = chars.find(is_other).map_or(rest.len(), |(at, _)| at);
        let (token, later) = rest.split_at(end);
        rest = later;
        Some(token)
    })
}
