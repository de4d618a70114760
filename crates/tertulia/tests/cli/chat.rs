//! `chat`: one turn without a terminal.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::{Backend, Home, both, files_below, finish, keys, messages, short};
use crate::running::{Running, WAITING, sweep};

#[test]
fn the_first_run_answers_and_says_how_to_resume() {
    both(|home| {
        let output = home.run(&["chat", "-p", "hello"]).ok();
        assert!(output.stdout.starts_with("Hello! I am the demo agent"));
        assert!(output.stdout.ends_with('\n'));
        let id = home.all()[0]["id"].as_str().unwrap().to_owned();
        let line = output
            .stderr
            .lines()
            .find(|line| line.starts_with("Resume: "));
        let store = match home.backend() {
            Backend::Sqlite => String::new(),
            Backend::Files => format!(" --store {}", home.store_url()),
        };
        let expected = format!("Resume: tertulia{store} --resume {}", short(&id));
        assert_eq!(line, Some(expected.as_str()));
    });
}

/// Runs a resume hint unchanged, in another folder.
fn follow(home: &Home, hint: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let words: Vec<&str> = hint.strip_prefix("tertulia ").unwrap().split(' ').collect();
    // `Home::prepare` of a files store would add the store, but the hint must name it.
    let plain = Home::new();
    let mut prepared = plain.prepare(&[&words[..], &["-p", "what did I say?"]].concat());
    prepared = prepared
        .folder(home.folder("elsewhere"))
        .env("HOME", home.path());
    for (name, value) in variables {
        prepared = prepared.env(name, value);
    }
    let output = prepared.run().ok();
    output.stdout.lines().map(str::to_owned).collect()
}

fn hint_of(stderr: &str) -> String {
    let line = stderr
        .lines()
        .find_map(|line| line.strip_prefix("Resume: "));
    line.expect("a resume hint").to_owned()
}

#[test]
fn the_resume_hint_works_from_another_folder() {
    let home = &Home::new();
    let output = home.run(&["chat", "-p", "remember the milk"]).ok();
    let answer = follow(home, &hint_of(&output.stderr), &[]);
    assert!(
        answer.contains(&"1. remember the milk".to_owned()),
        "{answer:?}"
    );
}

#[test]
fn the_resume_hint_works_from_another_folder_when_the_store_is_named_relatively() {
    let home = Home::new();
    for flags in [
        ["--store", "files:talks"],
        ["--store", "sqlite:talks.db"],
        ["--data-dir", "everything"],
    ] {
        let args = [&flags[..], &["chat", "-p", "remember the milk"]].concat();
        let output = home.run(&args).ok();
        let answer = follow(&home, &hint_of(&output.stderr), &[]);
        assert!(
            answer.contains(&"1. remember the milk".to_owned()),
            "{flags:?} {answer:?}"
        );
    }
}

#[test]
fn everything_made_is_for_its_owner_alone_whatever_the_umask() {
    both(|home| {
        let prepared = home.prepare(&["chat", "-p", "hello"]).umask("000");
        prepared.run().ok();
        let prepared = home.prepare(&["search", "hello"]).umask("000");
        prepared.run().ok();
        let top = match home.backend() {
            Backend::Sqlite => home.path().join(".local"),
            Backend::Files => home.files_folder(),
        };
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let files = files_below(&top);
        assert!(!files.is_empty());
        for file in files {
            assert_eq!(mode(&file), 0o600, "{file:?}");
            let folders = file.ancestors().skip(1);
            for folder in folders.take_while(|folder| folder.starts_with(&top)) {
                assert_eq!(mode(folder), 0o700, "{folder:?}");
            }
        }
    });
}

#[test]
fn standard_input_is_the_prompt() {
    let home = &Home::new();
    let prepared = home.prepare(&["chat"]).stdin("echo from a pipe");
    assert_eq!(prepared.run().ok().stdout, "from a pipe\n");
    let prepared = home.prepare(&["-p"]).stdin("echo bare");
    assert_eq!(prepared.run().ok().stdout, "bare\n");
}

