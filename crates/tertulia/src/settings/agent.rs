//! Settings of one agent: the table `[agents.NAME]`.

use std::path::PathBuf;
use std::time::Duration;

use tertulia_agents::Whence;
use tertulia_agents::system_prompt::SystemTexts;
use toml::{Table, Value};

use super::Source;
use super::values::Reader;

/// All keys of an agent table.
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
    "writable",
    "confine",
    "timeout",
    "idle_timeout",
    "retries",
    "thinking",
    "max_tokens",
    "compact_at",
    "system",
    "system_append",
    "pace",
];

/// Keys that only affect how an agent answers. The others determine what is run, where messages are
/// sent and with which key, so a project may set them only with trust.
pub const FREE: &[&str] = &[
    "model",
    "timeout",
    "idle_timeout",
    "retries",
    "thinking",
    "max_tokens",
    "compact_at",
    "system",
    "system_append",
    "pace",
];

/// Keys that say what a program may do unasked: they count only in the user's own settings, since
/// anyone else would say it of their own program.
pub const USERS_ONLY: &[&str] = &["writable", "confine"];

/// How an agent is reached, and how it answers.
#[derive(Clone)]
pub struct AgentSettings {
    /// Agent type.
    pub kind: String,
    /// Model.
    pub model: Option<String>,
    /// Base URL of the provider.
    pub base_url: Option<String>,
    /// Environment variable that holds the API key.
    pub key_env: Option<String>,
    /// Command that prints the API key.
    pub key_command: Option<Vec<String>>,
    /// Program to run.
    pub command: Option<PathBuf>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables added to the program's environment.
    pub env: Vec<(String, String)>,
    /// True if the user declares that the agent asks before it uses a tool. Only Agent Client
    /// Protocol agents can.
    pub asks: bool,
    /// Files and folders that a program of type `command` may write.
    pub writable: Vec<String>,
    /// False if such a program may write whatever the user may.
    pub confine: bool,
    /// Variables removed from the program's environment.
    pub without: Vec<String>,
    /// System prompt, in place of the default one.
    pub system: Option<String>,
    /// Text that is added to the system prompt.
    pub system_append: Option<String>,
    /// Time limit for an answer.
    pub timeout: Option<Duration>,
    /// Time limit without output.
    pub idle_timeout: Option<Duration>,
    /// Number of retries.
    pub retries: Option<u32>,
    /// Whether and how much the model reasons before it answers, as written in the file.
    pub thinking: Option<String>,
    /// Maximum length of an answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Number of context tokens above which the session is compacted.
    pub compact_at: Option<u64>,
    /// Pause of the demo agent after each word.
    pub pace: Option<Duration>,
    /// Who described the agent.
    pub source: Source,
    /// Where the user finds these settings, if not under the agent's own name in the settings file.
    pub whence: Option<Whence>,
}

// Does not show the environment, which may hold keys.
impl std::fmt::Debug for AgentSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSettings")
            .field("kind", &self.kind)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl AgentSettings {
    /// Returns default settings with only a type, for an agent that no file describes.
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
            writable: Vec::new(),
            confine: true,
            without: Vec::new(),
            system: None,
            system_append: None,
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

    /// Returns the system prompt for a program, which has a default prompt of its own.
    pub fn own_system(&self) -> Option<String> {
        let texts = SystemTexts {
            system: self.system.as_deref(),
            append: self.system_append.as_deref(),
        };
        texts.alone()
    }

    /// Returns the same agent with the answer settings (see [`FREE`]) of a project.
    pub fn adjusted_by(self, project: AgentSettings) -> AgentSettings {
        AgentSettings {
            model: project.model.or(self.model),
            system: project.system.or(self.system),
            system_append: project.system_append.or(self.system_append),
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

    /// Returns the same agent as a trusted project's table describes it. If the table changes what
    /// is run, where messages are sent or with which key, all of these come from the table: the
    /// user's keys, and what the user lets a program write, are for the user's program only.
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
            writable: Vec::new(),
            confine: true,
            ..adjusted
        }
    }

    /// Reads an agent table.
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
            key_command: command_words(reader, table, "key_command"),
            command,
            args: reader.texts(table, "args").unwrap_or_default(),
            env,
            asks: reader.flag(table, "asks").unwrap_or(false),
            writable: reader.texts(table, "writable").unwrap_or_default(),
            confine: reader.flag(table, "confine").unwrap_or(true),
            without: Vec::new(),
            system: reader.text(table, "system"),
            system_append: reader.text(table, "system_append"),
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

/// Reads a command: a list is a program with arguments, a string is a shell command.
pub(super) fn command_words(reader: &Reader<'_>, table: &Table, key: &str) -> Option<Vec<String>> {
    match table.get(key)? {
        Value::Array(words) if !words.is_empty() => reader.texts(table, key),
        Value::Array(_) => {
            reader.expected(key, "a program");
            None
        }
        _ => reader
            .text(table, key)
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
