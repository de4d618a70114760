//! What was kept, as a talk that can be taken in: two threads, woven together as they were spoken.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Kept, Remembered};
use crate::conversation::chat::{human, plain};
use crate::conversation::pair::words::{self, speaker};
use crate::conversation::pair::{Seat, reply};
use crate::entry::{
    Body, Budgeted, Kind, Message, Paired, PairedAgent, Role, Speaker, SpeakerKind, ToolCall,
};
use crate::formats::foreign::{Foreign, Said, keepable};
use crate::id::{EntryId, SessionId, derived, own_uuid};
use crate::redact::redact;

/// What the ids of this form's sessions and messages are derived from, beside their own.
const FORM: &str = "claude-master";
/// The agent that it was.
const AGENT: &str = "anthropic";
/// The tools with which its later versions called the worker.
const WORKER_TOOLS: [&str; 3] = ["call_worker", "call_worker_with_file", "tell_worker"];

impl Kept {
    /// The session that it becomes: the same each time.
    pub fn session_id(&self) -> SessionId {
        let own = own_uuid(&self.session);
        SessionId::new(own.unwrap_or_else(|| derived(&[FORM, &self.session])))
    }

    /// The talk, to be taken in.
    pub fn talk(&self) -> Foreign {
        Foreign {
            id: self.session_id(),
            kind: Kind::Pair,
            team: None,
            created_at: self.created_at,
            said: self.said(),
            task: None,
            closing: vec![
                Body::Paired(self.paired()),
                Body::Budgeted(Budgeted {
                    budget: self.remaining,
                }),
            ],
        }
    }

    fn paired(&self) -> Paired {
        let seat = |model: &Option<String>| PairedAgent {
            agent: AGENT.to_owned(),
            model: model.clone(),
        };
        let system = match self.system.is_empty() {
            true => words::INSTRUCTOR,
            false => &self.system,
        };
        Paired {
            instructor: seat(&self.instructor_model),
            worker: seat(&self.worker_model),
            thinking: self.thinking,
            work_dir: self.work_dir.clone(),
            system: keepable(system).into_owned(),
            round: Some(self.round),
        }
    }

    fn said(&self) -> Vec<Said> {
        let mut said = Vec::new();
        let mut last = self.created_at;
        for (place, (at, message)) in self.woven().into_iter().enumerate() {
            // Where no time was kept, one after the other.
            let next = last.checked_add(SignedDuration::from_millis(1));
            last = at.or(next.ok()).unwrap_or(last).max(last);
            let id = EntryId::new(derived(&[
                FORM,
                &self.session,
                &place.to_string(),
                message.thread.as_deref().unwrap_or_default(),
                // The id is written down, so no secret may be part of it.
                &redact(&message.content).text,
            ]));
            said.push(Said {
                id,
                at: last,
                message,
            });
        }
        said
    }

    /// Both threads as one: after each instruction what the worker made of it. What the worker did before
    /// the instructor remembers anything comes first.
    fn woven(&self) -> Vec<(Option<Timestamp>, Message)> {
        let instructor = self
            .instructor
            .iter()
            .map(|told| (told.at, messages(told, Seat::Instructor)));
        let instructor: Vec<_> = instructor.collect();
        let mut exchanges = self.exchanges();
        let given = instructor
            .iter()
            .filter_map(|(_, messages)| instruction(messages))
            .count();
        // What it said last may not have reached the worker.
        let waits = instructor.last().and_then(|(_, last)| instruction(last));
        let reached = |waits: &String| {
            let told = exchanges.last().and_then(|exchange| exchange.first());
            exchanges.len() >= given && told.is_some_and(|(_, told)| told.content.trim() == waits)
        };
        let given = given - usize::from(waits.as_ref().is_some_and(|waits| !reached(waits)));
        let mut forgotten = given.saturating_sub(exchanges.len());
        let early = exchanges.len().saturating_sub(given);
        let mut later = exchanges.split_off(early).into_iter();
        let mut woven: Vec<_> = exchanges.into_iter().flatten().collect();
        let mut instructed = false;
        for (at, mut messages) in instructor {
            if instructed {
                for message in messages
                    .iter_mut()
                    .filter(|message| message.role == Role::User)
                {
                    message.speaker = speaker(Seat::Worker);
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

    /// What the worker was told, each time with what it made of it.
    fn exchanges(&self) -> Vec<Vec<(Option<Timestamp>, Message)>> {
        let mut exchanges: Vec<Vec<_>> = Vec::new();
        for told in &self.worker {
            let messages = messages(told, Seat::Worker);
            let begins = messages.iter().any(|message| message.role == Role::User);
            let messages = messages.into_iter().map(|message| (told.at, message));
            match exchanges.last_mut().filter(|_| !begins) {
                Some(exchange) => exchange.extend(messages),
                None => exchanges.push(messages.collect()),
            }
        }
        exchanges
    }
}

/// What the worker is told, if it is told anything.
fn instruction(messages: &[Message]) -> Option<String> {
    let replies = messages
        .iter()
        .filter(|message| message.role == Role::Assistant);
    replies
        .map(|message| reply::read(&message.content))
        .find(|read| read.should_continue && !read.needs_correction)
        .map(|read| read.instruction)
}

/// A message with its blocks: words, calls, and what they gave.
fn messages(told: &Remembered, seat: Seat) -> Vec<Message> {
    let by = |speaker: &Speaker, role, words: String| Message {
        thread: Some(seat.name().to_owned()),
        ..plain(speaker, role, keepable(&words).into_owned())
    };
    let asks = match seat {
        Seat::Instructor => human(),
        Seat::Worker => speaker(Seat::Instructor),
    };
    let mut found = Vec::new();
    let (mut words, mut calls) = (Vec::new(), Vec::new());
    for block in blocks(&told.content) {
        let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("text") => words.push(text("text")),
            Some("thinking") => words.push(format!("<thinking>{}</thinking>", text("thinking"))),
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
                found.push(Message {
                    tool_call_id: Some(text("tool_use_id")),
                    ..by(&tool, Role::Tool, plain_text(&block["content"]))
                });
            }
            _ => {}
        }
    }
    let words = words.join("\n\n");
    if told.role == "assistant" {
        let speaker = speaker(seat);
        found.push(Message {
            tool_calls: calls,
            ..by(&speaker, Role::Assistant, words)
        });
    } else if !words.is_empty() {
        found.push(by(&asks, Role::User, words));
    }
    found
}

/// `Tell worker (use MODEL): …`, from a call that meant it.
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
