//! `show`.

use serde_json::{Value, json};

use crate::home::{Home, keys, messages, short};

#[test]
fn the_transcript_has_every_word() {
    let home = &Home::new();
    let id = home.say("count to 3");
    home.say_in(&id, "echo second");
    let text = home.run(&["show", &id]).ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "count to 3");
    assert!(lines[1].starts_with(&format!("{} · chat · 4 messages", short(&id))));
    for words in [
        "You  2",
        "count to 3",
        "demo  3",
        "1 2 3",
        "You  4",
        "echo second",
        "second",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert_eq!(home.run(&["show"]).ok().stdout, text);
}

#[test]
fn the_json_shape_is_the_promised_one() {
    let home = &Home::new();
    let id = home.say("count to 3");
    home.run(&["rename", &id, "Numbers"]).ok();
    let session = home.show(&id);
    let listed = home.all()[0].clone();
    for (key, value) in listed.as_object().unwrap() {
        assert_eq!(&session[key], value, "{key}");
    }
    let entries = session["entries"].as_array().unwrap();
    let kinds: Vec<&Value> = entries.iter().map(|entry| &entry["type"]).collect();
    assert_eq!(kinds, ["created", "message", "message", "renamed"]);
    for (at, entry) in entries.iter().enumerate() {
        assert_eq!(entry["seq"], at + 1);
        for key in ["id", "at", "hash"] {
            assert!(entry[key].is_string(), "{key} in {entry}");
        }
    }
    let said = messages(&session);
    for key in [
        "speaker",
        "role",
        "content",
        "thread",
        "tool_calls",
        "usage",
        "model",
        "interrupted",
    ] {
        assert!(keys(&said[0]).contains(&key.to_owned()), "{key}");
    }
    assert_eq!(said[0]["speaker"]["type"], "human");
    assert_eq!(said[1]["tool_calls"], json!([]));
}

#[test]
fn last_shows_only_the_end() {
    let home = &Home::new();
    let id = home.say("echo one");
    home.say_in(&id, "echo two");
    let text = home.run(&["show", &id, "--last", "1"]).ok().stdout;
    assert!(
        text.ends_with("two\n") && !text.contains("echo two"),
        "{text}"
    );
    let session = home.run(&["show", &id, "-n", "3", "--json"]).ok().json();
    let said: Vec<Value> = messages(&session)
        .iter()
        .map(|m| m["content"].clone())
        .collect();
    assert_eq!(said, ["one", "echo two", "two"]);
    let session = home.run(&["show", &id, "-n", "99", "--json"]).ok().json();
    assert_eq!(messages(&session).len(), 4);
}

#[test]
fn the_last_none_are_none() {
    let home = &Home::new();
    let id = home.say("echo one");
    let args = ["show", &id, "--last", "0", "--json"];
    let session = home.run(&args).ok().json();
    assert_eq!(messages(&session).len(), 0);
}

#[test]
fn entries_shows_everything_that_happened() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rename", &id, "Greeting"]).ok();
    home.run(&["tag", &id, "+x", "+y"]).ok();
    home.run(&["chat", "-r", &id, "-p", "fail"]).code(6);
    let text = home.run(&["show", &id, "--entries"]).ok().stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("SEQ"));
    assert_eq!(lines.len(), 8);
    assert!(lines[1].contains("created"));
    assert!(lines[4].contains("title: Greeting"));
    assert!(lines[5].contains("+x +y"));
    assert!(lines[7].contains("failed") && lines[7].contains("as it was asked to"));
    home.run(&["show", &id]).ok().says("as it was asked to");
}

#[test]
fn raw_shows_the_log_as_it_is() {
    let home = &Home::new();
    let id = home.say("hello");
    let raw = home.run(&["show", &id, "--raw"]).ok();
    let lines = raw.events();
    assert_eq!(lines.len(), 3);
    assert!(
        raw.stdout
            .lines()
            .all(|line| line.starts_with("{\"v\":1,\"seq\":"))
    );
    let exported = home.run(&["export", &id, "--format", "jsonl"]).ok();
    assert_eq!(raw.stdout, exported.stdout);
    home.run(&["show", &id, "--raw", "--entries"]).code(2);
}

#[test]
fn one_entry_is_named_by_its_number() {
    let home = &Home::new();
    let id = home.say("echo one");
    home.say_in(&id, "echo two");
    let reference = format!("{}:3", short(&id));
    let session = home.show(&reference);
    let entries = session["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (&entries[0]["seq"], &entries[0]["content"]),
        (&json!(3), &json!("one"))
    );
    let content = |args: &[&str]| {
        let args = [&["show", "--json"], args].concat();
        home.run(&args).ok().json()["entries"][0]["content"].clone()
    };
    assert_eq!(content(&["@:5"]), "two");
    assert_eq!(content(&["@:5", "--last", "1"]), "two");
    assert_eq!(content(&["@:2", "--last", "1"]), "echo one");
    for beyond in ["@:99", "@:0", "@:6"] {
        home.run(&["show", beyond]).code(3).notes("1 to 5");
    }
    home.run(&["show", "@:99999999999999999999999"]).code(2);
}

#[test]
fn a_title_may_end_like_a_place() {
    let home = &Home::new();
    let id = home.say("echo one");
    home.run(&["rename", &id, "Chapter:3"]).ok();
    assert_eq!(
        home.show("Chapter:3")["entries"].as_array().unwrap().len(),
        4
    );
    let one = home.show("Chapter:3:2");
    assert_eq!(one["entries"][0]["content"], "echo one");
}

#[test]
fn reading_needs_nothing_but_the_store() {
    let home = &Home::new();
    let id = home.say("hello");
    home.settings("agent = \"nobody\"\n");
    home.run(&["show", &id]).ok().says("demo agent");
    home.run(&["search", "demo"]).ok().says(&short(&id));
    home.run(&["list"]).ok().says("hello");
}
