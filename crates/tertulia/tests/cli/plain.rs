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
        help: &["sum up the older part", "Ctrl+C stops the answer"],
        lacks: &["/members", "/go "],
        elsewhere: ("/members", "this session has no team"),
    },
    Kind {
        command: &["team", "demo"],
        prompt: "You> ",
        help: &["who is here", "/as NAME", "[DROP: ALL]"],
        lacks: &["/compact", "/go "],
        elsewhere: ("/compact", "not needed here"),
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
