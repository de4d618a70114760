//! What a talk has to tell beside what is said, in words.

use std::collections::BTreeMap;
use std::error::Error;

use tertulia_engine::frontend::Notice;

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
            "another program is writing to session {}; continuing in a fork, {}",
            from.short(),
            to.short()
        ),
        Notice::Recovered { speaker } => format!(
            "{speaker} was cut off in the middle of an answer; what had arrived is kept as an interrupted message"
        ),
        Notice::Unanswered => {
            "the last message was not answered: tertulia exited before".to_owned()
        }
        Notice::ClosedCalls(count) => format!(
            "closed as interrupted: {} without a result",
            show::count(*count as u64, "tool call")
        ),
        Notice::EndedOrphans(count) => format!(
            "ended {} of the interrupted answer that still ran",
            show::count(*count as u64, "process")
        ),
        Notice::Compacting { messages } => {
            format!("summing up the {messages} oldest messages, so that the rest fits")
        }
        Notice::Compacted => "context summarised; the log keeps every message".to_owned(),
        Notice::Shortened => {
            "a message is too long for the model: its middle is left out of the prompt; the log keeps all of it"
                .to_owned()
        }
        Notice::NotCompacted(error) => {
            format!("the older part could not be summed up: {error}")
        }
        Notice::OtherModel { recorded, now } => {
            format!("this session was recorded with the model {recorded}; {now} answers now")
        }
        Notice::Missing(names) => format!(
            "no longer in the team: {}; their messages keep their names, and `--map OLD=NEW` on the command line reseats them",
            names.join(", ")
        ),
        Notice::OtherModelOf {
            member,
            recorded,
            now,
        } => format!("{member} answered with the model {recorded} before; {now} answers now"),
        Notice::NotHeard(names) => format!(
            "still queued when tertulia exited: {0} (ask again with [NEXT: {0}])",
            names.join(", ")
        ),
        Notice::Waiting(held) => open::waiting_words(held),
        Notice::Unsaved(error) => format!(
            "not saved: {}. The session continues in memory, and saving is tried again with the next message",
            chain(error)
        ),
        Notice::SavedAgain => "saved: every message so far is on disk".to_owned(),
        Notice::Redacted(kinds) => format!("redacted before saving: {}", counts(kinds)),
        Notice::NearLimit { bytes } => format!(
            "this session is {} MB of at most 100 MB: start a new one soon, or fork an earlier part with `tertulia fork REF:N`",
            bytes / 1_000_000
        ),
        Notice::Refused(error) => format!("not sent: {}", chain(error)),
        Notice::Damaged(damaged) => format!(
            "damaged in this session: {}, the first: {}; `tertulia doctor` lists all",
            show::count(damaged.len() as u64, "entry"),
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

/// A notice in words for the screen, where commands take the place of flags.
pub fn screen_words(notice: &Notice) -> String {
    words(notice).replace("`--map OLD=NEW` on the command line", "`/team map OLD=NEW`")
}
