//! Messages are kept byte for byte: in the log, in other members' prompts and in every export
//! format.

use serde_json::{Value, json};
use tertulia_formats::snapshot::Snapshot;

use super::cast::{Cast, said_in, speakers};
use crate::home::Home;

/// Code as agents write it: indented with spaces and tabs, with blank lines and lines of spaces
/// only, lines that begin with a brace, markers in code, all kinds of line endings, and many
/// scripts.
const CODE: &str = concat!(
    "Look — “naïve” 日本語 👩‍👩‍👧 e\u{301}:\n\n",
    "```rust\nfn main() {\n\n    if x {\n\t\ty();\n    }\n}\n[NEXT: cleo]\n[TEAM_TASK: none]\n[DROP: ALL]\n```\n\n",
    "   \n",
    "{\"type\":\"result\",\"result\":\"kept\"}\n",
    "{ \"a\": [1, 2] }\n",
    "\r\nDOS line\r\n\tand a tab\r\n\n\n",
    "Write `[NEXT: cleo]` or ``[FROM: ann] ` `` in words.  \n",
    "~~~\n[NEXT: cleo]\n~~~\n",
    "  the end",
);

/// Runs a session in which Ada answers with `CODE` and addresses Ben. Returns its id.
fn a_talk(cast: &Cast) -> String {
    cast.says("ada", format!("{CODE}\n[NEXT: ben]"));
    let document = cast.turn(&["[NEXT: ada] show me"]);
    assert_eq!(speakers(said_in(&document)), ["ann", "ada", "ben"]);
    document["session_id"].as_str().unwrap().to_owned()
}

fn cast() -> Cast {
    Cast::of(&["ada", "ben", "cleo"], &["ann"])
}

#[test]
fn a_reply_is_in_the_log_and_in_the_next_prompt_as_it_was_said() {
    let cast = cast();
    let id = a_talk(&cast);
    assert_eq!(cast.home.said(&id)[1], format!("{CODE}\n[NEXT: ben]"));
    let prompt = cast.prompt("ben");
    assert!(prompt.ends_with(&format!("Ada: {CODE}\n")), "{prompt:?}");
    // The same holds after a resume, and when it is no longer the last message.
    cast.says("ben", "Fine. [NEXT: cleo]");
    cast.run(&["-c", "[NEXT: ben] again"]).ok();
    for name in ["ben", "cleo"] {
        assert!(
            cast.prompt(name).contains(&format!("Ada: {CODE}\n")),
            "{name}"
        );
    }
}

#[test]
fn the_words_of_a_person_stay_as_they_were_typed() {
    let cast = cast();
    let words = format!("{CODE}\n[NEXT: ben]");
    cast.prepare(&[]).stdin(&words).run().ok();
    assert_eq!(cast.home.said("@")[0], words);
    assert!(cast.prompt("ben").ends_with(&format!("Ann: {CODE}\n")));
}

#[test]
fn markers_in_code_move_nobody() {
    let cast = cast();
    cast.says("ada", CODE);
    let document = cast.turn(&["[NEXT: ada, ben] show me"]);
    // Cleo is not prompted, Ben is not dropped, and the team has no task.
    assert_eq!(speakers(said_in(&document)), ["ann", "ada", "ben"]);
    let addressed = |place: usize| said_in(&document)[place].get("addressees").is_some();
    assert!(addressed(0) && !addressed(1));
    cast.run(&["-c", "[NEXT: cleo] and you?"]).ok();
    assert!(cast.prompt("cleo").contains("[TEAM_TASK: none]"), "as code");
    let session = cast.home.show("@");
    let entries = session["entries"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["type"] != "tasked"));
    // Markers in a person's code have no effect either.
    let words = "see `[NEXT: ada]` and\n```\n[NEXT: ben]\n```";
    let document = cast.turn(&["--keep-going", words]);
    assert_eq!(speakers(said_in(&document)), ["ann"]);
}

/// agent-chatter dropped every line that began with a brace.
#[test]
fn lines_of_json_are_words_like_others() {
    let cast = cast();
    let lines = "{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"x\"}\n{\"type\":\"turn.completed\"}\n{}\n{";
    cast.says("ada", lines);
    let output = cast.run(&["[NEXT: ada] show me"]).ok();
    output.says(lines);
    assert_eq!(cast.home.said("@")[1], lines);
}

#[test]
fn every_form_has_the_same_bytes() {
    let cast = cast();
    let id = a_talk(&cast);
    let whole = format!("{CODE}\n[NEXT: ben]");
    let export = |form: &str| {
        let args = ["export", &id, "--format", form];
        cast.home.run(&args).ok().stdout
    };
    let json: Value = serde_json::from_str(&export("json")).unwrap();
    let said = crate::home::messages(&json);
    assert_eq!(said[1]["content"], whole);
    let snapshot: Value = serde_json::from_str(&export("snapshot")).unwrap();
    Snapshot::read(&export("snapshot"), "the export").unwrap();
    assert_eq!(snapshot["context"]["messages"][1]["content"], whole);
    assert_eq!(snapshot["teamId"], "cast");
    assert!(export("md").contains(CODE), "{}", export("md"));
    assert!(cast.home.run(&["show", &id]).ok().stdout.contains(CODE));
    // A log imported elsewhere is the same log.
    let other = Home::new();
    let lines = export("jsonl");
    other.prepare(&["import", "-"]).stdin(&lines).run().ok();
    assert_eq!(other.said(&id)[1], whole);
    let raw = |home: &Home| home.run(&["show", &id, "--raw"]).ok().stdout;
    assert_eq!(raw(&other), raw(&cast.home));
}

#[test]
fn what_is_shown_has_no_markers_and_all_else() {
    let cast = cast();
    cast.says("ada", format!("{CODE}\n[NEXT: ben]"));
    let output = cast.run(&["[NEXT: ada] show me"]).ok();
    assert_eq!(
        output.stdout,
        format!("Ada:\n{CODE}\n\nBen:\nBen speaks.\n\n")
    );
    // A stream has the text unchanged.
    let stream = ["--output-format", "stream-json", "[NEXT: ada] show me"];
    let events = cast.run(&stream).ok().events();
    let text = events
        .iter()
        .filter(|event| event["type"] == "text" && event["speaker"] == "ada");
    let text: String = text.map(|event| event["text"].as_str().unwrap()).collect();
    assert_eq!(text, format!("{CODE}\n[NEXT: ben]"));
}

/// The saved text is the received text, also where it is mostly whitespace.
#[test]
fn a_marker_alone_and_an_empty_line_are_kept() {
    let cast = cast();
    for words in ["\n\n  [NEXT: ben]\n\n", "[NEXT: ben]", " \t[NEXT: ben]"] {
        cast.says("ada", words);
        let document = cast.turn(&["[NEXT: ada] go"]);
        assert_eq!(
            speakers(said_in(&document)),
            ["ann", "ada", "ben"],
            "{words:?}"
        );
        assert_eq!(said_in(&document)[1]["content"], json!(words));
    }
}
