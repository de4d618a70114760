//! Team files: members, agents and limits of a team, checked against a JSON Schema and against the
//! rules that a schema cannot express.
//!
//! The id of a team is its name, and the id of a member is the member's name, so that a session
//! finds its team again.

pub mod code;
mod duplicates;
pub mod markers;
mod merge;
mod migrate;
mod problem;
mod registry;
mod rules;
mod schema;
mod schema_check;
mod schema_error;
mod schema_keywords;
mod schema_time;
mod surrogates;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::entry::{Speaker, SpeakerKind};
use duplicates::duplicate_keys;
pub use merge::{Conflict, Launch, Merged, Source, merge};
pub use migrate::{Migration, migrate};
pub use problem::{Problem, TeamError};
pub use registry::{Registered, Registry};
pub use rules::address;
pub use rules::unreadable_time;
pub use schema::{Form, Version};
pub use surrogates::has_halves;

/// A valid team file that needs only the built-in agent.
pub const EXAMPLE: &str = include_str!("../../schemas/examples/demo-team.json");

/// A team.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamFile {
    /// Name, which is also the id.
    pub name: String,
    /// Name shown to users, if it differs.
    pub display_name: Option<String>,
    /// Purpose of the team.
    pub description: String,
    /// File with instructions for all members.
    pub instruction_file: Option<String>,
    /// Descriptions of the roles.
    pub role_definitions: Vec<RoleDefinition>,
    /// Members, in the order of the file.
    pub members: Vec<Member>,
    /// Agent definitions of the team; if empty, all registered agents are available.
    pub agents: Vec<AgentDefinition>,
    /// Maximum number of agent turns before the user is asked.
    pub max_rounds: Option<u32>,
    /// Conversation settings.
    pub conversation: Conversation,
    /// Paths of duplicate keys in the file: the last value counts.
    pub duplicate_keys: Vec<String>,
}

/// The document as written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    agents: Vec<AgentDefinition>,
    team: Team,
    #[serde(default, deserialize_with = "whole")]
    max_rounds: u32,
    #[serde(default)]
    conversation: Conversation,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Team {
    name: String,
    display_name: Option<String>,
    description: String,
    instruction_file: Option<String>,
    #[serde(default)]
    role_definitions: Vec<RoleDefinition>,
    members: Vec<Member>,
}

/// Description of a role.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleDefinition {
    /// Name that members refer to.
    pub name: String,
    /// Name shown to users.
    pub display_name: Option<String>,
    /// What the role is about.
    pub description: Option<String>,
}

/// Agent definition of a team file. The registry takes precedence, see [`merge`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// Name that members use as `agentType`.
    pub name: String,
    /// The program.
    pub command: Option<String>,
    /// Command-line arguments.
    pub args: Option<Vec<String>>,
    /// True if the program needs a terminal (pty).
    pub use_pty: Option<bool>,
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Name used in markers, which is also the id.
    pub name: String,
    /// Name shown to users.
    pub display_name: String,
    /// The role.
    pub role: String,
    /// Role shown to users, if it differs.
    pub display_role: Option<String>,
    /// Agent or person.
    #[serde(rename = "type")]
    pub kind: MemberKind,
    /// Name of the agent; required for members of type `ai`.
    pub agent_type: Option<String>,
    /// Colour of the name.
    pub theme_color: Option<String>,
    /// Directory of the instruction files.
    pub base_dir: String,
    /// System instruction.
    pub system_instruction: Instruction,
    /// File with further instructions, see [`Member::instruction_file_or_default`].
    pub instruction_file: Option<String>,
    /// Additional environment variables.
    #[serde(default)]
    pub env: Environment,
    /// Position in the team, from 0: of several people, the first is asked.
    #[serde(skip)]
    pub order: usize,
}

/// Agent or person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// An agent.
    Ai,
    /// A person.
    Human,
}

/// System instruction: a text, or a list of lines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Instruction {
    /// One text.
    Text(String),
    /// Lines.
    Lines(Vec<String>),
}

