//! The agents that a person has registered, as one document.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::problem::TeamError;
use super::rules;
use super::schema::Form;

/// The registered agents, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    /// The agents.
    pub agents: BTreeMap<String, Registered>,
}

/// An agent as it was registered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registered {
    /// The name that people read.
    pub display_name: String,
    /// The program.
    pub command: String,
    /// What it is given on its command line.
    pub args: Vec<String>,
    /// Whether it wants a terminal.
    pub use_pty: bool,
    /// Its version when it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_at: Option<Timestamp>,
    /// When it was last seen to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verified: Option<Timestamp>,
}

/// The document as it is read.
#[derive(Deserialize)]
struct Document {
    agents: BTreeMap<String, Registered>,
}

/// The document as it is written: each agent says its name again.
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
    /// Reads a registry and checks it. `origin` is where it came from, for people. Where there is no
    /// file there is an empty registry, which is the caller's to know.
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

    /// The registry as text, in the order of the names. What [`Registry::read`] would refuse is an
    /// error here, so that it never gets to disk.
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
