//! The tool policy of a session, from the tightest to the loosest.

use serde::{Deserialize, Serialize};

/// Tool policy: which tools run, ask or are denied. A tighter one is less than a looser one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// There are no tools.
    None,
    /// Low-risk tools run at once; others are denied.
    #[default]
    Low,
    /// Low-risk tools run at once; others ask the user.
    Ask,
    /// Low-risk tools and edits of files run at once; others ask the user.
    Edits,
    /// All tools run.
    All,
}

impl Approval {
    /// All modes, in the order of the help.
    pub const ALL: [Approval; 5] = [
        Approval::Ask,
        Approval::Edits,
        Approval::Low,
        Approval::All,
        Approval::None,
    ];

    /// Returns the mode after this one for a user who switches by a key.
    #[must_use]
    pub const fn next(self) -> Approval {
        match self {
            Approval::Ask => Approval::Edits,
            Approval::Edits => Approval::All,
            Approval::All | Approval::Low | Approval::None => Approval::Ask,
        }
    }

    /// Returns the mode with this name.
    pub fn named(name: &str) -> Option<Approval> {
        let mut modes = Approval::ALL.into_iter();
        modes.find(|mode| mode.name().eq_ignore_ascii_case(name))
    }

    /// Name of the mode as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Approval::Ask => "ask",
            Approval::Edits => "edits",
            Approval::Low => "low",
            Approval::All => "all",
            Approval::None => "none",
        }
    }
}
