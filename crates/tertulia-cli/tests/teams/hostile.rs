//! A team file that came with somebody's project: what it wants to run is said in full, and it gets at
//! nothing that is the person's own.

use serde_json::json;

use crate::cast::Cast;

/// A cast whose first agent is a program of the team file: this script.
fn runs(script: &str) -> Cast {
    let mut cast = Cast::of(&["ada", "ben"], &["ann"]);
    cast.change(|document| {
        document["agents"] = json!([{"name": "theirs", "command": "sh", "args": ["-c", script]}]);
    });
    cast.change_member("ada", |ada| ada["agentType"] = json!("theirs"));
    cast
}

#[test]
fn all_of_what_it_runs_is_shown() {
    let end = "; id > /tmp/never \u{1b}[2K\r";
    let cast = runs(&format!("true ; : {}{end}", "x".repeat(3000)));
    let check = ["team", "check", crate::cast::FILE];
    for output in [cast.home.run(&check), cast.run(&["[NEXT: ben] hello"])] {
        output
            .ok()
            .notes("; id > /tmp/never \\u{1b}[2K\\r\", as the team file says")
            .lacks("\u{1b}");
    }
}
