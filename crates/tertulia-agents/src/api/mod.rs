//! Agents behind a provider's HTTP API: Anthropic, OpenAI and compatible servers, Gemini, Ollama.
//! They have no tools of their own and request tertulia's.
//!
//! The genai crate implements the four protocols; `watch` reads what genai does not report.

mod calls;
mod key;
mod listen;
mod provider;
mod request;
mod retry;
mod think_tags;
mod thinking;
mod trouble;
mod watch;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use genai::chat::ChatRequest;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, FailureKind, Outcome, Patience,
    Readiness, Retry, ToolSide, Whence,
};
use crate::system_prompt::SystemTexts;
use key::Keyring;
pub use key::{Key, Secret};
use listen::AnswerReader;
pub use provider::Provider;
use think_tags::ThinkTags;
pub use thinking::Thinking;
use trouble::{Asked, Trouble, without_password};
use watch::Watch;
use wire::{Manner, Wire};

/// Default number of retries of an answer.
pub const RETRIES: u32 = 3;
/// Default wait before the first retry, if the server names none; each further one doubles.
pub const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Time limit for listing models.
const LIST: Duration = Duration::from_secs(30);
/// Time limit for reaching a server when the user wants to know which agents are ready.
const LOOK: Duration = Duration::from_secs(1);

/// An agent behind a provider's HTTP API.
pub struct Api {
    /// Name under which the agent speaks.
    pub name: String,
    /// Provider that serves the model.
    pub provider: Provider,
    /// The model; the provider's default if `None`.
    pub model: Option<String>,
    /// Address of the server, written as in the vendor's own variable: OpenAI's with `/v1`, the
    /// others without a path.
    pub base_url: Option<String>,
    /// Source of the API key.
    pub key: Key,
    /// Text that replaces the default system prompt.
    pub system: Option<String>,
    /// Text that is added to the system prompt.
    pub system_append: Option<String>,
    /// How much the model thinks.
    pub thinking: Option<Thinking>,
    /// Longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Number of retries.
    pub retries: u32,
    /// Wait before the first retry.
    pub first_wait: Duration,
    /// Time limits of an answer.
    pub patience: Patience,
    /// Where the agent is configured, for hints.
    pub whence: Whence,
    /// Connection, key and model, once they are known.
    pub live: Live,
}

/// State that an agent acquires in use: its connection, its key, its model.
#[derive(Default)]
pub struct Live {
    wire: OnceLock<Wire>,
    keyring: Keyring,
    found: OnceLock<String>,
    /// Whether the model has turned out to know no tools.
    toolless: AtomicBool,
}

