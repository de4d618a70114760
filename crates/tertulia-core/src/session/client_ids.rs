//! Ids that clients gave their messages: a client that does not know whether its message arrived
//! sends it again under the same id.

use crate::entry::Message;

/// Number of ids that are kept. A client repeats only its last messages.
const KEPT: usize = 64;

/// Adds the id of a message.
pub(super) fn note(ids: &mut Vec<String>, message: &Message) {
    let Some(id) = &message.client_id else {
        return;
    };
    ids.retain(|known| known != id);
    ids.push(id.clone());
    let surplus = ids.len().saturating_sub(KEPT);
    ids.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Role, human, plain};

    #[test]
    fn the_last_ids_are_kept_once_each() {
        let mut ids = Vec::new();
        note(&mut ids, &plain(&human(), Role::User, "x".to_owned()));
        assert!(ids.is_empty());
        for number in 0..KEPT + 2 {
            let message = Message {
                client_id: Some(format!("m{number}")),
                ..plain(&human(), Role::User, "x".to_owned())
            };
            note(&mut ids, &message);
            note(&mut ids, &message);
        }
        assert_eq!(ids.len(), KEPT);
        assert_eq!(ids.first().map(String::as_str), Some("m2"));
    }
}
