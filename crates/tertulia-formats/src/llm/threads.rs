//! The newer tables: a tree of messages, each named by a hash of its content and of those before it.
//! A turn is one call of a model. Equal beginnings of unrelated threads are the same rows, so that
//! the thread is part of a message's identity here.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Call, PROGRAM};
use crate::importer::{
    Answer, Database, ReadError, SessionBuilder, damaged_rows, text_at, utc_time,
};
use tertulia_core::entry::{ImportedParent, ImportedRelation, ToolCall, ToolOutcome};
use tertulia_core::foreign::{Beginning, Foreign, ForeignFork};

/// Maximum number of threads that a fork goes back.
const FORKS: usize = 50;

/// Reads the newer tables.
pub(super) struct Threads<'a> {
    database: &'a Database,
}

/// What a thread is besides messages.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) title: Option<String>,
    pub(super) fork: Option<Fork>,
}

/// The thread that a thread was forked from.
#[derive(Debug)]
pub(super) struct Fork {
    from: String,
    shared: usize,
}

impl Fork {
    /// Records the origin.
    pub(super) fn describe(self, session: &mut Foreign) {
        session.fork = Some(ForeignFork {
            from: Foreign::session_id(PROGRAM, &self.from),
            beginning: Beginning::Copied(self.shared),
        });
        session.source.parent = Some(ImportedParent {
            original: self.from,
            relation: ImportedRelation::Fork,
        });
    }
}

/// A row of `messages`.
#[derive(Debug)]
struct Message {
    hash: String,
    role: String,
}

/// A row of `turns`.
struct Turn {
    call: Call,
    /// Last message that the model was given.
    parent: Option<String>,
    tip: Option<String>,
}

impl<'a> Threads<'a> {
    /// Returns a reader if the database has the tables.
    pub(super) fn of(database: &'a Database) -> Result<Option<Threads<'a>>, ReadError> {
        let is_there = database.has("turns", "thread_id")?
            && database.has("threads", "tip_message_hash")?
            && database.has("parts", "payload")?;
        Ok(is_there.then_some(Threads { database }))
    }

    /// Returns the ids of all threads.
    pub(super) fn all(&self) -> Result<Vec<String>, ReadError> {
        self.database.texts("SELECT id FROM threads", &[])
    }

    /// Adds the messages of a thread after those that the builder has.
    pub(super) fn read(
        &self,
        thread: &str,
        builder: &mut SessionBuilder,
    ) -> Result<Thread, ReadError> {
        let (mut title, mut tip, mut from, mut time) = (None, None, None, None);
        let sql = "SELECT * FROM threads WHERE id = ?1";
        self.database.rows(sql, &[thread], &mut |row| {
            title = row.text("name");
            tip = row.text("tip_message_hash");
            from = row.text("forked_from");
            time = row.text("datetime_utc").and_then(|time| utc_time(&time));
        })?;
        let mut reading = Reading {
            database: self.database,
            thread,
            owners: match &from {
                Some(from) => self.owners(from)?,
                None => HashMap::new(),
            },
            shared: 0,
            known: HashSet::new(),
            damaged: Vec::new(),
            builder,
        };
        for turn in self.turns(thread)? {
            reading.turn(&turn)?;
        }
        // Messages that were added without a call.
        reading.builder.at(time);
        reading.chain(tip.as_deref(), None, None)?;
        let Reading {
            shared, damaged, ..
        } = reading;
        builder.changes.lost.extend(damaged_rows("parts", &damaged));
        let fork = from.map(|from| Fork { from, shared });
        Ok(Thread { title, fork })
    }

    fn turns(&self, thread: &str) -> Result<Vec<Turn>, ReadError> {
        let mut turns = Vec::new();
        let sql = "SELECT * FROM turns WHERE thread_id = ?1 ORDER BY id";
        self.database.rows(sql, &[thread], &mut |row| {
            turns.push(Turn {
                call: Call::of(row),
                parent: row.text("parent_message_hash"),
                tip: row.text("tip_message_hash"),
            });
        })?;
        Ok(turns)
    }

    /// Returns the messages of a thread, each with the thread that has it first.
    fn owners(&self, thread: &str) -> Result<HashMap<String, String>, ReadError> {
        let mut line = vec![thread.to_owned()];
        while let Some(last) = line.last() {
            let sql = "SELECT forked_from FROM threads WHERE id = ?1";
            match self.database.texts(sql, &[last])?.pop() {
                Some(from) if line.len() < FORKS && !line.contains(&from) => line.push(from),
                _ => break,
            }
        }
        let mut owners = HashMap::new();
        for thread in line.iter().rev() {
            let sql = "SELECT tip_message_hash FROM threads WHERE id = ?1";
            let mut next = self.database.texts(sql, &[thread])?.pop();
            while let Some(hash) = next.take_if(|hash| !owners.contains_key(hash)) {
                let sql = "SELECT parent_hash FROM messages WHERE hash = ?1";
                next = self.database.texts(sql, &[&hash])?.pop();
                owners.insert(hash, thread.clone());
            }
        }
        Ok(owners)
    }
}

/// Reads one thread.
struct Reading<'a, 'b> {
    database: &'a Database,
    thread: &'b str,
    /// Messages that another thread has too, with that thread.
    owners: HashMap<String, String>,
    /// Number of messages at the beginning that another thread has too.
    shared: usize,
    known: HashSet<String>,
    damaged: Vec<String>,
    builder: &'b mut SessionBuilder,
}

impl Reading<'_, '_> {
    fn turn(&mut self, turn: &Turn) -> Result<(), ReadError> {
        self.builder.at(turn.call.started);
        self.chain(
            turn.tip.as_deref(),
            turn.parent.as_deref(),
            Some(&turn.call),
        )
    }

