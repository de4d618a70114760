//! Who speaks when: markers, intents, people, limits.

use serde_json::{Value, json};

use super::cast::{Cast, said_in, shown, speakers};
use crate::home::{Home, keys, messages};

fn order(document: &Value) -> Vec<&str> {
    speakers(said_in(document))
}

#[test]
fn the_first_team_holds_a_routed_talk() {
    let home = Home::new();
    home.run(&["team", "init"]).ok();
    let output = home.run(&["team", "demo", "plan a bird table"]).ok();
    let names: Vec<&str> = output
        .stdout
        .lines()
        .filter(|line| line.len() < 8 && line.ends_with(':'))
        .collect();
    assert_eq!(names, ["Ada:", "Ben:", "Cleo:"], "{output:#?}");
    assert!(!output.stdout.contains("[NEXT"), "{output:#?}");
    output.notes("Resume: tertulia --resume");
    let session = home.show("@");
    assert_eq!(
        (&session["kind"], &session["team"], &session["status"]),
        (&json!("team"), &json!("demo"), &json!("paused"))
    );
    let said = messages(&session);
    assert_eq!(speakers(&said), ["you", "ada", "ben", "cleo"]);
    let ends = ["table", "[NEXT: ben]", "[NEXT: cleo]", "[NEXT: you]"];
    for (message, end) in said.iter().zip(ends) {
        let words = message["content"].as_str().unwrap();
        assert!(words.ends_with(end), "the log keeps markers: {words}");
    }
}

#[test]
fn a_run_as_one_document() {
    let home = Home::new();
    home.run(&["team", "init"]).ok();
    let args = ["team", "demo", "hello", "--output-format", "json"];
    let document = home.run(&args).ok().json();
    let fields = [
        "errors",
        "messages",
        "session_id",
        "status",
        "usage",
        "waiting_for",
    ];
    assert_eq!(keys(&document), fields);
    assert_eq!(order(&document), ["you", "ada", "ben", "cleo"]);
    assert_eq!(
        (&document["status"], &document["waiting_for"]),
        (&json!("completed"), &json!("you"))
    );
    let id = document["session_id"].as_str().unwrap();
    assert_eq!(said_in(&document), messages(&home.show(id)));
    let output = said_in(&document)
        .iter()
        .map(|said| &said["usage"]["output"]);
    let output: u64 = output.filter_map(Value::as_u64).sum();
    assert!(output > 0);
    assert_eq!(document["usage"]["output"], output);
    // The global flag before the command gives the same result.
    let again = home.run(&["--json", "team", "demo", "hello"]).ok().json();
    assert_eq!(order(&again), order(&document));
}

#[test]
fn a_run_as_a_stream() {
    let home = Home::new();
    home.run(&["team", "init"]).ok();
    let args = ["team", "demo", "hello", "--output-format", "stream-json"];
    let events = home.run(&args).ok().events();
    let of_type = |kind: &str| -> Vec<&Value> {
        let events = events.iter();
        events.filter(|event| event["type"] == kind).collect()
    };
    assert_eq!(events[0]["type"], "session.started");
    let end = events.last().unwrap();
    assert_eq!(
        (&end["type"], &end["status"], &end["waiting_for"]),
        (&json!("turn.completed"), &json!("completed"), &json!("you"))
    );
    assert_eq!(end["session_id"], events[0]["session_id"]);
    let asked: Vec<&Value> = of_type("turn.started")
        .iter()
        .map(|event| &event["speaker"])
        .collect();
    assert_eq!(asked, ["ada", "ben", "cleo"]);
    let said = of_type("message");
    assert_eq!(said.len(), 4);
    for message in &said[1..] {
        let speaker = &message["speaker"]["id"];
        let text = of_type("text")
            .into_iter()
            .filter(|event| event["speaker"] == *speaker);
        let text: String = text.map(|event| event["text"].as_str().unwrap()).collect();
        assert_eq!(message["content"], text, "{speaker} streams what is kept");
    }
    // A message is durable before the next member is prompted.
    let place = |kind: &str, speaker: &str| {
        let is_it = |event: &Value| {
            event["type"] == kind
                && (event["speaker"] == speaker || event["speaker"]["id"] == speaker)
        };
        events.iter().position(is_it).unwrap()
    };
    assert!(place("message", "you") < place("turn.started", "ada"));
    assert!(place("message", "ada") < place("turn.started", "ben"));
    assert!(place("message", "ben") < place("turn.started", "cleo"));
    let queues = of_type("queue");
    assert!(
        queues
            .iter()
            .any(|queue| queue["executing"]["member"] == "ben")
    );
    assert_eq!(of_type("waiting").len(), 1);
}

