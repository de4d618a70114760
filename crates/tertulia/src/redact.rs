//! Replaces text that looks like a secret by `[redacted:KIND]` before it is
//! written anywhere. A pure room: no IO, no environment.
//!
//! One Aho-Corasick scan over the keywords decides which rules may apply, so
//! that plain prose costs a single pass; a rule's regex is compiled at its first use.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;

mod private_key;

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
    pub found: BTreeMap<&'static str, u32>,
}

/// Replaces every secret in a finished text.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    redact_as(text, Ending::Finished)
}

/// Replaces every secret in a text that is still being streamed: the last word is left out, since it
/// may be half a key, and an open private key is redacted to the end. Keys are ASCII, so that text
/// without spaces (Chinese, say) is kept up to its last character.
#[must_use]
pub fn redact_unfinished(text: &str) -> Redacted<'_> {
    let complete_words = text.trim_end_matches(|c: char| c.is_ascii() && !c.is_ascii_whitespace());
    redact_as(complete_words, Ending::Streaming)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Finished,
    Streaming,
}

/// Secrets by start: their end and kind. They never overlap.
type Spans = BTreeMap<usize, (usize, &'static str)>;

fn redact_as(original: &str, ending: Ending) -> Redacted<'_> {
    let mut text = Cow::Borrowed(original);
    let mut found = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let spans = find_secrets(&text, ending);
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
            *found.entry(kind).or_insert(0) += 1;
        }
        clean.push_str(&text[copied..]);
        text = Cow::Owned(clean);
    }
    Redacted { text, found }
}

/// Markers and private keys split the text into segments that are searched one by
/// one: what a former call wrote is opaque, hence a second call changes nothing.
fn find_secrets(text: &str, ending: Ending) -> Spans {
    let mut spans: Spans = private_key::blocks(text, ending)
        .into_iter()
        .map(|block| (block.start, (block.end, private_key::KIND)))
        .collect();
    let mut opaque: Vec<Range<usize>> = spans.iter().map(|(s, (e, _))| *s..*e).collect();
    for marker in markers(text) {
        if is_free(&spans, &marker) {
            opaque.push(marker);
        }
    }
    opaque.sort_unstable_by_key(|range| range.start);
    let mut start = 0;
    for range in opaque {
        search_segment(text, start..range.start, &mut spans);
        start = range.end;
    }
    search_segment(text, start..text.len(), &mut spans);
    spans
}

fn is_free(spans: &Spans, range: &Range<usize>) -> bool {
    let before = spans.range(..range.end).next_back();
    before.is_none_or(|(_, (end, _))| *end <= range.start)
}

/// Only known kinds count, or `[redacted:` would be a way to smuggle a key through.
fn markers(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(MARKER_OPENING)
        .filter_map(|(start, opening)| {
            let rest = &text[start + opening.len()..];
            let kind = kinds().find(|kind| {
                rest.strip_prefix(kind)
                    .is_some_and(|tail| tail.starts_with(']'))
            })?;
            Some(start..start + opening.len() + kind.len() + 1)
        })
}

fn kinds() -> impl Iterator<Item = &'static str> {
    let specific = RULES.iter().map(|rule| rule.kind);
    std::iter::once(private_key::KIND).chain(specific)
}