    /// Adds the messages up to `tip` that are new. Those after `parent` are answers of the call.
    fn chain(
        &mut self,
        tip: Option<&str>,
        parent: Option<&str>,
        call: Option<&Call>,
    ) -> Result<(), ReadError> {
        let (mut given, mut answers) = (Vec::new(), Vec::new());
        let mut next = tip.map(str::to_owned);
        let mut is_answer = call.is_some();
        while let Some(hash) = next.take_if(|hash| !self.known.contains(hash)) {
            is_answer &= Some(hash.as_str()) != parent;
            let (mut role, mut before) = (None, None);
            let sql = "SELECT role, parent_hash FROM messages WHERE hash = ?1";
            self.database.rows(sql, &[&hash], &mut |row| {
                role = row.text("role");
                before = row.text("parent_hash");
            })?;
            let Some(role) = role else {
                self.builder.skipped.count("missing messages");
                break;
            };
            self.known.insert(hash.clone());
            next = before;
            match is_answer {
                true => answers.push(Message { hash, role }),
                false => given.push(Message { hash, role }),
            }
        }
        // Each call is given the whole history. If no message of it is known, the session has it from
        // older tables or in other words.
        let is_known = next.is_some() || given.is_empty();
        if !is_known && !self.builder.said().is_empty() {
            let is_new = |message: &Message| matches!(message.role.as_str(), "user" | "tool");
            let new = given.iter().take_while(|message| is_new(message)).count();
            given.truncate(new);
        }
        for message in given.iter().rev() {
            self.message(message, None)?;
        }
        self.builder.at(call.and_then(|call| call.ended));
        // The figures are of all answers of the call.
        let last = answers.iter().position(|answer| answer.role == "assistant");
        for (place, message) in answers.iter().enumerate().rev() {
            self.message(message, call.map(|call| (call, Some(place) == last)))?;
        }
        Ok(())
    }

    fn message(&mut self, message: &Message, call: Option<(&Call, bool)>) -> Result<(), ReadError> {
        let before = self.builder.said().len();
        let owner = self.owners.get(&message.hash).cloned();
        let thread = owner.as_deref().unwrap_or(self.thread);
        let id = format!("{thread}:{}", message.hash);
        let written = self.parts(&message.hash)?;
        if message.role == "assistant" {
            let usage = call.and_then(|(call, has_usage)| call.usage.filter(|_| has_usage));
            let answer = Answer {
                text: &written.texts.join("\n"),
                thought: written.thought,
                tool_calls: written.calls,
                usage,
                usage_id: usage.and(call.map(|(call, _)| call.id.clone())),
                model: call.and_then(|(call, _)| call.model.as_deref()),
                interrupted: false,
            };
            self.builder.agent(&id, answer);
        }
        // After an answer, these are of tools that the provider ran.
        for (place, part) in &written.results {
            result(&format!("{id}#{place}"), part, self.builder);
        }
        let text = written.texts.join("\n");
        match message.role.as_str() {
            "assistant" => {}
            "system" => self.builder.system(&id, &text),
            _ if text.is_empty() && !written.results.is_empty() => {}
            "user" => self.builder.user(&id, &text),
            role => self.builder.skipped.count(&format!("{role} messages")),
        }
        if owner.is_some() && self.shared == before {
            self.shared = self.builder.said().len();
        }
        Ok(())
    }

