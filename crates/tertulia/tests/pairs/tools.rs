//! Real tools with a fake provider: the worker changes files, the instructor reads, and git belongs
//! to the instructor.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tertulia_testkit::provider::Api;

use crate::agents::world::{KEY, World};
use crate::home::{Output, messages};
use crate::pty::{CTRL_D, Terminal};
use crate::running::Running;
use crate::talks::stage::{sleepers, unique_seconds, wait_for_sleepers};

/// A project with a repository.
fn world(boss: &str) -> World {
    let world = World::new(Api::Anthropic);
    world.home.script_agent("boss", boss);
    let project = world.home.project();
    for args in [
        &["init", "-q"][..],
        &["config", "user.email", "t@example.org"],
        &["config", "user.name", "t"],
        &["commit", "-q", "--allow-empty", "-m", "first"],
    ] {
        let git = Command::new("git")
            .args(args)
            .current_dir(&project)
            .status();
        assert!(git.unwrap().success());
    }
    world
}

fn commits(world: &World) -> usize {
    let log = Command::new("git")
        .args(["log", "--oneline"])
        .current_dir(world.home.project())
        .output();
    String::from_utf8(log.unwrap().stdout)
        .unwrap()
        .lines()
        .count()
}

/// Makes the instructor use tools and returns their results.
fn instructor_uses(world: &World, approve: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let mut words: String = calls
        .iter()
        .map(|(tool, given)| format!("[[tool:{tool} {given}]]"))
        .collect();
    words.push_str("[[say:fine\nDONE]]");
    let args = [
        "pair",
        &words,
        "--instructor",
        "a",
        "--worker",
        "demo",
        "--approve",
        approve,
    ];
    world.run(&args).ok();
    results(world, "instructor")
}

/// Makes the worker use tools and returns their results.
fn worker_uses(approve: &str, calls: &[(&str, Value)]) -> (World, Vec<String>, Output) {
    let calls: String = calls
        .iter()
        .map(|(tool, given)| format!("[[tool:{tool} {given}]]"))
        .collect();
    let boss = format!(
        "if grep -q 'it is done'; then echo 'I have looked.'; echo DONE; else cat <<'END'\nTell worker: please {calls}[[say:it is done]]\nEND\nfi"
    );
    let world = world(&boss);
    let args = [
        "pair",
        "go",
        "--instructor",
        "boss",
        "--worker",
        "a",
        "--approve",
        approve,
    ];
    let output = world.run(&args).ok();
    let told = results(&world, "worker");
    (world, told, output)
}

