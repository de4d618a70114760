//! `chat`, and the program without a command: which session, which agent, then the talk.

mod door;
mod keyboard;
mod lines;
mod retention;
mod target;
mod unsaved;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::process::DumpableBehavior;
use tertulia::approval::{Approval, Rules};
use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::record::{OnConflict, Recorder};
use tertulia::conversation::run::{Talk, Terms};
use tertulia::id::SessionId;
use tertulia::tool::{ToolLimits, Toolbox};

use crate::agents::{self, Chosen};
use crate::args::{ApproveMode, GlobalArgs, OutputFormat};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input;
use crate::open::{self, House};
use crate::settings::StoreUrl;
use crate::signals::Signals;
use crate::ui::Ui;
use door::Output;
use keyboard::Keyboard;
use target::Target;

/// How long what runs beside a talk may take to end with it.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Talk to an assistant
///
/// Every word is durable before it is acted on. Without one of the resume flags a new session starts,
/// always. With -p, or when the input or the output is not a terminal, it is one turn: the answer goes
/// to standard output, notes to standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(after_help = "Examples:\n  \
    tertulia chat                               a talk on the terminal\n  \
    tertulia chat -p \"what is a tertulia?\"      one answer\n  \
    git diff | tertulia chat -p \"review this\"   standard input is attached below the prompt\n  \
    tertulia chat -c -p \"and in short?\"         goes on with the newest of this project\n  \
    tertulia --resume 5f3a9c1e                  goes on with that one, from any folder\n  \
    tertulia chat --output-format stream-json -p hello | jq .")]
pub struct ChatArgs {
    /// What to say first
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    /// One turn: print the answer and leave
    #[arg(short, long)]
    pub print: bool,
    /// How one turn is written
    #[arg(long, value_enum, value_name = "FORMAT")]
    output_format: Option<OutputFormat>,
    /// Go on with this project's newest talk
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "session", "session_id"])]
    go_on: bool,
    /// Go on with this session; without REF, with the newest
    #[arg(short, long, value_name = "REF", num_args = 0..=1, conflicts_with_all = ["session", "session_id"])]
    resume: Option<Option<String>>,
    /// The same as --resume REF
    #[arg(short, long, value_name = "REF", conflicts_with = "session_id")]
    session: Option<String>,
    /// The id of the new session
    #[arg(long, value_name = "UUID")]
    session_id: Option<SessionId>,
    /// The session's title
    #[arg(short, long, value_name = "TITLE")]
    name: Option<String>,
    /// Go on in a fork
    #[arg(long, visible_alias = "fork-session")]
    fork: bool,
    /// Stop with exit code 4 if another program writes to the session, instead of going on in a fork
    #[arg(long, conflicts_with = "fork")]
    no_fork: bool,
    /// Keep nothing
    #[arg(long, visible_alias = "no-auto-save")]
    ephemeral: bool,
    /// Who answers
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// With which model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Which tools an agent may use: what only looks runs at once, the rest is asked about (ask) or
    /// refused (low); all runs everything, none offers none [default: ask on a terminal, low elsewhere]
    #[arg(long, value_enum, value_name = "MODE")]
    approve: Option<ApproveMode>,
}

impl ChatArgs {
    /// Whether a flag says which session is meant.
    pub fn names_a_session(&self) -> bool {
        self.go_on || self.resume.is_some() || self.session.is_some()
    }
}

