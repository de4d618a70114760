//! `replay`: plays the prompts of sessions again to another agent or model, and reports where the
//! answers diverge.

mod document;
mod originals;
mod plan;
mod play;
mod report;

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use jiff::Timestamp;
use tertulia_agents::ToolSide;
use tertulia_core::price::{Cost, PriceTable};
use tertulia_core::replay::{Comparison, RecordedTurn, compare, cost_of};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::signals::Signals;
use crate::ui::Ui;
use crate::{retention, talk};
use plan::Plan;
use play::{PlayEnd, Played};

/// Play the prompts of sessions again to another agent or model
///
/// Sends the messages of the user, in order, to the agent in a new session that is linked to the original.
/// No tool runs: a call is answered with the recorded result of the same call, or refused if there is none.
/// Then it reports where the tool calls or the text first differ. In a pair, instructor and worker are played
/// by the agent or model; in a team, all members that are agents.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("with").required(true).multiple(true).args(["with_agent", "with_model"])))]
#[command(after_help = "Examples:\n  \
    tertulia replay @ --with-agent anthropic            the newest session with another agent\n  \
    tertulia replay 5f3a9c1e --with-model gpt-5 --to 3  its first three prompts with another model\n  \
    tertulia replay @ --with-agent demo --dry-run       list what would be sent\n  \
    tertulia replay suite/ --with-model m --fail-on-divergence --json\n\n\
    In --json, `ours` is the original and `theirs` the replay. Both costs are at today's prices, in dollars, so that\n\
    they can be compared; `cost` is null where no price is known.")]
pub struct ReplayArgs {
    /// Sessions, files from `export --format jsonl`, or folders of such files
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
    /// Agent that answers [default: the agent of the session]
    #[arg(long, value_name = "NAME")]
    with_agent: Option<String>,
    /// Model that answers [default: the agent's]
    #[arg(long, value_name = "MODEL")]
    with_model: Option<String>,
    /// Play only the first N prompts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    to: Option<u32>,
    /// Exit with code 1 if any replay diverges
    #[arg(long)]
    fail_on_divergence: bool,
    /// List the prompts, the recorded tool calls and the agent, and send nothing
    #[arg(long)]
    dry_run: bool,
}

/// Prices of today.
pub struct Prices {
    table: PriceTable,
    now: Timestamp,
}

impl Prices {
    fn of(workspace: &Workspace) -> Prices {
        Prices {
            table: PriceTable::with(workspace.settings.prices.clone()),
            now: workspace.sessions.clock().now(),
        }
    }

    /// Returns the cost of turns in dollars, if every price is known.
    fn dollars(&self, turns: &[RecordedTurn]) -> Option<f64> {
        cost_of(turns, &self.table, self.now).map(Cost::dollars)
    }
}

/// A plan, and what became of it.
pub struct Outcome {
    plan: Plan,
    /// `None` if it was not begun.
    played: Option<Played>,
    comparison: Comparison,
}

impl Outcome {
    fn unplayed(plan: Plan) -> Outcome {
        Outcome {
            plan,
            played: None,
            comparison: Comparison::default(),
        }
    }

    fn of(plan: Plan, mut played: Played) -> Outcome {
        let mut original = plan.original.recording.turns.as_slice();
        if matches!(played.end, PlayEnd::Stopped(_)) {
            // What was not played, or cut off by the user, is no divergence.
            played.turns.truncate(played.completed);
            original = &original[..played.completed.min(original.len())];
        }
        Outcome {
            comparison: compare(original, &played.turns),
            played: Some(played),
            plan,
        }
    }

    /// Returns the turns of the replay.
    fn turns(&self) -> &[RecordedTurn] {
        self.played.as_ref().map_or(&[], |played| &played.turns)
    }

    /// Returns the error that ended the replay.
    fn error(&self) -> Option<&CommandError> {
        match self.played.as_ref().map(|played| &played.end) {
            Some(PlayEnd::Failed(error)) => Some(error),
            _ => None,
        }
    }
}