fn results(world: &World, thread: &str) -> Vec<String> {
    messages(&world.home.show("@"))
        .iter()
        .filter(|message| message["role"] == "tool" && message["thread"] == thread)
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_worker_writes_edits_and_runs_and_the_transcript_shows_each() {
    let (world, told, output) = worker_uses(
        "all",
        &[
            (
                "file_write",
                json!({ "path": "a.txt", "content": "one two\n" }),
            ),
            (
                "file_edit",
                json!({ "path": "a.txt", "old_text": "two", "new_text": "three" }),
            ),
            ("shell", json!({ "command": "cat a.txt" })),
        ],
    );
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(told[2].contains("one three"), "{told:#?}");
    let file = fs::read_to_string(world.home.project().join("a.txt")).unwrap();
    assert_eq!(file, "one three\n");
    output
        .says("it is done")
        .says("I have looked.")
        .notes("file_write")
        .notes("done after 1 worker call");
    let shown = world.home.run(&["show", "@"]).ok();
    for words in [
        "→ file_write",
        "→ file_edit",
        "→ shell",
        "one three",
        "Worker says: it is done",
        "worker's thread",
    ] {
        assert!(shown.stdout.contains(words), "{words} in {}", shown.stdout);
    }
    // Both received their role, and the worker nothing of the instructor's thread.
    let asked = world.questions();
    let first = asked[0].body.to_string();
    assert!(
        first.contains("worker of a pair") && !first.contains("\"go\""),
        "{first}"
    );
}

#[test]
fn git_is_not_the_workers_to_write_with() {
    let (world, told, _) = worker_uses(
        "all",
        &[
            ("shell", json!({ "command": "git status --short" })),
            (
                "shell",
                json!({ "command": "touch b && git add -A && git commit -m mine" }),
            ),
            ("shell", json!({ "command": "sh -c 'git reset --hard'" })),
            ("shell", json!({ "command": "git log --oneline | head -1" })),
        ],
    );
    assert!(told[0].contains("exit status 0"), "{told:#?}");
    for refused in &told[1..3] {
        assert!(refused.starts_with("[not run: git"), "{told:#?}");
    }
    assert!(told[3].contains("first"), "{told:#?}");
    assert_eq!(commits(&world), 1);
    assert!(!world.home.project().join("b").exists());
}

#[test]
fn a_worker_may_look_where_it_may_not_change() {
    let (world, told, _) = worker_uses(
        "low",
        &[
            ("shell", json!({ "command": "git log --oneline" })),
            ("shell", json!({ "command": "ls" })),
            ("file_write", json!({ "path": "made", "content": "x" })),
            ("directory_list", json!({})),
        ],
    );
    assert!(told[0].contains("first"), "{told:#?}");
    assert!(
        told[1].starts_with("[not run: ") && told[2].starts_with("[not run: "),
        "{told:#?}"
    );
    assert!(!world.home.project().join("made").exists());
}

#[test]
fn an_instructor_looks_and_writes_with_git_alone() {
    let world = world("true");
    fs::write(world.home.project().join("kept"), "the words in it\n").unwrap();
    let calls = [
        ("file_read", json!({ "path": "kept" })),
        ("shell", json!({ "command": "git status --short" })),
        ("file_write", json!({ "path": "made", "content": "x" })),
        ("shell", json!({ "command": "touch made" })),
        (
            "shell",
            json!({ "command": "git add -A && git commit -q -m 'by the instructor'" }),
        ),
    ];
    let told = instructor_uses(&world, "low", &calls);
    assert!(
        told[0].contains("the words in it") && told[1].contains("?? kept"),
        "{told:#?}"
    );
    assert!(told[2].contains("have the worker do it"), "{told:#?}");
    assert!(told[3].contains("have the worker run it"), "{told:#?}");
    assert!(told[4].starts_with("[not run: "), "{told:#?}");
    assert_eq!(commits(&world), 1);
    let told = instructor_uses(&world, "all", &calls);
    assert!(told[2].contains("have the worker do it"), "{told:#?}");
    assert!(told[4].contains("exit status 0"), "{told:#?}");
    assert_eq!(commits(&world), 2);
    assert!(!world.home.project().join("made").exists());
    // Tools of the worker are not even offered to it.
    let offered = world.questions().pop().unwrap().body["tools"].to_string();
    assert!(
        offered.contains("file_read") && !offered.contains("file_write"),
        "{offered}"
    );
}

#[test]
fn tools_stay_in_the_work_folder() {
    let world = world("true");
    fs::write(world.home.project().join("outside"), "secret words\n").unwrap();
    fs::create_dir(world.home.project().join("inner")).unwrap();
    let words = "[[tool:file_read {\"path\":\"../outside\"}]][[say:DONE]]";
    let args = [
        "pair",
        words,
        "--instructor",
        "a",
        "--worker",
        "demo",
        "-d",
        "inner",
    ];
    world.run(&args).ok().lacks("secret words");
    let told = results(&world, "instructor");
    assert!(!told[0].contains("secret words"), "{told:#?}");
}

#[test]
fn thoughts_of_a_provider_are_kept_with_the_reply() {
    let world = world("true");
    let words = "[[think:what a day]][[say:fine\nDONE]]";
    let args = ["pair", words, "--instructor", "a", "--worker", "demo"];
    world.run(&args).ok();
    let session = world.home.show("@");
    assert_eq!(session["pair"]["last_reply"]["thinking"], "what a day");
    assert_eq!(session["pair"]["thinking"], true);
    let args = [
        "pair",
        words,
        "--instructor",
        "a",
        "--worker",
        "demo",
        "--no-thinking",
    ];
    world.run(&args).ok();
    assert_eq!(world.home.show("@")["pair"]["thinking"], false);
}

#[test]
fn a_provider_that_fails_the_worker_is_told_of() {
    let boss = "grep -q 'ERROR' && echo DONE || echo 'Tell worker: [[fail:401]]'";
    let world = world(boss);
    let args = ["pair", "go", "--instructor", "boss", "--worker", "a"];
    world.run(&args).code(6);
    let said = messages(&world.home.show("@"));
    let report = said
        .iter()
        .find(|message| message["speaker"]["id"] == "worker")
        .unwrap();
    let report = report["content"].as_str().unwrap();
    assert!(
        report.starts_with("Worker says: [ERROR: ") && report.contains("Only the person"),
        "{report}"
    );
}

#[test]
fn an_instructors_git_asks_first() {
    let world = world("true");
    fs::write(world.home.project().join("kept"), "x\n").unwrap();
    let commit = json!({ "command": "git add -A && git commit -q -m yes" });
    let words =
        format!("[[tool:shell {{\"command\":\"git status\"}}]][[tool:shell {commit}]][[say:DONE]]");
    for (answer, expected) in [("n\n", 1), ("y\n", 2)] {
        let args = [
            "--no-color",
            "pair",
            &words,
            "--instructor",
            "a",
            "--worker",
            "demo",
        ];
        let mut terminal = Terminal::open(&world.home, &args, &[("TEST_KEY", KEY)]);
        // Read-only calls needed no permission.
        terminal.sees("Allow it?", 1);
        terminal.types(answer);
        terminal.sees("done after 0 worker calls", 1);
        terminal.types(CTRL_D);
        let (code, shown) = terminal.ends();
        assert_eq!(
            (code, shown.matches("Allow it?").count()),
            (0, 1),
            "{shown}"
        );
        assert_eq!(commits(&world), expected);
    }
}

#[test]
fn a_call_that_was_killed_is_closed_in_its_thread_and_nothing_of_it_runs_on() {
    let seconds = unique_seconds();
    let boss = format!(
        "grep -q '^Worker says:' && echo DONE || echo 'Tell worker: [[tool:shell {{\"command\":\"sleep {seconds}\"}}]]'"
    );
    let world = world(&boss);
    let args = [
        "pair",
        "go",
        "--instructor",
        "boss",
        "--worker",
        "a",
        "--approve",
        "all",
        "--output-format",
        "stream-json",
    ];
    let running = Running::of(&world.home.prepare(&args).env("TEST_KEY", KEY));
    wait_for_sleepers(&seconds, 1);
    running.kill();
    let output = world.run(&["pair", "-c"]).ok();
    output
        .notes("closed as interrupted: 1 tool call")
        .notes("done");
    assert!(sleepers(&seconds).is_empty());
    let said = messages(&world.home.show("@"));
    let closed: Vec<&Value> = said
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(closed.len(), 1);
    assert_eq!(
        (&closed[0]["thread"], &closed[0]["interrupted"]),
        (&json!("worker"), &json!(true))
    );
    let pair = world.home.show("@")["pair"].clone();
    assert_eq!(
        (&pair["worker_calls"], &pair["round"]),
        (&json!(1), &json!(2))
    );
}
