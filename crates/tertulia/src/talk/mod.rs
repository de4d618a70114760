//! Session code shared by chats, teams and pairs: command-line flags, choosing the session, running
//! it in a frontend, and closing it.

mod copy;
mod describe;
pub mod frontend;
pub mod keyboard;
mod once;
pub mod opening;
pub mod paired;
pub mod permissions;
mod plain;
pub mod retention;
pub mod routed;
pub mod target;
mod unsaved;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use clap::Args;
use rustix::process::DumpableBehavior;
use tertulia_agents::approval::{Approval, Permissions};
use tertulia_agents::tool::{ToolLimits, Toolbox};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::event::{SessionEnd, Tone, UserMessage};
use tertulia_engine::live::Closing;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::runner::{RunOptions, Runner};
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};

use crate::agents;
use crate::args::{ApproveMode, GlobalArgs, OutputFormat};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::guard;
use crate::open::{self, Workspace};
use crate::participants::OpenOptions;
use crate::settings::StoreUrl;
#[cfg(feature = "tui")]
use crate::tui_host;
use crate::ui::{Told, Ui};
use opening::Prepared;

/// Time that background tasks get to end when a session closes.
pub const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// File descriptors that the runtime, its signal handlers and an agent need to start.
const FILES_NEEDED: usize = 12;

/// The flags of every talk.
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
    /// Resume this session; without REF, the newest
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
    /// Don't save this session
    #[arg(long, visible_alias = "no-auto-save")]
    pub ephemeral: bool,
    /// Tool policy: read-only tools always run; others ask (ask), are denied (low) or all run (all); none
    /// turns tools off [default: ask on a terminal, low elsewhere]
    #[arg(long, value_enum, value_name = "MODE")]
    pub approve: Option<ApproveMode>,
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
        self.is_at_terminal(ui)
    }

    fn is_at_terminal(&self, ui: &Ui) -> bool {
        !self.print && self.format(ui) == OutputFormat::Text && ui.has_keyboard() && ui.has_screen()
    }

    /// Returns true if the session runs in the full-screen TUI.
    pub fn is_full_screen(&self, ui: &Ui) -> bool {
        cfg!(feature = "tui") && self.is_at_terminal(ui) && !self.plain && !ui.is_dumb()
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
        }
    }

    /// Combines the participants with the tool policy of the flags.
    pub fn spec(&self, participants: ParticipantSpec) -> SessionSpec {
        SessionSpec {
            participants,
            approve: self.approve.map(Approval::from),
        }
    }

    /// Returns what to do if another program writes to the same session.
    pub fn on_conflict(&self) -> OnConflict {
        if self.no_fork {
            OnConflict::Refuse
        } else {
            OnConflict::Fork
        }
    }
}

/// Closes a session: saves what is held in memory and prints how to resume.
#[derive(Clone, Debug)]
pub struct Leaving {
    hint: Option<String>,
}

impl Leaving {
    pub fn new(ephemeral: bool, workspace: &Workspace) -> Leaving {
        let kept = !ephemeral && workspace.settings.store != StoreUrl::Memory;
        let hint = kept.then(|| format!("{} --resume", workspace.settings.program));
        Leaving { hint }
    }

    /// Returns true if the session can be resumed later.
    pub fn is_resumable(&self) -> bool {
        self.hint.is_some()
    }

    /// Closes a session, however it ended: saves held entries, or offers them as a file if that
    /// fails, and prints how to resume. Returns the kind of failure if entries remain unsaved.
    pub async fn farewell(&self, runner: &mut Runner, ui: &mut Ui) -> Option<ErrorKind> {
        runner.save_at_last().await;
        let runner = &*runner;
        write_back(runner, ui).await;
        let left_unsaved = unsaved::offer(runner, ui).await;
        if let Some(hint) = self
            .hint
            .as_ref()
            .filter(|_| runner.writer().meta().is_some())
        {
            ui.note(&format!("Resume: {hint} {}", runner.writer().id().short()));
        }
        left_unsaved
    }
}

#[async_trait]
impl Closing for Leaving {
    async fn close(&self, conversation: &mut Conversation) -> SessionEnd {
        let mut ui = Ui::holding();
        if let Some(words) = describe::unheard(conversation, self) {
            ui.note(&words);
        }
        let unsaved = self.farewell(conversation.runner_mut(), &mut ui).await;
        let (told, content) = messages(&mut ui);
        SessionEnd {
            unsaved: unsaved.is_some(),
            locked_out: unsaved == Some(ErrorKind::Conflict),
            told,
            content,
        }
    }
}

/// Prints the closing messages of a session. Returns the kind of failure if entries remain unsaved.
pub fn tell_end(end: SessionEnd, ui: &mut Ui) -> Option<ErrorKind> {
    for told in end.told {
        match told.tone {
            Tone::Note => ui.note(&told.text),
            Tone::Warning | Tone::Error => ui.warn(&told.text),
        }
    }
    if let Some(content) = end.content {
        ui.data(&content);
    }
    end.unsaved.then_some(match end.locked_out {
        true => ErrorKind::Conflict,
        false => ErrorKind::Failed,
    })
}

/// Takes the messages and the data that `ui` has held back.
pub fn messages(ui: &mut Ui) -> (Vec<UserMessage>, Option<String>) {
    let mut content = None;
    let mut all = Vec::new();
    for told in ui.take_held() {
        match told {
            Told::Note(text) => all.push(UserMessage::note(text)),
            Told::Warning(text) => all.push(UserMessage::warning(text)),
            Told::Data(text) => content.get_or_insert_with(String::new).push_str(&text),
            Told::Error { message, hints, .. } => all.push(UserMessage {
                tone: Tone::Error,
                text: [vec![message], hints].concat().join("; "),
            }),
        }
    }
    (all, content)
}