#[test]
fn who_names_nobody_speaks_to_the_first_human() {
    let cast = Cast::of(&["ada"], &["ann", "zoe"]);
    let output = cast.run(&["--as", "zoe", "good morning"]).code(6);
    output.notes("nobody was asked");
    assert_eq!(cast.asked("ada"), 0);
    let document = cast.turn(&["--as", "zoe", "--keep-going", "good morning"]);
    assert_eq!(order(&document), ["zoe"]);
    assert_eq!(
        (&document["status"], &document["waiting_for"]),
        (&json!("completed"), &json!("ann"))
    );
    // After an agent without addressees it is the first human's turn, too.
    let document = cast.turn(&["--as", "zoe", "[NEXT: ada] and you?"]);
    assert_eq!(order(&document), ["zoe", "ada"]);
    assert_eq!(document["waiting_for"], "ann");
}

#[test]
fn names_are_asked_in_their_order_and_by_urgency() {
    let cast = Cast::of(&["ada", "ben", "cleo"], &["ann"]);
    let check = |words: &str, expected: &[&str]| {
        let document = cast.turn(&["--keep-going", words]);
        assert_eq!(order(&document), expected, "{words}");
    };
    check("[NEXT: ada, ben] go", &["ann", "ada", "ben"]);
    check("[next:BEN,  Ada ] go", &["ann", "ben", "ada"]);
    check("[NEXT: ben] and [NEXT: ada]", &["ann", "ben", "ada"]);
    check(
        "[NEXT: ada!P3, ben, cleo!p1] go",
        &["ann", "cleo", "ben", "ada"],
    );
    check("[NEXT: A-d_a , c l e o]", &["ann", "ada", "cleo"]);
    check("[NEXT:] go", &["ann"]);
}

/// Names in Markdown resolve to the same members.
#[test]
fn names_are_understood_as_agents_write_them() {
    let cast = Cast::of(&["ada", "ben", "cleo"], &["ann"]);
    let check = |words: &str, expected: &[&str]| {
        cast.says("ada", words);
        let output = cast.run(&["[NEXT: ada] go", "--json"]).ok();
        let output = output.lacks("no member is called");
        assert_eq!(order(&output.json()), expected, "{words}");
    };
    check("Over to [NEXT: `ben`]", &["ann", "ada", "ben"]);
    check("Over to [NEXT: @ben]", &["ann", "ada", "ben"]);
    check("Over to [NEXT: **Ben**]", &["ann", "ada", "ben"]);
    check("[NEXT: **ben, cleo!P1**]", &["ann", "ada", "cleo", "ben"]);
    check("[NEXT: ben, `cleo!P1`]", &["ann", "ada", "cleo", "ben"]);
    check(
        "[NEXT: @ben, cleo] [DROP: **ALL**]",
        &["ann", "ada", "ben", "cleo"],
    );
    let members = &cast.messages("@")[1]["addressees"];
    assert_eq!(members[0]["member"], "ben", "{members}");
    cast.says("ada", "Not now. [DROP: `ALL`]");
    let document = cast.turn(&["[NEXT: ada, ben, cleo] go"]);
    assert_eq!(order(&document), ["ann", "ada"]);
}

/// Members addressed as urgent come before those that have waited longer.
#[test]
fn an_agents_urgent_word_comes_first() {
    let cast = Cast::of(&["ada", "ben", "cleo"], &["ann"]);
    cast.says("ada", "Stop, Cleo must see this. [NEXT: cleo!P1]");
    let document = cast.turn(&["[NEXT: ada, ben!P2] go"]);
    assert_eq!(order(&document), ["ann", "ada", "cleo", "ben"]);
    cast.says("ada", "Cleo, later. [NEXT: cleo!P3]");
    let document = cast.turn(&["[NEXT: ada!P1, ben!P1] go"]);
    assert_eq!(order(&document), ["ann", "ada", "ben", "cleo"]);
}

