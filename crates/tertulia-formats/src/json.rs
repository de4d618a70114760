//! JSON objects for scripts. Their field names are a stable interface.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use tertulia_core::entry::{Body, Entry, Message};
use tertulia_core::pair::{Budget, Pair};
use tertulia_core::query::{Hit, Row};
use tertulia_core::search_text::highlighted;
use tertulia_core::session::{Log, Spoke};

/// Returns a session as shown in lists.
pub fn session(row: &Row) -> Map<String, Value> {
    let meta = &row.meta;
    let value = json!({
        "id": meta.id,
        "kind": meta.kind.name(),
        "title": meta.title,
        "team": meta.team,
        "project": meta.project,
        "cwd": meta.cwd,
        "tags": meta.tags,
        "created_at": meta.created_at,
        "updated_at": meta.updated_at,
        "messages": meta.messages,
        "tokens": { "input": meta.tokens.input, "output": meta.tokens.output },
        "agents": meta.agents,
        "parent": meta.parent,
        "status": meta.state(),
        "open": row.open,
    });
    let mut object = match value {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    if let Some(source) = &meta.source {
        object.insert("source".into(), json!(source));
    }
    if meta.seal.is_some() {
        object.insert("sealed".into(), json!(true));
    }
    if meta.is_locked() {
        object.insert("project".into(), Value::Null);
    }
    if let Some(merged) = &meta.merged {
        object.insert("merged".into(), json!(merged));
    }
    object
}

/// Returns a session with its speakers, entries and damage.
pub fn transcript(row: &Row, log: &Log) -> Map<String, Value> {
    let mut object = with_speakers(row);
    object.insert("entries".into(), entries(&log.entries).into());
    if !log.damage.is_empty() {
        object.insert("damage".into(), json!(log.damage));
    }
    object
}

/// Returns a session with its speakers, without entries.
pub fn with_speakers(row: &Row) -> Map<String, Value> {
    let mut object = session(row);
    let duration = row.meta.duration().as_millis();
    object.insert(
        "duration_ms".into(),
        json!(i64::try_from(duration).unwrap_or(i64::MAX)),
    );
    object.insert(
        "speakers".into(),
        row.meta.speakers.iter().map(spoke).collect(),
    );
    if let Some(pair) = &row.meta.pair {
        object.insert("pair".into(), self::pair(pair));
    }
    object
}

/// Returns the state of a pair session.
fn pair(pair: &Pair) -> Value {
    json!({
        "instructor": pair.instructor,
        "worker": pair.worker,
        "thinking": pair.thinking,
        "work_dir": pair.work_dir,
        "round": pair.round,
        "worker_calls": pair.worker_calls,
        "remaining": remaining(pair.remaining),
        "next": pair.next,
        "last_instruction": pair.last_instruction,
        "last_reply": pair.last_reply,
    })
}

/// Returns the remaining worker calls: a number, or `"unlimited"`.
pub fn remaining(budget: Budget) -> Value {
    match budget {
        Budget::Unlimited => json!("unlimited"),
        Budget::Calls(calls) => json!(calls),
    }
}

/// Returns a speaker with its counts.
fn spoke(spoke: &Spoke) -> Value {
    json!({
        "id": spoke.id,
        "name": spoke.name,
        "displayName": spoke.display_name,
        "type": spoke.kind,
        "messages": spoke.messages,
        "tokens": { "input": spoke.tokens.input, "output": spoke.tokens.output },
    })
}

/// Returns entries in order. A tool call also has the status of its result, if there is one.
pub fn entries(entries: &[Entry]) -> Vec<Value> {
    let results = entries.iter().filter_map(Entry::message);
    let outcomes: HashMap<&str, &str> = results
        .filter_map(|message| {
            let outcome = message.tool_outcome()?;
            Some((message.tool_call_id.as_deref()?, outcome.name()))
        })
        .collect();
    let mut all: Vec<Value> = entries.iter().map(entry).collect();
    let calls = all
        .iter_mut()
        .filter_map(|entry| entry.get_mut("tool_calls"));
    for call in calls.filter_map(Value::as_array_mut).flatten() {
        let outcome = call["id"].as_str().and_then(|id| outcomes.get(id));
        if let (Some(outcome), Some(call)) = (outcome.copied(), call.as_object_mut()) {
            call.insert("status".into(), json!(outcome));
        }
    }
    all
}

/// Returns an entry. A message also has the most common fields that its line omits as defaults.
pub fn entry(entry: &Entry) -> Value {
    let mut object = Map::new();
    object.insert("seq".into(), json!(entry.seq));
    object.insert("id".into(), json!(entry.id));
    object.insert("at".into(), json!(entry.at));
    object.insert("type".into(), json!(entry.body.kind()));
    object.insert("hash".into(), json!(entry.hash));
    if let Ok(Value::Object(line)) =
        serde_json::from_str(&entry.readable_line().unwrap_or(entry.line().into()))
    {
        for (key, value) in line {
            if !["v", "then"].contains(&key.as_str()) && !object.contains_key(&key) {
                object.insert(key, value);
            }
        }
    }
    if let Body::Message(message) = &entry.body {
        with_defaults(&mut object);
        with_outcome(&mut object, message);
    }
    Value::Object(object)
}

/// Returns a message that is held in memory because it could not be saved: it has no sequence
/// number.
pub fn held(message: &Message) -> Value {
    let mut object = Map::new();
    object.insert("type".into(), json!("message"));
    object.insert("durable".into(), json!(false));
    if let Ok(Value::Object(fields)) = serde_json::to_value(message) {
        object.extend(fields);
    }
    with_defaults(&mut object);
    with_outcome(&mut object, message);
    Value::Object(object)
}

/// Adds the outcome of a tool result, also if its line lacks it.
fn with_outcome(object: &mut Map<String, Value>, message: &Message) {
    if let Some(outcome) = message.tool_outcome() {
        object.insert("outcome".into(), json!(outcome));
    }
}

fn with_defaults(message: &mut Map<String, Value>) {
    // The prompted agent matters only for resuming: it is in the log, but not part of this
    // interface.
    message.remove("asked");
    for (key, default) in [
        ("reasoning", Value::Null),
        ("thread", Value::Null),
        ("tool_calls", json!([])),
        ("usage", Value::Null),
        ("model", Value::Null),
        ("interrupted", json!(false)),
    ] {
        message.entry(key).or_insert(default);
    }
}

/// Returns a search hit.
pub fn hit(hit: &Hit) -> Value {
    json!({
        "session": hit.session,
        "title": hit.title,
        "seq": hit.seq,
        "speaker": hit.speaker,
        "at": hit.at,
        "snippet": highlighted(&hit.snippet, "", ""),
        "score": (hit.score * 1000.0).round() / 1000.0,
    })
}