/// Writes a session back to the file that it was imported from. Called at the end of a turn, once
/// no agent is answering, and when the session closes.
pub async fn write_back(runner: &Runner, ui: &mut Ui) {
    if let Err(reason) = runner.writer().copy().await {
        ui.warn(&format!("saved, but not in the session file: {reason}"));
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

/// Returns the tools and permissions of a session.
pub fn run_options(
    approve: Option<Approval>,
    options: &OpenOptions,
    workspace: &Workspace,
    ui: &mut Ui,
) -> RunOptions {
    let mode = match approve {
        Some(Approval::Ask) if !options.can_ask => {
            ui.warn("not interactive: tools that change anything are denied");
            Approval::Low
        }
        Some(mode) => mode,
        None if options.can_ask => Approval::Ask,
        None => Approval::Low,
    };
    let tools = Toolbox::new(
        workspace.settings.cwd.clone(),
        ToolLimits::default(),
        agents::key_variables(&workspace.settings),
    );
    let tools = match tools {
        Ok(tools) => Some(tools),
        Err(error) => {
            ui.warn(&format!("tools are not available: {error}"));
            None
        }
    };
    RunOptions {
        rules: Permissions::new(mode),
        tools,
        ephemeral: options.ephemeral || workspace.settings.store == StoreUrl::Memory,
        compact_at: None,
        model_switched: false,
        guard: Some(Arc::new(guard::guard())),
    }
}

/// Makes the memory of this process, API keys included, unreadable to the commands that agents run.
pub fn close_to_others(ui: &mut Ui) {
    let closed = DumpableBehavior::NotDumpable;
    if let Err(error) = rustix::process::set_dumpable_behavior(closed) {
        ui.detail(&format!(
            "this process stays readable to others of yours: {error}"
        ));
    }
}

/// Returns the first message: the prompt from a flag's value, with `words` below it.
pub fn first_words(prompt: Option<String>, words: Option<String>) -> Option<String> {
    match (prompt, words) {
        (Some(prompt), Some(words)) => Some(format!("{prompt}\n\n{words}")),
        (prompt, words) => prompt.or(words),
    }
}

/// Returns the error for a missing prompt in a session that is not interactive.
pub fn nothing_to_say(command: &str) -> CommandError {
    CommandError::new(ErrorKind::Usage, "there is no prompt").hint(format!(
        "give a prompt, or pipe one in: echo hello | tertulia {command}"
    ))
}

/// Runs a session as its flags and the terminal allow: in the TUI, line by line, or for one turn.
pub fn lead(
    args: &TalkArgs,
    prepare: impl FnOnce(&mut Ui) -> CommandResult<Option<Prepared>>,
    #[cfg_attr(
        not(feature = "tui"),
        expect(
            unused_variables,
            reason = "only the full-screen frontend prepares more sessions"
        )
    )]
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    #[cfg(feature = "tui")]
    if args.is_full_screen(ui) {
        ui.hold();
        let result = match prepare(ui) {
            Ok(Some(prepared)) => tui_host::run(prepared, global, ui),
            Ok(None) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error),
        };
        ui.release();
        return result;
    }
    let Some(Prepared { opening, words }) = prepare(ui)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (on_screen, format) = (args.is_on_screen(ui), args.format(ui));
    let keeper = (!args.ephemeral).then(|| opening.workspace.clone());
    let talk = async move |ui: &mut Ui| match on_screen {
        true => plain::talk(opening, words, ui).await,
        false => once::turn(opening, words.unwrap_or_default(), format, ui).await,
    };
    run_to_end(talk, keeper, ui)
}

/// Runs a session to its end, then applies the retention rules.
fn run_to_end(
    talk: impl AsyncFnOnce(&mut Ui) -> CommandResult<ExitCode>,
    keeper: Option<Workspace>,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let runtime = runtime()?;
    let result = runtime.block_on(talk(ui));
    // Stops what still runs for an agent, without waiting long for a slow disk.
    runtime.shutdown_timeout(LEAVE_WITHIN);
    if let Some(keeper) = keeper {
        retention::keep_workspace(&keeper, ui);
    }
    result
}

/// Returns an error if the limit on open files is too low for the runtime to start.
pub fn enough_files() -> CommandResult<()> {
    let probe = || std::fs::File::open("/dev/null");
    let opened: std::io::Result<Vec<_>> = (0..FILES_NEEDED).map(|_| probe()).collect();
    opened.map(drop).map_err(|error| {
        CommandError::new(ErrorKind::Failed, "no more files can be opened")
            .because(error)
            .hint("allow more open files: `ulimit -n 1024`")
    })
}

/// Creates the single-threaded runtime that a session runs on.
pub fn runtime() -> CommandResult<tokio::runtime::Runtime> {
    enough_files()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the session cannot be started").because(error)
        })
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

/// Returns the exit code of a session: from a signal, from unsaved entries, or success.
pub fn exit_code(signal: Option<u8>, left_unsaved: Option<ErrorKind>) -> ExitCode {
    match signal.map(ErrorKind::Interrupted).or(left_unsaved) {
        Some(kind) => ExitCode::from(kind.exit_code()),
        None => ExitCode::SUCCESS,
    }
}
