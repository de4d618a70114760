//! Validation errors of documents: all problems at once, each with path, found value and
//! expectation.

use std::fmt;

use serde_json::Value;

use super::schema::{Form, Version};
use crate::preview::one_line;
use crate::redact::redact;

/// Maximum length of a quoted text, in characters.
const MOST_SHOWN: usize = 60;

/// Expectation for a timestamp.
pub(super) const A_TIME: &str = "a time like 2026-01-31T12:00:00Z";

/// One invalid place in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer; empty for the whole document.
    pub path: String,
    /// Description of the value found.
    pub found: String,
    /// Description of the expected value.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match self.path.as_str() {
            "" => "the whole file",
            path => path,
        };
        write!(
            f,
            "{}: found {}, expected {}",
            one_line(path),
            self.found,
            self.expected
        )
    }
}

/// Reasons why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// The text is not JSON.
    #[error("{origin} is not JSON: line {line}, column {column}: {reason}")]
    NotJson {
        /// Source of the document.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Parse error.
        reason: String,
    },
    /// The document needs a later version of this program.
    #[error(
        "{origin}: schema version {version} is not supported, the newest known for {form} is {newest}: upgrade tertulia"
    )]
    TooNew {
        /// Source of the document.
        origin: String,
        /// Expected kind of document.
        form: Form,
        /// Version of the document.
        version: Version,
        /// Newest supported version.
        newest: Version,
    },
    /// The version of the document is no longer supported.
    #[error(
        "{origin}: schema version {version} is deprecated, the oldest still read for {form} is {oldest}: migrate the file to schema version {newest}"
    )]
    TooOld {
        /// Source of the document.
        origin: String,
        /// Expected kind of document.
        form: Form,
        /// Version of the document.
        version: Version,
        /// Oldest supported version.
        oldest: Version,
        /// Newest supported version.
        newest: Version,
    },
    /// The document violates its schema or rules.
    #[error("{origin} is not a valid {}:{}", .form.name(), lines(.problems))]
    Invalid {
        /// Source of the document.
        origin: String,
        /// Expected kind of document.
        form: Form,
        /// All problems, sorted by path.
        problems: Vec<Problem>,
    },
    /// The built-in schema is unusable, or a document that passed it cannot be converted: a bug in
    /// this program.
    #[error("the built-in schema of {form} cannot be used: {reason}")]
    Schema {
        /// Kind of document.
        form: Form,
        /// Error message.
        reason: String,
    },
}

impl TeamError {
    /// Returns the problems of an invalid document; empty for other errors.
    pub fn problems(&self) -> &[Problem] {
        match self {
            TeamError::Invalid { problems, .. } => problems,
            _ => &[],
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| format!("\n  {problem}"))
        .collect()
}

/// Sorts problems by path, with list positions in numeric order, and removes duplicates.
pub(super) fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_cached_key(|problem| {
        let steps: Vec<(usize, String)> = problem
            .path
            .split('/')
            .map(|step| (step.parse().unwrap_or(usize::MAX), step.to_owned()))
            .collect();
        (steps, problem.expected.clone())
    });
    problems.dedup();
    problems
}

/// Returns a JSON pointer extended by one step.
pub(super) fn below(path: &str, step: &str) -> String {
    format!("{path}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// Describes a value briefly. Values below `env` are never shown, because they often contain keys;
/// lists and objects are described by their size.
pub(super) fn found(path: &str, value: &Value) -> String {
    let secret = path.split('/').any(|step| step == "env");
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) if secret => "a boolean".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(_) if secret => "a number".to_owned(),
        Value::Number(value) => value.to_string(),
        Value::String(_) if secret => "a string".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => counted("a list of", items.len(), "item"),
        Value::Object(fields) => counted("an object with", fields.len(), "field"),
    }
}

fn counted(what: &str, count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{what} {count} {thing}{plural}")
}

/// Returns a text in quotes on one line, redacted and truncated.
pub(super) fn quoted(text: &str) -> String {
    let clean = redact(text).text;
    let mut shown: String = clean.chars().take(MOST_SHOWN).collect();
    if shown.len() < clean.len() {
        shown.push('…');
    }
    one_line(&Value::String(shown).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_found_is_short_and_hides_nothing_but_secrets() {
        let check = |path: &str, value: Value, expected: &str| {
            assert_eq!(found(path, &value), expected);
        };
        check("/a", json!("plain"), "\"plain\"");
        check(
            "/a",
            json!("line\nbreak\u{202e}"),
            r#""line\nbreak\u{202e}""#,
        );
        check("/a", json!([1]), "a list of 1 item");
        check("/a", json!({}), "an object with 0 fields");
        check("/a", json!(7), "7");
        check("/team/members/0/env/KEY", json!(7), "a number");
        check("/team/members/0/env", json!("KEY=secret"), "a string");
        let long = found("/a", &json!("x".repeat(100)));
        assert_eq!(long, format!("\"{}…\"", "x".repeat(MOST_SHOWN)));
    }

    #[test]
    fn problems_are_in_the_order_of_their_paths_and_there_once() {
        let at = |path: &str| Problem {
            path: path.to_owned(),
            found: String::new(),
            expected: String::new(),
        };
        let order = in_order(vec![at("/m/10/a"), at("/m/2"), at("/m/10/a"), at("")]);
        assert_eq!(order, [at(""), at("/m/2"), at("/m/10/a")]);
    }

    #[test]
    fn steps_of_a_path_are_escaped() {
        assert_eq!(below("/agents", "a/b~c"), "/agents/a~1b~0c");
    }
}
