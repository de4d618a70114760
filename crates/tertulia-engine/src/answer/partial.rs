//! The part of an answer that is not saved yet, and how much of a text a message holds.

use jiff::Timestamp;
use tertulia_core::entry::{Body, MESSAGE_LIMIT, Thought, ToolCall, Usage};

/// What the user has seen of an answer that is not saved yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialAnswer {
    /// The text.
    pub text: String,
    /// The reasoning before it.
    pub reasoning: String,
}

/// The part of an answer that is not saved yet.
#[derive(Debug, Default)]
pub(super) struct Partial {
    pub(super) text: Limited,
    pub(super) reasoning: Limited,
    pub(super) usage: Option<Usage>,
    /// Requests that the usage is of.
    pub(super) requests: Vec<String>,
    /// Since when there is text that no draft holds.
    pub(super) undrafted_since: Option<Timestamp>,
    /// Calls of the agent's own tools without a result.
    pub(super) open: Vec<ToolCall>,
    /// Whether the agent has done anything besides sending text.
    pub(super) acted: bool,
    /// Whether a part of the answer is a separate message already.
    pub(super) parted: bool,
}

/// Text of which a message holds the beginning.
#[derive(Debug, Default)]
pub(super) struct Limited {
    pub(super) text: String,
    /// Number of bytes after the limit was reached.
    cut: usize,
}

impl Limited {
    fn push(&mut self, more: &str) {
        if self.cut > 0 {
            self.cut += more.len();
        } else {
            self.cut = append_within_limit(&mut self.text, more);
        }
    }

    /// Takes the text, with a mark where it was cut.
    fn take(&mut self) -> String {
        let Limited { mut text, cut } = std::mem::take(self);
        if cut > 0 {
            text.push_str(&cut_mark(cut));
        }
        text
    }
}

impl Partial {
    pub(super) fn write(&mut self, text: &str, at: Timestamp) {
        // Line breaks that separate a part from the previous one do not belong to the new message.
        let text = if self.parted && self.text.text.is_empty() {
            text.trim_start_matches('\n')
        } else {
            text
        };
        if text.is_empty() {
            return;
        }
        self.undrafted_since.get_or_insert(at);
        self.text.push(text);
    }

    pub(super) fn think(&mut self, text: &str, at: Timestamp) {
        if text.is_empty() {
            return;
        }
        self.undrafted_since.get_or_insert(at);
        self.reasoning.push(text);
    }

    /// Takes reasoning that no answer followed.
    pub(super) fn thought(&mut self) -> Option<Body> {
        let text = self.reasoning.take();
        let thread = String::new();
        (!text.trim().is_empty()).then(|| Body::Thought(Thought { thread, text }))
    }

    /// Takes what was said since the last message.
    pub(super) fn take_said(&mut self) -> PartialAnswer {
        self.undrafted_since = None;
        PartialAnswer {
            text: self.text.take(),
            reasoning: self.reasoning.take(),
        }
    }
}

pub(super) fn cut_mark(bytes: usize) -> String {
    format!("\n[cut here: {bytes} more bytes]")
}

/// Appends what a message has room for. Returns the number of bytes that did not fit.
pub(super) fn append_within_limit(text: &mut String, more: &str) -> usize {
    // Text must not contain NUL, but some programs print one.
    let more = more.replace('\0', "\u{fffd}");
    let room = (MESSAGE_LIMIT - 100).saturating_sub(text.len());
    let mut fits = room.min(more.len());
    while !more.is_char_boundary(fits) {
        fits -= 1;
    }
    text.push_str(&more[..fits]);
    more.len() - fits
}
