//! Rounds, corrections, DONE, and the budget.

use serde_json::{Value, json};

use super::stage::{MARKING, home, marks, pair, planner, state, thread};
use crate::home::{Backend, Home, messages, short};

#[test]
fn on_a_bare_machine_the_demo_plays_both_parts() {
    let home = Home::new();
    let output = home.run(&["pair", "bake bread"]).ok();
    let output = output.says("Instructor:\n").says("Worker:\n").says("DONE");
    output.notes("round 3").notes("done after 2 worker calls");
    let pair = state(&home);
    assert_eq!(pair["round"], 3);
    assert_eq!(pair["worker_calls"], 2);
    assert_eq!(pair["remaining"], "unlimited");
    assert_eq!(pair["next"], "human");
    assert_eq!(pair["last_reply"]["should_continue"], false);
    let session = home.show("@");
    assert_eq!(
        (&session["kind"], &session["status"]),
        (&json!("pair"), &json!("paused"))
    );
    assert_eq!(session["agents"], json!(["demo"]));
    assert_eq!(session["title"], "bake bread");
}

#[test]
fn what_goes_to_whom_is_in_the_thread_of_whom() {
    let home = home(&planner(2), MARKING);
    pair(&home, &["build it", "-r", "5"]).ok();
    let said = |thread: Vec<(String, String, String)>| -> Vec<String> {
        let line = |(who, role, words): (String, String, String)| {
            format!("{who} {role}: {}", words.trim().replace('\n', "|"))
        };
        thread.into_iter().map(line).collect()
    };
    assert_eq!(
        said(thread(&home, "instructor")),
        [
            "human user: build it",
            "instructor assistant: so far 0||Tell worker: step-1",
            "worker user: Worker says: worked-1",
            "instructor assistant: so far 1||Tell worker: step-2",
            "worker user: Worker says: worked-2",
            "instructor assistant: all is well|DONE",
        ]
    );
    assert_eq!(
        said(thread(&home, "worker")),
        [
            "instructor user: step-1",
            "worker assistant: worked-1",
            "instructor user: step-2",
            "worker assistant: worked-2",
        ]
    );
    assert_eq!(
        marks(&home),
        ["begin step-1", "end step-1", "begin step-2", "end step-2"]
    );
    assert_eq!(state(&home)["remaining"], 3);
    let all = messages(&home.show("@"));
    assert!(all.iter().all(|message| !message["thread"].is_null()));
}

