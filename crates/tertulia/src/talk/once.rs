//! Runs a single turn: sends a prompt, shows the answers and closes the session.

use std::process::ExitCode;

use super::describe::resumed;
use super::frontend::{End, Failure, Output};
use super::keyboard::Keyboard;
use super::opening::Opening;
use super::{exit_code, tell_end};
use tertulia_agents::AgentError;
use tertulia_core::team::markers;
use tertulia_engine::answer::TurnEnd;
use tertulia_engine::conversation::TurnResult;
use tertulia_engine::event::TurnStatus;
use tertulia_engine::live::{CommandOutcome, LiveSession, SessionCommand};
use tertulia_engine::pair::{Pause, Wait};
use tertulia_engine::prompt::Prompt;
use tertulia_engine::setup::Target;

use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::signals::Signals;
use crate::ui::{Ui, harmless};

/// What one run sends, and how it reports.
pub struct Run {
    pub words: Prompt,
    pub format: OutputFormat,
    /// Whether a failed agent of a team or pair is no failure of the run.
    pub keep_going: bool,
}

/// Sends a message and runs until a person is next.
pub async fn turn(opening: Opening, run: Run, ui: &mut Ui) -> CommandResult<ExitCode> {
    let Run {
        words,
        format,
        keep_going,
    } = run;
    let is_retry = words.text.is_empty();
    let asks_somebody = asks_somebody(&words.text);
    let participants = &opening.setup.participants;
    let (rings, kind) = (participants.rings(), participants.kind());
    if opening.unasked {
        ui.note(&opening.setup.introduction);
    }
    if let Target::Resume(row, _) = &opening.setup.target {
        let now = opening.workspace.sessions.clock().now();
        ui.note(&harmless(&resumed(&row.meta, now)));
    }
    let mut signals = Signals::listen()?.hurrying(opening.workspace.sessions.store().patience());
    let mut keyboard = Keyboard::default();
    let answers = ui.is_interactive().then_some(&mut keyboard);
    let mut output = Output::new(format, ui, answers).of(kind);
    let opened = LiveSession::open(opening.setup, &mut output);
    let mut session = match (signals.during(opened).await?, signals.caught()) {
        (Err(_), Some(signal)) => return Ok(exit_code(Some(signal), None)),
        (opened, _) => opened?.with_fixed_seat(),
    };
    let cancel = signals.cancel.clone();
    let said = session.execute(SessionCommand::Say(words), &mut output, &cancel);
    let outcome = match signals.during(said).await {
        Ok(outcome) => outcome,
        Err(left) => {
            output.cut_off();
            tell_end(session.close(false).await, ui);
            return Err(left);
        }
    };
    let nobody_asked = (outcome.turn.as_ref())
        .filter(|turn| turn.asked_no_member() && asks_somebody && !keep_going)
        .map(|_| nobody_asked());
    let failed = error_of(&outcome, &mut output, keep_going);
    let end = End {
        nobody_asked: nobody_asked.as_ref(),
        status: match failed.is_some() || nobody_asked.is_some() {
            true => TurnStatus::Failed.name(),
            false => status_of(&outcome, keep_going),
        },
        ..end_of(&outcome, &session)
    };
    let refused = output.finish(&end);
    let turn = outcome.turn.as_ref();
    // An agent's failure is the error of the run, which says it.
    let ending = turn.filter(|turn| turn.failure().is_none());
    if let Some(ending) = ending.and_then(TurnResult::ending) {
        ui.remark(ending.is_warning(), &ending.text);
    }
    if rings {
        ui.bell();
    }
    let left_unsaved = tell_end(session.close(true).await, ui);
    if let Some(refused) = refused {
        return Err(refused);
    }
    if let Some(signal) = signals.caught() {
        return Ok(exit_code(Some(signal), None));
    }
    if nobody_asked.is_none() && turn.is_some_and(TurnResult::had_no_addressee) {
        ui.note("nobody was addressed: name the next speaker with [NEXT: name]");
    }
    match (failed.or(nobody_asked), left_unsaved) {
        (Some(failed), _) => Err(failed),
        (None, Some(kind)) => Err(CommandError::new(kind, "this session could not be saved")),
        (None, None) if is_unfinished(turn, is_retry) => {
            Ok(ExitCode::from(ErrorKind::Failed.exit_code()))
        }
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

/// Returns true if a message is more than a new task or a change of the queue.
fn asks_somebody(words: &str) -> bool {
    let markers = markers::parse(words);
    let changes = markers.task.is_some() || markers.drop.is_some();
    !changes || !markers.next.is_empty() || !markers::shown(words).trim().is_empty()
}

/// Returns the error for a team in which no member was asked.
fn nobody_asked() -> CommandError {
    let words = "nobody was asked: the message addresses no agent of the team";
    CommandError::new(ErrorKind::Agent, words)
        .hint("name the next speaker with [NEXT: name]; --keep-going accepts this")
}

/// Returns true if a run that reported no error has not done what it was asked for.
fn is_unfinished(turn: Option<&TurnResult>, is_retry: bool) -> bool {
    match turn {
        Some(TurnResult::Pair(Pause::Waits(wait), _)) => *wait != Wait::Done,
        // There was nothing to retry.
        Some(TurnResult::Chat(TurnEnd::Refused)) => is_retry,
        _ => false,
    }
}

/// Returns the status of a run without an error.
fn status_of(outcome: &CommandOutcome, keep_going: bool) -> &'static str {
    match &outcome.turn {
        Some(TurnResult::Pair(Pause::Waits(Wait::Budget), _)) => "budget",
        Some(TurnResult::Team(_)) if keep_going && outcome.status == TurnStatus::Failed => {
            TurnStatus::Completed.name()
        }
        _ => outcome.status.name(),
    }
}

/// Returns how a turn ended, for scripts.
pub fn end_of<'a>(outcome: &'a CommandOutcome, session: &LiveSession) -> End<'a> {
    // Failures in teams and pairs were reported when they happened.
    let failure = match &outcome.turn {
        Some(TurnResult::Chat(TurnEnd::Failed(error))) => Some(error),
        _ => None,
    };
    let conversation = session.conversation();
    End {
        session: conversation.writer().id(),
        status: outcome.status.name(),
        failure,
        nobody_asked: None,
        refusal: outcome.error.as_ref().filter(|_| outcome.turn.is_none()),
        waiting_for: conversation.waiting_for(),
    }
}