#[test]
fn standard_input_is_attached_below_the_prompt() {
    let home = &Home::new();
    let prepared = home
        .prepare(&["chat", "-p", "review this"])
        .stdin("fn main() {}\n");
    prepared.run().ok();
    assert_eq!(home.said("@")[0], "review this\n\nfn main() {}\n");
}

#[test]
fn several_words_are_one_prompt() {
    let home = Home::new();
    let output = home.run(&["chat", "echo", "two", "words"]).ok();
    assert_eq!(output.stdout, "two words\n");
    assert_eq!(home.run(&["echo two words"]).ok().stdout, "two words\n");
}

#[test]
fn silent_input_is_waited_for_three_seconds() {
    let home = Home::new();
    let begun = Instant::now();
    let mut child = home
        .prepare(&["chat", "-p", "echo on"])
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let open = child.stdin.take();
    let output = finish(child, "chat with silent input").ok();
    drop(open);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(output.stdout, "on\n");
    output.notes("warning: standard input").notes("3 s");
}

#[test]
fn nothing_to_say_is_wrong_usage() {
    let home = Home::new();
    home.run(&["chat", "-p"]).code(2).notes("no prompt given");
    let prepared = home.prepare(&["chat"]).stdin(" \n\t\n");
    prepared.run().code(2).notes("no prompt given");
    assert!(!home.path().join("project/tertulia.db").exists());
    assert!(home.all().is_empty());
}

const MESSAGE_KEYS: [&str; 16] = [
    "at",
    "author",
    "content",
    "hash",
    "host",
    "id",
    "interrupted",
    "model",
    "reasoning",
    "role",
    "seq",
    "speaker",
    "thread",
    "tool_calls",
    "type",
    "usage",
];

fn check_messages(said: &[Value]) {
    let roles: Vec<&Value> = said.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant"]);
    for message in said {
        assert_eq!(keys(message), MESSAGE_KEYS);
        assert_eq!(
            keys(&message["speaker"]),
            ["displayName", "id", "name", "type"]
        );
        assert_eq!(message["type"], "message");
        assert_eq!(message["interrupted"], false);
    }
    assert_eq!(said[0]["content"], "count to 3");
    assert_eq!(said[0]["speaker"]["type"], "human");
    assert_eq!(said[1]["content"], "1 2 3");
    assert_eq!(said[1]["speaker"]["type"], "ai");
    assert_eq!(said[1]["usage"], json!({ "input": 3, "output": 3 }));
    assert_eq!(said[1]["model"], "demo-1");
}

#[test]
fn json_output_is_one_document_with_the_messages_of_the_run() {
    let home = &Home::new();
    for args in [
        ["--output-format", "json", "-p", "count to 3"],
        ["--json", "-q", "-p", "count to 3"],
    ] {
        let document = home.run(&args).ok().json();
        assert_eq!(
            keys(&document),
            [
                "errors",
                "messages",
                "session_id",
                "status",
                "usage",
                "waiting_for"
            ]
        );
        assert_eq!(document["status"], "completed");
        assert_eq!(document["waiting_for"], "you");
        assert_eq!(document["usage"], json!({ "input": 3, "output": 3 }));
        let said = document["messages"].as_array().unwrap();
        check_messages(said);
        let shown = home.show(document["session_id"].as_str().unwrap());
        assert_eq!(said, &messages(&shown));
    }
}

