mod check;
mod programs;
mod registered;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use futures::FutureExt;
use serde_json::{Value, json};
use tertulia_agents::api::Provider;
use tertulia_agents::{Readiness, ToolSide};

use crate::agents;
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::runtime;
use crate::settings::{AgentSettings, Settings};
use crate::signals::Signals;
use crate::ui::Ui;
use programs::VerifyArgs;
use registered::{DeleteArgs, RegisterArgs};

/// Time limit for agents to report whether they are ready.
const LOOK_WITHIN: Duration = Duration::from_secs(15);
/// Time limit for an agent to list its models.
const NAME_WITHIN: Duration = Duration::from_secs(5);

/// List agents and whether they are ready
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    tertulia agents                     who is ready, and why the others are not\n  \
    tertulia agents claude --json\n  \
    tertulia agents check anthropic     sends one tiny prompt (it costs a few tokens)\n  \
    tertulia agents models ollama       the models that it could use\n  \
    tertulia agents scan                which agent programs this machine has\n  \
    tertulia agents register --auto     registers those, for teams and for --agent\n\n\
    Agents are described in the settings file, for example a server of one's own, and any program:\n\n  \
    [agents.local]\n  \
    type = \"openai\"\n  \
    base_url = \"http://127.0.0.1:8080/v1\"\n  \
    model = \"qwen3\"\n\n  \
    [agents.upper]\n  \
    type = \"command\"\n  \
    command = \"tr\"\n  \
    args = [\"a-z\", \"A-Z\"]"
)]
pub struct AgentsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Only this one
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Send one tiny prompt and show what comes back
    #[command(after_help = "Examples:\n  \
        tertulia agents check anthropic\n  \
        tertulia agents check local --model qwen3 --json")]
    Check(NameArgs),
    /// List the models that an agent could use
    #[command(after_help = "Examples:\n  tertulia agents models ollama")]
    Models(NameArgs),
    /// Look for agent programs on this machine; nothing is changed
    #[command(after_help = "Examples:\n  \
        tertulia agents scan\n  \
        tertulia agents scan --json\n\n\
        Looked at: the search path, the places where npm, bun, nvm and the vendors' installers put\n\
        programs, /usr/local/bin and /opt/homebrew/bin.")]
    Scan,
    Register(RegisterArgs),
    /// List the registered agents
    #[command(after_help = "Examples:\n  tertulia agents list --json")]
    List,
    Verify(VerifyArgs),
    /// Show everything about one registered agent
    #[command(after_help = "Examples:\n  tertulia agents info claude")]
    Info {
        /// The agent
        name: String,
    },
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The agent
    name: String,
    /// With this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub fn run(args: &AgentsArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::settings(global, ui)?;
    crate::talk::enough_files()?;
    let runtime = runtime::get().map_err(|error| {
        CommandError::new(ErrorKind::Failed, "agents cannot be asked").because(error)
    })?;
    let listen = || {
        let _inside = runtime.enter();
        Signals::listen()
    };
    match &args.action {
        None => runtime.block_on(list(&settings, args.name.as_deref(), ui)),
        Some(Action::Check(check)) => {
            let settings = agents::with_registered_for(&settings, &check.name)?;
            let agent = agents::named(&settings, &check.name, check.model.as_deref())?;
            let mut signals = listen()?;
            let cancel = signals.cancel.clone();
            let checked = check::check_one(agent.as_ref(), &cancel, ui);
            runtime.block_on(signals.during(checked))?
        }
        Some(Action::Models(models)) => {
            let settings = agents::with_registered_for(&settings, &models.name)?;
            let agent = agents::named(&settings, &models.name, models.model.as_deref())?;
            let models = runtime.block_on(agent.models())?;
            if ui.json {
                ui.document(&json!({ "agent": agent.name(), "models": models }));
            } else {
                models.iter().for_each(|model| ui.line(model));
            }
            if agent.tools() != ToolSide::Ours {
                ui.note(&format!(
                    "{} does not list its models to other programs; look in the program itself, then choose one with --model",
                    agent.name()
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Action::Scan) => runtime.block_on(programs::scan(&settings, &mut listen()?, ui)),
        Some(Action::Register(register)) if register.auto => {
            let names = &register.names;
            runtime.block_on(programs::register(&settings, names, &mut listen()?, ui))
        }
        Some(Action::Register(register)) => registered::register(register, &settings, ui),
        Some(Action::List) => registered::list(&settings, ui),
        Some(Action::Verify(verify)) => {
            runtime.block_on(programs::verify(verify, &settings, &mut listen()?, ui))
        }
        Some(Action::Info { name }) => registered::info(name, &settings, ui),
        Some(Action::Delete(delete)) => registered::delete(delete, &settings, ui),
    }
}

/// One agent in the list.
struct Line {
    name: String,
    kind: String,
    model: Option<String>,
    readiness: Readiness,
}

/// Column headings of the agent table.
const HEADINGS: &[&str] = &["NAME", "TYPE", "MODEL", "STATE", ""];

/// An agent and whether it can answer, for lists of other frontends.
#[derive(Clone, Debug)]
pub struct AgentState {
    pub name: String,
    pub kind: String,
    pub model: Option<String>,
    pub is_ready: bool,
    /// Why it is not ready, or a remark.
    pub remark: String,
}

/// Returns every available agent, or only the one of this name.
pub async fn states(settings: &Settings, only: Option<&str>) -> CommandResult<Vec<AgentState>> {
    let lines = looked_at(settings, only).await?.into_iter();
    let state = |line: Line| {
        let (is_ready, remark) = line.ready();
        let needs_key = Provider::parse(&line.kind)
            .is_some_and(|provider| !provider.key_variables().is_empty());
        let remark = match !is_ready && needs_key {
            true => format!(
                "{remark}; export it before you start tertulia, or name a `key_command` in [agents.{}] of the settings",
                line.name
            ),
            false => remark.to_owned(),
        };
        AgentState {
            is_ready,
            remark,
            name: line.name,
            kind: line.kind,
            model: line.model,
        }
    };
    Ok(lines.map(state).collect())
}

/// Returns all agents with their states, within a time limit. Blocks.
pub fn states_now(settings: &Settings, only: Option<&str>) -> CommandResult<Vec<AgentState>> {
    asked(LOOK_WITHIN, states(settings, only))?
}

/// Asks an agent for its models. Returns whether it names all of them, too. Blocks.
pub fn models_now(settings: &Settings, name: &str) -> CommandResult<(Vec<String>, bool)> {
    let settings = agents::with_registered_for(settings, name)?;
    let agent = agents::named(&settings, name, None)?;
    let models = asked(NAME_WITHIN, agent.models())??;
    Ok((models, agents::names_all_models(agent.as_ref())))
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

impl Line {
    fn ready(&self) -> (bool, &str) {
        match &self.readiness {
            Readiness::Ready(remark) => (true, remark.as_deref().unwrap_or_default()),
            Readiness::NotReady(reason) => (false, reason),
        }
    }

    fn row(self) -> Vec<String> {
        let (ready, remark) = self.ready();
        let state = if ready { "ready" } else { "not ready" };
        let remark = remark.to_owned();
        let model = self.model.unwrap_or_default();
        vec![self.name, self.kind, model, state.to_owned(), remark]
    }
}

async fn list(settings: &Settings, only: Option<&str>, ui: &mut Ui) -> CommandResult<ExitCode> {
    let lines = looked_at(settings, only).await?;
    if ui.json {
        let objects: Vec<Value> = lines
            .iter()
            .map(|line| {
                let (ready, remark) = line.ready();
                json!({
                    "name": line.name, "type": line.kind, "model": line.model, "ready": ready, "reason": remark,
                })
            })
            .collect();
        ui.document(&json!({ "agents": objects }));
    } else {
        let rows: Vec<Vec<String>> = lines.into_iter().map(Line::row).collect();
        ui.table(HEADINGS, &rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks the readiness of all agents, or only of the agent named `only`.
async fn looked_at(settings: &Settings, only: Option<&str>) -> CommandResult<Vec<Line>> {
    let mut known = everybody(settings)?;
    if let Some(name) = only {
        known.retain(|(known, _)| known == name);
        if known.is_empty() {
            agents::named(&agents::with_registered_for(settings, name)?, name, None)?;
        }
    }
    let asked = known
        .into_iter()
        .map(|(name, described)| look_at(settings, name, described));
    Ok(futures::future::join_all(asked).await)
}

/// Returns all available agents, each with the settings that describe how to reach it.
fn everybody(settings: &Settings) -> CommandResult<Vec<(String, AgentSettings)>> {
    let registry = settings.registry.read()?;
    let joined = agents::with_registered(settings, &registry);
    let mut known: Vec<(String, AgentSettings)> = agents::names(&joined)
        .into_iter()
        .map(|name| {
            let described = agents::described(&joined, &name);
            (name, described)
        })
        .collect();
    // A registered program that shares a provider's name is used in teams only; list both.
    for (name, agent) in &registry.agents {
        if agents::is_taken(name) {
            let started = agents::started(settings, name, &agents::launch(agent));
            known.push((name.clone(), started.described));
        }
    }
    Ok(known)
}

async fn look_at(settings: &Settings, name: String, described: AgentSettings) -> Line {
    let (model, readiness) = match agents::as_described(settings, &name, &described) {
        Ok(agent) => (agent.model().map(str::to_owned), agent.readiness().await),
        Err(error) => (None, Readiness::NotReady(error.to_string())),
    };
    Line {
        name,
        kind: described.kind,
        model,
        readiness,
    }
}
