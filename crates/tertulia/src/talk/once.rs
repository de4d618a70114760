//! Runs a single turn: sends a prompt, shows the answers and closes the session.

use std::process::ExitCode;

use super::describe::{resumed, unheard};
use super::exit_code;
use super::frontend::{End, Failure, Output};
use super::keyboard::Keyboard;
use super::opening::Opening;
use tertulia_agents::AgentError;
use tertulia_engine::conversation::{Conversation, TurnResult};
use tertulia_engine::pair::Pause;
use tertulia_engine::setup::Target;

use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::signals::Signals;
use crate::ui::{Ui, harmless};

/// Sends `words` and runs until a person is next.
pub async fn turn(
    opening: Opening,
    words: String,
    format: OutputFormat,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let leaving = opening.leaving.clone();
    let participants = &opening.setup.participants;
    let (seat, rings, kind) = (
        participants.seat(),
        participants.rings(),
        participants.kind(),
    );
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
    let opened = signals.during(opening.setup.open(&mut output)).await?;
    let mut conversation = match (opened, signals.caught()) {
        (Err(_), Some(signal)) => return Ok(exit_code(Some(signal), None)),
        (opened, _) => opened?,
    };
    let cancel = signals.cancel.clone();
    let said = conversation.say_as(words, seat.as_deref(), &mut output, &cancel);
    let turned = match signals.during(said).await {
        Ok(turned) => turned?,
        Err(left) => {
            output.cut_off();
            leaving.farewell(&mut conversation, ui).await;
            return Err(left);
        }
    };
    let failed = error_of(&turned, &mut output);
    let refused = output.finish(&end_of(&turned, &conversation));
    if let Some(ending) = turned.ending() {
        ui.remark(ending.is_warning(), &ending.text);
    }
    if rings {
        ui.bell();
    }
    conversation.leave().await;
    if let Some(words) = unheard(&conversation, &leaving) {
        ui.warn(&words);
    }
    let left_unsaved = leaving.farewell(&mut conversation, ui).await;
    if let Some(refused) = refused {
        return Err(refused);
    }
    if let Some(signal) = signals.caught() {
        return Ok(exit_code(Some(signal), None));
    }
    if turned.went_to_nobody() {
        ui.note("nobody was addressed: name the next speaker with [NEXT: name]");
    }
    match (failed, left_unsaved) {
        (Some(failed), _) => Err(failed),
        (None, Some(kind)) => Err(CommandError::new(kind, "this session could not be saved")),
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

/// Returns how a turn ended, for scripts.
pub fn end_of<'a>(turned: &'a TurnResult, conversation: &Conversation) -> End<'a> {
    // Failures in teams and pairs were reported when they happened.
    let failure = turned
        .failure()
        .filter(|_| matches!(turned, TurnResult::Chat(_)));
    End {
        session: conversation.writer().id(),
        status: turned.status().name(),
        failure,
        waiting_for: conversation.waiting_for(),
    }
}

/// Returns the error that a single turn ends with. A team member's failure is taken from the
/// output, so that it is reported only once.
fn error_of(turned: &TurnResult, output: &mut Output<'_>) -> Option<CommandError> {
    match (turned, turned.failure()) {
        (TurnResult::Chat(_), error) => error.cloned().map(CommandError::from),
        (TurnResult::Team(_), error) => {
            let failure = error.and_then(|_| output.take_failure());
            failure.map(could_not_answer)
        }
        (TurnResult::Pair(Pause::Unreadable(why), _), _) => {
            Some(CommandError::new(ErrorKind::Failed, why))
        }
        (TurnResult::Pair(..), error) => error.cloned().map(for_the_human),
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
