//! What is wrong with a document: every place at once, with what was found there and what was expected.

use std::fmt;

use serde_json::Value;

use super::schema::{Form, Version};
use crate::preview::one_line;
use crate::redact::redact;

/// How much of a text is shown as what was found.
const MOST_SHOWN: usize = 60;

/// What is expected where a time should be.
pub(super) const A_TIME: &str = "a time like 2026-01-31T12:00:00Z";

/// One place of a document that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, as a JSON pointer; empty for the whole document.
    pub path: String,
    /// What is there.
    pub found: String,
    /// What should be there.
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

/// Why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// It is not JSON.
    #[error("{origin} is not JSON: line {line}, column {column}: {reason}")]
    NotJson {
        /// Where the document came from.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// It was written for a later version of this program.
    #[error(
        "{origin}: schema version {version} is not supported, the newest known for {form} is {newest}: upgrade tertulia"
    )]
    TooNew {
        /// Where the document came from.
        origin: String,
        /// What it was read as.
        form: Form,
        /// Its version.
        version: Version,
        /// The newest that can be read.
        newest: Version,
    },
    /// It was written in a form that is no longer read.
    #[error(
        "{origin}: schema version {version} is deprecated, the oldest still read for {form} is {oldest}: migrate the file to schema version {newest}"
    )]
    TooOld {
        /// Where the document came from.
        origin: String,
        /// What it was read as.
        form: Form,
        /// Its version.
        version: Version,
        /// The oldest that can be read.
        oldest: Version,
        /// The newest that can be read.
        newest: Version,
    },
    /// It is not what its schema and its rules ask for.
    #[error("{origin} is not a valid {}:{}", .form.name(), lines(.problems))]
    Invalid {
        /// Where the document came from.
        origin: String,
        /// What it was read as.
        form: Form,
        /// Everything that is wrong, in the order of the paths.
        problems: Vec<Problem>,
    },
    /// The schema that is built in cannot be used. This is a defect of the program.
    #[error("the built-in schema of {form} cannot be used: {reason}")]
    Schema {
        /// Which.
        form: Form,
        /// Why.
        reason: String,
    },
}

impl TeamError {
    /// What is wrong in particular, where the document could be looked into.
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

/// Puts problems into the order of their paths, places in a list by number, each of them once.
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

/// A path one step further down.
pub(super) fn below(path: &str, step: &str) -> String {
    format!("{path}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// What stands somewhere, in a few words. Values of environments are never shown, since they are where
/// people put keys; of lists and objects only the size is.
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

/// A text in quotes on one line, without secrets and not too long.
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
