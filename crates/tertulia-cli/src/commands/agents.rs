use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tertulia::agent::Readiness;

use crate::agents;
use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::open;
use crate::ui::Ui;

/// Show which agents could answer, and why not
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia agents\n  \
    tertulia agents demo --json\n\n\
    Agents are described in the settings file, for example any program:\n\n  \
    [agents.upper]\n  \
    type = \"command\"\n  \
    command = \"tr\"\n  \
    args = [\"a-z\", \"A-Z\"]")]
pub struct AgentsArgs {
    /// Only this one
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub fn run(args: &AgentsArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::settings(global, ui)?;
    let names = match &args.name {
        Some(name) => {
            agents::named(&settings, name, None)?;
            vec![name.clone()]
        }
        None => agents::names(&settings),
    };
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    for name in names {
        let kind = agents::kind(&settings, &name).to_owned();
        let (model, readiness) = match agents::named(&settings, &name, None) {
            Ok(agent) => (
                agent.model().map(str::to_owned),
                pollster::block_on(agent.readiness()),
            ),
            Err(error) => (None, Readiness::NotReady(error.to_string())),
        };
        let (ready, remark) = match readiness {
            Readiness::Ready(remark) => (true, remark.unwrap_or_default()),
            Readiness::NotReady(reason) => (false, reason),
        };
        objects.push(
            json!({ "name": name, "type": kind, "model": model, "ready": ready, "reason": remark }),
        );
        let state = if ready { "ready" } else { "not ready" };
        rows.push(vec![
            name,
            kind,
            model.unwrap_or_default(),
            state.to_owned(),
            remark,
        ]);
    }
    if ui.json {
        ui.document(&json!({ "agents": objects }));
    } else {
        ui.table(&["NAME", "TYPE", "MODEL", "STATE", ""], &rows);
    }
    Ok(ExitCode::SUCCESS)
}
