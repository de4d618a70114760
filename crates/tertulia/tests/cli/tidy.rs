//! `rename`, `tag`, `rm`, `restore`, `undo`, `prune`: each is one entry and can be undone.

use serde_json::{Value, json};

use crate::home::{Home, both, short};
use crate::running::{Running, SLOW};

fn last_kind(home: &Home, id: &str) -> Value {
    let session = home.show(id);
    session["entries"].as_array().unwrap().last().unwrap()["type"].clone()
}

fn trashed(home: &Home) -> usize {
    let document = home
        .run(&["list", "--all", "--trash", "--json"])
        .ok()
        .json();
    document["sessions"].as_array().unwrap().len()
}

#[test]
fn rename_is_one_entry_and_is_taken_back() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rename", "@", "Two", "words"])
        .ok()
        .notes("Two words");
    assert_eq!(home.show(&id)["title"], "Two words");
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (4, json!("renamed"))
    );
    home.run(&["undo"]).ok().notes("hello");
    assert_eq!(home.show(&id)["title"], "hello");
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (5, json!("undone"))
    );
    for wrong in ["", "   ", &"x".repeat(201), "bell \u{7}"] {
        home.run(&["rename", &id, wrong]).code(2);
    }
    assert_eq!(home.entries(&id), 5);
    let session = home.run(&["rename", &id, "Json", "--json"]).ok().json();
    assert_eq!(
        (&session["id"], &session["title"]),
        (&json!(id), &json!("Json"))
    );
}

#[test]
fn tag_is_one_entry_and_is_taken_back() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["tag", &id, "+b", "+a", "+c"])
        .ok()
        .notes("#a #b #c");
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (4, json!("tagged"))
    );
    home.run(&["tag", &id, "-b", "+d"]).ok();
    assert_eq!(home.show(&id)["tags"], json!(["a", "c", "d"]));
    assert_eq!(home.entries(&id), 5);
    home.run(&["undo"]).ok();
    assert_eq!(home.show(&id)["tags"], json!(["a", "b", "c"]));
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (6, json!("undone"))
    );
    // A change without effect is not written.
    home.run(&["tag", &id, "+a", "-z"]).ok();
    assert_eq!(home.entries(&id), 6);
    for wrong in ["plain", "+", "-", "+two words", "+a,b"] {
        home.run(&["tag", &id, wrong]).code(2);
    }
    home.run(&["tag", &id]).code(2);
    assert_eq!(home.entries(&id), 6);
}

#[test]
fn tags_that_begin_like_a_flag_are_tags_and_flags_are_flags() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["tag", &id, "+v1", "+quick", "+json"]).ok();
    home.run(&["tag", &id, "-v1", "-quick"]).ok();
    assert_eq!(home.show(&id)["tags"], json!(["json"]));
    let session = home.run(&["tag", &id, "+x", "--json"]).ok().json();
    assert_eq!(session["tags"], json!(["json", "x"]));
}

#[test]
fn rm_is_one_entry_and_is_taken_back() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rm", "-y", &id]).ok().notes("undo");
    assert_eq!((home.all().len(), trashed(home)), (0, 1));
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (4, json!("trashed"))
    );
    home.run(&["undo"]).ok();
    assert_eq!((home.all().len(), trashed(home)), (1, 0));
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (5, json!("undone"))
    );
}

#[test]
fn restore_is_one_entry_and_is_taken_back() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rm", "-y", &id]).ok();
    home.run(&["restore", &short(&id)]).ok();
    assert_eq!((home.all().len(), trashed(home)), (1, 0));
    assert_eq!(
        (home.entries(&id), last_kind(home, &id)),
        (5, json!("restored"))
    );
    home.run(&["undo"]).ok();
    assert_eq!((home.all().len(), trashed(home)), (0, 1));
    home.run(&["restore", "@"]).ok();
    assert_eq!(trashed(home), 0);
    home.run(&["restore", &id])
        .ok()
        .notes("was not in the trash");
}

#[test]
fn undo_of_rm_of_two_brings_both_back() {
    let home = &Home::new();
    let (one, two) = (home.say("one"), home.say("two"));
    home.say("three");
    home.run(&["rm", "-y", &one, &two, &one])
        .ok()
        .notes("2 sessions");
    assert_eq!((home.all().len(), trashed(home)), (1, 2));
    let undone = home.run(&["undo", "--json"]).ok().json();
    assert_eq!(undone["undone"].as_array().unwrap().len(), 2);
    assert_eq!((home.all().len(), trashed(home)), (3, 0));
}

