//! Merge of two sessions: which entries the new session has after the common part, and in which order.
//!
//! Copies of messages keep their entry ids, so that a later merge recognises them. A tool call stays
//! together with everything up to its result, and a failure with the message that it follows. In a
//! pair the unit is larger: everything from one human message to the next, because the next step of a
//! pair depends on the messages before it.
//!
//! A team session ends with an entry that empties the queue and names all replaced members; its task
//! is the last one in the merged log. A pair keeps the participants of the first session and the
//! smaller of both budgets, so that a merge never allows more worker calls than either session did.

mod groups;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::entry::{Body, Budgeted, Entry, Kind, NewEntry, Seated, Tagged};
use crate::id::{EntryId, derived};
use crate::pair::Budget;
use crate::session::SessionMeta;
use groups::{grouped, in_order};

/// Order of the messages that only one of two sessions has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeOrder {
    /// By time. Within each session the order stays, whatever its times say.
    #[default]
    Time,
    /// Those of the first session, then those of the second.
    Ours,
    /// Those of the second session, then those of the first.
    Theirs,
}

/// One of two sessions to merge.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Metadata of the session.
    pub meta: &'a SessionMeta,
    /// Entries after the last one that both sessions have.
    pub own: &'a [Entry],
}

/// What a merged session has after the common part and the merge entry.
#[derive(Clone, Debug, Default)]
pub struct MergedEntries {
    /// Copies of both sessions' entries.
    pub copies: Vec<NewEntry>,
    /// Entries at the end that set the state of the new session.
    pub closing: Vec<Body>,
    /// Number of messages among the copies.
    pub messages: usize,
    /// Number of entries that are part of a conversation and were not copied, by type.
    pub left_out: BTreeMap<String, usize>,
}

/// Why two sessions cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// The sessions are of different kinds.
    #[error("session {ours} is a {} and {theirs} a {}: only sessions of one kind can be merged", kinds[0].name(), kinds[1].name())]
    OtherKind {
        /// Short id of the first session.
        ours: String,
        /// Short id of the second session.
        theirs: String,
        /// Kinds of both.
        kinds: [Kind; 2],
    },
    /// The sessions are of different teams.
    #[error("session {ours} is of the team '{}' and {theirs} of '{}': only sessions of one team can be merged", teams[0], teams[1])]
    OtherTeam {
        /// Short id of the first session.
        ours: String,
        /// Short id of the second session.
        theirs: String,
        /// Teams of both.
        teams: [String; 2],
    },
}

/// Checks whether two sessions can be merged.
pub fn check(ours: &SessionMeta, theirs: &SessionMeta) -> Result<(), MergeError> {
    let [first, second] = [ours, theirs].map(|meta| meta.id.short());
    if ours.kind != theirs.kind {
        return Err(MergeError::OtherKind {
            ours: first,
            theirs: second,
            kinds: [ours.kind, theirs.kind],
        });
    }
    if ours.team != theirs.team {
        let team = |meta: &SessionMeta| meta.team.clone().unwrap_or_default();
        return Err(MergeError::OtherTeam {
            ours: first,
            theirs: second,
            teams: [team(ours), team(theirs)],
        });
    }
    Ok(())
}

/// Returns true if a session has every message of another, the originals or copies of them.
pub fn contains(all: &[Entry], part: &[Entry]) -> bool {
    let known: HashMap<EntryId, &Entry> = all.iter().map(|entry| (entry.id, entry)).collect();
    let mut messages = part.iter().filter(|entry| entry.message().is_some());
    messages.all(|entry| {
        known
            .get(&entry.id)
            .is_some_and(|known| is_same(known, entry))
    })
}

/// Returns true if two entries with one id are the same: an original and its copy, or two copies.
fn is_same(one: &Entry, other: &Entry) -> bool {
    match (&one.body, &other.body) {
        (Body::Message(one), Body::Message(other)) => {
            one.role == other.role
                && one.tool_call_id == other.tool_call_id
                && one.content == other.content
                && one.tool_calls == other.tool_calls
        }
        (one, other) => one == other,
    }
}