#[test]
fn names_that_are_nobodys_are_said() {
    let cast = Cast::of(&["ada", "ben"], &["ann", "zoe"]);
    let output = cast
        .run(&["--as", "zoe", "[NEXT: nobody, noone] go"])
        .code(6);
    let output = output
        .notes("'nobody' or 'noone'")
        .notes("ada, ben, ann, zoe");
    output.notes("nobody was asked");
    assert_eq!((cast.asked("ada"), cast.asked("ben")), (0, 0));
    // It is the writer's turn again.
    let document = cast.turn(&["--as", "zoe", "--keep-going", "[NEXT: nobody] go"]);
    assert_eq!(document["waiting_for"], "zoe");
    // Names that resolve are prompted.
    let output = cast.run(&["--as", "zoe", "[NEXT: nobody, ben] go"]).ok();
    output
        .notes("'nobody'")
        .notes("the others are asked")
        .says("Ben:");
    let stream = [
        "--output-format",
        "stream-json",
        "--as",
        "ann",
        "[NEXT: nobody, ben] go",
    ];
    let events = cast.run(&stream).ok().events();
    let unresolved = events.iter().find(|event| event["type"] == "unresolved");
    assert_eq!(unresolved.unwrap()["names"], json!(["nobody"]));
    // If no name of an agent resolves, it is the first human's turn, and the queue remains.
    cast.says("ada", "Ask [NEXT: nobody].");
    let document = cast.turn(&["--as", "zoe", "[NEXT: ada, ben] go"]);
    assert_eq!(order(&document), ["zoe", "ada"]);
    assert_eq!(document["waiting_for"], "ann");
}

#[test]
fn those_who_wait_can_be_dropped() {
    let cast = Cast::of(&["ada", "ben", "cleo"], &["ann"]);
    cast.says("ada", "Nobody else. [DROP: ALL]");
    let document = cast.turn(&["[NEXT: ada, ben, cleo] go"]);
    assert_eq!(order(&document), ["ann", "ada"]);
    cast.says("ada", "Not Ben. [drop: Ben!P1]");
    let document = cast.turn(&["[NEXT: ada, ben, cleo] go"]);
    assert_eq!(order(&document), ["ann", "ada", "cleo"]);
    // `[DROP]` applies before `[NEXT]`, wherever it stands.
    cast.says("ada", "Again. [NEXT: ben] [DROP: ALL]");
    let document = cast.turn(&["[NEXT: ada, cleo] go"]);
    assert_eq!(order(&document), ["ann", "ada", "ben"]);
    cast.says("ada", "[DROP: nobody]");
    let output = cast.run(&["[NEXT: ada, cleo] go"]).ok();
    output.notes("nothing was dropped").says("Cleo:");
}

#[test]
fn the_teams_task_is_told_from_then_on() {
    let cast = Cast::of(&["ada", "claude"], &["ann"]);
    let words =
        "[TEAM_TASK: old] [Team_Task: Ship the parser,\n  with tests] [NEXT: ada, claude] go";
    cast.run(&[words])
        .ok()
        .notes("the team's task: Ship the parser");
    assert!(
        cast.prompt("ada")
            .contains("Ship the parser,\n  with tests")
    );
    assert!(
        cast.prompt("claude")
            .contains("[TEAM_TASK]\nShip the parser,\n  with tests\n\n")
    );
    assert!(
        !cast.prompt("ada").contains("[Team_Task"),
        "markers are not told"
    );
    // An agent may set the task, and a resumed session still has it.
    cast.says("ada", "Let us rather rest. [TEAM_TASK: Rest]");
    cast.run(&["-c", "[NEXT: ada] more"]).ok();
    assert!(cast.prompt("ada").contains("Ship the parser"));
    cast.run(&["-c", "[NEXT: claude] more"]).ok();
    let prompt = cast.prompt("claude");
    assert!(prompt.contains("[TEAM_TASK]\nRest\n\n"), "{prompt}");
    // A new session has no task.
    cast.run(&["[NEXT: claude] new"]).ok();
    assert!(!cast.prompt("claude").contains("[TEAM_TASK]"));
}

