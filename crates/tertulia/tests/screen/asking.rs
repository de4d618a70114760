//! Permission dialogs for tools.

use std::fs;

use serde_json::json;
use tertulia_testkit::terminal::Terminal;

use super::agents::wanted;
use super::stage::{leave, ready, status, status_says, talk, wrote};
use crate::home::{Home, messages, until};

/// Makes the demo agent use a tool, and waits until the permission dialog accepts answers.
fn asked(home: &Home, tool: &str, arguments: &serde_json::Value) -> Terminal {
    let mut terminal = talk(home, &[]);
    terminal.type_text(&format!("{}\n", wanted(tool, arguments)));
    terminal.sees("demo wants to");
    status_says(&mut terminal, "needs you");
    answers_are_taken(&mut terminal);
    terminal
}

/// Waits until the dialog accepts answers: keys in its first moments go to the input that was there
/// before, and until then no answers are offered.
#[track_caller]
fn answers_are_taken(terminal: &mut Terminal) {
    terminal.sees("Enter no");
}

#[test]
fn a_command_runs_after_a_yes() {
    let home = Home::new();
    let mut terminal = asked(&home, "shell", &json!({ "command": "echo a > made" }));
    terminal.sees("demo wants to run a command");
    terminal.sees("can change files");
    terminal.sees("a: allow exactly this command in this session");
    terminal.sees("echo a > made");
    assert!(!home.project().join("made").exists());
    terminal.keys("y Enter");
    terminal.sees("The tool said");
    ready(&mut terminal);
    assert!(home.project().join("made").exists());
    leave(&mut terminal);
}

#[test]
fn after_a_no_the_agent_is_told() {
    let home = Home::new();
    let mut terminal = asked(&home, "shell", &json!({ "command": "echo a > made" }));
    terminal.keys("n Enter");
    terminal.sees("not run: the user does not want");
    ready(&mut terminal);
    assert!(!home.project().join("made").exists());
    leave(&mut terminal);
}

/// The agent gets the words of the user with the denial, and the log has both.
#[test]
fn no_and_what_to_do_instead_is_told_and_kept() {
    let home = Home::new();
    let mut terminal = asked(&home, "shell", &json!({ "command": "echo a > made" }));
    terminal.keys("i Enter");
    terminal.sees("what should demo do instead?");
    terminal.type_text("write it to notes.txt");
    terminal.sees("instead> write it to notes.txt");
    terminal.keys("Enter");
    terminal.sees("⊘ denied: write it to notes.txt");
    ready(&mut terminal);
    leave(&mut terminal);
    assert!(!home.project().join("made").exists());
    let reason = "[not run: the user does not want this, and says what to do instead: write it to notes.txt]";
    let said = home.said("@");
    assert!(said.iter().any(|words| words == reason), "{said:?}");
    // The demo agent repeats what its tool said.
    assert!(said.last().unwrap().contains(reason), "{said:?}");
    let mut terminal = talk(&home, &["-c"]);
    terminal.sees("⊘ denied: write it to notes.txt");
    leave(&mut terminal);
}

