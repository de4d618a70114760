//! Origin of an imported session.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pair::Budget;

/// Data that another program recorded about a session besides its messages. The session can be
/// referred to by `original`, and exports for that program contain it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The program, as named by `import --from`.
    pub program: String,
    /// Id of the session in that program.
    pub original: String,
    /// Version of the program's format, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the program last saved the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
    /// Time of the last message, if the messages have no times of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken_at: Option<Timestamp>,
    /// Project of the recorded working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// All identities of that project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_ids: Vec<String>,
    /// The recorded working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Git branch of the working directory, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The program's session that this one was started from, if recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ImportedParent>,
    /// The session of ours that the program's session was exported from, if the file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_from: Option<String>,
    /// Tags that the program gave the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Total number of worker calls that the program allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rounds: Option<Budget>,
}

/// Another session of the same program that a session was started from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedParent {
    /// Id of that session in the program.
    pub original: String,
    /// How the two are related.
    pub relation: ImportedRelation,
}

/// Relation of an imported session to the one that it was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportedRelation {
    /// It continues a copy of the other session's beginning.
    Fork,
    /// An agent of the other session delegated a task to it.
    Subagent,
}

impl Imported {
    /// Returns the origin of a session about which only program and id are known.
    pub fn new(program: &str, original: &str) -> Imported {
        Imported {
            program: program.to_owned(),
            original: original.to_owned(),
            version: None,
            saved_at: None,
            spoken_at: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            branch: None,
            parent: None,
            exported_from: None,
            tags: Vec::new(),
            max_rounds: None,
        }
    }
}
