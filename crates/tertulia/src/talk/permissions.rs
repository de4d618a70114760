//! Asks the user line by line for tool permissions.

use tertulia_agents::approval::{ToolRequest, Verdict};
pub use tertulia_engine::text::permissions::{line, lines, mode, revocation, revoked};

use super::keyboard::Keyboard;
use crate::show;
use crate::ui::{Ui, harmless};

/// Asks the user line by line whether a tool may run. A line that is no answer is kept as a later
/// message; allowing a tool for the whole session takes a second yes.
pub async fn ask(request: &ToolRequest, ui: &mut Ui, keyboard: &mut Keyboard) -> Verdict {
    ui.ask(&show::request(ui, request));
    keyboard.put_aside();
    let for_good = format!(
        "Allow every {} until you leave? [y] yes, [n] no: ",
        harmless(&request.key)
    );
    let mut asks_for_good = false;
    loop {
        ui.prompt(match asks_for_good {
            true => &for_good,
            false => "Allow it? [y] once, [a] this session, [n] no: ",
        });
        let Some(line) = keyboard.fresh_line().await else {
            return Verdict::No;
        };
        match (typed_answer(&line), asks_for_good) {
            (Some(Verdict::Always), false) => asks_for_good = true,
            (Some(verdict), false) => return verdict,
            (Some(Verdict::Yes), true) => return Verdict::Always,
            (Some(_), true) => asks_for_good = false,
            // A sentence is a message for the agent, not an answer to the question.
            (None, _) => {
                if keyboard.keep_for_later(line) {
                    ui.note("not an answer: sent when the current answer ends");
                }
                asks_for_good = false;
            }
        }
    }
}

/// Parses a line as an answer.
fn typed_answer(line: &[u8]) -> Option<Verdict> {
    let line = String::from_utf8_lossy(line);
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Verdict::Yes),
        "a" | "always" => Some(Verdict::Always),
        "n" | "no" => Some(Verdict::No),
        _ => None,
    }
}
