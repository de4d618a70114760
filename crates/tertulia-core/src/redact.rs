//! Replaces text that looks like a secret by `[redacted:KIND]` before it is
//! written anywhere. A pure room: no IO, no environment.
//!
//! One Aho-Corasick scan over the keywords decides which rules may apply, so
//! that plain prose costs a single pass; a rule's regex is compiled at its first use.
//! The rules are data (`rules.toml`), and a user may add their own.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use rules::Rules;
use verdict::Candidate;

mod private_key;
mod rules;
mod verdict;

pub use rules::RulesError;

const MARKER_OPENING: &str = "[redacted:";
/// Removing a secret can bare another one beside it; more rounds than this only
/// happen in text made to cause them, and must not take quadratic time.
const MAX_ROUNDS: usize = 8;
/// A refused value is searched again for a nested assignment only up to this
/// length, which keeps the search linear on long runs without whitespace.
const MAX_NESTED_VALUE: usize = 256;

/// Text without its secrets, and how many of each kind were taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text that may be stored; borrowed when nothing had to change.
    pub text: Cow<'a, str>,
    /// How many secrets of each kind this call replaced.
    pub found: BTreeMap<String, u32>,
}

/// The rules that are compiled in.
static BUILT_IN: LazyLock<Rules> = LazyLock::new(Rules::built_in);
/// The same with a user's own. Like those it is set once, before anything is written.
static EXTENDED: OnceLock<Rules> = OnceLock::new();

/// Adds rules in the form of gitleaks to the built-in ones, for this process. Every regex is tried, so that none is
/// left out in silence.
pub fn extend(rules: &str) -> Result<(), RulesError> {
    let extended = Rules::extended(rules)?;
    // A second call comes from the same settings.
    let _ = EXTENDED.set(extended);
    Ok(())
}

fn rules() -> &'static Rules {
    EXTENDED.get().unwrap_or(&BUILT_IN)
}

/// Replaces every secret in a finished text.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    redact_as(text, Ending::Finished, rules())
}

/// Replaces every secret in a text that is still being streamed: the last word is left out, since it
/// may be half a key, and an open private key is redacted to the end. Keys are ASCII, so that text
/// without spaces (Chinese, say) is kept up to its last character.
#[must_use]
pub fn redact_unfinished(text: &str) -> Redacted<'_> {
    let complete_words = text.trim_end_matches(|c: char| c.is_ascii() && !c.is_ascii_whitespace());
    redact_as(complete_words, Ending::Streaming, rules())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Finished,
    Streaming,
}

/// Secrets by start: their end and kind. They never overlap.
type Spans<'r> = BTreeMap<usize, (usize, &'r str)>;

fn redact_as<'a>(original: &'a str, ending: Ending, rules: &Rules) -> Redacted<'a> {
    let mut text = Cow::Borrowed(original);
    let mut found = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let spans = find_secrets(&text, ending, rules);
        if spans.is_empty() {
            break;
        }
        let mut clean = String::with_capacity(text.len());
        let mut copied = 0;
        for (start, (end, kind)) in spans {
            clean.push_str(&text[copied..start]);
            clean.push_str(MARKER_OPENING);
            clean.push_str(kind);
            clean.push(']');
            copied = end;
            *found.entry(kind.to_owned()).or_insert(0) += 1;
        }
        clean.push_str(&text[copied..]);
        text = Cow::Owned(clean);
    }
    Redacted { text, found }
}

/// Markers and private keys split the text into segments that are searched one by
/// one: what a former call wrote is opaque, hence a second call changes nothing.
fn find_secrets<'r>(text: &str, ending: Ending, rules: &'r Rules) -> Spans<'r> {
    let mut spans: Spans<'r> = private_key::blocks(text, ending)
        .into_iter()
        .map(|block| (block.start, (block.end, private_key::KIND)))
        .collect();
    let mut opaque: Vec<Range<usize>> = spans.iter().map(|(s, (e, _))| *s..*e).collect();
    for marker in markers(text, rules) {
        if is_free(&spans, &marker) {
            opaque.push(marker);
        }
    }
    opaque.sort_unstable_by_key(|range| range.start);
    let mut start = 0;
    for range in opaque {
        search_segment(text, start..range.start, rules, &mut spans);
        start = range.end;
    }
    search_segment(text, start..text.len(), rules, &mut spans);
    spans
}

fn is_free(spans: &Spans<'_>, range: &Range<usize>) -> bool {
    let before = spans.range(..range.end).next_back();
    before.is_none_or(|(_, (end, _))| *end <= range.start)
}

/// Only known kinds count, or `[redacted:` would be a way to smuggle a key through.
fn markers(text: &str, rules: &Rules) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(MARKER_OPENING)
        .filter_map(|(start, opening)| {
            let rest = &text[start + opening.len()..];
            let kind = kinds(rules).find(|kind| {
                rest.strip_prefix(kind)
                    .is_some_and(|tail| tail.starts_with(']'))
            })?;
            Some(start..start + opening.len() + kind.len() + 1)
        })
}

fn kinds(rules: &Rules) -> impl Iterator<Item = &str> {
    let specific = rules.iter().map(|rule| rule.kind.as_str());
    std::iter::once(private_key::KIND).chain(specific)
}

/// Rules come most specific first, so the first one to claim a place keeps it.
fn search_segment<'r>(text: &str, segment: Range<usize>, rules: &'r Rules, spans: &mut Spans<'r>) {
    let offset = segment.start;
    let segment = &text[segment];
    for rule in rules.with_a_keyword_in(segment) {
        let Some(regex) = rule.regex() else { continue };
        let mut position = 0;
        while let Some(captures) = regex.captures_at(segment, position) {
            let Some(whole) = captures.get(0) else { break };
            let group = rule.secret(&captures).unwrap_or(whole);
            // In escaped JSON the closing quote is `\"`: that backslash is not the value's.
            let secret = group.as_str().trim_end_matches('\\');
            let candidate = Candidate {
                lead: &segment[whole.start()..group.start()],
                secret,
                following: segment[group.end()..].chars().next(),
            };
            position = whole.end().max(whole.start() + 1);
            if !secret.is_empty() && rules.accept(rule, &candidate, whole.as_str()) {
                let start = offset + group.start();
                let range = start..start + secret.len();
                if is_free(spans, &range) {
                    spans.insert(range.start, (range.end, &rule.kind));
                }
            } else if group.start() > whole.start() && secret.len() <= MAX_NESTED_VALUE {
                position = group.start();
            }
            if !segment.is_char_boundary(position) {
                break;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod corpus;
#[cfg(test)]
mod tests;
