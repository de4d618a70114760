//! One item of a comparison: a message, or a tool call with its result.

use std::borrow::Cow;
use std::collections::HashMap;

use super::words::tokens;
use crate::align::Key;
use crate::entry::{Entry, Message, ToolCall};

/// Maximum number of words by which two texts are compared for likeness.
const WORDS: usize = 1024;

/// A message, or a tool call with its result.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// The entry of the message, or of the message that makes the call.
    pub entry: &'a Entry,
    /// The message.
    pub message: &'a Message,
    /// The tool call, if tool calls are compared.
    pub call: Option<&'a ToolCall>,
    /// The entry and the message with the result of the call, if there is one.
    pub result: Option<(&'a Entry, &'a Message)>,
    by_name: bool,
    key: Key,
    class: Key,
}

/// Returns the messages among entries.
pub(super) fn messages(entries: &[Entry], by_name: bool) -> Vec<Item<'_>> {
    let messages = entries
        .iter()
        .filter_map(|entry| Some((entry, entry.message()?)));
    messages
        .map(|(entry, message)| Item::new(entry, message, None, None, by_name))
        .collect()
}

/// Returns the tool calls among entries, each with the first result after it.
pub(super) fn tool_calls(entries: &[Entry]) -> Vec<Item<'_>> {
    let mut calls: Vec<(&Entry, &Message, &ToolCall)> = Vec::new();
    let mut results: Vec<Option<(&Entry, &Message)>> = Vec::new();
    // Some programs use the same ids again: a result belongs to the last open call with its id.
    let mut open: HashMap<&str, usize> = HashMap::new();
    for entry in entries {
        let Some(message) = entry.message() else {
            continue;
        };
        for call in &message.tool_calls {
            open.insert(&call.id, calls.len());
            calls.push((entry, message, call));
            results.push(None);
        }
        let answers = message.tool_call_id.as_deref();
        if let Some(at) = answers.and_then(|id| open.remove(id)) {
            results[at] = Some((entry, message));
        }
    }
    let calls = calls.into_iter().zip(results);
    calls
        .map(|((entry, message, call), result)| {
            Item::new(entry, message, Some(call), result, false)
        })
        .collect()
}

impl<'a> Item<'a> {
    fn new(
        entry: &'a Entry,
        message: &'a Message,
        call: Option<&'a ToolCall>,
        result: Option<(&'a Entry, &'a Message)>,
        by_name: bool,
    ) -> Item<'a> {
        let mut item = Item {
            entry,
            message,
            call,
            result,
            by_name,
            key: 0,
            class: 0,
        };
        item.class = item.hash_of_class();
        item.key = item.hash_of_content();
        item
    }

    /// Returns the identity of the content: equal for items that count as equal.
    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// Returns what must be equal for two items to count as one that changed.
    pub(super) fn class(&self) -> Key {
        self.class
    }

    fn hash_of_class(&self) -> Key {
        let mut parts = vec![self.message.thread.as_deref().unwrap_or_default()];
        match self.call {
            Some(call) => parts.push(&call.name),
            None => parts.push(self.message.role.name()),
        }
        if self.by_name {
            parts.push(&self.message.speaker.id);
        }
        hash(&parts)
    }

    fn hash_of_content(&self) -> Key {
        let class = self.class.to_string();
        let arguments = |call: &ToolCall| call.arguments.to_string();
        match self.call {
            Some(call) => {
                let result = self.result.map(|(_, result)| result);
                let outcome = result.and_then(Message::tool_outcome);
                let outcome = outcome.map_or("", |outcome| outcome.name());
                let content = result.map_or("", |result| &result.content);
                hash(&[&class, &arguments(call), outcome, content])
            }
            None => {
                let calls = self.message.tool_calls.iter();
                let calls: Vec<(&str, String)> = calls
                    .map(|call| (call.name.as_str(), arguments(call)))
                    .collect();
                let mut parts = vec![class.as_str(), &self.message.content];
                for (name, arguments) in &calls {
                    parts.extend([name, arguments.as_str()]);
                }
                hash(&parts)
            }
        }
    }

    /// Returns the text by which two items are compared word by word.
    pub fn text(&self) -> Cow<'a, str> {
        match self.call {
            Some(call) => {
                let mut text = call_text(call);
                if let Some((_, result)) = self.result {
                    text.push('\n');
                    text.push_str(&result.content);
                }
                text.into()
            }
            None if self.message.tool_calls.is_empty() => Cow::Borrowed(&self.message.content),
            None => {
                let mut text = self.message.content.clone();
                for call in &self.message.tool_calls {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&call_text(call));
                }
                text.into()
            }
        }
    }
}

fn call_text(call: &ToolCall) -> String {
    format!("→ {} {}", call.name, call.arguments)
}

/// Returns a hash of texts, in which the length of each counts.
fn hash(parts: &[&str]) -> Key {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Key::from_le_bytes(bytes)
}

/// The words of a text, for a quick comparison with those of another.
#[derive(Clone, Debug)]
pub(super) struct Likeness {
    /// Hashes of the words, sorted.
    words: Box<[u32]>,
}

impl Likeness {
    pub(super) fn of(text: &str) -> Likeness {
        // Punctuation is alike in any two texts, above all in arguments of tools.
        let words = tokens(text).filter(|token| token.starts_with(char::is_alphanumeric));
        let mut words: Vec<u32> = words.take(WORDS).map(word_hash).collect();
        words.sort_unstable();
        Likeness {
            words: words.into(),
        }
    }

    /// Returns the share of words that both texts have, from 0 to 1.
    pub(super) fn to(&self, other: &Likeness) -> f32 {
        let (one, other) = (&self.words, &other.words);
        let total = one.len() + other.len();
        // Even if the shorter text were a part of the longer one, it might not be enough.
        if total == 0 || share(one.len().min(other.len()), total) < crate::align::ALIKE {
            return 0.0;
        }
        let (mut at, mut at_other, mut common) = (0, 0, 0);
        while at < one.len() && at_other < other.len() {
            match one[at].cmp(&other[at_other]) {
                std::cmp::Ordering::Less => at += 1,
                std::cmp::Ordering::Greater => at_other += 1,
                std::cmp::Ordering::Equal => {
                    (at, at_other, common) = (at + 1, at_other + 1, common + 1);
                }
            }
        }
        share(common, total)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the counts are far below the limit of exact numbers"
)]
fn share(common: usize, total: usize) -> f32 {
    2.0 * common as f32 / total as f32
}

/// Returns a hash of a word (FNV-1a), which need not resist attacks: it only finds similar texts.
fn word_hash(word: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    word.bytes().fold(0x811c_9dc5, step)
}
