//! Shell commands of the user, and prompts that are refused.

use tertulia_core::entry::{Attachment, ShellCommand, ShellOutput};
use tertulia_engine::event::Tone;

use super::*;

fn run_id() -> EntryId {
    "01936f5e-6c5a-7b3a-9d2f-00000000abcd".parse().unwrap()
}

fn ran(effects: &[String]) -> Vec<&str> {
    let ran = effects
        .iter()
        .filter_map(|effect| effect.strip_prefix("run "));
    ran.collect()
}

#[test]
fn a_typed_sign_begins_a_command() {
    let mut play = Play::chat();
    play.keys("!");
    play.sees("a shell command");
    play.keys("<backspace>");
    play.sees_no("a shell command");
    play.keys("!ls");
    assert_eq!(play.input(), "!ls");
    assert_eq!(ran(&play.keys("<enter>")), ["ls"]);
    play.sees("running (ls)…");
    assert_eq!(play.input(), "");
}

#[test]
fn output_is_shown_while_it_runs_and_whole_at_the_end() {
    let mut play = Play::chat();
    play.turn("hello", "hi");
    play.keys("!seq 20<enter>");
    let command = "seq 20".to_owned();
    play.entry(Body::Shell(ShellCommand {
        run: run_id(),
        command,
    }));
    let numbers = |upto: u32| (1..=upto).map(|n| format!("n{n}\n")).collect::<String>();
    play.live(LiveEvent::Session(SessionEvent::Printed {
        text: numbers(12),
    }));
    play.sees("! seq 20 …");
    play.sees("n12");
    play.sees_no("n3\n");
    play.entry(Body::ShellOutput(ShellOutput {
        run: run_id(),
        output: numbers(5),
        exit: Some(0),
        outcome: ToolOutcome::Ok,
    }));
    play.over();
    play.sees("! seq 20 ✓");
    for line in ["n1\n", "n5\n", "[exit status 0]"] {
        play.sees(line);
    }
}

#[test]
fn pasted_text_is_no_command() {
    let mut play = Play::chat();
    play.paste("!rm x\n!rm y");
    let effects = play.keys("<enter>");
    assert!(ran(&effects).is_empty(), "{effects:?}");
    assert!(
        effects.contains(&"say !rm x\n!rm y".to_owned()),
        "{effects:?}"
    );
    // A sign typed after other text is text, too.
    play.durable(message(person(), "x"));
    play.over();
    let effects = play.keys("a!b<enter>");
    assert!(effects.contains(&"say a!b".to_owned()), "{effects:?}");
}

#[test]
fn a_command_that_cannot_run_stays_in_the_input() {
    let mut play = Play::new(SessionInfo {
        is_remote: true,
        ..info(Kind::Chat)
    });
    play.opened();
    assert!(ran(&play.keys("!ls<enter>")).is_empty());
    play.sees("not available while attached");
    assert_eq!(play.input(), "!ls");
    let mut play = Play::chat();
    play.keys("!<enter>");
    play.sees("type a command after the !");
    let mut play = Play::asked();
    assert!(ran(&play.keys("!ls<enter>")).is_empty());
    play.sees("press Esc first");
    assert_eq!(play.input(), "!ls");
}

#[test]
fn deleting_the_line_ends_the_command() {
    let mut play = Play::chat();
    play.keys("!ls -l<^u>");
    assert_eq!(play.input(), "");
    play.keys("/info<enter>");
    play.sees("This session");
    let mut play = Play::chat();
    play.keys("!<^u>hello");
    assert_eq!(play.input(), "hello");
}

#[test]
fn a_command_is_recalled_as_one() {
    let mut play = Play::chat();
    play.keys("!ls<enter>");
    play.over();
    play.keys("<up>");
    assert_eq!(ran(&play.keys("<enter>")), ["ls"]);
    play.over();
    play.keys("!draft<up><down>");
    assert_eq!(play.input(), "!draft");
}

#[test]
fn a_refused_prompt_returns_to_the_input() {
    let mut play = Play::chat();
    play.keys("see @image<enter>");
    assert_eq!(play.input(), "");
    let text = "not sent: 'image' is not a text file".to_owned();
    play.live(LiveEvent::Session(SessionEvent::notice(Tone::Error, text)));
    play.over();
    assert_eq!(play.input(), "see @image");
}

#[test]
fn attached_files_are_named_below_the_message() {
    let mut play = Play::chat();
    play.keys("see @src/main.rs<enter>");
    play.durable(Message {
        attachments: vec![Attachment {
            path: "src/main.rs".to_owned(),
            bytes: 2148,
            content: "fn main() {}".to_owned(),
            cut: 0,
        }],
        ..message(person(), "see @src/main.rs")
    });
    play.over();
    play.sees("attached src/main.rs, 2.1 kB");
    assert_eq!(play.input(), "");
}
