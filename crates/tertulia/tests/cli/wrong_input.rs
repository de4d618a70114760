//! Invalid input, and general output rules: exit codes, flags, colours.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::Value;

use crate::home::{Home, both, files_below, keys};

#[test]
fn a_message_that_is_too_long_is_refused_before_it_is_written() {
    let home = &Home::new();
    let long = "x".repeat(1_000_001);
    let output = home.prepare(&["chat"]).stdin(&long).run().code(5);
    output.notes("1000001").notes("1000000");
    let huge = "x".repeat(3_000_000);
    home.prepare(&["chat", "-p"])
        .stdin(&huge)
        .run()
        .code(5)
        .notes("3000000");
    assert!(home.all().is_empty());
    let fits = "x".repeat(1_000_000);
    home.prepare(&["chat"]).stdin(&fits).run().ok();
    assert_eq!(home.said("@")[0], fits);
}

#[test]
fn a_prompt_that_does_not_fit_with_its_attachment_is_refused() {
    let home = Home::new();
    let almost = "x".repeat(1_000_000);
    let prompt = "y".repeat(100_000);
    home.prepare(&["chat", "-p", &prompt])
        .stdin(&almost)
        .run()
        .code(5);
    assert!(home.all().is_empty());
}

#[test]
fn what_is_not_text_is_refused() {
    let home = &Home::new();
    let output = home
        .prepare(&["chat"])
        .stdin(b"abc\xff\xfedef")
        .run()
        .code(5);
    output.notes("UTF-8").notes("position 3");
    let output = home.prepare(&["chat"]).stdin(b"abc\0def").run().code(5);
    output.notes("NUL").notes("position 3");
    assert!(home.all().is_empty());
    home.say("hello");
    home.prepare(&["-c"]).stdin(b"abc\0def").run().code(5);
    home.prepare(&["-c"]).stdin(b"\xff").run().code(5);
    assert_eq!(home.entries("@"), 3);
}

#[test]
fn an_argument_that_is_not_text_is_wrong_usage() {
    let home = Home::new();
    let bytes = OsStr::from_bytes(b"abc\xff");
    home.run(&[OsStr::new("chat"), OsStr::new("-p"), bytes])
        .code(2);
    home.run(&[OsStr::new("show"), bytes]).code(2);
}

#[test]
fn odd_text_is_kept_byte_for_byte() {
    let home = &Home::new();
    let words = "  indented\r\n\ttabs \u{1b}[31mred\u{1b}[0m \u{202e}rtl 😀 e\u{301} \u{feff}\n\n";
    home.prepare(&["chat"]).stdin(words).run().ok();
    assert_eq!(home.said("@")[0], words);
}

#[test]
fn a_path_is_no_id() {
    both(|home| {
        home.say("hello");

        for path in [
            "../../../etc/passwd",
            "/etc/passwd",
            "..",
            "a/b",
            "%2e%2e%2f",
        ] {
            for command in ["show", "export", "fork", "log", "restore"] {
                let code = home.run(&[command, path]).status.code();
                assert!(
                    [Some(2), Some(3)].contains(&code),
                    "{command} {path}: {code:?}"
                );
            }
        }
        let store = [
            home.path().join(".local"),
            home.path().join(".config"),
            home.files_folder(),
        ];
        let outside = files_below(home.path())
            .into_iter()
            .filter(|path| !store.iter().any(|folder| path.starts_with(folder)));
        assert_eq!(
            outside.collect::<Vec<_>>(),
            Vec::<std::path::PathBuf>::new()
        );
    });
}

#[test]
fn an_unknown_command_suggests_the_nearest() {
    let home = Home::new();
    for (typed, meant) in [
        ("lst", "list"),
        ("lsit", "list"),
        ("serach", "search"),
        ("exprot", "export"),
        ("docter", "doctor"),
        ("undoo", "undo"),
    ] {
        let output = home.run(&[typed]).code(2);
        output.notes(typed).notes(&format!("tertulia {meant}"));
    }
    let output = home.run(&["frobnicate"]).code(2);
    output.notes("frobnicate").notes("tertulia chat frobnicate");
    assert!(!home.database().exists());
}

#[test]
fn unknown_flags_and_values_are_wrong_usage() {
    let home = Home::new();
    for args in [
        &["--frobnicate"][..],
        &["list", "--frobnicate"],
        &["list", "--limit", "many"],
        &["list", "--limit", "-1"],
        &["list", "--kind", "choir"],
        &["list", "--since", "someday"],
        &["list", "extra"],
        &["show", "a", "b"],
        &["show", "--last", "x"],
        &["chat", "--output-format", "yaml", "-p", "x"],
        &["search", "--role", "king", "x"],
        &["rename", "x"],
        &["fork"],
        &["-c", "list"],
    ] {
        let output = home.run(args).code(2);
        assert!(
            !output.stderr.is_empty() && output.stdout.is_empty(),
            "{args:?}"
        );
    }
}