/// Rules come most specific first, so the first one to claim a place keeps it.
fn search_segment(text: &str, segment: Range<usize>, spans: &mut Spans) {
    let offset = segment.start;
    let segment = &text[segment];
    for index in rules_with_a_keyword_in(segment) {
        let rule = &RULES[index];
        let Some(regex) = rule.regex() else { continue };
        let mut position = 0;
        while let Some(captures) = regex.captures_at(segment, position) {
            let Some(whole) = captures.get(0) else { break };
            // Patterns with alternatives have several groups; the last that took part is the value.
            let Some(group) = captures.iter().skip(1).flatten().last() else {
                break;
            };
            // In escaped JSON the closing quote is `\"`: that backslash is not the value's.
            let secret = group.as_str().trim_end_matches('\\');
            let candidate = Candidate {
                lead: &segment[whole.start()..group.start()],
                secret,
                following: segment[group.end()..].chars().next(),
            };
            position = whole.end();
            if (rule.accepts)(&candidate) {
                let start = offset + group.start();
                let range = start..start + secret.len();
                if is_free(spans, &range) {
                    spans.insert(range.start, (range.end, rule.kind));
                }
            } else if group.start() > whole.start() && secret.len() <= MAX_NESTED_VALUE {
                position = group.start();
            }
        }
    }
}

static PREFILTER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(keyword_owners().map(|(keyword, _)| keyword))
        .ok()
});

static OWNER_OF_KEYWORD: LazyLock<Vec<usize>> =
    LazyLock::new(|| keyword_owners().map(|(_, owner)| owner).collect());

fn keyword_owners() -> impl Iterator<Item = (&'static str, usize)> {
    let numbered = RULES.iter().enumerate();
    numbered.flat_map(|(index, rule)| rule.keywords.iter().map(move |keyword| (*keyword, index)))
}

fn rules_with_a_keyword_in(segment: &str) -> BTreeSet<usize> {
    let Some(prefilter) = PREFILTER.as_ref() else {
        // Slow is better than a leak.
        return (0..RULES.len()).collect();
    };
    prefilter
        .find_overlapping_iter(segment)
        .map(|hit| OWNER_OF_KEYWORD[hit.pattern().as_usize()])
        .collect()
}

/// A possible secret: the matched text before it, itself, and the next character.
struct Candidate<'a> {
    lead: &'a str,
    secret: &'a str,
    following: Option<char>,
}

struct Rule {
    kind: &'static str,
    /// Lower case; each text the pattern matches contains at least one of them.
    keywords: &'static [&'static str],
    pattern: &'static str,
    accepts: fn(&Candidate<'_>) -> bool,
    compiled: OnceLock<Option<Regex>>,
}

impl Rule {
    fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| Regex::new(self.pattern).ok());
        compiled.as_ref()
    }
}

/// A key that starts a word. The letter that ends a JSON escape (`\n`), a percent
/// escape (`%3D`) or a terminal colour (`ESC[0m`) does not belong to the word.
/// Bodies are open-ended: what follows a fixed-length key must not stay behind.
macro_rules! key {
    ($pattern:literal) => {
        concat!(
            r"(?-u)(?:\b|\\[nrt]|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]*m)(",
            $pattern,
            ")"
        )
    };
}

/// The end of a name whose value is secret.
macro_rules! secret_name {
    () => {
        concat!(
            r"(?i-u:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|secret_key_base",
            r"|(?:api|access|account|auth|encryption|master|private|secret|shared|signing)[_-]?key)",
            r"(?:[_-]?[0-9]{1,2})?"
        )
    };
}

// Values are ASCII: text to show to people in other scripts is no secret, and small
// classes keep the first compilation of these regexes short.
macro_rules! quoted_value {
    () => {
        r#"[bBfFrRuU]{0,2}\\*(?:"([!-~&&[^"]]{8,})"|'([!-~&&[^']]{8,})'|`([!-~&&[^`]]{8,})`)"#
    };
}

macro_rules! bare_value {
    () => {
        r#"\\*["'`]?([A-Za-z0-9_~!@#$%^*+./=:?-]{8,})"#
    };
}

