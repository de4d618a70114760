//! `team`: several agents and people in one session, and the team files that describe them.

mod earlier;
pub mod files;
mod migrate;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_core::team::TeamFile;
use tertulia_engine::prompt::Prompt;
use tertulia_engine::spec::{ParticipantSpec, TeamSpec};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input::{self, Attached};
use crate::open::Workspace;
use crate::participants::{self, Existing};
use crate::talk;
use crate::talk::args::{self, Sort, TalkArgs};
use crate::talk::opening::{Opening, Prepared};
use crate::talk::target::{self, Found};
use crate::ui::Ui;
use crate::{open, teams};

/// Start a session with a team of agents and people
///
/// [NEXT: name] in a message says who speaks next; without it the first person does. With -p, or when input or
/// output is not a terminal, it runs until a person is next.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    tertulia team init                          write .tertulia/teams/demo.json: three demo agents and you\n  \
    tertulia team demo \"plan a bird table\"      run until it is your turn\n  \
    tertulia team demo \"[NEXT: ben] and you?\"   ask Ben\n  \
    tertulia team demo -c                       continue this team's newest session\n  \
    tertulia team demo --resume 5f3a9c1e --map ada=ann\n  \
    tertulia team check demo                    check the file; every error with its place\n\n\
    CONFIG is a path, or the name of a file in .tertulia/teams or .agent-chatter/team-config.\n\
    Markers in messages: [NEXT: a, b!P1] who speaks next (P1 at once, P3 last), [FROM: name] which\n\
    person speaks, [TEAM_TASK: text] what the team works on, [DROP: name] or [DROP: ALL] remove from\n\
    the queue. Markers inside code are ignored."
)]
pub struct TeamArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Team file: a path, or a name
    #[arg(value_name = "CONFIG")]
    config: Option<String>,
    /// Prompt to send first
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,
    #[command(flatten)]
    talk: TalkArgs,
    #[command(flatten)]
    seating: SeatingArgs,
}

/// Who sits where.
#[derive(Clone, Debug, Default, Args)]
struct SeatingArgs {
    /// Person who speaks, if there are several
    #[arg(long = "as", value_name = "NAME")]
    seat: Option<String>,
    /// Give the messages of a former member to a member; repeat for each
    #[arg(long, value_name = "OLD=NEW")]
    map: Vec<String>,
    /// Exit with code 5 if a former member has messages in the session
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the teams that can be named here
    #[command(after_help = "Examples:\n  tertulia team list --json")]
    List,
    /// Check a team file against its schema and its rules
    #[command(after_help = "Examples:\n  \
        tertulia team check demo\n  \
        tertulia team check path/to/review.json")]
    Check {
        /// A path, or a name
        config: String,
    },
    /// Write an example team file
    #[command(after_help = "Examples:\n  \
        tertulia team init\n  \
        tertulia team init .tertulia/teams/review.json")]
    Init {
        /// File to write [default: .tertulia/teams/demo.json]
        file: Option<PathBuf>,
    },
    /// Upgrade an older team file or agent registry to the current schema, and list the changes
    #[command(after_help = "Examples:\n  \
        tertulia team migrate old.json --dry-run\n  \
        tertulia team migrate old.json -o .tertulia/teams/new.json\n  \
        tertulia team migrate old.json -y")]
    Migrate(migrate::MigrateArgs),
}

pub fn run(args: TeamArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    match &args.action {
        Some(Action::List) => return files::list(&open::reading_settings(global, ui)?, ui),
        Some(Action::Check { config }) => {
            return files::check(&open::reading_settings(global, ui)?, config, ui);
        }
        Some(Action::Init { file }) => {
            let settings = open::settings(global, ui)?;
            return files::init(&settings.cwd, file.as_deref(), ui);
        }
        Some(Action::Migrate(args)) => {
            return migrate::run(&open::settings(global, ui)?.cwd, args, ui);
        }
        None => {}
    }
    let talk = args.talk.clone();
    talk.hold_output(ui);
    let prepared = prepare(args, global, ui);
    talk::run(&talk, prepared, global, ui)
}

/// Resolves the team, the session and the first prompt. Returns `None` if the user cancels.
pub fn prepare(
    args: TeamArgs,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let workspace = args::workspace(&args.talk, global, ui)?;
    let Some(config) = &args.config else {
        return without_config(args, workspace, ui);
    };
    // Report an invalid team file before doing anything else.
    let (file, team) = match teams::read(&workspace.settings.cwd, config) {
        Err(error)
            if error.kind() == ErrorKind::NotFound && may_be_said(&args, config, &workspace) =>
        {
            ui.note(&format!("there is no team '{config}': taken as the prompt"));
            return without_config(args, workspace, ui);
        }
        read => read?,
    };
    remember(&file, &args.talk, &workspace, ui);
    let words = input::words(&args.prompt, Attached::Fenced, ui)?;
    let nothing = || Err(args::nothing_to_say(&format!("team {config}")));
    let is_silent = |words: bool, ui: &Ui| !words && !args.talk.is_on_screen(ui);
    let says = words.is_some() || args.talk.may_say_something();
    // Check this before a file is imported.
    if is_silent(says, ui) && args.talk.session_file.is_some() {
        return nothing();
    }
    let sort = Sort::of(Kind::Team, Some(team.id()));
    let is_said = words.is_some();
    let Found { row, prompt, copy } = target::find(&args.talk, sort, is_said, &workspace, ui)?;
    let words = Words {
        typed: typed(&args.prompt),
        all: args::first_words(prompt, words),
    };
    if is_silent(words.all.is_some(), ui) {
        return nothing();
    }
    let existing = Existing { row, mirror: copy };
    seat_team(
        file,
        team,
        existing,
        (args.talk, args.seating, words),
        workspace,
        ui,
    )
}

