//! A fake of four LLM HTTP APIs, with which a test can get complete and broken answers and inspect
//! the requests: real HTTP on loopback, with the same bytes in every run.
//!
//! Directives in double brackets in the last user message determine the answer:
//!
//! | directive | effect |
//! |---|---|
//! | `[[say:TEXT]]` | the answer is TEXT |
//! | `[[words:N]]` | the answer is `word1 word2 …`, N words of one token each |
//! | `[[think:TEXT]]` | thinks TEXT first |
//! | `[[tool:NAME {json}]]` | calls a tool, then answers `tool said: LAST RESULT`; see below |
//! | `[[tools:NAME {json} NAME {json}]]` | calls several tools in one round |
//! | `[[usage:none]]` | the answer has no usage |
//! | `[[stop:max_tokens]]` | the answer ends at the token limit |
//! | `[[delay:MS]]` | waits before each token |
//! | `[[fail:KIND:after=N:times=N:retry_after=S]]` | fails; see [`Kind`] |
//! | `[[fail:none]]` | cancels earlier ones: clients merge unanswered prompts into one |
//!
//! Several `tool` directives are one round each; `say` replaces the answer after the last round.
//! `after` is the number of tokens before the failure (default two), `times` the number of requests
//! with this text that fail before one succeeds, `retry_after` the header of that name.
//!
//! Without directives the answer is `echo #COUNT: TEXT`, with the number of messages in the request
//! except system messages. A text that contains `unicode` is answered with [`UNICODE`]; a first
//! line that begins with `Summarise` with `SUMMARY of COUNT messages` (then only that line is
//! searched for directives).
//!
//! A request that the real service would reject is rejected here too, with the same kind of error,
//! so that a passing test is meaningful.
//!
//! | module | contents |
//! |---|---|
//! | `http` | requests and responses on one connection |
//! | `script` | parsing of directives |
//! | `talk` | API-independent requests and replies |
//! | `play` | sends the answer, or fails |
//! | `wire/` | one file per API: its validation and its format |

mod http;
mod play;
mod script;
mod talk;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;

use http::Line;
use play::Next;
pub use script::Kind;
pub use talk::UNICODE;

/// Models that the fake lists. It answers for any other name, too.
pub const MODELS: [&str; 2] = ["fake-large", "fake-small"];

/// One of the APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, as used by all compatible servers.
    OpenAi,
    /// Google Gemini.
    Gemini,
    /// Ollama's native API.
    Ollama,
}

impl Api {
    /// All APIs.
    pub const ALL: [Api; 4] = [Api::Anthropic, Api::OpenAi, Api::Gemini, Api::Ollama];

    /// Returns the agent type for the API, as written in the settings.
    pub const fn name(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::OpenAi => "openai",
            Api::Gemini => "gemini",
            Api::Ollama => "ollama",
        }
    }
}

/// A received request, valid or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The API, determined by the path.
    pub api: Api,
    /// `GET` or `POST`.
    pub method: String,
    /// Path, without the query.
    pub path: String,
    /// Query, without `?`.
    pub query: String,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body; null if there is none or if it is not JSON.
    pub body: Value,
}

impl Request {
    /// Returns a header if it is not empty.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// Returns the API key, from the header that this API uses.
    pub fn key(&self) -> Option<&str> {
        match self.api {
            Api::Anthropic => self.header("x-api-key"),
            Api::Gemini => self.header("x-goog-api-key"),
            Api::OpenAi | Api::Ollama => {
                let bearer = self.header("authorization")?.strip_prefix("Bearer ")?;
                (!bearer.trim().is_empty()).then(|| bearer.trim())
            }
        }
    }

