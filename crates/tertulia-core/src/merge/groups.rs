//! Groups of entries that stay together in a merge, and their order.

use std::collections::HashMap;

use jiff::Timestamp;

use super::{MergeOrder, is_same};
use crate::entry::{Body, Entry, Kind, Role, SpeakerKind};
use crate::id::EntryId;

/// Entries that stay together.
#[derive(Clone, Debug)]
pub(super) struct Group<'a> {
    pub(super) entries: Vec<&'a Entry>,
    /// Time by which the group is sorted: at least that of the group before it, so that sorting keeps
    /// the order within a session.
    at: Timestamp,
    /// Whether it continues what the common part began, such as with the result of a tool call.
    continues: bool,
}

/// Returns the entries of a session that a merge copies, in groups.
pub(super) fn grouped(kind: Kind, own: &[Entry]) -> Vec<Group<'_>> {
    let copied: Vec<&Entry> = own.iter().filter(|entry| is_copied(&entry.body)).collect();
    let mut begins: Vec<bool> = copied.iter().map(|entry| begins(kind, entry)).collect();
    // Some programs use the same ids again: a result belongs to the last open call with its id.
    let mut open: HashMap<&str, usize> = HashMap::new();
    for (at, message) in copied.iter().enumerate() {
        let Some(message) = message.message() else {
            continue;
        };
        let calls = message.tool_calls.iter();
        open.extend(calls.map(|call| (call.id.as_str(), at)));
        let answers = message.tool_call_id.as_deref();
        if let Some(call) = answers.and_then(|id| open.remove(id)) {
            begins[call + 1..=at].fill(false);
        }
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (entry, begins) in copied.into_iter().zip(begins) {
        match groups.last_mut() {
            Some(last) if !begins => last.entries.push(entry),
            last => {
                let at = last.map_or(entry.at, |last| last.at.max(entry.at));
                groups.push(Group {
                    entries: vec![entry],
                    at,
                    continues: !begins,
                });
            }
        }
    }
    groups
}

/// Returns true for the entries that make up a conversation. The others concern one session (its
/// title, an agent's own session) or refer to entries by number (compaction summaries).
fn is_copied(body: &Body) -> bool {
    matches!(
        body,
        Body::Message(_)
            | Body::Failed(_)
            | Body::Thought(_)
            | Body::Tasked(_)
            | Body::Switched(_)
            | Body::Lost(_)
            | Body::Shell(_)
            | Body::ShellOutput(_)
    )
}

/// Returns true if a group begins with this entry, unless a tool call before it is still open.
fn begins(kind: Kind, entry: &Entry) -> bool {
    entry.message().is_some_and(|message| match kind {
        Kind::Pair => message.speaker.kind == SpeakerKind::Human,
        Kind::Chat | Kind::Team => message.role != Role::Tool && message.tool_call_id.is_none(),
    })
}

/// Returns the groups of two sessions in one order. Entries that both have occur once.
pub(super) fn in_order<'a>(
    ours: Vec<Group<'a>>,
    theirs: Vec<Group<'a>>,
    order: MergeOrder,
) -> Vec<Vec<&'a Entry>> {
    let (first, second) = match order {
        MergeOrder::Time | MergeOrder::Ours => (ours, theirs),
        MergeOrder::Theirs => (theirs, ours),
    };
    let (first, second) = without_shared(first, second);
    let mut first = first.into_iter().enumerate().peekable();
    let mut second = second.into_iter().peekable();
    let mut sorted = Vec::new();
    while let Some((group, after)) = second.peek() {
        let goes_first = first.next_if(|(at, next)| match (next.continues, group.continues) {
            (true, _) => true,
            // It may not overtake an entry of its own session that the first session has, too.
            _ if after.is_some_and(|after| *at <= after) => true,
            (false, true) => false,
            (false, false) => order != MergeOrder::Time || next.at <= group.at,
        });
        let next = goes_first.map(|(_, group)| group);
        let next = next.or_else(|| Some(second.next()?.0));
        sorted.extend(next.map(|group| group.entries));
    }
    sorted.extend(first.map(|(_, group)| group.entries));
    sorted
}

/// A group, and the last group of the other session that it must follow.
type Following<'a> = (Group<'a>, Option<usize>);

/// Removes the entries from `second` that `first` has. A group of which `first` has a part is
/// completed there.
fn without_shared<'a>(
    mut first: Vec<Group<'a>>,
    second: Vec<Group<'a>>,
) -> (Vec<Group<'a>>, Vec<Following<'a>>) {
    let mut known: HashMap<EntryId, (usize, &Entry)> = HashMap::new();
    for (at, group) in first.iter().enumerate() {
        known.extend(group.entries.iter().map(|entry| (entry.id, (at, *entry))));
    }
    let mut after = None;
    let mut rest = Vec::new();
    for mut group in second {
        let mut shared = None;
        group.entries.retain(|entry| {
            let found = known
                .get(&entry.id)
                .filter(|(_, known)| is_same(known, entry));
            shared = found.map(|(at, _)| *at).or(shared);
            found.is_none()
        });
        match shared {
            Some(at) => {
                first[at].entries.append(&mut group.entries);
                after = after.max(Some(at));
            }
            None => rest.push((group, after)),
        }
    }
    (first, rest)
}
