//! Prompts of members: their format, how much of the session they contain, and what they never
//! contain.

use std::fs;

use serde_json::{Value, json};
use tertulia_testkit::provider::{Api, FakeProvider};

use super::cast::{Cast, said_in, speakers};
use super::hostile::{DONE, program};

/// The end of the team description, which follows a member's own instructions.
const ABOUT_END: &str = "Without it the floor goes back to a person.";

/// Returns the sections of a prompt with these headers, in order of appearance.
fn sections<'a>(prompt: &'a str, headers: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let mut starts: Vec<(usize, &str)> = Vec::new();
    for header in headers {
        let line = format!("{header}\n");
        let found = prompt.match_indices(&line).map(|(place, _)| place);
        let begins = |place: &usize| *place == 0 || prompt[..*place].ends_with("\n\n");
        starts.extend(found.filter(begins).map(|place| (place, *header)));
    }
    starts.sort_unstable();
    assert_eq!(starts.first().map(|start| start.0), Some(0), "{prompt}");
    let ends = starts.iter().skip(1).map(|start| start.0 - 2);
    let ends = ends.chain([prompt.len()]);
    let bodies = starts.iter().zip(ends);
    bodies
        .map(|((start, header), end)| (*header, &prompt[start + header.len() + 1..end]))
        .collect()
}

const BRACKETS: [&str; 7] = [
    "[SYSTEM]",
    "[TEAM_TASK]",
    "[CONTEXT]",
    "[PARENT_CONTEXT]",
    "[RELATED_CONTEXT]",
    "[MESSAGE]",
    "[ROUTING_META]",
];

const WORDS: [&str; 7] = [
    "Instructions:",
    "Team Task:",
    "Conversation so far:",
    "Original message:",
    "Related responses:",
    "Last message:",
    "Routing info:",
];

fn of<'a>(sections: &[(&str, &'a str)], header: &str) -> &'a str {
    match sections.iter().find(|section| section.0 == header) {
        Some(section) => section.1,
        None => panic!("no {header} in {sections:#?}"),
    }
}

fn headers<'a>(sections: &[(&'a str, &str)]) -> Vec<&'a str> {
    sections.iter().map(|section| section.0).collect()
}

/// A message of a person, and four agents that reply to it one after the other.
fn round() -> (Cast, Vec<Value>) {
    let agents = ["my-claude", "Codex", "gemini2", "other"];
    let cast = Cast::of(&agents, &["ann"]);
    for name in agents {
        cast.says(name, format!("{name} replies."));
    }
    cast.turn(&["--keep-going", "Good morning.\n[TEAM_TASK: Count]"]);
    let words = "Well?\n[NEXT: my-claude, codex!P1, gemini2, other!P3]";
    let document = cast.turn(&["-c", words]);
    (cast, said_in(&document).to_vec())
}

