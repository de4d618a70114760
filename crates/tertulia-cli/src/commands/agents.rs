use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tertulia::agent::{
    Agent, AgentError, AgentEvent, FailureKind, Floor, Question, Readiness, Utterance,
};
use tertulia::approval::Approval;
use tertulia::entry::{Role, Usage};
use tokio_util::sync::CancellationToken;

use crate::agents;
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::ui::{Ui, fit};

/// What `agents check` says.
const TINY: &str = "Answer with the one word: ready";

/// Show which agents could answer, and why not
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    tertulia agents                     who is ready, and why the others are not\n  \
    tertulia agents claude --json\n  \
    tertulia agents check anthropic     sends one tiny prompt (it costs a few tokens)\n  \
    tertulia agents models ollama       the models that it could use\n\n\
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, "agents cannot be asked").because(error)
        })?;
    match &args.action {
        None => runtime.block_on(list(&settings, args.name.as_deref(), ui)),
        Some(Action::Check(check)) => {
            let agent = agents::named(&settings, &check.name, check.model.as_deref())?;
            let mut signals = {
                let _inside = runtime.enter();
                Signals::listen()?
            };
            let cancel = signals.cancel.clone();
            let checked = check_one(agent.as_ref(), &cancel, ui);
            runtime.block_on(signals.during(checked))?
        }
        Some(Action::Models(models)) => {
            let agent = agents::named(&settings, &models.name, models.model.as_deref())?;
            let models = runtime.block_on(agent.models())?;
            if ui.json {
                ui.document(&json!({ "agent": agent.name(), "models": models }));
            } else {
                models.iter().for_each(|model| ui.line(model));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// One line of the list.
struct Line {
    name: String,
    kind: String,
    model: Option<String>,
    readiness: Readiness,
}

async fn list(settings: &Settings, only: Option<&str>, ui: &mut Ui) -> CommandResult<ExitCode> {
    let names = match only {
        Some(name) => {
            agents::named(settings, name, None)?;
            vec![name.to_owned()]
        }
        None => agents::names(settings),
    };
    let named = only.is_some();
    let asked = names.into_iter().map(|name| look_at(settings, name, named));
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    for line in futures::future::join_all(asked).await {
        let (ready, remark) = match line.readiness {
            Readiness::Ready(remark) => (true, remark.unwrap_or_default()),
            Readiness::NotReady(reason) => (false, reason),
        };
        objects.push(json!({
            "name": line.name, "type": line.kind, "model": line.model, "ready": ready, "reason": remark,
        }));
        let state = if ready { "ready" } else { "not ready" };
        let model = line.model.unwrap_or_default();
        rows.push(vec![line.name, line.kind, model, state.to_owned(), remark]);
    }
    if ui.json {
        ui.document(&json!({ "agents": objects }));
    } else {
        ui.table(&["NAME", "TYPE", "MODEL", "STATE", ""], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

async fn look_at(settings: &Settings, name: String, named: bool) -> Line {
    let kind = agents::kind(settings, &name);
    let (model, readiness) = match agents::named(settings, &name, None) {
        // Looking may run its program, and a program from a project runs only when it is named.
        Ok(agent) if !named && agents::is_from_project(settings, &name) => {
            let why = "described by this project, and looked at only when you name it";
            let model = agent.model().map(str::to_owned);
            (model, Readiness::NotReady(why.to_owned()))
        }
        Ok(agent) => (agent.model().map(str::to_owned), agent.readiness().await),
        Err(error) => (None, Readiness::NotReady(error.to_string())),
    };
    Line {
        name,
        kind,
        model,
        readiness,
    }
}

/// Sends one tiny prompt. Nothing of it is kept.
async fn check_one(
    agent: &dyn Agent,
    cancel: &CancellationToken,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let begun = Instant::now();
    let question = Question {
        messages: vec![Utterance::plain(Role::User, "You", TINY)],
        total: 1,
        marker: uuid::Uuid::new_v4().to_string(),
        approval: Approval::None,
        ephemeral: true,
        ..Question::default()
    };
    let (floor, mut listener) = Floor::open(cancel);
    let answer = async move { agent.answer(&question, &floor).await };
    let listen = async {
        let (mut words, mut usage) = (String::new(), None);
        while let Some(event) = listener.events.recv().await {
            match event {
                AgentEvent::Text(text) => words.push_str(&text),
                AgentEvent::Usage(told) => usage = Some(told),
                other => {
                    if let Some(note) = crate::show::event_words(&other) {
                        ui.note(&note);
                    }
                }
            }
        }
        (words, usage)
    };
    let (result, (words, usage)) = tokio::join!(answer, listen);
    result?;
    if words.trim().is_empty() {
        let silent = AgentError::new(FailureKind::Failed, "it ended without an answer");
        return Err(silent.into());
    }
    report(agent, &words, usage, begun, ui);
    Ok(ExitCode::SUCCESS)
}

fn report(agent: &dyn Agent, words: &str, usage: Option<Usage>, begun: Instant, ui: &mut Ui) {
    let seconds = begun.elapsed().as_secs_f64();
    if ui.json {
        let usage = usage.map_or(
            Value::Null,
            |usage| json!({ "input": usage.input, "output": usage.output }),
        );
        ui.document(&json!({
            "agent": agent.name(),
            "model": agent.model(),
            "ok": true,
            "answer": words,
            "seconds": (seconds * 1000.0).round() / 1000.0,
            "usage": usage,
        }));
        return;
    }
    let model = agent.model().map(|model| format!(" ({model})"));
    let tokens = usage.map(|usage| format!(", {} tokens", usage.input + usage.output));
    ui.line(&format!(
        "{}{} answers after {seconds:.1} s{}: {}",
        agent.name(),
        model.unwrap_or_default(),
        tokens.unwrap_or_default(),
        fit(words.trim(), 60)
    ));
}
