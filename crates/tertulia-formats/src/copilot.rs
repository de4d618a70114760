//! Reads the sessions of GitHub Copilot CLI: a log of events per session, with a description and
//! token figures in files beside it. The first versions wrote one JSON document per session.

mod conversation;
mod history;
#[cfg(test)]
mod tests;
mod usage;
mod workspace;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::importer::{
    Importer, Input, JsonLine, JsonLines, ReadError, Skipped, Take, first_objects, text_at,
};
use conversation::Conversation;
use tertulia_core::entry::{ImportedParent, ImportedRelation};
use tertulia_core::foreign::Foreign;
use usage::Requests;
use workspace::Workspace;

/// Name of the program in `import --from`.
const PROGRAM: &str = "copilot";
/// Name of the agent that answers.
const AGENT: &str = "copilot";

/// Importer of GitHub Copilot CLI's sessions.
#[derive(Debug)]
pub struct Copilot;

impl Importer for Copilot {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn recognises(&self, path: &Path, beginning: &[u8]) -> bool {
        let is_event = |line: Value| match text_at(&line, "/type") {
            Some("session.start") => text_at(&line, "/data/sessionId").is_some(),
            Some("user.message" | "assistant.message") => line["data"]["content"].is_string(),
            _ => false,
        };
        first_objects(beginning).take(20).any(is_event) || history::is_one(path, beginning)
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        if history::is_one(input.path, &input.beginning()?) {
            if let Some(session) = history::read(input)? {
                let _ = take(session);
            }
            return Ok(());
        }
        let mut log = EventLog::default();
        let mut lines = JsonLines::new(input.open()?);
        while let Some(line) = lines.next_line()? {
            match line {
                JsonLine::Object(number, line) => log.read(&line, number),
                JsonLine::Damaged(number) => log.damaged.push(number),
            }
        }
        for session in log.sessions(input) {
            if !session.said.is_empty() && take(session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let folder = env("COPILOT_HOME").map_or_else(|| home.join(".copilot"), PathBuf::from);
        vec![
            folder.join("session-state"),
            folder.join("history-session-state"),
        ]
    }
}

/// What a log says about its session besides messages.
#[derive(Debug, Default)]
struct About {
    session: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    version: Option<String>,
    /// The session that started this one in the background.
    parent: Option<String>,
    title: Option<String>,
}

impl About {
    fn read(&mut self, data: &Value) {
        let known = |slot: &mut Option<String>, pointer: &str| {
            if slot.is_none() {
                *slot = text_at(data, pointer).map(str::to_owned);
            }
        };
        known(&mut self.session, "/sessionId");
        known(&mut self.cwd, "/context/cwd");
        known(&mut self.branch, "/context/branch");
        known(&mut self.version, "/copilotVersion");
        known(&mut self.parent, "/detachedFromSpawningParentSessionId");
    }
}

/// The content of an event log.
#[derive(Debug, Default)]
struct EventLog {
    about: About,
    main: Conversation,
    /// Conversations of subagents, by the id of the agent or of the tool call that started it.
    subagents: BTreeMap<String, Conversation>,
    /// Names of subagents.
    names: HashMap<String, String>,
    skipped: Skipped,
    damaged: Vec<usize>,
}

impl EventLog {
    fn read(&mut self, line: &Value, number: usize) {
        let nothing = Value::Null;
        let data = line.get("data").unwrap_or(&nothing);
        let kind = text_at(line, "/type").unwrap_or("lines without a type");
        match kind {
            "session.start" | "session.resume" => self.about.read(data),
            "session.title_changed" => {
                self.about.title = text_at(data, "/title").map(str::to_owned);
            }
            "subagent.started" => self.name(line, data),
            _ => {}
        }
        let agent = text_at(line, "/agentId").or(text_at(data, "/parentToolCallId"));
        let conversation = match agent.filter(|_| !kind.starts_with("subagent.")) {
            None => &mut self.main,
            Some(agent) => self.subagents.entry(agent.to_owned()).or_default(),
        };
        let session = self.about.session.as_deref().unwrap_or("unknown");
        let place = format!("{session}:{number}");
        conversation.read(kind, line, data, &place, &mut self.skipped);
    }

    fn name(&mut self, line: &Value, data: &Value) {
        let Some(name) = text_at(data, "/agentDisplayName") else {
            return;
        };
        let keys = [text_at(line, "/agentId"), text_at(data, "/toolCallId")];
        for key in keys.into_iter().flatten() {
            self.names.insert(key.to_owned(), name.to_owned());
        }
    }

    /// Returns the sessions: first the one that the others refer to.
    fn sessions(mut self, input: &Input<'_>) -> Vec<Foreign> {
        self.describe(input);
        let about = &self.about;
        let original = about.session.as_deref().unwrap_or("unknown");
        let mut requests = Requests::of(input, original);
        let mut main = self.main.finish(original, requests.take(None));
        main.title.clone_from(&about.title);
        main.source.parent = about.parent.as_deref().map(started_by);
        main.changes.damaged = self.damaged;
        let mut sessions = vec![main];
        for (agent, conversation) in self.subagents {
            let name = format!("{original}/agent-{agent}");
            let mut session = conversation.finish(&name, requests.take(Some(&agent)));
            session.title = self.names.remove(&agent);
            session.source.parent = Some(started_by(original));
            sessions.push(session);
        }
        for session in &mut sessions {
            session.source.cwd.clone_from(&about.cwd);
            session.source.branch.clone_from(&about.branch);
            session.source.version.clone_from(&about.version);
        }
        // What the file lost is reported once.
        let lost = &mut sessions[0].changes.lost;
        let skipped = self.skipped.listed();
        lost.extend(skipped.map(|skipped| format!("not part of the conversation: {skipped}")));
        lost.extend(requests.lost());
        sessions
    }

    /// Adds what the folder says about the session.
    fn describe(&mut self, input: &Input<'_>) {
        if input.content.is_some() {
            return;
        }
        let workspace = Workspace::beside(input.path);
        let about = &mut self.about;
        let session = about.session.take().or(workspace.session);
        about.session = session.or_else(|| name_of(input.path));
        about.cwd = about.cwd.take().or(workspace.cwd);
        about.branch = about.branch.take().or(workspace.branch);
        about.title = about.title.take().or(workspace.title);
    }
}

fn started_by(original: &str) -> ImportedParent {
    ImportedParent {
        original: original.to_owned(),
        relation: ImportedRelation::Subagent,
    }
}

/// Returns the name of a log that does not say its session: that of its folder, or its own in older
/// versions.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    let name = match name {
        "events" => path.parent()?.file_name()?.to_str()?,
        name => name,
    };
    Some(name.to_owned())
}