#[test]
fn each_kind_of_agent_reads_its_own_form() {
    let (cast, said) = round();
    assert_eq!(
        speakers(&said),
        ["ann", "Codex", "my-claude", "gemini2", "other"]
    );
    let question = said[0]["id"].as_str().unwrap();
    let first = cast.prompt("Codex");
    let first = sections(&first, &BRACKETS);
    let expected = [
        "[SYSTEM]",
        "[TEAM_TASK]",
        "[CONTEXT]",
        "[MESSAGE]",
        "[ROUTING_META]",
    ];
    assert_eq!(headers(&first), expected);
    let system = of(&first, "[SYSTEM]");
    assert!(
        system
            .starts_with("You are Codex.\n\nYou are Codex (`Codex`, writer) in the team The cast.")
    );
    assert!(system.contains("- Ann (`ann`, lead, a person)") && system.ends_with(ABOUT_END));
    assert_eq!(of(&first, "[TEAM_TASK]"), "Count");
    assert_eq!(of(&first, "[CONTEXT]"), "- Ann -> all: Good morning.\n");
    assert_eq!(of(&first, "[MESSAGE]"), "Ann: Well?\n");
    let meta = |intent: &str| format!("parentMessageId: {question}\nintent: {intent}");
    assert_eq!(of(&first, "[ROUTING_META]"), meta("P1_INTERRUPT"));
    let second = cast.prompt("my-claude");
    let second = sections(&second, &BRACKETS);
    let expected = [&BRACKETS[..4], &BRACKETS[5..]].concat();
    assert_eq!(headers(&second), expected);
    assert_eq!(of(&second, "[PARENT_CONTEXT]"), "Ann: Well?\n");
    assert_eq!(of(&second, "[MESSAGE]"), "Codex: Codex replies.");
    assert_eq!(of(&second, "[ROUTING_META]"), meta("P2_REPLY"));
    let third = cast.prompt("gemini2");
    let third = sections(&third, &WORDS);
    assert_eq!(headers(&third), WORDS);
    assert_eq!(of(&third, "Team Task:"), "Count");
    assert_eq!(
        of(&third, "Conversation so far:"),
        "- Ann: Good morning.\n\n- Codex: Codex replies."
    );
    assert_eq!(of(&third, "Original message:"), "Ann: Well?\n");
    assert_eq!(of(&third, "Related responses:"), "- Codex: Codex replies.");
    assert_eq!(of(&third, "Last message:"), "My-claude: my-claude replies.");
    assert_eq!(of(&third, "Routing info:"), meta("P2_REPLY"));
    let plain = cast.prompt("other");
    let (system, rest) = plain.split_once(ABOUT_END).unwrap();
    assert!(system.starts_with("You are Other."));
    let expected = "\n\nCount\n\nAnn: Good morning.\n\n\nAnn: Well?\n\n\nCodex: Codex replies.\n\n\
        My-claude: my-claude replies.\n\nGemini2: gemini2 replies.";
    assert_eq!(rest, expected);
}

/// In agent-chatter no member ever received the message that it replied to.
#[test]
fn two_who_are_asked_at_once_hear_each_other_and_the_question() {
    let cast = Cast::of(&["claude-a", "claude-b"], &["ann"]);
    cast.says("claude-a", "The first reply.");
    cast.turn(&["The question.\n[NEXT: claude-a, claude-b]"]);
    let prompt = cast.prompt("claude-b");
    let told = sections(&prompt, &BRACKETS);
    assert_eq!(of(&told, "[MESSAGE]"), "Claude-a: The first reply.");
    assert_eq!(of(&told, "[PARENT_CONTEXT]"), "Ann: The question.\n");
    assert_eq!(prompt.matches("The question.").count(), 1);
    assert_eq!(prompt.matches("The first reply.").count(), 1);
}

#[test]
fn instructions_are_a_text_or_a_list() {
    let mut cast = Cast::of(&["ada"], &["ann"]);
    let told = |cast: &Cast| {
        cast.turn(&["[NEXT: ada] go"]);
        let prompt = cast.prompt("ada");
        let (own, _) = prompt.split_once("You are Ada (`ada`").unwrap();
        own.to_owned()
    };
    cast.change_member("ada", |ada| {
        ada["systemInstruction"] = json!("  One\n\n   text.\n")
    });
    assert_eq!(told(&cast), "One\n\n   text.\n\n");
    let list = json!(["  One  ", "", "  ", "two"]);
    cast.change_member("ada", |ada| ada["systemInstruction"] = list);
    assert_eq!(told(&cast), "One\ntwo\n\n");
    cast.change_member("ada", |ada| ada["systemInstruction"] = json!([]));
    assert_eq!(told(&cast), "");
}

