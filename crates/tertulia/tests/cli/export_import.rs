//! `export` and `import`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;

use crate::home::{Backend, Home, finish, messages};

/// Runs a check from each backend to the other.
fn pairs(check: impl Fn(&Home, &Home)) {
    for (from, to) in [
        (Backend::Sqlite, Backend::Files),
        (Backend::Files, Backend::Sqlite),
    ] {
        check(&Home::with(from), &Home::with(to));
    }
}

fn jsonl(home: &Home, reference: &str) -> String {
    home.run(&["export", reference, "--format", "jsonl"])
        .ok()
        .stdout
}

fn file(home: &Home, name: &str, content: &str) -> String {
    let path = home.path().join(name);
    fs::write(&path, content).unwrap();
    path.display().to_string()
}

#[test]
fn markdown_is_for_people() {
    let home = &Home::new();
    let id = home.say("count to 3");
    home.run(&["tag", &id, "+x"]).ok();
    let text = home.run(&["export", &id]).ok().stdout;
    assert!(text.starts_with("# count to 3\n\n"), "{text}");
    for words in [&id[..], "- tags: x", "## You · ", "## demo · ", "\n1 2 3\n"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert_eq!(home.run(&["export", "-f", "md"]).ok().stdout, text);
    assert_eq!(home.run(&["export", "-f", "markdown"]).ok().stdout, text);
}

#[test]
fn json_is_the_object_of_show() {
    let home = &Home::new();
    let id = home.say("count to 3");
    let exported = home.run(&["export", &id, "--format", "json"]).ok().json();
    assert_eq!(exported, home.show(&id));
    assert_eq!(messages(&exported).len(), 2);
}

#[test]
fn a_folder_is_not_replaced_and_nothing_is_left_beside_it() {
    let home = crate::home::Home::new();
    home.say("echo one");
    fs::create_dir(home.project().join("folder")).unwrap();
    let refused = home.run(&["export", "@", "-o", "folder", "--force"]);
    assert_eq!(refused.status.code(), Some(1));
    refused.notes("folder cannot be written");
    assert_eq!(fs::read_dir(home.project()).unwrap().count(), 1);
}

#[test]
fn a_file_is_for_its_owner_and_is_not_overwritten() {
    let home = &Home::new();
    home.say("echo one");
    let args = ["export", "@", "-f", "jsonl", "-o", "talk.jsonl"];
    let prepared = home.prepare(&args).umask("000");
    prepared.run().ok().notes("talk.jsonl");
    let path: PathBuf = home.project().join("talk.jsonl");
    let content = fs::read_to_string(&path).unwrap();
    assert_eq!(content, jsonl(home, "@"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    home.run(&["-c", "-p", "echo two"]).ok();
    let refused = home.run(&args);
    assert_eq!(refused.status.code(), Some(1));
    refused.notes("--force");
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    home.run(&[&args[..], &["--force"]].concat()).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), jsonl(home, "@"));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(home.project()).unwrap().count(), 1);
    let document = home
        .run(&["export", "@", "-o", "x.md", "--json"])
        .ok()
        .json();
    assert_eq!(document["file"], "x.md");
    home.run(&["export", "@", "-o", "no/such/folder.md"])
        .code(1);
    home.run(&["export", "@", "-f", "docx"]).code(2);
}

#[test]
fn a_full_disk_is_a_failure() {
    let home = &Home::new();
    home.say("echo one");
    let mut unnoticed = Vec::new();
    for args in [&["export", "@"][..], &["show", "@", "--json"], &["list"]] {
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let child = home
            .prepare(args)
            .command()
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = finish(child, &format!("{args:?} > /dev/full"));
        if output.status.code() != Some(1) || !output.stderr.contains("error") {
            unnoticed.push(args);
        }
    }
    assert_eq!(unnoticed, Vec::<&[&str]>::new());
}