pub fn run(args: ChatArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let format = match args.output_format {
        Some(format) => format,
        None if ui.json => OutputFormat::Json,
        None => OutputFormat::Text,
    };
    let on_screen =
        !args.print && format == OutputFormat::Text && ui.has_keyboard() && ui.has_screen();
    let (house, kept) = house(&args, global, ui)?;
    let asked = agents::Asked {
        name: args.agent.as_deref(),
        model: args.model.as_deref(),
    };
    // Who is asked for and not there is told before anything else is done.
    if args.agent.is_some() {
        agents::choose(&house.settings, &asked, None)?;
    }
    let words = input::words(&args.prompt, ui)?;
    let names_or_says = args
        .resume
        .as_ref()
        .is_some_and(|value| value.as_ref().is_some_and(|value| value.contains(' ')));
    // Before anything is forked or renamed.
    if words.is_none() && !on_screen && !names_or_says {
        return Err(nothing_to_say());
    }
    let found = target::find(&args, &house, ui)?;
    let recorded = found
        .row
        .as_ref()
        .and_then(|row| row.summary.last_agent().map(str::to_owned));
    let chosen = agents::choose(&house.settings, &asked, recorded.as_deref())?;
    let terms = terms(&args, &house, &chosen, kept, ui);
    // What an agent's commands could read of this program, its keys among it, is closed to them.
    let closed = DumpableBehavior::NotDumpable;
    if let Err(error) = rustix::process::set_dumpable_behavior(closed) {
        ui.detail(&format!(
            "this process stays readable to others of yours: {error}"
        ));
    }
    let target = target::open(&args, found.row, &house, ui)?;
    let words = match (found.prompt, words) {
        (Some(prompt), Some(words)) => Some(format!("{prompt}\n\n{words}")),
        (prompt, words) => prompt.or(words),
    };
    if words.is_none() && !on_screen {
        return Err(nothing_to_say());
    }
    let hint = (!args.ephemeral && kept == Kept::InTheStore)
        .then(|| format!("{} --resume", house.settings.program));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the talk cannot be started").because(error)
        })?;
    let keeper = (!args.ephemeral).then(|| House {
        settings: house.settings.clone(),
        sessions: house.sessions.clone(),
    });
    let session = Session {
        house,
        chosen,
        terms,
        target,
        args,
        hint,
        kept,
    };
    let result = if on_screen {
        runtime.block_on(lines::talk(session, words, ui))
    } else {
        runtime.block_on(one_turn(session, words.unwrap_or_default(), format, ui))
    };
    // Whatever still runs for an agent ends here, and nobody waits for a slow disk.
    runtime.shutdown_timeout(LEAVE_WITHIN);
    if let Some(keeper) = keeper {
        retention::keep_house(&keeper, ui);
    }
    result
}

fn nothing_to_say() -> CommandError {
    CommandError::new(ErrorKind::Usage, "there is nothing to say")
        .hint("give a prompt, or write to standard input: echo hello | tertulia chat")
}

/// Everything that a talk begins with.
struct Session {
    house: House,
    chosen: Chosen,
    terms: Terms,
    target: Target,
    args: ChatArgs,
    hint: Option<String>,
    kept: Kept,
}

fn house(args: &ChatArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<(House, Kept)> {
    // A talk of which nothing is kept needs no store, but resuming does.
    if args.ephemeral && !args.names_a_session() {
        let settings = open::settings(global, ui)?;
        let sessions = open::sessions(&settings, &StoreUrl::Memory)?;
        return Ok((House { settings, sessions }, Kept::InTheStore));
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
            "--ephemeral keeps nothing, so there is nothing to go on with",
        )
        .hint("leave one of the two flags out"));
    }
    let opened = open::house(global, ui);
    match opened {
        // Not even a store can be made: the talk goes on all the same, and becomes a file at its end.
        Err(error) if error.kind() == ErrorKind::NoSpace && !args.names_a_session() => {
            ui.warn(&format!(
                "not saved: {error}. The talk goes on in memory and is offered as a file at its end"
            ));
            let settings = open::settings(global, ui)?;
            let sessions = open::sessions(&settings, &StoreUrl::Memory)?;
            Ok((House { settings, sessions }, Kept::Nowhere))
        }
        opened => Ok((opened?, Kept::InTheStore)),
    }
}

/// Where the words of a talk are when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    InTheStore,
    /// In memory, because there is no room for a store.
    Nowhere,
}

