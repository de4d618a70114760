//! The difference of two sessions as a JSON document and as a page.

mod page;

use serde_json::{Value, json};

use tertulia_core::diff::words::words;
use tertulia_core::diff::{Common, Comparison, Item};
use tertulia_core::entry::Message;
use tertulia_core::id::Seq;
use tertulia_core::session::SessionMeta;

use crate::json::entry;
pub use page::page;

/// Two compared sessions.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// Metadata of the first session.
    pub a: &'a SessionMeta,
    /// Metadata of the second session.
    pub b: &'a SessionMeta,
    /// The last entry that both have, or [`Seq::START`].
    pub shared: Seq,
    /// The difference after it.
    pub comparison: &'a Comparison<'a>,
}

impl Compared<'_> {
    /// Returns what the sessions have in common.
    pub fn common(&self) -> Common {
        match self.comparison.has_common() {
            _ if self.shared > Seq::START => Common::Ancestor,
            true => Common::Alignment,
            false => Common::None,
        }
    }

    /// Returns how many entries both have by hash, or how many messages are equal if they share none.
    pub fn common_entries(&self) -> u64 {
        match self.shared {
            Seq::START => self.comparison.equal() as u64,
            shared => shared.0,
        }
    }
}

/// Returns the JSON document of `diff`.
pub fn document(compared: &Compared<'_>) -> Value {
    let comparison = compared.comparison;
    let changed: Vec<Value> = comparison
        .changed()
        .map(|(a, b)| {
            let (text_a, text_b) = (a.text(), b.text());
            let words = words(&text_a, &text_b).into_iter();
            let words = words.map(|part| json!({ "op": part.op.name(), "text": part.text }));
            json!({ "a": item(a), "b": item(b), "words": words.collect::<Vec<_>>() })
        })
        .collect();
    json!({
        "a": session(compared.a),
        "b": session(compared.b),
        "common": {
            "entries": compared.common_entries(),
            "seq": compared.shared,
            "kind": compared.common().name(),
        },
        "only_a": comparison.only_a().map(item).collect::<Vec<_>>(),
        "only_b": comparison.only_b().map(item).collect::<Vec<_>>(),
        "changed": changed,
        "identical": comparison.is_identical(),
    })
}

/// Returns a session by which another document refers to it.
pub fn session(meta: &SessionMeta) -> Value {
    json!({
        "id": meta.id,
        "title": meta.title,
        "kind": meta.kind.name(),
        "messages": meta.messages,
        "seq": meta.head.seq,
    })
}

/// Returns a message as `show --json` does, or a tool call with its result.
fn item(item: &Item<'_>) -> Value {
    let Some(call) = item.call else {
        return entry(item.entry);
    };
    let result = item.result.map(|(_, result)| result);
    json!({
        "seq": item.entry.seq,
        "at": item.entry.at,
        "id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "result": result.map(|result| &result.content),
        "outcome": result.and_then(Message::tool_outcome),
    })
}

/// Describes how many items differ, for users.
pub fn counts(comparison: &Comparison<'_>) -> String {
    let counted = |count: usize| format!("{count} {}", comparison.scope.items(count));
    format!(
        "{} only in the first, {} only in the second, {} changed.",
        counted(comparison.only_a().count()),
        comparison.only_b().count(),
        comparison.changed().count()
    )
}
