//! The session that another one was made from.

use serde::{Deserialize, Serialize};

use crate::entry::{Imported, ImportedRelation, Origin, Relation};
use crate::foreign::Foreign;
use crate::id::{Seq, SessionId};

/// The session that another one was made from: a fork continues it, a subagent works for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Id of the original session.
    pub id: SessionId,
    /// The last shared entry; 0 if no entries are shared, as with subagents.
    pub seq: Seq,
    /// How the two sessions are related.
    pub relation: Relation,
}

impl Parent {
    pub(super) fn of(origin: &Origin, relation: Relation) -> Parent {
        Parent {
            id: origin.id,
            seq: origin.seq,
            relation,
        }
    }
    /// Returns the session whose agent started this one, if its program recorded that. The parent
    /// may be imported later: its id is derived from the program's own.
    pub(super) fn of_subagent(imported: &Imported) -> Option<Parent> {
        let parent = imported.parent.as_ref()?;
        (parent.relation == ImportedRelation::Subagent).then(|| Parent {
            id: Foreign::session_id(&imported.program, &parent.original),
            seq: Seq::START,
            relation: Relation::Subagent,
        })
    }

    /// Returns the entry of the parent from which the session continues; `None` for a subagent.
    pub fn place(&self) -> Option<Seq> {
        (self.relation != Relation::Subagent).then_some(self.seq)
    }
}
