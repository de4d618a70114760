//! Converts a claude-master session for import: two threads, merged in their original order.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Kept, Remembered};
use tertulia_core::entry::{
    Body, Budgeted, Imported, Kind, Message, Paired, PairedAgent, Role, Speaker, SpeakerKind,
    ToolCall,
};
use tertulia_core::entry::{human, plain};
use tertulia_core::foreign::{Changes, Foreign, Identity, Said};
use tertulia_core::id::{EntryId, SessionId, derived, foreign_uuid};
use tertulia_core::pair::instructions::INSTRUCTOR;
use tertulia_core::pair::speakers::speaker;
use tertulia_core::pair::{PairRole, reply};
use tertulia_core::redact::redact;

/// Name of the format, part of the derived ids of sessions and messages.
const FORM: &str = "claude-master";
/// Agent that the program used.
const AGENT: &str = "anthropic";
/// Tools with which later versions called the worker.
const WORKER_TOOLS: [&str; 3] = ["call_worker", "call_worker_with_file", "tell_worker"];

/// A message with the thinking before it.
struct Turn {
    message: Message,
    thought: Option<String>,
}

impl Kept {
    /// Returns the id of the session to create, which is the same for every import.
    pub fn session_id(&self) -> SessionId {
        let own = foreign_uuid(&self.session);
        SessionId::new(own.unwrap_or_else(|| derived(&[FORM, &self.session])))
    }

    /// Converts the file to a session for import.
    pub fn talk(&self) -> Foreign {
        let mut changes = self.changes.clone();
        if self.worker.is_empty() {
            changes
                .lost
                .push("the worker's history, which the file does not have".to_owned());
        }
        let said = self.said(&mut changes);
        let timed = |told: &Remembered| told.at.is_some();
        let is_timed = self.instructor.iter().chain(&self.worker).any(timed);
        let work_dir = Some(&self.work_dir).filter(|folder| folder.starts_with('/'));
        Foreign {
            id: self.session_id(),
            kind: Kind::Pair,
            title: None,
            team: None,
            created_at: self.created_at,
            said,
            task: None,
            closing: vec![
                Body::Paired(self.paired(&mut changes)),
                Body::Budgeted(Budgeted {
                    budget: self.remaining,
                }),
            ],
            source: Imported {
                version: self.version.clone(),
                saved_at: self.updated_at,
                spoken_at: self.updated_at.filter(|_| !is_timed),
                cwd: work_dir.cloned(),
                max_rounds: self.max_rounds,
                ..Imported::new(FORM, &self.session)
            },
            changes,
            identity: Identity::Words,
            fork: None,
        }
    }

    fn paired(&self, changes: &mut Changes) -> Paired {
        let seat = |model: &Option<String>| PairedAgent {
            agent: AGENT.to_owned(),
            model: model.clone(),
        };
        let system = match self.system.is_empty() {
            true => INSTRUCTOR,
            false => &self.system,
        };
        Paired {
            instructor: seat(&self.instructor_model),
            worker: seat(&self.worker_model),
            thinking: self.thinking,
            work_dir: self.work_dir.clone(),
            system: changes.keepable(system),
            round: Some(self.round),
        }
    }

    fn said(&self, changes: &mut Changes) -> Vec<Said> {
        let mut said = Vec::new();
        let mut last = self.created_at;
        for (place, (at, turn)) in self.woven(changes).into_iter().enumerate() {
            let message = turn.message;
            // Without a recorded time, messages are one millisecond apart.
            let next = last.checked_add(SignedDuration::from_millis(1));
            last = at.or(next.ok()).unwrap_or(last).max(last);
            let id = EntryId::new(derived(&[
                FORM,
                &self.session,
                &place.to_string(),
                message.thread.as_deref().unwrap_or_default(),
                // The id is stored, so no secret may be part of it.
                &redact(&message.content).text,
            ]));
            said.push(Said {
                id,
                at: last,
                message,
                compacts: None,
                thought: turn.thought,
            });
        }
        said
    }

    /// Merges both threads: each instruction is followed by the worker's turn. Worker turns from
    /// before the instructor's first recorded message come first.
    fn woven(&self, changes: &mut Changes) -> Vec<(Option<Timestamp>, Turn)> {
        let mut instructor: Vec<(Option<Timestamp>, Vec<Turn>)> = Vec::new();
        for told in &self.instructor {
            instructor.push((told.at, messages(told, PairRole::Instructor, changes)));
        }
        self.with_last_thinking(&mut instructor);
        let mut exchanges = self.exchanges(changes);
        let given = instructor
            .iter()
            .filter_map(|(_, messages)| instruction(messages))
            .count();
        // The last instruction may not have reached the worker.
        let waits = instructor.last().and_then(|(_, last)| instruction(last));
        let reached = |waits: &String| {
            let told = exchanges.last().and_then(|exchange| exchange.first());
            exchanges.len() >= given
                && told.is_some_and(|(_, told)| told.message.content.trim() == waits)
        };
        let given = given - usize::from(waits.as_ref().is_some_and(|waits| !reached(waits)));
        let mut forgotten = given.saturating_sub(exchanges.len());
        let early = exchanges.len().saturating_sub(given);
        let mut later = exchanges.split_off(early).into_iter();
        let mut woven: Vec<_> = exchanges.into_iter().flatten().collect();
        let mut instructed = false;
        for (at, mut messages) in instructor {
            if instructed {
                for turn in messages
                    .iter_mut()
                    .filter(|turn| turn.message.role == Role::User)
                {
                    turn.message.speaker = speaker(PairRole::Worker);
                }
            }
            instructed = instruction(&messages).is_some();
            woven.extend(messages.into_iter().map(|message| (at, message)));
            if instructed && forgotten > 0 {
                forgotten -= 1;
            } else if instructed {
                woven.extend(later.next().into_iter().flatten());
            }
        }
        woven
    }

