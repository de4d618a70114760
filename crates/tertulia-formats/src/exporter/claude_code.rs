//! Writes a session file that Claude Code resumes: one JSON line per message, each naming the one
//! before it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tertulia_core::entry::{Body, Entry, Message, ToolOutcome, Usage};
use tertulia_core::foreign::Foreign;
use tertulia_core::id::{Seq, derived};
use tertulia_core::session::{Log, SessionMeta};

use super::dialogue::{Answer, CallResult, Dialogue, Line, View, Words};
use super::{LeftOut, ProgramFile, ProgramPlace};

/// Version of Claude Code whose files these are modelled on.
const VERSION: &str = "2.1.325";
/// Marks the lines as ours, so that a file that Claude Code has continued can be told apart.
const ENTRYPOINT: &str = "tertulia";
/// Longest name of a project folder; longer ones are cut and get a hash.
const LONGEST_FOLDER: usize = 200;

/// Returns where Claude Code finds a session: below its folder `projects`. `cwd` is the working
/// directory if the session recorded none.
pub fn place(meta: &SessionMeta, cwd: &str) -> ProgramPlace {
    let cwd = meta.cwd.as_deref().unwrap_or(cwd);
    let session = Foreign::export_id("claude-code", meta.id);
    ProgramPlace {
        path: format!("{}/{session}.jsonl", project_folder(cwd)),
        cwd: cwd.to_owned(),
        session,
    }
}

/// Writes a session for a place.
pub fn file(meta: &SessionMeta, log: &Log, place: &ProgramPlace) -> ProgramFile {
    let Dialogue { lines, left_out } = Dialogue::of(meta, log, View::OneAgent);
    let mut writer = Writer {
        place,
        branch: branch_of(log),
        original: meta.id.to_string(),
        parent: None,
        content: String::new(),
        left_out,
    };
    if meta.titled {
        writer.title(meta.title_or_untitled());
    }
    for line in &lines {
        match line {
            Line::User(words) => writer.words(words, false),
            Line::System(words) => writer.words(words, true),
            Line::Agent(answer) => writer.answer(answer),
            Line::Summary(entry, summary) => writer.summary(entry, summary),
        }
    }
    ProgramFile {
        messages: lines.len(),
        content: writer.content,
        left_out: writer.left_out,
    }
}

/// Returns the last git branch that the session recorded; empty if there is none.
fn branch_of(log: &Log) -> String {
    let environments = log
        .entries
        .iter()
        .rev()
        .filter_map(|entry| match &entry.body {
            Body::Environment(environment) => environment.git.as_deref(),
            _ => None,
        });
    let mut branches = environments.filter_map(|git| git.strip_prefix("branch "));
    let branch = branches.next().and_then(|git| git.split(',').next());
    branch.unwrap_or_default().to_owned()
}

/// Returns the lines that continue a session file with what the log has after an entry. A summary is
/// not among them: Claude Code sends nothing that stands before one.
pub fn continuation(meta: &SessionMeta, log: &Log, after: Seq, file: &str) -> String {
    let dialogue = Dialogue::of(meta, log, View::OneAgent);
    let (mut place, mut branch, mut parent) = (place(meta, ""), String::new(), None);
    for line in file.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        if line["isSidechain"] == true {
            continue;
        }
        let keep = |slot: &mut String, name: &str| {
            if let Some(value) = line[name].as_str() {
                value.clone_into(slot);
            }
        };
        keep(&mut place.session, "sessionId");
        keep(&mut place.cwd, "cwd");
        keep(&mut branch, "gitBranch");
        parent = line["uuid"].as_str().map(str::to_owned).or(parent);
    }
    let mut writer = Writer {
        place: &place,
        branch,
        original: meta.id.to_string(),
        parent,
        content: String::new(),
        left_out: LeftOut::default(),
    };
    for line in &dialogue.lines {
        let is_new = line.entry().seq > after;
        match line {
            Line::User(words) if is_new => writer.words(words, false),
            Line::System(words) if is_new => writer.words(words, true),
            Line::Agent(answer) if is_new => writer.answer(answer),
            Line::Agent(answer) => {
                for result in answer.results_after(after) {
                    writer.result(answer, result);
                }
            }
            _ => {}
        }
    }
    writer.content
}

