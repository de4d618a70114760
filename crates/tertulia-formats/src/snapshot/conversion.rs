//! Converts a snapshot for import, and compares several saves of one session.

use std::collections::HashSet;

use super::{Remembered, Snapshot};
use tertulia_core::entry::{Imported, Kind};
use tertulia_core::foreign::{Changes, Foreign, Identity, Said};
use tertulia_core::id::{EntryId, SessionId, derived, foreign_uuid};
use tertulia_core::redact::redact;

/// Name of the format, part of the derived ids of sessions and messages.
pub(super) const FORM: &str = "agent-chatter";

impl Snapshot {
    /// Returns the id of the session to create: its own UUID, or one derived from team and session,
    /// which is the same for every save.
    pub fn session_id(&self) -> SessionId {
        let own = foreign_uuid(&self.session);
        SessionId::new(own.unwrap_or_else(|| derived(&[FORM, &self.team, &self.session])))
    }

    /// Converts the snapshot to a session for import.
    pub fn talk(&self) -> Foreign {
        let mut taken = HashSet::new();
        let mut changes = Changes::default();
        let said = self.messages.iter().enumerate().map(|(place, message)| {
            let id = self.entry_id(place, message, &mut taken);
            let mut said = message.message();
            said.content = changes.keepable(&message.content);
            Said {
                id,
                at: message.at,
                message: said,
                compacts: None,
                thought: None,
            }
        });
        let said = said.collect();
        let task = self.team_task.as_deref().map(|task| changes.keepable(task));
        Foreign {
            id: self.session_id(),
            kind: Kind::Team,
            title: None,
            team: Some(self.team.clone()),
            created_at: self.created_at,
            said,
            task,
            closing: Vec::new(),
            source: Imported {
                saved_at: Some(self.updated_at),
                ..Imported::new(FORM, &self.session)
            },
            changes,
            identity: Identity::Words,
            fork: None,
        }
    }

    /// Returns true if this is an earlier state of the other snapshot's session.
    pub fn is_beginning_of(&self, other: &Snapshot) -> bool {
        self.session_id() == other.session_id()
            && self.team == other.team
            && other.messages.starts_with(&self.messages)
    }

    /// Returns the entry id of a message. Two saves that differ in the same message yield different
    /// ids, unless the message has a UUID.
    fn entry_id(
        &self,
        place: usize,
        message: &Remembered,
        taken: &mut HashSet<EntryId>,
    ) -> EntryId {
        let own = foreign_uuid(&message.id).map(EntryId::new);
        if let Some(own) = own.filter(|own| !taken.contains(own)) {
            taken.insert(own);
            return own;
        }
        let id = EntryId::new(derived(&[
            FORM,
            &self.team,
            &self.session,
            &place.to_string(),
            &message.id,
            &message.at.to_string(),
            &message.speaker.id,
            // The id is stored, so no secret may be part of it.
            &redact(&message.content).text,
        ]));
        taken.insert(id);
        id
    }
}
