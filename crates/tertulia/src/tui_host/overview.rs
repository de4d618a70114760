//! Lists agents, models and teams.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tertulia_tui::host::{AgentRow, Models};

use crate::commands::agents as who;
use crate::commands::team::files;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::Settings;
use crate::ui::table_lines;
use crate::{agents, runtime, teams};

/// Time limit for agents to report whether they are ready.
const LOOK_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for an agent to list its models.
const NAME_WITHIN: Duration = Duration::from_secs(5);

/// Lists the agents, or only the one of this name.
pub fn agents(settings: &Settings, only: Option<&str>) -> CommandResult<Vec<AgentRow>> {
    asked(LOOK_WITHIN, who::rows(settings, only))?
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
    let settings = agents::with_registered_for(settings, name)?;
    let agent = agents::named(&settings, name, None)?;
    Ok(Models {
        names: asked(NAME_WITHIN, agent.models())??,
        complete: agents::names_all_models(agent.as_ref()),
    })
}

/// Waits for an agent's answer with a time limit. Called on a thread that may block.
fn asked<T>(limit: Duration, work: impl Future<Output = T>) -> CommandResult<T> {
    let failed = || CommandError::new(ErrorKind::Failed, "agents cannot be asked");
    let runtime = runtime::get().map_err(|error| failed().because(error))?;
    let answer = runtime.block_on(async {
        let work = AssertUnwindSafe(work).catch_unwind();
        tokio::time::timeout(limit, work).await
    });
    answer
        .map_err(|_| failed().because(format!("no answer within {} s", limit.as_secs())))?
        .map_err(|_| failed())
}
