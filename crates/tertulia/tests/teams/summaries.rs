//! Long team sessions: what the members' prompts leave out is summarised as an entry of the log.

use serde_json::{Value, json};

use super::cast::Cast;
use crate::home::Home;
use crate::pty::CTRL_D;

/// Heading of the summary in a prompt.
const HEAD: &str = "Summary of earlier messages:\n";
/// A script that answers a request for a summary with its number, and everything else as set.
const SUMS_UP: &str = "if grep -q 'Summarise our conversation' prompt.$n; then echo \"SUMMARY $n\"; else cat answer; fi";
/// The same, but summaries fail.
const CANNOT_SUM_UP: &str = "if grep -q 'Summarise our conversation' prompt.$n; then echo 'no memory' >&2; exit 3; else cat answer; fi";

/// A team whose prompts have four earlier messages.
fn cast(script: &str) -> Cast {
    let mut cast = Cast::of(&["ada", "bob"], &["ann"]);
    cast.change(|team| team["conversation"] = json!({"contextWindowSize": 4}));
    for name in ["ada", "bob"] {
        cast.does(name, script);
    }
    cast
}

/// Runs turns with these numbers, each in a process of its own. Returns everything that they said on
/// standard error.
fn turns(cast: &Cast, numbers: std::ops::RangeInclusive<usize>) -> String {
    let mut notes = String::new();
    for number in numbers {
        let words = format!("[NEXT: ada] word{number} of the day");
        let args: &[&str] = match number {
            1 => &[&words],
            _ => &["-c", &words],
        };
        notes.push_str(&cast.run(args).ok().stderr);
    }
    notes
}

/// Returns the summaries in the log of the newest session.
fn summaries(home: &Home) -> Vec<Value> {
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap().iter();
    let of_kind = entries.filter(|entry| entry["type"] == "compacted");
    of_kind.cloned().collect()
}

#[test]
fn what_falls_out_of_the_context_is_summarised_and_a_resume_uses_it() {
    let cast = cast(SUMS_UP);
    let notes = turns(&cast, 1..=4);
    assert!(!notes.contains("summar"), "{notes}");
    assert_eq!(cast.asked("ada"), 4);
    // In the fifth turn four messages are outside the window.
    let notes = turns(&cast, 5..=5);
    assert_eq!(notes.matches("context summarised").count(), 1, "{notes}");
    let found = summaries(&cast.home);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0]["summary"], "SUMMARY 5");
    assert_eq!(found[0]["agent"], "ada");
    assert_eq!(found[0]["thread"], Value::Null);
    let said = cast.messages("@");
    assert_eq!(found[0]["upto"], said[3]["seq"]);
    assert_eq!(said.len(), 10);
    let prompts = cast.prompts("ada");
    let [request, prompt] = &prompts[4..] else {
        panic!("{prompts:#?}")
    };
    for (number, is_covered) in [(1, true), (2, true), (3, false), (5, false)] {
        let words = format!("word{number} of the day");
        assert_eq!(request.contains(&words), is_covered, "{request}");
        assert_eq!(prompt.contains(&words), !is_covered, "{prompt}");
    }
    assert!(
        prompt.contains(&format!("{HEAD}SUMMARY 5\n\nAnn: ")),
        "{prompt}"
    );
    // Another member reads it in another process, and the next summary is not due yet.
    cast.run(&["-c", "[NEXT: bob] and you?"]).ok();
    assert!(cast.prompt("bob").contains(&format!("{HEAD}SUMMARY 5")));
    assert_eq!((cast.asked("ada"), cast.asked("bob")), (6, 1));
    turns(&cast, 7..=7);
    let found = summaries(&cast.home);
    assert_eq!(found.len(), 2, "{found:#?}");
    // It is a summary of the summary and of the messages since.
    let request = &cast.prompts("ada")[6];
    let before = "# Summary of what was before\n\nSUMMARY 5\n\n# Messages\n\n";
    assert!(request.contains(before), "{request}");
    assert!(!request.contains("word2 of") && request.contains("word3 of"));
    assert!(!cast.prompt("ada").contains("SUMMARY 5"));
    cast.home.run(&["doctor"]).ok();
}

