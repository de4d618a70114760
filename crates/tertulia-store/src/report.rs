//! Results of maintenance: what a check found, what a rebuild counted, how a store is described.

use jiff::Timestamp;
use serde::Serialize;

use tertulia_core::session::Damage;

/// Whether a check only reads or also repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Read only.
    Look,
    /// Salvage readable entries. The timestamp names the copy of the damaged original.
    Repair(Timestamp),
}

/// Result of a check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Sessions checked.
    pub sessions: u64,
    /// Entries checked.
    pub entries: u64,
    /// Damaged or missing entries.
    pub damage: Vec<Damage>,
    /// Entries of sealed sessions whose words are not those that were sealed. No repair brings them back.
    pub altered: Vec<Damage>,
    /// Faults of the store itself, of derived rows or of the index, human-readable.
    pub faults: Vec<String>,
    /// Harmless oddities, human-readable.
    pub notes: Vec<String>,
    /// What a repair did, human-readable. Empty if nothing was repaired.
    pub repaired: Vec<String>,
    /// What a repair could not restore, human-readable.
    pub lost: Vec<String>,
}

impl Report {
    /// Returns true if the check found no damage and no faults.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.altered.is_empty() && self.faults.is_empty()
    }
}

/// Counts of a rebuild.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// List rows.
    pub sessions: u64,
    /// Entries in the search index.
    pub entries: u64,
}

/// Description of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// The backend: `sqlite`, `files` or `postgres`.
    pub backend: &'static str,
    /// Path or URL of the store.
    pub place: String,
    /// Version of its format.
    pub format: u32,
    /// Sessions, trashed ones included.
    pub sessions: u64,
    /// Sessions in the trash.
    pub trashed: u64,
    /// Entries.
    pub entries: u64,
    /// Bytes on disk without the index.
    pub bytes: u64,
    /// Bytes of the search index.
    pub index_bytes: u64,
    /// Product and version of the server, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Milliseconds of a round trip to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
}
