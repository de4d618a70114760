//! `diff`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tertulia_testkit::terminal::{Size, Terminal};

use crate::home::{Backend, Home, files_below, keys, short};

/// Two sessions that share their first turn and then differ in one word.
fn forks(home: &Home) -> (String, String) {
    let one = home.say("echo common");
    let other = home.run(&["fork", &one, "-q"]).ok().stdout;
    let other = other.trim().to_owned();
    home.say_in(&one, "echo indent the parser with tabs please");
    home.say_in(&other, "echo indent the parser with spaces please");
    home.say_in(&other, "echo <b>only</b> the fork says so & more");
    (one, other)
}

fn contents(messages: &Value) -> Vec<&str> {
    let messages = messages.as_array().unwrap().iter();
    messages
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

#[test]
fn forks_are_compared_from_their_last_common_entry() {
    let home = &Home::new();
    let (one, other) = forks(home);
    let document = home.run(&["diff", &one, &other, "--json"]).code(1).json();
    let expected = [
        "a",
        "b",
        "changed",
        "common",
        "identical",
        "only_a",
        "only_b",
    ];
    assert_eq!(keys(&document), expected);
    assert_eq!(document["a"]["id"], one.as_str());
    assert_eq!(document["b"]["messages"], 6);
    let common = json!({ "entries": 3, "seq": 3, "kind": "ancestor" });
    assert_eq!(document["common"], common);
    assert_eq!(document["identical"], false);
    assert_eq!(contents(&document["only_a"]), [""; 0]);
    let only = contents(&document["only_b"]);
    assert_eq!(only.len(), 2);
    // The same object as in `show --json`.
    let shown = home.show(&other);
    assert_eq!(document["only_b"][0], shown["entries"][6]);
    let changed = document["changed"].as_array().unwrap();
    assert_eq!(changed.len(), 2);
    let words = json!([
        { "op": "equal", "text": "indent the parser with " },
        { "op": "delete", "text": "tabs" },
        { "op": "insert", "text": "spaces" },
        { "op": "equal", "text": " please" },
    ]);
    assert_eq!(changed[1]["words"], words);
    let back = home.run(&["diff", &other, &one, "--json"]).code(1).json();
    assert_eq!(back["only_a"], document["only_b"]);
    assert_eq!(back["changed"][0]["a"], changed[0]["b"]);
}

#[test]
fn a_session_does_not_differ_from_itself_nor_from_an_unchanged_fork() {
    let home = &Home::new();
    let one = home.say("echo common");
    let fork = home.run(&["fork", &one, "-q"]).ok().stdout;
    home.run(&["rename", fork.trim(), "Another title"]).ok();
    for other in [&one, fork.trim()] {
        let output = home.run(&["diff", &one, other]).ok();
        assert_eq!(output.stdout, "");
        output.notes("No differences");
        let document = home.run(&["diff", &one, other, "--json"]).ok().json();
        assert_eq!(document["identical"], true);
    }
    let quiet = home.run(&["diff", "-q", &one, &one]).ok();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn sessions_without_a_common_entry_are_aligned_by_content() {
    let home = &Home::new();
    let one = home.say("echo the same question");
    home.say_in(&one, "echo one two three four");
    let other = home.say("echo the same question");
    home.say_in(&other, "echo one two three five");
    let document = home.run(&["diff", &one, &other, "--json"]).code(1).json();
    let common = json!({ "entries": 2, "seq": 0, "kind": "alignment" });
    assert_eq!(document["common"], common);
    assert_eq!(document["changed"].as_array().unwrap().len(), 2);
    home.run(&["diff", &one, &other])
        .code(1)
        .says("aligned by role and content")
        .says("= 2 equal messages")
        .says("one two three [-four-]{+five+}");
    let stranger = home.say("echo quite another thing");
    let document = home.run(&["diff", &one, &stranger, "--json"]).code(1);
    assert_eq!(document.json()["common"]["kind"], "none");
}

#[test]
fn the_text_names_both_sessions_and_marks_words() {
    let home = &Home::new();
    let (one, other) = forks(home);
    let output = home.run(&["diff", &one, &other]).code(1);
    assert!(!output.stdout.contains('\u{1b}'), "colours off a terminal");
    output
        .says(&format!("- {}  ", short(&one)))
        .says(&format!("+ {}  ", short(&other)))
        .says("Both have entries 1 to 3.")
        .says("0 messages only in the first, 2 only in the second, 2 changed.")
        .says("  indent the parser with [-tabs-]{+spaces+} please\n")
        .says("+ <b>only</b> the fork says so & more\n")
        .lacks(" common\n");
}

/// Of a long text, only the lines around a change are shown.
#[test]
fn unchanged_lines_are_left_out() {
    let home = &Home::new();
    let text = |last: &str| {
        let lines: Vec<String> = (0..40).map(|line| format!("line {line}")).collect();
        format!("{}\n{last}", lines.join("\n"))
    };
    let one = home.say(&text("one"));
    let other = home.say(&text("other"));
    let output = home.run(&["diff", &one, &other]).code(1);
    output
        .says("⋯ 38 lines without a change\n  line 38\n  line 39\n  [-one-]{+other+}\n")
        .lacks("line 37");
}

#[test]
fn tool_calls_are_compared_alone() {
    let home = &Home::new();
    fs::write(home.project().join("note.txt"), "first").unwrap();
    let read = "use file_read {\"path\": \"note.txt\"}";
    let one = home.say(read);
    let same = home.say(&format!("{read} "));
    home.run(&["diff", &one, &same]).code(1);
    home.run(&["diff", "--tools", &one, &same])
        .ok()
        .notes("the tool calls are equal");
    fs::write(home.project().join("note.txt"), "second").unwrap();
    let other = home.say(read);
    let output = home.run(&["diff", "--tools", &one, &other]).code(1);
    output.says("1 changed").says("[-first-]{+second+}");
    let document = home.run(&["diff", "--tools", "--json", &one, &other]);
    let call = document.code(1).json()["changed"][0]["b"].take();
    assert_eq!(call["name"], "file_read");
    assert_eq!(call["arguments"], json!({ "path": "note.txt" }));
    assert_eq!(call["outcome"], "ok");
    assert!(call["result"].as_str().unwrap().contains("second"));
}

#[test]
fn the_page_stands_alone_and_is_escaped() {
    let home = &Home::new();
    let (one, other) = forks(home);
    let page = home.run(&["diff", "--html", &one, &other]).code(1).stdout;
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("prefers-color-scheme: dark"));
    assert!(page.contains("<del>tabs</del>") && page.contains("<ins>spaces</ins>"));
    assert!(page.contains("&lt;b&gt;only&lt;/b&gt; the fork says so &amp; more"));
    for foreign in ["<script", "<b>", "http://", "https://", "url(", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let file = home.project().join("diff.html");
    let to_file = ["diff", "--html", &one, &other, "-o", "diff.html"];
    home.run(&to_file).code(1).notes("Wrote diff.html");
    assert_eq!(fs::read_to_string(&file).unwrap(), page);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    home.run(&to_file).code(1).notes("--force");
    home.run(&[&to_file[..], &["--force"]].concat()).code(1);
}

#[test]
fn wrong_input_is_told() {
    let home = &Home::new();
    let one = home.say("echo one");
    for args in [["nosuch", &one], [&one, "nosuch"]] {
        let output = home.run(&["diff", args[0], args[1]]).code(3);
        assert_eq!(output.stdout, "");
        output.notes("there is no session 'nosuch'");
    }
    let output = home.run(&["diff", &one, "nosuch", "--json"]).code(3);
    assert_eq!(output.error()["kind"], "not_found");
    home.run(&["diff", &one]).code(2);
    home.run(&["diff"]).code(2);
    home.run(&["diff", &one, &one, "-o", "x"]).code(2);
    home.run(&["diff", &one, &one, "--html", "--json"])
        .code(2)
        .error();
    home.run(&["diff", &one, &format!("{one}:2")])
        .code(2)
        .notes("a whole session is needed");
}

#[test]
fn a_wide_terminal_shows_both_side_by_side() {
    let home = &Home::new();
    let (one, other) = forks(home);
    home.say_in(&one, "echo \u{1b}]0;owned\u{7} end");
    let shown = |args: &[&str], columns: u16| {
        let args = [&["diff", &one, &other], args].concat();
        let mut command = home.prepare(&args).command();
        command.env("TERM", "xterm-256color");
        let mut terminal = Terminal::open(&mut command, Size::new(columns, 50));
        assert_eq!(terminal.exit_code(), 1);
        terminal.wait_for("all is there", |screen| screen.has("the fork says so"));
        (terminal.contents(), terminal.raw_text())
    };
    let (wide, raw) = shown(&[], 160);
    let row = |words: &str| wide.lines().find(|line| line.contains(words)).unwrap();
    let row = row("  indent the parser with tabs please");
    assert!(
        row.contains("│   indent the parser with spaces please"),
        "{wide}"
    );
    assert!(raw.contains("\u{1b}[31mtabs"), "{raw:?}");
    assert!(!raw.contains("\u{1b}]0;owned"), "{raw:?}");
    let (plain, raw) = shown(&["--no-color"], 120);
    assert!(plain.contains("│") && plain.contains("[-tabs-]"), "{plain}");
    assert!(!raw.contains("\u{1b}[31m"), "{raw:?}");
    let (narrow, _) = shown(&[], 119);
    assert!(
        !narrow.contains('│') && narrow.contains("[-tabs-]{+spaces+}"),
        "{narrow}"
    );
}

/// A damaged entry is named, and the rest is compared.
#[test]
fn a_damaged_session_is_compared_with_a_warning() {
    let home = &Home::with(Backend::Files);
    let (one, other) = forks(home);
    for file in files_below(&home.files_folder()) {
        let is_log = file.extension().is_some_and(|end| end == "jsonl");
        if let Some(text) = fs::read_to_string(&file).ok().filter(|_| is_log) {
            fs::write(&file, text.replace("with spaces", "with SPACES")).unwrap();
        }
    }
    let output = home.run(&["diff", &one, &other]).code(1);
    output.notes("damaged: ").says("the fork says so");
    let output = home.run(&["merge", &one, &other]).code(5);
    output.notes("is damaged").notes("doctor --repair");
}