#[test]
fn stream_json_output_is_one_event_per_line() {
    let home = &Home::new();
    let args = ["chat", "--output-format", "stream-json", "-p", "count to 3"];
    let events = home.run(&args).ok().events();
    let kinds: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    let expected = [
        "session.started",
        "message",
        "text",
        "text",
        "text",
        "message",
        "turn.completed",
    ];
    assert_eq!(kinds, expected);
    let text: String = events.iter().filter_map(|e| e["text"].as_str()).collect();
    assert_eq!(text, "1 2 3");
    let id = events[0]["session_id"].as_str().unwrap();
    assert_eq!(
        keys(&events[0]),
        ["messages", "resumed", "session_id", "type"]
    );
    assert_eq!(events[6]["status"], "completed");
    assert_eq!(events[6]["session_id"], id);
    let said = [events[1].clone(), events[5].clone()];
    check_messages(&said);
    assert_eq!(said.to_vec(), messages(&home.show(id)));
}

#[test]
fn a_failure_in_stream_json_is_an_error_event() {
    let home = Home::new();
    let args = ["chat", "--output-format", "stream-json", "-p", "fail"];
    let events = home.run(&args).code(6).events();
    let error = events
        .iter()
        .find(|event| event["type"] == "error")
        .unwrap();
    assert_eq!(error["message"], "the demo failed, as it was asked to");
    assert_eq!(events.last().unwrap()["type"], "turn.completed");
    assert_eq!(events.last().unwrap()["status"], "failed");
}

#[test]
fn a_failure_in_json_has_the_messages_and_the_error() {
    let home = Home::new();
    let output = home.run(&["chat", "--json", "-p", "fail"]).code(6);
    let document = output.json();
    assert_eq!(document["status"], "failed");
    assert_eq!(document["messages"].as_array().unwrap().len(), 1);
    assert_eq!(output.error()["kind"], "agent");
}

/// Removes the store while an answer is being given.
fn without_a_store(home: &Home, something_in_its_place: bool) {
    let place = match home.backend() {
        Backend::Sqlite => home.path().join(".local/share/tertulia"),
        Backend::Files => home.files_folder(),
    };
    let aside = home.path().join("aside");
    home.script_agent("brief", WAITING);
    let mut talk = Running::start(home, &["--agent", "brief", "-p", "go on"]);
    let started = talk.until("session.started");
    let id = started["session_id"].as_str().unwrap();
    talk.until("text");
    std::fs::rename(&place, &aside).unwrap();
    if something_in_its_place {
        std::fs::write(&place, "in the way").unwrap();
    }
    std::fs::write(home.path().join("go"), "").unwrap();
    let output = talk.end().code(1);
    output.notes("not saved").notes(" import ");
    let name = format!("tertulia-unsaved-{}.jsonl", short(id));
    let file = home.project().join(name);
    let mode = file.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let _ = std::fs::remove_file(&place);
    let _ = std::fs::remove_dir_all(&place);
    std::fs::rename(&aside, &place).unwrap();
    assert_eq!(home.said(id), ["go on"]);
    home.run(&["import", file.to_str().unwrap()]).ok();
    assert_eq!(home.said(id), ["go on", "begun\ndone\n"]);
}

#[test]
fn what_cannot_be_saved_is_offered_as_a_file() {
    both(|home| without_a_store(home, true));
}

#[test]
fn what_cannot_be_saved_because_the_store_is_gone_is_offered_as_a_file() {
    both(|home| without_a_store(home, false));
}

#[test]
fn a_folder_whose_name_is_not_text_is_a_project_too() {
    both(|home| {
        let folder = home.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        std::fs::create_dir(&folder).unwrap();
        let run = |args: &[&str]| home.prepare(args).folder(&folder).run().ok();
        run(&["chat", "-p", "hello"]);
        assert_eq!(
            run(&["-c", "-p", "what did I say?"]).stdout,
            "You said:\n\n1. hello\n"
        );
        run(&["list"]).says("hello");
        if home.backend() == Backend::Sqlite {
            run(&["--store", "files:talks", "chat", "-p", "hello"]);
            run(&["--store", "files:talks", "list"]).says("hello");
        }
    });
}