/// Returns the entries of the merge of two sessions. `operation` identifies the merge.
pub fn merged(
    ours: Side<'_>,
    theirs: Side<'_>,
    order: MergeOrder,
    operation: EntryId,
) -> MergedEntries {
    let mut merged = MergedEntries::default();
    let kind = ours.meta.kind;
    let groups = in_order(grouped(kind, ours.own), grouped(kind, theirs.own), order);
    let mut used = HashSet::new();
    for entry in groups.into_iter().flatten() {
        merged.messages += usize::from(entry.message().is_some());
        merged.copies.push(copy(entry, &mut used));
    }
    for entry in ours.own.iter().chain(theirs.own) {
        if let Body::Compacted(_) | Body::Unknown(_) = &entry.body {
            let kind = entry.body.kind().to_owned();
            *merged.left_out.entry(kind).or_insert(0) += 1;
        }
    }
    merged.closing = closing(ours, theirs, operation);
    merged
}

/// Returns a copy of an entry, with the identity of its usage.
fn copy(entry: &Entry, used: &mut HashSet<EntryId>) -> NewEntry {
    let mut body = entry.body.clone();
    if let Body::Message(message) = &mut body
        && message.usage.is_some()
    {
        let usage_id = message.usage_id.take();
        message.usage_id = usage_id.or_else(|| Some(entry.id.to_string()));
    }
    // A repair or an import may have left two messages with one id: each needs its own in one log.
    let mut id = entry.id;
    while !used.insert(id) {
        id = EntryId::new(derived(&["merge", &id.to_string()]));
    }
    NewEntry {
        id,
        at: entry.at,
        body,
        redacted: entry.redacted.clone(),
        author: entry.author.clone(),
    }
}

/// Returns the entries that give the new session the state of both.
fn closing(ours: Side<'_>, theirs: Side<'_>, operation: EntryId) -> Vec<Body> {
    let mut closing = Vec::new();
    match ours.meta.kind {
        Kind::Chat => {}
        Kind::Team => {
            let mut heirs = theirs.meta.heirs.clone();
            heirs.extend(ours.meta.heirs.clone());
            let file = ours.meta.team_file.as_ref();
            closing.push(Body::Seated(Seated {
                file: file.or(theirs.meta.team_file.as_ref()).cloned(),
                heirs,
            }));
        }
        Kind::Pair => {
            let mut own = ours.own.iter().rev();
            let paired = own.find_map(|entry| match &entry.body {
                Body::Paired(paired) => Some(paired.clone()),
                _ => None,
            });
            if let Some(mut paired) = paired {
                // The rounds of both are counted by their messages.
                paired.round = None;
                closing.push(Body::Paired(paired));
            }
            let budgets = [ours.meta, theirs.meta].map(|meta| {
                let pair = meta.pair.as_ref();
                pair.map_or(Budget::Unlimited, |pair| pair.remaining)
            });
            let budget = smaller(budgets);
            closing.push(Body::Budgeted(Budgeted { budget }));
        }
    }
    closing.extend(tags(ours, theirs, operation));
    closing
}

fn smaller([one, other]: [Budget; 2]) -> Budget {
    match (one.calls(), other.calls()) {
        (Some(one), Some(other)) => Budget::Calls(one.min(other)),
        (Some(calls), None) | (None, Some(calls)) => Budget::Calls(calls),
        (None, None) => Budget::Unlimited,
    }
}

/// Returns the entry that gives the new session the tags of both, and removes those that only the
/// common part had.
fn tags(ours: Side<'_>, theirs: Side<'_>, operation: EntryId) -> Option<Body> {
    let mut add: Vec<String> = [ours, theirs]
        .into_iter()
        .flat_map(|side| side.meta.tags.clone())
        .collect();
    add.sort();
    add.dedup();
    let own = ours.own.iter().chain(theirs.own);
    let mut remove: Vec<String> = own
        .filter_map(|entry| match &entry.body {
            Body::Tagged(tagged) => Some(tagged.remove.clone()),
            _ => None,
        })
        .flatten()
        .filter(|tag| !add.contains(tag))
        .collect();
    remove.sort();
    remove.dedup();
    (!add.is_empty() || !remove.is_empty()).then(|| {
        Body::Tagged(Tagged {
            add,
            remove,
            operation,
        })
    })
}
