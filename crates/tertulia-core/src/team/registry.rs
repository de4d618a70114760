//! The user's registry of agents.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::problem::TeamError;
use super::rules;
use super::schema::Form;

/// The registered agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    /// Agents by name.
    pub agents: BTreeMap<String, Registered>,
}

/// A registered agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// Name shown to users.
    pub display_name: String,
    /// The program.
    pub command: String,
    /// Command-line arguments.
    pub args: Vec<String>,
    /// True if the program needs a terminal (pty).
    pub use_pty: bool,
    /// Version when last checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Time of registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<Timestamp>,
    /// Time of the last successful check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verified: Option<Timestamp>,
}

/// The document as read.
#[derive(Deserialize)]
struct Document {
    agents: BTreeMap<String, Registered>,
}

/// The document as written: each agent also contains its name.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    schema_version: String,
    agents: BTreeMap<&'a str, Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    #[serde(flatten)]
    agent: &'a Registered,
}

impl Registry {
    /// Parses and validates a registry. `origin` names the source in error messages. A missing file
    /// means an empty registry; that is up to the caller.
    pub fn read(text: &str, origin: &str) -> Result<Registry, TeamError> {
        let value = Form::Registry.read(text, origin, rules::registry)?;
        let document: Document =
            serde_json::from_value(value).map_err(|error| TeamError::Schema {
                form: Form::Registry,
                reason: error.to_string(),
            })?;
        Ok(Registry {
            agents: document.agents,
        })
    }

    /// Serialises the registry, sorted by name. Fails for content that [`Registry::read`] would
    /// reject, so that it is never written to disk.
    pub fn write(&self) -> Result<String, TeamError> {
        let agents = self
            .agents
            .iter()
            .map(|(name, agent)| (name.as_str(), Named { name, agent }))
            .collect();
        let document = Written {
            schema_version: Form::Registry.newest().to_string(),
            agents,
        };
        Form::Registry.write(&document, "the agent registry", rules::registry)
    }
}