#[test]
fn a_message_event_is_durable() {
    let home = &Home::new();
    home.script_agent("slow", "cat > /dev/null; exec sleep 60");
    let mut talk = Running::start(home, &["--agent", "slow", "-p", "do not lose me"]);
    let id = talk.until("session.started")["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let message = talk.until("message");
    talk.kill();
    sweep(home);
    assert_eq!(messages(&home.show(&id)), [message]);
    let next = home
        .run(&["-r", &id, "--agent", "demo", "-p", "echo on"])
        .ok();
    next.notes("the last message has no answer");
}

#[test]
fn a_failed_agent_is_an_entry_and_the_talk_goes_on() {
    let home = &Home::new();
    let output = home.run(&["chat", "-p", "fail"]).code(6);
    output
        .notes("error: the demo failed, as it was asked to")
        .notes("Resume: ");
    let session = home.show("@");
    let last = session["entries"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["type"], "failed");
    assert_eq!(last["message"], "the demo failed, as it was asked to");
    assert_eq!(session["status"], "paused");
    assert_eq!(home.run(&["-c", "-p", "echo on"]).ok().stdout, "on\n");
}

#[test]
fn an_ephemeral_talk_leaves_no_file() {
    for flag in ["--ephemeral", "--no-auto-save"] {
        let home = Home::new();
        std::fs::remove_dir_all(home.path().join(".config")).unwrap();
        let output = home
            .run(&["chat", flag, "--agent", "demo", "-p", "echo gone"])
            .ok();
        assert_eq!(output.stdout, "gone\n");
        output.lacks("Resume:");
        assert_eq!(files_below(home.path()), Vec::<std::path::PathBuf>::new());
        let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "only the project folder");
        home.run(&["chat", flag, "-c", "-p", "hi"]).code(2);
    }
}

#[test]
fn an_answer_is_written_as_the_agent_wrote_it() {
    let home = &Home::new();
    home.script_agent("raw", "printf 'a\\n\\n  b\\tc\\n'");
    let output = home.run(&["chat", "--agent", "raw", "-p", "x"]).ok();
    assert_eq!(output.stdout, "a\n\n  b\tc\n");
    assert_eq!(home.said("@")[1], "a\n\n  b\tc\n");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let home = Home::new();
    let mut child = home
        .prepare(&["chat", "-p", "count to 100000"])
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    let output = finish(child, "chat | head").ok();
    output.lacks("panic");
    // The prompt was durable before, so no input of the user is lost.
    assert_eq!(home.said("@")[0], "count to 100000");
}

#[test]
fn a_prompt_that_comes_slowly_is_read_to_its_end() {
    let home = Home::new();
    let mut child = home
        .prepare(&["chat"])
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    for part in ["echo ", "one ", "two"] {
        pipe.write_all(part.as_bytes()).unwrap();
        pipe.flush().unwrap();
    }
    drop(pipe);
    assert_eq!(finish(child, "chat").ok().stdout, "one two\n");
}

#[test]
fn edits_run_unasked_and_commands_do_not() {
    let home = Home::new();
    let write = r#"use file_write {"path":"f.txt","content":"written\n"}"#;
    home.run(&["chat", "--approve", "edits", "-p", write])
        .ok()
        .notes("tools that do more than edit files are denied");
    assert!(home.project().join("f.txt").exists());
    let command = r#"use shell {"command":"touch g.txt"}"#;
    home.run(&["chat", "--approve", "edits", "-p", command])
        .ok();
    assert!(!home.project().join("g.txt").exists());
    // There is no user who could have denied it.
    let told = home.said("@").join("\n");
    assert!(told.contains("nobody could be asked"), "{told}");
    assert!(!told.contains("the user does not want"), "{told}");
    // What programs act on is no mere edit.
    for path in [
        ".git/hooks/pre-commit",
        "sub/AGENTS.md",
        ".vscode/tasks.json",
    ] {
        let obeyed = format!(r#"use file_write {{"path":"{path}","content":"x\n"}}"#);
        home.run(&["chat", "--approve", "edits", "-p", &obeyed])
            .ok();
        assert!(!home.project().join(path).exists(), "{path}");
    }
}
