//! Writes a rollout file that Codex resumes: `response_item` lines are what the model gets,
//! `event_msg` lines what the program shows.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use tertulia_core::entry::Usage;
use tertulia_core::foreign::Foreign;
use tertulia_core::id::Seq;
use tertulia_core::session::{Log, SessionMeta};

use super::dialogue::{Answer, CallResult, Dialogue, Line, View, Words};
use super::{LeftOut, ProgramFile, ProgramPlace};

/// Version of Codex whose files these are modelled on.
const VERSION: &str = "0.166.0";
/// Marks the file as ours.
const ORIGINATOR: &str = "tertulia";

/// Returns where Codex finds a session: below its folder `sessions`. `cwd` is the working directory
/// if the session recorded none.
pub fn place(meta: &SessionMeta, cwd: &str) -> ProgramPlace {
    let session = Foreign::export_id("codex", meta.id);
    let begun = meta.created_at.to_zoned(TimeZone::UTC);
    ProgramPlace {
        path: format!(
            "{}-{session}.jsonl",
            begun.strftime("%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S")
        ),
        cwd: meta.cwd.as_deref().unwrap_or(cwd).to_owned(),
        session,
    }
}

/// Writes a session for a place.
pub fn file(meta: &SessionMeta, log: &Log, place: &ProgramPlace) -> ProgramFile {
    let Dialogue { lines, left_out } = Dialogue::of(meta, log, View::OneAgent);
    let mut writer = Writer {
        total: Usage::default(),
        continues: None,
        ordinal: None,
        content: String::new(),
        left_out,
    };
    // No provider is named: Codex resumes a session only with the provider that it names. It does not
    // mind the field by which an import recognises the session.
    let about = json!({
        "id": place.session,
        "timestamp": meta.created_at,
        "cwd": place.cwd,
        "originator": ORIGINATOR,
        "exported_from": meta.id,
        "cli_version": VERSION,
        "source": "cli",
    });
    writer.push(meta.created_at, "session_meta", &about);
    for line in &lines {
        match line {
            Line::User(words) => writer.user(words),
            Line::System(words) => {
                writer.message(words.entry.at, "developer", "input_text", &words.text);
            }
            Line::Agent(answer) => writer.answer(answer),
            Line::Summary(entry, summary) => {
                writer.push(entry.at, "compacted", &json!({ "message": summary }));
            }
        }
    }
    if meta.titled {
        writer.left_out.count("titles");
    }
    ProgramFile {
        messages: lines.len(),
        content: writer.content,
        left_out: writer.left_out,
    }
}

/// Returns the lines that continue a rollout file with what the log has after an entry. A summary is
/// not among them: Codex sends nothing that stands before one.
pub fn continuation(meta: &SessionMeta, log: &Log, after: Seq, file: &str) -> String {
    let dialogue = Dialogue::of(meta, log, View::OneAgent);
    let events: Vec<Value> = file
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let ordinals = events.iter().filter_map(|line| line["ordinal"].as_u64());
    let mut totals = events.iter().filter_map(|line| {
        let total = line.pointer("/payload/info/total_token_usage")?;
        let count = |name: &str| total[name].as_u64().unwrap_or_default();
        Some(Usage {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cached_input_tokens"),
            cache_written: count("cache_write_input_tokens"),
            ..Usage::default()
        })
    });
    let mut writer = Writer {
        total: totals.next_back().unwrap_or_default(),
        continues: Some(meta.id.to_string()),
        ordinal: ordinals.max().map(|last| last + 1),
        content: String::new(),
        left_out: LeftOut::default(),
    };
    for line in &dialogue.lines {
        let is_new = line.entry().seq > after;
        match line {
            Line::User(words) if is_new => writer.user(words),
            Line::System(words) if is_new => {
                writer.message(words.entry.at, "developer", "input_text", &words.text);
            }
            Line::Agent(answer) if is_new => writer.answer(answer),
            Line::Agent(answer) => {
                for result in answer.results_after(after) {
                    writer.result(answer.entry.at, result);
                }
            }
            _ => {}
        }
    }
    writer.content
}

