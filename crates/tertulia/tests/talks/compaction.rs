//! Sessions that grow too long for their agent: the older part is summarised, and the log keeps all
//! of it.

use serde_json::Value;
use tertulia_testkit::provider::{Api, Request};

use crate::agents::world::{KEY, World, for_each_api};
use crate::home::{Backend, Home, messages};
use crate::pty::{CTRL_D, Terminal};

for_each_api!(
    a_long_talk_is_summed_up_for_its_agent,
    a_summary_that_fails_leaves_the_talk_going,
    too_long_for_the_provider_is_summed_up_and_asked_again,
    a_single_message_that_is_too_long_does_not_wedge_the_session,
    tool_calls_in_what_is_summed_up_are_no_trouble,
);

/// Heading of a summary.
const HEAD: &str = "Summary of the conversation up to here:";

/// Returns a prompt of about eighty tokens that contains `name`.
fn long(name: &str) -> String {
    let filler: Vec<String> = (0..35).map(|n| format!("w{n}")).collect();
    format!("[[say:so be it]] {name} {}", filler.join(" "))
}

fn small(api: Api) -> World {
    World::with(api, Backend::Sqlite, "compact_at = 200\n")
}

fn go_on(world: &World, words: &str) -> String {
    let args = ["chat", "-c", "--agent", "a", "-p", words];
    world.run(&args).ok().stderr
}

/// Returns the compaction entries of the newest session.
fn summaries(home: &Home) -> Vec<Value> {
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap().iter();
    entries
        .filter(|entry| entry["type"] == "compacted")
        .cloned()
        .collect()
}

fn is_summing_up(question: &Request) -> bool {
    question
        .body
        .to_string()
        .contains("Summarise our conversation")
}

/// Returns the system prompt and the messages that the provider received.
fn told(question: &Request) -> (String, String) {
    let body = &question.body;
    let of_the_system = |message: &&Value| message["role"] == "system";
    let all = |field: &str| body[field].as_array().cloned().unwrap_or_default();
    match question.api {
        Api::Anthropic => (body["system"].to_string(), body["messages"].to_string()),
        Api::Gemini => {
            let system = body.get("systemInstruction");
            let system = system.or(body.get("system_instruction"));
            (
                system.map(Value::to_string).unwrap_or_default(),
                body["contents"].to_string(),
            )
        }
        Api::OpenAi | Api::Ollama => {
            let messages = all("messages");
            let (system, rest): (Vec<&Value>, Vec<&Value>) =
                messages.iter().partition(of_the_system);
            (format!("{system:?}"), format!("{rest:?}"))
        }
    }
}

fn a_long_talk_is_summed_up_for_its_agent(api: Api) {
    let world = small(api);
    world.ask(&long("alpha")).ok();
    go_on(&world, &long("beta"));
    let noted = go_on(&world, &long("gamma"));
    assert!(noted.contains("context summarised"), "{noted}");
    let found = summaries(&world.home);
    assert_eq!(found.len(), 1, "{found:#?}");
    let summary = found[0]["summary"].as_str().unwrap();
    assert!(summary.starts_with("SUMMARY of "), "{summary}");
    assert_eq!(found[0]["agent"], "a");
    // The log keeps every message.
    let said = world.home.said("@");
    assert_eq!(said.len(), 6);
    for (at, name) in [(0, "alpha"), (2, "beta"), (4, "gamma")] {
        assert!(said[at].contains(name));
    }
    // The summarising request contains the old messages, and no tools.
    let questions = world.questions();
    let summing: Vec<&Request> = questions.iter().filter(|q| is_summing_up(q)).collect();
    assert_eq!(summing.len(), 1);
    assert!(summing[0].body.to_string().contains("alpha"));
    assert!(summing[0].body.get("tools").is_none());
    // Later requests contain the summary instead of the old messages, in this process and in the
    // next.
    go_on(&world, "[[say:yes]] delta");
    let questions = world.questions();
    for question in &questions[questions.len() - 2..] {
        let (system, messages) = told(question);
        assert!(
            system.contains(HEAD) && system.contains(summary),
            "{system}"
        );
        assert!(!messages.contains("alpha"), "{messages}");
        assert!(!messages.contains(HEAD), "{messages}");
    }
    // The cost is counted, and the summary can be shown and found.
    let session = world.home.show("@");
    let spent = |kind: &str| -> u64 {
        let spoken = messages(&session);
        let all = spoken.iter().chain(&found);
        all.filter_map(|entry| entry["usage"][kind].as_u64()).sum()
    };
    assert!(found[0]["usage"]["output"].as_u64().unwrap() > 0);
    assert_eq!(session["tokens"]["input"], spent("input"));
    assert_eq!(session["tokens"]["output"], spent("output"));
    world.run(&["show", "@", "--entries"]).ok().says(summary);
    world.run(&["search", "SUMMARY"]).ok().says("SUMMARY");
}

