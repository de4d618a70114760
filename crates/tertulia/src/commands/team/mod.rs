//! `team`: several agents and people in one talk, and the files that describe them.

mod earlier;
pub mod files;
mod migrate;
mod seats;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_core::team::{MemberKind, TeamFile};
use tertulia_engine::log_writer::SessionMirror;
use tertulia_engine::table::{self, MemberMap, Seating};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input::{self, Attached};
use crate::open::Workspace;
use crate::talk::opening::{Cast, Opening, Prepared};
use crate::talk::target::{self, Found};
use crate::talk::{self, Leaving, Sort, TalkArgs};
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
    tertulia team init                        write .tertulia/teams/demo.json: three demo agents and you\n  \
    tertulia team demo \"plan a bird table\"    run until it is your turn\n  \
    tertulia team demo \"[NEXT: ben] and you?\" ask Ben\n  \
    tertulia team demo -c                     continue this team's newest session\n  \
    tertulia team demo --resume 5f3a9c1e --map ada=ann\n  \
    tertulia team check demo                  check the file; every error with its place\n\n\
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
        /// Where to; .tertulia/teams/demo.json if nothing is said
        file: Option<PathBuf>,
    },
    /// Bring an older team file or agent registry to today's form and say what changed
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
    talk::lead(&talk, |ui| prepare(args, global, ui), global, ui)
}

/// A talk with a team.
pub fn with(config: &str, talk: TalkArgs) -> TeamArgs {
    TeamArgs {
        action: None,
        config: Some(config.to_owned()),
        prompt: Vec::new(),
        talk,
        seating: SeatingArgs::default(),
    }
}

/// A session that the team of this file goes on with; `map` are the seats that are taken over.
pub fn resumed(session: SessionId, config: &str, map: Vec<String>, talk: TalkArgs) -> TeamArgs {
    let talk = TalkArgs {
        resume: Some(Some(session.to_string())),
        ..talk
    };
    TeamArgs {
        seating: SeatingArgs {
            map,
            ..SeatingArgs::default()
        },
        ..with(config, talk)
    }
}

/// Finds out which team talks in which session. Nothing, if the person would rather not.
pub fn prepare(
    args: TeamArgs,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let workspace = talk::workspace(&args.talk, global, ui)?;
    let Some(config) = &args.config else {
        return without_config(args, workspace, ui);
    };
    // A file that is wrong is told before anything else is done.
    let (file, team) = match teams::read(&workspace.settings.cwd, config) {
        Err(error)
            if error.kind() == ErrorKind::NotFound && may_be_said(&args, config, &workspace) =>
        {
            ui.note(&format!("there is no team '{config}': taken as the prompt"));
            return without_config(args, workspace, ui);
        }
        read => read?,
    };
    if !args.talk.ephemeral
        && let Err(error) = teams::Named::of(&workspace.settings).add(&file)
    {
        ui.detail(&error.to_string());
    }
    let words = input::words(&args.prompt, Attached::Fenced, ui)?;
    if words.is_none() && !args.talk.is_on_screen(ui) && !args.talk.may_say_something() {
        return Err(talk::nothing_to_say(&format!("team {config}")));
    }
    let sort = Sort::of(Kind::Team, Some(team.id()));
    let Found { row, prompt, copy } = target::find(&args.talk, sort, &workspace, ui)?;
    lead(
        Plan {
            file,
            team,
            args: args.talk,
            seating: args.seating,
            row,
            copy,
            typed: typed(&args.prompt),
            words: talk::first_words(prompt, words),
            workspace,
        },
        ui,
    )
}

/// What was typed to be said, without what was piped in.
fn typed(prompt: &[String]) -> Option<String> {
    Some(prompt.join(" ")).filter(|words| !words.trim().is_empty())
}

