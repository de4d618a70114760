//! Trouble around a store that must not cost messages: a failed sync, other users' folders, few
//! file descriptors, a session in use.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::sync::Arc;

use serde_json::Value;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind, Message, Role, Speaker, SpeakerKind};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start};
use tertulia_testkit::waiting::wait_until;

use super::full::said;
use super::world::{Backend, Place, Ran, finish, world};
use crate::home::until_draft;

/// A sync that fails while a session is created does not prevent saving it later.
fn one_failed_sync(backend: Backend, call: &str) {
    for when in 1..=4 {
        let (_root, place) = world(backend);
        place.turn(&["echo from better days"]);
        let mut strace = place.bare("strace");
        strace.args(["-f", "-qq", "-e", &format!("trace={call}"), "-e"]);
        strace.arg(format!("inject={call}:error=EIO:when={when}"));
        strace.args(["-o", "/dev/null", env!("CARGO_BIN_EXE_tertulia")]);
        strace.args(place.arguments(&["chat", "-p", "echo precious"]));
        let ran = finish(strace.spawn().unwrap(), "a session with one failed sync");
        let lines = place.everything();
        if ran.code == Some(0) {
            assert_eq!(
                said(&place, "echo precious"),
                1,
                "{when}: {ran:?} {lines:?}"
            );
            assert_eq!(said(&place, "precious"), 1, "{when}: {ran:?}");
        } else {
            // If it cannot be saved even then, it is in a file, and only there.
            assert!(!ran.err.contains("already"), "{when}: {ran:?}");
            assert!(ran.err.contains("tertulia-unsaved-"), "{when}: {ran:?}");
        }
        place.assert_sound("after a failed sync");
    }
}

#[test]
fn a_folder_that_is_not_synced_once_wedges_no_session() {
    one_failed_sync(Backend::Files, "fsync");
}

#[test]
fn a_log_that_is_not_synced_once_wedges_no_session() {
    one_failed_sync(Backend::Files, "fdatasync");
}

/// Runs a first turn whose calls fail from a number on, and returns its output.
fn first_turn_with(place: &Place, call: &str, when: u32) -> Ran {
    let mut strace = place.bare("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={call}"), "-e"]);
    strace.arg(format!("inject={call}:error=EIO:when={when}+"));
    strace.args(["-o", "/dev/null", env!("CARGO_BIN_EXE_tertulia")]);
    let stream = ["--output-format", "stream-json"];
    strace.args(place.arguments(&[&["chat", "-p", "echo precious"][..], &stream].concat()));
    finish(strace.spawn().unwrap(), "a first turn with failing calls")
}

fn acknowledged(ran: &Ran) -> usize {
    let lines = ran.out.lines().map(serde_json::from_str::<Value>);
    let is_message = |line: &Value| line["type"] == "message";
    lines
        .filter(|line| line.as_ref().is_ok_and(is_message))
        .count()
}

/// SQLite reports its write-ahead log before the switch to it is committed. In the journal mode
/// before that, a commit can be undone by a power cut: nothing is acknowledged in it.
#[test]
fn a_database_that_cannot_switch_to_its_write_ahead_log_acknowledges_nothing() {
    for when in 1..=9 {
        let (_root, place) = world(Backend::Sqlite);
        let ran = first_turn_with(&place, "fdatasync", when);
        assert!(!ran.broke(), "{when}: {ran:?}");
        let Ok(bytes) = fs::read(place.database()) else {
            assert_eq!(acknowledged(&ran), 0, "{when}: {ran:?}");
            continue;
        };
        let has_wal = bytes.get(18..20) == Some(&[2, 2]);
        assert!(has_wal || acknowledged(&ran) == 0, "{when}: {ran:?}");
    }
}

/// If neither the store nor a file can be written, the session goes to standard error: on standard
/// output its lines would read as saved messages.
#[test]
fn what_can_be_saved_nowhere_is_not_acknowledged() {
    let (_root, place) = world(Backend::Files);
    place.run(&["chat", "-p", "echo before"]);
    let ran = first_turn_with(&place, "fsync", 1);
    assert!(!ran.broke(), "{ran:?}");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(acknowledged(&ran), 0, "{ran:?}");
    assert!(ran.err.contains("no file can be written either"), "{ran:?}");
    assert!(ran.err.contains("echo precious"), "{ran:?}");
}

