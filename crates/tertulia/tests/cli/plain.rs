//! Sessions of every kind in line mode: on request, and on terminals without other capabilities.

use crate::home::Home;
use crate::pty::{CAPABLE, CTRL_D, DUMB, Terminal};

/// A kind of session: its command, its prompt, texts that only its help has or lacks, and a slash
/// command that does not apply to it with the resulting message.
struct Kind {
    command: &'static [&'static str],
    prompt: &'static str,
    help: &'static [&'static str],
    lacks: &'static [&'static str],
    elsewhere: (&'static str, &'static str),
}

const KINDS: [Kind; 3] = [
    Kind {
        command: &["chat"],
        prompt: "you> ",
        help: &["summarise older messages", "Ctrl+C stops the answer"],
        lacks: &["/members", "/go "],
        elsewhere: ("/members", "this session has no team"),
    },
    Kind {
        command: &["team", "demo"],
        prompt: "You> ",
        help: &["who is here", "/as NAME", "[DROP: ALL]", "/compact"],
        lacks: &["/go "],
        elsewhere: ("/compact", "nothing to compact"),
    },
    Kind {
        command: &["pair"],
        prompt: "you> ",
        help: &["continue unfinished work", "[r+5] or [r=10]"],
        lacks: &["/compact", "/members"],
        elsewhere: ("/as ann", "this session has no team"),
    },
];

/// Runs `/help`, sends a message and exits. Returns everything shown.
fn talk(home: &Home, kind: &Kind, flags: &[&str], variables: &[(&str, &str)]) -> String {
    let args = [kind.command, flags].concat();
    let mut terminal = Terminal::open(home, &args, variables);
    terminal.sees(kind.prompt, 1);
    terminal.types("/help\n");
    terminal.sees(kind.prompt, 2);
    let help = terminal.shown();
    for words in kind.help {
        assert!(help.contains(words), "{args:?}: no {words:?} in {help}");
    }
    for words in kind.lacks {
        assert!(!help.contains(words), "{args:?}: {words:?} in {help}");
    }
    let (command, words) = kind.elsewhere;
    terminal.types(format!("{command}\n"));
    terminal.sees(words, 1);
    terminal.sees(kind.prompt, 3);
    terminal.types("plan a bird table\n");
    terminal.sees(kind.prompt, 4);
    terminal.types(CTRL_D);
    let (code, shown) = terminal.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("Resume: tertulia --resume"), "{shown}");
    shown
}

/// Returns true if the output contains sequences that take over the whole screen.
fn takes_the_screen(shown: &str) -> bool {
    shown.contains("\u{1b}[?1049h") || shown.contains("\u{1b}[2J") || shown.contains("\u{1b}[H")
}

#[test]
fn a_capable_terminal_is_used_line_by_line_when_that_is_asked_for() {
    for kind in &KINDS {
        let home = Home::new();
        home.run(&["team", "init"]).ok();
        let shown = talk(&home, kind, &["--plain"], &[CAPABLE]);
        assert!(!takes_the_screen(&shown), "{shown:?}");
        // It still has colours.
        assert!(shown.contains('\u{1b}'), "{shown:?}");
        assert_eq!(home.said("@")[0], "plan a bird table");
    }
}

#[test]
fn a_terminal_that_can_do_no_more_is_used_line_by_line() {
    for kind in &KINDS {
        for term in [DUMB, ("TERM", "")] {
            let home = Home::new();
            home.run(&["team", "init"]).ok();
            let shown = talk(&home, kind, &["--no-color"], &[term]);
            assert!(!shown.contains('\u{1b}'), "{shown:?}");
            assert_eq!(home.said("@")[0], "plan a bird table");
        }
    }
}

/// Every command and key that exits one kind of session exits all kinds.
#[test]
fn every_way_to_leave_leaves_every_kind() {
    let home = Home::new();
    home.run(&["team", "init"]).ok();
    for kind in &KINDS {
        for keys in ["/exit\n", "/end\n", "/quit\n"] {
            let args = [kind.command, &["--plain"]].concat();
            let mut terminal = Terminal::open(&home, &args, &[CAPABLE]);
            terminal.sees(kind.prompt, 1);
            terminal.types(keys);
            let (code, shown) = terminal.ends();
            assert_eq!(code, 0, "{args:?} {keys:?}: {shown}");
        }
    }
    assert!(home.all().is_empty());
}

/// Without a terminal `--plain` changes nothing.
#[test]
fn it_changes_nothing_off_a_terminal() {
    let home = Home::new();
    let output = home.run(&["chat", "--plain", "-p", "echo hello"]).ok();
    assert_eq!(output.stdout, "hello\n");
}

/// The commands about sessions, in one run.
#[test]
fn sessions_are_managed_in_line_mode() {
    let home = Home::new();
    let other = home.say("echo the walrus");
    let mut lines = Terminal::open(&home, &["--plain"], &[]);
    lines.sees("you> ", 1);
    lines.types("/rename x\n");
    lines.sees("no messages yet", 1);
    lines.types("echo one\n");
    lines.sees("you> ", 3);
    lines.types("/rename Ibex talk\n");
    lines.sees("is now \"Ibex talk\"", 1);
    lines.types("/tag +horn\n");
    lines.sees("you> ", 5);
    lines.types("/sessions\n");
    lines.sees("#horn", 1);
    lines.types("/search walrus\n");
    lines.sees("hit", 1);
    lines.types("/stats\n");
    lines.sees("you> ", 8);
    lines.types("/agents\n");
    lines.sees("ready", 1);
    lines.types("/export md out.md\n");
    lines.sees("out.md", 2);
    lines.types("/serach walrus\n");
    lines.sees("did you mean /search?", 1);
    lines.types("/fork\n");
    lines.sees("Resumed \"Ibex talk", 1);
    lines.types("/tree\n");
    lines.sees("fork at", 1);
    lines.types("/rewind 99\n");
    lines.sees("is not one to go back to", 1);
    lines.types("/rewind 2\n");
    lines.sees("Went back to before: echo one", 1);
    lines.types("/resume nowhere\n");
    lines.sees("nowhere", 2);
    lines.types(format!("/resume {other}\n"));
    lines.sees("Resumed \"echo the walrus\"", 1);
    lines.types("/compare @~1\n");
    lines.types("/model\n");
    lines.sees("demo-1", 1);
    lines.types("/agents not-here\n");
    lines.sees("not-here", 2);
    lines.types("/new\n");
    lines.types("echo fresh\n");
    lines.sees("fresh", 2);
    lines.types(CTRL_D);
    let (code, shown) = lines.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(home.project().join("out.md").exists(), "{shown}");
    assert_eq!(home.said("@")[0], "echo fresh");
}