    fn parts(&mut self, hash: &str) -> Result<Written, ReadError> {
        let mut parts = Vec::new();
        let damaged = &mut self.damaged;
        let sql = "SELECT * FROM parts WHERE message_hash = ?1 ORDER BY position";
        self.database.rows(sql, &[hash], &mut |row| {
            let payload = row.text("payload").unwrap_or_else(|| "{}".to_owned());
            let kind = row.text("type").unwrap_or_default();
            match serde_json::from_str::<Value>(&payload) {
                Ok(payload) if payload.is_object() => parts.push((kind, row.text("text"), payload)),
                _ => damaged.extend(row.text("id")),
            }
        })?;
        let mut written = Written::default();
        for (place, (kind, text, payload)) in parts.into_iter().enumerate() {
            let text = match text {
                Some(text) => text,
                None => self.referred(&payload)?,
            };
            written.add(place, &kind, text, payload, self.builder);
        }
        Ok(written)
    }

    /// Returns a text that borrows from fragments.
    fn referred(&mut self, payload: &Value) -> Result<String, ReadError> {
        let pieces = payload.get("text_ref").and_then(Value::as_array);
        let mut text = String::new();
        for piece in pieces.into_iter().flatten() {
            if let Some(literal) = text_at(piece, "/literal") {
                text.push_str(literal);
            } else if let Some(fragment) = piece.get("fragment").and_then(Value::as_i64) {
                let sql = "SELECT content FROM fragments WHERE id = CAST(?1 AS INTEGER)";
                match self.database.texts(sql, &[&fragment.to_string()])?.pop() {
                    Some(content) => text.push_str(&content),
                    None => self.builder.skipped.count("missing fragments"),
                }
            }
        }
        Ok(text)
    }
}

/// The parts of a message.
#[derive(Debug, Default)]
struct Written {
    texts: Vec<String>,
    thought: Option<String>,
    calls: Vec<ToolCall>,
    /// Results of tools, with their places in the message.
    results: Vec<(usize, Value)>,
}

impl Written {
    fn add(
        &mut self,
        place: usize,
        kind: &str,
        text: String,
        payload: Value,
        builder: &mut SessionBuilder,
    ) {
        match kind {
            "text" => self.texts.push(text),
            "reasoning" if text.is_empty() => builder.skipped.count("encrypted thinking"),
            "reasoning" => self.thought.get_or_insert_default().push_str(&text),
            "tool_call" => self.calls.push(ToolCall {
                id: text_at(&payload, "/tool_call_id")
                    .unwrap_or_default()
                    .to_owned(),
                name: text_at(&payload, "/name").unwrap_or("tool").to_owned(),
                arguments: payload.get("arguments").cloned().unwrap_or_default(),
            }),
            "tool_result" => self.results.push((place, payload)),
            kind => {
                builder.skipped.count(&format!("{kind} parts"));
                self.texts.push(match text_at(&payload, "/attachment/id") {
                    Some(id) => format!("[{kind}: {id}]"),
                    None => format!("[{kind}]"),
                });
            }
        }
    }
}

fn result(id: &str, part: &Value, builder: &mut SessionBuilder) {
    let call = text_at(part, "/tool_call_id").unwrap_or_default();
    let exception = text_at(part, "/exception");
    let outcome = match exception {
        None => ToolOutcome::Ok,
        Some(_) => ToolOutcome::Failed,
    };
    let output = text_at(part, "/output").or(exception).unwrap_or_default();
    if part.get("attachments").is_some() {
        builder.skipped.count("attachments of tools");
    }
    builder.tool_result(id, call, output, outcome);
}