#[test]
fn errors_as_json_are_one_object() {
    let home = Home::new();
    home.say("hello");
    for (args, code, kind) in [
        (&["show", "nosuch"][..], 3, "not_found"),
        (&["list", "--limit", "x"], 2, "usage"),
        (&["--frobnicate"], 2, "usage"),
        (&["frobnicate"], 2, "usage"),
        (&["rm", "@"], 2, "usage"),
        (&["chat", "-p", "fail"], 6, "agent"),
        (&["undo"], 3, "not_found"),
        (&["import", "/nosuch"], 3, "not_found"),
        (&["export", "-o", "/proc/x"], 1, "failed"),
    ] {
        let args = [args, &["--json"]].concat();
        let output = home.run(&args).code(code);
        let lines: Vec<&str> = output.stderr.lines().collect();
        let line = lines
            .iter()
            .find(|line| line.starts_with("{\"error\""))
            .unwrap_or_else(|| {
                panic!("{args:?}: {output:?}");
            });
        let document: Value = serde_json::from_str(line).unwrap();
        assert_eq!(keys(&document), ["error"]);
        assert_eq!(keys(&document["error"]), ["hint", "kind", "message"]);
        assert_eq!(document["error"]["kind"], kind, "{args:?}");
        assert!(!document["error"]["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn global_flags_stand_before_and_after_the_command() {
    let home = Home::new();
    home.say("hello");
    let other = format!("files:{}", home.path().join("other").display());
    let data = home.path().join("data").display().to_string();
    let check = |args: &[&str]| home.run(args).ok().stdout;
    assert_eq!(check(&["--json", "list"]), check(&["list", "--json"]));
    assert_eq!(
        check(&["--store", &other, "list"]),
        check(&["list", "--store", &other])
    );
    assert_eq!(check(&["list", "--store", &other]), "");
    assert_eq!(
        check(&["--data-dir", &data, "list"]),
        check(&["list", "--data-dir", &data])
    );
    assert_eq!(
        check(&["store", "--json", "info"]),
        check(&["store", "info", "--json"])
    );
    for args in [
        ["-q", "list"],
        ["list", "-q"],
        ["--no-color", "list"],
        ["list", "--no-color"],
    ] {
        assert_eq!(check(&args), check(&["list"]));
    }
    home.run(&["-v", "list"]).ok().notes("store: sqlite:");
    home.run(&["list", "-v"]).ok().notes("store: sqlite:");
    home.run(&["list"]).ok().lacks("store: sqlite:");
}

#[test]
fn quiet_prints_no_notes() {
    let home = &Home::new();
    for args in [
        &["chat", "-q", "-p", "hello"][..],
        &["-q", "list"],
        &["rename", "@", "x", "-q"],
        &["-q", "tag", "@", "+x"],
        &["-q", "search", "demo"],
        &["fork", "@", "-q"],
        &["rm", "-y", "-q", "@"],
        &["-q", "undo"],
        &["prune", "-q", "-y"],
        &["export", "@", "-q", "-o", "file.md"],
        &["-q", "store", "rebuild"],
    ] {
        let output = home.run(args).ok();
        assert_eq!(output.stderr, "", "{args:?}");
    }
    home.run(&["-q", "show", "nosuch"]).code(3).notes("error:");
}

#[test]
fn no_escape_codes_off_a_terminal() {
    let home = Home::new();
    home.say("hello");
    for args in [
        &["list"][..],
        &["show"],
        &["search", "hello"],
        &["log", "--graph"],
        &["show", "nosuch"],
        &["--help"],
        &["list", "--limit", "x"],
        &["-c", "-p", "hello"],
    ] {
        for (name, value) in [("TZ", "UTC"), ("TERM", "xterm-256color"), ("CLICOLOR", "1")] {
            home.prepare(args).env(name, value).run().lacks("\u{1b}");
        }
        home.prepare(args)
            .env("NO_COLOR", "1")
            .run()
            .lacks("\u{1b}");
    }
}

#[test]
fn the_exit_codes_are_those_of_the_table() {
    let home = Home::new();
    home.say("hello");
    let id = home.all()[0]["id"].as_str().unwrap().to_owned();
    home.run(&["list"]).code(0);
    home.run(&["export", "@", "-o", "/nosuch/folder/x"]).code(1);
    home.run(&["list", "--frobnicate"]).code(2);
    home.run(&["show", "nosuch"]).code(3);
    home.run(&["chat", "--session-id", &id, "-p", "x"]).code(4);
    home.prepare(&["chat"]).stdin(b"\xff").run().code(5);
    home.run(&["chat", "-p", "fail"]).code(6);
}

#[test]
fn nothing_to_say_forks_and_renames_nothing() {
    let home = Home::new();
    home.say("echo one");
    let before = home.run(&["list", "--json"]).ok().stdout;
    home.run(&["-c", "--fork", "--name", "X", "-p"]).code(2);
    assert_eq!(home.run(&["list", "--json"]).ok().stdout, before);
}

#[test]
fn a_title_that_is_a_command_is_a_title() {
    let home = Home::new();
    home.say("echo one");
    home.run(&["chat", "--name", "tag", "-c", "-p", "echo go on"])
        .ok();
    let sessions = home.run(&["list", "--json"]).ok().json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(sessions["sessions"][0]["title"], "tag");
}

#[test]
fn a_number_beyond_all_sessions_is_not_found() {
    let home = Home::new();
    home.say("echo one");
    home.run(&["show", "@~18446744073709551615"]).code(3);
}

#[test]
fn a_mistyped_command_with_words_starts_no_talk() {
    let home = Home::new();
    home.run(&["serch", "parser", "bug"])
        .code(2)
        .notes("tertulia search")
        .notes("tertulia chat 'serch parser bug'");
    assert!(!home.database().exists());
}
