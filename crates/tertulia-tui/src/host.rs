//! What the program around the TUI provides: it knows arguments, settings and environment, and
//! passes on what the TUI needs.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::price::PriceTable;
use tertulia_core::query::{Filter, ProjectIds, Row};
use tertulia_core::session::SessionMeta;
use tertulia_engine::event::Tone;
use tertulia_engine::setup::{ChatAgent, Setup};
use tertulia_engine::spec::AgentSpec;
use tertulia_engine::text::hint::Invocation;
use tertulia_server::host::StoreChanges;
use tertulia_store::Sessions;

use crate::effect::Next;
use crate::error::TuiResult;
use crate::keymap::KeySetting;
use crate::notify::Notify;
use crate::source::Source;
use crate::theme::Theme;

/// The program, as far as the TUI needs it. A host belongs to the workspace of one session.
#[async_trait(?Send)]
pub trait Host: Send + Sync {
    /// Returns the store and the folder that the session works with.
    fn workspace(&self) -> &Workspace;

    /// Watches the session locks of the store. Returns `None` for a store that does not tell of changes.
    fn lock_changes(&self) -> Option<StoreChanges>;

    /// Prepares another session in this process.
    async fn prepare(&self, next: &Next) -> TuiResult<Source>;

    /// Returns the session that a reference names.
    async fn find(&self, reference: &str) -> TuiResult<Row>;

    /// Renames a session.
    async fn rename(&self, id: SessionId, title: &str) -> TuiResult<Row>;

    /// Adds and removes tags of a session.
    async fn tag(&self, id: SessionId, add: &[String], remove: &[String]) -> TuiResult<Row>;

    /// Moves a session to the trash.
    async fn trash(&self, id: SessionId) -> TuiResult<Row>;

    /// Takes the last rename, tag, trash or restore back; an error if there is none.
    async fn undo(&self) -> TuiResult<Vec<Undone>>;

    /// Forks a session after an entry, or at its end.
    async fn fork(&self, id: SessionId, at: Option<Seq>) -> TuiResult<Forked>;

    /// Writes a session to a file, by default to a new one in the working directory.
    async fn export(
        &self,
        id: SessionId,
        format: ExportFormat,
        file: Option<&str>,
    ) -> TuiResult<Exported>;

    /// Prepares an agent for a chat that is open.
    async fn chat_agent(&self, spec: &AgentSpec) -> TuiResult<ChatAgent>;

    /// Lists the agents, or only the one of this name, and whether they are ready.
    async fn agents(&self, only: Option<&str>) -> TuiResult<Vec<AgentRow>>;

    /// Returns the names of the agents.
    async fn agent_names(&self) -> TuiResult<Vec<String>>;

    /// Returns the models of an agent.
    async fn models(&self, agent: &str) -> TuiResult<Models>;

    /// Lists the teams, as lines of a table.
    async fn teams(&self) -> TuiResult<Vec<String>>;

    /// Returns the names of the teams.
    async fn team_names(&self) -> TuiResult<Vec<String>>;

    /// Returns the absolute path of a team file, given its path or the name of the team.
    fn team_file(&self, config: &str) -> TuiResult<PathBuf>;

    /// Returns the prompts of earlier sessions, oldest first.
    fn earlier_prompts(&self) -> Vec<String>;

    /// Adds a prompt to those of earlier sessions.
    async fn remember_prompt(&self, prompt: &str) -> TuiResult<()>;
}

/// Store, project and folders of a session.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The store.
    pub sessions: Sessions,
    /// The project that the TUI runs in.
    pub project: ProjectIds,
    /// Working directory.
    pub cwd: PathBuf,
    /// Home folder, which `~/` in paths means.
    pub home: Option<PathBuf>,
    /// Time zone of the user.
    pub zone: TimeZone,
    /// Prices of models.
    pub prices: PriceTable,
}

impl Workspace {
    /// Returns the filter for the sessions of the project.
    pub fn here(&self) -> Filter {
        Filter {
            project: Some(self.project.clone()),
            ..Filter::default()
        }
    }

    /// Returns the working directory as users write it, with `~` for the home folder.
    pub fn folder(&self) -> String {
        let below = self.home.as_ref().map(|home| self.cwd.strip_prefix(home));
        match below {
            Some(Ok(rest)) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(Ok(rest)) => format!("~/{}", rest.display()),
            _ => self.cwd.display().to_string(),
        }
    }