/// Whether a first word that is no team's can be the first that is said: a session that is named knows its
/// team. A name that is almost a team's, or a file's, is more likely to be mistyped.
fn may_be_said(args: &TeamArgs, word: &str, workspace: &Workspace) -> bool {
    let known = teams::names(&workspace.settings.cwd).unwrap_or_default();
    let is_near = |name: &String| {
        let far = strsim::damerau_levenshtein(name, word);
        far <= name.chars().count() / 3
    };
    let is_file = word.ends_with(".json");
    args.talk.names_a_session() && !is_file && !known.iter().any(is_near)
}

/// A session knows its team.
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
            error.hint(format!(
                "tertulia team NAME; there are: {}",
                known.join(", ")
            ))
        });
    }
    let said: Vec<String> = args.config.into_iter().chain(args.prompt).collect();
    let words = input::words(&said, Attached::Fenced, ui)?;
    let Found { row, prompt, copy } = target::find(&args.talk, sort, &workspace, ui)?;
    match row {
        Some(row) => {
            let words = Words {
                typed: typed(&said),
                all: talk::first_words(prompt, words),
            };
            let asked = (args.talk, args.seating, words);
            seat_again(row, copy, asked, workspace, ui)
        }
        None => Err(talk::nothing_to_say("team NAME")),
    }
}

/// Goes on with a team's session from anywhere: the session knows which file describes its team.
pub fn go_on(
    row: Row,
    copy: Option<Arc<dyn SessionMirror>>,
    args: TalkArgs,
    words: Option<String>,
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let words = Words {
        typed: None,
        all: words,
    };
    let asked = (args, SeatingArgs::default(), words);
    seat_again(row, copy, asked, workspace, ui)
}

/// What is said first.
struct Words {
    typed: Option<String>,
    /// With what was piped in.
    all: Option<String>,
}

fn seat_again(
    row: Row,
    copy: Option<Arc<dyn SessionMirror>>,
    (args, seating, words): (TalkArgs, SeatingArgs, Words),
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    if words.all.is_none() && !args.is_on_screen(ui) {
        return Err(talk::nothing_to_say("team NAME"));
    }
    if let Some(file) = &args.session_file {
        // It may have come with somebody's project, and would choose what runs here.
        let words = format!(
            "the session in {} is a team session: name the team that continues it",
            file.display()
        );
        let hint = format!("`tertulia team CONFIG --session-file {}`", file.display());
        return Err(CommandError::new(ErrorKind::Usage, words).hint(hint));
    }
    let (file, team) = teams::of_session(&workspace.settings, &row.meta)?;
    let plan = Plan {
        file,
        team,
        args,
        seating,
        row: Some(row),
        copy,
        typed: words.typed,
        words: words.all,
        workspace,
    };
    lead(plan, ui)
}

/// What is asked for.
struct Plan {
    file: PathBuf,
    team: TeamFile,
    args: TalkArgs,
    seating: SeatingArgs,
    row: Option<Row>,
    copy: Option<Arc<dyn SessionMirror>>,
    /// What was typed to be said.
    typed: Option<String>,
    /// What is said first: that, with what was piped in.
    words: Option<String>,
    workspace: Workspace,
}