pub fn run(args: &ReplayArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let originals = originals::find(&args.references, args.to, &workspace, ui)?;
    let plans = plan::plans(args, originals, &workspace)?;
    let prices = Prices::of(&workspace);
    if args.dry_run {
        let planned: Vec<Outcome> = plans.into_iter().map(Outcome::unplayed).collect();
        match ui.json {
            true => ui.document(&document::of(&planned, &prices, true)),
            false => report::planned(&planned, ui),
        }
        return Ok(ExitCode::SUCCESS);
    }
    mention_own_tools(&plans, ui);
    let (outcomes, signal) = play_all(plans, &workspace, ui)?;
    match ui.json {
        true => ui.document(&document::of(&outcomes, &prices, false)),
        false => report::played(&outcomes, &prices, ui),
    }
    retention::keep_workspace(&workspace, ui);
    if let Some(signal) = signal {
        return Ok(talk::exit_code(Some(signal), None));
    }
    if let Some(error) = failure(outcomes.iter()) {
        return Err(error);
    }
    Ok(match args.fail_on_divergence && diverged(&outcomes) > 0 {
        true => ExitCode::from(ErrorKind::Failed.exit_code()),
        false => ExitCode::SUCCESS,
    })
}

/// Plays one plan after the other until a signal arrives. Returns what became of each.
fn play_all(
    plans: Vec<Plan>,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<(Vec<Outcome>, Option<u8>)> {
    let runtime = talk::runtime()?;
    let mut signals = {
        let _entered = runtime.enter();
        Signals::listen()?.hurrying(workspace.sessions.store().patience())
    };
    let total = plans.len();
    let mut outcomes = Vec::with_capacity(total);
    let mut signal = None;
    for (number, plan) in (1..).zip(plans) {
        if signal.is_some() {
            outcomes.push(Outcome::unplayed(plan));
            continue;
        }
        report::begin(&plan, number, total, ui);
        let played = match plan.setup(workspace, ui) {
            Ok(setup) => runtime.block_on(play::play(setup, &plan, &mut signals, ui)),
            Err(error) => Played::unbegun(PlayEnd::Failed(error)),
        };
        if let PlayEnd::Stopped(number) = played.end {
            signal = Some(number);
        }
        let outcome = Outcome::of(plan, played);
        // A single failure is reported at the end.
        if let Some(error) = outcome.error().filter(|_| total > 1) {
            ui.warn(&format!(
                "{}: {}",
                outcome.plan.original.label(),
                error.words()
            ));
        }
        outcomes.push(outcome);
    }
    Ok((outcomes, signal))
}

/// Says once that agents with tools of their own replay without them.
fn mention_own_tools(plans: &[Plan], ui: &mut Ui) {
    let mut names: Vec<&str> = Vec::new();
    for plan in plans.iter().filter(|plan| plan.tools == ToolSide::Its) {
        if !names.contains(&plan.agent.as_str()) {
            names.push(&plan.agent);
        }
    }
    if !names.is_empty() {
        ui.warn(&format!(
            "{} has tools of its own, which cannot be given recorded results: it runs without tools",
            names.join(", ")
        ));
    }
}

/// Returns the number of replays that diverged.
fn diverged(outcomes: &[Outcome]) -> usize {
    let mut count = 0;
    for outcome in outcomes {
        count += usize::from(outcome.comparison.first_divergence().is_some());
    }
    count
}

/// Returns the error of the run: that of the single replay, or how many have failed.
fn failure<'a>(outcomes: impl ExactSizeIterator<Item = &'a Outcome>) -> Option<CommandError> {
    let total = outcomes.len();
    let failed: Vec<&CommandError> = outcomes.filter_map(Outcome::error).collect();
    let first = *failed.first()?;
    let words = match total {
        1 => first.words(),
        _ => format!("{} of {total} replays failed", failed.len()),
    };
    let error = CommandError::new(first.kind(), words);
    let hints = first.hints().iter().filter(|_| total == 1);
    Some(hints.fold(error, |error, hint| error.hint(hint.as_str())))
}