#[test]
fn a_long_task_is_cut_and_that_is_said() {
    let cast = Cast::of(&["claude"], &["ann"]);
    // Two bytes each, so that the limit falls inside a character.
    let task = format!("x{}", "é".repeat(3000));
    let output = cast
        .run(&[&format!("[NEXT: claude] [TEAM_TASK: {task}]")])
        .ok();
    output.notes("cut to 5119 bytes").notes("882 are left out");
    let expected = format!("[TEAM_TASK]\nx{}\n\n", "é".repeat(2559));
    let prompt = cast.prompt("claude");
    assert!(prompt.contains(&expected), "{prompt}");
    assert!(!prompt.contains("\u{fffd}"));
    cast.run(&["-c", "[NEXT: claude] again"]).ok();
    assert!(cast.prompt("claude").contains(&expected));
    // The log has all of it.
    assert!(cast.home.said("@")[0].contains(&task));
}

#[test]
fn too_many_turns_without_a_person_pause_the_talk() {
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.change(|document| document["maxRounds"] = json!(3));
    cast.says("ada", "Ben? [NEXT: ben]");
    cast.says("ben", "Ada? [NEXT: ada]");
    let output = cast.run(&["[NEXT: ada] go"]).ok();
    output.notes("3 turns").notes("maxRounds");
    assert_eq!((cast.asked("ada"), cast.asked("ben")), (2, 1));
    let document = cast.turn(&["[NEXT: ada] go"]);
    assert_eq!(
        (&document["status"], &document["waiting_for"]),
        (&json!("paused"), &json!("ann"))
    );
    // A message of a person restarts the count.
    let document = cast.turn(&["-c", "[NEXT: ben] go on"]);
    assert_eq!(order(&document), ["ann", "ben", "ada", "ben"]);
    // 0 means no limit; the turn ends when an agent has no addressees.
    cast.change(|document| document["maxRounds"] = json!(0));
    let asked = (cast.asked("ada"), cast.asked("ben"));
    let questions: Vec<String> = (0..20).map(|n| format!("{n} [NEXT: ada]")).collect();
    let mut questions: Vec<&str> = questions.iter().map(String::as_str).collect();
    questions.push("enough");
    cast.says_in_turn("ben", &questions);
    cast.run(&["[NEXT: ada] go"]).ok().lacks("maxRounds");
    assert_eq!(
        (cast.asked("ada"), cast.asked("ben")),
        (asked.0 + 21, asked.1 + 21)
    );
}

#[test]
fn on_a_terminal_the_next_word_goes_on_with_who_waits() {
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.change(|document| document["maxRounds"] = json!(1));
    cast.says("ada", "Ben? [NEXT: ben]");
    let mut terminal = cast.open(&[]);
    terminal.sees("Ann> ", 1);
    terminal.types("[NEXT: ada] go\n");
    terminal.sees("maxRounds", 1);
    terminal.sees("Ann> ", 2);
    assert_eq!(cast.asked("ben"), 0);
    terminal.types("/queue\n");
    terminal.sees("ben", 1);
    terminal.sees("Ann> ", 3);
    terminal.types("go on\n");
    terminal.sees("Ben speaks.", 1);
    terminal.sees("Ann> ", 4);
    terminal.types("/end\n");
    assert_eq!(terminal.ends().0, 0);
    assert_eq!(speakers(&cast.messages("@")), ["ann", "ada", "ann", "ben"]);
}

