//! Reads typed values from settings files and reports invalid ones.

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use tertulia_agents::approval::Approval;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::Retention;
use crate::moment;

/// Parses a duration such as `30`, in seconds, or `10m`.
pub fn seconds(text: &str) -> Option<Duration> {
    match text.parse() {
        Ok(number) => Some(Duration::from_secs(number)),
        Err(_) => Duration::try_from(moment::span(text).ok()?).ok(),
    }
}

/// Reads values of the expected type. An invalid value is reported with its line and treated as
/// unset.
pub struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    /// Names of the enclosing tables.
    within: Vec<&'a str>,
    wrong: &'a RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    /// Creates a reader for a file's top level that reports errors to `wrong`.
    pub fn new(file: &'a Path, text: &'a str, wrong: &'a RefCell<Vec<String>>) -> Reader<'a> {
        Reader {
            file,
            text,
            within: Vec::new(),
            wrong,
        }
    }

    /// Returns a reader for a nested table.
    pub fn within(&self, key: &'a str) -> Reader<'a> {
        let mut within = self.within.clone();
        within.push(key);
        Reader { within, ..*self }
    }

    /// Reports a value that is not of the expected form.
    pub fn expected(&self, key: &str, what: &str) {
        self.tell(key, &format!("must be {what}"));
    }

    /// Reports an invalid value.
    pub fn tell(&self, key: &str, fault: &str) {
        let mut path = self.within.clone();
        path.extend(key.split('.'));
        let line = line_of(self.text, &path);
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let table = match self.within.is_empty() {
            true => String::new(),
            false => format!(" of [{}]", self.within.join(".")),
        };
        let words = format!("{}{line}: '{key}'{table} {fault}", self.file.display());
        self.wrong.borrow_mut().push(words);
    }

    pub fn text(&self, table: &Table, key: &str) -> Option<String> {
        match table.get(key)? {
            Value::String(text) => return Some(text.clone()),
            _ => self.expected(key, "a text in quotes"),
        }
        None
    }

    pub fn flag(&self, table: &Table, key: &str) -> Option<bool> {
        match table.get(key)? {
            Value::Boolean(flag) => return Some(*flag),
            _ => self.expected(key, "true or false"),
        }
        None
    }

    pub fn approval(&self, table: &Table, key: &str) -> Option<Approval> {
        let mode = table.get(key)?.as_str().and_then(Approval::named);
        if mode.is_none() {
            self.expected(key, "\"ask\", \"edits\", \"low\", \"all\" or \"none\"");
        }
        mode
    }

    pub fn table<'t>(&self, table: &'t Table, key: &str) -> Option<&'t Table> {
        match table.get(key)? {
            Value::Table(inner) => return Some(inner),
            _ => self.expected(key, "a table"),
        }
        None
    }

    pub fn number(&self, table: &Table, key: &str) -> Option<u64> {
        let Value::Integer(number) = table.get(key)? else {
            self.expected(key, "a number");
            return None;
        };
        let number = u64::try_from(*number).ok();
        if number.is_none() {
            self.expected(key, "a number from 0 up");
        }
        number
    }

    pub fn texts(&self, table: &Table, key: &str) -> Option<Vec<String>> {
        let Some(Value::Array(values)) = table.get(key) else {
            if table.contains_key(key) {
                self.expected(key, "a list of texts");
            }
            return None;
        };
        let texts: Option<Vec<String>> = values
            .iter()
            .map(|value| value.as_str().map(str::to_owned))
            .collect();
        if texts.is_none() {
            self.expected(key, "a list of texts");
        }
        texts
    }

    pub fn duration(&self, table: &Table, key: &str, unit: Duration) -> Option<Duration> {
        let duration = match table.get(key)? {
            Value::Integer(number) => u32::try_from(*number).ok().map(|number| unit * number),
            Value::String(text) => moment::span(text)
                .ok()
                .and_then(|span| Duration::try_from(span).ok()),
            _ => None,
        };
        if duration.is_none() {
            self.expected(key, "a number, or a span such as \"30s\" or \"10m\"");
        }
        duration
    }

    pub fn seconds(&self, table: &Table, key: &str) -> Option<Duration> {
        self.duration(table, key, Duration::from_secs(1))
    }

    pub fn retention(&self, table: &Table) -> Retention {
        let default = Retention::default();
        let day = Duration::from_secs(86_400);
        let span = |key: &str| -> Option<jiff::SignedDuration> {
            let span = jiff::SignedDuration::try_from(self.duration(table, key, day)?).ok();
            if span.is_none() {
                self.expected(key, "a span such as \"30d\"");
            }
            span
        };
        let count = |key: &str| {
            let count = self.number(table, key);
            count.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
        };
        Retention {
            max_age: span("max_age"),
            max_count: count("max_count"),
            max_count_per_team: count("max_count_per_team"),
            min_age: span("min_age").unwrap_or(default.min_age),
            trash: span("trash").unwrap_or(default.trash),
            compress_after: span("compress_after"),
        }
    }
}

/// Returns the line of a key, counted from 1.
fn line_of(text: &str, path: &[&str]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut at = None;
    for (depth, part) in path.iter().enumerate() {
        let (key, value) = table.iter().find(|(key, _)| key.get_ref() == part)?;
        at = Some(key.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ if depth + 1 == path.len() => {}
            _ => return None,
        }
    }
    Some(line_at(text, at?))
}

/// Returns the line of a byte offset, counted from 1.
pub fn line_at(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_line() {
        let text = "a = 1\n\n[agents.x]\ntype = \"y\"\nenv = { A = \"1\",\n B = 2 }\n";
        assert_eq!(line_of(text, &["a"]), Some(1));
        assert_eq!(line_of(text, &["agents", "x", "type"]), Some(4));
        assert_eq!(line_of(text, &["agents", "x", "env", "B"]), Some(6));
        assert_eq!(line_of(text, &["b"]), None);
    }
}
