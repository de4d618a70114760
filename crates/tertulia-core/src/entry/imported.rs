//! Where an imported session comes from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pair::Budget;

/// What another program recorded about a session beside its messages. The session answers to `original`
/// wherever a session is named, and exports for that program carry it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The program, as `import --from` names it.
    pub program: String,
    /// The session's id there.
    pub original: String,
    /// The version of the program's format, where it says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the program last saved the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
    /// When the last message was said, where the messages have no times of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken_at: Option<Timestamp>,
    /// The project of the recorded working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The recorded working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The tags that the program gave the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How many worker calls the program allowed altogether.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rounds: Option<Budget>,
}

impl Imported {
    /// A session of a program about which nothing else is known.
    pub fn new(program: &str, original: &str) -> Imported {
        Imported {
            program: program.to_owned(),
            original: original.to_owned(),
            version: None,
            saved_at: None,
            spoken_at: None,
            project: None,
            cwd: None,
            tags: Vec::new(),
            max_rounds: None,
        }
    }
}
