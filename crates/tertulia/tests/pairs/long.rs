//! Long pairs: the instructor's thread is summarised, and resuming takes the same time at any
//! length.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tertulia_testkit::provider::Api;

use super::stage::{home, pair, state};
use crate::agents::world::World;
use crate::home::{Backend, Home, messages};

/// A pair that continues until its budget is used up.
fn endless() -> Home {
    home(
        "cat > /dev/null; echo 'Tell worker: one more'",
        "cat > /dev/null; echo 'did it'",
    )
}

fn metas(home: &Home) -> Vec<Value> {
    let session = home.show("@");
    let entries = session["entries"].as_array().unwrap().iter();
    let of_kind = entries.filter(|entry| entry["type"] == "compacted");
    of_kind.cloned().collect()
}

/// claude-master lost its summaries when it resumed.
#[test]
fn a_summary_is_an_entry_and_a_resume_uses_it() {
    let world = World::with(Api::OpenAi, Backend::Sqlite, "compact_at = 1200\n");
    let hand = "cat > /dev/null; echo \"[[say:Tell worker: more]]\"";
    world.home.script_agent("hand", hand);
    let filler = "lantern ".repeat(300);
    let words = format!("[[say:Tell worker: go]] {filler}");
    let args = [
        "pair",
        &words,
        "--instructor",
        "a",
        "--worker",
        "hand",
        "-r",
        "2",
    ];
    world.run(&args).ok();
    let long = format!("[r+2] [[say:Tell worker: more]] {}", "harbour ".repeat(900));
    world
        .run(&["pair", "-c", &long])
        .ok()
        .notes("context summarised");
    let found = metas(&world.home);
    assert!(!found.is_empty());
    assert!(
        found.iter().all(|entry| entry["thread"] == "instructor"),
        "{found:#?}"
    );
    // The log keeps everything.
    let said = messages(&world.home.show("@"));
    assert!(said[0]["content"].as_str().unwrap().contains("lantern"));
    // A resume sends the summary instead of the messages that it replaces.
    let before = world.questions().len();
    world
        .run(&["pair", "-c", "[[say:fine\nDONE]] and now"])
        .ok();
    let asked = world.questions()[before..].to_vec();
    let given = asked.last().unwrap().body.to_string();
    assert!(given.contains("SUMMARY of"), "{given}");
    assert!(!given.contains("lantern lantern"), "{given}");
    assert_eq!(state(&world.home)["next"], "human");
}

#[test]
fn what_a_provider_cannot_read_is_summed_up_and_asked_again() {
    let world = World::new(Api::Anthropic);
    let args = ["pair", "--instructor", "a", "--worker", "demo"];
    let first = format!("[[say:fine\nDONE]] {}", "lantern ".repeat(50));
    world.run(&[&args[..], &[&first]].concat()).ok();
    let words = "[[fail:overflow:times=1]][[say:still fine\nDONE]]";
    world.run(&["pair", "-c", words]).ok().says("still fine");
    assert_eq!(metas(&world.home).len(), 1);
    let now = state(&world.home);
    assert_eq!((&now["round"], &now["next"]), (&json!(2), &json!("human")));
}

#[test]
fn the_worker_may_say_more_than_fits_into_a_message() {
    let home = home(
        "grep -q 'cut here' && echo DONE || echo 'Tell worker: talk'",
        "cat > /dev/null; yes 'a word and another' | head -c 1500000",
    );
    pair(&home, &["go"]).ok();
    assert_eq!(state(&home)["next"], "human");
}

#[test]
fn five_hundred_rounds_go_on_as_fast_as_five() {
    let (short, long) = (endless(), endless());
    pair(&short, &["go", "-r", "5"]).ok();
    write_rounds(&long, 500);
    let now = state(&long);
    assert_eq!((&now["round"], &now["remaining"]), (&json!(500), &json!(0)));
    let quickest = |home: &Home| {
        let once = |_| {
            let begun = Instant::now();
            let output = pair(home, &["--resume", "@"]).ok();
            output.notes("no worker calls left");
            begun.elapsed()
        };
        (0..5).map(once).min().unwrap()
    };
    let (few, many) = (quickest(&short), quickest(&long));
    let limit = few * 2 + Duration::from_millis(50);
    assert!(many < limit, "{many:?} for 500 rounds, {few:?} for 5");
}

/// Imports a session with so many rounds.
fn write_rounds(home: &Home, rounds: usize) {
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
    std::fs::write(&file, document.to_string()).unwrap();
    home.run(&["import", file.to_str().unwrap()]).ok();
}