// The key is never shown.
impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("base_url", &self.base_url)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Api {
    /// Creates an agent with default settings. It connects at the first request.
    pub fn new(name: &str, provider: Provider, key: Key) -> Api {
        Api {
            name: name.to_owned(),
            provider,
            model: None,
            base_url: None,
            key,
            system: None,
            system_append: None,
            thinking: None,
            max_tokens: None,
            retries: RETRIES,
            first_wait: FIRST_WAIT,
            patience: Patience::default(),
            whence: Whence::settings(name),
            live: Live::default(),
        }
    }

    fn own_texts(&self) -> SystemTexts<'_> {
        SystemTexts {
            system: self.system.as_deref(),
            append: self.system_append.as_deref(),
        }
    }

    fn root(&self) -> String {
        self.provider.root(self.base_url.as_deref())
    }

    fn wire(&self) -> Result<&Wire, Trouble> {
        if let Some(wire) = self.live.wire.get() {
            return Ok(wire);
        }
        let wire = Wire::new(self.provider, self.root())?;
        Ok(self.live.wire.get_or_init(|| wire))
    }

    async fn secret(
        &self,
        marker: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<Secret>, AgentError> {
        let keyring = &self.live.keyring;
        keyring
            .get(&self.key, &self.whence.section, marker, cancel)
            .await
    }

    fn explain(&self, trouble: &Trouble, secret: Option<&Secret>) -> AgentError {
        trouble.explain(Asked {
            whence: &self.whence,
            provider: self.provider,
            root: &self.root(),
            key: &self.key,
            secret,
        })
    }

    async fn list(&self, secret: Option<&Secret>) -> Result<Vec<String>, Trouble> {
        let url = self.provider.models_url(&self.root());
        let list = self.wire()?.get(&url, secret, LIST).await?;
        let names = self.provider.model_names(&list);
        names.ok_or_else(|| Trouble::Garbled("it is no list of models".to_owned()))
    }

    /// Returns the model to request: the configured one, the provider's default, or the first
    /// listed.
    async fn some_model(&self, secret: Option<&Secret>) -> Result<&str, Trouble> {
        if let Some(model) = self.model() {
            return Ok(model);
        }
        let mut models = self.list(secret).await?.into_iter();
        let first = models.next().ok_or(Trouble::NoModel)?;
        Ok(self.live.found.get_or_init(|| first))
    }

    /// Retries until the request is answered or another attempt is pointless.
    async fn talk(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
        secret: Option<&Secret>,
        until: Option<Instant>,
    ) -> Result<Outcome, AgentError> {
        let own = self
            .own_texts()
            .alone()
            .filter(|_| question.system.is_none());
        let system = question.system.as_deref().or(own.as_deref());
        let toolless = &self.live.toolless;
        let mut failed = 0;
        loop {
            let has_tools = !toolless.load(Ordering::Relaxed);
            let request = request::build(self.provider, system, question, has_tools);
            let mut reader = self.reader(question, sink);
            let trouble = match self.attempt(&mut reader, request, secret).await {
                Ok(outcome) => return Ok(outcome),
                Err(trouble) => trouble,
            };
            let has_tools = has_tools && !question.tools.is_empty();
            if has_tools && !reader.spoke && trouble.is_about_tools() {
                toolless.store(true, Ordering::Relaxed);
                let model = self.model().unwrap_or("the model");
                let remark = format!("{model} cannot use tools: asked again without them");
                sink.say(AgentEvent::Remark(remark)).await?;
                continue;
            }
            failed += 1;
            let error = self.explain(&trouble, secret);
            let ended = retry::Ended {
                failed,
                retryable: trouble.is_retryable(),
                spoke: reader.spoke,
                asked: trouble.asked(),
                left: until.map_or(Duration::MAX, |until| {
                    until.saturating_duration_since(Instant::now())
                }),
            };
            let Some(wait) = retry::wait(ended, self.retries, self.first_wait) else {
                return Err(error);
            };
            sink.say(AgentEvent::Retrying(Retry {
                attempt: failed,
                of: self.retries,
                wait,
                reason: error.message,
            }))
            .await?;
            sleep(wait).await;
        }
    }

    fn reader<'a>(&'a self, question: &'a AgentRequest, sink: &'a AgentSink) -> AnswerReader<'a> {
        AnswerReader {
            provider: self.provider,
            agent: &self.whence.section,
            question,
            sink,
            watch: Arc::new(Mutex::new(Watch::new(self.provider))),
            idle: self.patience.idle,
            max_tokens: self.max_tokens,
            spoke: false,
            has_text: false,
            tags: ThinkTags::default(),
        }
    }

    async fn attempt(
        &self,
        reader: &mut AnswerReader<'_>,
        request: ChatRequest,
        secret: Option<&Secret>,
    ) -> Result<Outcome, Trouble> {
        let manner = Manner {
            model: self.some_model(secret).await?,
            thinking: self.thinking,
            max_tokens: self.max_tokens,
            idle: self.patience.idle,
        };
        let wire = self.wire()?;
        let stream = wire.ask(request, &manner, secret, &reader.watch).await?;
        reader.listen(stream).await
    }

    /// Returns whether a server answers at the address, if the user has named one. The vendors' own are
    /// taken to be there.
    async fn is_there(&self) -> bool {
        if self.root() == self.provider.root(None) {
            return true;
        }
        match self.wire() {
            Ok(wire) => wire.is_there(LOOK).await,
            Err(_) => false,
        }
    }

    async fn knock(&self) -> Readiness {
        let root = self.root();
        let version = match self.wire() {
            Ok(wire) => wire.get(&format!("{root}api/version"), None, LOOK).await,
            Err(trouble) => Err(trouble),
        };
        match version {
            Ok(version) => Readiness::Ready(version["version"].as_str().map(str::to_owned)),
            Err(_) => Readiness::NotReady(format!(
                "no Ollama answers at {}",
                root.trim_end_matches('/')
            )),
        }
    }
}

#[async_trait]
impl Agent for Api {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> Option<&str> {
        let named = self.model.as_deref().or(self.provider.default_model());
        named.or_else(|| self.live.found.get().map(String::as_str))
    }

    fn tools(&self) -> ToolSide {
        ToolSide::Ours
    }

    fn system_texts(&self) -> Option<SystemTexts<'_>> {
        Some(self.own_texts())
    }

    async fn readiness(&self) -> Readiness {
        if self.provider == Provider::Ollama {
            return self.knock().await;
        }
        let found = match &self.key {
            Key::Missing { variable } => {
                return Readiness::NotReady(format!("{variable} is not set"));
            }
            Key::NotNeeded => None,
            Key::Value { variable, .. } => Some(format!("key in {variable}")),
            Key::Command { command, found, .. } => {
                let command = command.display();
                if found.is_none() {
                    let why = format!("the program {command} of `key_command` was not found");
                    return Readiness::NotReady(why);
                }
                Some(format!("key from {command}"))
            }
        };
        match self.is_there().await {
            true => Readiness::Ready(found),
            false => {
                let root = self.root();
                Readiness::NotReady(format!(
                    "no server answers at {}",
                    without_password(root.trim_end_matches('/'))
                ))
            }
        }
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        let secret = self.secret("models", &CancellationToken::new()).await?;
        let list = self.list(secret.as_ref()).await;
        list.map_err(|trouble| self.explain(&trouble, secret.as_ref()))
    }

    async fn answer(
        &self,
        question: &AgentRequest,
        sink: &AgentSink,
    ) -> Result<Outcome, AgentError> {
        let cancel = sink.cancel();
        let limit = self.patience.total;
        let until = Instant::now().checked_add(limit);
        // Ends by itself on cancellation, and ends the key command with it.
        let secret = self.secret(&question.marker, cancel).await?;
        let secret = secret.as_ref();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(AgentError::cancelled()),
            answer = self.talk(question, sink, secret, until) => answer,
            () = expired(until) => Err(self.explain(&Trouble::Overdue(limit), secret)),
        };
        if answer
            .as_ref()
            .is_err_and(|error| error.kind == FailureKind::Auth)
        {
            self.live.keyring.forget().await;
        }
        answer
    }
}

async fn expired(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
