//! What a transcript shows, one thing after the other.

use jiff::Timestamp;
use tertulia_core::entry::{Speaker, ToolCall, ToolOutcome};
use tertulia_core::id::Seq;

/// One thing in a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its place in the log, if it is there.
    pub seq: Option<Seq>,
    /// What it is.
    pub what: What,
}

impl Item {
    /// Something that went wrong, in place of what should be there.
    pub fn trouble(text: String) -> Item {
        let tone = Tone::Error;
        Item {
            seq: None,
            what: What::Notice { tone, text },
        }
    }
}

/// What a thing in a transcript is.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Somebody said something.
    Said(Said),
    /// A tool was called for, and what came of it, once it did.
    Used(Used),
    /// An agent thought.
    Thought(String),
    /// Something that a person should know.
    Notice {
        /// How urgently.
        tone: Tone,
        /// In words.
        text: String,
    },
    /// Where the part that was restored ends.
    Restored {
        /// How many messages were.
        messages: u64,
    },
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// By whom.
    pub speaker: Speaker,
    /// To whom, as people know them.
    pub to: Vec<String>,
    /// When.
    pub at: Option<Timestamp>,
    /// By which model.
    pub model: Option<String>,
    /// The words, as they are shown.
    pub text: String,
    /// Whether it was cut off.
    pub interrupted: bool,
    /// Whether more is coming.
    pub streaming: bool,
}

/// A tool that was used.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// The call.
    pub call: ToolCall,
    /// What came out, and how the call ended.
    pub output: Option<(String, ToolOutcome)>,
    /// Whether only one line of it is shown.
    pub folded: bool,
}

/// How urgent a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Good to know.
    Note,
    /// Worth a look.
    Warning,
    /// Something went wrong.
    Error,
}
