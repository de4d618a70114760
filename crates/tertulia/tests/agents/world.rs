//! Test fixture: a home with one agent, and the provider that it uses.

use serde_json::Value;
use tertulia_testkit::provider::{Api, FakeProvider, Request};

use crate::home::{Backend, Home, Output, messages};

/// The agent's key. It matches no redaction pattern, so only the agent itself can keep it secret.
pub const KEY: &str = "lantern-meadow-4417-harbour";

/// Number of retries of the agent.
const RETRIES: usize = 2;

/// Number of requests before the agent gives up.
pub const ATTEMPTS: usize = RETRIES + 1;

/// Generates a test of each function for each API, so that a failure names its API.
macro_rules! for_each_api {
    ($($check:ident),* $(,)?) => {
        crate::agents::world::for_each_api!(@api anthropic, Anthropic, [$($check),*]);
        crate::agents::world::for_each_api!(@api openai, OpenAi, [$($check),*]);
        crate::agents::world::for_each_api!(@api gemini, Gemini, [$($check),*]);
        crate::agents::world::for_each_api!(@api ollama, Ollama, [$($check),*]);
    };
    (@api $room:ident, $api:ident, [$($check:ident),*]) => {
        mod $room {
            $(
                #[test]
                fn $check() {
                    super::$check(tertulia_testkit::provider::Api::$api);
                }
            )*
        }
    };
}
pub(crate) use for_each_api;

/// A home whose settings describe the agent `a`.
pub struct World {
    pub home: Home,
    pub provider: FakeProvider,
}

impl World {
    pub fn new(api: Api) -> World {
        World::with(api, Backend::Sqlite, "")
    }

    /// Adds lines to the agent's settings.
    pub fn with(api: Api, backend: Backend, more: &str) -> World {
        let provider = FakeProvider::start();
        let home = Home::with(backend);
        let key = match api {
            Api::Ollama => "",
            _ => "key_env = \"TEST_KEY\"\n",
        };
        home.settings(&format!(
            "[agents.a]\ntype = \"{}\"\nbase_url = \"{}\"\n{key}model = \"m\"\nretries = {RETRIES}\n{more}",
            api.name(),
            provider.base_url(api),
        ));
        World { home, provider }
    }

    /// Runs a command line with the key in the environment.
    pub fn run(&self, args: &[&str]) -> Output {
        self.home.prepare(args).env("TEST_KEY", KEY).run()
    }

    /// Runs one turn in a new session, with text output.
    pub fn ask(&self, words: &str) -> Output {
        self.run(&["chat", "--agent", "a", "-p", words])
    }

    /// Runs one turn in a new session that must succeed, and returns its JSON document.
    #[track_caller]
    pub fn answered(&self, words: &str) -> Value {
        let args = [
            "chat",
            "-p",
            words,
            "--agent",
            "a",
            "--output-format",
            "json",
        ];
        self.run(&args).ok().json()
    }

    /// Returns the requests for answers, without lookups.
    pub fn questions(&self) -> Vec<Request> {
        let requests = self.provider.requests().into_iter();
        requests
            .filter(|request| request.method == "POST")
            .collect()
    }

    /// Returns the messages of the newest session.
    pub fn messages(&self) -> Vec<Value> {
        messages(&self.home.show("@"))
    }

    /// Returns the failure at the end of the newest session.
    #[track_caller]
    pub fn failure(&self) -> Value {
        let session = self.home.show("@");
        let last = session["entries"].as_array().unwrap().last().unwrap();
        assert_eq!(last["type"], "failed", "{session:#}");
        assert_eq!(last["agent"], "a");
        last.clone()
    }

    /// Checks that the newest session ends with an answer interrupted after this text, and returns
    /// the failure.
    #[track_caller]
    pub fn cut_off_after(&self, words: &str) -> Value {
        let messages = self.messages();
        let [_, answer] = &messages[..] else {
            panic!("not a question and an answer: {messages:#?}");
        };
        assert_eq!(answer["content"], words);
        assert_eq!(answer["interrupted"], true);
        self.failure()
    }
}

/// Returns the answer to `[[words:N]]`.
pub fn numbered(count: usize) -> String {
    let words: Vec<String> = (1..=count).map(|n| format!("word{n}")).collect();
    words.join(" ")
}