/// The system prompt counts as well: the provider includes it in its token count.
#[test]
fn the_threshold_is_for_the_whole_prompt() {
    let system = "word ".repeat(9000);
    let more = format!("compact_at = 8000\nsystem = \"{system}\"\n");
    let world = World::with(Api::OpenAi, Backend::Sqlite, &more);
    let many = (0..40).map(|n| long(&format!("alpha{n}")));
    world.ask(&many.collect::<Vec<_>>().join(" ")).ok();
    let noted = go_on(&world, "[[say:yes]] beta");
    assert!(noted.contains("context summarised"), "{noted}");
    // A short context is not summarised again and again.
    let noted = go_on(&world, "[[say:yes]] gamma");
    assert!(!noted.contains("context summarised"), "{noted}");
    assert_eq!(summaries(&world.home).len(), 1);
}

fn a_summary_that_fails_leaves_the_talk_going(api: Api) {
    let world = small(api);
    world.ask(&long("alpha")).ok();
    // An unanswered prompt is sent with the next one, so the failure hits the summarising request.
    let failing = format!("[[fail:500:retry_after=0]] {}", long("beta"));
    let args = ["chat", "-c", "--agent", "a", "-p", &failing];
    world.run(&args).code(6);
    let noted = go_on(&world, &format!("[[fail:none]] {}", long("gamma")));
    assert!(noted.contains("could not be summarised"), "{noted}");
    assert_eq!(summaries(&world.home).len(), 0);
    assert_eq!(world.home.said("@").last().unwrap(), "so be it");
    let last = world.questions().pop().unwrap();
    assert!(last.body.to_string().contains("alpha"), "it is given all");
    // The next attempt succeeds.
    let noted = go_on(&world, "[[say:yes]] delta");
    assert!(noted.contains("log keeps every message"), "{noted}");
    assert_eq!(summaries(&world.home).len(), 1);
}

