//! `chat`, and the program without a command: which session, which agent, then the talk.

mod door;
mod lines;
mod retention;
mod signals;
mod unsaved;

use std::process::ExitCode;

use clap::Args;
use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::record::{OnConflict, Recorder};
use tertulia::conversation::run::Talk;
use tertulia::entry::{Kind, Relation};
use tertulia::id::SessionId;
use tertulia::query::{Filter, Row};
use tertulia::store::{Fork, Start};

use super::rename;
use crate::agents::{self, Chosen};
use crate::args::{GlobalArgs, OutputFormat};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, House};
use crate::settings::StoreUrl;
use crate::ui::Ui;
use crate::{env, input};
use door::Output;

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
    let chosen = agents::choose(&house.settings, args.agent.as_deref())?;
    let words = input::words(&args.prompt, ui)?;
    let names_or_says = args
        .resume
        .as_ref()
        .is_some_and(|value| value.as_ref().is_some_and(|value| value.contains(' ')));
    // Before anything is forked or renamed.
    if words.is_none() && !on_screen && !names_or_says {
        return Err(nothing_to_say());
    }
    let (target, prompt) = target(&args, &house, ui)?;
    let words = match (prompt, words) {
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
    target: Target,
    args: ChatArgs,
    hint: Option<String>,
    kept: Kept,
}

/// Which session the talk is in.
enum Target {
    New(Start),
    Resume(Box<Row>),
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

/// Finds the session, and the prompt where the flag's value was meant as one.
fn target(args: &ChatArgs, house: &House, ui: &mut Ui) -> CommandResult<(Target, Option<String>)> {
    let chats = Filter {
        kind: Some(Kind::Chat),
        ..house.here()
    };
    let title = args.name.as_deref().map(rename::title).transpose()?;
    let mut extra_prompt = None;
    let found = if args.go_on {
        let newest = house.wait(
            house
                .sessions
                .store()
                .list(&chats, &tertulia::query::Page::first(1)),
        )?;
        let row = newest.rows.into_iter().next().ok_or_else(|| {
            CommandError::new(
                ErrorKind::NotFound,
                format!(
                    "there is no earlier talk in this project ({})",
                    house.settings.project
                ),
            )
            .hint("leave -c out to begin one, or name one of another project: tertulia list --all")
        })?;
        Some(row)
    } else if let Some(reference) = args.session.as_deref().or(args
        .resume
        .as_ref()
        .map(|value| value.as_deref().unwrap_or("@")))
    {
        match house.look_up(reference, &chats)? {
            Some(row) => Some(row),
            None if args.session.is_none() && reference.contains(' ') => {
                ui.note(&format!("no session is called '{reference}': it is taken as the prompt for the newest one"));
                extra_prompt = Some(reference.to_owned());
                Some(house.find_in("@", &chats)?)
            }
            None => return Err(house.not_found(reference)),
        }
    } else {
        None
    };
    let Some(row) = found else {
        let start = Start {
            id: args
                .session_id
                .unwrap_or_else(|| house.sessions.stamp().session_id()),
            kind: Kind::Chat,
            title,
            team: None,
            project: Some(house.settings.project.clone()),
            cwd: Some(house.settings.cwd.display().to_string()),
        };
        if args.session_id.is_some() && house.wait(house.sessions.row(start.id)).is_ok() {
            return Err(tertulia::store::StoreError::Exists(start.id).into());
        }
        return Ok((Target::New(start), None));
    };
    if row.summary.trashed_at.is_some() {
        ui.warn(&format!(
            "session {} is in the trash; `tertulia restore {0}` takes it out",
            row.summary.id.short()
        ));
    }
    let row = if args.fork {
        forked(house, &row, title, ui)?
    } else {
        retitled(house, row, title)?
    };
    Ok((Target::Resume(Box::new(row)), extra_prompt))
}

fn forked(house: &House, row: &Row, title: Option<String>, ui: &mut Ui) -> CommandResult<Row> {
    let mut row = row.clone();
    // A half-written answer belongs to what is shared.
    if !row.open
        && let Some(entry) = house.wait(house.sessions.recover(&row.summary))?
    {
        row.summary.apply(&entry);
        ui.note("an answer was cut off; what had arrived is kept as an interrupted message");
    }
    let fork = Fork {
        id: house.sessions.stamp().session_id(),
        at: None,
        title,
        relation: Relation::Fork,
    };
    let (summary, _) = house.wait(house.sessions.fork(&row.summary, &fork, Vec::new()))?;
    ui.note(&format!(
        "Going on in {}, a fork of {}",
        summary.id.short(),
        row.summary.id.short()
    ));
    Ok(Row {
        summary,
        open: false,
    })
}

fn retitled(house: &House, mut row: Row, title: Option<String>) -> CommandResult<Row> {
    if let Some(title) = title {
        let operation = house.sessions.stamp().entry_id();
        row.summary = house.wait(house.sessions.rename(row.summary.id, &title, operation))?;
    }
    Ok(row)
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
            )
        }
        Target::Resume(row) => {
            let (recorder, left) = Recorder::resume(sessions, row.summary, on_conflict).await?;
            output.started(recorder.id());
            Talk::resume(recorder, left, session.chosen.agent, output).await?
        }
    };
    Ok(talk)
}

/// One question, one answer.
async fn one_turn(
    session: Session,
    words: String,
    format: OutputFormat,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let (hint, kept) = (session.hint.clone(), session.kept);
    let mut signals = signals::Signals::listen()?;
    let mut output = Output::new(format, ui);
    let mut talk = open_talk(session, &mut output).await?;
    let cancel = signals.cancel.clone();
    let end = signals.during(talk.turn(words, &mut output, &cancel)).await;
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
        TurnEnd::Failed(error) => Err(agent_failed(&error)),
        _ if left_unsaved => Err(CommandError::new(
            ErrorKind::Failed,
            "this talk could not be saved",
        )),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn agent_failed(error: &tertulia::agent::AgentError) -> CommandError {
    let failed = CommandError::new(ErrorKind::Agent, error.message.clone());
    match &error.hint {
        Some(hint) => failed.hint(hint.clone()),
        None => failed.hint(format!(
            "`tertulia agents` shows who is ready; {} or --agent chooses",
            env::AGENT
        )),
    }
}