    /// Returns the path that the user means.
    pub fn path(&self, written: &str) -> PathBuf {
        match written.strip_prefix("~/").zip(self.home.as_ref()) {
            Some((rest, home)) => home.join(rest),
            None => self.cwd.join(written),
        }
    }
}

/// A session that is ready to be opened in this process.
pub struct Prepared {
    /// Host of the session.
    pub host: Arc<dyn Host>,
    /// The session and its participants.
    pub setup: Setup,
    /// Whether nothing is saved.
    pub ephemeral: bool,
    /// Whether the user picks a session first.
    pub picks: bool,
    /// First message.
    pub prompt: Option<String>,
    /// Earlier session that the user may resume instead.
    pub earlier: Option<Box<Row>>,
    /// The last session of the project, for a new one: it can be resumed instead.
    pub last: Option<Box<SessionMeta>>,
    /// Messages of the preparation.
    pub notices: Vec<(Tone, String)>,
}

/// A session that is only read, because another program writes to it.
pub struct Followed {
    /// Host of the session.
    pub host: Arc<dyn Host>,
    /// The session.
    pub row: Row,
    /// The program that has it open, if there is one.
    pub holder: Option<String>,
    /// Whether the user is asked what to do.
    pub asks: bool,
    /// First message, which waits in the input.
    pub prompt: Option<String>,
    /// Messages of the preparation.
    pub notices: Vec<(Tone, String)>,
}

/// What applies to all sessions of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Colours.
    pub theme: Theme,
    /// Whether the terminal supports hyperlinks.
    pub links: bool,
    /// Whether the terminal draws flags.
    pub has_flags: bool,
    /// Whether the terminal is a pane of tmux.
    pub in_tmux: bool,
    /// How the user is told that a session needs them.
    pub notify: Notify,
    /// The user's own keys.
    pub keys: Vec<KeySetting>,
    /// Whether the input has the modes of vim.
    pub vim: bool,
    /// Version of the program.
    pub version: String,
    /// Command that starts the user's editor, with arguments.
    pub editor: String,
    /// How the program was started, for commands in hints.
    pub invocation: Invocation,
}

/// Result of [`Host::fork`].
#[derive(Clone, Debug)]
pub struct Forked {
    /// The fork.
    pub row: Row,
    /// Whether an interrupted answer was saved first.
    pub recovered: bool,
}

/// A session that [`Host::undo`] changed.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The session as it is now.
    pub row: Row,
    /// What was taken back, for the user.
    pub words: String,
}

/// An agent that could answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: String,
    /// Model, if known.
    pub model: Option<String>,
    /// Whether it is ready.
    pub is_ready: bool,
    /// Why it is not ready, or what else there is to know.
    pub remark: String,
}

/// Models of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// Model names.
    pub names: Vec<String>,
    /// Whether the list is complete. An agent CLI with its own models lists only the configured
    /// one.
    pub complete: bool,
}

/// An exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Path.
    pub path: PathBuf,
    /// Size in bytes.
    pub bytes: usize,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Format of an exported session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportFormat {
    /// Markdown, for people.
    #[default]
    Markdown,
    /// One page, for people.
    Html,
    /// One JSON object.
    Json,
    /// The log itself, line by line.
    Jsonl,
    /// The messages of a team session as one document.
    Snapshot,
    /// A file that Claude Code resumes.
    ClaudeCode,
    /// A file that Codex resumes.
    Codex,
    /// A trajectory for evaluation and training.
    Atif,
}

impl ExportFormat {
    /// All formats, in the order of the help.
    pub const ALL: [ExportFormat; 8] = [
        ExportFormat::Markdown,
        ExportFormat::Html,
        ExportFormat::Json,
        ExportFormat::Jsonl,
        ExportFormat::Snapshot,
        ExportFormat::ClaudeCode,
        ExportFormat::Codex,
        ExportFormat::Atif,
    ];

    /// Returns the name as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            ExportFormat::Markdown => "md",
            ExportFormat::Html => "html",
            ExportFormat::Json => "json",
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Snapshot => "snapshot",
            ExportFormat::ClaudeCode => "claude-code",
            ExportFormat::Codex => "codex",
            ExportFormat::Atif => "atif",
        }
    }

    /// Returns the format of this name, in lower or upper case.
    pub fn named(name: &str) -> Option<ExportFormat> {
        if name.eq_ignore_ascii_case("markdown") {
            return Some(ExportFormat::Markdown);
        }
        let mut all = ExportFormat::ALL.into_iter();
        all.find(|format| format.name().eq_ignore_ascii_case(name))
    }
}
