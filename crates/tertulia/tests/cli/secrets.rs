//! Keys are nowhere on disk.

use std::fs;

use crate::home::{Home, both, files_below};
use crate::running::{Running, sweep};

/// Returns fake keys, assembled here so that no scanner finds them in this file.
fn keys() -> Vec<(String, &'static str)> {
    let body = "Ab3dE6gH9jK2mN5pQ8sT1vW4";
    vec![
        (format!("sk-ant-api03-{body}{body}"), "anthropic-key"),
        (
            format!("ghp_{}", &format!("{body}{body}")[..36]),
            "github-token",
        ),
        (format!("AKIA{}", "ABCD2345EFGH6789"), "aws-key"),
    ]
}

/// Returns the files that contain a text.
fn holders(home: &Home, words: &str) -> Vec<String> {
    let needle = words.as_bytes();
    let holds = |bytes: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    files_below(home.path())
        .into_iter()
        .filter(|path| !path.ends_with("config.toml") && !path.ends_with("answer.txt"))
        .filter(|path| holds(&fs::read(path).unwrap()))
        .map(|path| path.display().to_string())
        .collect()
}

#[test]
fn a_typed_key_reaches_the_agent_but_not_the_disk() {
    both(|home| {
        home.script_agent("same", "cat");
        for (key, kind) in keys() {
            let words = format!("use {key} please");
            let output = home.run(&["chat", "--agent", "same", "-p", &words]).ok();
            assert!(
                output.stdout.contains(&key),
                "the agent gets the words as typed"
            );
            output.notes(&format!("1 {kind}"));
            let expected = format!("use [redacted:{kind}] please");
            assert_eq!(home.said("@"), [expected.clone(), expected]);
            home.run(&["rename", "@", &format!("about {key}")]).ok();
            home.run(&["search", &key[..20]]).ok();
            assert_eq!(holders(home, &key), Vec::<String>::new());
        }
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn a_key_that_an_agent_prints_is_not_kept() {
    let home = &Home::new();
    let (key, kind) = keys().remove(0);
    fs::write(
        home.path().join("answer.txt"),
        format!("the key is {key}, keep it\n"),
    )
    .unwrap();
    home.script_agent("leaky", "cat ../answer.txt; cat ../answer.txt >&2; exit 1");
    home.run(&["chat", "--agent", "leaky", "-p", "tell me"])
        .code(6);
    assert_eq!(
        home.said("@")[1],
        format!("the key is [redacted:{kind}], keep it\n")
    );
    assert_eq!(holders(home, &key), Vec::<String>::new());
}

#[test]
fn a_key_in_a_half_written_answer_is_not_kept() {
    let home = &Home::new();
    let (key, _) = keys().remove(0);
    let (first, second) = key.split_at(25);
    // Half a key, a pause long enough for a draft, the other half, and more.
    home.script_agent(
            "leaky",
            &format!("printf 'look: {first}'; sleep 1.2; printf '{second} end\\n'; sleep 1.2; echo more; exec sleep 60"),
        );
    let mut talk = Running::start(home, &["--agent", "leaky", "-p", "tell me"]);
    loop {
        let event = talk.until("text");
        if event["text"].as_str().unwrap().contains("more") {
            break;
        }
    }
    talk.kill();
    sweep(home);
    home.run(&["-c", "--agent", "demo", "-p", "echo on"]).ok();
    for part in [&key[..], first] {
        assert_eq!(holders(home, part), Vec::<String>::new());
    }
}

#[test]
fn redaction_can_be_turned_off() {
    let home = &Home::new();
    let (key, _) = keys().remove(0);
    home.settings("redact = false\n");
    let output = home.run(&["chat", "-p", &format!("echo {key}")]).ok();
    output.lacks("redacted");
    assert_eq!(home.said("@"), [format!("echo {key}"), key.clone()]);
    assert!(!holders(home, &key).is_empty());
}

#[test]
fn keys_in_errors_and_arguments_are_not_kept_either() {
    let home = &Home::new();
    let (key, _) = keys().remove(0);
    home.run(&["chat", "--name", &format!("with {key}"), "-p", "hello"])
        .ok();
    home.run(&["tag", "@", &format!("+{}", &key[..40])]).ok();
    let session = home.show("@");
    assert!(
        session["title"].as_str().unwrap().contains("[redacted:"),
        "{session}"
    );
    assert_eq!(holders(home, &key), Vec::<String>::new());
}

#[test]
fn a_password_in_the_address_of_a_repository_is_not_kept() {
    let home = &Home::new();
    fs::create_dir_all(home.project().join(".git")).unwrap();
    let config = home.project().join(".git/config");
    fs::write(
        &config,
        "[remote \"origin\"]\n\turl = https://me:hunter2pass@example.org/x.git\n",
    )
    .unwrap();
    home.say("hello");
    fs::remove_file(config).unwrap();
    assert_eq!(holders(home, "hunter2pass"), Vec::<String>::new());
}

/// Redaction makes a text longer, which must not lose it.
#[test]
fn a_long_answer_full_of_secrets_is_kept() {
    let home = &Home::new();
    home.script_agent("leaky", "yes 'http://a:b@c.de/' | head -c 900000");
    home.run(&["chat", "--agent", "leaky", "-p", "speak"]).ok();
    let shown = home.show("@");
    let answer = shown["entries"].as_array().unwrap().last().unwrap();
    assert!(
        answer["content"]
            .as_str()
            .unwrap()
            .contains("[redacted:url-password]")
    );
    assert_eq!(answer["interrupted"], false);
}

/// A log is kept byte for byte, or its hashes would not hold: kept secrets are reported, and can be
/// redacted on request.
#[test]
fn an_import_says_which_secrets_it_keeps_and_replaces_them_on_request() {
    let home = &Home::new();
    let (key, kind) = keys().remove(1);
    home.settings("redact = false\n");
    home.run(&["chat", "-p", &format!("echo {key}")]).ok();
    let log = home.run(&["export", "@", "--format", "jsonl"]).ok().stdout;
    home.settings("");
    let file = home.path().join("talk.jsonl");
    fs::write(&file, &log).unwrap();
    let file = file.to_str().unwrap();

    let kept = Home::with(home.backend());
    kept.run(&["import", file])
        .ok()
        .says(&format!("secrets kept as they are: 2 {kind}"))
        .says("--redact");

    let clean = Home::with(home.backend());
    let document = clean
        .run(&["import", "--redact", "--json", file])
        .ok()
        .json();
    assert_eq!(document["imported"][0]["redacted"][kind], 2, "{document}");
    clean
        .run(&["import", "--redact", file])
        .ok()
        .says("nothing new");
    clean
        .run(&["show", "latest"])
        .ok()
        .says(&format!("[redacted:{kind}]"));
    clean.run(&["doctor"]).ok();
    assert_eq!(holders(&clean, &key), Vec::<String>::new());
}
