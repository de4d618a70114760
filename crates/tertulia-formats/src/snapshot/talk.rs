//! A snapshot as a talk that can be taken in, and which of several saves of a talk is the newest.

use std::collections::HashSet;

use super::{Remembered, Snapshot};
use tertulia_core::entry::{Imported, Kind};
use tertulia_core::foreign::{Changes, Foreign, Said};
use tertulia_core::id::{EntryId, SessionId, derived, foreign_uuid};
use tertulia_core::redact::redact;

/// What the ids of this form's sessions and messages are derived from, beside their own.
pub(super) const FORM: &str = "agent-chatter";

impl Snapshot {
    /// The session that it becomes: its own UUID, else one that is the same for every save of the talk.
    pub fn session_id(&self) -> SessionId {
        let own = foreign_uuid(&self.session);
        SessionId::new(own.unwrap_or_else(|| derived(&[FORM, &self.team, &self.session])))
    }

    /// The talk, to be taken in.
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
        }
    }

    /// Whether this is an earlier state of the other's talk.
    pub fn is_beginning_of(&self, other: &Snapshot) -> bool {
        self.session_id() == other.session_id()
            && self.team == other.team
            && other.messages.starts_with(&self.messages)
    }

    /// The id of a message's entry. What two saves tell differently at one place has two ids.
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
            // The id is written down, so no secret may be part of it.
            &redact(&message.content).text,
        ]));
        taken.insert(id);
        id
    }
}
