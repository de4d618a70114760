//! Ids of other programs as sealed entries show them: hashes, so that the program's own file of the
//! session is recognised without the key.

use crate::entry::Body;

/// Hexadecimal digits of a hash.
const DIGITS: usize = 16;
/// Ids that one message shows: some have many requests, and any of them tells where it comes from.
const PER_MESSAGE: usize = 4;

/// What an id of another program names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenId {
    /// A session.
    Session,
    /// A request, or the usage of one.
    Usage,
}

/// Returns what a sealed session with this finder shows of an id.
pub fn hidden_id(finder: &str, kind: HiddenId, id: &str) -> String {
    let purpose = match kind {
        HiddenId::Session => "tertulia 2026 sealed session ids",
        HiddenId::Usage => "tertulia 2026 sealed usage ids",
    };
    let key = blake3::derive_key(purpose, finder.as_bytes());
    let hash = blake3::keyed_hash(&key, id.as_bytes());
    hash.to_hex()[..DIGITS].to_owned()
}

/// Returns what a sealed entry with this body shows of the ids in it.
pub(super) fn hidden_ids(finder: &str, body: &Body) -> Vec<String> {
    match body {
        Body::Linked(linked) => vec![hidden_id(finder, HiddenId::Session, &linked.native)],
        Body::Imported(imported) => vec![hidden_id(finder, HiddenId::Session, &imported.original)],
        Body::Message(message) => {
            let mut ids: Vec<&String> = message.usage_id.iter().chain(&message.requests).collect();
            ids.dedup();
            let ids = ids.into_iter().take(PER_MESSAGE);
            ids.map(|id| hidden_id(finder, HiddenId::Usage, id))
                .collect()
        }
        _ => Vec::new(),
    }
}