#[test]
fn the_settings_turn_it_off() {
    let cast = cast(SUMS_UP);
    turns(&cast, 1..=5);
    cast.makes_no_summaries();
    let notes = turns(&cast, 6..=9);
    assert!(!notes.contains("summar"), "{notes}");
    assert_eq!(summaries(&cast.home).len(), 1);
    assert!(!cast.prompt("ada").contains("SUMMARY"));
}

#[test]
fn a_summary_that_fails_does_not_stop_the_team() {
    let cast = cast(CANNOT_SUM_UP);
    turns(&cast, 1..=4);
    let words = "[NEXT: ada, bob] word5 of the day";
    let ran = cast.run(&["-c", words]).ok().says("Ada speaks.");
    let ran = ran.says("Bob speaks.");
    // The second member does not try it again at once.
    let failed = "older messages could not be summarised: ";
    assert_eq!(ran.stderr.matches(failed).count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("no memory"), "{}", ran.stderr);
    assert!(summaries(&cast.home).is_empty());
    assert_eq!(cast.messages("@").len(), 11);
    // Later it succeeds, with everything that is missing.
    cast.does("ada", SUMS_UP);
    turns(&cast, 6..=6);
    assert_eq!(summaries(&cast.home).len(), 1);
    let prompts = cast.prompts("ada");
    assert!(prompts[prompts.len() - 2].contains("word1 of the day"));
}

#[test]
fn text_that_falls_out_by_its_size_is_summarised_too() {
    let mut cast = cast(SUMS_UP);
    cast.change(|team| {
        team["conversation"] = json!({"contextWindowSize": 50, "maxBytes": 65536});
    });
    let filler = "lantern ".repeat(4000);
    for number in 1..=3 {
        let words = format!("[NEXT: ada] word{number} {filler}");
        let args: &[&str] = if number == 1 {
            &[&words]
        } else {
            &["-c", &words]
        };
        cast.run(args).ok();
    }
    assert_eq!(summaries(&cast.home).len(), 1);
    let prompt = cast.prompt("ada");
    assert!(prompt.len() <= 65536 && prompt.contains("SUMMARY"));
    assert!(!prompt.contains("word1") && prompt.contains("word3"));
}

#[test]
fn by_hand_it_is_made_at_once() {
    let cast = cast(SUMS_UP);
    turns(&cast, 1..=2);
    let mut terminal = cast.open(&["-c", "--plain"]);
    terminal.sees("Ann> ", 1);
    terminal.types("/compact\n");
    terminal.sees("nothing to compact: there is no older part", 1);
    terminal.sees("Ann> ", 2);
    terminal.types("[NEXT: ada] word3 of the day\n");
    terminal.sees("Ada speaks.", 1);
    terminal.sees("Ann> ", 3);
    terminal.types("/compact\n");
    terminal.sees("context summarised; the log keeps every message", 1);
    terminal.sees("Ann> ", 4);
    terminal.types("[NEXT: bob] word4 of the day\n");
    terminal.sees("Bob speaks.", 1);
    terminal.sees("Ann> ", 5);
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(summaries(&cast.home).len(), 1);
    assert!(cast.prompt("bob").contains(&format!("{HEAD}SUMMARY ")));
}

#[test]
fn the_demo_sums_up_too() {
    let home = Home::new();
    home.run(&["team", "init"]).ok();
    let file = home.project().join(".tertulia/teams/demo.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut team: Value = serde_json::from_str(&text).unwrap();
    team["conversation"] = json!({"contextWindowSize": 4});
    std::fs::write(&file, team.to_string()).unwrap();
    home.run(&["team", "demo", "the milk is sour"]).ok();
    home.run(&["team", "demo", "-c", "plan a bird table"]).ok();
    home.run(&["team", "demo", "-c", "and a bird bath"]).ok();
    let found = summaries(&home);
    let summary = found[0]["summary"].as_str().unwrap();
    assert!(summary.contains("the milk is sour"), "{summary}");
}