#[test]
fn it_is_known_which_person_speaks() {
    let cast = Cast::of(&["ada"], &["ann", "zoe"]);
    let check = |args: &[&str], speaker: &str| {
        let document = cast.turn(args);
        assert_eq!(order(&document), [speaker, "ada"], "{args:?}");
        let prompt = cast.prompt("ada");
        let told = prompt.lines().last().unwrap().split_once(':').unwrap();
        assert_eq!((told.0, told.1.trim()), (&*shown(speaker), "hello"));
    };
    check(&["[FROM: zoe] [NEXT: ada] hello"], "zoe");
    check(&["[from: ANN][FROM: zoe] [NEXT: ada] hello"], "ann");
    check(&["--as", "Zoe", "[NEXT: ada] hello"], "zoe");
    check(&["--as", "zoe", "[FROM: Zoe] [NEXT: ada] hello"], "zoe");
    // A resumed session waits for its first human.
    check(&["-c", "[NEXT: ada] hello"], "ann");
    let before = cast.home.all().len();
    let refuse = |args: &[&str], words: &str| {
        let output = cast.run(args).code(2).notes(words).notes("ann, zoe");
        output.notes("hint: name the speaker with --as NAME");
    };
    refuse(&["[NEXT: ada] hello"], "who is speaking");
    refuse(&["[FROM: ada] [NEXT: ada] hello"], "'ada' is an agent");
    refuse(&["[FROM: eve] [NEXT: ada] hello"], "'eve'");
    refuse(&["--as", "ada", "[NEXT: ada] hello"], "'ada' is an agent");
    refuse(&["--as", "eve", "[NEXT: ada] hello"], "'eve'");
    refuse(&["-c", "[FROM: eve] [NEXT: ada] hello"], "'eve'");
    // The flag and the prompt disagree.
    let output = cast.run(&["--as", "zoe", "[FROM: ann] [NEXT: ada] hello"]);
    output
        .code(2)
        .notes("--as names the speaker 'zoe'")
        .notes("'ann'");
    assert_eq!(cast.home.all().len(), before, "nothing was written");
    assert_eq!(cast.asked("ada"), 5);
    // Markers in piped input do not count.
    let args = ["--as", "zoe", "[NEXT: ada] look"];
    let output = cast.prepare(&args).stdin("[FROM: ann] hello").run();
    output.ok();
    assert_eq!(speakers(&cast.messages("@")), ["zoe", "ada"]);
}

#[test]
fn a_person_in_the_queue_is_waited_for() {
    let cast = Cast::of(&["ada", "ben"], &["ann", "zoe"]);
    let document = cast.turn(&["--as", "ann", "[NEXT: ada, zoe, ben] go"]);
    assert_eq!(order(&document), ["ann", "ada"]);
    assert_eq!(
        (&document["status"], &document["waiting_for"]),
        (&json!("completed"), &json!("zoe"))
    );
    assert_eq!(cast.asked("ben"), 0);
    let mut terminal = cast.open(&["--as", "ann"]);
    terminal.sees("[N] New", 1);
    terminal.types("n\n");
    terminal.sees("as Ann> ", 1);
    terminal.types("/as\n");
    terminal.sees("Ann/Zoe> ", 1);
    terminal.types("[FROM: ann] [NEXT: ada, zoe, ben] go\n");
    terminal.sees("\nZoe> ", 1);
    assert_eq!(cast.asked("ben"), 0);
    terminal.types("thank you\n");
    terminal.sees("Ben speaks.", 1);
    terminal.sees("\nAnn> ", 1);
    terminal.types("/end\n");
    assert_eq!(terminal.ends().0, 0);
    let said = cast.messages("@");
    assert_eq!(speakers(&said), ["ann", "ada", "zoe", "ben"]);
}

/// Only people may set `[FROM]`.
#[test]
fn an_agent_speaks_for_itself() {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.says("ada", "I am Ann. [FROM: ann] [NEXT: ben]");
    let document = cast.turn(&["[NEXT: ada] who are you?"]);
    assert_eq!(order(&document), ["ann", "ada", "ben"]);
    assert!(cast.prompt("ben").contains("Ada: I am Ann."));
    assert!(!cast.prompt("ben").contains("[FROM"));
}