/// Returns the error that a single turn ends with. Any agent of a team or pair that failed fails the
/// run, unless it is to keep going: a script would take its silence for consent. The last failure is
/// taken from the output, so that it is reported only once; earlier ones were warned about.
fn error_of(
    outcome: &CommandOutcome,
    output: &mut Output<'_>,
    keep_going: bool,
) -> Option<CommandError> {
    let earlier = |output: &Output<'_>| match output.failed_agents() {
        names if names.is_empty() || keep_going => None,
        names => Some(some_failed(names)),
    };
    match &outcome.turn {
        Some(TurnResult::Team(_)) if keep_going => None,
        Some(turn @ TurnResult::Team(_)) => {
            let last = turn.failure().and_then(|_| output.take_failure());
            last.map(could_not_answer).or_else(|| earlier(output))
        }
        Some(TurnResult::Pair(Pause::Failed(error) | Pause::WorkerFails(error), _)) => {
            // This error is reported instead.
            output.take_failure();
            Some(for_the_human(error.clone()))
        }
        turn => {
            let error = outcome.error.clone().map(CommandError::from);
            error.or_else(|| matches!(turn, Some(TurnResult::Pair(..))).then(|| earlier(output))?)
        }
    }
}

/// Returns the error for a run that went on after agents had failed.
fn some_failed(names: &[String]) -> CommandError {
    let words = format!("{} could not answer", names.join(", "));
    CommandError::new(ErrorKind::Agent, words)
        .hint("--keep-going accepts the answers of the others")
}

/// Returns the error for a team whose last prompted member failed with an empty queue.
fn could_not_answer(failure: Failure) -> CommandError {
    let error = CommandError::new(ErrorKind::Agent, failure.words);
    error.hint(failure.hint.unwrap_or_else(|| {
        "`tertulia team check CONFIG` shows the agent of each member, `tertulia agents` lists those that are ready".to_owned()
    }))
}

/// Returns the error for a pair whose agent failed, with a hint to choose another agent.
fn for_the_human(error: AgentError) -> CommandError {
    let choose =
        "`tertulia agents` lists the agents that are ready; choose with --instructor and --worker";
    let hint = error.hint.clone().unwrap_or_else(|| choose.to_owned());
    AgentError {
        hint: Some(hint),
        ..error
    }
    .into()
}
