//! Converts the events of a pair to JSON objects of a stream.

use serde_json::{Value, json};
use tertulia_core::pair::state::CORRECTIONS;
use tertulia_engine::pair::{PairEvent, PairRole};
use tertulia_formats::json;

/// Converts an event.
pub fn object(event: &PairEvent) -> Value {
    match event {
        PairEvent::Round(progress) => json!({
            "type": "round",
            "round": progress.round,
            "worker_calls": progress.worker_calls,
            "remaining": json::remaining(progress.remaining),
            "tokens": { "input": progress.tokens.input, "output": progress.tokens.output },
            "elapsed_ms": i64::try_from(progress.elapsed.as_millis()).unwrap_or(i64::MAX),
        }),
        PairEvent::Budgeted(budget) => {
            json!({ "type": "budget", "remaining": json::remaining(*budget) })
        }
        PairEvent::Correcting { attempt } => {
            json!({ "type": "correction", "attempt": attempt, "of": CORRECTIONS })
        }
        PairEvent::TakenUp => json!({ "type": "taken_up" }),
        PairEvent::Chose(model) => json!({ "type": "worker_model", "model": model }),
        PairEvent::WorkerFailed(error) => json!({
            "type": "error",
            "speaker": PairRole::Worker.name(),
            "kind": error.kind.name(),
            "message": error.message,
            "hint": error.hint,
        }),
    }
}