    /// Adds the thinking of the last reply from the state, if the reply itself lacks it.
    fn with_last_thinking(&self, instructor: &mut [(Option<Timestamp>, Vec<Turn>)]) {
        let last = instructor.iter_mut().rev().flat_map(|(_, turns)| turns);
        let last = last
            .into_iter()
            .find(|turn| turn.message.role == Role::Assistant);
        if let Some(last) = last
            && last.thought.is_none()
            && reply::read(&last.message.content).thinking.is_empty()
        {
            last.thought.clone_from(&self.last_thinking);
        }
    }

    /// Groups the worker's messages: each instruction with the answer to it.
    fn exchanges(&self, changes: &mut Changes) -> Vec<Vec<(Option<Timestamp>, Turn)>> {
        let mut exchanges: Vec<Vec<_>> = Vec::new();
        for told in &self.worker {
            let messages = messages(told, PairRole::Worker, changes);
            let begins = messages.iter().any(|turn| turn.message.role == Role::User);
            let messages = messages.into_iter().map(|message| (told.at, message));
            match exchanges.last_mut().filter(|_| !begins) {
                Some(exchange) => exchange.extend(messages),
                None => exchanges.push(messages.collect()),
            }
        }
        exchanges
    }
}

/// Returns the instruction for the worker, if there is one.
fn instruction(turns: &[Turn]) -> Option<String> {
    let replies = turns
        .iter()
        .map(|turn| &turn.message)
        .filter(|message| message.role == Role::Assistant);
    replies
        .map(|message| reply::read(&message.content))
        .find(|read| read.should_continue && !read.needs_correction)
        .map(|read| read.instruction)
}

/// Converts the blocks of a message: text, tool calls and tool results.
fn messages(told: &Remembered, seat: PairRole, changes: &mut Changes) -> Vec<Turn> {
    let by = |speaker: &Speaker, role, words: String| Message {
        thread: Some(seat.name().to_owned()),
        ..plain(speaker, role, words)
    };
    let asks = match seat {
        PairRole::Instructor => human(),
        PairRole::Worker => speaker(PairRole::Instructor),
    };
    let mut found = Vec::new();
    let (mut words, mut thoughts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks(&told.content) {
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => words.push(text("text")),
            Some("thinking") => thoughts.push(text("thinking")),
            Some("tool_use") if WORKER_TOOLS.contains(&text("name").as_str()) => {
                words.push(told_worker(&block["input"]));
            }
            Some("tool_use") => calls.push(ToolCall {
                id: text("id"),
                name: text("name"),
                arguments: block["input"].clone(),
            }),
            Some("tool_result") => {
                let tool = Speaker::plain("tool", SpeakerKind::Tool);
                let output = changes.keepable(&plain_text(&block["content"]));
                found.push(Turn {
                    message: Message {
                        tool_call_id: Some(text("tool_use_id")),
                        ..by(&tool, Role::Tool, output)
                    },
                    thought: None,
                });
            }
            kind => {
                let kind = kind.unwrap_or("unknown");
                let words = format!(
                    "a block of the type {kind} in the {}'s history",
                    seat.name()
                );
                changes.lost.push(words);
            }
        }
    }
    let words = changes.keepable(&words.join("\n\n"));
    thoughts.retain(|thought| !thought.trim().is_empty());
    let thought = match thoughts.is_empty() {
        true => None,
        false => Some(changes.keepable(&thoughts.join("\n\n"))),
    };
    if told.role == "assistant" {
        let speaker = speaker(seat);
        let message = Message {
            tool_calls: calls,
            ..by(&speaker, Role::Assistant, words)
        };
        found.push(Turn { message, thought });
    } else if !words.is_empty() {
        let message = by(&asks, Role::User, words);
        found.push(Turn { message, thought });
    }
    found
}

/// Converts a worker tool call to `Tell worker (use MODEL): …`.
fn told_worker(input: &Value) -> String {
    let text = |key: &str| input[key].as_str().filter(|text| !text.is_empty());
    let told = text("instruction")
        .or_else(|| text("message"))
        .unwrap_or_default();
    match text("model") {
        Some(model) => format!("Tell worker (use {model}): {told}"),
        None => format!("Tell worker: {told}"),
    }
}

fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn plain_text(content: &Value) -> String {
    let texts = blocks(content);
    let texts: Vec<&str> = texts
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    texts.join("\n")
}