/// Returns true if a file is an export that Claude Code has not continued.
pub fn is_untouched(content: &str) -> bool {
    let is_ours = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["type"] == "custom-title" || line["entrypoint"] == ENTRYPOINT
    };
    !content.is_empty() && content.lines().all(is_ours)
}

struct Writer<'a> {
    place: &'a ProgramPlace,
    branch: String,
    /// The exported session, by which an import recognises it. Claude Code does not mind it.
    original: String,
    parent: Option<String>,
    content: String,
    left_out: LeftOut,
}

impl Writer<'_> {
    fn title(&mut self, title: &str) {
        self.push(&json!({
            "type": "custom-title", "customTitle": title, "sessionId": self.place.session,
        }));
    }

    fn words(&mut self, words: &Words<'_>, is_meta: bool) {
        let mut more = Map::new();
        if is_meta {
            more.insert("isMeta".into(), json!(true));
        }
        let message = json!({ "role": "user", "content": words.text });
        let uuid = words.entry.id.to_string();
        self.line("user", uuid, words.entry.at, message, more);
    }

    /// Writes a compaction: Claude Code sends nothing that stands before the boundary.
    fn summary(&mut self, entry: &Entry, summary: &str) {
        let uuid = derived(&["boundary", &entry.id.to_string()]).to_string();
        let before = self.parent.take();
        let mut more = Map::new();
        more.insert("subtype".into(), json!("compact_boundary"));
        more.insert("content".into(), json!("Conversation compacted"));
        more.insert("isMeta".into(), json!(false));
        more.insert("level".into(), json!("info"));
        more.insert("logicalParentUuid".into(), json!(before));
        let facts = json!({ "trigger": "manual", "preTokens": 0 });
        more.insert("compactMetadata".into(), facts);
        self.line("system", uuid, entry.at, Value::Null, more);
        let mut more = Map::new();
        more.insert("isCompactSummary".into(), json!(true));
        more.insert("isVisibleInTranscriptOnly".into(), json!(true));
        let message = json!({ "role": "user", "content": summary });
        self.line("user", entry.id.to_string(), entry.at, message, more);
    }

    fn answer(&mut self, answer: &Answer<'_>) {
        if answer.thought.is_some() {
            // Claude accepts reasoning only with the signature that came with it.
            self.left_out.count("reasoning");
        }
        let mut blocks = Vec::new();
        if !answer.text.trim().is_empty() {
            blocks.push(json!({ "type": "text", "text": answer.text }));
        }
        blocks.extend(answer.calls.iter().map(|call| {
            json!({
                "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments,
            })
        }));
        let (message, more) = self.envelope(answer, blocks);
        let uuid = answer.entry.id.to_string();
        self.line("assistant", uuid, answer.entry.at, message, more);
        for result in &answer.results {
            self.result(answer, result);
        }
        for result in answer.unanswered() {
            self.result(answer, &result);
        }
    }

    /// Returns the message as Claude's API returns it, and the fields beside it.
    fn envelope(&mut self, answer: &Answer<'_>, blocks: Vec<Value>) -> (Value, Map<String, Value>) {
        let Message {
            model,
            usage,
            usage_id,
            interrupted,
            ..
        } = answer.message;
        let own_id = format!("msg_{}", answer.entry.id.uuid().simple());
        let id = usage_id.as_deref().unwrap_or(&own_id);
        let (id, request) = match id.split_once(':') {
            Some((id, request)) => (id, Some(request)),
            None => (id, None),
        };
        let stop_reason = match (interrupted, answer.calls.is_empty()) {
            (true, _) => Value::Null,
            (false, true) => json!("end_turn"),
            (false, false) => json!("tool_use"),
        };
        let mut message = json!({
            "id": id, "type": "message", "role": "assistant", "content": blocks,
            "stop_reason": stop_reason, "stop_sequence": null,
        });
        if let Some(model) = model {
            message["model"] = json!(model);
        }
        match usage {
            Some(usage) if usage.estimated => self.left_out.count("estimated token counts"),
            Some(usage) => message["usage"] = tokens(usage),
            None => {}
        }
        let mut more = Map::new();
        if let Some(request) = request {
            more.insert("requestId".into(), json!(request));
        }
        if *interrupted {
            more.insert("isAbortedMidStream".into(), json!(true));
        }
        (message, more)
    }

    fn result(&mut self, answer: &Answer<'_>, result: &CallResult<'_>) {
        let mut block = json!({
            "type": "tool_result", "tool_use_id": result.call, "content": result.text(),
        });
        let mut more = Map::new();
        if result.outcome != ToolOutcome::Ok {
            block["is_error"] = json!(true);
        }
        match result.outcome {
            ToolOutcome::Denied => {
                more.insert("permissionDecision".into(), json!({ "decision": "reject" }));
            }
            ToolOutcome::Interrupted => {
                more.insert("toolUseResult".into(), json!({ "interrupted": true }));
            }
            ToolOutcome::Ok | ToolOutcome::Failed => {}
        }
        let owner = answer.entry.id.to_string();
        more.insert("sourceToolAssistantUUID".into(), json!(owner));
        let (uuid, at) = match result.recorded {
            Some((entry, _)) => (entry.id.uuid(), entry.at),
            None => (derived(&["result", &owner, &result.call]), answer.entry.at),
        };
        let message = json!({ "role": "user", "content": [block] });
        self.line("user", uuid.to_string(), at, message, more);
    }

    fn line(
        &mut self,
        kind: &str,
        uuid: String,
        at: Timestamp,
        message: Value,
        more: Map<String, Value>,
    ) {
        let mut line = json!({
            "parentUuid": self.parent,
            "isSidechain": false,
            "userType": "external",
            "entrypoint": ENTRYPOINT,
            "exportedFrom": self.original,
            "cwd": self.place.cwd,
            "sessionId": self.place.session,
            "version": VERSION,
            "gitBranch": self.branch,
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": at,
        });
        if let Value::Object(fields) = &mut line {
            fields.extend(more);
            // Lines of the program itself have none.
            fields.retain(|name, value| name != "message" || !value.is_null());
        }
        self.push(&line);
        self.parent = Some(uuid);
    }

    fn push(&mut self, line: &Value) {
        self.content.push_str(&line.to_string());
        self.content.push('\n');
    }
}

