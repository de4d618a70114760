//! Items of a transcript.

use jiff::Timestamp;
use tertulia_core::entry::{Speaker, ToolCall, ToolOutcome};
use tertulia_core::id::Seq;
pub use tertulia_engine::event::Tone;
use tertulia_engine::text::tools;

/// One item of a transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Sequence number of its log entry, if it has one.
    pub seq: Option<Seq>,
    /// Content.
    pub what: What,
}

impl Item {
    /// Speaker of a message or of a tool call.
    pub fn speaker(&self) -> Option<&Speaker> {
        match &self.what {
            What::Said(said) => Some(&said.speaker),
            What::Used(used) => Some(&used.speaker),
            What::Thought { .. }
            | What::Notice { .. }
            | What::Summary { .. }
            | What::Restored { .. } => None,
        }
    }

    /// Creates an error notice that replaces content that could not be loaded.
    pub fn trouble(text: String) -> Item {
        let tone = Tone::Error;
        Item {
            seq: None,
            what: What::Notice { tone, text },
        }
    }
}

/// Who an item is by, as its heading shows it.
#[derive(Clone, Copy, Debug)]
pub struct By<'i> {
    /// Speaker.
    pub speaker: &'i Speaker,
    /// Time.
    pub at: Option<Timestamp>,
    /// Model.
    pub model: Option<&'i str>,
}

/// Content of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A message.
    Said(Said),
    /// A tool call, with its output once it has ended.
    Used(Used),
    /// Reasoning of an agent.
    Thought {
        /// Text.
        text: String,
        /// Whether only one line of it is shown.
        folded: bool,
    },
    /// A notice for the user.
    Notice {
        /// Severity.
        tone: Tone,
        /// Text.
        text: String,
    },
    /// Summary that replaces the older messages for the agent.
    Summary {
        /// Sequence number of the last entry that it covers.
        upto: u64,
        /// The summary.
        text: String,
        /// Whether only one line of it is shown.
        folded: bool,
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

/// Number of lines up to which a change is unfolded.
const SHORT_CHANGE: usize = 20;
/// Name of the tool call that shows a shell command of the user.
pub const COMMAND: &str = "!";

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// The call.
    pub call: ToolCall,
    /// Agent that made it.
    pub speaker: Speaker,
    /// Time.
    pub at: Option<Timestamp>,
    /// Model that made it.
    pub model: Option<String>,
    /// Output and outcome, once the call has ended.
    pub output: Option<(String, ToolOutcome)>,
    /// Last lines of the output while the tool runs.
    pub live: String,
    /// Whether only one line of it is shown.
    pub folded: bool,
}

impl Said {
    /// Who said it.
    pub fn by(&self) -> By<'_> {
        By {
            speaker: &self.speaker,
            at: self.at,
            model: self.model.as_deref(),
        }
    }
}

impl Used {
    /// Sets the output of a call that has ended. A short change that was made is unfolded.
    pub fn end(&mut self, output: &str, outcome: ToolOutcome) {
        let shows = |change: String| change.lines().count() <= SHORT_CHANGE;
        if outcome == ToolOutcome::Ok && tools::change(&self.call, Some(output)).is_some_and(shows)
        {
            self.folded = false;
        }
        self.output = Some((output.to_owned(), outcome));
        self.live = String::new();
    }

    /// Who made the call.
    pub fn by(&self) -> By<'_> {
        By {
            speaker: &self.speaker,
            at: self.at,
            model: self.model.as_deref(),
        }
    }
}
