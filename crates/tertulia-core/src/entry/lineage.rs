//! Relations between sessions: forks, merges, replays and subagents.

use serde::{Deserialize, Serialize};

use crate::entry::{Hash, Seal, Terms};
use crate::id::{Seq, SessionId};

/// Creation of a session that continues the log of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// Id of the new session.
    pub session: SessionId,
    /// The entry that it continues from.
    pub from: Origin,
    /// How the two sessions are related.
    pub relation: Relation,
    /// Title given by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Project, if it differs from the original's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// All identities of that project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<String>,
    /// Working directory, if it differs from the original's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Terms of the original when it was forked, if it was forked before its end: they may have changed
    /// since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Box<Terms>>,
    /// Seal of a sealed session: the original's, which the fork repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Box<Seal>>,
}

/// The entry that a fork continues from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The original session.
    pub id: SessionId,
    /// The last shared entry.
    pub seq: Seq,
    /// Hash of the last shared entry.
    pub hash: Hash,
}

/// Why a session was created from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The user asked for a fork.
    Fork,
    /// Two writers appended at once; the second one continued here.
    Conflict,
    /// Two sessions were merged.
    Merge,
    /// The human messages were replayed.
    Replay,
    /// An agent of another program's session delegated a task to it. The two share no entries.
    Subagent,
}

impl Relation {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            Relation::Fork => "fork",
            Relation::Conflict => "conflict",
            Relation::Merge => "merge",
            Relation::Replay => "replay",
            Relation::Subagent => "subagent",
        }
    }
}

/// The sessions that a merge joins. The merged session contains their common beginning, this entry,
/// and the messages that only one of them has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// End of the first session when it was merged.
    pub ours: Origin,
    /// End of the second session when it was merged.
    pub theirs: Origin,
}

/// The session that a replay plays again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// End of the replayed session.
    pub of: Origin,
    /// Agent that answers this time.
    pub agent: String,
    /// Model that answers this time, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
