//! Details that are easy to get wrong: sizes, hints, and prompts after an interruption.

use super::stage::{home, pair, thread};

#[test]
fn what_is_missing_is_counted_once_and_whole() {
    let home = home(
        "if grep -q aaaaaaaa; then echo DONE; else echo 'Tell worker: count'; fi",
        "head -c 2000000 /dev/zero | tr '\\0' a; echo THEEND",
    );
    pair(&home, &["go"]).ok();
    let missing = |thread_name: &str, speaker: &str| {
        let said = thread(&home, thread_name);
        let (_, _, text) = said.iter().rfind(|(id, ..)| id == speaker).unwrap().clone();
        let (kept, count) = text.rsplit_once("[cut here: ").unwrap();
        let count: usize = count.split(' ').next().unwrap().parse().unwrap();
        (kept.matches('a').count(), count)
    };
    let (kept, count) = missing("worker", "worker");
    assert!(
        (2_000_000..2_000_200).contains(&(kept + count)),
        "{kept} {count}"
    );
    let (kept, count) = missing("instructor", "worker");
    assert!(
        (2_000_000..2_000_200).contains(&(kept + count)),
        "{kept} {count}"
    );
}

#[test]
fn hints_name_the_flags_that_there_are() {
    let home = home("echo 'Tell worker: x'", "exit 3");
    let output = pair(&home, &["go"]).code(6);
    output
        .notes("choose with --instructor and --worker")
        .lacks("or --agent");
}

#[test]
fn a_budget_alone_needs_a_session() {
    let home = home("echo DONE", "echo x");
    pair(&home, &["-p", "[r=3]"])
        .code(2)
        .notes("no prompt given");
    assert!(home.all().is_empty());
}
