//! The JSON document of `replay --json`.

use serde_json::{Value, json};
use tertulia_core::entry::ToolCall;
use tertulia_core::replay::{AnswerEnd, RecordedTurn, usage_of};

use super::play::PlayEnd;
use super::{Outcome, Prices, diverged};

/// Returns the document of all replays, or of the plans for a dry run.
pub fn of(outcomes: &[Outcome], prices: &Prices, dry_run: bool) -> Value {
    let replays = outcomes.iter().map(|outcome| match dry_run {
        true => replay(outcome, planned_turns(outcome), "planned", prices),
        false => replay(outcome, compared_turns(outcome), status(outcome), prices),
    });
    json!({ "replays": replays.collect::<Vec<Value>>(), "diverged": diverged(outcomes) })
}

fn replay(outcome: &Outcome, turns: Vec<Value>, status: &str, prices: &Prices) -> Value {
    let (plan, played) = (&outcome.plan, outcome.played.as_ref());
    let original = &plan.original.recording;
    let error = outcome
        .error()
        .map(|error| json!({ "kind": error.kind().name(), "message": error.words() }));
    json!({
        "of": plan.original.meta.id,
        "session": played.and_then(|played| played.session),
        "agent": plan.agent,
        "model": plan.model,
        "turns": turns,
        "first_divergence": first_divergence(outcome),
        "tokens": { "original": tokens(&original.turns), "replay": tokens(outcome.turns()) },
        "cost": {
            "original": prices.dollars(&original.turns),
            "replay": prices.dollars(outcome.turns()),
        },
        "status": status,
        "error": error,
    })
}

fn status(outcome: &Outcome) -> &'static str {
    match outcome.played.as_ref().map(|played| &played.end) {
        Some(PlayEnd::Completed) => "completed",
        Some(PlayEnd::Failed(_)) => "failed",
        Some(PlayEnd::Stopped(_)) => "cancelled",
        None => "not_played",
    }
}

fn planned_turns(outcome: &Outcome) -> Vec<Value> {
    let turns = outcome.plan.original.recording.turns.iter();
    let planned = turns.map(|turn| {
        let calls = turn.calls.iter().filter(|call| call.result.is_some());
        let calls: Vec<Value> = calls.map(|call| call_object(&call.call)).collect();
        json!({ "prompt": turn.prompt, "recorded_calls": calls })
    });
    planned.collect()
}

fn compared_turns(outcome: &Outcome) -> Vec<Value> {
    let same = |same: Option<bool>| match same {
        Some(true) => json!("same"),
        Some(false) => json!("other"),
        None => Value::Null,
    };
    let turns = outcome.comparison.turns.iter();
    let turns = turns.zip(&outcome.plan.original.recording.turns);
    let compared = turns.map(|(compared, turn)| {
        json!({
            "prompt": turn.prompt,
            "tools": same(compared.same_tools),
            "text": same(compared.same_text),
            "similarity": compared.similarity,
            "result": compared.result.name(),
        })
    });
    compared.collect()
}

fn first_divergence(outcome: &Outcome) -> Value {
    let Some(at) = outcome.comparison.first_divergence() else {
        return Value::Null;
    };
    json!({
        "turn": at + 1,
        "kind": outcome.comparison.turns[at].result.name(),
        "ours": side(outcome.plan.original.recording.turns.get(at)),
        "theirs": side(outcome.turns().get(at)),
    })
}

/// Returns what an agent did in a turn; null if it did nothing.
fn side(turn: Option<&RecordedTurn>) -> Value {
    let Some(turn) = turn.filter(|turn| !turn.is_silent()) else {
        return Value::Null;
    };
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .map(|call| call_object(&call.call))
        .collect();
    let failure = match &turn.end {
        AnswerEnd::Failed(message) => Some(message),
        AnswerEnd::Complete | AnswerEnd::CutOff => None,
    };
    json!({ "tools": calls, "text": turn.text, "failure": failure })
}

fn call_object(call: &ToolCall) -> Value {
    json!({ "name": call.name, "arguments": call.arguments })
}

fn tokens(turns: &[RecordedTurn]) -> Value {
    usage_of(turns).map_or(Value::Null, |usage| {
        json!({
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_written": usage.cache_written,
            "estimated": usage.estimated,
        })
    })
}