/// Derived data of another user prevents neither prompting nor reading.
#[test]
fn derived_folders_of_others_block_nothing() {
    let (root, place) = world(Backend::Files);
    place.turn(&["echo from better days"]);
    place.run(&["search", "better"]).ok("search");
    let talks = place.home.join("talks");
    let open = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let is_root = rustix::process::geteuid().is_root();
    // Another user may do everything here except read the index.
    if is_root {
        open(root.path(), 0o755);
        for folder in [
            &place.home,
            &place.work,
            &talks,
            &talks.join("chat"),
            &talks.join(".open"),
        ] {
            open(folder, 0o777);
        }
        for file in fs::read_dir(talks.join("chat")).unwrap() {
            open(&file.unwrap().path(), 0o666);
        }
        open(&talks.join("tertulia-store.json"), 0o644);
    } else {
        open(&talks.join(".index"), 0o000);
    }
    // The program may be in a folder that only root can enter.
    let program = root.path().join("tertulia");
    fs::copy(env!("CARGO_BIN_EXE_tertulia"), &program).unwrap();
    open(&program, 0o755);
    let run = |args: &[&str]| {
        let mut command = place.bare(&program);
        command.args(place.arguments(args));
        if is_root {
            command.uid(65534).gid(65534);
        }
        finish(command.spawn().unwrap(), &format!("{args:?}"))
    };
    let listed = run(&["list", "--all", "--json"]).ok("list");
    assert!(listed.contains("from better days"), "{listed}");
    let found = run(&["search", "better"]).ok("search");
    assert!(found.contains("better"), "{found}");
    let ran = run(&["chat", "-p", "echo precious"]);
    open(&talks.join(".index"), 0o700);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// If no more files can be opened, an error says so, and nothing panics.
#[test]
fn few_files_are_an_error_and_no_panic() {
    let (_root, place) = world(Backend::Sqlite);
    place.turn(&["echo from better days"]);
    for limit in 4..20 {
        let mut shell = place.bare("sh");
        let program = env!("CARGO_BIN_EXE_tertulia");
        shell.args([
            "-c",
            &format!("ulimit -n {limit}; exec {program} chat -p 'echo x'"),
        ]);
        let ran = finish(shell.spawn().unwrap(), "a session with few files");
        assert!(!ran.broke(), "{limit}: {ran:?}");
        if ran.code != Some(0) && limit > 5 {
            let told = ran.err.contains("files") || ran.err.contains("unsaved");
            assert!(told, "{limit}: {ran:?}");
            assert!(
                !ran.err.contains("choose another place"),
                "{limit}: {ran:?}"
            );
        }
    }
}

/// Adds an agent that prints half of its answer and waits for the file `go` in its working
/// directory.
fn slow_agent(place: &Place) {
    let settings = place.home.join(".config/tertulia");
    fs::create_dir_all(&settings).unwrap();
    let script = "echo half an answer; i=0; while [ ! -e go ] && [ $i -lt 1200 ]; \
                  do sleep 0.05; i=$((i+1)); done; echo the rest";
    let agent = format!(
        "[agents.slow]\ntype = \"command\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"{script}\"]\nconfine = false\n"
    );
    fs::write(settings.join("config.toml"), agent).unwrap();
}

/// Starts a session and returns it in the middle of a turn.
fn busy(place: &Place) -> Child {
    slow_agent(place);
    place.turn(&["echo first"]);
    let args = ["chat", "-c", "-p", "second", "--agent", "slow"];
    let child = place.command(&args).spawn().unwrap();
    wait_until("the prompt is saved", || said(place, "second") > 0);
    child
}

#[test]
fn a_fork_of_a_busy_session_begins_between_turns() {
    let (_root, place) = world(Backend::Sqlite);
    let child = busy(&place);
    let stepped_aside = place.turn(&["-c", "echo third"]);
    let forked = place.run(&["fork", "@~1", "--json"]).ok("fork");
    fs::write(place.work.join("go"), "").unwrap();
    finish(child, "the busy one");
    let forked: Value = serde_json::from_str(&forked).unwrap();
    let forked = forked["id"].as_str().unwrap().to_owned();
    for id in [&stepped_aside[0].session, &forked] {
        let shown = place.show(id).unwrap();
        let speakers: Vec<&str> = shown["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|entry| entry["speaker"]["type"].as_str())
            .collect();
        assert!(speakers.len() >= 2, "{shown}");
        let alternate = speakers.chunks(2).all(|turn| turn == ["human", "ai"]);
        assert!(alternate, "{speakers:?}");
    }
}

/// A killed session counts the messages that it shows.
#[test]
fn a_killed_session_counts_what_it_shows() {
    let (_root, place) = world(Backend::Sqlite);
    let mut child = busy(&place);
    until_draft(&place.database());
    child.kill().unwrap();
    child.wait().unwrap();
    let out = place.run(&["list", "--json"]).ok("list");
    let listed: Value = serde_json::from_str(&out).unwrap();
    let row = &listed["sessions"][0];
    let shown = place.show(row["id"].as_str().unwrap()).unwrap();
    let entries = shown["entries"].as_array().unwrap().iter();
    let messages = entries.filter(|entry| entry["type"] == "message").count();
    assert_eq!(messages, 4, "{shown}");
    assert_eq!(row["messages"], 4, "{row}");
    assert_eq!(shown["messages"], 4);
}

fn sessions_of(place: &Place) -> Sessions {
    let path = place.database();
    let store = Arc::new(SqliteStore::open(&path).unwrap());
    let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
    Sessions::new(store, clock, Redaction::Off)
}

fn message(content: String) -> Body {
    Body::Message(Message {
        speaker: Speaker::plain("you", SpeakerKind::Human),
        role: Role::User,
        content,
        reasoning: None,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        usage_id: None,
        requests: Vec::new(),
        model: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    })
}

fn make(sessions: &Sessions, project: Option<&str>, bodies: Vec<Body>) -> String {
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: project.map(str::to_owned),
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    tertulia_testkit::ask::now(sessions.create(&start, bodies)).unwrap();
    start.id.to_string()
}

/// With more than a thousand sessions the limiting setting is suggested, however few a list shows.
#[test]
fn past_a_thousand_sessions_a_limit_is_suggested() {
    let (_root, place) = world(Backend::Sqlite);
    place.turn(&["echo hello"]);
    let hint = |place: &Place| {
        let ran = place.run(&["list"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.err.contains("max_count")
    };
    let out = place.run(&["list", "--json"]).ok("list");
    let listed: Value = serde_json::from_str(&out).unwrap();
    let project = listed["sessions"][0]["project"].as_str().unwrap();
    let sessions = sessions_of(&place);
    for _ in 0..999 {
        make(&sessions, Some(project), vec![message("hello".to_owned())]);
    }
    assert!(!hint(&place));
    make(&sessions, Some(project), vec![message("hello".to_owned())]);
    assert!(hint(&place));
}

/// A long session is printed while it is read.
#[test]
fn a_long_session_is_shown_without_being_held() {
    let (_root, place) = world(Backend::Sqlite);
    place.turn(&["echo hello"]);
    let bodies: Vec<Body> = (0..60)
        .map(|n| message(format!("{n} {}", "word ".repeat(180_000))))
        .collect();
    let id = make(&sessions_of(&place), None, bodies);
    let mut child = place.command(&["show", &id, "--json"]).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut text = Vec::new();
    let mut peak = 0;
    let mut chunk = vec![0; 1 << 20];
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        match out.read(&mut chunk).unwrap() {
            0 => break,
            read => text.extend_from_slice(&chunk[..read]),
        }
    }
    assert!(child.wait().unwrap().success());
    let shown: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(shown["entries"].as_array().unwrap().len(), 61);
    assert_eq!(shown["messages"], 60);
    let size = text.len() as u64 / 1000;
    eprintln!("{peak} kB for {size} kB");
    assert!(peak < size * 5 / 2, "{peak} kB for {size} kB");
}

/// A session file that is a link stays a link, and its target is written.
#[test]
fn a_session_file_through_a_link_is_written_where_it_leads() {
    let (_root, place) = world(Backend::Sqlite);
    place.turn(&["echo first"]);
    let target = place.work.join("real.jsonl");
    let exported = [
        "export",
        "@",
        "--format",
        "jsonl",
        "-o",
        target.to_str().unwrap(),
    ];
    place.run(&exported).ok("export");
    let link = place.work.join("link.jsonl");
    symlink("real.jsonl", &link).unwrap();
    let args = [
        "--session-file",
        link.to_str().unwrap(),
        "-p",
        "echo second",
    ];
    place.run(&[&["chat"][..], &args].concat()).ok("a turn");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let content = fs::read_to_string(&target).unwrap();
    assert!(content.contains("second"), "{content}");
}

/// A store in memory cannot be resumed, and is not said to be on disk.
#[test]
fn what_is_not_kept_is_not_said_to_be() {
    let (_root, place) = world(Backend::Sqlite);
    for flags in [&["--store", "sqlite::memory:"][..], &["--ephemeral"]] {
        let ran = place.run(&[&["chat", "-p", "hello"][..], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains("on your disk"), "{ran:?}");
        assert!(!ran.err.contains("Resume:"), "{ran:?}");
    }
}

/// A team may have the name of the file that marks a store.
#[test]
fn a_team_may_have_the_name_of_the_marker() {
    let (_root, place) = world(Backend::Files);
    place.turn(&["echo first"]);
    place.run(&["team", "init", "-q"]).ok("team init");
    let example = place.work.join(".tertulia/teams/demo.json");
    let mut team: Value = serde_json::from_slice(&fs::read(example).unwrap()).unwrap();
    team["team"]["name"] = "tertulia-store.json".into();
    let file = place.work.join("team.json");
    fs::write(&file, team.to_string()).unwrap();
    let ran = place.run(&["team", file.to_str().unwrap(), "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.sessions().len(), 2);
}
