//! How a team's turn ended, and what is said of it.

use tertulia::conversation::table::{Round, Table};
use tertulia::conversation::team::events::{Next, Why};

use crate::error::{CommandError, ErrorKind};
use crate::talk::Leaving;
use crate::talk::door::{End, Failure, Output};

/// The last who was asked failed, and nobody else was to speak.
pub fn could_not_answer(failure: Failure) -> CommandError {
    let error = CommandError::new(ErrorKind::Agent, failure.words);
    match failure.hint {
        Some(hint) => error.hint(hint),
        None => error.hint("`tertulia team check CONFIG` shows which agent each member is, `tertulia agents` which are ready"),
    }
}

/// Who is still to speak when the talk is left, in words: the next time nobody waits.
pub fn unheard(table: &Table, leaving: &Leaving) -> Option<String> {
    let members = table.router().members();
    let mut names: Vec<&str> = Vec::new();
    for item in table.router().queue().items() {
        let target = &item.request.target;
        let member = members.iter().find(|member| member.id == *target);
        let name = member.map_or(target, |member| &member.name).as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return None;
    }
    let names = names.join(", ");
    Some(if leaving.is_resumable() {
        format!("not heard: {names}; [NEXT: {names}] asks them when the talk goes on")
    } else {
        format!("not heard: {names}")
    })
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
