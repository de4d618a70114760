//! Lists agents, models and teams.

use tertulia_tui::host::{AgentRow, Models};

use crate::commands::agents as who;
use crate::commands::team::files;
use crate::error::CommandResult;
use crate::settings::Settings;
use crate::ui::table_lines;
use crate::{agents, teams};

/// Lists the agents, or only the one of this name.
pub fn agents(settings: &Settings, only: Option<&str>) -> CommandResult<Vec<AgentRow>> {
    let states = who::states_now(settings, only)?.into_iter();
    let row = |state: who::AgentState| AgentRow {
        name: state.name,
        kind: state.kind,
        model: state.model,
        is_ready: state.is_ready,
        remark: state.remark,
    };
    Ok(states.map(row).collect())
}

/// Lists the names of the agents.
pub fn agent_names(settings: &Settings) -> CommandResult<Vec<String>> {
    let registry = settings.registry.read()?;
    Ok(agents::names(&agents::with_registered(settings, &registry)))
}

/// Lists the teams as lines.
pub fn teams(settings: &Settings) -> CommandResult<Vec<String>> {
    let rows = files::rows(settings)?;
    let mut lines = match rows.is_empty() {
        true => vec![files::NONE.to_owned()],
        false => table_lines(files::HEADINGS, &rows),
    };
    lines.extend(teams::passed_over(&settings.cwd));
    Ok(lines)
}

/// Asks an agent for its models.
pub fn models(settings: &Settings, name: &str) -> CommandResult<Models> {
    let (names, complete) = who::models_now(settings, name)?;
    Ok(Models { names, complete })
}