/// Builds the table of rules: kind, keywords, verdict on a match, pattern.
macro_rules! rules {
    // The last letters stand for `apikey`, `accesskey` and so on: the word "key" alone
    // is too frequent in prose to start a regex for it.
    (NAMES) => {
        &[
            "pass", "pwd", "secret", "token", "credential", "_key", "-key", "ikey", "skey", "tkey",
            "hkey", "nkey", "rkey", "ekey", "dkey", "gkey",
        ]
    };
    ([$($keyword:literal),+]) => { &[$($keyword),+] };
    ($($kind:literal $keywords:tt $accepts:ident $pattern:expr;)+) => {
        static RULES: [Rule; [$($kind),+].len()] = [
            $(Rule {
                kind: $kind,
                keywords: rules!($keywords),
                pattern: $pattern,
                accepts: $accepts,
                compiled: OnceLock::new(),
            }),+
        ];
    };
}

// Most specific first. The layout is by hand: one rule, one or two lines.
rules! {
    "anthropic-key" ["sk-ant-"] is_real key!(r"sk-ant-[A-Za-z0-9_-]{16,}");
    "openrouter-key" ["sk-or-"] is_real key!(r"sk-or-(?:v[0-9]+-)?[A-Za-z0-9]{20,}");
    "openai-key" ["sk-"] is_openai_key key!(r"sk-[A-Za-z0-9_-]{20,}");
    "google-key" ["aiza", "gocspx-", "ya29."] is_real
        key!(r"AIza[A-Za-z0-9_-]{35,}|GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,}");
    "github-token" ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"] is_real
        key!(r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}");
    "gitlab-token" ["glpat-", "glptt-", "gldt-", "glrt-", "glsoat-"] is_real
        key!(r"gl(?:pat|ptt|dt|rt|soat)-[A-Za-z0-9_-]{18,}(?:\.[A-Za-z0-9]+){0,3}");
    "slack-token" ["xox", "xapp-"] is_real
        key!(r"(?:xoxe\.)?xox[a-z]-[A-Za-z0-9%-]{10,}|xapp-[A-Za-z0-9-]{10,}");
    "slack-webhook" ["hooks.slack.com"] is_real
        r"(?-u)\bhooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]{20,})";
    "aws-key" ["akia", "asia"] is_real key!(r"A[KS]IA[A-Z0-9]{16}\b");
    "aws-key" ["secretaccesskey", "secret_access_key", "aws_secret"] is_real
        r#"(?-u)(?i:secret_?access_?key|aws_secret(?:_key)?)[\\"']*[ \t]*[:=][ \t]*[\\"']*([A-Za-z0-9/+]{40,}={0,2})"#;
    "stripe-key" ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"] is_real
        key!(r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,}");
    "huggingface-token" ["hf_"] is_real key!(r"hf_[A-Za-z0-9]{30,}");
    "npm-token" ["npm_"] is_real key!(r"npm_[A-Za-z0-9]{30,}");
    "pypi-token" ["pypi-age"] is_real key!(r"pypi-AgE[A-Za-z0-9_-]{16,}");
    "sendgrid-key" ["sg."] is_real key!(r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}");
    "groq-key" ["gsk_"] is_real key!(r"gsk_[A-Za-z0-9]{20,}");
    "xai-key" ["xai-"] is_real key!(r"xai-[A-Za-z0-9]{20,}");
    "perplexity-key" ["pplx-"] is_real key!(r"pplx-[A-Za-z0-9]{20,}");
    "replicate-token" ["r8_"] is_real key!(r"r8_[A-Za-z0-9]{30,}");
    "telegram-token" [":aa", "/bot"] is_real
        r"(?-u)(?:\b|\bbot|\\[nrt]|\x1b\[[0-9;]*m)([0-9]{8,12}:AA[A-Za-z0-9_-]{32,})|/bot([0-9]{6,12}:[A-Za-z0-9_-]{30,})";
    "discord-token" ["discord", "token", "bot "] is_real
        key!(r"[MNO][A-Za-z0-9]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}");
    "discord-webhook" ["/api/webhooks/"] is_real
        r"(?-u)\bdiscord(?:app)?\.com/api/webhooks/([0-9]{15,}/[A-Za-z0-9_-]{40,})";
    "age-key" ["age-secret-key-"] is_real key!(r"AGE-SECRET-KEY-1[A-Z0-9]{40,}");
    "jwt" ["eyj"] is_real
        key!(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}");
    // ASCII only: in Chinese prose an address may follow a port without a space.
    "url-password" ["://"] is_real
        r#"(?-u:\b)[A-Za-z][A-Za-z0-9+.-]{1,20}://[!-~&&[^/?#:@"'`<>]]{0,80}:([!-~&&[^/?#"'`<>]]+)@[A-Za-z0-9\[$]"#;
    "basic-auth" ["authorization"] is_real
        r#"(?-u)(?i:authorization)[\\"']*[ \t]*[:=,][ \t]*[\\"']*(?i:basic)[ \t]+([A-Za-z0-9+/_-]{8,}={0,2})"#;
    "bearer-token" ["bearer"] is_bearer_token
        r#"(?-u)(?:(?i:authorization)[\\"']*[ \t]*[:=,][ \t]*[\\"']*)?\b(?i:bearer)[ \t]+([A-Za-z0-9._~+/=:-]{16,})"#;
    "secret" NAMES is_secret_value
        concat!(secret_name!(), r#"[\\"'`]*\]?(?:"#,
            // A declaration with a type, `TOKEN: &str = "..."`, then a plain assignment.
            r#"[ \t]*:[ \t]*[A-Za-z&][ -~&&[^="'`]]{0,30}=[ \t]*"#, quoted_value!(),
            r"|[ \t]*(?:=>|:=|[:=：]=?)[ \t]*(?:", quoted_value!(), "|", bare_value!(), "))");
    "secret" NAMES is_secret_value
        concat!("<[A-Za-z_.:-]{0,40}", secret_name!(), r">([!-~&&[^<]]{8,})</");
    "secret" NAMES is_secret_value
        concat!("--[A-Za-z0-9-]{0,40}", secret_name!(), r"[ \t]+", bare_value!());
}

