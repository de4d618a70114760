//! What became of a snapshot that was taken in: what is as it was, what was changed, what has no place.

use super::{Reading, Remembered, Routing, Snapshot};
use tertulia_core::entry::Entry;
use tertulia_core::foreign::Changes;
use tertulia_core::session::{Log, SessionMeta};

/// What became of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How many messages it brought, those that were changed included.
    pub messages: usize,
    /// Whether it brought a task.
    pub task: bool,
    /// What was changed, in words.
    pub changed: Vec<String>,
    /// What was not kept, in words.
    pub lost: Vec<String>,
}

impl Account {
    /// Compares a snapshot with the log that was made of it, by writing that as a snapshot again.
    /// `changes` are those that reading made to its texts.
    pub fn of(reading: &Reading, entries: &[Entry], changes: &Changes) -> Account {
        let told = &reading.snapshot;
        let log = Log {
            entries: entries.to_vec(),
            damage: Vec::new(),
        };
        let kept = Snapshot::of(&SessionMeta::of(told.session_id(), &log.entries), &log);
        let pairs: Vec<(&Remembered, &Remembered)> =
            told.messages.iter().zip(&kept.messages).collect();
        let count = |differs: fn(&Remembered, &Remembered) -> bool| {
            let differing = pairs.iter().filter(|(told, kept)| differs(told, kept));
            differing.count()
        };
        let mut account = Account {
            messages: pairs.len(),
            task: kept.team_task.is_some(),
            ..Account::default()
        };
        let mut changed = |count: usize, words: &str| {
            if count > 0 {
                account.changed.push(format!("{words} ({count})"));
            }
        };
        changed(
            reading.older_names,
            "older names (roleId, roleName, roleTitle) became id, name and displayName",
        );
        changed(
            count(|told, kept| told.id != kept.id),
            "ids of messages became ids of entries",
        );
        changed(
            reading.untitled,
            "speakers without a roleTitle are shown by their roleName",
        );
        account.changed.extend(changes.changed());
        if reading.halves {
            let words = "halves of characters are replaced by \u{fffd}";
            account.changed.push(words.to_owned());
        }
        let routed = count(|told, kept| addressed(told) != addressed(kept));
        if routed > 0 {
            account.lost.push(format!(
                "the spelling of addressees in rawNextMarkers; the addressees are kept ({routed})"
            ));
        }
        if told.updated_at != kept.updated_at {
            account.lost.push(format!(
                "updatedAt ({}), which is earlier than the last message",
                told.updated_at
            ));
        }
        account
    }
}

/// To whom a message goes; nobody is nobody, however it is written.
fn addressed(message: &Remembered) -> Routing {
    message.routing.clone().unwrap_or_default()
}
