//! Asking the fake through genai, the client that our own agents use.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use futures::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StreamEnd, Tool, ToolCall};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use serde_json::json;
use tertulia_testkit::provider::{Api, FakeProvider};

/// The key that all requests carry.
pub const KEY: &str = "key-of-the-test";

/// What came of a question.
#[derive(Debug, Default)]
pub struct Heard {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<ToolCall>,
    /// How the stream said that it is whole, if it did.
    pub end: Option<StreamEnd>,
    pub error: Option<genai::Error>,
}

impl Heard {
    /// The answer must be whole.
    #[track_caller]
    pub fn whole(self) -> Heard {
        assert!(self.error.is_none(), "{self:#?}");
        assert!(self.end.is_some(), "{self:#?}");
        self
    }

    /// It must have failed with this status: the body and `retry-after` that came with it.
    #[track_caller]
    pub fn status(&self, expected: u16) -> (String, Option<String>) {
        let Some(genai::Error::WebStream { error, .. }) = &self.error else {
            panic!("no status in {self:#?}");
        };
        let Some(genai::Error::HttpError {
            status,
            body,
            headers,
            ..
        }) = error.downcast_ref()
        else {
            panic!("no status in {self:#?}");
        };
        assert_eq!(status.as_u16(), expected, "{body}");
        let after = headers.get("retry-after");
        (
            body.clone(),
            after.map(|after| after.to_str().unwrap().to_owned()),
        )
    }

    /// Tokens of the question and of the answer.
    pub fn usage(&self) -> Option<(i32, i32)> {
        let usage = self.end.as_ref()?.captured_usage.as_ref()?;
        Some((usage.prompt_tokens?, usage.completion_tokens?))
    }
}

/// Runs something asynchronous to its end; what hangs is a failure.
#[track_caller]
pub fn wait<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(30), future).await };
    runtime.block_on(limited).expect("an answer in time")
}

/// A client that goes to the fake directly.
pub fn http() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        rustls::crypto::ring::default_provider()
            .install_default()
            .expect("nobody else installs one");
        // A connection ends with the runtime that made it: none is kept for the next question.
        let builder = reqwest::Client::builder().no_proxy();
        builder.pool_max_idle_per_host(0).build().unwrap()
    });
    client.clone()
}

pub fn options() -> ChatOptions {
    ChatOptions::default()
        .with_max_tokens(4096)
        .with_capture_usage(true)
        .with_capture_content(true)
        .with_capture_reasoning_content(true)
        .with_capture_tool_calls(true)
}

/// The tools that are offered.
pub fn tools() -> Vec<Tool> {
    ["look", "count"]
        .map(|name| {
            Tool::new(name)
                .with_description("a tool")
                .with_schema(json!({"type": "object", "properties": {"path": {"type": "string"}}}))
        })
        .into()
}

fn target(provider: &FakeProvider, api: Api, model: &str) -> ServiceTarget {
    let base = provider.base_url(api);
    let (kind, url) = match api {
        Api::Anthropic => (AdapterKind::Anthropic, format!("{base}/v1/")),
        Api::OpenAi => (AdapterKind::OpenAI, format!("{base}/")),
        Api::Gemini => (AdapterKind::Gemini, format!("{base}/v1beta/")),
        Api::Ollama => (AdapterKind::Ollama, format!("{base}/")),
    };
    ServiceTarget {
        endpoint: Endpoint::from_owned(url),
        auth: AuthData::from_single(KEY),
        model: ModelIden::new(kind, model.to_owned()),
    }
}

/// Asks and listens to the end.
#[track_caller]
pub fn ask(provider: &FakeProvider, api: Api, request: ChatRequest) -> Heard {
    ask_model(provider, api, "m", request, &options())
}

/// Asks one model and listens to the end.
#[track_caller]
pub fn ask_model(
    provider: &FakeProvider,
    api: Api,
    model: &str,
    request: ChatRequest,
    options: &ChatOptions,
) -> Heard {
    wait(listen(
        target(provider, api, model),
        request,
        options,
        usize::MAX,
    ))
}

/// Asks, and hangs up after so many pieces of text.
#[track_caller]
pub fn ask_for(provider: &FakeProvider, api: Api, words: &str, pieces: usize) -> Heard {
    let target = target(provider, api, "m");
    wait(listen(
        target,
        ChatRequest::from_user(words),
        &options(),
        pieces,
    ))
}

/// Says one thing and listens to the end.
#[track_caller]
pub fn say(provider: &FakeProvider, api: Api, words: &str) -> Heard {
    ask(provider, api, ChatRequest::from_user(words))
}

/// Asks without streaming: the text, or the error in words.
#[track_caller]
pub fn ask_plainly(provider: &FakeProvider, api: Api, words: &str) -> Result<String, String> {
    let client = Client::builder().with_reqwest(http()).build().unwrap();
    let request = ChatRequest::from_user(words);
    let target = target(provider, api, "m");
    let answer = wait(async { client.exec_chat(target, request, Some(&options())).await });
    let answer = answer.map_err(|error| error.to_string())?;
    assert!(answer.usage.completion_tokens.is_some(), "{answer:?}");
    Ok(answer.first_text().unwrap_or_default().to_owned())
}

async fn listen(
    target: ServiceTarget,
    request: ChatRequest,
    options: &ChatOptions,
    pieces: usize,
) -> Heard {
    let client = Client::builder().with_reqwest(http()).build().unwrap();
    let mut heard = Heard::default();
    let begun = client.exec_chat_stream(target, request, Some(options));
    let mut stream = match begun.await {
        Ok(begun) => begun.stream,
        Err(error) => {
            heard.error = Some(error);
            return heard;
        }
    };
    let mut left = pieces;
    while left > 0
        && let Some(event) = stream.next().await
    {
        match event {
            Ok(ChatStreamEvent::Chunk(chunk)) => {
                heard.text.push_str(&chunk.content);
                left -= 1;
            }
            Ok(ChatStreamEvent::ReasoningChunk(chunk)) => heard.reasoning.push_str(&chunk.content),
            Ok(ChatStreamEvent::End(end)) => heard.end = Some(end),
            Ok(_) => {}
            Err(error) => {
                heard.error = Some(error);
                break;
            }
        }
    }
    if let Some(end) = &heard.end {
        let calls = end.captured_tool_calls().unwrap_or_default();
        heard.calls = calls.into_iter().cloned().collect();
    }
    heard
}
