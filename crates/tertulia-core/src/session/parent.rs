//! The session that another one was made from.

use serde::{Deserialize, Serialize};

use crate::entry::{Origin, Relation};
use crate::id::{Seq, SessionId};

/// The session that a fork continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// Id of the original session.
    pub id: SessionId,
    /// The last shared entry.
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
}
