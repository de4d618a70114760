//! The schemas of the documents that are shared with other programs. They are built in, and nothing is
//! read past them: first the version, then the schema.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::problem::{Problem, TeamError, in_order};
use super::schema_error::problems;
use super::surrogates;

/// A kind of document that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A team file, 1.1 and 1.2, which have the same fields.
    Team,
    /// An agent registry, 1.1.
    Registry,
    /// A session snapshot, 1.0.
    Snapshot,
}

/// A schema's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u64,
    minor: u64,
}

impl Version {
    const fn new(major: u64, minor: u64) -> Version {
        Version { major, minor }
    }

    /// Reads `1.2`. The numbers count, not the text: 1.10 is later than 1.9.
    fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.split_once('.')?;
        Some(Version::new(number(major)?, number(minor)?))
    }
}

/// A number of any length; one that is too long to hold is later than all that is known.
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
    /// All of them.
    pub const ALL: [Form; 3] = [Form::Team, Form::Registry, Form::Snapshot];

    /// The name of one of them.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Team => "team file",
            Form::Registry => "agent registry",
            Form::Snapshot => "session snapshot",
        }
    }

    /// The text of its JSON Schema.
    pub const fn schema(self) -> &'static str {
        match self {
            Form::Team => include_str!("../../../../schemas/team-1.2.json"),
            Form::Registry => include_str!("../../../../schemas/agent-registry-1.1.json"),
            Form::Snapshot => include_str!("../../../../schemas/session-snapshot-1.0.json"),
        }
    }

    /// The oldest version that is read.
    pub const fn oldest(self) -> Version {
        match self {
            Form::Team | Form::Registry => Version::new(1, 1),
            Form::Snapshot => Version::new(1, 0),
        }
    }

    /// The newest version that is read, and the one that is written.
    pub const fn newest(self) -> Version {
        match self {
            Form::Team => Version::new(1, 2),
            Form::Registry => Version::new(1, 1),
            Form::Snapshot => Version::new(1, 0),
        }
    }

    /// Reads a document and checks it: its version, its schema, and `rules`, which add what a schema
    /// cannot say. All that is wrong is told at once. `origin` is where it came from, for people.
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

    /// The text of a document, which is checked as if it had been read.
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
        let mut problems = self.breaches(document)?;
        problems.extend(rules(document));
        if problems.is_empty() {
            return Ok(());
        }
        Err(self.invalid(origin, problems))
    }

    /// The error of a document in which something is wrong.
    pub fn invalid(self, origin: &str, problems: Vec<Problem>) -> TeamError {
        TeamError::Invalid {
            origin: origin.to_owned(),
            form: self,
            problems: in_order(problems),
        }
    }

    /// A version that is no text or no version is left to the schema, which names it with all the rest.
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

    /// Refuses what a later program has written.
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

    fn breaches(self, document: &Value) -> Result<Vec<Problem>, TeamError> {
        let broken = |reason: String| TeamError::Schema { form: self, reason };
        let schema: Value =
            serde_json::from_str(self.schema()).map_err(|error| broken(error.to_string()))?;
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .map_err(|error| broken(error.to_string()))?;
        Ok(validator
            .iter_errors(document)
            .flat_map(|error| problems(&schema, &error))
            .collect())
    }
}

fn version_of(document: &Value) -> Option<Version> {
    let version = document.get("schemaVersion").and_then(Value::as_str);
    version.and_then(Version::parse)
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Value, TeamError> {
    // Some editors put a mark before the text that JSON does not know.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(&surrogates::replaced(text)).map_err(|error| TeamError::NotJson {
        origin: origin.to_owned(),
        line: error.line(),
        column: error.column(),
        reason: without_place(&error),
    })
}

/// What went wrong without where, which is told apart.
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
            let problems = form.breaches(&serde_json::json!({})).unwrap();
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
