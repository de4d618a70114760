//! Writes a session as a trajectory of the Agent Trajectory Interchange Format (ATIF), which
//! evaluation and training programs read.

use serde_json::{Map, Value, json};
use tertulia_core::entry::{Body, Entry, Message, SpeakerKind, Usage};
use tertulia_core::session::{Log, SessionMeta};

use super::LeftOut;
use super::dialogue::{Answer, CallResult, Dialogue, Line, View, Words};

/// Version of the format: the first in which calls and results may have further fields.
const SCHEMA: &str = "ATIF-v1.7";

/// A session as a trajectory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trajectory {
    /// The document.
    pub content: String,
    /// Content of the session that the document lacks.
    pub left_out: LeftOut,
    /// Number of steps. A trajectory needs at least one.
    pub steps: usize,
}

/// Writes a session. `version` is the version of the program that ran it.
pub fn trajectory(meta: &SessionMeta, log: &Log, version: &str) -> Trajectory {
    let Dialogue { lines, left_out } = Dialogue::of(meta, log, View::AllAgents);
    let mut total = Usage::default();
    let mut steps = Vec::with_capacity(lines.len());
    for line in &lines {
        let number = steps.len() + 1;
        steps.push(match line {
            Line::User(words) => words_step(number, "user", words),
            Line::System(words) => words_step(number, "system", words),
            Line::Agent(answer) => {
                total = total.plus(answer.message.usage.unwrap_or_default());
                agent_step(number, answer)
            }
            // Only part of what one agent remembers.
            Line::Summary(..) => continue,
        });
    }
    let count = steps.len();
    let mut document = json!({
        "schema_version": SCHEMA,
        "session_id": meta.id,
        "agent": agent(meta, log, version),
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": total.input,
            "total_completion_tokens": total.output,
            "total_cached_tokens": total.cache_read,
            "total_steps": count,
        },
        "extra": about(meta),
    });
    if !left_out.is_empty() {
        document["notes"] = json!(format!("Not in this trajectory: {}", left_out.listed()));
    }
    let content = serde_json::to_string_pretty(&document).unwrap_or_default();
    Trajectory {
        content: format!("{content}\n"),
        left_out,
        steps: count,
    }
}

/// Returns the program that ran the agents: tertulia, or the one that the session comes from.
fn agent(meta: &SessionMeta, log: &Log, version: &str) -> Value {
    let origin = log.entries.iter().find_map(|entry| match &entry.body {
        Body::Imported(imported) => Some(imported),
        _ => None,
    });
    let (name, version) = match origin {
        Some(origin) => {
            let version = origin.version.as_deref().unwrap_or("unknown");
            (origin.program.as_str(), version)
        }
        None => ("tertulia", version),
    };
    let mut agent = json!({
        "name": name,
        "version": version,
        "extra": { "kind": meta.kind.name(), "agents": meta.agents },
    });
    if let Some(model) = &meta.model {
        agent["model_name"] = json!(model);
    }
    agent
}

/// Returns what is known about the session beside its messages.
fn about(meta: &SessionMeta) -> Value {
    let mut about = Map::new();
    let mut known = |key: &str, value: Value| {
        if !value.is_null() && value != json!([]) {
            about.insert(key.to_owned(), value);
        }
    };
    known("title", json!(meta.title));
    known("tags", json!(meta.tags));
    known("project", json!(meta.project));
    known("cwd", json!(meta.cwd));
    known("team", json!(meta.team));
    known("created_at", json!(meta.created_at));
    known("updated_at", json!(meta.updated_at));
    known("parent", json!(meta.parent));
    known("source", json!(meta.source));
    Value::Object(about)
}

fn words_step(number: usize, source: &str, words: &Words<'_>) -> Value {
    let mut step = begun(number, source, words.entry, &words.text);
    step["extra"] = extra(words.entry, words.message);
    step
}

fn agent_step(number: usize, answer: &Answer<'_>) -> Value {
    let message = answer.message;
    let mut step = begun(number, "agent", answer.entry, &answer.text);
    if let Some(model) = &message.model {
        step["model_name"] = json!(model);
    }
    if let Some(thought) = &answer.thought {
        step["reasoning_content"] = json!(thought);
    }
    if !answer.calls.is_empty() {
        step["tool_calls"] = answer
            .calls
            .iter()
            .map(|call| {
                json!({
                    "tool_call_id": call.id,
                    "function_name": call.name,
                    "arguments": call.arguments,
                })
            })
            .collect();
    }
    if !answer.results.is_empty() {
        let results: Vec<Value> = answer.results.iter().map(result).collect();
        step["observation"] = json!({ "results": results });
    }
    if let Some(usage) = &message.usage {
        step["metrics"] = metrics(usage);
    }
    step["extra"] = extra(answer.entry, message);
    step
}

fn begun(number: usize, source: &str, entry: &Entry, text: &str) -> Value {
    json!({
        "step_id": number, "timestamp": entry.at, "source": source, "message": text,
    })
}

fn result(result: &CallResult<'_>) -> Value {
    let mut value = json!({ "source_call_id": result.call, "content": result.text() });
    if let Some((entry, _)) = result.recorded {
        value["extra"] = json!({
            "entry": entry.seq, "timestamp": entry.at, "outcome": result.outcome.name(),
        });
    }
    value
}

fn metrics(usage: &Usage) -> Value {
    let mut metrics = json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
    });
    let mut more = Map::new();
    if usage.cache_written > 0 {
        more.insert("cache_written_tokens".into(), json!(usage.cache_written));
    }
    if usage.estimated {
        more.insert("estimated".into(), json!(true));
    }
    if !more.is_empty() {
        metrics["extra"] = Value::Object(more);
    }
    metrics
}

/// Returns the fields of a message that a step has no place for.
fn extra(entry: &Entry, message: &Message) -> Value {
    let mut extra = Map::new();
    extra.insert("entry".into(), json!(entry.seq));
    extra.insert("speaker".into(), json!(message.speaker.name));
    if message.speaker.kind == SpeakerKind::Human {
        extra.insert("human".into(), json!(true));
    }
    if let Some(thread) = &message.thread {
        extra.insert("thread".into(), json!(thread));
    }
    if !message.addressees.is_empty() {
        let names = message.addressees.iter();
        let names: Vec<&str> = names.map(|one| one.identifier.as_str()).collect();
        extra.insert("addressees".into(), json!(names));
    }
    if message.interrupted {
        extra.insert("interrupted".into(), json!(true));
    }
    Value::Object(extra)
}
