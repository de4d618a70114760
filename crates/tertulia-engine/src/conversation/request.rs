//! Builds the request for an agent: messages, tools, the agent's own session, and its model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Conversation;
use super::ask::Asking;
use crate::event::SessionEvent;
use crate::frontend::Frontend;
use crate::log_writer::LogWriter;
use crate::notice::Notice;
use crate::pair::PairEvent;
use crate::policy::{Ask, Maker};
use tertulia_agents::approval::Approval;
use tertulia_agents::process::guard;
use tertulia_agents::system_prompt::{self, PromptFacts, WorkEnvironment};
use tertulia_agents::{
    Agent, AgentError, AgentRequest, NativeSession, PromptMessage, ToolSide, ToolSpec,
};
use tertulia_core::entry::{Body, Environment, Role};
use tertulia_core::pair::PairRole;
use tertulia_core::redact::redact;

impl Asking<'_> {
    /// Shows a notice if the model differs from the recorded one, for agents that report it late.
    pub(super) fn compare_model(&mut self, now: &str) {
        // A model that the agent named before was compared when the session was resumed.
        let is_compared = self.agent.model() == Some(now);
        if self.ask.part.is_some() || self.conversation.switched || is_compared {
            return;
        }
        let meta = self.conversation.writer.meta();
        let recorded = meta.and_then(|meta| meta.model.as_deref());
        // An agent may name its model several times.
        if let Some(notice) = Notice::other_model(None, recorded, Some(now))
            && self.conversation.noticed.insert(notice.text())
        {
            self.frontend.show(notice.into());
        }
    }

    /// Records the environment if the agent's system prompt describes it and it has changed since the
    /// agent was told. A member of a team gets one prompt with everything, and always the present one.
    pub(super) async fn record_environment(&mut self) {
        let Some(environment) = self.conversation.options.environment.clone() else {
            return;
        };
        environment.git.settled().await;
        let is_told = matches!(self.agent.system_texts(), Some(texts) if texts.system.is_none());
        let messages = self.context().messages();
        let is_asked = messages.last().map(|said| said.words.role) == Some(Role::User);
        if !is_told || !is_asked || self.is_team() {
            return;
        }
        let current = self.environment(&environment);
        if self.context().last_environment() != Some(&current) {
            let thread = self.ask.thread;
            let entry = vec![Body::Environment(current)];
            self.conversation.write(thread, entry, self.frontend).await;
        }
    }

    fn is_team(&self) -> bool {
        matches!(&self.ask.part, Some(part) if part.role.is_none())
    }

    fn environment(&self, environment: &WorkEnvironment) -> Environment {
        let thread = self.ask.thread.map(PairRole::name);
        let mut current = environment.current(self.now(), self.approval(), thread);
        // As the log has it: otherwise it would seem to change with each message.
        current.git = current.git.map(|git| redact(&git).text.into_owned());
        current
    }

    pub(super) fn request(&mut self) -> AgentRequest {
        let mut messages = with_files(self.context().prompt(), &self.agent);
        let part = self.ask.part.clone();
        if let Some(part) = part.as_ref().filter(|part| part.role.is_some())
            && self.agent.tools() != ToolSide::Ours
        {
            // An agent that takes no separate system prompt gets it as the first message.
            let system = PromptMessage::plain(Role::System, "your part", part.system.as_str());
            messages.insert(0, system);
        }
        let meta = self.conversation.writer.meta();
        let total = meta.map_or(0, |meta| meta.messages);
        AgentRequest {
            system: self.system_prompt(),
            total: total.max(messages.len() as u64),
            native: match part {
                Some(_) => None,
                None => self.native(&messages),
            },
            messages,
            asked_at: Some(self.now()),
            marker: self.conversation.agent_marker(&self.agent),
            tools: self.tool_specs(),
            approval: self.approval(),
            ephemeral: self.keeps_nothing(),
            part,
        }
    }

    /// Returns the system prompt of an agent that brings none.
    fn system_prompt(&self) -> Option<String> {
        let environment = self.conversation.options.environment.as_deref()?;
        let context = self.conversation.contexts.get(&self.ask.thread);
        let start = context.and_then(|context| context.first_environment().cloned());
        let facts = PromptFacts {
            environment,
            start: &start.unwrap_or_else(|| self.environment(environment)),
            tools: &self.tool_specs(),
        };
        system_prompt::build(self.agent.system_texts()?, &facts)
    }

    /// Returns the tools that the agent may call.
    pub(super) fn tool_specs(&self) -> Vec<ToolSpec> {
        match (&self.access.tools, self.agent.tools()) {
            (Some(tools), ToolSide::Ours) if self.access.rules.mode() != Approval::None => {
                tools.specs()
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if the agent should not save a session of its own: this session is ephemeral,
    /// or each prompt contains all that the agent needs (team, pair).
    pub(super) fn keeps_nothing(&self) -> bool {
        self.conversation.options.ephemeral || self.ask.part.is_some()
    }

    /// Returns the agent's own session, and how many of `messages` it contains already.
    fn native(&self, messages: &[PromptMessage]) -> Option<NativeSession> {
        let name = self.agent.name();
        let meta = self.conversation.writer.meta()?;
        let Some(native) = meta.natives.iter().find(|native| native.agent == name) else {
            return self.inherited(messages);
        };
        // Messages from before this native session began belong to an earlier one.
        let context = self.conversation.contexts.get(&self.ask.thread)?;
        let spoke_there = context.messages().iter().any(|said| {
            said.words.role == Role::Assistant
                && said.words.speaker == name
                && said.seq.is_none_or(|seq| seq > native.since)
        });
        let known = match spoke_there {
            true => answered_by(name, messages),
            false => 0,
        };
        // Logs of earlier versions have only the folder in which the session itself began.
        let cwd = native.cwd.as_ref().or(meta.cwd.as_ref());
        Some(NativeSession {
            id: native.id.clone(),
            cwd: cwd.map(PathBuf::from),
            known,
            spent: native.spent,
            fork: false,
        })
    }

    /// Returns the session of the agent's program that this one was imported from.
    fn inherited(&self, messages: &[PromptMessage]) -> Option<NativeSession> {
        let inherited = self.conversation.options.inherited.as_ref()?;
        let spent = self.conversation.writer.meta()?.tokens;
        let known = answered_by(&inherited.speaker, messages);
        (inherited.agent == self.agent.name() && known > 0).then(|| NativeSession {
            id: inherited.id.clone(),
            cwd: inherited.cwd.clone(),
            known,
            spent,
            fork: true,
        })
    }
}

/// Returns the number of messages up to the last answer of an agent and the results of its tools.
fn answered_by(speaker: &str, messages: &[PromptMessage]) -> usize {
    let last = messages
        .iter()
        .rposition(|words| words.role == Role::Assistant && words.speaker == speaker);
    last.map_or(0, |last| {
        let results = messages[last + 1..]
            .iter()
            .take_while(|words| words.role == Role::Tool);
        last + 1 + results.count()
    })
}

impl Conversation {
    /// Returns the agent of a prompt with another model.
    pub(super) async fn with_model(
        &self,
        ask: &Ask,
        model: String,
        make: &Maker,
        frontend: &mut dyn Frontend,
    ) -> Result<Arc<dyn Agent>, AgentError> {
        let model = resolved(ask.agent.as_ref().map_err(AgentError::clone)?, model).await;
        frontend.show(SessionEvent::Pair {
            event: PairEvent::Chose(model.clone()),
        });
        make(&model)
    }

    /// Returns the marker for processes of the agent. Agents that use tertulia's tools start none
    /// themselves, so that the guard need not be started; their tools get markers of their own.
    pub(super) fn agent_marker(&self, agent: &Arc<dyn Agent>) -> String {
        match agent.tools() {
            ToolSide::Ours => {
                let unique = self.writer.sessions().clock().entry_id();
                format!("{}{unique}", marker_prefix(&self.writer))
            }
            ToolSide::Its | ToolSide::None => self.marker(),
        }
    }

    /// Returns a unique marker that shows which session and which run of this program started a
    /// process.
    pub(super) fn marker(&self) -> String {
        let unique = self.writer.sessions().clock().entry_id().to_string();
        let prefix = marker_prefix(&self.writer);
        // Without the guard's helper, orphaned processes are ended on resume.
        match self
            .options
            .guard
            .as_ref()
            .and_then(|guard| guard.run().ok())
        {
            Some(run) => guard::marker(&prefix, run, &unique),
            None => format!("{prefix}{unique}"),
        }
    }
}

/// Moves the attached files of messages into their texts, in the form for an agent.
pub(super) fn with_files(
    messages: Vec<PromptMessage>,
    agent: &Arc<dyn Agent>,
) -> Vec<PromptMessage> {
    let side = agent.tools();
    let messages = messages.into_iter();
    messages.map(|message| message.with_files(side)).collect()
}

/// Returns the prefix of all process markers of a session. It differs between stores: a copy of the
/// session in another store may have agents of its own running.
pub(super) fn marker_prefix(writer: &LogWriter) -> String {
    let file = writer.sessions().store().derived_file("runs");
    let folder = file.as_deref().and_then(Path::parent).map(|folder| {
        // Two spellings of one path are one store.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex()
    });
    let store = folder.as_deref().unwrap_or_default();
    format!("{}@{}:", writer.id(), &store[..store.len().min(16)])
}

/// Resolves a model name: `opus` is the provider's model of exactly that name, else the first that
/// contains it.
async fn resolved(agent: &Arc<dyn Agent>, name: String) -> String {
    if agent.tools() != ToolSide::Ours {
        return name;
    }
    match agent.models().await {
        Ok(models) => closest(&models, &name).unwrap_or(name),
        // The provider may know the model although it cannot list its models.
        Err(_) => name,
    }
}

fn closest(models: &[String], name: &str) -> Option<String> {
    let wanted = name.to_lowercase();
    let exact = models.iter().find(|model| **model == name);
    let like = || {
        models
            .iter()
            .find(|model| model.to_lowercase().contains(&wanted))
    };
    exact.or_else(like).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_mean_the_first_model_that_has_them() {
        let models = [
            "claude-sonnet-4-5",
            "claude-opus-4-6",
            "claude-opus-4-5",
            "opus",
        ];
        let models = models.map(str::to_owned);
        let check = |name, expected: Option<&str>| {
            assert_eq!(closest(&models, name).as_deref(), expected, "{name}");
        };
        check("Sonnet", Some("claude-sonnet-4-5"));
        check("opus", Some("opus"));
        check("claude-opus", Some("claude-opus-4-6"));
        check("gpt", None);
    }
}
