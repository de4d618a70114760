//! How a talk stands while a person has the floor, as the screen shows it.

use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::duet::{Duet, Pause};
use tertulia::conversation::pair::Next as Step;
use tertulia::conversation::run::Compaction;
use tertulia::conversation::table::Table;
use tertulia::conversation::team::events::Next;
use tertulia::conversation::team::queue::Item;

use super::item::Tone;
use super::news::Floor;
use super::queue::Waiting;
use crate::commands::team::end;
use crate::error::CommandError;
use crate::talk::conversation::{Conversation, Turned};
use crate::talk::{Leaving, paired};
use crate::ui::fit;

/// How wide an instruction that was left undone is shown.
const INSTRUCTION: usize = 200;

/// How a talk stands.
pub fn of(conversation: &Conversation, seat: Option<&str>, failed: bool) -> Floor {
    let recorder = conversation.talk().recorder();
    Floor {
        id: recorder.id(),
        summary: recorder.summary().cloned(),
        writer: writer(conversation, seat),
        unsaved: recorder.has_unsaved(),
        waiting: match conversation {
            Conversation::Team(table) => waiting(table, table.router().queue().items()),
            Conversation::Chat(_) | Conversation::Pair(_) => Vec::new(),
        },
        undone: match conversation {
            Conversation::Pair(duet) => undone(duet),
            Conversation::Chat(_) | Conversation::Team(_) => None,
        },
        failed,
    }
}

/// Who writes: the seat that was taken, or who is waited for.
fn writer(conversation: &Conversation, seat: Option<&str>) -> String {
    let Conversation::Team(table) = conversation else {
        return "you".to_owned();
    };
    match table.router().sender(seat, "") {
        Ok(member) => member.display_name.clone(),
        Err(_) => {
            let humans = table.router().members().iter();
            let names: Vec<&str> = humans
                .filter(|member| member.is_human())
                .map(|human| human.display_name.as_str())
                .collect();
            names.join("/")
        }
    }
}

fn waiting(table: &Table, items: &[Item]) -> Vec<Waiting> {
    items
        .iter()
        .map(|item| {
            let target = &item.request.target;
            let members = table.router().members();
            let member = members.iter().find(|member| member.id == *target);
            Waiting {
                name: member.map_or(target, |member| &member.display_name).clone(),
                intent: item.request.intent,
                is_you: false,
            }
        })
        .collect()
}

/// What a pair left undone, in words.
fn undone(duet: &Duet) -> Option<String> {
    duet.pending()?;
    let pair = duet.pair()?;
    let instruction = fit(&pair.last_instruction.replace('\n', " "), INSTRUCTION);
    Some(match pair.next {
        Step::Worker => format!("The worker was cut off. Its instruction was: {instruction}"),
        Step::Handover => {
            format!("This instruction has not been given to the worker: {instruction}")
        }
        Step::Report => "The worker has finished, and the instructor has not heard it.".to_owned(),
        _ => "The instructor has not replied.".to_owned(),
    })
}

/// Takes a seat, if there is one of that name.
pub fn take_seat(
    conversation: &Conversation,
    name: Option<String>,
) -> Result<Option<String>, String> {
    let Conversation::Team(table) = conversation else {
        return Err("there are no seats here: /as is for teams".to_owned());
    };
    let Some(name) = name else {
        return Ok(None);
    };
    match table.router().sender(Some(&name), "") {
        Ok(member) => Ok(Some(member.id.clone())),
        Err(error) => Err(error.to_string()),
    }
}

/// Why nothing was summed up.
pub fn not_compacted(compacted: Option<Compaction>) -> Option<&'static str> {
    match compacted {
        None => Some("here everybody is given only what they need: there is nothing to sum up"),
        Some(Compaction::Nothing) => Some("nothing was summed up: there is nothing older"),
        Some(Compaction::Done | Compaction::Failed) => None,
    }
}

/// What is said at the end of a turn.
pub fn endings(turned: &Turned, conversation: &Conversation) -> Vec<(Tone, String)> {
    match turned {
        Turned::Chat(TurnEnd::Failed(error)) => {
            let hint = CommandError::from(error.clone()).hints().join("; ");
            match hint.is_empty() {
                true => Vec::new(),
                false => vec![(Tone::Warning, hint)],
            }
        }
        Turned::Chat(_) => Vec::new(),
        Turned::Team(round) => {
            if let Some(Next::Paused { .. }) = round.floor {
                let words = "say something, and whoever waits goes on";
                return vec![(Tone::Note, words.to_owned())];
            }
            if round.went_to_nobody() {
                let words = "nobody was addressed: [NEXT: name] gives somebody the floor; /members shows who is here";
                return vec![(Tone::Note, words.to_owned())];
            }
            Vec::new()
        }
        Turned::Pair(pause, progress) => {
            let tone = match paired::is_warning(pause) {
                true => Tone::Warning,
                false => Tone::Note,
            };
            let mut all = vec![(tone, paired::ending(pause, progress))];
            let undone =
                matches!(conversation, Conversation::Pair(duet) if duet.pending().is_some());
            let cut = matches!(
                pause,
                Pause::Stopped(_) | Pause::Failed(_) | Pause::WorkerFails(_)
            );
            if undone && cut {
                let words = "/go goes on with what was left undone; anything else is said to the instructor";
                all.push((Tone::Note, words.to_owned()));
            }
            all
        }
    }
}

/// Whether a turn ended because an agent failed.
pub fn is_failure(turned: &Turned) -> bool {
    match turned {
        Turned::Chat(end) => matches!(end, TurnEnd::Failed(_)),
        Turned::Team(round) => round.ended_by_failure(),
        Turned::Pair(pause, _) => matches!(
            pause,
            Pause::Failed(_) | Pause::WorkerFails(_) | Pause::Unsaved | Pause::Unreadable(_)
        ),
    }
}

/// Who is still to speak when the talk is left, in words.
pub fn unheard(conversation: &Conversation, leaving: &Leaving) -> Option<String> {
    match conversation {
        Conversation::Team(table) => end::unheard(table, leaving),
        Conversation::Chat(_) | Conversation::Pair(_) => None,
    }
}

/// A failure and what to do about it, in a row.
pub fn sentence(error: &CommandError) -> String {
    let mut words = error.words();
    for hint in error.hints() {
        words.push_str("; ");
        words.push_str(hint);
    }
    words
}
