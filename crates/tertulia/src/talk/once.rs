//! A single turn: somebody says something, it is answered, and the talk is left.

use std::process::ExitCode;

use super::conversation::resumed;
use super::exit_code;
use super::frontend::Output;
use super::keyboard::Keyboard;
use super::opening::Opening;
use super::target::Target;
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult};
use crate::signals::Signals;
use crate::ui::{Ui, harmless};

/// Says the words and runs until a person is next.
pub async fn turn(
    opening: Opening,
    words: String,
    format: OutputFormat,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let leaving = opening.leaving.clone();
    let (seat, rings) = (opening.cast.seat(), opening.cast.rings());
    if opening.unasked {
        ui.note(&opening.introduction);
    }
    if let Target::Resume(row, _) = &opening.target {
        let now = opening.workspace.sessions.clock().now();
        ui.note(&harmless(&resumed(&row.meta, now)));
    }
    let mut signals = Signals::listen()?.hurrying(opening.workspace.sessions.store().patience());
    let mut keyboard = Keyboard::default();
    let answers = ui.is_interactive().then_some(&mut keyboard);
    let mut output = Output::new(format, ui, answers).of(opening.cast.kind());
    let opened = signals.during(opening.open(&mut output)).await?;
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
            leaving.farewell(conversation.talk_mut(), ui).await;
            return Err(left);
        }
    };
    let failed = turned.error(&mut output);
    let refused = output.finish(&turned.end(&conversation));
    if let Some((warning, words)) = turned.ending() {
        ui.remark(warning, &words);
    }
    if rings {
        ui.bell();
    }
    conversation.leave().await;
    if let Some(words) = conversation.unheard(&leaving) {
        ui.warn(&words);
    }
    let left_unsaved = leaving.farewell(conversation.talk_mut(), ui).await;
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
