//! Test fixture: a home with a scripted instructor and worker, and access to their log.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Backend, Home, Output, messages};

/// An instructor that gives the worker one step after the other, and is done after `steps`.
pub fn planner(steps: u32) -> String {
    format!(
        "n=$(grep -c 'worked-[0-9]'); if [ $n -ge {steps} ]; then echo 'all is well'; echo DONE; \
         else echo \"so far $n\"; echo; echo \"Tell worker: step-$((n+1))\"; fi"
    )
}

/// A worker that records when it begins and ends.
pub const MARKING: &str = "k=$(grep -o 'step-[0-9]*' | tail -1); echo \"begin $k\" >> marks; \
    sleep 0.02; echo \"end $k\" >> marks; echo \"worked-${k#step-}\"";

/// An instructor and a worker that go on until their budget is used up.
pub const ENDLESS: [&str; 2] = [
    "cat > /dev/null; echo 'Tell worker: one more'",
    "cat > /dev/null; echo 'did it'",
];

/// Creates a home with these two scripts as `boss` and `hand`.
pub fn home(instructor: &str, worker: &str) -> Home {
    home_with(Backend::Sqlite, [instructor, worker])
}

/// Creates a home with a store of this kind, and these two scripts.
pub fn home_with(backend: Backend, [instructor, worker]: [&str; 2]) -> Home {
    let home = Home::with(backend);
    home.script_agent("boss", instructor);
    home.script_agent("hand", worker);
    home
}

/// Runs `pair` with both.
pub fn pair(home: &Home, more: &[&str]) -> Output {
    home.run(&with_both(more))
}

/// Returns the command line with both.
pub fn with_both<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["pair", "--instructor", "boss", "--worker", "hand"];
    args.extend(more);
    args
}

/// Returns the pair state of the newest session.
pub fn state(home: &Home) -> Value {
    home.show("@")["pair"].clone()
}

/// Returns the messages of a thread: speaker, role and text.
pub fn thread(home: &Home, name: &str) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    messages(&home.show("@"))
        .iter()
        .filter(|message| message["thread"] == name)
        .map(|message| {
            (
                text(&message["speaker"]["id"]),
                text(&message["role"]),
                text(&message["content"]),
            )
        })
        .collect()
}

/// Returns the lines that the worker recorded.
pub fn marks(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.project().join("marks")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Imports a session with so many rounds.
pub fn write_rounds(home: &Home, rounds: usize) {
    let mut instructor = vec![json!({ "role": "user", "content": "go" })];
    let mut worker = Vec::new();
    for round in 0..rounds {
        instructor.push(json!({ "role": "assistant", "content": "Tell worker: one more" }));
        if round + 1 < rounds {
            instructor.push(json!({ "role": "user", "content": "Worker says: did it" }));
            worker.push(json!({ "role": "user", "content": "one more" }));
            worker.push(json!({ "role": "assistant", "content": "did it" }));
        }
    }
    let file = home.path().join("state.json");
    let document = json!({
        "sessionId": "long", "createdAt": "2025-11-08T15:30:00.000Z",
        "config": { "workDir": home.project(), "maxRounds": rounds }, "currentRound": rounds, "remainingRounds": 0,
        "instructor": { "systemPrompt": "lead", "conversationHistory": instructor },
        "worker": { "conversationHistory": worker },
    });
    fs::write(&file, document.to_string()).unwrap();
    home.run(&["import", file.to_str().unwrap()]).ok();
}
