//! Errors of commands, for people and for scripts: a kind, a cause and hints. The kind determines
//! the exit code.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue};
use tertulia_agents::{AgentError, FailureKind};
use tertulia_core::entry::EntryError;
use tertulia_core::id::IdError;
use tertulia_core::jsonl::JsonlError;
use tertulia_core::query::QueryError;
use tertulia_core::search_text::SearchTermsError;
use tertulia_core::team::TeamError;
use tertulia_engine::error::{ErrorBody, ErrorKind as Wire};
use tertulia_engine::team::events::SenderError;
use tertulia_store::StoreError;

use crate::args::Args;
use crate::commands;
use crate::env;
use crate::settings::without_password;
use crate::ui::Ui;

/// Kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Any other failure.
    Failed,
    /// A disk is full.
    NoSpace,
    /// Invalid usage.
    Usage,
    /// There is no such session, team or agent.
    NotFound,
    /// A reference matches several sessions.
    Ambiguous,
    /// Another program writes to the resource or holds it.
    Conflict,
    /// The data is invalid or damaged.
    Invalid,
    /// An agent failed or is unavailable.
    Agent,
    /// Ended by a signal.
    Interrupted(u8),
}

impl ErrorKind {
    /// Returns the name in `--json` errors.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::Failed => "failed",
            ErrorKind::NoSpace => "no_space",
            ErrorKind::Usage => "usage",
            ErrorKind::NotFound => "not_found",
            ErrorKind::Ambiguous => "ambiguous",
            ErrorKind::Conflict => "conflict",
            ErrorKind::Invalid => "invalid",
            ErrorKind::Agent => "agent",
            ErrorKind::Interrupted(_) => "interrupted",
        }
    }

    /// Returns the exit code; the only table of exit codes.
    pub const fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Failed | ErrorKind::NoSpace => 1,
            ErrorKind::Usage => 2,
            ErrorKind::NotFound | ErrorKind::Ambiguous => 3,
            ErrorKind::Conflict => 4,
            ErrorKind::Invalid => 5,
            ErrorKind::Agent => 6,
            ErrorKind::Interrupted(signal) => 128 + signal,
        }
    }
}

/// A command's error.
#[derive(Debug)]
pub struct CommandError {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    hints: Vec<String>,
}

/// Result of a command.
pub type CommandResult<T> = Result<T, CommandError>;

