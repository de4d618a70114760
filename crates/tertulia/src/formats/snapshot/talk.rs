//! A snapshot as a talk that can be taken in, and which of several saves of a talk is the newest.

use std::collections::HashSet;

use super::{Remembered, Snapshot};
use crate::entry::Kind;
use crate::formats::foreign::{Foreign, Said, keepable};
use crate::id::{EntryId, SessionId, derived, own_uuid};
use crate::redact::redact;

/// What the ids of this form's sessions and messages are derived from, beside their own.
const FORM: &str = "agent-chatter";

impl Snapshot {
    /// The session that it becomes: its own if this program named it, else one that is the same for
    /// every save of the talk.
    pub fn session_id(&self) -> SessionId {
        let own = own_uuid(&self.session);
        SessionId::new(own.unwrap_or_else(|| derived(&[FORM, &self.team, &self.session])))
    }

    /// The talk, to be taken in.
    pub fn talk(&self) -> Foreign {
        let mut taken = HashSet::new();
        let said = self.messages.iter().enumerate().map(|(place, message)| {
            let id = self.entry_id(place, message, &mut taken);
            let mut said = message.message();
            said.content = keepable(&message.content).into_owned();
            Said {
                id,
                at: message.at,
                message: said,
            }
        });
        let said = said.collect();
        Foreign {
            id: self.session_id(),
            kind: Kind::Team,
            team: Some(self.team.clone()),
            created_at: self.created_at,
            said,
            task: self
                .team_task
                .as_deref()
                .map(|task| keepable(task).into_owned()),
            closing: Vec::new(),
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
        let own = own_uuid(&message.id).map(EntryId::new);
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
