//! Asks the user line by line for tool permissions, and says which policy the next session gets.

use tertulia_agents::approval::{Approval, Permissions, ToolRequest, Verdict};
use tertulia_core::query::Row;
use tertulia_engine::text::permissions::covers;
pub use tertulia_engine::text::permissions::{line, lines, mode, revocation, revoked};

use super::keyboard::Keyboard;
use crate::args::ApproveMode;
use crate::show;
use crate::ui::{Ui, harmless};

/// Asks the user line by line whether a tool may run. A line that is no answer is kept as a later
/// message; allowing a tool for the whole session takes a second yes.
pub async fn ask(request: &ToolRequest, ui: &mut Ui, keyboard: &mut Keyboard) -> Verdict {
    ui.ask(&show::request(ui, request));
    keyboard.put_aside();
    let allow = covers(request);
    let allow = format!(
        "{}? [y] yes, [n] no: ",
        harmless(&allow.replacen("allow", "Allow", 1))
    );
    let mut asked = Asked::Whether;
    loop {
        ui.prompt(match asked {
            Asked::Whether => QUESTION,
            Asked::ForGood => &allow,
            Asked::WhatInstead => "What to do instead (empty: back): ",
        });
        let Some(line) = keyboard.fresh_line().await else {
            return Verdict::No;
        };
        if asked == Asked::WhatInstead {
            match Verdict::denied(&String::from_utf8_lossy(&line)) {
                Verdict::No => asked = Asked::Whether,
                instead => return instead,
            }
            continue;
        }
        asked = match (typed_answer(&line), asked) {
            (Some(Typed::Yes), Asked::ForGood) => return Verdict::Always,
            (Some(_), Asked::ForGood) => Asked::Whether,
            (Some(Typed::Yes), _) => return Verdict::Yes,
            (Some(Typed::No), _) => return Verdict::No,
            (Some(Typed::Always), _) => Asked::ForGood,
            (Some(Typed::Instead), _) => Asked::WhatInstead,
            // A sentence is a message for the agent, not an answer to the question.
            (None, _) => {
                if keyboard.keep_for_later(line) {
                    ui.note("not an answer: sent when the current answer ends");
                }
                Asked::Whether
            }
        };
    }
}

const QUESTION: &str = "Allow it? [y] once, [a] this session, [n] no, [i] say what to do instead: ";

/// The question that the next line answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Whether,
    ForGood,
    WhatInstead,
}

/// An answer as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    Yes,
    Always,
    No,
    Instead,
}

/// Parses a line as an answer.
fn typed_answer(line: &[u8]) -> Option<Typed> {
    let line = String::from_utf8_lossy(line);
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Typed::Yes),
        "a" | "always" => Some(Typed::Always),
        "n" | "no" => Some(Typed::No),
        "i" | "instead" => Some(Typed::Instead),
        _ => None,
    }
}

/// Returns the tool policy for the session that follows another one in the same program: that of the one
/// that is left, or a tighter one that the user set in the next one before. `None` for the default.
pub fn next_policy(left: &Permissions, next: Option<&Row>) -> Option<ApproveMode> {
    let mode = left.mode();
    if left.said_mode().is_none() && mode == Approval::Ask {
        return None;
    }
    let recorded = next.and_then(|row| row.meta.approve);
    Some(recorded.map_or(mode, |recorded| recorded.min(mode)).into())
}