fn is_real(candidate: &Candidate<'_>) -> bool {
    !is_placeholder(candidate.secret)
}

/// `sk-` also starts CSS classes (`sk-toggleable__label-arrow`) and package names.
fn is_openai_key(candidate: &Candidate<'_>) -> bool {
    let body = candidate.secret.trim_start_matches("sk-");
    let is_marked = ["proj-", "svcacct-", "admin-", "None-"]
        .iter()
        .any(|mark| body.starts_with(mark));
    let has_long_run = body.split(['-', '_']).any(|run| run.len() >= 20);
    !is_placeholder(body) && (is_marked || has_long_run || !looks_like_words(body))
}

fn is_bearer_token(candidate: &Candidate<'_>) -> bool {
    let is_header = candidate.lead.trim_end().len() > "bearer".len();
    !is_placeholder(candidate.secret)
        && candidate.following != Some('(')
        && (is_header || !looks_like_words(candidate.secret))
}

/// Decides whether the value given to a name like `password` is a real one, and
/// neither code (`next_token()`), nor a type, nor a text to show (`"Password"`).
fn is_secret_value(candidate: &Candidate<'_>) -> bool {
    let value = candidate.secret;
    let is_template = value.contains('{') && value.contains('}');
    let is_call = value.ends_with(')')
        && value
            .split_once('(')
            .is_some_and(|(function, _)| !function.is_empty() && looks_like_words(function));
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let has_digit = value.bytes().any(|b| b.is_ascii_digit());
    let variety = value.bytes().collect::<BTreeSet<_>>().len();
    // A URL is no secret as a whole: its password has a rule of its own.
    if is_template || is_call || value.contains("://") || is_placeholder(value) {
        return false;
    }
    if value.len() < 8 || letters < 3 || variety < 6 {
        return false;
    }
    let is_quoted = candidate.lead.ends_with(['"', '\'', '`', '>']);
    if !is_quoted && matches!(candidate.following, Some('(' | '[' | '{' | '<')) {
        return false;
    }
    let name = candidate.lead.trim_start_matches(['-', '<']);
    let is_environment_style = name.starts_with(|c: char| c.is_ascii_uppercase())
        && !name.bytes().any(|b| b.is_ascii_lowercase());
    let is_literal = is_quoted || is_environment_style;
    if !looks_like_words(value) {
        return is_literal || has_digit || value.len() >= 20;
    }
    // Passwords are made by people: `hunter22` is one, although it looks like a word.
    let lowercase_name = name.to_ascii_lowercase();
    let is_password = lowercase_name.contains("pass") || lowercase_name.contains("pwd");
    let is_path = value.starts_with(['/', '.', '~']);
    if !is_password || !has_digit || is_path {
        return false;
    }
    let ends_the_word = candidate.following.is_none_or(char::is_whitespace);
    let is_one_word = value.bytes().all(|b| b.is_ascii_alphanumeric());
    let repeats_the_name = value.to_ascii_lowercase().contains("pass");
    is_literal || (ends_the_word && is_one_word && !repeats_the_name)
}

