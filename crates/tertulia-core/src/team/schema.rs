//! Built-in JSON Schemas of the documents shared with other programs. Every document is validated
//! before use: first its version, then its schema.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::problem::{Problem, TeamError, in_order};
use super::schema_error::problem;
use super::schema_keywords::Schema;
use super::surrogates;

/// Kind of document that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Team file, 1.1 and 1.2, which have the same fields.
    Team,
    /// Agent registry, 1.1.
    Registry,
    /// Session snapshot, 1.0.
    Snapshot,
}

/// Version of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u64,
    minor: u64,
}

impl Version {
    const fn new(major: u64, minor: u64) -> Version {
        Version { major, minor }
    }

    /// Parses `1.2`. Compared as numbers: 1.10 is later than 1.9.
    fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.split_once('.')?;
        Some(Version::new(number(major)?, number(minor)?))
    }
}

/// Parses a number of any length; one that overflows is treated as newer than all known versions.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Team => "team files",
            Form::Registry => "agent registries",
            Form::Snapshot => "session snapshots",
        })
    }
}

impl Form {
    /// All kinds of documents.
    pub const ALL: [Form; 3] = [Form::Team, Form::Registry, Form::Snapshot];

    /// Returns the name, in the singular.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Team => "team file",
            Form::Registry => "agent registry",
            Form::Snapshot => "session snapshot",
        }
    }

    /// Returns the JSON Schema as text.
    pub const fn schema(self) -> &'static str {
        match self {
            Form::Team => include_str!("../../schemas/team-config-v1.2.json"),
            Form::Registry => include_str!("../../schemas/agent-registry-v1.1.json"),
            Form::Snapshot => include_str!("../../schemas/session-snapshot-v1.0.json"),
        }
    }

    /// Returns the oldest supported version.
    pub const fn oldest(self) -> Version {
        match self {
            Form::Team | Form::Registry => Version::new(1, 1),
            Form::Snapshot => Version::new(1, 0),
        }
    }

    /// Returns the newest supported version, which is also the one written.
    pub const fn newest(self) -> Version {
        match self {
            Form::Team => Version::new(1, 2),
            Form::Registry => Version::new(1, 1),
            Form::Snapshot => Version::new(1, 0),
        }
    }

    /// Parses and validates a document: version, schema, and `rules` for checks that a schema
    /// cannot express. Reports all problems at once. `origin` names the source in error messages.
    pub fn read(
        self,
        text: &str,
        origin: &str,
        rules: fn(&Value) -> Vec<Problem>,
    ) -> Result<Value, TeamError> {
        let document = parse(text, origin)?;
        self.check_version(&document, origin)?;
        self.check(&document, origin, rules)?;
        Ok(document)
    }

    /// Validates a document like [`Form::read`] and serialises it.
    pub fn write(
        self,
        document: &impl Serialize,
        origin: &str,
        rules: fn(&Value) -> Vec<Problem>,
    ) -> Result<String, TeamError> {
        let written = |error: serde_json::Error| TeamError::Schema {
            form: self,
            reason: error.to_string(),
        };
        let document = serde_json::to_value(document).map_err(written)?;
        self.check(&document, origin, rules)?;
        let mut text = serde_json::to_string_pretty(&document).map_err(written)?;
        text.push('\n');
        Ok(text)
    }

    fn check(
        self,
        document: &Value,
        origin: &str,
        rules: fn(&Value) -> Vec<Problem>,
    ) -> Result<(), TeamError> {
        let mut problems = self.violations(document)?;
        problems.extend(rules(document));
        if problems.is_empty() {
            return Ok(());
        }
        Err(self.invalid(origin, problems))
    }

    /// Returns the error for an invalid document.
    pub fn invalid(self, origin: &str, problems: Vec<Problem>) -> TeamError {
        TeamError::Invalid {
            origin: origin.to_owned(),
            form: self,
            problems: in_order(problems),
        }
    }

    /// Rejects unsupported versions. A version that is malformed is left to the schema, which
    /// reports it together with all other problems.
    fn check_version(self, document: &Value, origin: &str) -> Result<(), TeamError> {
        self.check_not_newer(document, origin)?;
        match version_of(document) {
            Some(version) if version < self.oldest() => Err(TeamError::TooOld {
                origin: origin.to_owned(),
                form: self,
                version,
                oldest: self.oldest(),
                newest: self.newest(),
            }),
            _ => Ok(()),
        }
    }

    /// Rejects documents written by a later version of the program.
    pub(super) fn check_not_newer(self, document: &Value, origin: &str) -> Result<(), TeamError> {
        match version_of(document) {
            Some(version) if version > self.newest() => Err(TeamError::TooNew {
                origin: origin.to_owned(),
                form: self,
                version,
                newest: self.newest(),
            }),
            _ => Ok(()),
        }
    }

    fn violations(self, document: &Value) -> Result<Vec<Problem>, TeamError> {
        let broken = |reason: String| TeamError::Schema { form: self, reason };
        let schema: Value =
            serde_json::from_str(self.schema()).map_err(|error| broken(error.to_string()))?;
        let rules = Schema::parse(&schema).map_err(broken)?;
        let errors = rules.errors(document);
        Ok(errors.iter().map(|error| problem(&schema, error)).collect())
    }
}

fn version_of(document: &Value) -> Option<Version> {
    let version = document.get("schemaVersion").and_then(Value::as_str);
    version.and_then(Version::parse)
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Value, TeamError> {
    // Some editors write a byte order mark, which JSON does not allow.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(&surrogates::replaced(text)).map_err(|error| TeamError::NotJson {
        origin: origin.to_owned(),
        line: error.line(),
        column: error.column(),
        reason: without_place(&error),
    })
}

/// Returns the error message without the position, which is reported separately.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let version = |text| Version::parse(text);
        assert!(version("1.10") > version("1.9"));
        assert!(version("2.0") > version("1.99"));
        assert!(version("99999999999999999999999.0") > version("1.2"));
        for none in ["", "1", "1.", ".1", "v1.1", "1.1.1", "+1.1", "one.two"] {
            assert_eq!(version(none), None, "{none}");
        }
    }

    #[test]
    fn every_schema_can_be_used_and_knows_its_versions() {
        for form in Form::ALL {
            let problems = form.violations(&serde_json::json!({})).unwrap();
            assert!(!problems.is_empty(), "{form} asks for nothing");
            for version in [form.oldest(), form.newest()] {
                assert!(
                    form.schema().contains(&format!("\"{version}\"")),
                    "{form} {version}"
                );
            }
        }
    }
}
