//! A fake of the four LLM HTTP APIs, so that a test can see a whole answer, a broken one, and what was
//! asked: real HTTP on loopback, the same bytes in every run.
//!
//! What it answers stands in the last thing that the user said, in double brackets:
//!
//! | words | what |
//! |---|---|
//! | `[[say:TEXT]]` | the answer is TEXT |
//! | `[[words:N]]` | the answer is `word1 word2 …`, N words of one token each |
//! | `[[think:TEXT]]` | it thinks TEXT first |
//! | `[[tool:NAME {json}]]` | it calls a tool; several are one round each, then comes `tool said: LAST RESULT`, or what `say` says |
//! | `[[tools:NAME {json} NAME {json}]]` | it calls several tools in one round |
//! | `[[usage:none]]` | the answer does not say what it cost |
//! | `[[stop:max_tokens]]` | the answer ends at the limit of tokens |
//! | `[[delay:MS]]` | it waits so long before each token |
//! | `[[fail:KIND:after=N:times=N:retry_after=S]]` | it fails; see [`Kind`] |
//! | `[[fail:none]]` | it does not fail, whatever stands before: clients put questions that nobody answered into one |
//!
//! `after` is how many tokens come first (two where nothing is said), `times` how many requests with this
//! text fail before one succeeds, `retry_after` the header of that name.
//!
//! Without such words the answer is `echo #COUNT: WORDS`, with the number of messages of the request that
//! are not the system's. Words with `unicode` among them are answered by [`UNICODE`]; a first line that
//! begins with `Summarise` by `SUMMARY of COUNT messages` (then only that line is searched for directives).
//!
//! A request that the real service would refuse is refused here too, in the same shape: that is what makes
//! a test that passes mean something.
//!
//! | room | what |
//! |---|---|
//! | `http` | requests and answers on one connection |
//! | `script` | what the words in double brackets ask for |
//! | `talk` | what any of the APIs was asked, and what is to be answered |
//! | `play` | giving the answer, or failing to |
//! | `wire/` | one file per API: what it refuses, how it answers |

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

/// The models that the fake says it has. It answers for any other name, too.
pub const MODELS: [&str; 2] = ["fake-large", "fake-small"];

/// One of the APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, and those of every compatible server.
    OpenAi,
    /// Google's Gemini.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Api {
    /// All of them.
    pub const ALL: [Api; 4] = [Api::Anthropic, Api::OpenAi, Api::Gemini, Api::Ollama];

    /// The type of the agent that speaks it, as the settings write it.
    pub const fn name(self) -> &'static str {
        match self {
            Api::Anthropic => "anthropic",
            Api::OpenAi => "openai",
            Api::Gemini => "gemini",
            Api::Ollama => "ollama",
        }
    }
}

/// A request that came in, well formed or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Whose API it is for, by its path.
    pub api: Api,
    /// `GET` or `POST`.
    pub method: String,
    /// The path, without what follows a `?`.
    pub path: String,
    /// What follows the `?`.
    pub query: String,
    /// The headers, their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; null where there was none, or none that is JSON.
    pub body: Value,
}

impl Request {
    /// A header that says something.
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?.trim();
        (!value.is_empty()).then_some(value)
    }

    /// The key that came with it, where this API has it.
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
            // Both have their models here.
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

/// The running fake. It ends when this is dropped, with every connection and thread.
#[derive(Debug)]
pub struct FakeProvider {
    address: SocketAddr,
    state: Arc<State>,
    frontend: Option<JoinHandle<()>>,
}

impl FakeProvider {
    /// Starts it on a free port of this machine.
    pub fn start() -> FakeProvider {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let frontend = {
            let state = Arc::clone(&state);
            std::thread::spawn(move || keep_frontend(&listener, &state))
        };
        FakeProvider {
            address,
            state,
            frontend: Some(frontend),
        }
    }

    /// The address of an API, as the vendor's own variable would have it: only OpenAI's has a path.
    pub fn base_url(&self, api: Api) -> String {
        match api {
            Api::OpenAi => format!("http://{}/v1", self.address),
            Api::Anthropic | Api::Gemini | Api::Ollama => format!("http://{}", self.address),
        }
    }

    /// The requests so far, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        locked(&self.state.requests).clone()
    }

    /// How many answers the client hung up on before they were whole.
    pub fn client_gone(&self) -> u64 {
        self.state.gone.load(Ordering::SeqCst)
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.state.stopping.store(true, Ordering::SeqCst);
        // The one at the door looks up when somebody knocks.
        let _ = TcpStream::connect(self.address);
        if let Some(frontend) = self.frontend.take() {
            let ended = frontend.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the fake provider panicked"
            );
        }
    }
}

/// What all connections share.
#[derive(Debug, Default)]
struct State {
    requests: Mutex<Vec<Request>>,
    failures: Mutex<HashMap<(Api, String), u64>>,
    gone: AtomicU64,
    stopping: AtomicBool,
}

impl State {
    /// Remembers a request and gives its number, from 1.
    fn note(&self, request: &Request) -> usize {
        let mut requests = locked(&self.requests);
        requests.push(request.clone());
        requests.len()
    }

    /// Whether a text that is to fail so many times fails now. It is counted.
    fn fails(&self, api: Api, text: &str, times: Option<u64>) -> bool {
        let Some(times) = times else { return true };
        let mut failures = locked(&self.failures);
        let count = failures.entry((api, text.to_owned())).or_default();
        *count += 1;
        *count <= times
    }
}

/// A test that failed while it held the lock has said so; the others may go on.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets clients in until the end, then sends everybody away and waits until they are gone.
fn keep_frontend(listener: &TcpListener, state: &Arc<State>) {
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
        // It may have left already.
        let _ = stream.shutdown(Shutdown::Both);
        thread.join().expect("a connection of the fake provider");
    }
}

/// Answers the requests of one connection, one after the other.
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
