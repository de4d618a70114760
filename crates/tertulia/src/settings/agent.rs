//! One `[agents.NAME]`.

use std::path::PathBuf;
use std::time::Duration;

use tertulia_agents::Whence;
use toml::{Table, Value};

use super::Source;
use super::values::Reader;

/// The settings of an agent.
pub const KEYS: &[&str] = &[
    "type",
    "model",
    "base_url",
    "key_env",
    "key_command",
    "command",
    "args",
    "env",
    "asks",
    "timeout",
    "idle_timeout",
    "retries",
    "thinking",
    "max_tokens",
    "compact_at",
    "system",
    "pace",
];

/// Those that say how an agent answers. The others say what is run, where words go and with which key: they are
/// not a project's to set without trust.
pub const FREE: &[&str] = &[
    "model",
    "timeout",
    "idle_timeout",
    "retries",
    "thinking",
    "max_tokens",
    "compact_at",
    "system",
    "pace",
];

/// How an agent is reached, and what it is told.
#[derive(Clone)]
pub struct AgentSettings {
    /// How it is reached.
    pub kind: String,
    /// Its model.
    pub model: Option<String>,
    /// Where its provider is.
    pub base_url: Option<String>,
    /// The variable that has its key.
    pub key_env: Option<String>,
    /// The program, with its arguments, that prints its key.
    pub key_command: Option<Vec<String>>,
    /// The program.
    pub command: Option<PathBuf>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// What is added to the program's environment.
    pub env: Vec<(String, String)>,
    /// Whether it asks before it uses a tool, as the user says: only the Agent Client Protocol lets it.
    pub asks: bool,
    /// What the program does not get of the environment that everybody has.
    pub without: Vec<String>,
    /// What precedes every prompt.
    pub system: Option<String>,
    /// How long an answer may take.
    pub timeout: Option<Duration>,
    /// How long it may be silent.
    pub idle_timeout: Option<Duration>,
    /// How often it is tried again.
    pub retries: Option<u32>,
    /// Whether and how long it thinks before it answers, as it was written.
    pub thinking: Option<String>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// From how many tokens on the older part of a talk is summed up.
    pub compact_at: Option<u64>,
    /// How long the demo rests after each word.
    pub pace: Option<Duration>,
    /// Who described it.
    pub source: Source,
    /// Where it is set how it is run, if not in these settings under the name of whoever speaks.
    pub whence: Option<Whence>,
}

// The environment may hold keys: it is never shown.
impl std::fmt::Debug for AgentSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSettings")
            .field("kind", &self.kind)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl AgentSettings {
    /// Nothing but a type: what an agent is that no file describes.
    pub fn plain(kind: &str) -> AgentSettings {
        AgentSettings {
            kind: kind.to_owned(),
            model: None,
            base_url: None,
            key_env: None,
            key_command: None,
            command: None,
            args: Vec::new(),
            env: Vec::new(),
            asks: false,
            without: Vec::new(),
            system: None,
            timeout: None,
            idle_timeout: None,
            retries: None,
            thinking: None,
            max_tokens: None,
            compact_at: None,
            pace: None,
            source: Source::UserFile,
            whence: None,
        }
    }

    /// The same agent, answering as a project wants it to.
    pub fn adjusted_by(self, project: AgentSettings) -> AgentSettings {
        AgentSettings {
            model: project.model.or(self.model),
            system: project.system.or(self.system),
            timeout: project.timeout.or(self.timeout),
            idle_timeout: project.idle_timeout.or(self.idle_timeout),
            retries: project.retries.or(self.retries),
            thinking: project.thinking.or(self.thinking),
            max_tokens: project.max_tokens.or(self.max_tokens),
            compact_at: project.compact_at.or(self.compact_at),
            pace: project.pace.or(self.pace),
            ..self
        }
    }

    /// The same agent as a project's table describes it. What is run, where words go and with which key then all
    /// come from the table: the user's keys are for the user's program.
    pub fn overridden_by(self, project: AgentSettings, table: &Table) -> AgentSettings {
        let redirects = table.keys().any(|key| {
            !FREE.contains(&key.as_str()) && (key != "type" || project.kind != self.kind)
        });
        let renamed = table.contains_key("type") || table.contains_key("command");
        let adjusted = self.adjusted_by(project.clone());
        if !redirects {
            return adjusted;
        }
        AgentSettings {
            kind: if renamed { project.kind } else { adjusted.kind },
            base_url: project.base_url,
            key_env: project.key_env,
            key_command: project.key_command,
            command: project.command,
            args: project.args,
            env: project.env,
            ..adjusted
        }
    }

    /// Reads a table.
    pub fn read(reader: &Reader<'_>, name: &str, table: &Table) -> AgentSettings {
        let env = reader
            .table(table, "env")
            .map_or_else(Vec::new, |variables| {
                let reader = reader.within("env");
                let read = |key: &String| Some((key.clone(), reader.text(variables, key)?));
                variables.keys().filter_map(read).collect()
            });
        let command = reader.text(table, "command").map(PathBuf::from);
        let kind = match reader.text(table, "type") {
            Some(kind) => kind,
            None if command.is_some() => "command".to_owned(),
            None => name.to_owned(),
        };
        let small = |key: &str| -> Option<u32> {
            let number = u32::try_from(reader.number(table, key)?).ok();
            if number.is_none() {
                reader.expected(key, "a smaller number");
            }
            number
        };
        AgentSettings {
            kind,
            model: reader.text(table, "model"),
            base_url: reader.text(table, "base_url"),
            key_env: reader.text(table, "key_env"),
            key_command: key_command(reader, table),
            command,
            args: reader.texts(table, "args").unwrap_or_default(),
            env,
            asks: reader.flag(table, "asks").unwrap_or(false),
            without: Vec::new(),
            system: reader.text(table, "system"),
            timeout: reader.duration(table, "timeout", Duration::from_secs(1)),
            idle_timeout: reader.duration(table, "idle_timeout", Duration::from_secs(1)),
            retries: small("retries"),
            thinking: thinking(reader, table),
            max_tokens: small("max_tokens"),
            compact_at: reader.number(table, "compact_at"),
            pace: reader.duration(table, "pace", Duration::from_millis(1)),
            source: Source::UserFile,
            whence: None,
        }
    }
}

/// A list of words is a program and its arguments; a text is a line for the shell.
fn key_command(reader: &Reader<'_>, table: &Table) -> Option<Vec<String>> {
    match table.get("key_command")? {
        Value::Array(words) if !words.is_empty() => reader.texts(table, "key_command"),
        Value::Array(_) => {
            reader.expected("key_command", "a program");
            None
        }
        _ => reader
            .text(table, "key_command")
            .map(|line| ["sh", "-c", line.as_str()].map(str::to_owned).to_vec()),
    }
}

fn thinking(reader: &Reader<'_>, table: &Table) -> Option<String> {
    match table.get("thinking")? {
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Integer(tokens) if *tokens > 0 => Some(tokens.to_string()),
        Value::String(effort) => Some(effort.clone()),
        _ => {
            reader.expected(
                "thinking",
                "true, false, \"low\", \"medium\", \"high\" or a number of tokens",
            );
            None
        }
    }
}
