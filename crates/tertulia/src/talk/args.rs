//! The flags that chats, teams and pairs share, and the workspace that they open.

use std::path::PathBuf;

use clap::Args;
use tertulia_agents::approval::Approval;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::prompt::Prompt;
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};

use super::target;
use crate::args::{ApproveMode, GlobalArgs, OutputFormat};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::participants::OpenOptions;
use crate::settings::StoreUrl;
use crate::ui::Ui;

/// The flags of every conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct TalkArgs {
    /// Run one turn, print the answer and exit
    #[arg(short, long)]
    pub print: bool,
    /// Output format of one turn
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,
    /// Continue the newest session of this kind in this project
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "session", "session_id"])]
    pub go_on: bool,
    /// Resume this session; without REF, choose from a list (off a terminal: the newest)
    #[arg(short, long, value_name = "REF", num_args = 0..=1, conflicts_with = "session_id")]
    pub resume: Option<Option<String>>,
    /// Same as --resume REF
    #[arg(short, long, value_name = "REF", conflicts_with = "session_id")]
    pub session: Option<String>,
    /// Resume the session in this file, and write it back after every turn
    #[arg(long, value_name = "PATH", conflicts_with_all = ["go_on", "session", "session_id", "fork"])]
    pub session_file: Option<PathBuf>,
    /// Id of the new session
    #[arg(long, value_name = "UUID")]
    pub session_id: Option<SessionId>,
    /// Title of the session
    #[arg(short, long, value_name = "TITLE")]
    pub name: Option<String>,
    /// Continue in a fork of the session
    #[arg(long, visible_alias = "fork-session")]
    pub fork: bool,
    /// Exit with code 4 if another program writes to the session, instead of continuing in a fork
    #[arg(long, conflicts_with = "fork")]
    pub no_fork: bool,
    /// Take the session over from the program that has it open; that one continues in a fork
    #[arg(long, conflicts_with_all = ["fork", "no_fork"])]
    pub take_over: bool,
    /// Move the resumed session to the current folder: its tools work here from now on
    #[arg(long)]
    pub here: bool,
    /// Folder of a new session, that of the session before it.
    #[arg(skip)]
    pub folder: Option<PathBuf>,
    /// Tool policy without a word of the user, if it is tighter than that of the frontend.
    #[arg(skip)]
    pub default_policy: Option<Approval>,
    /// Don't save this session
    #[arg(long, visible_alias = "no-auto-save")]
    pub ephemeral: bool,
    /// Encrypt the new session: only those who have its key can read it
    #[arg(long, conflicts_with_all = ["ephemeral", "go_on", "resume", "session", "session_file"])]
    pub sealed: bool,
    /// Tool policy: read-only tools always run; others ask (ask), ask unless they edit files (edits), are
    /// denied (low) or all run (all); none turns tools off [default: ask on a terminal, low elsewhere]
    #[arg(long, value_enum, value_name = "MODE")]
    pub approve: Option<ApproveMode>,
    /// Don't send the project's AGENTS.md or CLAUDE.md to agents behind an API
    #[arg(long)]
    pub no_project_instructions: bool,
    /// In a team or pair: succeed even if an agent failed, or none was asked
    #[arg(long)]
    pub keep_going: bool,
    /// Line by line, for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,
}

impl TalkArgs {
    /// Returns true if a flag says which session to resume.
    pub fn names_a_session(&self) -> bool {
        self.go_on || self.resume.is_some() || self.session.is_some() || self.session_file.is_some()
    }

    /// Returns true if the user picks the session from a list, in frontends that have one.
    pub fn opens_picker(&self) -> bool {
        self.resume == Some(None) && self.session.is_none() && self.session_file.is_none()
    }

    /// Returns true if the value of `--resume` may be a prompt instead of a reference.
    pub fn may_say_something(&self) -> bool {
        let value = self.resume.as_ref().and_then(Option::as_ref);
        value.is_some_and(|value| value.contains(' '))
    }

    /// Returns the output format.
    pub fn format(&self, ui: &Ui) -> OutputFormat {
        match self.output_format {
            Some(format) => format,
            None if ui.json => OutputFormat::Json,
            None => OutputFormat::Text,
        }
    }

    /// Returns true if the session is interactive: text on a terminal with a keyboard, without
    /// `--print`.
    pub fn is_on_screen(&self, ui: &Ui) -> bool {
        !self.print && self.format(ui) == OutputFormat::Text && ui.has_keyboard() && ui.has_screen()
    }

