//! `pair`: an instructor plans and reviews, a worker does.

mod seats;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_engine::log_writer::SessionMirror;
use tertulia_engine::pair::{Next, Pair, budget};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input::{self, Attached};
use crate::open::Workspace;
use crate::talk::opening::{Cast, Opening, Prepared};
use crate::talk::target;
use crate::talk::{self, Leaving, Sort, TalkArgs};
use crate::ui::Ui;

/// What a pair's sessions are.
const PAIRS: Sort<'static> = Sort::of(Kind::Pair, None);

/// Let an instructor drive a worker
///
/// The instructor plans, tells the worker what to do, and reviews the results, until it says DONE. Every step is
/// saved before the next: a pair that was killed continues where it was. With -p, or when input or output is not
/// a terminal, it runs until a person is needed.
#[derive(Clone, Debug, Default, Args)]
#[command(
    mut_arg("resume", |arg| arg.short(None)),
    after_help = "Examples:\n  \
    tertulia pair \"plan a bird table\"            with the demo agent in both roles if there is no other\n  \
    tertulia pair \"fix the tests\" --instructor anthropic --worker claude -r 10 --approve all\n  \
    tertulia pair -c                             continue unfinished work\n  \
    tertulia pair -c \"[r+5] and update the docs\"  five more worker calls, and a message to the instructor\n  \
    tertulia fork @ --at-round 3                 fork at round 3"
)]
pub struct PairArgs {
    /// Task; [r+5] or [r=10] at its beginning changes the number of worker calls left
    #[arg(value_name = "TASK")]
    task: Vec<String>,
    #[command(flatten)]
    talk: TalkArgs,
    #[command(flatten)]
    seats: SeatArgs,
}

/// Who sits where, and how long.
#[derive(Clone, Debug, Default, Args)]
pub struct SeatArgs {
    /// Agent that plans and reviews
    #[arg(long, value_name = "NAME")]
    instructor: Option<String>,
    /// Agent that does the work
    #[arg(long, value_name = "NAME")]
    worker: Option<String>,
    /// Model of the instructor
    #[arg(short, long, value_name = "MODEL")]
    instructor_model: Option<String>,
    /// Model of the worker, unless the instructor chooses another
    #[arg(short, long, value_name = "MODEL")]
    worker_model: Option<String>,
    /// Maximum number of worker calls; 0 pauses before the first [default: unlimited]
    #[arg(short = 'r', long, value_name = "N")]
    max_rounds: Option<u64>,
    /// Work folder, which tools cannot leave [default: this one]
    #[arg(short = 'd', long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// Turn the thinking of the instructor off
    #[arg(long)]
    no_thinking: bool,
    /// Ring the terminal bell when a person is needed
    #[arg(long)]
    notify: bool,
}

pub fn run(args: PairArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let talk = args.talk.clone();
    talk::lead(&talk, |ui| prepare(args, global, ui), global, ui)
}

/// A pair to begin with.
pub fn anew(talk: TalkArgs) -> PairArgs {
    PairArgs {
        talk,
        ..PairArgs::default()
    }
}

/// Finds out who instructs whom in which session.
pub fn prepare(
    args: PairArgs,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    if let Some(folder) = &args.seats.work_dir {
        existing(folder, false)?;
    }
    let workspace = talk::workspace(&args.talk, global, ui)?;
    let words = input::words(&args.task, Attached::Plain, ui)?;
    let on_screen = args.talk.is_on_screen(ui);
    // A budget alone changes one that there is.
    let is_silent = |words: &String| budget::read(words).1.trim().is_empty();
    let silent = words.as_ref().is_none_or(is_silent);
    if silent && !on_screen && !args.talk.names_a_session() {
        return Err(talk::nothing_to_say("pair"));
    }
    let found = target::find(&args.talk, PAIRS, &workspace, ui)?;
    let words = talk::first_words(found.prompt, words);
    lead(
        Plan {
            talk: args.talk,
            seats: args.seats,
            row: found.row,
            copy: found.copy,
            words,
            workspace,
        },
        ui,
    )
}

/// Goes on with a pair's session from anywhere: the session knows who sits where.
pub fn go_on(
    row: Row,
    copy: Option<Arc<dyn SessionMirror>>,
    args: TalkArgs,
    words: Option<String>,
    workspace: Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    let plan = Plan {
        talk: args,
        seats: SeatArgs::default(),
        row: Some(row),
        copy,
        words,
        workspace,
    };
    lead(plan, ui)
}

/// What is asked for.
struct Plan {
    talk: TalkArgs,
    seats: SeatArgs,
    row: Option<Row>,
    copy: Option<Arc<dyn SessionMirror>>,
    words: Option<String>,
    workspace: Workspace,
}

fn lead(plan: Plan, ui: &mut Ui) -> CommandResult<Option<Prepared>> {
    let on_screen = plan.talk.is_on_screen(ui);
    if let Some(row) = plan.row.as_ref().filter(|row| row.meta.kind != Kind::Pair) {
        return Err(target::other_kind(row, Kind::Pair));
    }
    let known = plan.row.as_ref().and_then(|row| row.meta.pair.as_deref());
    if plan.words.is_none() && !on_screen && known.is_none_or(|known| known.next == Next::Human) {
        return Err(nothing_left(known));
    }
    let work_dir = work_dir(&plan, known)?;
    let mut here = plan.workspace.clone();
    here.settings.cwd.clone_from(&work_dir);
    let terms = talk::terms(&plan.talk, &here, ui);
    let seated = seats::seating(&here.settings, &plan.seats, known, &terms)?;
    talk::close_to_others(ui);
    let target = target::open(&plan.talk, PAIRS, plan.row, plan.copy, &plan.workspace, ui)?;
    let opening = Opening {
        leaving: Leaving::new(&plan.talk, &plan.workspace),
        workspace: plan.workspace,
        introduction: seated.introduction,
        unasked: seated.unasked,
        cast: Cast::Pair {
            seating: Box::new(seated.seating),
            notify: plan.seats.notify,
        },
        terms,
        target,
        args: plan.talk,
        earlier: None,
        is_switch: false,
    };
    Ok(Some(Prepared {
        opening,
        words: plan.words,
    }))
}

fn nothing_left(known: Option<&Pair>) -> CommandError {
    match known {
        None => talk::nothing_to_say("pair"),
        Some(_) => CommandError::new(
            ErrorKind::Usage,
            "nothing is unfinished in this session: it is your turn",
        )
        .hint("give a task: `tertulia pair -c \"and now …\"`"),
    }
}

/// The folder to work in: as asked for, as before, or this one.
fn work_dir(plan: &Plan, known: Option<&Pair>) -> CommandResult<PathBuf> {
    let cwd = &plan.workspace.settings.cwd;
    if let Some(folder) = &plan.seats.work_dir {
        return existing(&cwd.join(folder), false);
    }
    match known.map(|known| known.work_dir.as_str()) {
        Some(folder) if !folder.is_empty() => existing(Path::new(folder), true),
        _ => Ok(cwd.clone()),
    }
}

fn existing(folder: &Path, recorded: bool) -> CommandResult<PathBuf> {
    let wrong = |why: &str| {
        let words = format!("the work folder {} {why}", folder.display());
        let error = CommandError::new(ErrorKind::Usage, words);
        match recorded {
            true => error.hint("name the folder to continue in: --work-dir DIR"),
            false => error,
        }
    };
    match folder.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        Ok(_) => Err(wrong("is no folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(wrong("does not exist")),
        Err(error) => Err(wrong("cannot be worked in").because(error)),
    }
}
