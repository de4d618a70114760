//! Tokenisation of text for search.
//!
//! Indexed text ([`indexable`]), index queries (the phrases of [`SearchTerms`]) and matching
//! without an index ([`SearchTerms::matches`]) all use the same `cut`, so that they cannot
//! disagree.
//!
//! The index is FTS5 with `unicode61 remove_diacritics 2`. Its Unicode tables are older than ours
//! and it splits words at vowel signs, so it receives only unambiguous characters: ASCII letters
//! and digits, and private-use characters for everything else (see `cut::code`).

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use cut::{Kind, cut};

mod cut;
#[cfg(test)]
mod tests;

/// Reasons why a query cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchTermsError {
    /// The query has no word: it is empty or only punctuation.
    #[error("nothing to search for: type at least one word")]
    Nothing,
    /// The query has only exclusions.
    #[error("only exclusions: add at least one word that must occur")]
    OnlyExclusions,
    /// A quote is not closed.
    #[error("the quote opened at character {position} is never closed")]
    UnclosedQuote {
        /// Position of the opening quote in characters, from 1.
        position: usize,
    },
}

/// A parsed query: phrases that must all occur, and phrases that must not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerms {
    wanted: Vec<Phrase>,
    unwanted: Vec<Phrase>,
}

/// An excerpt of a text on one line, with its matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snippet {
    /// The excerpt, with `…` where the text continues.
    pub text: String,
    /// Byte ranges of `text` that match: sorted, not overlapping.
    pub marks: Vec<Range<usize>>,
}

/// Tokens that must follow each other; a single word is a phrase of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// The tokens, as [`indexable`] text has them: without quotes.
    pub tokens: Vec<String>,
    /// True if the last token may be a prefix of the token in the text.
    pub prefix: bool,
}

impl SearchTerms {
    /// Parses user input: `word`, `"a phrase"`, `-not`, `-"not this"`, `begin*`.
    pub fn parse(input: &str) -> Result<SearchTerms, SearchTermsError> {
        let mut words = SearchTerms {
            wanted: Vec::new(),
            unwanted: Vec::new(),
        };
        let mut rest = input;
        let mut after_blank = true;
        while let Some(first) = rest.chars().next() {
            if first.is_whitespace() {
                rest = &rest[first.len_utf8()..];
                after_blank = true;
                continue;
            }
            let excluded = after_blank && excludes(rest);
            after_blank = false;
            if excluded {
                rest = &rest[1..];
            }
            let (phrase, length) = if let Some(quoted) = rest.strip_prefix('"') {
                let Some(end) = quoted.find('"') else {
                    let before = &input[..input.len() - rest.len()];
                    return Err(SearchTermsError::UnclosedQuote {
                        position: before.chars().count() + 1,
                    });
                };
                let star = quoted[end + 1..].starts_with('*');
                (Phrase::of(&quoted[..end], star), end + 2)
            } else {
                let end = rest
                    .find(|c: char| c.is_whitespace() || c == '"')
                    .unwrap_or(rest.len());
                (Phrase::of_bare(&rest[..end]), end)
            };
            rest = &rest[length..];
            let side = if excluded {
                &mut words.unwanted
            } else {
                &mut words.wanted
            };
            side.extend(phrase.filter(|phrase| !side.contains(phrase)));
        }
        match (words.wanted.is_empty(), words.unwanted.is_empty()) {
            (false, _) => Ok(words),
            (true, false) => Err(SearchTermsError::OnlyExclusions),
            (true, true) => Err(SearchTermsError::Nothing),
        }
    }

    /// Returns the phrases that must all occur.
    pub fn wanted(&self) -> &[Phrase] {
        &self.wanted
    }

    /// Returns the phrases that must not occur.
    pub fn unwanted(&self) -> &[Phrase] {
        &self.unwanted
    }

    /// Returns true if the text matches the query, with the semantics of FTS5 but without an index.
    pub fn matches(&self, text: &str) -> bool {
        let cut = Tokens::of(text);
        let occurs = |phrase: &Phrase| cut.occurrences(phrase).next().is_some();
        self.wanted.iter().all(occurs) && !self.unwanted.iter().any(occurs)
    }

    /// Returns the relevance of a text; higher is better, 0 if no phrase occurs.
    pub fn score(&self, text: &str) -> f64 {
        let cut = Tokens::of(text);
        let damping = 1.2 * (0.25 + 0.75 * cut.tokens.len() as f64 / 120.0);
        let weight = |phrase: &Phrase| {
            let frequency = cut.occurrences(phrase).count() as f64;
            frequency / (frequency + damping)
        };
        self.wanted.iter().map(weight).sum()
    }