    /// Returns true if the session runs in the full-screen TUI.
    pub fn is_full_screen(&self, ui: &Ui) -> bool {
        cfg!(feature = "tui") && self.is_on_screen(ui) && !self.plain && !ui.is_dumb()
    }

    /// Holds output back from now on if the session runs in the full-screen TUI.
    pub fn hold_output(&self, ui: &mut Ui) {
        if self.is_full_screen(ui) {
            ui.hold();
        }
    }

    /// Returns the options to open a session with.
    pub fn open_options(&self, ui: &Ui) -> OpenOptions {
        OpenOptions {
            can_ask: ui.is_interactive(),
            ephemeral: self.ephemeral,
            on_conflict: self.on_conflict(),
            title: self.name.clone(),
            id: self.session_id,
            fork: self.fork,
            sealed: self.sealed,
            // What a file holds goes on where its user is.
            here: self.here || self.session_file.is_some(),
            default_policy: self.default_policy,
        }
    }

    /// Combines the participants with the tool policy of the flags.
    pub fn spec(&self, participants: ParticipantSpec) -> SessionSpec {
        SessionSpec {
            participants,
            approve: self.approve.map(Approval::from),
            no_project_instructions: self.no_project_instructions,
            cwd: self.folder.clone(),
        }
    }

    /// Returns true if no flag says what to do with a session that another program has open.
    pub fn asks_about_holder(&self) -> bool {
        !self.fork && !self.no_fork && !self.take_over
    }

    /// Returns what to do if another program writes to the same session.
    pub fn on_conflict(&self) -> OnConflict {
        if self.no_fork {
            OnConflict::Refuse
        } else if self.take_over {
            OnConflict::TakeOver
        } else {
            OnConflict::Fork
        }
    }
}

/// Opens the workspace with the store that the session is saved in.
pub fn workspace(args: &TalkArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Workspace> {
    target::check_flags(args)?;
    if !args.print {
        crate::trust::ask(global, ui)?;
    }
    // An ephemeral session needs no store, but resuming one does.
    if args.ephemeral && !args.names_a_session() {
        let settings = open::settings(global, ui)?;
        let sessions = open::sessions(&settings, &StoreUrl::Memory)?;
        let aside = ui.aside();
        return Ok(Workspace {
            settings,
            sessions,
            aside,
        });
    }
    if args.fork && !args.names_a_session() {
        return Err(
            CommandError::new(ErrorKind::Usage, "--fork needs a session to fork from")
                .hint("add -c, --resume REF or --session REF"),
        );
    }
    if args.ephemeral {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "--ephemeral saves nothing, so there is nothing to resume",
        )
        .hint("omit one of the two flags"));
    }
    // A new session needs no store before its first message.
    match args.names_a_session() {
        true => open::workspace(global, ui),
        false => open::workspace_for_new(global, ui),
    }
}

/// Returns the first message: the prompt from a flag's value, with `words` below it.
pub fn first_words(prompt: Option<String>, words: Option<Prompt>) -> Option<Prompt> {
    match (prompt, words) {
        (Some(prompt), Some(words)) => Some(Prompt {
            typed: prompt.len() + 2 + words.typed,
            ..Prompt::from(format!("{prompt}\n\n{}", words.text))
        }),
        (prompt, words) => prompt.map(Prompt::typed).or(words),
    }
}

/// Returns the error for a missing prompt in a session that is not interactive.
pub fn nothing_to_say(command: &str) -> CommandError {
    CommandError::new(ErrorKind::Usage, "no prompt given").hint(format!(
        "give a prompt, or pipe one in: echo hello | tertulia {command}"
    ))
}

/// Kind and team of the sessions that a command works with.
#[derive(Clone, Copy, Debug)]
pub struct Sort<'a> {
    pub kind: Kind,
    pub team: Option<&'a str>,
    /// Whether sessions of other kinds are accepted too, because the command line named no kind.
    pub any_kind: bool,
}

impl<'a> Sort<'a> {
    /// Selects the sessions of a kind, and of a team if one is named.
    pub const fn of(kind: Kind, team: Option<&'a str>) -> Sort<'a> {
        Sort {
            kind,
            team,
            any_kind: false,
        }
    }
}
