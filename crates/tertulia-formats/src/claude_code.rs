//! Reads the session files of Claude Code: JSON lines that form a tree by `uuid` and `parentUuid`.
//! The path that was written first is the session; a prompt that was edited later begins a fork.
//! Lines of subagents are sessions of their own.

mod branches;
mod line;
mod machine_text;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::importer::{
    Importer, Input, JsonLine, JsonLines, ReadError, Skipped, Take, first_objects, is_true_at,
    text_at,
};
use branches::Branches;
use tertulia_core::entry::{ImportedParent, ImportedRelation};
use tertulia_core::foreign::{Changes, Foreign};

/// Name of the program in `import --from`.
const PROGRAM: &str = "claude-code";
/// Name of the agent that answers.
const AGENT: &str = "claude";

/// Types of lines that only Claude Code's files have together with a session id.
const TYPES: &[&str] = &[
    "user",
    "assistant",
    "system",
    "summary",
    "attachment",
    "queue-operation",
    "mode",
    "file-history-snapshot",
    "progress",
    "last-prompt",
    "custom-title",
    "ai-title",
];

/// Importer of Claude Code's sessions.
#[derive(Debug)]
pub struct ClaudeCode;

impl Importer for ClaudeCode {
    fn name(&self) -> &'static str {
        PROGRAM
    }

    fn recognises(&self, _path: &Path, beginning: &[u8]) -> bool {
        first_objects(beginning).take(20).any(|line| {
            let kind = text_at(&line, "/type").unwrap_or_default();
            let is_message = line.get("uuid").is_some() && line.get("parentUuid").is_some();
            let has_session = text_at(&line, "/sessionId").is_some();
            let is_title = kind == "summary" && line.get("leafUuid").is_some();
            TYPES.contains(&kind) && (is_title || (has_session && (is_message || kind != "user")))
        })
    }

    fn read(&self, input: &Input<'_>, take: &mut Take<'_>) -> Result<(), ReadError> {
        let mut file = SessionFile::default();
        let mut lines = JsonLines::new(input.open()?);
        while let Some(line) = lines.next_line()? {
            match line {
                JsonLine::Object(_, line) => file.read(&line),
                JsonLine::Damaged(number) => file.changes.damaged.push(number),
            }
        }
        let name = input.path.file_stem().and_then(|stem| stem.to_str());
        for session in file.sessions(name) {
            if session.said.is_empty() {
                continue;
            }
            if take(session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn places(&self, home: &Path, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
        let folder = env("CLAUDE_CONFIG_DIR").map_or_else(|| home.join(".claude"), PathBuf::from);
        vec![folder.join("projects")]
    }
}

/// What a file says about its sessions besides messages.
#[derive(Clone, Debug, Default)]
struct About {
    session: Option<String>,
    title: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    version: Option<String>,
    exported_from: Option<String>,
}

impl About {
    fn read(&mut self, line: &Value) {
        let known = |slot: &mut Option<String>, pointer: &str| {
            if slot.is_none() {
                *slot = text_at(line, pointer).map(str::to_owned);
            }
        };
        known(&mut self.session, "/sessionId");
        known(&mut self.cwd, "/cwd");
        known(&mut self.branch, "/gitBranch");
        known(&mut self.exported_from, "/exportedFrom");
        // The version of the program that wrote last.
        if let Some(version) = text_at(line, "/version") {
            self.version = Some(version.to_owned());
        }
        let title = match text_at(line, "/type") {
            Some("summary") => text_at(line, "/summary"),
            Some("custom-title") => text_at(line, "/customTitle"),
            Some("ai-title") => text_at(line, "/aiTitle"),
            _ => None,
        };
        if let Some(title) = title {
            self.title = Some(title.to_owned());
        }
    }

    fn describe(&self, session: &mut Foreign) {
        let source = &mut session.source;
        source.cwd.clone_from(&self.cwd);
        source.branch.clone_from(&self.branch);
        source.version.clone_from(&self.version);
        source.exported_from.clone_from(&self.exported_from);
    }
}

/// The content of a file.
#[derive(Debug, Default)]
struct SessionFile {
    about: About,
    main: Branches,
    /// Lines of subagents, by the id of the agent.
    subagents: BTreeMap<String, Branches>,
    /// The agent that a line of a subagent belongs to, by the line's id.
    owners: BTreeMap<String, String>,
    skipped: Skipped,
    changes: Changes,
}

impl SessionFile {
    fn read(&mut self, line: &Value) {
        self.about.read(line);
        match is_true_at(line, "/isSidechain") {
            false => self.main.read(line, &mut self.skipped),
            true => {
                let agent = self.owner(line);
                let branches = self.subagents.entry(agent).or_default();
                branches.read(line, &mut self.skipped);
            }
        }
    }

    /// Returns the id of the agent that wrote a line: as recorded, or else the first line of its
    /// chain.
    fn owner(&mut self, line: &Value) -> String {
        let uuid = text_at(line, "/uuid").unwrap_or_default();
        let parent = text_at(line, "/parentUuid").and_then(|parent| self.owners.get(parent));
        let agent = match (text_at(line, "/agentId"), parent) {
            (Some(agent), _) => agent.to_owned(),
            (None, Some(parent)) => parent.clone(),
            (None, None) => uuid.to_owned(),
        };
        self.owners.insert(uuid.to_owned(), agent.clone());
        agent
    }

    /// Returns the sessions: first those that others refer to.
    fn sessions(self, file_name: Option<&str>) -> Vec<Foreign> {
        let about = &self.about;
        let session = about.session.as_deref().or(file_name).unwrap_or("unknown");
        let mut sessions = self.main.sessions(session);
        if let Some(first) = sessions.first_mut() {
            first.title.clone_from(&about.title);
        }
        for (agent, branches) in self.subagents {
            let mut delegated = branches.sessions(&format!("{session}/agent-{agent}"));
            for one in &mut delegated {
                one.source.parent.get_or_insert_with(|| ImportedParent {
                    original: session.to_owned(),
                    relation: ImportedRelation::Subagent,
                });
            }
            sessions.extend(delegated);
        }
        for session in &mut sessions {
            about.describe(session);
        }
        // What the file lost is reported once, with its first session.
        if let Some(first) = sessions.first_mut() {
            first.changes.damaged.extend(self.changes.damaged);
            if let Some(skipped) = self.skipped.listed() {
                let words = format!("not part of the conversation: {skipped}");
                first.changes.lost.push(words);
            }
        }
        sessions
    }
}
