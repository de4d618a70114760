//! What is rejected of a log from elsewhere before it is written: openings of other sessions, and
//! entries beyond the limits that hold for those written here.

use super::NewBranch;
use crate::{StoreError, StoreResult};
use tertulia_core::entry::{Body, Entry, MESSAGE_LIMIT};
use tertulia_core::id::SessionId;

/// Maximum length of an entry's line: that of a message with attachments and calls, each of them at
/// its own limit, and escaped.
const LINE_LIMIT: usize = 6 * MESSAGE_LIMIT;

/// Returns the session that an entry opens.
pub(crate) fn opened(entry: &Entry) -> Option<SessionId> {
    match &entry.body {
        Body::Created(created) => Some(created.session),
        Body::Forked(forked) => Some(forked.session),
        _ => None,
    }
}

/// Returns the other session that the last opening among the entries of a log names. A log of a fork
/// may begin with that of its original; one whose opening was lost has none.
pub(crate) fn other_opened(id: SessionId, entries: &[Entry]) -> Option<SessionId> {
    let last = entries.iter().filter_map(opened).next_back();
    last.filter(|session| *session != id)
}

/// Returns the error for a log that opens another session than the one that it is called.
pub(crate) fn opens_another(id: SessionId, other: SessionId) -> StoreError {
    StoreError::Refused(format!(
        "the log of session {id} says that it is session {other}"
    ))
}

/// Rejects a branch that is not one of its session.
pub(super) fn check_new(new: &NewBranch) -> StoreResult<()> {
    new.entries.iter().try_for_each(check_size)?;
    match new.beside {
        // A session with the same id and another beginning is not the same session.
        Some(_) if new.entries.iter().any(|entry| opened(entry).is_some()) => {
            Err(StoreError::Exists(new.root))
        }
        Some(_) => Ok(()),
        None => match other_opened(new.root, &new.entries) {
            Some(other) => Err(opens_another(new.root, other)),
            None => Ok(()),
        },
    }
}

/// Rejects entries that do not continue a session.
pub(super) fn check_more(id: SessionId, entries: &[Entry]) -> StoreResult<()> {
    entries.iter().try_for_each(check_size)?;
    match entries.iter().find_map(opened) {
        Some(other) => Err(opens_another(id, other)),
        None => Ok(()),
    }
}

/// Rejects an entry that is longer than one written here can be.
fn check_size(entry: &Entry) -> StoreResult<()> {
    let (what, size, limit) = match &entry.body {
        Body::Message(message) if message.content.len() > MESSAGE_LIMIT => {
            ("message", message.content.len(), MESSAGE_LIMIT)
        }
        _ if entry.line().len() > LINE_LIMIT => ("entry", entry.line().len(), LINE_LIMIT),
        _ => return Ok(()),
    };
    Err(StoreError::Refused(format!(
        "entry {}: the {what} is {size} bytes long, {limit} are allowed",
        entry.seq
    )))
}