    /// Returns about `width` characters of the text around the best match.
    pub fn snippet(&self, text: &str, width: usize) -> Snippet {
        let line = one_line(text);
        let cut = Tokens::of(text);
        // Positions are counted in characters of the line, so that widths need no byte arithmetic.
        let place = |byte: usize| line.partition_point(|&(at, _)| at < byte);
        let mut hits: Vec<Hit> = Vec::new();
        for (term, phrase) in self.wanted.iter().enumerate() {
            let spans = cut.occurrences(phrase);
            hits.extend(spans.map(|span| Hit {
                start: place(span.start),
                end: place(span.end),
                term,
            }));
        }
        hits.sort_by_key(|hit| (hit.start, hit.end));
        let best = best_place(&hits, self.wanted.len(), width.saturating_sub(2));
        let window = window(&line, best, width);
        if window.is_empty() && width > 0 && !line.is_empty() {
            return Snippet {
                text: "…".to_owned(),
                marks: Vec::new(),
            };
        }
        rendered(&line, window, &hits)
    }
}

/// Returns the text of a snippet with `before` and `after` around every match.
pub fn highlighted(snippet: &Snippet, before: &str, after: &str) -> String {
    let mut out = String::with_capacity(snippet.text.len() + 16);
    let mut done = 0;
    for mark in &snippet.marks {
        // The fields are public: a range that does not fit the text is skipped and must not panic.
        let (Some(plain), Some(hit)) = (
            snippet.text.get(done..mark.start),
            snippet.text.get(mark.clone()),
        ) else {
            continue;
        };
        out.extend([plain, before, hit, after]);
        done = mark.end;
    }
    out.push_str(snippet.text.get(done..).unwrap_or_default());
    out
}

/// Returns the text as stored in FTS5: folded tokens separated by spaces.
pub fn indexable(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    cut(text, |token| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(token.text);
    });
    out
}

impl Phrase {
    /// Returns the phrase for a text, or `None` if the text has no word.
    fn of(text: &str, star: bool) -> Option<Phrase> {
        let mut tokens: Vec<String> = Vec::new();
        let mut kinds = Vec::new();
        cut(text, |token| {
            tokens.push(token.text.to_owned());
            kinds.push(token.kind);
        });
        let mut prefix = star;
        // A run at the end of a query may continue in the text. Its last character alone is indexed
        // only where a run ends; so it is dropped, or, if it is the only token, matches as a prefix
        // of pairs. A run followed by words is complete: its last character stays.
        match kinds.as_slice() {
            [.., Kind::Pair, Kind::Last] => {
                tokens.pop();
                prefix = false;
            }
            [.., Kind::Last] => prefix = true,
            _ => {}
        }
        (!tokens.is_empty()).then_some(Phrase { tokens, prefix })
    }

    /// Returns the phrase of an unquoted word; a star counts only directly after a letter.
    fn of_bare(word: &str) -> Option<Phrase> {
        let stem = word.trim_end_matches('*');
        let mut letters_end = None;
        cut(stem, |token| letters_end = Some(token.span.end));
        let star = stem.len() < word.len() && letters_end == Some(stem.len());
        Phrase::of(stem, star)
    }
}

/// Returns true for a minus that excludes: `-word` and `-"phrase"`, not `--flag` or `->`.
fn excludes(term: &str) -> bool {
    let next = term.strip_prefix('-').and_then(|rest| rest.chars().next());
    next.is_some_and(|c| c == '"' || is_searchable(c))
}

fn is_searchable(c: char) -> bool {
    let mut found = false;
    cut(c.encode_utf8(&mut [0; 4]), |_| found = true);
    found
}

/// Tokens of a text, stored for phrase search.
struct Tokens {
    /// All token texts, concatenated.
    letters: String,
    tokens: Vec<Kept>,
}

/// Ranges of one stored token.
struct Kept {
    letters: Range<usize>,
    span: Range<usize>,
    head: usize,
}

impl Tokens {
    fn of(text: &str) -> Tokens {
        let mut all = Tokens {
            letters: String::with_capacity(text.len()),
            tokens: Vec::new(),
        };
        cut(text, |token| {
            let start = all.letters.len();
            all.letters.push_str(token.text);
            all.tokens.push(Kept {
                letters: start..all.letters.len(),
                span: token.span,
                head: token.head,
            });
        });
        all
    }

