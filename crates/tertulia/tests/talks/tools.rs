//! Tools without a terminal: what runs, what is denied, and that no process remains.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::Signal;
use serde_json::{Value, json};
use tertulia_testkit::provider::Api;

use super::stage::{sleepers, unique_seconds, wait_for_sleepers, wanted, wanted_command};
use crate::agents::world::{World, for_each_api};
use crate::home::{Home, messages};
use crate::running::Running;

for_each_api!(without_leave_there_are_no_tools);

/// A project with a file.
fn home() -> Home {
    let home = Home::new();
    fs::write(home.project().join("kept"), "the words in it\n").unwrap();
    home
}

/// Makes the demo agent use a tool and returns the result that it received.
fn told(home: &Home, more: &[&str], tool: &str, arguments: &Value) -> String {
    let words = wanted(tool, arguments);
    let args = [&["chat", "-p", &words], more].concat();
    let output = home.run(&args).ok();
    let messages = messages(&home.show("@"));
    let roles: Vec<&str> = messages.iter().filter_map(|m| m["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let call = &messages[1]["tool_calls"][0];
    assert_eq!(call["name"], tool);
    assert_eq!(call["arguments"], *arguments);
    assert_eq!(messages[2]["tool_call_id"], call["id"]);
    assert_eq!(messages[2]["interrupted"], false);
    let told = messages[2]["content"].as_str().unwrap().to_owned();
    // The demo agent repeats the result.
    assert!(output.stdout.contains(told.trim_end()), "{output:#?}");
    told
}

#[test]
fn what_changes_something_is_refused() {
    for (tool, arguments) in [
        ("shell", json!({ "command": "touch made" })),
        ("file_write", json!({ "path": "made", "content": "x" })),
        (
            "file_edit",
            json!({ "path": "kept", "old_text": "words", "new_text": "other" }),
        ),
        ("file_delete", json!({ "path": "kept" })),
    ] {
        let home = home();
        let told = told(&home, &[], tool, &arguments);
        assert!(told.starts_with("[not run: "), "{tool}: {told}");
        assert!(!home.project().join("made").exists());
        let kept = fs::read_to_string(home.project().join("kept")).unwrap();
        assert_eq!(kept, "the words in it\n");
    }
}

#[test]
fn what_only_looks_runs() {
    for (tool, arguments, expected) in [
        ("file_read", json!({ "path": "kept" }), "the words in it"),
        ("directory_list", json!({}), "kept"),
        ("glob", json!({ "pattern": "k*" }), "kept"),
        ("grep", json!({ "pattern": "w.rds" }), "kept"),
    ] {
        let told = told(&home(), &[], tool, &arguments);
        assert!(told.contains(expected), "{tool}: {told}");
    }
}

#[test]
fn with_leave_for_all_everything_runs() {
    let home = home();
    let read = |name: &str| fs::read_to_string(home.project().join(name)).unwrap();
    let all = ["--approve", "all"];
    let said = told(
        &home,
        &all,
        "shell",
        &json!({ "command": "echo a > made; echo told; false" }),
    );
    assert!(said.contains("told\n[exit status 1]"), "{said}");
    assert_eq!(read("made"), "a\n");
    let arguments = json!({ "path": "made", "content": "b c\n" });
    told(&home, &all, "file_write", &arguments);
    assert_eq!(read("made"), "b c\n");
    let arguments = json!({ "path": "made", "old_text": "b", "new_text": "d" });
    told(&home, &all, "file_edit", &arguments);
    assert_eq!(read("made"), "d c\n");
    told(&home, &all, "file_delete", &json!({ "path": "made" }));
    assert!(!home.project().join("made").exists());
}

fn without_leave_there_are_no_tools(api: Api) {
    let world = World::new(api);
    let asked = |more: &[&str]| {
        let args = [&["chat", "--agent", "a", "-p", "hello"], more].concat();
        world.run(&args).ok();
        let body = world.questions().pop().unwrap().body;
        body.get("tools").cloned().unwrap_or_default().to_string()
    };
    assert_eq!(asked(&["--approve", "none"]), "null");
    for tool in ["file_read", "shell"] {
        assert!(asked(&[]).contains(tool));
    }
    // A model that calls a tool anyway gets an error.
    let words = r#"[[tool:shell {"command":"touch made"}]]"#;
    let args = ["chat", "--agent", "a", "--approve", "none", "-p", words];
    let output = world.run(&args).ok();
    assert!(output.stdout.contains("[not run: "), "{output:#?}");
    assert!(!world.home.project().join("made").exists());
}

#[test]
fn without_leave_the_demo_has_none_either() {
    let home = home();
    let words = wanted("directory_list", &json!({}));
    home.run(&["chat", "--approve", "none", "-p", &words]).ok();
    assert_eq!(home.said("@").len(), 2);
}

#[test]
fn nothing_leads_out_of_the_folder() {
    let world = World::new(Api::OpenAi);
    let (outside, project) = (world.home.folder("outside"), world.home.project());
    let secret = outside.join("secret");
    fs::write(&secret, "lantern").unwrap();
    symlink(&outside, project.join("way")).unwrap();
    symlink(&secret, project.join("link")).unwrap();
    let mut calls = vec![
        ("directory_list", json!({ "path": ".." })),
        ("directory_list", json!({ "path": "way" })),
        ("glob", json!({ "pattern": "*", "path": "way" })),
    ];
    for path in [
        "../outside/secret",
        "way/secret",
        "way/../outside/secret",
        secret.to_str().unwrap(),
        "link",
    ] {
        let edit = json!({ "path": path, "old_text": "lantern", "new_text": "other" });
        calls.extend([
            ("file_read", json!({ "path": path })),
            ("grep", json!({ "path": path, "pattern": "l.ntern" })),
            ("file_write", json!({ "path": path, "content": "other" })),
            ("file_edit", edit),
        ]);
        // The link itself may be deleted.
        if path != "link" {
            calls.push(("file_delete", json!({ "path": path })));
        }
    }
    let round: Vec<String> = calls
        .iter()
        .map(|(tool, arguments)| format!("{tool} {arguments}"))
        .collect();
    let words = format!("[[tools:{}]] [[say:done]]", round.join(" "));
    let format = ["--output-format", "stream-json"];
    let args = [
        &["chat", "--agent", "a", "--approve", "all", "-p", &words],
        &format[..],
    ]
    .concat();
    let events = world.run(&args).ok().events();
    let told: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "tool.completed")
        .collect();
    assert_eq!(told.len(), calls.len());
    for ((tool, arguments), told) in calls.iter().zip(told) {
        assert_eq!(told["ok"], false, "{tool} {arguments}: {told}");
        let output = told["output"].as_str().unwrap();
        assert!(!output.contains("lantern"), "{tool} {arguments}: {output}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "lantern");
}

#[test]
fn a_call_is_durable_before_it_is_carried_out() {
    let home = home();
    let program = env!("CARGO_BIN_EXE_tertulia");
    let command = format!("'{program}' show @ --json > seen");
    let words = wanted_command(&command);
    home.run(&["chat", "--approve", "all", "-p", &words]).ok();
    let seen = fs::read_to_string(home.project().join("seen")).unwrap();
    let seen = messages(&serde_json::from_str(&seen).unwrap());
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1]["tool_calls"][0]["arguments"]["command"], command);
}

#[test]
fn a_command_over_its_time_ends_with_all_that_it_started() {
    let home = home();
    let seconds = unique_seconds();
    let command = format!("setsid sleep {seconds} & sleep {seconds} & echo begun; sleep {seconds}");
    let arguments = json!({ "command": command, "timeout_seconds": 1 });
    let said = told(&home, &["--approve", "all"], "shell", &arguments);
    assert!(said.contains("begun\n[not finished after 1 s"), "{said}");
    assert_eq!(sleepers(&seconds), []);
}

#[test]
fn a_signal_ends_a_command_and_closes_its_call() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let home = home();
        let seconds = unique_seconds();
        let words = wanted_command(&format!("setsid sleep {seconds} & sleep {seconds}"));
        let mut running = Running::start(&home, &["--approve", "all", "-p", &words]);
        running.until("tool.started");
        wait_for_sleepers(&seconds, 2);
        running.signal(signal);
        running.end().code(code).says(r#""status":"cancelled""#);
        assert_eq!(sleepers(&seconds), []);
        let messages = messages(&home.show("@"));
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[2]["interrupted"], true);
        assert_eq!(
            messages[2]["tool_call_id"],
            messages[1]["tool_calls"][0]["id"]
        );
        assert_eq!(home.show("@")["status"], "paused");
        // The call is closed: a resume has nothing to close, and nothing is left unanswered.
        let output = home.run(&["chat", "-c", "-p", "echo on"]).ok();
        assert!(
            !output.stderr.contains("closed as interrupted"),
            "{output:#?}"
        );
        assert!(!output.stderr.contains("not answered"), "{output:#?}");
        assert_eq!(home.said("@").len(), 5);
    }
}

#[test]
fn of_much_output_little_is_kept_in_memory_and_in_the_log() {
    for source in [
        "head -c 50000000 /dev/zero | tr '\\0' x",
        "yes | head -c 50000000",
    ] {
        let home = home();
        // Near the end of the output, report the peak memory of the process that reads it.
        let command =
            format!("{source}; echo; cat /proc/$PPID/comm; grep VmHWM /proc/$PPID/status");
        let arguments = json!({ "command": command });
        let told = told(&home, &["--approve", "all"], "shell", &arguments);
        assert!(told.len() < 70_000, "{} bytes", told.len());
        assert!(told.contains("\ntertulia\n"), "not its child");
        let peak = told.split("VmHWM:").nth(1).unwrap();
        let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
        assert!(kilobytes < 150_000, "{kilobytes} kB");
        let log = fs::metadata(home.database()).unwrap().len();
        assert!(log < 2_000_000, "{log} bytes");
    }
}
