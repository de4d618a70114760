//! Chooses the agent of a chat, and introduces it.

use std::path::Path;

use tertulia_core::query::Row;
use tertulia_engine::setup::ChatAgent;
use tertulia_engine::spec::{AgentSpec, ParticipantSpec, SessionSpec};

use super::{environment, name_instructions, read_instructions};
use crate::agents::{self, Chosen};
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::talk;
use crate::ui::Ui;

/// Prepares an agent for a chat that is open already: the one of `spec`, or the one that the session
/// had.
pub fn chat_agent(
    spec: &SessionSpec,
    row: Option<&Row>,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<ChatAgent> {
    let asked = match &spec.participants {
        ParticipantSpec::Chat(agent) => agent.clone(),
        _ => AgentSpec::default(),
    };
    let there = match row.and_then(|row| row.meta.cwd.as_deref()).map(Path::new) {
        Some(folder) if folder != workspace.settings.cwd && folder.is_dir() => {
            Some(workspace.in_folder(folder)?)
        }
        _ => None,
    };
    let workspace = there.as_ref().unwrap_or(workspace);
    let (chosen, _) = chosen_agent(&asked, spec, row, workspace, ui)?;
    Ok(ChatAgent {
        notices: talk::messages(ui).0,
        ..chosen
    })
}

/// Chooses the agent of a chat. Returns also whether it was picked automatically.
pub fn chosen_agent(
    asked: &AgentSpec,
    spec: &SessionSpec,
    row: Option<&Row>,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<(ChatAgent, bool)> {
    let recorded = row.and_then(|row| {
        Some(agents::Recorded {
            name: row.meta.last_agent()?,
            model: row.meta.pinned_model.as_deref(),
        })
    });
    let named = agents::Asked {
        name: asked.agent.as_deref(),
        model: asked.model.as_deref(),
    };
    let chosen = agents::choose(&workspace.settings, &named, recorded)?;
    if let (Some(wanted), Some(model)) = (&asked.model, chosen.agent.model())
        && wanted != model
    {
        let name = chosen.agent.name();
        ui.warn(&format!(
            "unknown model '{wanted}' for {name}; known: {model}, which answers"
        ));
    }
    let mut introduction = match ui.is_holding() {
        true => screen_introduction(&chosen),
        false => chat_introduction(&chosen),
    };
    let mut environment = None;
    if chosen.agent.system_texts().is_some() {
        let folder = &workspace.settings.cwd;
        let found = read_instructions(spec, workspace, folder, chosen.compact_at);
        name_instructions(&found, &mut introduction, ui);
        environment = Some(environment::describe(folder, found, ui));
    }
    let agent = ChatAgent {
        agent: chosen.agent,
        is_pinned: asked.model.is_some(),
        compact_at: chosen.compact_at,
        environment,
        introduction,
        notices: Vec::new(),
    };
    Ok((agent, chosen.unasked))
}

/// Names the agent and why it was chosen, for frontends with slash commands.
fn screen_introduction(chosen: &Chosen) -> String {
    let agent = &chosen.agent;
    if chosen.unasked && agent.name() == agents::DEMO {
        return "The built-in demo answers; it only echoes. For a real agent: /agents".to_owned();
    }
    let model = agent.model().map(|model| format!("{model}, "));
    let reason = match chosen.reason.as_str() {
        agents::ASKED_FOR => "your choice",
        reason => reason,
    };
    format!(
        "{} answers ({}{reason}). /agents changes it.",
        agent.name(),
        model.unwrap_or_default()
    )
}

/// Names the agent, why it was chosen, and how to choose another.
fn chat_introduction(chosen: &Chosen) -> String {
    let agent = &chosen.agent;
    let model = agent.model().map(|model| format!(" ({model})"));
    format!(
        "Using {}{}: {}. Choose another with --agent; `tertulia agents` lists those that are ready.",
        agent.name(),
        model.unwrap_or_default(),
        chosen.reason
    )
}