/// Returns true if a file is an export that Codex has not continued: it begins each turn with its
/// settings, which an export lacks.
pub fn is_untouched(content: &str) -> bool {
    let mut lines = content
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
    let begins = lines
        .next()
        .is_some_and(|line| line["payload"]["originator"] == ORIGINATOR);
    let is_ours = |line: &Value| {
        line["type"] == "response_item"
            || line["type"] == "compacted"
            || has_type_of_ours(&line["payload"])
    };
    begins && lines.all(|line| is_ours(&line) && line["payload"].get("id").is_none())
}

fn has_type_of_ours(event: &Value) -> bool {
    ["user_message", "agent_message", "agent_reasoning"]
        .into_iter()
        .chain(["token_count", "turn_aborted"])
        .any(|kind| event["type"] == kind)
}

struct Writer {
    total: Usage,
    /// The session whose messages continue a file, by which an import recognises them.
    continues: Option<String>,
    /// Number of the next line, if the lines before it have one.
    ordinal: Option<u64>,
    content: String,
    left_out: LeftOut,
}

impl Writer {
    fn user(&mut self, words: &Words<'_>) {
        let at = words.entry.at;
        self.message(at, "user", "input_text", &words.text);
        let event = json!({ "type": "user_message", "message": words.text, "images": [] });
        self.push(at, "event_msg", &event);
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        let at = answer.entry.at;
        if let Some(thought) = &answer.thought {
            // Shown, but not sent: the model accepts reasoning only as it encrypted it.
            let event = json!({ "type": "agent_reasoning", "text": thought });
            self.push(at, "event_msg", &event);
        }
        if !answer.text.trim().is_empty() {
            let event = json!({ "type": "agent_message", "message": answer.text });
            self.push(at, "event_msg", &event);
            self.message(at, "assistant", "output_text", &answer.text);
        }
        for call in &answer.calls {
            let item = json!({
                "type": "function_call",
                "name": call.name,
                "arguments": call.arguments.to_string(),
                "call_id": call.id,
            });
            self.push(at, "response_item", &item);
        }
        for result in &answer.results {
            self.result(at, result);
        }
        for result in answer.unanswered() {
            self.result(at, &result);
        }
        if answer.message.model.is_some() {
            self.left_out.count("names of models");
        }
        match answer.message.usage {
            Some(usage) if usage.estimated => self.left_out.count("estimated token counts"),
            Some(usage) => {
                let own = answer.entry.id.to_string();
                self.usage(
                    at,
                    usage,
                    answer.message.usage_id.as_deref().unwrap_or(&own),
                );
            }
            None => {}
        }
        if answer.message.interrupted {
            let event = json!({ "type": "turn_aborted", "reason": "interrupted" });
            self.push(at, "event_msg", &event);
        }
    }

    fn result(&mut self, asked: Timestamp, result: &CallResult<'_>) {
        let at = result.recorded.map_or(asked, |(entry, _)| entry.at);
        let item = json!({
            "type": "function_call_output", "call_id": result.call, "output": result.text(),
        });
        self.push(at, "response_item", &item);
    }

    /// Writes usage. Its id lets an import of the file count it once; Codex does not mind it.
    fn usage(&mut self, at: Timestamp, usage: Usage, id: &str) {
        self.total = self.total.plus(usage);
        let info = json!({
            "total_token_usage": tokens(&self.total),
            "last_token_usage": tokens(&usage),
            "model_context_window": null,
            "usage_id": id,
        });
        let event = json!({ "type": "token_count", "info": info, "rate_limits": null });
        self.push(at, "event_msg", &event);
    }

    fn message(&mut self, at: Timestamp, role: &str, kind: &str, text: &str) {
        let item = json!({
            "type": "message", "role": role, "content": [{ "type": kind, "text": text }],
        });
        self.push(at, "response_item", &item);
    }

    fn push(&mut self, at: Timestamp, kind: &str, payload: &Value) {
        let mut line = json!({ "timestamp": at, "type": kind, "payload": payload });
        if let Some(session) = &self.continues {
            line["exported_from"] = json!(session);
        }
        if let Some(ordinal) = &mut self.ordinal {
            line["ordinal"] = json!(ordinal);
            *ordinal += 1;
        }
        self.content.push_str(&line.to_string());
        self.content.push('\n');
    }
}

/// Returns usage in Codex's terms.
fn tokens(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cached_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_written,
        "output_tokens": usage.output,
        "reasoning_output_tokens": 0,
        "total_tokens": usage.input.saturating_add(usage.output),
    })
}