#[test]
fn names_of_files_need_not_be_text() {
    let home = &Home::new();
    home.say("echo one");
    let name = OsStr::from_bytes(b"t\xff.jsonl");
    let args = ["export", "@", "-f", "jsonl", "--json", "-o"].map(OsStr::new);
    home.run(&[&args[..], &[name]].concat()).ok().json();
    let args = ["import", "--json"].map(OsStr::new);
    let document = home.run(&[&args[..], &[name]].concat()).ok().json();
    assert_eq!(document["imported"][0]["result"], "known");
}

#[test]
fn an_import_elsewhere_gives_the_same_bytes() {
    pairs(|from, to| {
        let id = from.say("count to 3");
        from.run(&["rename", &id, "Números 数"]).ok();
        from.run(&["tag", &id, "+x"]).ok();
        from.run(&["chat", "-r", &id, "-p", "fail"]).code(6);
        let log = jsonl(from, &id);
        let path = file(to, "talk.jsonl", &log);
        to.run(&["import", &path]).ok().says("imported as");
        assert_eq!(jsonl(to, &id), log);
        let mut expected = from.show(&id);
        let mut found = to.show(&id);
        assert_eq!(expected["entries"].take(), found["entries"].take());
        assert_eq!(expected, found);
        to.run(&["search", "--all", "números"]).ok().notes("1 hit");
        to.run(&["doctor"]).ok();
        assert_eq!(
            to.run(&["-r", &id, "--here", "-p", "echo on"]).ok().stdout,
            "on\n"
        );
    });
}

#[test]
fn a_second_import_adds_nothing() {
    pairs(|from, to| {
        let id = from.say("count to 3");
        let path = file(to, "talk.jsonl", &jsonl(from, &id));
        for (flag, result) in [("--dry-run", "created"), ("-q", "created"), ("-q", "known")] {
            let document = to.run(&["import", "--json", flag, &path]).ok().json();
            assert_eq!(document["imported"][0]["result"], result, "{flag}");
            let expected = if flag == "--dry-run" { 0 } else { 1 };
            assert_eq!(to.all().len(), expected);
        }
        to.run(&["import", &path]).ok().says("nothing new");
        assert_eq!(jsonl(to, &id), jsonl(from, &id));
        // Also in the original store, also after the session has continued.
        from.say_in(&id, "echo more");
        from.run(&["import", &path]).ok().says("nothing new");
        assert_eq!(from.all().len(), 1);
    });
}

#[test]
fn a_longer_log_extends() {
    pairs(|from, to| {
        let id = from.say("echo one");
        to.run(&["import", &file(to, "a.jsonl", &jsonl(from, &id))])
            .ok();
        from.say_in(&id, "echo two");
        let path = file(to, "b.jsonl", &jsonl(from, &id));
        to.run(&["import", &path]).ok().says("2 new entries");
        assert_eq!(jsonl(to, &id), jsonl(from, &id));
        assert_eq!(to.all().len(), 1);
    });
}

#[test]
fn a_log_that_went_another_way_becomes_a_fork() {
    pairs(|from, to| {
        let id = from.say("echo one");
        to.run(&["import", &file(to, "a.jsonl", &jsonl(from, &id))])
            .ok();
        from.say_in(&id, "echo theirs");
        to.say_in(&id, "echo ours");
        let path = file(to, "b.jsonl", &jsonl(from, &id));
        to.run(&["import", &path]).ok().says("fork");
        assert_eq!(to.said(&id), ["echo one", "one", "echo ours", "ours"]);
        let sessions = to.all();
        assert_eq!(sessions.len(), 2);
        let fork = sessions
            .iter()
            .find(|session| session["id"] != id.as_str())
            .unwrap();
        assert_eq!(
            fork["parent"],
            json!({ "id": id, "seq": 3, "relation": "conflict" })
        );
        let fork = fork["id"].as_str().unwrap();
        assert_eq!(to.said(fork), ["echo one", "one", "echo theirs", "theirs"]);
        to.run(&["import", &path]).ok().says("nothing new");
        assert_eq!(to.all().len(), 2);
        to.run(&["doctor"]).ok();
    });
}