/// What the talk is led by: the tools, and which of them may be used unasked.
fn terms(args: &ChatArgs, house: &House, chosen: &Chosen, kept: Kept, ui: &mut Ui) -> Terms {
    let mode = match args.approve {
        Some(ApproveMode::Ask) if !ui.is_interactive() => {
            ui.warn("there is nobody to ask here: what is not of low risk is refused");
            Approval::Low
        }
        // Nothing is done that is not in the log first.
        _ if kept == Kept::Nowhere => Approval::Low,
        Some(mode) => mode.into(),
        None if ui.is_interactive() => Approval::Ask,
        None => Approval::Low,
    };
    let tools = Toolbox::new(
        house.settings.cwd.clone(),
        ToolLimits::default(),
        agents::key_variables(&house.settings),
    );
    let tools = match tools {
        Ok(tools) => Some(tools),
        Err(error) => {
            ui.warn(&format!("there are no tools in this talk: {error}"));
            None
        }
    };
    Terms {
        rules: Rules::new(mode),
        tools,
        ephemeral: args.ephemeral,
        compact_at: chosen.compact_at,
    }
}

/// Begins or resumes the talk.
async fn open_talk(session: Session, output: &mut Output<'_>) -> CommandResult<Talk> {
    let sessions = session.house.sessions;
    let on_conflict = if session.args.no_fork {
        OnConflict::Refuse
    } else {
        OnConflict::Fork
    };
    let talk = match session.target {
        Target::New(start) => {
            output.started(start.id);
            Talk::begin(
                Recorder::begin(sessions, start, on_conflict),
                session.chosen.agent,
                session.terms,
            )
        }
        Target::Resume(row) => {
            let (recorder, left) = Recorder::resume(sessions, row.summary, on_conflict).await?;
            output.started(recorder.id());
            Talk::resume(recorder, left, session.chosen.agent, session.terms, output).await?
        }
    };
    Ok(talk)
}

/// What is said and done at the end of a talk, however it ended. Whether something could not be saved.
async fn farewell(talk: &Talk, hint: Option<&str>, kept: Kept, ui: &mut Ui) -> bool {
    talk.leave().await;
    let left_unsaved = unsaved::offer(talk, kept, ui).await;
    if let Some(hint) = hint.filter(|_| talk.recorder().summary().is_some()) {
        ui.note(&format!("Resume: {hint} {}", talk.recorder().id().short()));
    }
    left_unsaved
}

/// Who answers and why, and how to choose another.
fn introduction(chosen: &Chosen) -> String {
    let agent = &chosen.agent;
    let model = agent.model().map(|model| format!(" ({model})"));
    format!(
        "Talking to {}{}: {}. Choose another with --agent; `tertulia agents` shows who is ready.",
        agent.name(),
        model.unwrap_or_default(),
        chosen.reason
    )
}

/// One question, one answer.
async fn one_turn(
    session: Session,
    words: String,
    format: OutputFormat,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let (hint, kept) = (session.hint.clone(), session.kept);
    if session.chosen.unasked {
        ui.note(&introduction(&session.chosen));
    }
    let mut signals = Signals::listen()?;
    let mut keyboard = Keyboard::default();
    let answers = ui.is_interactive().then_some(&mut keyboard);
    let mut output = Output::new(format, ui, answers);
    let mut talk = open_talk(session, &mut output).await?;
    let cancel = signals.cancel.clone();
    let end = signals
        .during(talk.turn(words, &mut output, &cancel))
        .await?;
    let refused = output.finish(talk.recorder().id(), &end);
    let left_unsaved = unsaved::offer(&talk, kept, ui).await;
    if let Some(hint) = hint.filter(|_| talk.recorder().summary().is_some()) {
        ui.note(&format!("Resume: {hint} {}", talk.recorder().id().short()));
    }
    if let Some(refused) = refused {
        return Err(refused);
    }
    if let Some(signal) = signals.caught() {
        return Ok(ExitCode::from(ErrorKind::Interrupted(signal).exit_code()));
    }
    match end {
        TurnEnd::Failed(error) => Err(error.into()),
        _ if left_unsaved => Err(CommandError::new(
            ErrorKind::Failed,
            "this talk could not be saved",
        )),
        _ => Ok(ExitCode::SUCCESS),
    }
}