fn lead(plan: Plan, ui: &mut Ui) -> CommandResult<Option<Prepared>> {
    let on_screen = plan.args.is_on_screen(ui);
    let heirs = heirs(&plan.seating.map)?;
    let table = seats::seating(&plan.workspace.settings, &plan.file, &plan.team, ui)?;
    let mut row = plan.row;
    let begins_anew = row.is_none() && on_screen && !plan.args.ephemeral;
    let mut earlier = None;
    if begins_anew && plan.words.is_some() {
        earlier::mention(&plan.workspace, &plan.team, ui)?;
    } else if begins_anew && plan.args.is_full_screen(ui) {
        earlier = earlier::newest(&plan.workspace, &plan.team)?.map(Box::new);
    } else if begins_anew {
        row = match earlier::offer(&plan.workspace, &plan.team, ui)? {
            earlier::Choice::Resume(row) => Some(*row),
            earlier::Choice::New => None,
            earlier::Choice::Leave => return Ok(None),
        };
    }
    let fit = match &row {
        None if !heirs.is_empty() => {
            return Err(
                CommandError::new(ErrorKind::Usage, "--map needs a session to resume")
                    .hint("add -c, --resume REF or --session REF"),
            );
        }
        None => table::Fit::default(),
        Some(row) => fit(row, &table, &heirs, plan.seating.strict)?,
    };
    if on_screen || !table.members.iter().any(|member| member.is_human()) {
        // The terminal asks again; a team without people is refused where it sits down.
    } else if let Some(words) = &plan.words {
        let seat = plan.seating.seat.as_deref();
        seats::check_sender(&table, seat, words)?;
        // What is piped in is often somebody else's text.
        seats::check_agreement(&table, seat, plan.typed.as_ref().unwrap_or(words))?;
    }
    let terms = talk::terms(&plan.args, &plan.workspace, ui);
    talk::close_to_others(ui);
    let sort = Sort::of(Kind::Team, Some(plan.team.id()));
    let target = target::open(&plan.args, sort, row, plan.copy, &plan.workspace, ui)?;
    let introduction = introduction(&plan.team);
    let opening = Opening {
        leaving: Leaving::new(&plan.args, &plan.workspace),
        workspace: plan.workspace,
        cast: Cast::Team {
            team: Box::new(plan.team),
            seating: Box::new(table),
            fit,
            seat: plan.seating.seat,
        },
        introduction,
        unasked: false,
        terms,
        target,
        args: plan.args,
        earlier,
        is_switch: false,
    };
    Ok(Some(Prepared {
        opening,
        words: plan.words,
    }))
}

/// Who is here.
fn introduction(team: &TeamFile) -> String {
    let members: Vec<String> = team
        .members
        .iter()
        .map(|member| match (&member.kind, &member.agent_type) {
            (MemberKind::Ai, Some(agent)) => format!("{} ({agent})", member.display_name),
            _ => member.display_name.clone(),
        })
        .collect();
    format!("{}: {}.", team.shown_name(), members.join(", "))
}

/// Seats that change hands, as `--map` gives them.
fn heirs(map: &[String]) -> CommandResult<MemberMap> {
    let mut heirs = BTreeMap::new();
    for pair in map {
        let parts = pair
            .split_once('=')
            .map(|(old, new)| (old.trim(), new.trim()));
        match parts {
            Some((old, new)) if !old.is_empty() && !new.is_empty() => {
                heirs.insert(old.to_owned(), new.to_owned());
            }
            _ => {
                return Err(
                    CommandError::new(ErrorKind::Usage, format!("--map is '{pair}'"))
                        .hint("write the former and the present member: --map old=new"),
                );
            }
        }
    }
    Ok(heirs)
}

/// Whether the team can go on with the session, before anything is touched.
fn fit(row: &Row, seating: &Seating, heirs: &MemberMap, strict: bool) -> CommandResult<table::Fit> {
    let fit = table::fit(&row.meta, seating, heirs).map_err(|misfit| {
        let error = CommandError::new(ErrorKind::Usage, misfit.to_string());
        match misfit {
            table::ResumeError::OtherTeam { session, .. } => error.hint(format!(
                "`tertulia --resume {session}` opens it with its own team"
            )),
            table::ResumeError::NoTeam { session, .. } => error.hint(format!(
                "`tertulia --resume {session}` opens it as what it is"
            )),
            table::ResumeError::NoSuchSpeaker(_)
            | table::ResumeError::NoSuchMember { .. }
            | table::ResumeError::StillHere(_)
            | table::ResumeError::OtherNature { .. } => error,
        }
    })?;
    if strict && !fit.missing.is_empty() {
        return Err(CommandError::new(
            ErrorKind::Invalid,
            format!("no longer in the team: {}", fit.missing.join(", ")),
        )
        .hint("reseat them with --map OLD=NEW; without --strict this is a warning"));
    }
    Ok(fit)
}
