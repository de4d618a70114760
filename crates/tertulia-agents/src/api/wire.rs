//! The connection to a server: genai for chat, plain HTTP requests for the rest, and conversion of
//! errors to `Trouble`. genai types occur only in this module and its siblings.

use std::error::Error;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStream};
use genai::resolver::{AuthData, Endpoint};
use genai::webc::StreamTimeout;
use genai::{Client, Headers, ModelIden, ServiceTarget};
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::key::Secret;
use super::provider::{Provider, is_local};
use super::retry;
use super::thinking::{Thinking, effort, shows_thoughts};
use super::trouble::Trouble;
use super::watch::Watch;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(30);

/// Options of a request besides its messages.
pub(super) struct Manner<'a> {
    pub model: &'a str,
    pub thinking: Option<Thinking>,
    pub max_tokens: Option<u32>,
    pub idle: Duration,
}

/// Connection to one server.
pub(super) struct Wire {
    provider: Provider,
    root: String,
    http: reqwest::Client,
    genai: Client,
}

impl Wire {
    pub(super) fn new(provider: Provider, root: String) -> Result<Wire, Trouble> {
        install_tls();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("tertulia/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            // A redirect would carry the key to another server.
            .redirect(reqwest::redirect::Policy::none());
        if is_local(&root) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| Trouble::Unsendable(innermost(&error)))?;
        let genai = Client::builder()
            .with_reqwest(http.clone())
            .build()
            .map_err(|error| Trouble::Unsendable(error.to_string()))?;
        Ok(Wire {
            provider,
            root,
            http,
            genai,
        })
    }

    /// Sends the request and returns the stream of the answer. The watch sees each frame before
    /// genai has read it.
    pub(super) async fn ask(
        &self,
        request: ChatRequest,
        manner: &Manner<'_>,
        secret: Option<&Secret>,
        watch: &Arc<Mutex<Watch>>,
    ) -> Result<ChatStream, Trouble> {
        let seen = Arc::clone(watch);
        let mut options = ChatOptions::default()
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_usage(true)
            .with_capture_reasoning_content(shows_thoughts(
                self.provider,
                manner.model,
                manner.thinking,
            ))
            .with_stream_header_timeout(manner.idle)
            .with_stream_read_timeout(manner.idle)
            .with_raw_frame_fn(move |_, frame| {
                let mut watch = seen.lock().unwrap_or_else(PoisonError::into_inner);
                watch.frame(frame.event, frame.data);
            });
        options.reasoning_effort = effort(self.provider, manner.model, manner.thinking);
        options.max_tokens = manner.max_tokens;
        // Ollama has no keys, but a proxy before it may; genai sends none.
        if let (Provider::Ollama, Some(secret)) = (self.provider, secret) {
            let bearer = format!("Bearer {}", secret.reveal());
            options = options.with_extra_headers(("Authorization".to_owned(), bearer));
        }
        let target = self.target(manner.model, secret);
        let response = self
            .genai
            .exec_chat_stream(target, request, Some(&options))
            .await
            .map_err(|error| trouble(error, manner.idle))?;
        Ok(response.stream)
    }

    fn target(&self, model: &str, secret: Option<&Secret>) -> ServiceTarget {
        let kind = match self.provider {
            Provider::Anthropic => AdapterKind::Anthropic,
            Provider::OpenAi => AdapterKind::OpenAI,
            Provider::Gemini => AdapterKind::Gemini,
            Provider::Ollama => AdapterKind::Ollama,
        };
        // genai cuts off everything up to the first `::`, which may be a part of the name.
        let model = match model.contains("::") {
            true => format!("model::{model}"),
            false => model.to_owned(),
        };
        let auth = match (self.provider, secret) {
            (_, Some(secret)) => AuthData::from_single(secret.reveal()),
            // Some servers that need no key refuse a bearer header without a token.
            (Provider::OpenAi, None) => AuthData::RequestOverride {
                url: format!("{}chat/completions", self.root),
                headers: Headers::default(),
            },
            (_, None) => AuthData::from_single(""),
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.root.as_str()),
            auth,
            model: ModelIden::new(kind, model),
        }
    }

    /// Returns whether a server answers, whatever it says. It is not shown the key.
    pub(super) async fn is_there(&self, limit: Duration) -> bool {
        let request = self.http.head(&self.root).timeout(limit);
        request.send().await.is_ok()
    }

    /// Gets a JSON document.
    pub(super) async fn get(
        &self,
        url: &str,
        secret: Option<&Secret>,
        limit: Duration,
    ) -> Result<Value, Trouble> {
        let mut request = self.http.get(url).timeout(limit);
        if let Some(secret) = secret.map(Secret::reveal) {
            request = match self.provider {
                Provider::Anthropic => request.header("x-api-key", secret),
                Provider::Gemini => request.header("x-goog-api-key", secret),
                Provider::OpenAi | Provider::Ollama => request.bearer_auth(secret),
            };
        }
        if self.provider == Provider::Anthropic {
            request = request.header("anthropic-version", "2023-06-01");
        }
        let response = request.send().await.map_err(|error| broken(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.text().await.map_err(|error| broken(&error))?;
        if !status.is_success() {
            return Err(refused(status.as_u16(), &headers, body));
        }
        serde_json::from_str(&body).map_err(|error| Trouble::Garbled(error.to_string()))
    }
}

/// Installs the TLS crypto provider, once per process; other code may have installed one already.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Converts genai's error.
pub(super) fn trouble(error: genai::Error, idle: Duration) -> Trouble {
    match error {
        genai::Error::WebStream { error, .. } => match error.downcast::<genai::Error>() {
            Ok(inner) => trouble(*inner, idle),
            Err(error) => transport(error.as_ref(), idle),
        },
        genai::Error::HttpError {
            status,
            body,
            headers,
            ..
        } => refused(status.as_u16(), &headers, body),
        genai::Error::ChatResponse { body, .. } => Trouble::Event(body),
        genai::Error::StreamParse { serde_error, .. } => Trouble::Garbled(serde_error.to_string()),
        genai::Error::SerdeJson(error) => Trouble::Garbled(error.to_string()),
        genai::Error::JsonValueExt(error) => Trouble::Garbled(error.to_string()),
        other => Trouble::Unsendable(other.to_string()),
    }
}

fn transport(error: &(dyn Error + Send + Sync + 'static), idle: Duration) -> Trouble {
    if error.is::<StreamTimeout>() {
        return Trouble::Silent(idle);
    }
    if error.is::<std::string::FromUtf8Error>() || error.is::<std::str::Utf8Error>() {
        return Trouble::Garbled("it is not UTF-8".to_owned());
    }
    match error.downcast_ref::<reqwest::Error>() {
        Some(error) => broken(error),
        None => Trouble::Dropped(innermost(error)),
    }
}

fn broken(error: &reqwest::Error) -> Trouble {
    let cause = innermost(error);
    if error.is_builder() {
        Trouble::Unsendable(cause)
    } else if error.is_connect() || error.is_timeout() {
        Trouble::Unreached(cause)
    } else {
        Trouble::Dropped(cause)
    }
}

fn refused(status: u16, headers: &HeaderMap, body: String) -> Trouble {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    Trouble::Status {
        status,
        asked: retry::asked(header, &body),
        retry_forbidden: header("x-should-retry") == Some("false"),
        body,
    }
}

/// Returns the innermost cause: the outer ones only say that something failed.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
