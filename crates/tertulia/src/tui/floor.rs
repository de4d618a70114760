//! How a talk stands while a person has the floor, as the screen shows it.

use tertulia_engine::run::Compaction;
use tertulia_engine::table::Table;

use super::item::Tone;
use super::news::Floor;
use super::queue::Waiting;
use crate::error::CommandError;
use crate::talk::conversation::{Conversation, Turned};

/// How a talk stands.
pub fn of(conversation: &Conversation, seat: Option<&str>, failed: bool) -> Floor {
    let writer = conversation.talk().writer();
    Floor {
        id: writer.id(),
        meta: writer.meta().cloned(),
        introduction: None,
        writer: conversation.whose_turn(seat),
        unsaved: writer.has_unsaved(),
        waiting: match conversation {
            Conversation::Team(table) => waiting(table),
            Conversation::Chat(_) | Conversation::Pair(_) => Vec::new(),
        },
        undone: conversation.left_undone(),
        failed,
    }
}

fn waiting(table: &Table) -> Vec<Waiting> {
    let items = table.router().queue().items().iter();
    items
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

/// Why nothing was compacted.
pub fn not_compacted(compacted: Option<Compaction>) -> Option<&'static str> {
    match compacted {
        None => Some("not needed here: each agent gets only the messages that fit its context"),
        Some(Compaction::Nothing) => Some("nothing was summed up: there is nothing older"),
        Some(Compaction::Done | Compaction::Failed) => None,
    }
}

/// What is said at the end of a turn, where the transcript does not show it.
pub fn endings(turned: &Turned, conversation: &Conversation) -> Vec<(Tone, String)> {
    match turned {
        // The failure itself is an entry of the log.
        Turned::Chat(_) => {
            let failure = turned.failure().cloned().map(CommandError::from);
            let hints = failure.map(|error| error.hints().to_vec());
            let hints = hints.unwrap_or_default().into_iter();
            hints.map(|hint| (Tone::Note, hint)).collect()
        }
        Turned::Team(_) | Turned::Pair(..) => {
            let notes = turned.notes(conversation).into_iter();
            notes
                .map(|(is_warning, words)| match is_warning {
                    true => (Tone::Warning, words),
                    false => (Tone::Note, words),
                })
                .collect()
        }
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