#[test]
fn a_fork_is_taken_in_without_its_parent() {
    pairs(|from, to| {
        let id = from.say("echo one");
        let fork = from.run(&["fork", &format!("{id}:2")]).ok();
        let fork = fork.stdout.trim();
        from.say_in(fork, "echo two");
        let log = jsonl(from, fork);
        to.run(&["import", &file(to, "fork.jsonl", &log)]).ok();
        for command in [&["doctor"][..], &["doctor", "--repair"]] {
            to.run(command).ok();
            assert_eq!(jsonl(to, fork), log);
            to.run(&["show", &id]).code(3);
        }
    });
}

#[test]
fn a_fork_is_taken_in_before_its_parent() {
    pairs(|from, to| {
        let id = from.say("echo one");
        let fork = from.run(&["fork", &format!("{id}:2"), "--name", "F"]).ok();
        let fork = fork.stdout.trim();
        from.say_in(fork, "echo two");
        let log = jsonl(from, fork);
        to.run(&["import", &file(to, "fork.jsonl", &log)]).ok();
        assert_eq!(jsonl(to, fork), log);
        to.run(&["import", &file(to, "root.jsonl", &jsonl(from, &id))])
            .ok();
        assert_eq!(jsonl(to, &id), jsonl(from, &id));
        assert_eq!(jsonl(to, fork), log);
        to.run(&["doctor"]).ok();
    });
}

#[test]
fn an_altered_line_is_named_and_nothing_is_taken_in() {
    let home = &Home::new();
    let other = Home::new();
    let id = other.say("echo one");
    other.say_in(&id, "echo two");
    let log = jsonl(&other, &id);
    let lines: Vec<&str> = log.lines().collect();
    let without = [&lines[..2], &lines[3..]].concat().join("\n");
    let swapped = [lines[0], lines[2], lines[1], lines[3]].join("\n");
    let cases = [
        (log.replacen("\"one\"", "\"two\"", 1), "line 3"),
        (without, "line 3"),
        (swapped, "line 2"),
        (format!("{log}{{broken\n"), "line 6"),
        (log[..log.len() - 20].to_owned(), "line 5"),
    ];
    for (content, line) in cases {
        let path = file(home, "altered.jsonl", &content);
        home.run(&["import", &path])
            .code(5)
            .notes(line)
            .notes("nothing of it");
        let error = home.run(&["import", "--json", &path]).code(5).error();
        assert_eq!(error["kind"], "invalid");
        assert!(home.all().is_empty());
    }
    let headless = lines[1..].join("\n");
    home.run(&["import", &file(home, "h.jsonl", &headless)])
        .code(5);
    assert!(home.all().is_empty());
}

#[test]
fn what_is_no_log_is_refused_and_others_are_taken_in() {
    let home = &Home::new();
    let other = Home::new();
    let id = other.say("echo one");
    let good = file(home, "good.jsonl", &jsonl(&other, &id));
    let bad = file(home, "bad.txt", "just words\n");
    let empty = file(home, "empty.jsonl", "");
    home.run(&["import", &bad]).code(5).notes("bad.txt");
    home.run(&["import", &empty]).code(5);
    home.run(&["import", "--from", "tertulia", &empty]).code(5);
    home.run(&["import", "nosuch.jsonl"])
        .code(3)
        .notes("nosuch.jsonl");
    home.run(&["import"]).code(2);
    home.run(&["import", &bad, &good])
        .code(5)
        .says("imported as")
        .notes("bad.txt");
    assert_eq!(home.said(&id), ["echo one", "one"]);
}

#[test]
fn standard_input_is_imported() {
    pairs(|from, to| {
        let id = from.say("echo one");
        let log = jsonl(from, &id);
        to.prepare(&["import", "-"]).stdin(&log).run().ok();
        assert_eq!(jsonl(to, &id), log);
        // Other line endings, as an editor may save them, change nothing.
        let windows = log.replace('\n', "\r\n") + "\r\n";
        to.prepare(&["import", "-"])
            .stdin(windows)
            .run()
            .ok()
            .says("nothing new");
    });
}
