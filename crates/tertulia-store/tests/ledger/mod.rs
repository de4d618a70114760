//! The ledger of usage, on real stores.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod counting;
mod coverage;
mod on_disk;
mod property;

use std::time::Duration;

use serde_json::Value;
use tertulia_core::entry::{Body, Message, Role, SpeakerKind, ToolCall, ToolOutcome, Usage};
use tertulia_core::query::{Filter, Trash};
use tertulia_core::stats::Cell;
use tertulia_store::{CaughtUp, Extent, Ledger, Progress, Store};
use tertulia_testkit::ask::now;
use tertulia_testkit::logs::message;

/// Returns an answer with usage. `original` is the identity of a copied answer.
fn answer(usage: Usage, original: Option<&str>) -> Body {
    Body::Message(Message {
        usage: Some(usage),
        usage_id: original.map(str::to_owned),
        model: Some("m-1".to_owned()),
        ..message("ada", SpeakerKind::Ai, Role::Assistant, "yes")
    })
}

/// Returns a message with a tool call.
fn call(id: &str, tool: &str, arguments: Value) -> Body {
    Body::Message(Message {
        tool_calls: vec![ToolCall {
            id: id.to_owned(),
            name: tool.to_owned(),
            arguments,
        }],
        ..message("ada", SpeakerKind::Ai, Role::Assistant, "")
    })
}

/// Returns the result of a tool call.
fn result(id: &str, outcome: ToolOutcome) -> Body {
    Body::Message(Message {
        tool_call_id: Some(id.to_owned()),
        outcome: Some(outcome),
        ..message("tool", SpeakerKind::Tool, Role::Tool, "done")
    })
}

/// Opens the ledger of a store.
fn ledger(store: &dyn Store) -> Ledger {
    Ledger::of(store, Duration::from_secs(5)).unwrap()
}

/// Reads everything that is new.
fn catch_up(ledger: &mut Ledger, store: &dyn Store) -> CaughtUp {
    now(ledger.catch_up(store, Extent::All, &Progress::unseen())).unwrap()
}

/// Returns a filter that selects everything.
fn everything() -> Filter {
    Filter {
        trash: Trash::With,
        ..Filter::default()
    }
}

/// Returns the sums of a ledger: messages and usage.
pub(crate) fn sums(ledger: &Ledger) -> (u64, Usage) {
    let cells = ledger.cells(&everything()).unwrap();
    let add = |(messages, usage): (u64, Usage), cell: &Cell| {
        (messages + cell.messages, usage.plus(cell.usage))
    };
    cells.iter().fold((0, Usage::default()), add)
}

/// Returns everything that a ledger answers, in a stable order.
fn everything_in(ledger: &Ledger) -> String {
    let all = everything();
    let mut lines: Vec<String> = Vec::new();
    let cells = ledger.cells(&all).unwrap();
    lines.extend(cells.iter().map(|cell| format!("{cell:?}")));
    let sessions = ledger.sessions(&all).unwrap();
    lines.extend(sessions.iter().map(|session| format!("{session:?}")));
    let tools = ledger.tools(&all).unwrap();
    lines.extend(tools.iter().map(|tool| format!("{tool:?}")));
    let files = ledger.files(&all).unwrap();
    lines.extend(files.iter().map(|file| format!("{file:?}")));
    lines.sort();
    lines.join("\n")
}
