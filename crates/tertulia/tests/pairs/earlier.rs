//! Sessions of claude-master: imported without keys, and resumed at their round.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::stage::{MARKING, home, marks, planner, with_both};
use crate::home::{Home, files_below, short, until};
use crate::running::Running;

const KEY: &str = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ";

fn config(home: &Home) -> Value {
    json!({ "instructorModel": "claude-sonnet-4-5-20250929", "workerModel": "claude-sonnet-4-5-20250929",
        "maxRounds": null, "useThinking": true, "workDir": home.project(), "apiKey": KEY, "authToken": KEY })
}

/// Writes a state file whose next instruction has not reached the worker.
fn state_file(home: &Home, remaining: Value) -> PathBuf {
    let document = json!({
        "sessionId": "5c0ffee0-1111-4222-8333-444455556666",
        "createdAt": "2025-11-08T15:30:00.000Z", "lastUpdatedAt": "2025-11-08T15:40:00.000Z", "version": "1.0.0",
        "config": config(home), "currentRound": 12, "remainingRounds": remaining,
        "instructor": { "systemPrompt": "You lead the work.", "conversationHistory": [
            { "role": "user", "content": "build the thing" },
            { "role": "assistant", "content": "Tell worker: step-1" },
            { "role": "user", "content": "Worker says: worked-1" },
            { "role": "assistant", "content": "Tell worker: step-2" } ] },
        "worker": { "conversationHistory": [
            { "role": "user", "content": "step-1" }, { "role": "assistant", "content": "worked-1" } ] },
        "lastInstruction": "step-2",
        "lastInstructorResponse": { "thinking": "", "instruction": "step-2", "workerModel": "sonnet",
            "shouldContinue": true, "needsCorrection": false },
    });
    let file = home.folder("earlier").join("session-1.json");
    fs::write(&file, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    file
}

fn imported(home: &Home, file: &str) -> (String, Value) {
    let document = home.run(&["import", file, "--json"]).ok().json();
    let first = document["imported"][0].clone();
    (first["session"].as_str().unwrap().to_owned(), first)
}

fn no_key_anywhere(home: &Home) {
    let data = home.path().join(".local/share/tertulia");
    for file in files_below(&data) {
        let bytes = fs::read(&file).unwrap();
        let found = bytes
            .windows(20)
            .any(|window| window == &KEY.as_bytes()[..20]);
        assert!(!found, "{}", file.display());
    }
}

#[test]
fn a_state_is_gone_on_with_at_its_round() {
    let home = home(&planner(2), MARKING);
    let file = state_file(&home, json!(3));
    let (id, told) = imported(&home, file.to_str().unwrap());
    assert_eq!(
        (&told["result"], &told["kept"]["round"]),
        (&json!("created"), &json!(12))
    );
    let pair = home.show(&id)["pair"].clone();
    assert_eq!(
        (&pair["round"], &pair["remaining"], &pair["next"]),
        (&json!(12), &json!(3), &json!("handover"))
    );
    assert_eq!(pair["last_reply"]["instruction"], "step-2");
    no_key_anywhere(&home);
    // A second import adds nothing.
    assert_eq!(imported(&home, file.to_str().unwrap()).1["result"], "known");
    let args = [
        "pair",
        "--resume",
        &short(&id),
        "--instructor",
        "boss",
        "--worker",
        "hand",
    ];
    home.run(&args).ok().notes("round 13");
    let pair = home.show(&id)["pair"].clone();
    assert_eq!(
        (&pair["round"], &pair["remaining"], &pair["next"]),
        (&json!(13), &json!(2), &json!("human"))
    );
    assert_eq!(marks(&home), ["begin step-2", "end step-2"]);
    let entries = home.show(&id)["entries"].clone();
    let paired = entries
        .as_array()
        .unwrap()
        .iter()
        .rfind(|entry| entry["type"] == "paired");
    assert_eq!(paired.unwrap()["system"], "You lead the work.");
}

#[test]
fn a_copy_in_another_store_keeps_its_agents() {
    let worker = "k=$(grep -o 'step-[0-9]*' | tail -1); touch began; \
        until [ -e go ]; do sleep 0.02; done; echo \"worked-${k#step-}\"";
    let (one, other) = (home(&planner(2), worker), home(&planner(2), MARKING));
    for home in [&one, &other] {
        imported(home, state_file(home, json!(3)).to_str().unwrap());
    }
    let resumed = with_both(&["-c", "--output-format", "stream-json"]);
    let running = Running::of(&one.prepare(&resumed));
    until("the worker works", || {
        one.project().join("began").exists().then_some(())
    });
    other.run(&resumed).ok();
    fs::write(one.project().join("go"), "").unwrap();
    running.end().ok();
    let entries = one.show("@")["entries"].clone();
    let failed = entries.as_array().unwrap().iter();
    assert_eq!(failed.filter(|entry| entry["type"] == "failed").count(), 0);
}

#[test]
fn no_limit_is_no_limit() {
    let home = home(&planner(2), MARKING);
    let (id, _) = imported(&home, state_file(&home, Value::Null).to_str().unwrap());
    assert_eq!(home.show(&id)["pair"]["remaining"], "unlimited");
    let args = [
        "pair",
        "--resume",
        &id,
        "--instructor",
        "boss",
        "--worker",
        "hand",
    ];
    home.run(&args).ok().notes("unlimited worker calls");
}

fn log_lines(home: &Home) -> Vec<String> {
    let message = |role: &str, content: &str| {
        json!({ "type": "instructor-message", "timestamp": "2025-11-08T15:30:01.000Z",
            "message": { "role": role, "content": content } })
    };
    let metadata = |round: u32| {
        json!({ "type": "session-metadata", "timestamp": "2025-11-08T15:31:00.000Z", "sessionId": "logged",
            "createdAt": "2025-11-08T15:30:00.000Z", "lastUpdatedAt": "2025-11-08T15:31:00.000Z",
            "currentRound": round, "remainingRounds": null, "workDir": home.project(), "config": config(home) })
    };
    let lines = [
        message("user", "build the thing"),
        message("assistant", "Tell worker: step-1"),
        metadata(1),
        message("user", "Worker says: worked-1"),
        message("assistant", "Tell worker: step-2"),
        metadata(2),
        message("user", "Worker says: worked-2"),
        message("assistant", "all is well\nDONE"),
        metadata(3),
    ];
    lines.iter().map(Value::to_string).collect()
}

/// claude-master could not read its own log if the last line was torn.
#[test]
fn a_torn_log_is_taken_in_with_a_report() {
    let home = home(&planner(3), MARKING);
    let folder = home.folder("project/.claude-master/sessions");
    let whole = log_lines(&home).join("\n");
    fs::write(
        folder.join("session-logged.jsonl"),
        &whole[..whole.len() - 25],
    )
    .unwrap();
    fs::write(folder.join("current.json"), "{\"sessionId\":\"logged\"}").unwrap();
    let output = home.run(&["import", folder.to_str().unwrap()]).ok();
    output
        .says("round 2")
        .says("lost: 1 damaged line: 9")
        .says("the worker's history");
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    no_key_anywhere(&home);
    assert_eq!(home.show(&id)["pair"]["round"], 2);
    // The whole file adds only what is new.
    fs::write(folder.join("session-logged.jsonl"), &whole).unwrap();
    home.run(&["import", folder.to_str().unwrap()]).ok();
    assert_eq!(home.all().len(), 1);
    home.run(&[
        "import",
        "--dry-run",
        folder.join("session-logged.jsonl").to_str().unwrap(),
    ])
    .ok()
    .says("nothing new");
    let args = [
        "pair",
        "--resume",
        &id,
        "go on",
        "--instructor",
        "boss",
        "--worker",
        "hand",
    ];
    home.run(&args).ok();
    assert_eq!(marks(&home), ["begin step-3", "end step-3"]);
}

#[test]
fn what_is_damaged_is_named() {
    let home = Home::new();
    let file = home.path().join("broken.jsonl");
    fs::write(
        &file,
        "{\"type\":\"instructor-message\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n",
    )
    .unwrap();
    home.run(&["import", file.to_str().unwrap()])
        .code(5)
        .notes("session-metadata");
    fs::write(&file, "plain words").unwrap();
    let args = ["import", "--from", "claude-master", file.to_str().unwrap()];
    home.run(&args).code(5).notes("not JSON");
    assert!(home.all().is_empty());
}
