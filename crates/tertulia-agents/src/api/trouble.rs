//! Failures of a request to a provider, and their explanation for the user. No I/O.

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;

use super::key::{Key, Secret};
use super::provider::Provider;
use crate::{AgentError, FailureKind, Whence, failure};

/// Maximum length of a provider's message that is repeated, in characters.
const LONGEST: usize = 300;

/// What went wrong with a request.
#[derive(Debug, PartialEq)]
pub(super) enum Trouble {
    /// The server answered with an error status.
    Status {
        /// HTTP status.
        status: u16,
        /// Body of the response.
        body: String,
        /// Wait that the server requested, if any.
        asked: Option<Duration>,
        /// Whether the server says that retrying is of no use.
        retry_forbidden: bool,
    },
    /// An error event in the middle of the answer.
    Event(Value),
    /// The server cannot be reached.
    Unreached(String),
    /// The connection broke.
    Dropped(String),
    /// Nothing arrived for this long.
    Silent(Duration),
    /// The answer was not complete after this long.
    Overdue(Duration),
    /// The response cannot be parsed.
    Garbled(String),
    /// The stream ended in the middle.
    Truncated,
    /// What the server sent is no stream.
    NoStream,
    /// The token limit cut off a tool call.
    CutCall {
        /// The tool.
        tool: String,
        /// The configured limit, if that was it.
        limit: Option<u32>,
    },
    /// The model or a filter refuses to answer.
    Refused(String),
    /// The server has no model.
    NoModel,
    /// The request cannot be built.
    Unsendable(String),
    /// The answer was cancelled.
    Stopped,
}

/// Target of the request, for messages about it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub whence: &'a Whence,
    pub provider: Provider,
    pub root: &'a str,
    pub key: &'a Key,
    pub secret: Option<&'a Secret>,
}

impl Trouble {
    /// Returns whether the failure may be temporary.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Trouble::Status {
                retry_forbidden: true,
                ..
            } => false,
            Trouble::Status { status, body, .. } => is_retryable(*status, body),
            Trouble::Event(body) => is_retryable(status_of(body), &body.to_string()),
            Trouble::Unreached(_) | Trouble::Dropped(_) => true,
            _ => false,
        }
    }

    /// Returns whether the server refuses the request because the model knows no tools.
    pub(super) fn is_about_tools(&self) -> bool {
        let body = match self {
            Trouble::Status { status, body, .. } if (400..=501).contains(status) => body.clone(),
            Trouble::Event(body) => body.to_string(),
            _ => return false,
        };
        let body = body.to_lowercase();
        NO_TOOLS.iter().any(|words| body.contains(words))
    }

    /// Returns the wait that the server requested, if any.
    pub(super) fn asked(&self) -> Option<Duration> {
        match self {
            Trouble::Status { asked, .. } => *asked,
            _ => None,
        }
    }

    /// Explains the failure to the user.
    pub(super) fn explain(&self, asked: Asked<'_>) -> AgentError {
        let name = &asked.name();
        let error = match self {
            Trouble::Status { status, body, .. } => asked.status(*status, body),
            Trouble::Event(body) => asked.status(status_of(body), &body.to_string()),
            Trouble::Unreached(cause) => asked.unreached(cause),
            Trouble::Dropped(cause) => AgentError::new(
                FailureKind::Unavailable,
                format!("the connection to {name} broke: {cause}"),
            ),
            Trouble::Silent(limit) => {
                let setting = asked.whence.setting("idle_timeout");
                asked.late("sent nothing for", *limit, &setting)
            }
            Trouble::Overdue(limit) => {
                asked.late("was not done after", *limit, &asked.whence.limit())
            }
            Trouble::Garbled(cause) => AgentError::new(
                FailureKind::Protocol,
                format!("{name} sent what cannot be understood: {cause}"),
            ),
            Trouble::Truncated => AgentError::new(
                FailureKind::Protocol,
                format!("the answer of {name} ended without its end"),
            )
            .hint("ask again; the answer so far may be incomplete"),
            Trouble::NoStream => asked.no_stream(),
            Trouble::CutCall { tool, limit } => asked.cut_call(tool, *limit),
            Trouble::Refused(cause) => AgentError::new(
                FailureKind::Refused,
                format!("{name} does not answer this: {cause}"),
            ),
            Trouble::NoModel => AgentError::new(
                FailureKind::Unavailable,
                format!("{name} at {} has no model", asked.root),
            )
            .hint("get one, for instance with `ollama pull qwen3`"),
            Trouble::Unsendable(cause) => AgentError::new(
                FailureKind::Failed,
                format!("{name} cannot be asked: {cause}"),
            )
            .hint(format!(
                "check {} and the key there",
                asked.whence.setting("base_url")
            )),
            Trouble::Stopped => AgentError::cancelled(),
        };
        AgentError {
            message: asked.without_key(&short(&error.message)),
            retry_after: self.asked(),
            ..error
        }
    }
}

