//! Cards of tool calls.

use super::*;

fn edit(seq: u64, output: Option<(&str, bool)>) -> Item {
    let arguments =
        json!({ "path": "a.rs", "old_text": "let a = 1;", "new_text": "let a = 2;\nlet b = 3;" });
    tool(seq, "file_edit", arguments, output)
}

fn person(seq: u64) -> Item {
    said(Some(seq), "Rosa", SpeakerKind::Human, "Change it.")
}

#[test]
fn a_card_stands_below_the_name_of_its_agent() {
    let done = Some(("replaced 1 place in a.rs, in line 7", true));
    // An agent that begins with a tool has its heading, and one that has spoken no second one.
    let transcript = of(vec![person(1), edit(2, done), edit(3, done)]);
    assert_eq!(
        seen(&transcript)[2..],
        [
            "Change it.",
            "",
            "ana",
            "  ▸ Edit a.rs +2 −1 ✓",
            "  ▸ Edit a.rs +2 −1 ✓"
        ]
    );
    let transcript = of(vec![person(1), agent(2, "I do."), edit(2, done)]);
    assert_eq!(
        seen(&transcript)[3..],
        ["", "ana", "I do.", "  ▸ Edit a.rs +2 −1 ✓"]
    );
}

#[test]
fn an_unfolded_edit_shows_its_change_and_its_place() {
    let mut transcript = of(vec![edit(
        1,
        Some(("replaced 1 place in a.rs, in line 7", true)),
    )]);
    press(&mut transcript, "o");
    assert_eq!(
        seen(&transcript)[2..],
        [
            "  ▾ Edit a.rs +2 −1 ✓",
            "    a.rs",
            "    7 - let a = 1;",
            "    7 + let a = 2;",
            "    8 + let b = 3;",
        ]
    );
    // Why a change was not made stands below it.
    let mut transcript = of(vec![edit(1, Some(("[not run: no]", false)))]);
    press(&mut transcript, "o");
    let rows = seen(&transcript);
    assert_eq!(rows[2], "  ▾ Edit a.rs +2 −1 ⊘ denied");
    assert_eq!(
        rows[4..],
        [
            "    - let a = 1;",
            "    + let a = 2;",
            "    + let b = 3;",
            "    ",
            "    [not run: no]"
        ]
    );
}

#[test]
fn output_is_shown_while_a_command_runs() {
    let command = json!({ "command": "make" });
    let mut transcript = of(vec![tool(1, "shell", command, None)]);
    transcript.show_output("call-1", "1\n2\n3\n4\n5\n6".to_owned());
    transcript.show_output("call-9", "of another".to_owned());
    transcript.fit(SCREEN, DARK);
    assert_eq!(
        seen(&transcript)[2..],
        [
            "  ▸ Run make …",
            "  │ 2",
            "  │ 3",
            "  │ 4",
            "  │ 5",
            "  │ 6"
        ]
    );
    transcript.used("call-1", "all\n[exit status 2]", ToolOutcome::Failed);
    transcript.show_output("call-1", "late".to_owned());
    transcript.fit(SCREEN, DARK);
    assert_eq!(
        seen(&transcript)[2..],
        ["  ▸ Run make ✗ exit status 2, 1 line"]
    );
}

#[test]
fn a_short_change_is_unfolded_once_it_is_made() {
    let made = "replaced 1 place in a.rs, in line 7";
    let mut transcript = of(vec![person(1), edit(2, None)]);
    assert!(
        seen(&transcript)
            .last()
            .unwrap()
            .starts_with("  ▸ Edit a.rs")
    );
    transcript.used("call-2", made, ToolOutcome::Ok);
    transcript.fit(SCREEN, DARK);
    let rows = seen(&transcript);
    let card = rows.iter().position(|row| row.starts_with("  ▾ Edit a.rs"));
    let below = &rows[card.expect("the card is unfolded")..];
    assert!(
        below.iter().any(|row| row.contains("+ let b = 3;")),
        "{rows:?}"
    );
    // A change that was refused, and a long one, stay folded.
    let mut transcript = of(vec![person(1), edit(2, None)]);
    transcript.used("call-2", "[not run: no]", ToolOutcome::Denied);
    transcript.fit(SCREEN, DARK);
    assert!(seen(&transcript).last().unwrap().starts_with("  ▸ Edit"));
    let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let arguments = json!({ "path": "a.rs", "old_text": "x", "new_text": lines });
    let mut transcript = of(vec![person(1), tool(2, "file_edit", arguments, None)]);
    transcript.used("call-2", made, ToolOutcome::Ok);
    transcript.fit(SCREEN, DARK);
    assert!(seen(&transcript).last().unwrap().starts_with("  ▸ Edit"));
}

#[test]
fn a_long_message_of_one_line_is_folded() {
    let text = "word ".repeat(2600);
    let transcript = of(vec![said(Some(1), "Rosa", SpeakerKind::Human, &text)]);
    let rows = seen(&transcript);
    assert!(rows.len() < 20, "{}", rows.len());
    assert_eq!(rows.last().unwrap(), "… 12 200 more characters, o unfolds");
}