#[test]
fn instruction_files_follow_the_instructions() {
    let mut cast = Cast::of(&["claude", "codex", "gemini", "other"], &["ann"]);
    let project = cast.home.project();
    for (file, words) in [
        ("CLAUDE.md", "For Claude."),
        ("AGENTS.md", "For agents."),
        ("GEMINI.md", "For Gemini."),
        ("README.md", "For people."),
        ("TEAM.md", "\nFor the team.\n"),
        ("own.md", "Only mine."),
    ] {
        fs::write(project.join(file), words).unwrap();
    }
    cast.change(|document| document["team"]["instructionFile"] = json!("TEAM.md"));
    let everybody = ["[NEXT: claude, codex, gemini, other] go"];
    cast.run(&everybody).ok().lacks("cannot be read");
    let begins = |cast: &Cast, name: &str, expected: &str| {
        let prompt = cast.prompt(name);
        assert!(
            prompt.contains(expected),
            "{name}: no {expected:?} in {prompt}"
        );
        assert!(!prompt.contains("For people."));
    };
    let about = "\n\nFor the team.\n\nYou are";
    begins(
        &cast,
        "claude",
        &format!("You are Claude.\n\nFor Claude.{about}"),
    );
    begins(
        &cast,
        "codex",
        &format!("You are Codex.\n\nFor agents.{about}"),
    );
    begins(
        &cast,
        "gemini",
        &format!("You are Gemini.\n\nFor Gemini.{about}"),
    );
    begins(
        &cast,
        "other",
        &format!("You are Other.\n\nFor agents.{about}"),
    );
    // A member's own file instead, from a folder of its own.
    let folder = project.join("desk");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("own.md"), "From my desk.").unwrap();
    cast.change_member("codex", |codex| {
        codex["instructionFile"] = json!("own.md");
        codex["baseDir"] = json!("desk");
    });
    cast.change_member("other", |other| other["baseDir"] = json!("desk"));
    cast.run(&everybody).ok().lacks("cannot be read");
    begins(
        &cast,
        "codex",
        &format!("You are Codex.\n\nFrom my desk.{about}"),
    );
    begins(&cast, "other", &format!("You are Other.{about}"));
    // A missing file that was configured is reported; the default one is optional.
    cast.change_member("codex", |codex| codex["instructionFile"] = json!("gone.md"));
    cast.change(|document| document["team"]["instructionFile"] = json!("lost.md"));
    let output = cast.run(&everybody).ok();
    output
        .notes("gone.md")
        .notes("lost.md")
        .lacks("desk/AGENTS.md");
    begins(&cast, "codex", "You are Codex.\n\nYou are Codex (");
}

/// So many earlier messages, in addition to the newest.
#[test]
fn only_the_last_messages_are_told() {
    let mut cast = Cast::of(&["claude"], &["ann"]);
    cast.makes_no_summaries();
    cast.change(|document| document["conversation"] = json!({"contextWindowSize": 2}));
    cast.says_in_turn("claude", &["reply 1", "reply 2", "reply 3"]);
    let mut terminal = cast.open(&[]);
    for turn in 1..=3 {
        terminal.sees("Ann> ", turn);
        terminal.types(format!("[NEXT: claude] word {turn} [TEAM_TASK: Count]\n"));
    }
    terminal.sees("Ann> ", 4);
    terminal.types("/end\n");
    assert_eq!(terminal.ends().0, 0);
    let check = |prompt: &str, told: &[&str], untold: &[&str]| {
        let told_sections = sections(prompt, &BRACKETS);
        let context = of(&told_sections, "[CONTEXT]");
        assert_eq!(context.lines().count(), told.len(), "{context}");
        for (line, words) in context.lines().zip(told) {
            assert!(line.trim_end().ends_with(words), "{line:?} is {words:?}");
        }
        for words in untold {
            assert!(!prompt.contains(words), "{words:?} in {prompt}");
        }
        assert_eq!(of(&told_sections, "[TEAM_TASK]"), "Count");
        assert!(of(&told_sections, "[SYSTEM]").starts_with("You are Claude."));
    };
    check(
        &cast.prompts("claude")[2],
        &["word 2", "reply 2"],
        &["word 1", "reply 1"],
    );
    // The same after a resume.
    cast.run(&["-c", "[NEXT: claude] word 4"]).ok();
    check(
        &cast.prompts("claude")[3],
        &["word 3", "reply 3"],
        &["word 2", "reply 2"],
    );
}

