//! Agents behind an API, against a server that plays scripted bytes: successful answers, and broken
//! ones that must not pass as complete.

mod failing;
mod keys;
mod odd;
mod scripts;
mod server;
mod talking;

use std::time::Duration;

use serde_json::json;
use tertulia_agents::api::{Api, Key, Provider, Secret};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, Outcome, Patience, PromptMessage,
    ToolSpec,
};
use tertulia_core::entry::Role;
use tertulia_testkit::waiting::DEADLINE;
use tokio_util::sync::CancellationToken;

use server::Server;

/// The key that must not be shown.
const KEY: &str = "sk-very-secret";

/// Creates an agent for this server, with short time limits.
fn agent(provider: Provider, server: &Server) -> Api {
    let key = match provider {
        Provider::Ollama => Key::NotNeeded,
        _ => Key::Value {
            secret: Secret::new(KEY),
            variable: "MY_KEY".to_owned(),
        },
    };
    let path = match provider {
        Provider::OpenAi => "/v1/",
        _ => "/",
    };
    Api {
        model: Some("some-model".to_owned()),
        base_url: Some(server.url() + path),
        first_wait: Duration::from_millis(1),
        patience: Patience {
            total: DEADLINE,
            idle: DEADLINE,
        },
        ..Api::new("mine", provider, key)
    }
}

fn question(words: &str) -> AgentRequest {
    AgentRequest {
        messages: vec![PromptMessage::plain(Role::User, "me", words)],
        total: 1,
        marker: "test-marker".to_owned(),
        tools: vec![ToolSpec {
            name: "glob".to_owned(),
            description: "finds files".to_owned(),
            parameters: json!({"type": "object", "properties": {"pattern": {"type": "string"}}}),
        }],
        ..AgentRequest::default()
    }
}

/// All events of an answer, and how it ended.
struct Answer {
    events: Vec<AgentEvent>,
    result: Result<Outcome, AgentError>,
}

impl Answer {
    fn text(&self) -> String {
        let words = self.events.iter().filter_map(|event| match event {
            AgentEvent::Text(words) => Some(words.as_str()),
            _ => None,
        });
        words.collect()
    }

    fn error(&self) -> &AgentError {
        self.result.as_ref().expect_err("it should have failed")
    }
}

/// Prompts the agent, and cancels at the first event for which `until` is true.
fn ask_until(api: &Api, question: &AgentRequest, until: fn(&AgentEvent) -> bool) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let cancel = CancellationToken::new();
        let (sink, mut listener) = AgentSink::open(&cancel);
        let answer = async {
            let result = api.answer(question, &sink).await;
            drop(sink);
            result
        };
        let hear = async {
            let mut events = Vec::new();
            while let Some(event) = listener.events.recv().await {
                if until(&event) {
                    cancel.cancel();
                }
                events.push(event);
            }
            events
        };
        let (result, events) = tokio::join!(answer, hear);
        Answer { events, result }
    })
}

fn ask(api: &Api, question: &AgentRequest) -> Answer {
    ask_until(api, question, |_| false)
}

fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}
