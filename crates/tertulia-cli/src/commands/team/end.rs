//! How a team's turn ended, and what is said of it.

use tertulia::conversation::table::{Round, Table};
use tertulia::conversation::team::events::{Next, Why};

use crate::error::{CommandError, ErrorKind};
use crate::talk::door::{End, Failure, Output};

/// The last who was asked failed, and nobody else was to speak.
pub fn could_not_answer(failure: Failure) -> CommandError {
    let error = CommandError::new(ErrorKind::Agent, failure.words);
    match failure.hint {
        Some(hint) => error.hint(hint),
        None => error.hint("`tertulia team check NAME` tells which program each member runs"),
    }
}

/// Says how a turn ended. What was refused is for the caller to report.
pub fn finish(output: &mut Output<'_>, table: &Table, round: &Round) -> Option<CommandError> {
    let (status, waiting_for) = match &round.floor {
        None => ("refused", table.router().waiting().unwrap_or_default()),
        Some(Next::Paused { human, .. }) => ("paused", human.as_str()),
        Some(Next::WaitFor { human, why }) => {
            let status = match why {
                Why::Stopped => "cancelled",
                Why::Failed => "failed",
                _ => "completed",
            };
            (status, human.as_str())
        }
        Some(Next::Ask { item, .. }) => ("completed", item.request.target.as_str()),
    };
    output.finish(&End {
        session: table.talk().recorder().id(),
        status,
        // It was told when it happened.
        failure: None,
        waiting_for,
    })
}
