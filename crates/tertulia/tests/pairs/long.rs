//! Long pairs: the instructor's thread is summarised, and a resume reads the same at any
//! length.

use serde_json::{Value, json};
use tertulia_testkit::provider::Api;

use super::stage::{ENDLESS, home, home_with, pair, state, with_both, write_rounds};
use crate::agents::world::World;
use crate::home::{Backend, Home, files_below, messages};

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
    world.run(&args).code(1);
    let long = format!("[r+2] [[say:Tell worker: more]] {}", "harbour ".repeat(900));
    world
        .run(&["pair", "-c", &long])
        .code(1)
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

/// A resume reads the end of the log, and a little more of a longer one only to find it. How long it
/// takes, `./bench pair` measures.
#[test]
fn five_hundred_rounds_go_on_as_fast_as_fifty() {
    // The log of this store is read with system calls, which can be counted.
    let measured = |rounds: usize| {
        let home = home_with(Backend::Files, ENDLESS);
        write_rounds(&home, rounds);
        let now = state(&home);
        assert_eq!(
            (&now["round"], &now["remaining"]),
            (&json!(rounds), &json!(0))
        );
        let resume = home.prepare(&with_both(&["--resume", "@"]));
        let (output, read) = resume.counting_reads(".jsonl");
        output.code(1).notes("worker calls used up");
        let logs = files_below(&home.files_folder()).into_iter();
        let logs = logs.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let length: u64 = logs.map(|path| path.metadata().unwrap().len()).sum();
        (read, length)
    };
    let ((few, short), (many, long)) = (measured(50), measured(500));
    assert!(few > 0, "nothing was counted");
    assert!(
        many.saturating_sub(few) < (long - short) / 4,
        "{many} bytes of {long} for 500 rounds, {few} of {short} for 50"
    );
}