fn too_long_for_the_provider_is_summed_up_and_asked_again(api: Api) {
    let world = World::new(api);
    world.ask(&long("alpha")).ok();
    go_on(&world, &long("beta"));
    let noted = go_on(&world, "[[fail:overflow:times=1]] [[say:it fits]]");
    assert!(noted.contains("summarising"), "{noted}");
    assert_eq!(world.home.said("@").last().unwrap(), "it fits");
    assert_eq!(summaries(&world.home).len(), 1);
    let session = world.home.show("@");
    let kinds: Vec<&str> = session["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["type"].as_str())
        .collect();
    assert!(!kinds.contains(&"failed"), "{kinds:?}");
    let questions = world.questions();
    assert_eq!(questions.len(), 5);
    assert!(!told(&questions[4]).1.contains("alpha"));
}

/// One answer that fills the model's whole context window.
fn a_single_message_that_is_too_long_does_not_wedge_the_session(api: Api) {
    let world = World::new(api);
    let small = ["--agent", "a", "--model", "reads-6000"];
    let turn = |more: &[&str], words: &str| {
        let args = [&["chat", "-p", words], &small[..], more].concat();
        world.run(&args).ok()
    };
    let huge = "0123456789".repeat(700);
    world.ask(&format!("[[say:{huge}]] all numbers")).ok();
    turn(&["-c"], "[[say:still here]] beta").says("still here");
    turn(&["-c"], "[[say:and here]] gamma").says("and here");
    // The log keeps all of it.
    assert!(world.home.said("@").contains(&huge));
}

fn tool_calls_in_what_is_summed_up_are_no_trouble(api: Api) {
    let world = small(api);
    std::fs::write(world.home.project().join("kept"), long("words")).unwrap();
    world
        .ask(r#"[[tool:file_read {"path":"kept"}]] [[say:read]] alpha"#)
        .ok();
    go_on(
        &world,
        r#"[[tool:file_read {"path":"kept"}]] [[say:read]] beta"#,
    );
    // The second result exceeds the limit in the middle of a turn.
    go_on(&world, "[[say:yes]] gamma");
    assert!(!summaries(&world.home).is_empty());
    let said = world.home.said("@");
    assert_eq!(said.last().unwrap(), "yes");
    assert_eq!(said.len(), 10);
}

#[test]
fn the_demo_sums_up_too_and_remembers_by_it() {
    let home = Home::new();
    home.settings("[agents.demo]\ncompact_at = 60\n");
    home.say("echo the milk is sour, and so on and so on, for quite a number of words");
    for n in 1..4 {
        let words = format!("echo the words of turn {n}, which are many more than one would need");
        home.run(&["chat", "-c", "-p", &words]).ok();
    }
    let found = summaries(&home);
    assert!(!found.is_empty());
    let summary = found[0]["summary"].as_str().unwrap();
    assert!(summary.contains("the milk is sour"), "{summary}");
    assert_eq!(home.said("@").len(), 8);
}

#[test]
fn by_hand_on_a_terminal() {
    let world = World::new(Api::OpenAi);
    let args = ["--no-color", "--agent", "a"];
    let mut terminal = Terminal::open(&world.home, &args, &[("TEST_KEY", KEY)]);
    terminal.sees("you> ", 1);
    // An empty session has nothing to compact.
    terminal.types("/compact\n");
    terminal.sees("nothing to compact", 1);
    for (turn, name) in [(2, "alpha"), (3, "beta")] {
        terminal.sees("you> ", turn);
        terminal.types(format!("{}\n", long(name)));
    }
    terminal.sees("you> ", 4);
    terminal.types("/compact\n");
    terminal.sees("context summarised; the log keeps every message", 1);
    terminal.sees("you> ", 5);
    terminal.types("[[say:gladly]] go on\n");
    terminal.sees("gladly", 2);
    terminal.sees("you> ", 6);
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    let last = world.questions().pop().unwrap();
    let (system, messages) = told(&last);
    assert!(system.contains("SUMMARY of"), "{system}");
    assert!(!messages.contains("alpha"), "{messages}");
    assert_eq!(summaries(&world.home).len(), 1);
}

#[test]
fn by_hand_a_failure_is_told_as_one() {
    let world = World::new(Api::OpenAi);
    world.ask(&long("alpha")).ok();
    go_on(&world, &long("beta"));
    let settings = world.home.path().join(".config/tertulia/config.toml");
    let old = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, old.replace("TEST_KEY", "NO_KEY")).unwrap();
    let mut terminal = Terminal::open(&world.home, &["--no-color", "-c"], &[]);
    terminal.sees("you> ", 1);
    terminal.types("/compact\n");
    terminal.sees("could not be summarised", 1);
    terminal.sees("you> ", 2);
    terminal.types(CTRL_D);
    let (_, shown) = terminal.ends();
    assert!(!shown.contains("fits as it is"), "{shown}");
}
