//! Reading values of settings files.

use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};

use super::{Retention, wrong};
use crate::error::{CommandError, CommandResult};
use crate::moment;

/// A span such as `30`, in seconds, or `10m`.
pub fn seconds(text: &str) -> Option<Duration> {
    match text.parse() {
        Ok(number) => Some(Duration::from_secs(number)),
        Err(_) => Duration::try_from(moment::span(text).ok()?).ok(),
    }
}

/// Reads values of the right type, and says which one is not.
pub struct Reader<'a> {
    pub file: &'a Path,
}

impl Reader<'_> {
    pub fn expected(&self, key: &str, what: &str) -> CommandError {
        wrong(self.file, &format!("'{key}' must be {what}"))
    }

    pub fn text(&self, table: &Table, key: &str) -> CommandResult<Option<String>> {
        match table.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.expected(key, "a text in quotes")),
        }
    }

    pub fn flag(&self, table: &Table, key: &str) -> CommandResult<Option<bool>> {
        match table.get(key) {
            None => Ok(None),
            Some(Value::Boolean(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.expected(key, "true or false")),
        }
    }

    pub fn table<'t>(&self, table: &'t Table, key: &str) -> CommandResult<Option<&'t Table>> {
        match table.get(key) {
            None => Ok(None),
            Some(Value::Table(inner)) => Ok(Some(inner)),
            Some(_) => Err(self.expected(key, "a table")),
        }
    }

    pub fn number(&self, table: &Table, key: &str) -> CommandResult<Option<u64>> {
        match table.get(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => u64::try_from(*number)
                .map(Some)
                .map_err(|_| self.expected(key, "a number from 0 up")),
            Some(_) => Err(self.expected(key, "a number")),
        }
    }

    pub fn texts(&self, table: &Table, key: &str) -> CommandResult<Vec<String>> {
        match table.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map(str::to_owned)
                        .ok_or_else(|| self.expected(key, "a list of texts"))
                })
                .collect(),
            Some(_) => Err(self.expected(key, "a list of texts")),
        }
    }

    pub fn duration(
        &self,
        table: &Table,
        key: &str,
        unit: Duration,
    ) -> CommandResult<Option<Duration>> {
        let wrong = || self.expected(key, "a number, or a span such as \"30s\" or \"10m\"");
        match table.get(key) {
            None => Ok(None),
            Some(Value::Integer(number)) => {
                let number = u32::try_from(*number).map_err(|_| wrong())?;
                Ok(Some(unit * number))
            }
            Some(Value::String(text)) => {
                let span = moment::span(text).map_err(|_| wrong())?;
                Duration::try_from(span).map(Some).map_err(|_| wrong())
            }
            Some(_) => Err(wrong()),
        }
    }

    pub fn seconds(&self, table: &Table, key: &str) -> CommandResult<Option<Duration>> {
        self.duration(table, key, Duration::from_secs(1))
    }

    pub fn retention(&self, table: &Table) -> CommandResult<Retention> {
        let default = Retention::default();
        let day = Duration::from_secs(86_400);
        let span = |key: &str| -> CommandResult<Option<jiff::SignedDuration>> {
            let wrong = || self.expected(key, "a span such as \"30d\"");
            self.duration(table, key, day)?
                .map(|duration| jiff::SignedDuration::try_from(duration).map_err(|_| wrong()))
                .transpose()
        };
        let max_count = match table.get("max_count") {
            None => None,
            Some(Value::Integer(count)) => {
                Some(usize::try_from(*count).map_err(|_| self.expected("max_count", "a number"))?)
            }
            Some(_) => return Err(self.expected("max_count", "a number")),
        };
        Ok(Retention {
            max_age: span("max_age")?,
            max_count,
            min_age: span("min_age")?.unwrap_or(default.min_age),
            trash: span("trash")?.unwrap_or(default.trash),
        })
    }
}