#[test]
fn what_does_not_fit_is_left_out_whole() {
    let mut cast = Cast::of(&["claude"], &["ann"]);
    let room = 6000;
    cast.makes_no_summaries();
    cast.change(|document| document["conversation"] = json!({"maxBytes": room}));
    let long = |name: &str| format!("{name} {}", "é".repeat(1000));
    cast.says_in_turn("claude", &[&long("reply 1"), &long("reply 2"), "short"]);
    cast.run(&[&format!(
        "[NEXT: claude] {} [TEAM_TASK: Count]",
        long("word 1")
    )])
    .ok();
    cast.run(&["-c", &format!("[NEXT: claude] {}", long("word 2"))])
        .ok();
    cast.run(&["-c", "[NEXT: claude] word 3"]).ok();
    let prompt = cast.prompt("claude");
    assert!(prompt.len() <= room, "{}", prompt.len());
    let told = sections(&prompt, &BRACKETS);
    let context = of(&told, "[CONTEXT]");
    for whole in [long("word 2"), long("reply 2")] {
        assert!(context.contains(&whole), "{context}");
    }
    assert!(
        !prompt.contains("word 1") && !prompt.contains("reply 1"),
        "{prompt}"
    );
    assert_eq!(of(&told, "[TEAM_TASK]"), "Count");
    assert!(of(&told, "[SYSTEM]").starts_with("You are Claude."));
    // Even if nothing fits, the essential parts are sent.
    cast.change(|document| document["conversation"] = json!({"maxBytes": 1024}));
    let words = "x".repeat(50_000);
    cast.prepare(&["-c"])
        .stdin(format!("[NEXT: claude] {words}"))
        .run()
        .ok();
    let prompt = cast.prompt("claude");
    assert!(prompt.len() < 4000, "{}", prompt.len());
    let told = sections(&prompt, &BRACKETS);
    assert_eq!(of(&told, "[TEAM_TASK]"), "Count");
    assert!(of(&told, "[SYSTEM]").ends_with(ABOUT_END));
    let message = of(&told, "[MESSAGE]");
    assert!(
        message.starts_with("Ann:") && message.contains("bytes are missing here"),
        "{message}"
    );
}

/// A team with one member behind an API, and one that is a program.
fn with_api(api: Api) -> (Cast, FakeProvider) {
    let provider = FakeProvider::start();
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    let settings = cast.home.path().join(".config/tertulia/config.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    text.push_str(&format!(
        "[agents.far]\ntype = \"{}\"\nbase_url = \"{}\"\nkey_env = \"TEST_KEY\"\nmodel = \"m\"\nretries = 0\n",
        api.name(),
        provider.base_url(api),
    ));
    fs::write(settings, text).unwrap();
    cast.change_member("ada", |ada| ada["agentType"] = json!("far"));
    (cast, provider)
}

fn ask_api(cast: &Cast, args: &[&str]) -> Value {
    let args = [&["--output-format", "json", "--keep-going"], args].concat();
    let output = cast
        .prepare(&args)
        .env("TEST_KEY", "lantern-meadow-4417-harbour")
        .run();
    output.ok().json()
}

#[test]
fn an_api_is_given_the_system_text_apart_and_one_message() {
    for api in [Api::Anthropic, Api::OpenAi] {
        let (cast, provider) = with_api(api);
        ask_api(&cast, &["Before. [TEAM_TASK: Count]"]);
        let words = "[NEXT: ben, ada] Now. [[say:Far away.]]";
        let document = ask_api(&cast, &["-c", words]);
        assert_eq!(
            speakers(said_in(&document)),
            ["ann", "ben", "ada"],
            "{api:?}"
        );
        let requests = provider.requests();
        assert_eq!(requests.len(), 1, "{api:?}");
        let body = &requests[0].body;
        let mut messages = body["messages"].as_array().unwrap().clone();
        let system = match api {
            Api::OpenAi => messages.remove(0)["content"].take(),
            _ => body["system"].clone(),
        };
        let system = system.to_string();
        assert!(
            system.contains("You are Ada.") && system.contains(ABOUT_END),
            "{system}"
        );
        assert_eq!(messages.len(), 1, "{body:#}");
        assert_eq!(messages[0]["role"], "user");
        let given = messages[0]["content"].to_string();
        assert!(!given.contains("You are Ada."), "{given}");
        for words in ["Count", "Before.", "Now.", "Ben speaks."] {
            assert!(given.contains(words), "{words:?} in {given}");
        }
        assert!(said_in(&document)[2]["usage"]["output"].as_u64().unwrap() > 0);
        assert_eq!(said_in(&document)[2]["model"], "m");
        assert_eq!(said_in(&document)[2]["content"], "Far away.");
    }
}