/// Returns usage in Claude's terms, where cached tokens are counted apart.
fn tokens(usage: &Usage) -> Value {
    let cached = usage.cache_read.saturating_add(usage.cache_written);
    json!({
        "input_tokens": usage.input.saturating_sub(cached),
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

/// Returns the folder in which Claude Code looks for the sessions of a working directory: the path
/// with `-` for all but letters and digits, as UTF-16 counts them.
fn project_folder(cwd: &str) -> String {
    let units: Vec<u16> = cwd.encode_utf16().collect();
    let plain = |unit: &u16| {
        let c = char::from_u32(u32::from(*unit)).filter(char::is_ascii_alphanumeric);
        c.unwrap_or('-')
    };
    let mut folder: String = units.iter().take(LONGEST_FOLDER).map(plain).collect();
    if units.len() > LONGEST_FOLDER {
        let hash = units.iter().fold(0_i32, |hash, unit| {
            hash.wrapping_mul(31).wrapping_add(i32::from(*unit))
        });
        folder.push('-');
        folder.push_str(&base36(hash.unsigned_abs()));
    }
    folder
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of folders that Claude Code 2.1.325 made.
    #[test]
    fn project_folders_are_named_as_the_program_names_them() {
        let check = |cwd: &str, expected: &str| assert_eq!(project_folder(cwd), expected);
        check("/home/u/my_work.dir", "-home-u-my-work-dir");
        check("/t/żó ł 🎉/é", "-t----------");
        let long = format!("/home/ana/{}/{}", "x".repeat(120), "y".repeat(120));
        let folder = project_folder(&long);
        assert_eq!(folder.len(), 207);
        assert!(folder.ends_with("yy-l0dhn1"), "{folder}");
    }
}