#[test]
fn undo_goes_further_back_each_time_and_ends() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rename", &id, "First"]).ok();
    home.run(&["tag", &id, "+x"]).ok();
    home.run(&["rename", &id, "Second"]).ok();
    home.run(&["undo"]).ok();
    assert_eq!(home.show(&id)["title"], "First");
    home.run(&["undo"]).ok();
    assert_eq!(home.show(&id)["tags"], json!([]));
    home.run(&["undo"]).ok();
    assert_eq!(home.show(&id)["title"], "hello");
    let entries = home.entries(&id);
    home.run(&["undo"]).code(3).notes("nothing to undo");
    assert_eq!(home.entries(&id), entries);
}

#[test]
fn rm_without_yes_off_a_terminal_changes_nothing() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rm", &id]).code(2).notes("-y");
    home.prepare(&["rm", &id]).stdin("y\n").run().code(2);
    assert_eq!((home.entries(&id), trashed(home)), (3, 0));
    home.run(&["rm"]).code(2);
}

#[test]
fn a_wrong_name_among_several_changes_nothing() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rm", "-y", &id, "nosuch"]).code(3);
    assert_eq!((home.entries(&id), trashed(home)), (3, 0));
}

#[test]
fn prune_shows_then_moves_and_can_be_taken_back() {
    let home = &Home::new();
    for n in 0..4 {
        home.say(&format!("talk {n}"));
    }
    let dry = ["prune", "--older-than", "0s", "--keep", "1", "--dry-run"];
    let output = home.run(&dry).ok();
    assert_eq!(output.stdout.lines().count(), 3);
    output.says("talk 0").says("talk 2").lacks("talk 3");
    assert_eq!((home.all().len(), trashed(home)), (4, 0));
    home.run(&["prune", "--keep", "1"]).code(2).notes("-y");
    assert_eq!(trashed(home), 0);
    let document = home
        .run(&["prune", "--keep", "1", "-y", "--json"])
        .ok()
        .json();
    assert_eq!(document["trashed"].as_array().unwrap().len(), 3);
    assert_eq!(document["dry_run"], false);
    assert_eq!((home.all().len(), trashed(home)), (1, 3));
    home.run(&["undo"]).ok();
    assert_eq!((home.all().len(), trashed(home)), (4, 0));
    home.run(&["prune", "--older-than", "1h", "-y"])
        .ok()
        .notes("Nothing to prune");
    assert_eq!(trashed(home), 0);
    for wrong in ["soon", "5", "-3d", ""] {
        home.run(&["prune", "--older-than", wrong, "-y"]).code(2);
    }
}

#[test]
fn prune_empties_the_trash_only_of_what_has_been_there_for_long() {
    let home = &Home::new();
    let id = home.say("echo tomato");
    home.say("stays");
    home.run(&["rm", "-y", &id]).ok();
    home.run(&["prune", "-y"]).ok();
    assert_eq!(trashed(home), 1);
    home.settings("[retention]\ntrash = \"0s\"\n");
    home.run(&["prune", "--dry-run"])
        .ok()
        .says("removed for good");
    assert_eq!(trashed(home), 1);
    home.run(&["prune", "-y"]).ok();
    assert_eq!((home.all().len(), trashed(home)), (1, 0));
    home.run(&["show", &id]).code(3);
    home.run(&["search", "tomato"]).ok().notes("Nothing found");
    home.run(&["doctor"]).ok();
}

#[test]
fn prune_never_touches_an_open_session() {
    both(|home| {
        home.script_agent("slow", SLOW);
        home.say("idle");
        let mut talk = Running::start(home, &["--agent", "slow", "-p", "busy"]);
        talk.until("text");
        let output = home.run(&["prune", "--older-than", "0s", "-y"]).ok();
        output.says("left alone").says("busy");
        let left = home.all();
        assert_eq!(left.len(), 1);
        assert_eq!(
            (&left[0]["title"], &left[0]["open"]),
            (&json!("busy"), &json!(true))
        );
        home.run(&["list"]).ok().says("(open)");
        talk.signal(rustix::process::Signal::INT);
        talk.end().code(130);
        assert_eq!(home.all()[0]["open"], false);
    });
}

#[test]
fn changes_are_in_the_log_of_all_that_happened() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rename", &id, "T"]).ok();
    home.run(&["undo"]).ok();
    let text = home.run(&["show", &id, "--entries"]).ok().stdout;
    assert!(
        text.contains("title: T") && text.contains("took entry 4 back"),
        "{text}"
    );
}