impl Instruction {
    /// Returns the instruction as one text; items of a list are trimmed and empty ones dropped.
    pub fn text(&self) -> String {
        match self {
            Instruction::Text(text) => text.clone(),
            Instruction::Lines(lines) => lines
                .iter()
                .map(|line| line.trim())
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }
}

/// Environment variables. `Debug` hides the values, because they often contain keys.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Conversation settings of a team.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Conversation {
    #[serde(deserialize_with = "whole")]
    max_agent_response_time: u32,
    /// Whether to show how long an agent has been thinking.
    pub show_thinking_timer: bool,
    /// Whether Esc cancels an agent's turn.
    pub allow_esc_cancel: bool,
    /// Maximum number of earlier messages sent to an agent.
    #[serde(deserialize_with = "whole")]
    pub context_window_size: u32,
    /// Maximum size of the messages sent to an agent, in bytes.
    #[serde(deserialize_with = "whole")]
    pub max_bytes: u32,
}

impl Default for Conversation {
    fn default() -> Conversation {
        Conversation {
            max_agent_response_time: 30 * 60 * 1000,
            show_thinking_timer: true,
            allow_esc_cancel: true,
            context_window_size: 50,
            max_bytes: 768 * 1024,
        }
    }
}

impl Conversation {
    /// Returns the time limit for an answer.
    pub fn max_agent_response_time(&self) -> Duration {
        Duration::from_millis(u64::from(self.max_agent_response_time))
    }
}

/// Reads a whole number, which in JSON Schema includes `5.0`; the schema enforces the limits.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = f64::deserialize(deserializer)?;
    // Lossless: the schema was checked before.
    Ok(number as u32)
}

impl TeamFile {
    /// Parses and validates a team file. `origin` names the source in error messages.
    pub fn read(text: &str, origin: &str) -> Result<TeamFile, TeamError> {
        let value = Form::Team.read(text, origin, rules::team)?;
        let document: Document =
            serde_json::from_value(value).map_err(|error| TeamError::Schema {
                form: Form::Team,
                reason: error.to_string(),
            })?;
        let mut members = document.team.members;
        for (order, member) in members.iter_mut().enumerate() {
            member.order = order;
        }
        Ok(TeamFile {
            name: document.team.name,
            display_name: document.team.display_name,
            description: document.team.description,
            instruction_file: document.team.instruction_file,
            role_definitions: document.team.role_definitions,
            members,
            agents: document.agents,
            max_rounds: Some(document.max_rounds).filter(|rounds| *rounds > 0),
            conversation: document.conversation,
            duplicate_keys: duplicate_keys(text),
        })
    }

    /// Returns the id, which stays the same as long as the name does.
    pub fn id(&self) -> &str {
        &self.name
    }

    /// Returns the name shown to users.
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// Returns the member with a name, see [`Member::answers_to`].
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.answers_to(name))
    }

    /// Returns the human members, in the order of the file.
    pub fn humans(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|member| member.kind == MemberKind::Human)
    }
}

impl Member {
    /// Returns the id, which stays the same as long as the name does.
    pub fn id(&self) -> &str {
        &self.name
    }

    /// Returns the member as a speaker.
    pub fn speaker(&self) -> Speaker {
        Speaker {
            id: self.name.clone(),
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            kind: match self.kind {
                MemberKind::Ai => SpeakerKind::Ai,
                MemberKind::Human => SpeakerKind::Human,
            },
        }
    }

    /// Returns the role shown to users.
    pub fn shown_role(&self) -> &str {
        self.display_role.as_deref().unwrap_or(&self.role)
    }

    /// Returns true if `name` is the name or display name, ignoring case, spaces, `-` and `_`.
    pub fn answers_to(&self, name: &str) -> bool {
        let wanted = address(name);
        !wanted.is_empty()
            && (address(&self.name) == wanted || address(&self.display_name) == wanted)
    }

    /// Returns the instruction file, relative to `base_dir`: the configured one, or the usual one
    /// of the agent.
    pub fn instruction_file_or_default(&self) -> &str {
        if let Some(file) = &self.instruction_file {
            return file;
        }
        let agent = self.agent_type.as_deref().map(str::to_lowercase);
        match agent {
            Some(agent) if agent.contains("gemini") => "GEMINI.md",
            Some(agent) if agent.contains("claude") => "CLAUDE.md",
            Some(_) => "AGENTS.md",
            None => "README.md",
        }
    }
}

#[cfg(test)]
mod tests;
