//! Decides whether a match is a real secret, or code, a word or a placeholder.

use std::collections::BTreeSet;

use serde::Deserialize;

/// A possible secret: the matched text before it, the secret, and the next character.
pub(super) struct Candidate<'a> {
    pub lead: &'a str,
    pub secret: &'a str,
    pub following: Option<char>,
}

/// How to judge a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Check {
    /// Every match is a secret.
    Any,
    /// Not a placeholder.
    #[default]
    Real,
    /// Neither a placeholder nor words.
    Random,
    /// No placeholder, with letters and digits.
    Mixed,
    Openai,
    Bearer,
    Assigned,
    Login,
    Said,
}

impl Check {
    /// Returns true if the candidate is a secret.
    pub fn accepts(self, candidate: &Candidate<'_>) -> bool {
        match self {
            Check::Any => true,
            Check::Real => is_real(candidate),
            Check::Random => is_real(candidate) && !looks_like_words(candidate.secret),
            Check::Mixed => {
                let has = |fits: fn(&u8) -> bool| candidate.secret.as_bytes().iter().any(fits);
                is_real(candidate) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
            }
            Check::Openai => is_openai_key(candidate),
            Check::Bearer => is_bearer_token(candidate),
            Check::Assigned => is_secret_value(candidate),
            Check::Login => {
                is_real(candidate)
                    && (candidate.secret.ends_with('=') || !looks_like_words(candidate.secret))
            }
            Check::Said => is_said(candidate),
        }
    }
}

/// Judges the value after "the password is". Most words there describe the password; a value in
/// quotes, with a digit or with a symbol is the password.
fn is_said(candidate: &Candidate<'_>) -> bool {
    let value = candidate.secret.trim_end_matches(['.', '!', '?', ')', ':']);
    let is_quoted = candidate.lead.ends_with(['"', '\'', '`', '“']);
    let has_letter = value.bytes().any(|b| b.is_ascii_alphabetic());
    let has_other = value.bytes().any(|b| !b.is_ascii_alphabetic() && b != b'-');
    let is_number = value.bytes().all(|b| b.is_ascii_digit());
    value.len() >= 4
        && !is_placeholder(value)
        && (is_quoted || (has_letter && has_other) || is_number)
}

/// Returns true for text that is not a placeholder.
fn is_real(candidate: &Candidate<'_>) -> bool {
    !is_placeholder(candidate.secret)
}

/// Judges `sk-` keys: CSS classes (`sk-toggleable__label-arrow`) and package names also begin with
/// it.
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

/// Returns true if the value of a name like `password` is a secret, and neither code
/// (`next_token()`), nor a type, nor a label (`"Password"`).
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
    // A URL as a whole is not a secret: its password has a rule of its own.
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
    // Passwords chosen by people, such as `hunter22`, may look like words.
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

/// Returns true for identifiers, paths, versions and phrases: each part could be a word, in any
/// usual case, with at most one short number in it.
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

/// Returns true for text that replaces a secret in documentation, or that reads it at run time.
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
    // A real key may contain such a word by chance, next to a random part.
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
