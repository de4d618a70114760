//! Implements `agents check`: sends one tiny prompt to an agent and reports the answer.

use std::process::ExitCode;
use std::time::Instant;

use serde_json::{Value, json};
use tertulia_agents::approval::Approval;
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, PromptMessage,
};
use tertulia_core::entry::{Role, Usage};
use tokio_util::sync::CancellationToken;

use crate::error::CommandResult;
use crate::ui::{Ui, fit};

/// Prompt text that is sent.
const TINY: &str = "Answer with the one word: ready";

/// Sends one tiny prompt and prints the answer, the time and the tokens. Nothing is saved.
pub async fn check_one(
    agent: &dyn Agent,
    cancel: &CancellationToken,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let begun = Instant::now();
    let question = AgentRequest {
        messages: vec![PromptMessage::plain(Role::User, "User", TINY)],
        total: 1,
        marker: uuid::Uuid::new_v4().to_string(),
        approval: Approval::None,
        ephemeral: true,
        ..AgentRequest::default()
    };
    let (sink, mut listener) = AgentSink::open(cancel);
    let answer = async move { agent.answer(&question, &sink).await };
    let listen = async {
        let (mut words, mut usage) = (String::new(), None);
        while let Some(event) = listener.events.recv().await {
            match event {
                AgentEvent::Text(text) => words.push_str(&text),
                AgentEvent::Usage(told) => usage = Some(told),
                // Unknown events do not affect whether the agent answers.
                AgentEvent::Unknown(_) => {}
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