/// A call that did not run is never shown as done, however often the session is opened.
#[test]
fn denied_and_failed_calls_look_the_same_after_a_resume() {
    let home = Home::new();
    let mut terminal = asked(&home, "shell", &json!({ "command": "ls" }));
    terminal.keys("n Enter");
    terminal.sees("⊘ denied");
    ready(&mut terminal);
    terminal.type_text(&format!(
        "{}\n",
        wanted("file_read", &json!({ "path": "does-not-exist.txt" }))
    ));
    terminal.sees("✗ 1 line");
    ready(&mut terminal);
    leave(&mut terminal);
    let mut terminal = talk(&home, &["-c"]);
    terminal.sees("✗ 1 line");
    terminal.sees("⊘ denied");
    terminal.look(|screen| assert!(!screen.has("✓")));
    leave(&mut terminal);
    let entries = home.show("@");
    let statuses: Vec<String> = messages(&entries)
        .iter()
        .flat_map(|message| {
            message["tool_calls"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .map(|call| call["status"].as_str().unwrap_or("none").to_owned())
        .collect();
    assert_eq!(statuses, ["denied", "failed"]);
    let shown = home.run(&["show", "@"]).ok().stdout;
    assert!(
        shown.contains("⊘ denied") && shown.contains("✗ failed"),
        "{shown}"
    );
    let markdown = home.run(&["export", "@", "--format", "md"]).ok().stdout;
    assert!(
        markdown.contains("⊘ denied") && markdown.contains("✗ failed"),
        "{markdown}"
    );
}

#[test]
fn a_rewind_names_the_files_that_stay_changed() {
    let home = Home::new();
    fs::write(home.project().join("kept"), "one\ntwo\nthree\n").unwrap();
    let edit = json!({ "path": "kept", "old_text": "two", "new_text": "2" });
    let mut terminal = asked(&home, "file_edit", &edit);
    terminal.keys("y Enter");
    terminal.sees("The tool said");
    ready(&mut terminal);
    // The change is seen without unfolding it.
    terminal.sees("2 + 2");
    terminal.keys("Esc Esc");
    terminal.sees("Rewind to just before");
    terminal.sees("1 file changed since, not put back: kept");
    terminal.keys("Esc");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn a_change_is_shown_as_a_coloured_diff() {
    let home = Home::new();
    let path = home.project().join("kept");
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let edit = json!({ "path": "kept", "old_text": "two", "new_text": "2 漢字" });
    let mut terminal = asked(&home, "file_edit", &edit);
    terminal.sees("demo wants to edit kept (+1 −1)");
    terminal.sees("edits a file");
    let colours = terminal.look(|screen| {
        ["2 - two", "2 + 2 漢字"].map(|words| {
            let (row, column) = screen.place_of(words).unwrap();
            screen.inner().cell(row, column + 2).unwrap().fgcolor()
        })
    });
    assert_ne!(colours[0], colours[1]);
    terminal.keys("y Enter");
    ready(&mut terminal);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n2 漢字\nthree\n");
    leave(&mut terminal);
    // The change is on the card, with its place, also after a resume.
    let mut terminal = talk(&home, &["-c"]);
    terminal.sees("▾ Edit kept +1 −1 ✓");
    terminal.sees("2 - two");
    terminal.sees("2 + 2 漢字");
    leave(&mut terminal);
}

#[test]
fn always_is_for_the_same_and_no_other() {
    let home = Home::new();
    let command = json!({ "command": "echo a >> made" });
    let mut terminal = asked(&home, "shell", &command);
    terminal.keys("a Enter");
    terminal.sees("The tool said");
    // The permission applies, and is shown.
    status_says(&mut terminal, "always: shell echo a >>");
    ready(&mut terminal);
    terminal.type_text(&format!("{}\n", wanted("shell", &command)));
    let made = || fs::read_to_string(home.project().join("made")).unwrap_or_default();
    until("it ran again", || (made() == "a\na\n").then_some(()));
    ready(&mut terminal);
    terminal.type_text(&format!(
        "{}\n",
        wanted("shell", &json!({ "command": "echo b >> made" }))
    ));
    status_says(&mut terminal, "needs you");
    answers_are_taken(&mut terminal);
    terminal.keys("Esc");
    terminal.sees("not run");
    ready(&mut terminal);
    assert_eq!(made(), "a\na\n");
    // It is revoked.
    terminal.type_text("/approve ask\n");
    terminal.wait_for("it is revoked", |screen| !screen.has("always:"));
    terminal.type_text(&format!("{}\n", wanted("shell", &command)));
    status_says(&mut terminal, "needs you");
    answers_are_taken(&mut terminal);
    terminal.keys("Esc");
    ready(&mut terminal);
    assert_eq!(made(), "a\na\n");
    leave(&mut terminal);
}

/// The first letters of a sentence are not an answer.
#[test]
fn a_sentence_is_written_and_allows_nothing() {
    let home = Home::new();
    let mut terminal = asked(&home, "shell", &json!({ "command": "echo a > made" }));
    terminal.type_text("what a day, yes");
    terminal.sees("what a day, yes");
    terminal.sees("you are writing below");
    terminal.keys("Enter");
    terminal.sees("Enter no");
    assert!(!home.project().join("made").exists());
    terminal.keys("n Enter");
    terminal.sees("what a day, yes");
    ready(&mut terminal);
    leave(&mut terminal);
    assert!(!home.project().join("made").exists());
    assert!(
        home.said("@")
            .iter()
            .any(|words| words == "what a day, yes")
    );
}

/// Text typed before the dialog opens does not answer it.
#[test]
fn what_is_typed_before_the_question_is_no_answer() {
    let home = Home::new();
    home.settings("[agents.demo]\npace = 20\n");
    let mut terminal = talk(&home, &[]);
    let words = wanted("shell", &json!({ "command": "echo a > made" }));
    terminal.type_text(&format!("{words}\n"));
    // What comes in the same moment would be a paste.
    terminal.wait_for("it is sent", |screen| !status(screen).contains("● ready"));
    terminal.type_text("yay, yes");
    status_says(&mut terminal, "needs you");
    assert!(!home.project().join("made").exists());
    // While the input has text, letters go there, and Tab returns to the dialog.
    terminal.sees("you are writing below");
    terminal.type_text(", ay");
    terminal.keys("Tab n Enter");
    terminal.sees("not run");
    ready(&mut terminal);
    wrote(&mut terminal, &["yay, yes, ay"]);
    assert!(!home.project().join("made").exists());
}

#[test]
fn ctrl_c_at_the_question_stops_the_turn_and_not_the_talk() {
    let home = Home::new();
    let mut terminal = asked(&home, "shell", &json!({ "command": "echo a > made" }));
    terminal.keys("^c");
    ready(&mut terminal);
    assert!(!home.project().join("made").exists());
    super::stage::say(&mut terminal, "echo still here", "still here");
    leave(&mut terminal);
}

#[test]
fn an_answered_call_is_folded_and_can_be_unfolded() {
    let home = Home::new();
    let mut terminal = talk(&home, &[]);
    fs::write(home.project().join("seen.txt"), "inside it\n").unwrap();
    terminal.type_text(&format!(
        "{}\n",
        wanted("file_read", &json!({ "path": "seen.txt" }))
    ));
    terminal.sees("▸ Read seen.txt ✓");
    ready(&mut terminal);
    leave(&mut terminal);
}

#[test]
fn output_is_seen_while_the_command_runs() {
    let home = Home::new();
    let command =
        "for i in 1 2 3; do echo line $i; done; while [ ! -e stop ]; do sleep 0.05; done; echo end";
    let mut terminal = asked(&home, "shell", &json!({ "command": command }));
    terminal.keys("y Enter");
    terminal.sees("│ line 1");
    terminal.sees("│ line 3");
    fs::write(home.project().join("stop"), "").unwrap();
    terminal.sees("✓ 4 lines");
    terminal.wait_for("it is folded", |screen| !screen.has("│ line 1"));
    ready(&mut terminal);
    leave(&mut terminal);
}