/// True for identifiers, paths, versions and phrases: each part could be a word,
/// in any usual case, with at most one short number in it.
fn looks_like_words(value: &str) -> bool {
    let separators = |c: char| "_-./:=+*%?&|".contains(c);
    value.split(separators).all(is_wordlike)
}

fn is_wordlike(part: &str) -> bool {
    const LONGEST_WORD: usize = 21;
    if part.bytes().all(|b| b.is_ascii_digit()) {
        return part.len() <= 4;
    }
    if !part.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return false;
    }
    let mut numbers = part
        .split(|c: char| !c.is_ascii_digit())
        .filter(|number| !number.is_empty());
    let has_short_number = numbers.next().is_none_or(|number| number.len() <= 3);
    let capitals = part.bytes().filter(u8::is_ascii_uppercase).count();
    let has_lowercase = part.bytes().any(|b| b.is_ascii_lowercase());
    // In `someLongName` a capital starts a word; in random text half the letters are capitals.
    let has_word_case = !has_lowercase || capitals * 3 <= part.len() || part.len() < 8;
    let longest = part
        .split(|c: char| has_lowercase && c.is_ascii_uppercase())
        .map(str::len)
        .max();
    has_short_number
        && numbers.next().is_none()
        && has_word_case
        && longest.unwrap_or(0) <= LONGEST_WORD
}

/// Text that stands in for a secret in documentation, or fetches it at run time.
fn is_placeholder(value: &str) -> bool {
    const LOOKUPS: &str = "process.env os.environ getenv env::var meta.env secrets. env[";
    const STAND_INS: &str = "your example changeme placeholder replace redacted insert todo";
    let lowercase = value.to_ascii_lowercase();
    let is_variable = value.strip_prefix('$').is_some_and(|name| {
        name.starts_with(['{', '('])
            || (name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.starts_with(|c: char| c.is_ascii_digit()))
    });
    let is_slot = value.starts_with(['<', '{']) || (value.starts_with('%') && value.len() < 3);
    let is_masked = !value.bytes().any(|b| b.is_ascii_alphanumeric());
    if is_variable
        || is_slot
        || is_masked
        || LOOKUPS.split(' ').any(|call| lowercase.contains(call))
    {
        return true;
    }
    // A real key may happen to contain such a word, beside a part that is random.
    let has_random_part = value
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| part.len() >= 16 && !is_wordlike(part) && !is_x_filled(part));
    let stands_in = lowercase
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|part| is_x_filled(part) || STAND_INS.split(' ').any(|word| part.starts_with(word)));
    let is_shortened = value.ends_with("...") || value.ends_with('…');
    !has_random_part && (stands_in || is_shortened)
}

fn is_x_filled(part: &str) -> bool {
    part.contains("xxxx") || part.contains("XXXX")
}

#[cfg(test)]
mod tests;
