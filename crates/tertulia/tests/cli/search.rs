//! `search`.

use serde_json::Value;

use crate::home::{Home, keys, short};

fn hits(home: &Home, args: &[&str]) -> Vec<(String, u64)> {
    let args = [&["search", "--json"], args].concat();
    let document = home.run(&args).ok().json();
    let hits = document["hits"].as_array().unwrap().iter();
    let mut found: Vec<(String, u64)> = hits
        .map(|hit| {
            (
                hit["session"].as_str().unwrap().to_owned(),
                hit["seq"].as_u64().unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn the_json_shape_is_the_promised_one() {
    let home = &Home::new();
    let id = home.say("echo the durable log");
    let document = home.run(&["search", "--json", "durable"]).ok().json();
    for key in ["hits", "total"] {
        assert!(keys(&document).contains(&key.to_owned()), "{key}");
    }
    assert_eq!(document["total"], 2);
    for hit in document["hits"].as_array().unwrap() {
        let expected = [
            "at", "score", "seq", "session", "snippet", "speaker", "title",
        ];
        assert_eq!(keys(hit), expected);
        assert_eq!(hit["session"], id.as_str());
        assert!(hit["snippet"].as_str().unwrap().contains("durable log"));
        assert!(hit["score"].is_number());
    }
}

#[test]
fn words_phrases_exclusions_and_prefixes() {
    let home = &Home::new();
    let one = home.say("the parser has a bug off by one");
    let two = home.say("one parser by another, indexing drafts");
    let check = |query: &str, expected: &[&str]| {
        let mut found: Vec<String> = hits(home, &["--role", "user", query])
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        found.dedup();
        let mut expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        expected.sort();
        assert_eq!(found, expected, "{query}");
    };
    check("parser", &[&one, &two]);
    check("PARSER", &[&one, &two]);
    check("parser bug", &[&one]);
    check("bug drafts", &[]);
    check("\"off by one\"", &[&one]);
    check("\"by off one\"", &[]);
    check("parser -bug", &[&two]);
    check("parser -\"off by one\"", &[&two]);
    check("index*", &[&two]);
    check("index", &[]);
    check("pars", &[]);
}

#[test]
fn filters_stand_before_and_after_the_words() {
    let home = &Home::new();
    home.say("echo tomato");
    let check = |args: &[&str], expected: usize| {
        assert_eq!(hits(home, args).len(), expected, "{args:?}");
    };
    check(&["tomato"], 2);
    check(&["--role", "user", "tomato"], 1);
    check(&["tomato", "--role", "user"], 1);
    check(&["tomato", "--role", "assistant"], 1);
    check(&["tomato", "--role", "tool"], 0);
    check(&["tomato", "--speaker", "demo"], 1);
    check(&["tomato", "--speaker", "DEMO"], 1);
    check(&["tomato", "--speaker", "You"], 1);
    check(&["tomato", "--speaker", "nobody"], 0);
    check(&["tomato", "--since", "1h"], 2);
    check(&["tomato", "--until", "1h"], 0);
    check(&["tomato", "--kind", "team"], 0);
    check(&["tomato", "--tag", "x"], 0);
    check(&["tomato", "-n", "1"], 1);
    check(&["tomato", "--all"], 2);
    check(&["tomato", "--trash"], 0);
    check(&["tomato", "-potato"], 2);
    check(&["tomato", "-echo"], 1);
}

#[test]
fn the_example_of_the_help_works() {
    let home = Home::new();
    home.say("echo retry");
    let args = [
        "search",
        "retry",
        "--speaker",
        "demo",
        "--since",
        "last week",
        "--all",
    ];
    home.run(&args).ok().notes("1 hit in 1 session.");
}

#[test]
fn text_without_spaces_is_found_by_two_characters() {
    let home = &Home::new();
    let id = home.say("我们讨论会话的持久性");
    home.say("セッションを再開する");
    home.say("대화를 저장합니다");
    let found = hits(home, &["--role", "user", "会话"]);
    assert_eq!(found, [(id, 2)]);
    assert_eq!(hits(home, &["--role", "user", "持久性"]).len(), 1);
    assert_eq!(hits(home, &["--role", "user", "话会"]).len(), 0);
    assert_eq!(hits(home, &["--role", "user", "再開"]).len(), 1);
    assert_eq!(hits(home, &["--role", "user", "저장"]).len(), 1);
}

#[test]
fn accents_do_not_matter() {
    let home = &Home::new();
    home.say("un café à Málaga");
    for query in ["cafe", "café", "CAFÉ", "malaga", "cafe\u{301}"] {
        assert_eq!(hits(home, &["--role", "user", query]).len(), 1, "{query}");
    }
}

#[test]
fn titles_are_found() {
    let home = &Home::new();
    let id = home.say("hello");
    home.run(&["rename", &id, "Kilimanjaro plans"]).ok();
    assert_eq!(hits(home, &["kilimanjaro"]), [(id, 4)]);
}

#[test]
fn each_hit_says_how_to_go_on() {
    let home = &Home::new();
    let id = short(&home.say("echo tomato"));
    let output = home.run(&["search", "tomato"]).ok();
    output
        .says(&format!("{id}:2"))
        .says(&format!("--resume {id}"))
        .says(&format!("fork {id}:3"))
        .notes("2 hits");
}

#[test]
fn the_commands_of_a_hit_work_as_they_stand() {
    let home = &Home::new();
    home.say("echo tomato");
    let text = home.run(&["search", "tomato"]).ok().stdout;
    let command = text.lines().find(|line| line.contains("--resume")).unwrap();
    let fork = command.split("   or   ").nth(1).unwrap();
    let words: Vec<&str> = fork.split(' ').skip(1).collect();
    let plain = Home::new();
    let typed = plain.prepare(&words).env("HOME", home.path());
    typed.folder(home.folder("elsewhere")).run().ok();
    assert_eq!(home.all().len(), 2);
}

#[test]
fn what_lies_in_other_projects_is_mentioned() {
    let home = &Home::new();
    home.say("echo tomato");
    let other = home.folder("other");
    let run = |args: &[&str]| home.prepare(args).folder(&other).run().ok();
    run(&["search", "tomato"]).notes("2 in other projects (--all)");
    let found = run(&["search", "--all", "tomato"]);
    found.notes("2 hits").lacks("other projects");
    run(&["search", "nowhere"]).notes("Nothing found");
}

#[test]
fn what_was_said_is_found_at_once_and_what_is_trashed_is_not() {
    let home = &Home::new();
    let id = home.say("echo tomato");
    assert_eq!(hits(home, &["tomato"]).len(), 2);
    home.say_in(&id, "echo tomato again");
    assert_eq!(hits(home, &["tomato"]).len(), 4);
    home.run(&["rm", "-y", &id]).ok();
    assert_eq!(hits(home, &["tomato"]).len(), 0);
    assert_eq!(hits(home, &["--trash", "tomato"]).len(), 4);
    home.run(&["undo"]).ok();
    assert_eq!(hits(home, &["tomato"]).len(), 4);
}

#[test]
fn a_fork_does_not_repeat_the_hits_of_what_it_shares() {
    let home = &Home::new();
    let id = home.say("echo tomato");
    home.run(&["fork", &id]).ok();
    let document = home.run(&["search", "--json", "tomato"]).ok().json();
    assert_eq!(document["total"], 2);
}

#[test]
fn questions_that_ask_nothing_are_wrong_usage() {
    let home = &Home::new();
    home.say("hello");
    for query in ["", "  ", "!!!", "-only", "\"unclosed"] {
        home.run(&["search", query]).code(2);
    }
    home.run(&["search"]).code(2);
    let error = home
        .run(&["search", "--json", "\"unclosed"])
        .code(2)
        .error();
    assert_eq!(error["kind"], "usage");
    assert_ne!(error["hint"], Value::Null);
}

#[test]
fn special_characters_are_only_text() {
    let home = &Home::new();
    home.say("what about a OR b AND (c) NEAR x:y *?");
    for query in [
        "OR",
        "AND",
        "NEAR",
        "(c)",
        "x:y",
        "a OR b",
        "col:\"x\" y",
        "'; DROP TABLE entry; --",
    ] {
        home.run(&["search", query]).ok();
    }
    assert_eq!(hits(home, &["--role", "user", "OR"]).len(), 1);
}

/// A hit has a time of its own: the session may have gone on since.
#[test]
fn hits_are_found_by_their_own_time() {
    let home = Home::new();
    home.say("echo platypus");
    for (when, count) in [
        (&["--since", "yesterday"][..], 2),
        (&["--since", "3 days ago", "--until", "now"], 2),
        (&["--until", "yesterday"], 0),
        (&["--since", "last week", "--until", "2 days ago"], 0),
    ] {
        let args = [&["search", "platypus", "--json"], when].concat();
        let document = home.run(&args).ok().json();
        assert_eq!(document["total"], count, "{when:?}");
        assert_eq!(document["sessions"], u64::from(count > 0), "{when:?}");
    }
    home.run(&["search", "platypus", "--since", "someday"])
        .code(2)
        .notes("is not a date or time");
}
