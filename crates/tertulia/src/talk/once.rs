//! Runs a single turn: sends a prompt, shows the answers and closes the session.

use std::process::ExitCode;

use super::describe::resumed;
use super::frontend::{End, Failure, Output};
use super::keyboard::Keyboard;
use super::opening::Opening;
use super::{exit_code, tell_end};
use tertulia_agents::AgentError;
use tertulia_engine::answer::TurnEnd;
use tertulia_engine::conversation::TurnResult;
use tertulia_engine::live::{CommandOutcome, LiveSession, SessionCommand};
use tertulia_engine::pair::Pause;
use tertulia_engine::prompt::Prompt;
use tertulia_engine::setup::Target;

use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::signals::Signals;
use crate::ui::{Ui, harmless};

/// Sends `words` and runs until a person is next.
pub async fn turn(
    opening: Opening,
    words: Prompt,
    format: OutputFormat,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
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
    let failed = error_of(&outcome, &mut output);
    let refused = output.finish(&end_of(&outcome, &session));
    let turn = outcome.turn.as_ref();
    if let Some(ending) = turn.and_then(TurnResult::ending) {
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
    if turn.is_some_and(TurnResult::had_no_addressee) {
        ui.note("nobody was addressed: name the next speaker with [NEXT: name]");
    }
    match (failed, left_unsaved) {
        (Some(failed), _) => Err(failed),
        (None, Some(kind)) => Err(CommandError::new(kind, "this session could not be saved")),
        (None, None) => Ok(ExitCode::SUCCESS),
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
        refusal: outcome.error.as_ref().filter(|_| outcome.turn.is_none()),
        waiting_for: conversation.waiting_for(),
    }
}

/// Returns the error that a single turn ends with. A team member's failure is taken from the
/// output, so that it is reported only once.
fn error_of(outcome: &CommandOutcome, output: &mut Output<'_>) -> Option<CommandError> {
    match &outcome.turn {
        Some(turn @ TurnResult::Team(_)) => {
            let failure = turn.failure().and_then(|_| output.take_failure());
            failure.map(could_not_answer)
        }
        Some(TurnResult::Pair(Pause::Failed(error) | Pause::WorkerFails(error), _)) => {
            Some(for_the_human(error.clone()))
        }
        _ => outcome.error.clone().map(CommandError::from),
    }
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
