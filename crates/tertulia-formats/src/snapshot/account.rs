//! Report on an imported snapshot: kept, changed and lost content.

use super::{Reading, Remembered, Routing, Snapshot};
use tertulia_core::entry::Entry;
use tertulia_core::foreign::Changes;
use tertulia_core::session::{Log, SessionMeta};

/// Report on an imported snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Number of imported messages, including changed ones.
    pub messages: usize,
    /// True if a task was imported.
    pub task: bool,
    /// Descriptions of changes.
    pub changed: Vec<String>,
    /// Descriptions of lost content.
    pub lost: Vec<String>,
}

impl Account {
    /// Compares a snapshot with the log made from it, by converting that log back to a snapshot.
    /// `changes` are those made to the texts by the conversion.
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

/// Returns the addressees of a message; a missing and an empty list are equal.
fn addressed(message: &Remembered) -> Routing {
    message.routing.clone().unwrap_or_default()
}
