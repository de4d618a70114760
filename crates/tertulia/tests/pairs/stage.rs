//! Test fixture: a home with a scripted instructor and worker, and access to their log.

use std::fs;

use serde_json::Value;

use crate::home::{Home, Output, messages};

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

/// Creates a home with these two scripts as `boss` and `hand`.
pub fn home(instructor: &str, worker: &str) -> Home {
    let home = Home::new();
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
