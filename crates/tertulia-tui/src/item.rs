//! Items of a transcript.

use jiff::Timestamp;
use tertulia_core::entry::{Speaker, ToolCall, ToolOutcome};
use tertulia_core::id::Seq;
pub use tertulia_engine::event::Tone;

/// One item of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Sequence number of its log entry, if it has one.
    pub seq: Option<Seq>,
    /// Content.
    pub what: What,
}

impl Item {
    /// Creates an error notice that replaces content that could not be loaded.
    pub fn trouble(text: String) -> Item {
        let tone = Tone::Error;
        Item {
            seq: None,
            what: What::Notice { tone, text },
        }
    }
}

/// Content of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A message.
    Said(Said),
    /// A tool call, with its output once it has ended.
    Used(Used),
    /// Reasoning of an agent.
    Thought(String),
    /// A notice for the user.
    Notice {
        /// Severity.
        tone: Tone,
        /// Text.
        text: String,
    },
    /// Marks the end of the restored part of a session.
    Restored {
        /// Number of restored messages.
        messages: u64,
    },
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Speaker.
    pub speaker: Speaker,
    /// Display names of the addressees.
    pub to: Vec<String>,
    /// Time.
    pub at: Option<Timestamp>,
    /// Model that wrote it.
    pub model: Option<String>,
    /// Text as shown.
    pub text: String,
    /// Whether the message was cut off.
    pub interrupted: bool,
    /// Whether more text is still streaming in.
    pub streaming: bool,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// The call.
    pub call: ToolCall,
    /// Output and outcome, once the call has ended.
    pub output: Option<(String, ToolOutcome)>,
    /// Whether only one line of it is shown.
    pub folded: bool,
}