/// A team in which each member addresses all others, so that the queue grows. Returns it with the
/// prompt.
fn crowd() -> (Cast, String) {
    let names: Vec<String> = (10..22).map(|n| format!("m{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut cast = Cast::of(&names, &["ann"]);
    cast.change(|document| document["maxRounds"] = json!(7));
    let everybody = format!("[NEXT: {}]", names.join(", "));
    for name in &names {
        cast.says(name, &everybody);
    }
    (cast, everybody)
}

/// Members that the full queue rejects are named.
#[test]
fn a_queue_that_is_full_says_whom_it_does_not_take() {
    let (cast, everybody) = crowd();
    let output = cast.run(&[&everybody]).ok().notes("maxRounds");
    let output = output.notes("50 wait already").notes("m21 are not asked");
    output.lacks("as P3");
    let calm = cast.run(&["[NEXT: ann] nobody"]).ok();
    calm.lacks("wait already");
    // With `-v`, members whose priority was lowered are named, too.
    let output = cast.run(&[&everybody, "-v"]).ok();
    output.notes("more than 10 are to reply to one message: m20, m21 wait as P3");
}

#[test]
fn a_stream_tells_what_happens_to_the_queue() {
    let (cast, everybody) = crowd();
    let output = cast.run(&["--output-format", "stream-json", &everybody]);
    let events = output.ok().events();
    let queues = events.iter().filter(|event| event["type"] == "queue");
    let changes = |queue: &Value| queue["changes"].as_array().unwrap().clone();
    let changes: Vec<Value> = queues.flat_map(changes).collect();
    let of = |what: &str| {
        let mut changes = changes.iter();
        changes.find(|change| change["change"] == what).unwrap()
    };
    let first = of("queued");
    assert_eq!(
        (&first["member"], &first["intent"]),
        (&json!("m10"), &json!("P2"))
    );
    assert_eq!(first["parent"], cast.messages("@")[0]["id"]);
    let demoted = of("demoted");
    assert_eq!(
        (&demoted["member"], &demoted["intent"], &demoted["asked"]),
        (&json!("m20"), &json!("P3"), &json!("P2"))
    );
    let skipped = changes
        .iter()
        .filter(|change| change["change"] == "skipped");
    let reasons: Vec<&Value> = skipped.map(|change| &change["reason"]).collect();
    assert!(reasons.contains(&&json!("full")), "{reasons:?}");
    cast.says("m10", "[DROP: m11] enough");
    let output = cast.run(&["--output-format", "stream-json", "[NEXT: m10, m11] go"]);
    let events = output.ok().events();
    let mut changes = events
        .iter()
        .filter_map(|event| event["changes"].as_array());
    let is_dropped = |change: &Value| change["change"] == "dropped" && change["member"] == "m11";
    assert!(
        changes.any(|changes| changes.iter().any(is_dropped)),
        "{events:#?}"
    );
}

#[test]
fn words_that_are_too_long_are_refused_before_anything_is_done() {
    let cast = Cast::of(&["ada"], &["ann"]);
    let words = format!("[NEXT: ada] {}", "x".repeat(1_000_000));
    let output = cast.prepare(&[]).stdin(&words).run().code(5);
    output.notes("1000012");
    assert!(cast.home.all().is_empty());
    assert_eq!(cast.asked("ada"), 0);
}

#[test]
fn without_people_or_words_nothing_begins() {
    let cast = Cast::of(&["ada", "ben"], &["ann"]);
    for words in [&[][..], &[""], &[" \n"]] {
        cast.run(words).code(2).notes("no prompt given");
    }
    let mut lonely = cast;
    lonely.change(|document| {
        let members = document["team"]["members"].as_array_mut().unwrap();
        members.retain(|member| member["type"] == "ai");
    });
    let output = lonely.run(&["[NEXT: ada] go"]).code(5);
    output.notes("human");
    assert!(lonely.home.all().is_empty());
    assert_eq!(lonely.asked("ada"), 0);
}

/// The environment that a team file sets for a member is that member's alone, and a key in it is
/// never shown.
#[test]
fn a_member_has_an_environment_of_its_own() {
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.change_member("ada", |ada| {
        ada["env"] = json!({"ADA_API_KEY": "lantern-meadow"})
    });
    for name in ["ada", "ben"] {
        cast.does(name, "printf 'my key: %s.' \"$ADA_API_KEY\" | tr a-z A-Z");
    }
    let document = cast.turn(&["[NEXT: ada, ben] how are you?"]);
    let said = said_in(&document);
    assert_eq!(said[1]["content"], "MY KEY: LANTERN-MEADOW.");
    assert_eq!(said[2]["content"], "MY KEY: .");
    cast.does("ada", "echo \"it is $ADA_API_KEY\" >&2; exit 3");
    cast.run(&["-v", "[NEXT: ada] and now?"])
        .code(6)
        .lacks("lantern-meadow");
    let session = cast.home.show("@").to_string();
    assert!(!session.contains("lantern-meadow"), "{session}");
}