impl Asked<'_> {
    /// Name of the server. An OpenAI-compatible server elsewhere is not called OpenAI.
    fn name(self) -> String {
        match self.is_elsewhere() {
            true => format!("the server at {}", without_password(self.root)),
            false => self.provider.name().to_owned(),
        }
    }

    fn is_elsewhere(self) -> bool {
        self.provider == Provider::OpenAi && self.root != self.provider.root(None)
    }

    fn without_key(self, text: &str) -> String {
        match self.secret {
            Some(secret) => secret.cut_out_of(text),
            None => text.to_owned(),
        }
    }

    fn unreached(self, cause: &str) -> AgentError {
        let provider = self.provider;
        let error = AgentError::new(
            FailureKind::Unavailable,
            format!(
                "no {} answers at {}: {cause}",
                if self.is_elsewhere() {
                    "server"
                } else {
                    provider.name()
                },
                without_password(self.root)
            ),
        );
        match provider {
            Provider::Ollama => error.hint("start it with `ollama serve`"),
            _ => error.hint(format!(
                "check the network, or {}",
                self.whence.setting("base_url")
            )),
        }
    }

    /// Explains an answer of success that is no stream. genai keeps nothing of it.
    fn no_stream(self) -> AgentError {
        let words = "sent no stream of events: an error, a web page or a whole answer in its place";
        let path = match self.provider {
            Provider::Anthropic => "messages",
            Provider::OpenAi => "chat/completions",
            Provider::Gemini => "models",
            Provider::Ollama => "api/chat",
        };
        let root = without_password(self.root);
        AgentError::new(FailureKind::Protocol, format!("{} {words}", self.name())).hint(format!(
            "check {}; `curl -d '{{}}' {root}{path}` shows what it sends",
            self.whence.setting("base_url")
        ))
    }

    fn cut_call(self, tool: &str, limit: Option<u32>) -> AgentError {
        let name = self.name();
        let limit = limit.map_or_else(
            || "its token limit".to_owned(),
            |limit| format!("the limit of {limit} tokens"),
        );
        AgentError::new(
            FailureKind::Failed,
            format!(
                "{name} reached {limit} in the middle of a call of `{tool}`, which was not run"
            ),
        )
        .hint(format!(
            "ask for smaller steps, or raise {}",
            self.whence.setting("max_tokens")
        ))
    }

    fn late(self, what: &str, limit: Duration, setting: &str) -> AgentError {
        let name = self.name();
        AgentError::new(
            FailureKind::Timeout,
            format!("{name} {what} {} s", limit.as_secs_f32()),
        )
        .hint(format!("{setting} sets how long it may take"))
    }

    fn status(self, status: u16, body: &str) -> AgentError {
        // The key is removed before the text is cut: half a key is still a secret.
        let body = self.without_key(body);
        let said = message(&body);
        let kind = kind(status, &body);
        let name = self.name();
        let text = match &said {
            Some(said) if status >= 500 => {
                format!("server error {status} of {name}: {}", short(said))
            }
            Some(said) => format!("{name} says ({status}): {}", short(said)),
            None => format!("{name} answered with HTTP status {status}"),
        };
        let error = AgentError::new(kind, text);
        match kind {
            FailureKind::Auth if status == 402 => error.hint("check the account's credit"),
            FailureKind::Auth => error.hint(self.key.hint(&self.whence.section)),
            FailureKind::RateLimit if !is_retryable(status, &body) => {
                error.hint("check the account's plan and credit")
            }
            FailureKind::TooLong => error.hint("start a new session, or send less"),
            FailureKind::Unavailable if status == 404 && said.is_some() => error.hint(format!(
                "`tertulia agents models {}` lists the models there are",
                self.whence.section
            )),
            FailureKind::Unavailable if status == 404 => {
                error.hint(format!("check {}", self.whence.setting("base_url")))
            }
            FailureKind::Protocol => {
                error.hint(format!("check {}", self.whence.setting("base_url")))
            }
            _ => error,
        }
    }
}

