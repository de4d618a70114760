//! Teams as their files describe them: who takes part, with which agent, under which limits. What is
//! read here has been checked against its schema and against the rules that a schema cannot say.
//!
//! A team's id is its name and a member's id is the member's name, so that a talk finds its team again.

pub mod code;
mod duplicates;
pub mod markers;
mod merge;
mod migrate;
mod problem;
mod registry;
mod rules;
mod schema;
mod schema_error;
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

/// A team file that is valid and needs no agent but the built-in one.
pub const EXAMPLE: &str = include_str!("../../../../schemas/examples/demo-team.json");

/// A team.
#[derive(Clone, Debug, PartialEq)]
pub struct TeamFile {
    /// The name, which is also the id.
    pub name: String,
    /// The name that people read, where it differs.
    pub display_name: Option<String>,
    /// What the team is for.
    pub description: String,
    /// A file with instructions for every member.
    pub instruction_file: Option<String>,
    /// What the roles mean.
    pub role_definitions: Vec<RoleDefinition>,
    /// Who takes part, in the order of the file.
    pub members: Vec<Member>,
    /// Agents as the team wants them started; none means all that are registered.
    pub agents: Vec<AgentDefinition>,
    /// How many turns agents take before a person is asked.
    pub max_rounds: Option<u32>,
    /// How the talk is held.
    pub conversation: Conversation,
    /// The paths of keys that the file has twice: the last value counts.
    pub duplicate_keys: Vec<String>,
}

/// The document as it is written.
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

/// What a role means.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleDefinition {
    /// The name by which members have it.
    pub name: String,
    /// The name that people read.
    pub display_name: Option<String>,
    /// What it is about.
    pub description: Option<String>,
}

/// An agent as a team file wants it started. What the registry says goes before it, see [`merge`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// The name by which members have it as their agent type.
    pub name: String,
    /// The program.
    pub command: Option<String>,
    /// What it is given on its command line.
    pub args: Option<Vec<String>>,
    /// Whether it wants a terminal.
    pub use_pty: Option<bool>,
}

/// One who takes part.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The name that markers use, which is also the id.
    pub name: String,
    /// The name that people read.
    pub display_name: String,
    /// The role.
    pub role: String,
    /// The role as people read it, where it differs.
    pub display_role: Option<String>,
    /// Whether it is an agent or a person.
    #[serde(rename = "type")]
    pub kind: MemberKind,
    /// Which agent speaks; every agent has one.
    pub agent_type: Option<String>,
    /// The colour of the name.
    pub theme_color: Option<String>,
    /// The folder in which instruction files are looked for.
    pub base_dir: String,
    /// What it is told about itself.
    pub system_instruction: Instruction,
    /// A file with more of it, see [`Member::instruction_file_or_default`].
    pub instruction_file: Option<String>,
    /// What its environment has in addition.
    #[serde(default)]
    pub env: Environment,
    /// Its place in the team, from 0: of several people the first is asked.
    #[serde(skip)]
    pub order: usize,
}

/// Whether a member is an agent or a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// An agent.
    Ai,
    /// A person.
    Human,
}

/// What a member is told about itself: a text, or a list of lines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Instruction {
    /// One text.
    Text(String),
    /// Lines.
    Lines(Vec<String>),
}

impl Instruction {
    /// It as one text: lines are trimmed, and empty ones left out.
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

/// Variables of an environment. Their values are where people put keys, so they are not shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How the talk of a team is held.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Conversation {
    #[serde(deserialize_with = "whole")]
    max_agent_response_time: u32,
    /// Whether it is shown for how long an agent has been thinking.
    pub show_thinking_timer: bool,
    /// Whether Esc stops an agent.
    pub allow_esc_cancel: bool,
    /// How many earlier messages an agent is given.
    #[serde(deserialize_with = "whole")]
    pub context_window_size: u32,
    /// How many bytes an agent is given at most.
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
    /// How long an agent may take for an answer.
    pub fn max_agent_response_time(&self) -> Duration {
        Duration::from_millis(u64::from(self.max_agent_response_time))
    }
}

/// A whole number, which JSON Schema also sees in `5.0`; the schema keeps it within its limits.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = f64::deserialize(deserializer)?;
    // The schema has been asked before: there is nothing to cut off.
    Ok(number as u32)
}

impl TeamFile {
    /// Reads a team file and checks it. `origin` is where it came from, for people.
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

    /// The id, which stays the same as long as the name does.
    pub fn id(&self) -> &str {
        &self.name
    }

    /// The name that people read.
    pub fn shown_name(&self) -> &str {
        self.display_name.as_deref().unwrap_or(&self.name)
    }

    /// The member who answers to a name, however it is written.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.answers_to(name))
    }

    /// The people, in the order of the file.
    pub fn humans(&self) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(|member| member.kind == MemberKind::Human)
    }
}

impl Member {
    /// The id, which stays the same as long as the name does.
    pub fn id(&self) -> &str {
        &self.name
    }

    /// The member as the one who says something.
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

    /// The role as people read it.
    pub fn shown_role(&self) -> &str {
        self.display_role.as_deref().unwrap_or(&self.role)
    }

    /// Whether a name means this member, be it written in another case, with spaces, `-` or `_`.
    pub fn answers_to(&self, name: &str) -> bool {
        let wanted = address(name);
        !wanted.is_empty()
            && (address(&self.name) == wanted || address(&self.display_name) == wanted)
    }

    /// The file with its instructions, below its folder: its own, or the one that its agent is used to.
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
