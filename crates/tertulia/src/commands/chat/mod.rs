//! `chat`, also run without a command: selects the session and the agent, then starts the
//! conversation.

use std::process::ExitCode;

use clap::Args;
use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_engine::spec::{AgentSpec, ParticipantSpec};

use crate::agents;
use crate::args::GlobalArgs;
use crate::commands::{pair, team};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input::{self, Attached};
use crate::participants::Existing;
use crate::talk;
use crate::talk::args::{self, Sort, TalkArgs};
use crate::talk::opening::{Opening, Prepared};
use crate::talk::target;
#[cfg(feature = "tui")]
use crate::tui_host;
use crate::ui::Ui;

/// Selects chat sessions.
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
    tertulia chat -p \"what does @src/main.rs do?\"   attaches that file\n  \
    tertulia chat -c -p \"and in short?\"         continue the newest chat of this project\n  \
    tertulia --resume 5f3a9c1e                  resume that session, from any folder\n  \
    tertulia chat --follow -s 5f3a9c1e          read along what another program writes to it\n  \
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
    /// Attach this text file of the folder to the prompt, as @FILE in it does; may be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<String>,
    /// Ask again for the answer to the last message, which failed or is missing; with -c, --resume or
    /// --session
    #[arg(long, conflicts_with_all = ["prompt", "attach", "fork", "ephemeral", "session_id"])]
    retry: bool,
    /// Only read the session, and show new messages as another program writes them; without REF, the
    /// newest
    #[arg(long, conflicts_with_all = ["prompt", "attach", "print", "fork", "no_fork", "take_over", "ephemeral", "sealed", "session_file", "session_id"])]
    follow: bool,
    /// Whether the command line named this kind: `chat`, and not only the program
    #[arg(skip)]
    pub named: bool,
}

pub fn run(mut args: ChatArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    // A retry is one turn, which needs no prompt.
    args.talk.print |= args.retry;
    let talk = args.talk.clone();
    if args.follow {
        return follow(&talk, global, ui);
    }
    talk.hold_output(ui);
    let prepared = prepare(args, global, ui);
    talk::run(&talk, prepared, global, ui)
}

/// Shows a session as another program writes it.
fn follow(args: &TalkArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = args::workspace(args, global, ui)?;
    let sort = Sort {
        any_kind: true,
        ..CHATS
    };
    let named = args
        .session
        .as_ref()
        .or(args.resume.as_ref().and_then(Option::as_ref));
    let row = match named {
        Some(reference) => workspace.find(reference)?,
        None => target::any_newest(sort, &workspace)?,
    };
    let row = workspace.unlocked(row)?;
    #[cfg(feature = "tui")]
    if args.is_full_screen(ui) {
        ui.hold();
        let result = tui_host::read_along(row, workspace, global, ui);
        ui.release();
        return result;
    }
    talk::follow(row, &workspace, args.format(ui), ui)
}

/// Resolves the session, the agent and the first prompt. Returns `None` if the user cancels.
pub fn prepare(
    args: ChatArgs,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let workspace = args::workspace(&args.talk, global, ui)?;
    let on_screen = args.talk.is_on_screen(ui);
    let agent = AgentSpec {
        agent: args.agent,
        model: args.model,
    };
    // Report an unavailable `--agent` before doing anything else.
    if agent.agent.is_some() {
        let asked = agents::Asked {
            name: agent.agent.as_deref(),
            model: agent.model.as_deref(),
        };
        agents::choose(&workspace.settings, &asked, None)?;
    }
    if args.retry && !args.talk.names_a_session() {
        return Err(
            CommandError::new(ErrorKind::Usage, "--retry needs a session to continue")
                .hint("add -c, --resume REF or --session REF"),
        );
    }
    let words = match args.retry {
        true => None,
        false => input::words(&args.prompt, Attached::Plain, ui)?,
    };
    let says = words.is_some() || args.talk.may_say_something();
    // Check this before a file is imported.
    if !says && !args.retry && !on_screen && args.talk.session_file.is_some() {
        return Err(args::nothing_to_say("chat"));
    }
    let sort = Sort {
        any_kind: !args.named,
        ..CHATS
    };
    let found = target::find(&args.talk, sort, words.is_some(), &workspace, ui)?;
    let words = args::first_words(found.prompt, words);
    let words = input::with_files(words, &args.attach, &workspace.settings.cwd)?;
    let others = found.row.as_ref().filter(|row| row.meta.kind != Kind::Chat);
    let participants = match others {
        Some(row) => {
            check_others(row, &agent, &args.talk)?;
            ParticipantSpec::Recorded
        }
        None => ParticipantSpec::Chat(agent),
    };
    if words.is_none() && !on_screen {
        match others.map(|row| row.meta.kind) {
            Some(Kind::Pair) => pair::check_unfinished(others)?,
            Some(Kind::Team) if args.retry => return Err(team_has_no_retry()),
            Some(Kind::Team) => return Err(args::nothing_to_say("team NAME")),
            Some(Kind::Chat) | None if args.retry => {}
            Some(Kind::Chat) | None => return Err(args::nothing_to_say("chat")),
        }
    }
    let existing = Existing {
        row: found.row,
        mirror: found.copy,
    };
    Opening::prepare(participants, existing, args.talk, workspace, ui)
        .map(|opening| Some(Prepared { opening, words }))
}

/// Returns the error for a retry in a team, which may have to ask several members again.
fn team_has_no_retry() -> CommandError {
    CommandError::new(
        ErrorKind::Usage,
        "--retry asks the one agent of a chat again",
    )
    .hint("ask the members of a team by name: `tertulia team NAME -c \"[NEXT: name] again\"`")
}

/// Rejects options that do not apply to a team or pair session.
fn check_others(row: &Row, agent: &AgentSpec, args: &TalkArgs) -> CommandResult<()> {
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
    if *agent != AgentSpec::default() {
        let short = row.meta.id.short();
        let words = format!("session {short} is {whose}");
        return Err(CommandError::new(ErrorKind::Usage, words).hint(hint));
    }
    match row.meta.kind {
        Kind::Team => team::refuse_file_without_team(args),
        Kind::Chat | Kind::Pair => Ok(()),
    }
}