/// Returns the kind of failure of a status with this body.
fn kind(status: u16, body: &str) -> FailureKind {
    let body = body.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| body.contains(word));
    match status {
        // Gemini's message for a wrong key.
        400 if says(&["api_key_invalid", "api key not valid"]) => FailureKind::Auth,
        400 | 422 | 500 if says(failure::TOO_LONG) => FailureKind::TooLong,
        400 | 422 if says(REFUSED) => FailureKind::Refused,
        404 | 600.. => FailureKind::Unavailable,
        // No model server answers like this.
        ..400 => FailureKind::Protocol,
        status => failure::of_status(status.into()).unwrap_or(FailureKind::Failed),
    }
}

/// How servers say that a model knows no tools.
const NO_TOOLS: &[&str] = &[
    "does not support tool",
    "doesn't support tool",
    "does not support function",
    "support tool use",
    "tools are not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not supported",
    "function calling is not enabled",
    // vLLM without a parser for the model's calls.
    "enable-auto-tool-choice",
    // llama.cpp without its template engine.
    "tools param requires --jinja",
];

const REFUSED: &[&str] = &[
    "content_policy",
    "content policy",
    "content_filter",
    "content management policy",
    "usage policies",
    "safety system",
    "was flagged",
    "invalid_prompt",
];

/// Decides whether a request is retried after this status, such as 429. An account without credit is not. The codes
/// tell, not the message: Gemini speaks of billing at every ordinary rate limit.
fn is_retryable(status: u16, body: &str) -> bool {
    let broke = [
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit",
    ];
    match status {
        429 => !broke.iter().any(|word| body.contains(word)),
        501 | 505 => false,
        408 | 500.. => kind(status, body) == FailureKind::Unavailable,
        _ => false,
    }
}

/// Returns the status that an error in the middle of a stream would have had.
fn status_of(body: &Value) -> u16 {
    let error = body.get("error").unwrap_or(body);
    let code = error.get("code");
    if let Some(code) = code.and_then(Value::as_u64) {
        return u16::try_from(code).unwrap_or(500);
    }
    let words = [code, error.get("type"), error.get("status")];
    let names = words.into_iter().flatten().filter_map(Value::as_str);
    for name in names {
        let status = match name {
            "invalid_request_error" | "context_length_exceeded" | "INVALID_ARGUMENT" => 400,
            "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
            "billing_error" => 402,
            "permission_error" | "PERMISSION_DENIED" => 403,
            "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
            "request_too_large" => 413,
            "rate_limit_error"
            | "rate_limit_exceeded"
            | "insufficient_quota"
            | "RESOURCE_EXHAUSTED" => 429,
            "timeout_error" | "DEADLINE_EXCEEDED" => 504,
            "overloaded_error" => 529,
            _ => continue,
        };
        return status;
    }
    500
}

/// Extracts the provider's message from the body, if it can be parsed.
fn message(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").unwrap_or(body);
    let said = [error, &error["message"], &body["message"], &body["detail"]];
    let said = said.into_iter().find_map(Value::as_str).map(str::to_owned);
    said.or_else(|| details(&body["detail"]))
        .filter(|said| !said.trim().is_empty())
}

/// Formats the list of faults that FastAPI finds in a request: `body.tools.0: Field required`.
fn details(list: &Value) -> Option<String> {
    let faults = list.as_array()?.iter().filter_map(|fault| {
        let said = fault["msg"].as_str()?;
        let path = fault["loc"].as_array().into_iter().flatten();
        let path: Vec<String> = path
            .map(|step| {
                step.as_str()
                    .map_or_else(|| step.to_string(), str::to_owned)
            })
            .collect();
        Some(format!("{}: {said}", path.join(".")))
    });
    Some(faults.collect::<Vec<_>>().join("; "))
}

/// Returns the text in one line, cut to `LONGEST` characters.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Removes user name and password from an address.
pub(super) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end]
        .rsplit_once('@')
        .map_or(&rest[..end], |(_, host)| host);
    format!("{scheme}://{host}{}", &rest[end..])
}
