//! `chat`, and the program without a command: which session, which agent, then the talk.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::log_writer::SessionMirror;
use tertulia_engine::run::RunOptions;

use crate::agents::{self, Chosen};
use crate::args::GlobalArgs;
use crate::commands::{pair, team};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input::{self, Attached};
use crate::open::Workspace;
use crate::talk::opening::{Cast, Opening, Prepared};
use crate::talk::target;
use crate::talk::{self, Leaving, Sort, TalkArgs};
use crate::ui::Ui;

/// What a chat's sessions are.
const CHATS: Sort<'static> = Sort::of(Kind::Chat, None);

/// Chat with an assistant
///
/// Every message is saved before it is acted on. Without -c, --resume or --session a new session starts.
/// With -p, or when input or output is not a terminal, it runs one turn: the answer goes to standard
/// output, notes to standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(after_help = "Examples:\n  \
    tertulia chat                               a session on the terminal\n  \
    tertulia chat -p \"what is a tertulia?\"      one answer\n  \
    git diff | tertulia chat -p \"review this\"   standard input is attached below the prompt\n  \
    tertulia chat -c -p \"and in short?\"         continue the newest chat of this project\n  \
    tertulia --resume 5f3a9c1e                  resume that session, from any folder\n  \
    tertulia chat --output-format stream-json -p hello | jq .")]
pub struct ChatArgs {
    /// Prompt to send first
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,
    #[command(flatten)]
    pub talk: TalkArgs,
    /// Agent to use
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Model to use
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Whether the command line named this kind: `chat`, and not only the program
    #[arg(skip)]
    pub named: bool,
}

pub fn run(args: ChatArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let talk = args.talk.clone();
    talk::lead(&talk, |ui| prepare(args, global, ui), global, ui)
}

/// A chat to begin with.
pub fn anew(agent: Option<String>, model: Option<String>, talk: TalkArgs) -> ChatArgs {
    ChatArgs {
        prompt: Vec::new(),
        talk,
        agent,
        model,
        named: false,
    }
}

/// A session to go on with, and with which model.
pub fn going_on(session: SessionId, model: Option<String>, talk: TalkArgs) -> ChatArgs {
    ChatArgs {
        talk: TalkArgs {
            resume: Some(Some(session.to_string())),
            ..talk
        },
        model,
        ..ChatArgs::default()
    }
}

/// Finds out who talks in which session. Nothing, if the person would rather not.
pub fn prepare(
    args: ChatArgs,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let workspace = talk::workspace(&args.talk, global, ui)?;
    sit_down(args, workspace, ui)
}

/// The same in a house that is open.
pub fn sit_down(
    args: ChatArgs,
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let on_screen = args.talk.is_on_screen(ui);
    let asked = agents::Asked {
        name: args.agent.as_deref(),
        model: args.model.as_deref(),
    };
    // Who is asked for and not there is told before anything else is done.
    if args.agent.is_some() {
        agents::choose(&workspace.settings, &asked, None)?;
    }
    let words = match args.talk.served {
        true => None,
        false => input::words(&args.prompt, Attached::Plain, ui)?,
    };
    // Before anything is forked or renamed.
    if words.is_none() && !on_screen && !args.talk.may_say_something() {
        return Err(talk::nothing_to_say("chat"));
    }
    let sort = Sort {
        any_kind: !args.named,
        ..CHATS
    };
    let found = target::find(&args.talk, sort, &workspace, ui)?;
    let words = talk::first_words(found.prompt, words);
    if let Some(row) = found.row.as_ref().filter(|row| row.meta.kind != Kind::Chat) {
        return among_several(row.clone(), found.copy, args, words, workspace, ui);
    }
    let recorded = found
        .row
        .as_ref()
        .and_then(|row| row.meta.last_agent().map(str::to_owned));
    let chosen = agents::choose(&workspace.settings, &asked, recorded.as_deref())?;
    if let (Some(wanted), Some(model)) = (&args.model, chosen.agent.model())
        && wanted != model
    {
        let name = chosen.agent.name();
        ui.warn(&format!(
            "unknown model '{wanted}' for {name}; known: {model}, which answers"
        ));
    }
    let terms = RunOptions {
        compact_at: chosen.compact_at,
        ..talk::terms(&args.talk, &workspace, ui)
    };
    talk::close_to_others(ui);
    let target = target::open(&args.talk, CHATS, found.row, found.copy, &workspace, ui)?;
    if words.is_none() && !on_screen {
        return Err(talk::nothing_to_say("chat"));
    }
    let opening = Opening {
        leaving: Leaving::new(&args.talk, &workspace),
        workspace,
        introduction: introduction(&chosen),
        unasked: chosen.unasked,
        cast: Cast::Chat(chosen.agent),
        terms,
        target,
        args: args.talk,
        earlier: None,
        is_switch: false,
    };
    Ok(Some(Prepared { opening, words }))
}

/// Goes on with a session in which others than one agent speak.
fn among_several(
    row: Row,
    copy: Option<Arc<dyn SessionMirror>>,
    args: ChatArgs,
    words: Option<String>,
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let (whose, hint) = match row.meta.kind {
        Kind::Pair => (
            "a pair session, in which instructor and worker have agents of their own",
            "omit --agent and --model; `tertulia pair --help` lists the flags for both",
        ),
        Kind::Team | Kind::Chat => (
            "a team session, in which each member has an agent of its own",
            "omit --agent and --model; the team file chooses the agents",
        ),
    };
    if args.agent.is_some() || args.model.is_some() {
        let short = row.meta.id.short();
        let words = format!("session {short} is {whose}");
        return Err(CommandError::new(ErrorKind::Usage, words).hint(hint));
    }
    match row.meta.kind {
        Kind::Pair => pair::go_on(row, copy, args.talk, words, workspace, ui),
        Kind::Team | Kind::Chat => team::go_on(row, copy, args.talk, words, workspace, ui),
    }
}

/// Agent to use and why, and how to choose another.
fn introduction(chosen: &Chosen) -> String {
    let agent = &chosen.agent;
    let model = agent.model().map(|model| format!(" ({model})"));
    format!(
        "Using {}{}: {}. Choose another with --agent; `tertulia agents` lists those that are ready.",
        agent.name(),
        model.unwrap_or_default(),
        chosen.reason
    )
}
