//! What cannot be replayed is refused before anything is sent.

use std::fs;

use super::recorded;
use crate::home::Home;

#[test]
fn an_agent_or_a_model_is_needed() {
    let home = &Home::new();
    let id = recorded(home);
    home.run(&["replay", &id]).code(2).notes("--with-model");
    home.run(&["replay", "--with-agent", "demo"])
        .code(2)
        .notes("REF");
    home.run(&["replay", &id, "--with-agent", "nosuch"])
        .code(3)
        .notes("there is no agent 'nosuch'");
    home.run(&["replay", &id, "--with-agent", "demo", "--to", "0"])
        .code(2)
        .notes("--to");
    assert_eq!(home.all().len(), 1);
}

#[test]
fn the_agent_of_the_session_may_be_gone() {
    let home = &Home::new();
    home.script_agent("gone", "echo hi");
    home.run(&["chat", "--agent", "gone", "-p", "hi"]).ok();
    home.settings("");
    home.run(&["replay", "@", "--with-model", "m"])
        .code(3)
        .notes("there is no agent 'gone'")
        .notes("--with-agent NAME");
}

#[test]
fn a_session_that_is_not_there() {
    let home = &Home::new();
    recorded(home);
    home.run(&["replay", "nosuch", "--with-agent", "demo"])
        .code(3)
        .notes("there is no session 'nosuch'");
    home.run(&["replay", "no/such", "--with-agent", "demo"])
        .code(3)
        .notes("there is no file or folder 'no/such' either");
    home.run(&["replay", "@:3", "--with-agent", "demo"])
        .code(2)
        .notes("a whole session is needed here");
}

#[test]
fn files_that_are_no_sessions() {
    let home = &Home::new();
    let id = recorded(home);
    let folder = home.folder("project/suite");
    let replay = || home.run(&["replay", "suite/", "--with-agent", "demo"]);
    replay().code(3).notes("there is no .jsonl file in suite/");
    let file = folder.join("a.jsonl");
    let path = file.to_str().unwrap();
    let args = ["export", &id, "--format", "jsonl", "-o", path];
    home.run(&args).ok();
    let log = fs::read_to_string(&file).unwrap();
    let wrong = [
        ("{}\n".to_owned(), "line 1"),
        (log.replace("count to 5", "count to 9"), "altered"),
        (
            log.lines().skip(2).collect::<Vec<_>>().join("\n"),
            "not a whole log",
        ),
        (String::new(), "there is no entry in it"),
    ];
    for (content, why) in wrong {
        fs::write(&file, content).unwrap();
        replay().code(5).notes("a.jsonl").notes(why);
    }
    let first = log.lines().next().unwrap();
    fs::write(&file, first).unwrap();
    replay().code(2).notes("has no prompt to replay");
    assert_eq!(home.all().len(), 1);
}
