//! Replaces text that looks like a secret with `[redacted:KIND]` before it is written anywhere.
//! Pure: no IO, no environment.
//!
//! One Aho-Corasick scan over the keywords selects the rules that may apply, so that plain prose
//! costs a single pass; the regex of a rule is compiled at its first use. The rules are data
//! (`rules.toml`), and users can add their own.

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
/// Maximum number of passes. Removing a secret can expose another one beside it; more passes are
/// needed only by hostile text and would take quadratic time.
const MAX_ROUNDS: usize = 8;
/// Maximum length of a rejected value that is searched again for a nested assignment. Keeps the
/// search linear on long runs without whitespace.
const MAX_NESTED_VALUE: usize = 256;

/// Redacted text, with the number of replaced secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// Text that may be stored; borrowed if unchanged.
    pub text: Cow<'a, str>,
    /// Number of secrets replaced by this call, by kind.
    pub found: BTreeMap<String, u32>,
}

/// Built-in rules.
static BUILT_IN: LazyLock<Rules> = LazyLock::new(Rules::built_in);
/// Built-in rules and the user's. Set once, before anything is written.
static EXTENDED: OnceLock<Rules> = OnceLock::new();

/// Adds rules in the gitleaks format to the built-in ones, for this process. The regexes of all
/// rules are compiled first, so that an invalid one is an error and not silently ignored.
pub fn extend(rules: &str) -> Result<(), RulesError> {
    let extended = Rules::extended(rules)?;
    // Later calls use the same settings, so the first value may stay.
    let _ = EXTENDED.set(extended);
    Ok(())
}

fn rules() -> &'static Rules {
    EXTENDED.get().unwrap_or(&BUILT_IN)
}

/// Redacts a complete text.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    redact_as(text, Ending::Finished, rules())
}

/// Redacts a text that is still being streamed: drops the last word, which may be part of a key,
/// and redacts an open private key up to the end. Keys are ASCII, so text without spaces (such as
/// Chinese) is kept up to its last character.
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

/// Secrets by start: end and kind. They never overlap.
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

/// Finds the secrets of a text. Placeholders and private keys split the text into segments that are
/// searched separately: existing placeholders are opaque, so redaction is idempotent.
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

/// Returns the placeholders in a text. Only known kinds count; otherwise `[redacted:` could be used
/// to hide a key.
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

/// Searches one segment. Rules are sorted from specific to general, and the first match of a range
/// wins.
fn search_segment<'r>(text: &str, segment: Range<usize>, rules: &'r Rules, spans: &mut Spans<'r>) {
    let offset = segment.start;
    let segment = &text[segment];
    for rule in rules.with_a_keyword_in(segment) {
        let Some(regex) = rule.regex() else { continue };
        let mut position = 0;
        while let Some(captures) = regex.captures_at(segment, position) {
            let Some(whole) = captures.get(0) else { break };
            let group = rule.secret(&captures).unwrap_or(whole);
            // In escaped JSON the closing quote is `\"`: that backslash is not part of the value.
            let secret = group.as_str().trim_end_matches('\\');
            let candidate = Candidate {
                lead: &segment[whole.start()..group.start()],
                secret,
                following: segment[group.end()..].chars().next(),
            };
            position = whole.end().max(whole.start() + 1);
            if !secret.is_empty() && rules.accept(rule, &candidate, whole, segment) {
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