#[test]
fn an_instructor_is_asked_to_correct_itself_three_times() {
    let stubborn = home("cat > /dev/null; echo I ponder", MARKING);
    let output = pair(&stubborn, &["go", "--output-format", "json"]).code(1);
    let document = output.json();
    assert_eq!(
        (&document["status"], &document["waiting_for"]),
        (&json!("paused"), &json!("you"))
    );
    let said = thread(&stubborn, "instructor");
    let asked = |who: &str| said.iter().filter(|(by, ..)| by == who).count();
    assert_eq!(
        (asked("instructor"), asked("tertulia"), asked("human")),
        (4, 3, 1)
    );
    let now = state(&stubborn);
    assert_eq!(
        (&now["round"], &now["worker_calls"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(now["last_reply"]["needs_correction"], true);
    // It is the user's turn: nothing continues by itself.
    pair(&stubborn, &["-c"]).code(2).notes("your turn");

    let corrected = home("grep -q '1 of 3' && echo DONE || echo I ponder", MARKING);
    pair(&corrected, &["go"]).ok().notes("1 of 3").notes("done");
    assert_eq!(state(&corrected)["round"], 2);
}

#[test]
fn thinking_stands_apart_and_is_kept() {
    let script =
        "cat > /dev/null; printf '<thinking>first\\nDONE\\n</thinking>\\nfine\\n**DONE**.\\n'";
    let home = home(script, MARKING);
    pair(&home, &["go"]).ok();
    let reply = state(&home)["last_reply"].clone();
    assert_eq!(reply["thinking"], "first\nDONE");
    assert_eq!(reply["should_continue"], false);
    assert_eq!(reply["instruction"], "");
}

#[test]
fn no_calls_left_pauses_and_more_go_on() {
    let home = home(&planner(3), MARKING);
    let output = pair(&home, &["go", "-r", "0", "--output-format", "json"]).code(1);
    assert_eq!(output.json()["status"], "budget");
    assert_eq!(marks(&home).len(), 0);
    assert_eq!(state(&home)["next"], "handover");
    // Without a change it pauses again, without a new round.
    pair(&home, &["-c"]).code(1).notes("worker calls used up");
    assert_eq!(state(&home)["round"], 1);
    let output = pair(&home, &["-c", "[r+2]"]).code(1);
    output.notes("budget: 2 worker calls left").notes("paused");
    let now = state(&home);
    assert_eq!(
        (&now["round"], &now["remaining"], &now["worker_calls"]),
        (&json!(3), &json!(0), &json!(2))
    );
    assert_eq!(now["last_instruction"], "step-3");
    // The instructor is told with the prompt that its instruction was not passed on.
    pair(&home, &["-c", "[R=1][r+4] mind the step"])
        .ok()
        .notes("done");
    let told = thread(&home, "instructor");
    let at = told
        .iter()
        .position(|(_, _, words)| words == "mind the step")
        .unwrap();
    assert!(
        told[at - 1].2.contains("was not given to the worker"),
        "{told:#?}"
    );
    let now = state(&home);
    assert_eq!(
        (&now["remaining"], &now["worker_calls"]),
        (&json!(4), &json!(3))
    );
    assert_eq!(marks(&home).len(), 6);
}

#[test]
fn a_budget_alone_begins_nothing() {
    let home = home(&planner(1), MARKING);
    pair(&home, &["[r+5]"]).code(2).notes("no prompt given");
    assert!(home.all().is_empty());
    pair(&home, &["[r=1] go"]).ok();
    assert_eq!(state(&home)["remaining"], 0);
    assert_eq!(home.show("@")["title"], "go");
}

/// claude-master restored an unlimited budget as an empty one.
#[test]
fn unlimited_stays_unlimited() {
    let home = home(&planner(2), "cat > /dev/null; exit 3");
    pair(&home, &["go"]).code(6);
    assert_eq!(state(&home)["remaining"], "unlimited");
    home.script_agent("other", MARKING);
    let args = ["pair", "-c", "again", "--worker", "other"];
    home.run(&args).ok().notes("unlimited worker calls");
    let now = state(&home);
    assert_eq!(
        (&now["remaining"], &now["next"]),
        (&json!("unlimited"), &json!("human"))
    );
    home.run(&["pair", "-c", "[r+5] more"]).ok();
    assert_eq!(state(&home)["remaining"], "unlimited");
}

#[test]
fn a_worker_that_fails_is_the_instructors_to_deal_with() {
    let wise = "grep -q 'ERROR: .*worker-trouble' && echo DONE || echo 'Tell worker: try'";
    let home = home(
        wise,
        "cat > /dev/null; echo half; echo worker-trouble >&2; exit 3",
    );
    pair(&home, &["go", "--keep-going"])
        .ok()
        .notes("passing the error to the instructor");
    let told = thread(&home, "instructor");
    let report = &told[2].2;
    assert!(report.starts_with("Worker says: [ERROR: "), "{report}");
    assert!(
        report.contains("Before that it had said:\n\nhalf"),
        "{report}"
    );
    let session = home.show("@");
    let failed = |entry: &&Value| entry["type"] == "failed";
    assert_eq!(
        session["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(failed)
            .count(),
        1
    );
}

#[test]
fn a_worker_that_is_silent_for_too_long_is_told_of_too() {
    let home = home(
        "grep -q 'ERROR' && echo DONE || echo 'Tell worker: try'",
        "echo x",
    );
    let settings = home.path().join(".config/tertulia/config.toml");
    let old = std::fs::read_to_string(&settings).unwrap();
    let slow =
        "[agents.slow]\ncommand = \"sh\"\nargs = [\"-c\", \"sleep 60\"]\nidle_timeout = \"1s\"\n";
    std::fs::write(&settings, format!("{old}{slow}")).unwrap();
    home.run(&["pair", "go", "--instructor", "boss", "--worker", "slow"])
        .code(6);
    let report = thread(&home, "instructor")[2].2.clone();
    assert!(
        report.starts_with("Worker says: [ERROR: ") && report.contains("1 s"),
        "{report}"
    );
}

#[test]
fn an_instructor_that_fails_leaves_the_floor_to_the_person() {
    let home = home(
        "cat > /dev/null; test -e ../well && echo DONE || exit 4",
        MARKING,
    );
    let output = pair(&home, &["go", "--output-format", "json"]).code(6);
    assert_eq!(output.json()["status"], "failed");
    assert_eq!(home.show("@")["status"], "paused");
    std::fs::write(home.path().join("well"), "").unwrap();
    pair(&home, &["-c"]).ok();
    let said = thread(&home, "instructor");
    assert_eq!(said.len(), 2, "{said:#?}");
}

#[test]
fn the_work_folder_must_be_there() {
    let home = home(&planner(1), MARKING);
    pair(&home, &["go", "--work-dir", "nowhere"])
        .code(2)
        .notes("does not exist");
    std::fs::write(home.project().join("file"), "").unwrap();
    pair(&home, &["go", "-d", "file"])
        .code(2)
        .notes("no folder");
    assert!(home.all().is_empty());
    let elsewhere = home.folder("elsewhere");
    pair(&home, &["go", "-d", "../elsewhere"]).ok();
    assert!(elsewhere.join("marks").exists() && !home.project().join("marks").exists());
    assert_eq!(
        state(&home)["work_dir"],
        elsewhere.canonicalize().unwrap().to_str().unwrap()
    );
    // The folder is remembered, and its absence reported.
    pair(&home, &["-c", "more"]).ok();
    std::fs::remove_dir_all(&elsewhere).unwrap();
    pair(&home, &["-c", "more"]).code(2).notes("--work-dir");
    pair(&home, &["-c", "more", "-d", "."]).ok();
    assert_eq!(
        state(&home)["work_dir"],
        home.project().canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn the_instructor_chooses_a_model_for_one_instruction() {
    let script =
        "grep -q 'Worker says: .*used' && echo DONE || echo 'Tell worker (use big-one): go'";
    let home = home(script, "cat > /dev/null; echo used");
    pair(&home, &["go", "-w", "small"]).ok().notes("big-one");
    let models: Vec<Value> = messages(&home.show("@"))
        .iter()
        .filter(|message| message["thread"] == "worker" && message["role"] == "assistant")
        .map(|message| message["model"].clone())
        .collect();
    assert_eq!(models, [json!("big-one")]);
    let now = state(&home);
    assert_eq!(now["worker"], json!({ "agent": "hand", "model": "small" }));
    // A change of the model is reported.
    let args = ["pair", "-c", "more", "--worker-model", "other"];
    home.run(&args).ok().notes("small").notes("other");
    assert_eq!(state(&home)["worker"]["model"], "other");
}

#[test]
fn a_session_knows_its_pair_from_anywhere() {
    let home = home(&planner(1), MARKING);
    pair(&home, &["go", "--name", "First"]).ok();
    let id = home.show("First")["id"].as_str().unwrap().to_owned();
    let elsewhere = home.folder("elsewhere");
    let resume = ["--resume", &short(&id), "-p", "once more"];
    home.prepare(&resume)
        .folder(&elsewhere)
        .run()
        .ok()
        .says("DONE");
    assert_eq!(state_of(&home, &id)["round"], 3);
    home.run(&["--resume", &id, "-p", "x", "--agent", "demo"])
        .code(2);
    // A session of another kind is not accepted.
    let chat = home.say("hello");
    pair(&home, &["--resume", &chat, "go"])
        .code(2)
        .notes("is a chat");
    home.run(&["pair", "-r", "x", "go"]).code(2);
}

fn state_of(home: &Home, id: &str) -> Value {
    home.show(id)["pair"].clone()
}

#[test]
fn a_fork_begins_at_a_round() {
    let home = home(&planner(3), MARKING);
    pair(&home, &["go", "--name", "Whole"]).ok();
    home.run(&["fork", "Whole", "--at-round", "2", "--name", "Half"])
        .ok();
    let half = state_of(&home, "Half");
    assert_eq!(
        (&half["round"], &half["next"]),
        (&json!(2), &json!("handover"))
    );
    home.run(&["pair", "--resume", "Half"]).ok();
    assert_eq!(state_of(&home, "Half")["round"], 4);
    assert_eq!(state_of(&home, "Whole")["round"], 4);
    let steps = marks(&home);
    assert_eq!(
        steps.iter().filter(|mark| *mark == "begin step-2").count(),
        2
    );
    assert_eq!(
        steps.iter().filter(|mark| *mark == "begin step-1").count(),
        1
    );
    home.run(&["fork", "Whole", "--at-round", "9"])
        .code(3)
        .notes("1 to 4");
    home.run(&["fork", "Whole:3", "--at-round", "1"]).code(2);
    let chat = home.say("hello");
    home.run(&["fork", &chat, "--at-round", "1"]).code(2);
}

#[test]
fn events_tell_the_rounds_and_who_speaks() {
    let home = home(&planner(1), MARKING);
    let events = pair(&home, &["go", "--output-format", "stream-json"])
        .ok()
        .events();
    let of = |kind: &str| -> Vec<&Value> {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .collect()
    };
    assert_eq!(of("session.started").len(), 1);
    let rounds: Vec<&Value> = of("round").iter().map(|event| &event["round"]).collect();
    assert_eq!(rounds, [&json!(1), &json!(2)]);
    let threads: Vec<&Value> = of("message").iter().map(|event| &event["thread"]).collect();
    assert_eq!(
        threads,
        [
            "instructor",
            "instructor",
            "worker",
            "worker",
            "instructor",
            "instructor"
        ]
    );
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["status"]),
        (&json!("turn.completed"), &json!("completed"))
    );
    let document = pair(&home, &["-c", "more", "--output-format", "json"])
        .ok()
        .json();
    assert_eq!(document["messages"].as_array().unwrap().len(), 2);
    assert_eq!(document["messages"][0]["content"], "more");
}

#[test]
fn nothing_is_kept_of_an_ephemeral_pair() {
    let home = home(&planner(1), MARKING);
    pair(&home, &["go", "--ephemeral"]).ok().lacks("Resume:");
    assert!(home.all().is_empty());
}

/// Secrets reach the agents in this turn, but not the disk.
#[test]
fn secrets_are_handed_on_and_not_kept() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let boss =
        format!("grep -q 'Worker says: .*got it' && echo DONE || echo 'Tell worker: use {secret}'");
    let hand = format!("grep -q '{secret}' && echo got it || echo nothing");
    let home = home(&boss, &hand);
    pair(&home, &["go"]).ok().notes("redacted");
    let said = thread(&home, "worker");
    assert!(said[0].2.contains("[redacted:"), "{said:#?}");
    assert_eq!(said[1].2.trim(), "got it");
}

#[test]
fn each_store_keeps_all_of_it() {
    for backend in [Backend::Sqlite, Backend::Files] {
        let home = Home::with(backend);
        home.script_agent("boss", &planner(2));
        home.script_agent("hand", MARKING);
        pair(&home, &["go", "-r", "1"]).code(1);
        home.run(&["store", "rebuild"]).ok();
        let before = state(&home);
        assert_eq!(
            (&before["round"], &before["next"]),
            (&json!(2), &json!("handover"))
        );
        pair(&home, &["-c", "[r=9]"]).ok();
        let now = state(&home);
        assert_eq!((&now["round"], &now["remaining"]), (&json!(3), &json!(8)));
        home.run(&["doctor"]).ok();
    }
}

/// Another process has the session open: neither loses a message, and both keep their counts.
#[test]
fn a_session_that_is_open_elsewhere_goes_on_in_a_fork() {
    let home = home(
        "cat > /dev/null; echo 'Tell worker: wait'",
        crate::running::WAITING,
    );
    let args = super::stage::with_both(&["go", "-r", "1", "--output-format", "stream-json"]);
    let mut running = crate::running::Running::of(&home.prepare(&args));
    loop {
        if running.until("turn.started")["speaker"] == "worker" {
            break;
        }
    }
    home.script_agent("brief", "cat > /dev/null; echo DONE");
    let args = ["pair", "-c", "never mind", "--instructor", "brief"];
    home.run(&args).ok().notes("continuing in a fork");
    std::fs::write(home.path().join("go"), "").unwrap();
    running.end().code(1);
    let mut rounds: Vec<u64> = home
        .all()
        .iter()
        .map(|row| {
            state_of(&home, row["id"].as_str().unwrap())["round"]
                .as_u64()
                .unwrap()
        })
        .collect();
    rounds.sort_unstable();
    // The fork begins before the unfinished turn of the other process.
    assert_eq!(rounds, [1, 2]);
}