    fn new(raw: http::Raw) -> Request {
        let (path, query) = match raw.target.split_once('?') {
            Some((path, query)) => (path.to_owned(), query.to_owned()),
            None => (raw.target, String::new()),
        };
        let api = match path.as_str() {
            path if path.starts_with("/api/") => Api::Ollama,
            path if path.starts_with("/v1beta/") => Api::Gemini,
            "/v1/messages" => Api::Anthropic,
            // Both APIs list their models at this path.
            "/v1/models" if raw.headers.contains_key("anthropic-version") => Api::Anthropic,
            _ => Api::OpenAi,
        };
        Request {
            api,
            method: raw.method,
            path,
            query,
            headers: raw.headers,
            body: serde_json::from_slice(&raw.body).unwrap_or(Value::Null),
        }
    }
}

/// The running server. It stops on drop, with all connections and threads.
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    state: Arc<State>,
    listener: Option<JoinHandle<()>>,
}

impl FakeProvider {
    /// Starts the server on a free local port.
    pub fn start() -> FakeProvider {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let listener = {
            let state = Arc::clone(&state);
            std::thread::spawn(move || keep_listening(&listener, &state))
        };
        FakeProvider {
            address,
            state,
            listener: Some(listener),
        }
    }

    /// Returns the base URL for an API in the form of the vendor's environment variable: only
    /// OpenAI's has a path.
    pub fn base_url(&self, api: Api) -> String {
        match api {
            Api::OpenAi => format!("http://{}/v1", self.address),
            Api::Anthropic | Api::Gemini | Api::Ollama => format!("http://{}", self.address),
        }
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.state.requests).clone()
    }

    /// Returns the number of responses during which the client disconnected.
    pub fn client_gone(&self) -> u64 {
        self.state.gone.load(Ordering::SeqCst)
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener thread, which then sees `stopping`.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let ended = listener.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the fake provider panicked"
            );
        }
    }
}

/// State shared by all connections.
#[derive(Debug, Default)]
struct State {
    requests: Mutex<Vec<Request>>,
    failures: Mutex<HashMap<(Api, String), u64>>,
    gone: AtomicU64,
    stopping: AtomicBool,
}

impl State {
    /// Records a request and returns its number, from 1.
    fn note(&self, request: &Request) -> usize {
        let mut requests = locked(&self.requests);
        requests.push(request.clone());
        requests.len()
    }

    /// Counts a request with this text, and returns true if it should fail.
    fn fails(&self, api: Api, text: &str, times: Option<u64>) -> bool {
        let Some(times) = times else { return true };
        let mut failures = locked(&self.failures);
        let count = failures.entry((api, text.to_owned())).or_default();
        *count += 1;
        *count <= times
    }
}

/// Ignores poisoning: a test that panicked with the lock held has already failed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Accepts connections until `stopping`, then closes all of them and joins their threads.
fn keep_listening(listener: &TcpListener, state: &Arc<State>) {
    let mut guests: Vec<(TcpStream, JoinHandle<()>)> = Vec::new();
    for stream in listener.incoming() {
        if state.stopping.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let Ok(handle) = stream.try_clone() else {
            continue;
        };
        guests.retain(|(_, thread)| !thread.is_finished());
        let state = Arc::clone(state);
        guests.push((handle, std::thread::spawn(move || serve(stream, &state))));
    }
    for (stream, thread) in guests {
        // The client may already be gone.
        let _ = stream.shutdown(Shutdown::Both);
        thread.join().expect("a connection of the fake provider");
    }
}

/// Answers the requests of one connection in order.
fn serve(stream: TcpStream, state: &State) {
    let Ok(mut line) = Line::new(stream) else {
        return;
    };
    while let Ok(Some(raw)) = line.request() {
        let request = Request::new(raw);
        let number = state.note(&request);
        match play::answer(&mut line, &request, number, state) {
            Ok(Next::Listen) => {}
            Ok(Next::HangUp) => break,
            Err(_) => {
                if !state.stopping.load(Ordering::SeqCst) {
                    state.gone.fetch_add(1, Ordering::SeqCst);
                }
                break;
            }
        }
    }
    line.close();
}
