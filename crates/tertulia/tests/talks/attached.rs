//! Files that the user attaches to a prompt.

use std::fs;

use serde_json::Value;
use tertulia_testkit::provider::Api;

use crate::agents::world::World;
use crate::home::{Home, messages};

fn world() -> World {
    let world = World::new(Api::Anthropic);
    fs::write(world.home.project().join("notes.txt"), "walrus tusks\n").unwrap();
    fs::write(world.home.project().join("a b.md"), "# Ibex\n").unwrap();
    world
}

/// Returns the last request to the provider as text.
fn last_question(world: &World) -> String {
    world.questions().last().unwrap().body.to_string()
}

fn attached(message: &Value) -> Vec<(&str, &str)> {
    let files = message["attachments"].as_array().unwrap().iter();
    files
        .map(|file| {
            (
                file["path"].as_str().unwrap(),
                file["content"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_file_is_sent_recorded_found_and_sent_again() {
    let world = world();
    let words = "see @notes.txt, @\"a b.md\" and @nothing";
    let output = world.ask(words).ok();
    output
        .notes("attached notes.txt, 13 bytes")
        .notes("attached a b.md, 7 bytes");
    assert!(last_question(&world).contains("walrus tusks"));
    assert!(last_question(&world).contains("# Ibex"));
    let said = world.messages();
    assert_eq!(said[0]["content"], words);
    assert_eq!(
        attached(&said[0]),
        [("notes.txt", "walrus tusks\n"), ("a b.md", "# Ibex\n")]
    );
    // What was attached is in the log: later changes of the file do not matter.
    fs::remove_file(world.home.project().join("notes.txt")).unwrap();
    world.run(&["chat", "-c", "-p", "and now?"]).ok();
    assert!(last_question(&world).contains("walrus tusks"));
    let found = world.home.run(&["search", "walrus"]).ok();
    found.says(":2 · You");
    world.home.run(&["show"]).ok().says("attached notes.txt");
    for format in ["md", "html"] {
        let exported = world.home.run(&["export", "--format", format]).ok();
        exported.says("<summary>Attached notes.txt").says("walrus");
    }
    let replayed = ["replay", "@", "--with-agent", "a"];
    world.run(&replayed);
    assert!(last_question(&world).contains("walrus tusks"));
}

#[test]
fn a_snapshot_has_no_place_for_files_and_says_so() {
    let home = Home::new();
    fs::write(home.project().join("notes.txt"), "walrus tusks\n").unwrap();
    home.run(&["team", "init"]).ok();
    home.run(&["team", "demo", "read @notes.txt"]).ok();
    let exported = home.run(&["export", "--format", "snapshot"]).ok();
    let exported = exported.notes("left out: attached files (1)");
    assert!(!exported.stdout.contains("walrus"));
}

#[test]
fn secrets_in_a_file_are_not_written() {
    let world = world();
    let key = "sk-ant-api03-".to_owned() + &"a1B2".repeat(20);
    fs::write(world.home.project().join("env"), format!("KEY={key}\n")).unwrap();
    world.ask("look at @env").ok();
    // The agent of the running turn gets it as it is.
    assert!(last_question(&world).contains(&key));
    let said = world.messages();
    let (_, content) = attached(&said[0])[0];
    assert!(
        !content.contains(&key) && content.contains("[redacted:"),
        "{content}"
    );
}

#[test]
fn what_cannot_be_attached_is_not_sent() {
    let world = world();
    fs::write(world.home.project().join("image"), [0x89, 0x50, 0, 1]).unwrap();
    let output = world.ask("see @notes.txt and @image").code(2);
    output
        .notes("'image' is not a text file")
        .notes("backticks");
    world
        .home
        .run(&["chat", "--attach", "image", "-p", "x"])
        .code(2)
        .notes("hint: leave it out");
    world
        .ask("see @/etc/hostname")
        .code(2)
        .notes("outside the work folder");
    world.ask("see @../nothing and `@image`").ok();
    assert_eq!(world.questions().len(), 1);
    assert_eq!(world.home.all().len(), 1);
}

#[test]
fn what_comes_through_a_pipe_attaches_nothing() {
    let world = world();
    let prepared = world
        .home
        .prepare(&["chat", "--agent", "a", "-p", "review"]);
    let piped = prepared.env("TEST_KEY", crate::agents::world::KEY);
    piped.stdin("+ see @notes.txt\n").run().ok();
    assert!(!last_question(&world).contains("walrus"));
}

#[test]
fn a_flag_attaches_too() {
    let world = world();
    let flag = [
        "chat",
        "--agent",
        "a",
        "--attach",
        "a b.md",
        "-p",
        "sum it up",
    ];
    world.run(&flag).ok().notes("attached a b.md");
    assert!(last_question(&world).contains("# Ibex"));
    let wrong = ["chat", "--agent", "a", "--attach", "none", "-p", "x"];
    world.run(&wrong).code(2).notes("there is no file 'none'");
}

#[test]
fn a_program_is_told_the_path_alone() {
    let home = Home::new();
    fs::write(home.project().join("notes.txt"), "walrus tusks\n").unwrap();
    home.script_agent("copies", "cat");
    let told = home
        .run(&["chat", "--agent", "copies", "-p", "see @notes.txt"])
        .ok();
    told.says("[Attached, in the work folder: notes.txt]")
        .lacks("walrus");
    assert_eq!(attached(&messages(&home.show("@"))[0]).len(), 1);
}