/// The member's role comes after the default prompt, and a file that is both the project's and the
/// member's is sent once.
#[test]
fn an_api_is_told_where_it_is_before_its_part() {
    let (cast, provider) = with_api(Api::Anthropic);
    let project = cast.home.project();
    fs::write(project.join("AGENTS.md"), "Plant tulips.").unwrap();
    let system = |more: &[&str]| {
        let words = &["[NEXT: ada, ben] Now. [[say:Far away.]]"];
        ask_api(&cast, &[words, more].concat());
        provider.requests().pop().unwrap().body["system"].to_string()
    };
    let whole = system(&[]);
    let parts = [
        "You are an assistant in tertulia",
        "- Date: ",
        "Plant tulips.",
        "You are Ada.",
        ABOUT_END,
    ];
    let places = parts.map(|part| {
        whole
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {whole}"))
    });
    assert!(places.is_sorted(), "{whole}");
    assert_eq!(whole.matches("tulips").count(), 1, "{whole}");
    assert!(!cast.prompt("ben").contains("assistant in tertulia"));
    // Without the project's instructions, the file is still the member's own.
    let whole = system(&["--no-project-instructions"]);
    assert_eq!(whole.matches("tulips").count(), 1, "{whole}");
    assert!(whole.find("tulips") > whole.find("You are Ada."), "{whole}");
}

#[test]
fn an_api_uses_tools_before_the_next_is_asked() {
    let (cast, provider) = with_api(Api::Anthropic);
    fs::write(cast.home.project().join("on-the-table.txt"), "").unwrap();
    let words = "[NEXT: ada, ben] [[tool:directory_list {}]] [[say:I have looked.]]";
    let document = ask_api(&cast, &[words]);
    let said = said_in(&document);
    assert_eq!(said[1]["tool_calls"][0]["name"], "directory_list");
    assert!(
        said[2]["content"]
            .as_str()
            .unwrap()
            .contains("on-the-table.txt")
    );
    assert_eq!(said[3]["content"], "I have looked.");
    assert_eq!(said[4]["speaker"]["name"], "ben");
    let last = provider.requests().pop().unwrap().body["messages"].clone();
    assert_eq!(last.as_array().unwrap().len(), 3, "{last:#}");
    let prompt = cast.prompt("ben");
    assert!(prompt.ends_with("Ada: I have looked."), "{prompt}");
    // After a resume the prompt has the messages, but not the tool calls.
    cast.run(&["-c", "[NEXT: ben] and now?"]).ok();
    let prompt = cast.prompt("ben");
    assert!(prompt.contains("Ada: I have looked."), "{prompt}");
    assert!(!prompt.contains("on-the-table.txt"), "{prompt}");
}

/// However many tools were used, a resume keeps the messages before them.
#[test]
fn tools_take_no_room_in_what_is_remembered() {
    let (cast, _provider) = with_api(Api::Anthropic);
    for number in 1..=3 {
        ask_api(
            &cast,
            &[
                "-c",
                &format!("[NEXT: ada] [[say:answer {number}]] question {number}"),
            ][usize::from(number == 1)..],
        );
    }
    let calls = "[[tool:directory_list {}]]".repeat(120);
    ask_api(
        &cast,
        &["-c", &format!("[NEXT: ada] {calls} [[say:looked]]")],
    );
    cast.run(&["-c", "[NEXT: ben] do you remember?"]).ok();
    let prompt = cast.prompt("ben");
    for number in 1..=3 {
        assert!(
            prompt.contains(&format!("Ada: answer {number}")),
            "{prompt}"
        );
    }
}

