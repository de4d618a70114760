//! `fork`.

use serde_json::json;

use crate::home::{Home, short};

#[test]
fn a_fork_shares_the_beginning() {
    let home = &Home::new();
    let id = home.say("echo one");
    home.say_in(&id, "echo two");
    let fork = home.run(&["fork", &format!("{id}:3")]).ok();
    let fork = fork.stdout.trim();
    assert_eq!(home.said(fork), ["echo one", "one"]);
    let session = home.show(fork);
    assert_eq!(
        session["parent"],
        json!({ "id": id, "seq": 3, "relation": "fork" })
    );
    home.say_in(fork, "echo other");
    assert_eq!(home.said(fork), ["echo one", "one", "echo other", "other"]);
    assert_eq!(home.said(&id), ["echo one", "one", "echo two", "two"]);
    let (ours, theirs) = (home.show(&id), home.show(fork));
    for shared in 0..3 {
        assert_eq!(ours["entries"][shared], theirs["entries"][shared]);
    }
}

#[test]
fn a_fork_without_a_place_has_everything() {
    let home = &Home::new();
    let id = home.say("echo one");
    let document = home
        .run(&["fork", "@", "--json", "--name", "Copy"])
        .ok()
        .json();
    assert_eq!(document["parent"]["id"], id.as_str());
    assert_eq!(document["title"], "Copy");
    assert_eq!(document["messages"], 2);
    assert_eq!(document["project"], home.show(&id)["project"]);
}

#[test]
fn the_note_says_how_to_resume_the_fork_as_it_stands() {
    let home = &Home::new();
    home.say("echo one");
    let output = home.run(&["fork", "@"]).ok();
    let fork = short(output.stdout.trim());
    let hint = output
        .stderr
        .split("Resume: tertulia ")
        .nth(1)
        .unwrap()
        .trim();
    assert!(hint.ends_with(&fork), "{hint}");
    let words: Vec<&str> = hint.split(' ').chain(["-p", "echo on"]).collect();
    let plain = Home::new();
    let typed = plain.prepare(&words).env("HOME", home.path());
    typed.folder(home.folder("elsewhere")).run().ok();
    assert_eq!(home.said(&fork).len(), 4);
}

#[test]
fn a_place_out_of_range_makes_nothing() {
    let home = &Home::new();
    let id = home.say("echo one");
    for beyond in ["0", "4", "99"] {
        let output = home.run(&["fork", &format!("{id}:{beyond}")]);
        // The same as for `show REF:99`: there is no such entry.
        output.code(3).notes("1 to 3");
    }
    home.run(&["fork", "nosuch"]).code(3);
    assert_eq!(home.all().len(), 1);
}

#[test]
fn an_example_of_the_help_works() {
    let home = Home::new();
    home.say("echo one");
    let output = home.run(&["fork", "@", "-q"]).ok();
    assert_eq!(output.stderr, "");
    assert_eq!(
        home.run(&["--resume", output.stdout.trim(), "-p", "echo on"])
            .ok()
            .stdout,
        "on\n"
    );
}

#[test]
fn a_fork_outlives_the_original() {
    let home = &Home::new();
    home.settings("[retention]\ntrash = \"0s\"\n");
    let id = home.say("echo one");
    home.run(&["fork", &id, "--name", "child"]).ok();
    home.run(&["rm", "-y", &id]).ok();
    home.run(&["prune", "-y"]).ok();
    home.run(&["show", &id]).code(3);
    assert_eq!(home.said("child"), ["echo one", "one"]);
    home.run(&["doctor"]).ok();
}
