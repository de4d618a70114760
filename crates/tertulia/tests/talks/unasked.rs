//! Which agent answers by default, and what `agents` lists.

use std::path::PathBuf;

use serde_json::Value;
use tertulia_testkit::provider::{Api, FakeProvider, MODELS};

use super::stage::write_program;
use crate::agents::world::{KEY, World, for_each_api};
use crate::home::{Home, Output};

for_each_api!(
    a_check_sends_one_prompt_and_a_failure_is_one,
    models_are_listed
);

/// An address where nothing listens.
const NOBODY: &str = "127.0.0.1:9";

/// Uses shell builtins only: the search path has nothing else.
const CLAUDE: &str = r#"while read -r _; do :; done
printf '{"type":"system","subtype":"init","session_id":"native-1","tools":[],"model":"opus"}\n'
printf '{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"of the program"}]},"parent_tool_use_id":null,"session_id":"native-1"}\n'
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"native-1","result":"of the program","usage":{"input_tokens":1,"output_tokens":2}}\n'"#;

/// A machine with only a search path of its own and a few variables.
struct Machine {
    home: Home,
    provider: FakeProvider,
    bin: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        let home = Home::new();
        home.settings_as_they_are("");
        let bin = home.folder("bin");
        Machine {
            home,
            provider: FakeProvider::start(),
            bin,
        }
    }

    fn ask(&self, variables: &[(&str, &str)]) -> Output {
        let mut prepared = self
            .home
            .prepare(&["chat", "-p", "hello"])
            .env("PATH", &self.bin);
        for (name, value) in variables {
            prepared = prepared.env(name, value);
        }
        prepared.run().ok().notes("Choose another with --agent")
    }
}

#[test]
fn a_key_then_an_ollama_then_a_program_then_the_demo() {
    let machine = Machine::new();
    write_program(&machine.bin.join("claude"), CLAUDE);
    let (openai, ollama) = (
        machine.provider.base_url(Api::OpenAi),
        machine.provider.base_url(Api::Ollama),
    );
    let key = [
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", openai.as_str()),
    ];
    let listens = ("OLLAMA_HOST", ollama.as_str());
    let silent = ("OLLAMA_HOST", NOBODY);
    machine
        .ask(&[key[0], key[1], listens])
        .notes("Using openai")
        .notes("OPENAI_API_KEY is set")
        .says("echo #1: hello")
        .lacks(KEY);
    machine
        .ask(&[listens])
        .notes("Using ollama")
        .notes("an Ollama listens at")
        .says("echo #1: hello");
    machine
        .ask(&[silent])
        .notes("Using claude")
        .notes("the program claude is installed")
        .says("of the program");
    std::fs::remove_file(machine.bin.join("claude")).unwrap();
    machine
        .ask(&[silent])
        .notes("Using demo")
        .notes("found no API key, Ollama or agent program")
        .says("I am the demo agent");
}

#[test]
fn of_several_keys_the_first_in_order_counts_and_an_empty_one_does_not() {
    let machine = Machine::new();
    let anthropic = machine.provider.base_url(Api::Anthropic);
    let openai = machine.provider.base_url(Api::OpenAi);
    let mut variables = vec![
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", openai.as_str()),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", anthropic.as_str()),
        ("OLLAMA_HOST", NOBODY),
    ];
    machine.ask(&variables).notes("Using anthropic");
    variables[2].1 = "";
    machine.ask(&variables).notes("Using openai");
}

#[test]
fn a_file_that_cannot_be_run_is_no_program() {
    let machine = Machine::new();
    std::fs::write(machine.bin.join("claude"), "no program").unwrap();
    machine.ask(&[("OLLAMA_HOST", NOBODY)]).notes("Using demo");
}

#[test]
fn each_agent_tells_whether_it_is_ready_and_why_not() {
    let machine = Machine::new();
    let agents = |variables: &[(&str, &str)], args: &[&str]| -> Vec<Value> {
        let args = [&["agents", "--json"], args].concat();
        let mut prepared = machine.home.prepare(&args).env("PATH", &machine.bin);
        for (name, value) in variables {
            prepared = prepared.env(name, value);
        }
        let document = prepared.run().ok().lacks(KEY).json();
        document["agents"].as_array().unwrap().clone()
    };
    let all = agents(&[("OLLAMA_HOST", NOBODY)], &[]);
    let ready: Vec<&Value> = all.iter().filter(|agent| agent["ready"] == true).collect();
    assert_eq!(ready.len(), 1, "{ready:?}");
    assert_eq!(ready[0]["name"], "demo");
    assert!(all.iter().all(|agent| agent["reason"] != ""), "{all:#?}");
    let one = agents(&[("GEMINI_API_KEY", KEY)], &["gemini"]);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["ready"], true, "{one:?}");
    assert_eq!(one[0]["type"], "gemini");
}

fn a_check_sends_one_prompt_and_a_failure_is_one(api: Api) {
    let world = World::new(api);
    let output = world.run(&["agents", "check", "a"]).ok();
    output.says("a (m) answers after").lacks(KEY);
    assert_eq!(world.questions().len(), 1);
    let document = world.run(&["--json", "agents", "check", "a"]).ok().json();
    assert_eq!(document["ok"], true);
    assert!(document["usage"]["output"].as_u64().unwrap() > 0);
    assert!(world.home.all().is_empty(), "nothing is kept");
    let settings = world.home.path().join(".config/tertulia/config.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let url = world.provider.base_url(api);
    let gone = text
        .replace(&url, &format!("http://{NOBODY}"))
        .replace("retries = 2", "retries = 0");
    std::fs::write(&settings, gone).unwrap();
    world.run(&["agents", "check", "a"]).code(6).lacks(KEY);
    let error = world
        .run(&["--json", "agents", "check", "a"])
        .code(6)
        .error();
    assert_eq!(error["kind"], "agent");
    world.run(&["agents", "models", "a"]).code(6).lacks(KEY);
}

#[test]
fn the_demo_can_be_checked() {
    let home = Home::new();
    home.run(&["agents", "check", "demo"])
        .ok()
        .says("demo (demo-1) answers");
    home.run(&["agents", "models", "demo"]).ok().says("demo-1");
    home.run(&["agents", "check", "nobody"]).code(3);
}

fn models_are_listed(api: Api) {
    let world = World::new(api);
    let output = world.run(&["agents", "models", "a"]).ok();
    let listed: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(listed, MODELS);
    let document = world.run(&["--json", "agents", "models", "a"]).ok().json();
    assert_eq!(document["models"], serde_json::json!(MODELS));
}
