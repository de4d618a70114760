//! What a talk has to tell beside what is said, in words.

use std::collections::BTreeMap;
use std::error::Error;

use tertulia::conversation::door::Notice;

use crate::{open, show};

/// Whether it is a warning, or only good to know.
pub fn is_warning(notice: &Notice) -> bool {
    match notice {
        Notice::SteppedAside { .. }
        | Notice::NotCompacted(_)
        | Notice::OtherModel { .. }
        | Notice::Missing(_)
        | Notice::OtherModelOf { .. }
        | Notice::Waiting(_)
        | Notice::Unsaved(_)
        | Notice::NearLimit { .. }
        | Notice::Refused(_)
        | Notice::Damaged(_) => true,
        Notice::Recovered { .. }
        | Notice::Unanswered
        | Notice::ClosedCalls(_)
        | Notice::EndedOrphans(_)
        | Notice::Compacting { .. }
        | Notice::Compacted
        | Notice::Shortened
        | Notice::NotHeard(_)
        | Notice::SavedAgain
        | Notice::Redacted(_) => false,
    }
}

/// It in words.
pub fn words(notice: &Notice) -> String {
    match notice {
        Notice::SteppedAside { from, to } => format!(
            "another program is writing to session {}; this talk goes on in a fork, {}",
            from.short(),
            to.short()
        ),
        Notice::Recovered { speaker } => format!(
            "{speaker} was cut off in the middle of an answer; what had arrived is kept as an interrupted message"
        ),
        Notice::Unanswered => {
            "the last words were not answered: the program ended before".to_owned()
        }
        Notice::ClosedCalls(1) => {
            "a tool call had not come back and is closed as interrupted".to_owned()
        }
        Notice::ClosedCalls(count) => {
            format!("{count} tool calls had not come back and are closed as interrupted")
        }
        Notice::EndedOrphans(count) => {
            format!("{count} processes of the answer that was cut off still ran, and were ended")
        }
        Notice::Compacting { messages } => {
            format!("summing up the {messages} oldest messages, so that the rest fits")
        }
        Notice::Compacted => "summed up; the log keeps everything that was said".to_owned(),
        Notice::Shortened => {
            "a message is too long for the model: it is given without its middle; the log keeps all of it"
                .to_owned()
        }
        Notice::NotCompacted(error) => {
            format!("the older part could not be summed up: {error}")
        }
        Notice::OtherModel { recorded, now } => {
            format!("this session was recorded with the model {recorded}; {now} answers now")
        }
        Notice::Missing(names) => format!(
            "not in the team any more: {}; what they said keeps their names, and --map old=new gives a seat to a member",
            names.join(", ")
        ),
        Notice::OtherModelOf {
            member,
            recorded,
            now,
        } => format!("{member} answered with the model {recorded} before; {now} answers now"),
        Notice::NotHeard(names) => format!(
            "asked before the program ended, and not heard: {0}; [NEXT: {0}] asks again",
            names.join(", ")
        ),
        Notice::Waiting(held) => open::waiting_words(held),
        Notice::Unsaved(error) => format!(
            "not saved: {}. The session goes on in memory and saving is tried again with the next words",
            chain(error)
        ),
        Notice::SavedAgain => "everything said so far is saved now".to_owned(),
        Notice::Redacted(kinds) => format!("redacted before saving: {}", counts(kinds)),
        Notice::NearLimit { bytes } => format!(
            "this session has grown to {} MB of at most 100 MB; go on in a new session soon, or fork an earlier part with `tertulia fork REF:N`",
            bytes / 1_000_000
        ),
        Notice::Refused(error) => format!("not taken: {}", chain(error)),
        Notice::Damaged(damaged) => format!(
            "{} entries of this session are damaged, the first: {}; `tertulia doctor` shows all",
            damaged.len(),
            show::damage(&damaged[..damaged.len().min(1)]).join("")
        ),
    }
}

fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}

/// Secrets per kind, in words.
pub fn counts(kinds: &BTreeMap<String, u32>) -> String {
    kinds
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect::<Vec<_>>()
        .join(", ")
}