    /// Returns the ranges of the source text where a phrase occurs.
    fn occurrences<'a>(&'a self, phrase: &'a Phrase) -> impl Iterator<Item = Range<usize>> + 'a {
        let last = phrase.tokens.len().saturating_sub(1);
        let fits = move |(at, token): (usize, &Kept)| {
            let found = &self.letters[token.letters.clone()];
            let asked = phrase.tokens[at].as_str();
            found == asked || (phrase.prefix && at == last && found.starts_with(asked))
        };
        let windows = self.tokens.windows(phrase.tokens.len().max(1));
        windows.filter_map(move |window| {
            let (first, end) = (window.first()?, window.last()?);
            let end = if phrase.prefix {
                end.head
            } else {
                end.span.end
            };
            (window.iter().enumerate().all(fits)).then_some(first.span.start..end)
        })
    }
}

/// Match of a phrase of the query, in characters of the line.
struct Hit {
    start: usize,
    end: usize,
    term: usize,
}

/// Returns the text on one line: each character with its byte offset in the original.
fn one_line(text: &str) -> Vec<(usize, char)> {
    let mut line: Vec<(usize, char)> = Vec::new();
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if line.last().is_some_and(|&(_, last)| last != ' ') {
                line.push((at, ' '));
            }
        } else if !c.is_control() && !matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
        {
            // Directional formatting is dropped too: it would reverse the terminal's line.
            line.push((at, c));
        }
    }
    if line.last().is_some_and(|&(_, last)| last == ' ') {
        line.pop();
    }
    line
}

/// Returns the range of at most `room` characters with the most distinct terms, then the most hits,
/// then the first.
fn best_place(hits: &[Hit], terms: usize, room: usize) -> Range<usize> {
    let mut counts = vec![0usize; terms];
    let (mut different, mut next) = (0, 0);
    let mut best = (0, 0, 0..0);
    for (at, first) in hits.iter().enumerate() {
        // The first hit is always included, even if it is longer than `room`.
        while next < hits.len() && (next <= at || hits[next].end <= first.start + room) {
            counts[hits[next].term] += 1;
            different += usize::from(counts[hits[next].term] == 1);
            next += 1;
        }
        if (different, next - at) > (best.0, best.1) {
            best = (different, next - at, first.start..hits[next - 1].end);
        }
        counts[first.term] -= 1;
        different -= usize::from(counts[first.term] == 0);
    }
    best.2
}

/// Returns the part of the line to show: `width` characters minus those for `…`, around the best
/// match.
fn window(line: &[(usize, char)], best: Range<usize>, width: usize) -> Range<usize> {
    if line.len() <= width {
        return 0..line.len();
    }
    let around = width.saturating_sub(best.len()) / 2;
    let mut start = best.start.saturating_sub(around).min(line.len() - width);
    let mut end = start + width;
    start += usize::from(start > 0);
    end -= usize::from(end < line.len() && end > 0);
    // Does not separate a letter from its combining marks: one letter less is better than half of
    // one.
    let splits = |at: usize| {
        let glued =
            |c: char| is_combining_mark(c) || matches!(c, '\u{200D}' | '\u{1F3FB}'..='\u{1F3FF}');
        at > 0 && at < line.len() && (glued(line[at].1) || line[at - 1].1 == '\u{200D}')
    };
    while start < end && (splits(start) || (start > 0 && line[start].1 == ' ')) {
        start += 1;
    }
    while start < end && (splits(end) || (end < line.len() && line[end - 1].1 == ' ')) {
        end -= 1;
    }
    start.min(end)..end
}

fn rendered(line: &[(usize, char)], window: Range<usize>, hits: &[Hit]) -> Snippet {
    let mut snippet = Snippet::default();
    if window.is_empty() {
        return snippet;
    }
    if window.start > 0 {
        snippet.text.push('…');
    }
    let mut hits = hits.iter().peekable();
    // Hits are sorted by start; the furthest end so far decides whether a character is in one.
    let mut marked_until = 0;
    for at in window.clone() {
        while let Some(hit) = hits.next_if(|hit| hit.start <= at) {
            marked_until = marked_until.max(hit.end);
        }
        let start = snippet.text.len();
        snippet.text.push(line[at].1);
        if at < marked_until {
            let end = snippet.text.len();
            match snippet.marks.last_mut() {
                Some(mark) if mark.end == start => mark.end = end,
                _ => snippet.marks.push(start..end),
            }
        }
    }
    if window.end < line.len() {
        snippet.text.push('…');
    }
    snippet
}