#[test]
fn an_api_that_refuses_does_not_stop_the_others() {
    let (cast, provider) = with_api(Api::Anthropic);
    let document = ask_api(&cast, &["[NEXT: ada, ben] [[fail:401]]"]);
    assert_eq!(speakers(said_in(&document)), ["ann", "ben"]);
    let session = cast.home.show("@");
    let entries = session["entries"].as_array().unwrap();
    let failed = entries
        .iter()
        .find(|entry| entry["type"] == "failed")
        .unwrap();
    assert_eq!(failed["agent"], "ada");
    assert_eq!(provider.requests().len(), 1);
}

/// Returns a fake secret, assembled here so that no scanner finds it in this file.
fn secret() -> String {
    let body = "Ab3dE6gH9jK2mN5pQ8sT1vW4";
    format!("sk-ant-api03-{body}{body}")
}

#[test]
fn a_secret_is_told_in_its_own_turn_and_never_again() {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    let secret = secret();
    let mut terminal = cast.open(&[]);
    terminal.sees("Ann> ", 1);
    terminal.types(format!("[NEXT: ada, ben] take {secret} please\n"));
    terminal.sees("redacted before saving: 1 anthropic-key", 1);
    terminal.sees("Ann> ", 2);
    terminal.types("[NEXT: ada] and now?\n");
    terminal.sees("Ann> ", 3);
    terminal.types("/end\n");
    assert_eq!(terminal.ends().0, 0);
    let words = format!("take {secret} please");
    assert!(cast.prompts("ada")[0].contains(&words), "as typed");
    assert!(cast.prompts("ben")[0].contains(&words), "in the same turn");
    let later = &cast.prompts("ada")[1];
    assert!(
        later.contains("take [redacted:anthropic-key] please"),
        "{later}"
    );
    assert!(!later.contains(&secret));
    cast.run(&["-c", "[NEXT: ben] and now?"]).ok();
    let later = cast.prompt("ben");
    assert!(
        later.contains("take [redacted:anthropic-key] please"),
        "{later}"
    );
    for path in crate::home::files_below(cast.home.path()) {
        if path.starts_with(cast.home.path().join("cast")) {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(&secret), "{}", path.display());
    }
}

/// Output of agents is redacted like input of people.
#[test]
fn a_secret_of_an_agent_is_not_kept_either() {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    let secret = secret();
    cast.says("ada", format!("It is {secret}. [NEXT: ben]"));
    cast.turn(&["[NEXT: ada] which?"]);
    assert_eq!(
        cast.home.said("@")[1],
        "It is [redacted:anthropic-key]. [NEXT: ben]"
    );
    cast.run(&["-c", "[NEXT: ben] again"]).ok();
    assert!(!cast.prompt("ben").contains(&secret));
    assert!(
        cast.prompt("ben")
            .contains("It is [redacted:anthropic-key].")
    );
}

/// A single argument is limited to 128 KiB, and visible to all users.
#[test]
fn claude_is_told_long_instructions_on_its_input() {
    let mut cast = Cast::of(&["ada"], &["ann"]);
    let script = format!("cat > \"$0.input\"; echo \"$*\" > \"$0.line\"\n{DONE}");
    let claude = program(&cast, "bin/claude", &script);
    cast.home.settings(&format!(
        "[agents.claude]\ncommand = {claude:?}\ntype = \"claude\"\n"
    ));
    cast.change_member("ada", |ada| {
        ada["agentType"] = json!("claude");
        ada["systemInstruction"] = json!(format!("Mind this. {}", "x".repeat(200_000)));
    });
    cast.run(&["[NEXT: ada] hello"]).ok().says("done");
    let told = |end: &str| fs::read_to_string(claude.with_extension(end)).unwrap();
    assert!(told("input").contains("Mind this. xxx"));
    assert!(!told("line").contains("Mind this."));
}