/// Records that the user has named this team file: sessions may only load recorded ones.
fn remember(file: &Path, args: &TalkArgs, workspace: &Workspace, ui: &mut Ui) {
    if !args.ephemeral
        && let Err(error) = teams::Named::of(&workspace.settings).add(file)
    {
        ui.detail(&error.to_string());
    }
}

/// Records a team that the user has named in the TUI. Returns its earlier session, unless a new one
/// is wanted.
pub fn named(
    config: &str,
    args: &TalkArgs,
    fresh: bool,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Box<Row>>> {
    let (file, team) = teams::read(&workspace.settings.cwd, config)?;
    remember(&file, args, workspace, ui);
    if fresh || args.ephemeral {
        return Ok(None);
    }
    Ok(earlier::newest(workspace, &team)?.map(Box::new))
}

/// Returns the prompt from the command line, without piped input.
fn typed(prompt: &[String]) -> Option<String> {
    Some(prompt.join(" ")).filter(|words| !words.trim().is_empty())
}

/// Returns true if a first argument that names no team may be part of the prompt: the session is
/// named and knows its team. A word close to a team's name, or a file name, is more likely a typing
/// error.
fn may_be_said(args: &TeamArgs, word: &str, workspace: &Workspace) -> bool {
    let known = teams::names(&workspace.settings.cwd).unwrap_or_default();
    let is_near = |name: &String| {
        let far = strsim::damerau_levenshtein(name, word);
        far <= name.chars().count() / 3
    };
    let is_file = word.ends_with(".json");
    args.talk.names_a_session() && !is_file && !known.iter().any(is_near)
}

/// Prepares a session without a team file argument: the session knows its team.
fn without_config(
    args: TeamArgs,
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let sort = Sort::of(Kind::Team, None);
    if !args.talk.names_a_session() {
        let error = CommandError::new(ErrorKind::Usage, "which team?");
        let known = teams::names(&workspace.settings.cwd)?;
        return Err(if known.is_empty() {
            error.hint("`tertulia team init` writes an example")
        } else {
            error.hint(format!("tertulia team NAME; known: {}", known.join(", ")))
        });
    }
    let said: Vec<String> = args.config.into_iter().chain(args.prompt).collect();
    let words = input::words(&said, Attached::Fenced, ui)?;
    let Found { row, prompt, copy } =
        target::find(&args.talk, sort, words.is_some(), &workspace, ui)?;
    match row {
        Some(row) => {
            let words = Words {
                typed: typed(&said),
                all: args::first_words(prompt, words),
            };
            if words.all.is_none() && !args.talk.is_on_screen(ui) {
                return Err(args::nothing_to_say("team NAME"));
            }
            refuse_file_without_team(&args.talk)?;
            let (file, team) = teams::of_session(&workspace.settings, &row.meta)?;
            let existing = Existing {
                row: Some(row),
                mirror: copy,
            };
            seat_team(
                file,
                team,
                existing,
                (args.talk, args.seating, words),
                workspace,
                ui,
            )
        }
        None => Err(args::nothing_to_say("team NAME")),
    }
}

/// The first prompt.
struct Words {
    typed: Option<String>,
    /// Including piped input.
    all: Option<Prompt>,
}

/// Rejects a team session from `--session-file` without a named team: the file may have come with a
/// project, and would choose which programs run here.
pub fn refuse_file_without_team(args: &TalkArgs) -> CommandResult<()> {
    let Some(file) = &args.session_file else {
        return Ok(());
    };
    let words = format!(
        "the session in {} is a team session: name the team that continues it",
        file.display()
    );
    let hint = format!("`tertulia team CONFIG --session-file {}`", file.display());
    Err(CommandError::new(ErrorKind::Usage, words).hint(hint))
}

/// Prepares a team session. When a new one is started, offers to resume the earlier one.
fn seat_team(
    file: PathBuf,
    team: TeamFile,
    mut existing: Existing,
    (args, seating, words): (TalkArgs, SeatingArgs, Words),
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let on_screen = args.is_on_screen(ui);
    let begins_anew = existing.row.is_none() && on_screen && !args.ephemeral;
    let mut earlier = None;
    if begins_anew && words.all.is_some() {
        earlier::mention(&workspace, &team, ui)?;
    } else if begins_anew && args.is_full_screen(ui) {
        earlier = earlier::newest(&workspace, &team)?.map(Box::new);
    } else if begins_anew {
        existing.row = match earlier::offer(&workspace, &team, ui)? {
            earlier::Choice::Resume(row) => Some(*row),
            earlier::Choice::New => None,
            earlier::Choice::Leave => return Ok(None),
        };
    }
    let spec = TeamSpec {
        config: Some(file.display().to_string()),
        seat: seating.seat,
        map: seating.map,
        strict: seating.strict,
    };
    let Words { typed, all } = words;
    if let Some(words) = all.as_ref().filter(|_| !on_screen) {
        let typed = typed.as_ref().unwrap_or(&words.text);
        participants::check_speaker(&spec, &team, &words.text, typed)?;
    }
    let participants = ParticipantSpec::Team(spec);
    let mut opening = Opening::prepare(participants, existing, args, workspace, ui)?;
    opening.earlier = earlier;
    Ok(Some(Prepared {
        opening,
        words: all,
    }))
}