impl CommandError {
    /// Creates an error with its message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> CommandError {
        CommandError {
            kind,
            message: message.into(),
            source: None,
            hints: Vec::new(),
        }
    }

    /// Returns the kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Adds a hint for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> CommandError {
        self.hints.push(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
        self.source = Some(source.into());
        self
    }

    /// Returns the hints.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the message with its causes.
    pub fn words(&self) -> String {
        let mut message = self.message.clone();
        let mut cause = self
            .source
            .as_ref()
            .map(|source| source.as_ref() as &dyn Error);
        while let Some(error) = cause {
            let words = error.to_string();
            if !message.contains(&words) {
                message.push_str(": ");
                message.push_str(&words);
            }
            cause = error.source();
        }
        message
    }

    /// Shows the error and returns its exit code.
    pub fn report(&self, ui: &mut Ui) -> ExitCode {
        ui.error(self.kind.name(), &self.words(), &self.hints);
        ExitCode::from(self.kind.exit_code())
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Replaces clap's suggestion for an unknown flag by a similar flag, or by the command of that
/// name.
fn with_near_suggestion(mut error: clap::Error) -> clap::Error {
    let text = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let Some(unknown) = text(&error, ContextKind::InvalidArg) else {
        return error;
    };
    let suggested = text(&error, ContextKind::SuggestedArg);
    let command = Args::command();
    let name = unknown.trim_start_matches('-');
    let is_command = unknown.starts_with("--") && command.find_subcommand(name).is_some();
    if is_command || suggested.is_some_and(|flag| !commands::is_near(&unknown, &flag)) {
        error.remove(ContextKind::SuggestedArg);
        // The usage line is built from the suggestion.
        error.remove(ContextKind::Usage);
    }
    if is_command {
        let words = format!("'{name}' is a command: tertulia {name}");
        let words = ContextValue::StyledStrs(vec![words.into()]);
        error.insert(ContextKind::Suggested, words);
    }
    error
}

/// Removes the passwords of URLs from the arguments that the error names.
fn without_passwords(mut error: clap::Error) -> clap::Error {
    for kind in [
        ContextKind::InvalidArg,
        ContextKind::InvalidValue,
        ContextKind::InvalidSubcommand,
    ] {
        if let Some(ContextValue::String(text)) = error.get(kind)
            && text.contains("://")
        {
            let text = ContextValue::String(without_password(text));
            error.insert(kind, text);
        }
    }
    error
}

/// Shows an error of the argument parser. Help and version go to stdout and are no error.
pub fn from_clap(error: clap::Error) -> ExitCode {
    let error = without_passwords(with_near_suggestion(error));
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    if wants_json && error.use_stderr() {
        let rendered = error.to_string();
        let lines = rendered
            .lines()
            .map(str::trim)
            .take_while(|line| !line.starts_with("Usage"));
        let message = lines
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        let message = message.trim_start_matches("error: ").to_owned();
        let mut ui = Ui::new(&crate::args::GlobalArgs {
            json: true,
            ..Default::default()
        });
        return CommandError::new(ErrorKind::Usage, message)
            .hint("see --help")
            .report(&mut ui);
    }
    if wants_json && error.kind() == clap::error::ErrorKind::DisplayVersion {
        let mut ui = Ui::new(&crate::args::GlobalArgs {
            json: true,
            ..Default::default()
        });
        ui.document(&serde_json::json!({
            "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION"),
        }));
        return ExitCode::SUCCESS;
    }
    // If the terminal is gone, nothing can be reported.
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

impl From<AgentError> for CommandError {
    fn from(error: AgentError) -> CommandError {
        let kind = match error.kind {
            FailureKind::Cancelled => ErrorKind::Interrupted(2),
            _ => ErrorKind::Agent,
        };
        let hint = error.hint.unwrap_or_else(|| {
            format!(
                "`tertulia agents` lists the agents that are ready; choose one with {} or --agent",
                env::AGENT
            )
        });
        CommandError::new(kind, error.message).hint(hint)
    }
}

impl From<TeamError> for CommandError {
    fn from(error: TeamError) -> CommandError {
        CommandError::new(ErrorKind::Invalid, error.to_string())
    }
}

impl From<SenderError> for CommandError {
    fn from(error: SenderError) -> CommandError {
        ErrorBody::from(&error).into()
    }
}

impl From<ErrorBody> for CommandError {
    fn from(body: ErrorBody) -> CommandError {
        let kind = match body.kind {
            Wire::Usage => ErrorKind::Usage,
            Wire::NotFound => ErrorKind::NotFound,
            Wire::Ambiguous => ErrorKind::Ambiguous,
            Wire::Conflict | Wire::Busy | Wire::Forbidden | Wire::Unauthorized => {
                ErrorKind::Conflict
            }
            Wire::Invalid => ErrorKind::Invalid,
            Wire::Agent => ErrorKind::Agent,
            Wire::NoSpace => ErrorKind::NoSpace,
            Wire::Failed
            | Wire::Interrupted
            | Wire::Malformed
            | Wire::UnknownType
            | Wire::TooLarge
            | Wire::TooSlow => ErrorKind::Failed,
        };
        let error = CommandError::new(kind, body.message);
        match body.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> CommandError {
        ErrorBody::from(&error).into()
    }
}

impl From<SearchTermsError> for CommandError {
    fn from(error: SearchTermsError) -> CommandError {
        CommandError::new(ErrorKind::Usage, error.to_string())
            .hint("words, \"a phrase\", -without, begin*: `tertulia search --help` has examples")
    }
}

impl From<IdError> for CommandError {
    fn from(error: IdError) -> CommandError {
        CommandError::new(ErrorKind::Usage, error.to_string())
    }
}

impl From<QueryError> for CommandError {
    fn from(error: QueryError) -> CommandError {
        CommandError::new(ErrorKind::Usage, error.to_string())
    }
}

impl From<JsonlError> for CommandError {
    fn from(error: JsonlError) -> CommandError {
        let kind = ErrorKind::Invalid;
        let newer = matches!(
            &error,
            JsonlError::Unreadable {
                source: EntryError::Newer { .. },
                ..
            }
        );
        let result = CommandError::new(kind, error.to_string());
        if newer {
            result.hint("upgrade tertulia")
        } else {
            result
        }
    }
}
