//! `pair`: an instructor plans and reviews, a worker carries out.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_engine::pair::{Next, Pair, budget};
use tertulia_engine::prompt::Prompt;
use tertulia_engine::spec::{PairSpec, ParticipantSpec};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::input::{self, Attached};
use crate::participants::{Existing, existing_folder};
use crate::talk;
use crate::talk::args::{self, Sort, TalkArgs};
use crate::talk::opening::{Opening, Prepared};
use crate::talk::target;
use crate::ui::Ui;

/// Selects pair sessions.
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
    talk.hold_output(ui);
    let prepared = prepare(args, global, ui);
    talk::run(&talk, prepared, global, ui)
}

/// Resolves the session, instructor, worker and first task.
pub fn prepare(
    args: PairArgs,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<Option<Prepared>> {
    if let Some(folder) = &args.seats.work_dir {
        existing_folder(folder, false)?;
    }
    let workspace = args::workspace(&args.talk, global, ui)?;
    let words = input::words(&args.task, Attached::Plain, ui)?;
    let on_screen = args.talk.is_on_screen(ui);
    // A round budget without a task only changes the budget of an existing session.
    let is_silent = |words: &Prompt| budget::read(&words.text).1.trim().is_empty();
    let silent = words.as_ref().is_none_or(is_silent);
    if silent && !on_screen && !args.talk.names_a_session() {
        return Err(args::nothing_to_say("pair"));
    }
    let found = target::find(&args.talk, PAIRS, words.is_some(), &workspace, ui)?;
    let words = args::first_words(found.prompt, words);
    if !on_screen && words.is_none() {
        check_unfinished(found.row.as_ref())?;
    }
    let participants = ParticipantSpec::Pair(PairSpec {
        instructor: args.seats.instructor,
        worker: args.seats.worker,
        instructor_model: args.seats.instructor_model,
        worker_model: args.seats.worker_model,
        max_rounds: args.seats.max_rounds,
        work_dir: args.seats.work_dir,
        no_thinking: args.seats.no_thinking,
        notify: args.seats.notify,
    });
    let existing = Existing {
        row: found.row,
        mirror: found.copy,
    };
    Opening::prepare(participants, existing, args.talk, workspace, ui)
        .map(|opening| Some(Prepared { opening, words }))
}

/// Fails if a session without a new message has nothing to continue with.
pub fn check_unfinished(row: Option<&Row>) -> CommandResult<()> {
    if let Some(row) = row.filter(|row| row.meta.kind != Kind::Pair) {
        return Err(target::other_kind(row, Kind::Pair));
    }
    let known = row.and_then(|row| row.meta.pair.as_deref());
    match known.is_none_or(|known| known.next == Next::Human) {
        true => Err(nothing_left(known)),
        false => Ok(()),
    }
}

fn nothing_left(known: Option<&Pair>) -> CommandError {
    match known {
        None => args::nothing_to_say("pair"),
        Some(_) => CommandError::new(
            ErrorKind::Usage,
            "nothing is unfinished in this session: it is your turn",
        )
        .hint("give a task: `tertulia pair -c \"and now …\"`"),
    }
}
