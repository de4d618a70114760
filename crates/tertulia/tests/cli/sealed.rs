//! Sealed sessions: what is on disk, and what the commands do with and without the key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::home::{Backend, Home, both, until, until_draft};

const MARKER: &str = "xyzzyplugh";

/// Gives the home a key of its own, outside of the store, and returns its recipient.
pub fn with_key(home: &Home) -> String {
    let file = home.path().join("keys/age/id.txt");
    let made = home.run(&["seal", "--new-identity", file.to_str().unwrap()]);
    let recipient = made.ok().stdout.trim().to_owned();
    assert!(recipient.starts_with("age1"), "{recipient}");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    home.settings(&format!("[seal]\nidentity = {:?}\n", file));
    recipient
}

/// Takes the key away, as if the store had been copied to another machine.
pub fn without_key(home: &Home) {
    home.settings("");
}

/// Returns the files below a folder that hold a text.
fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().to_lowercase();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if let Ok(bytes) = fs::read(&path) {
            let lower = bytes.to_ascii_lowercase();
            let holds = lower
                .windows(text.len())
                .any(|part| part == text.as_bytes());
            if holds || name.contains(text) {
                found.push(path);
            }
        }
    }
    found
}

pub fn sealed_chat(home: &Home, words: &str) -> String {
    let args = [
        "chat",
        "--sealed",
        "--name",
        "the xyzzyplugh title",
        "--output-format",
        "json",
        "-p",
    ];
    let mut args = args.to_vec();
    args.push(words);
    let document = home.run(&args).ok().json();
    document["session_id"].as_str().unwrap().to_owned()
}

/// Returns the lines of a session as they are stored.
pub fn lines(home: &Home, id: &str) -> String {
    home.run(&["export", id, "--format", "jsonl"]).ok().stdout
}

#[test]
fn nothing_of_a_sealed_session_is_on_disk() {
    both(|home| {
        with_key(home);
        let id = sealed_chat(home, "a word: xyzzyplugh");
        home.say_in(&id, "once more xyzzyplugh");
        home.run(&["tag", &id, "+xyzzyplugh"]).ok();
        home.run(&["rename", &id, "another xyzzyplugh title"]).ok();
        let fork = home.run(&["fork", &id, "--json"]).ok().json();
        let fork = fork["id"].as_str().unwrap().to_owned();
        home.say_in(&fork, "in the fork xyzzyplugh");
        let hits = home.run(&["search", MARKER, "--json"]).ok().json();
        assert!(hits["total"].as_u64().unwrap() >= 3, "{hits}");
        home.run(&["stats"]).ok();
        assert_eq!(home.said(&id).len(), 4);
        assert_eq!(home.said(&fork).len(), 6);
        let listed = home.all();
        let row = listed.iter().find(|row| row["id"] == id.as_str()).unwrap();
        assert_eq!(row["title"], "another xyzzyplugh title");
        assert_eq!(row["tags"][0], MARKER);
        assert_eq!(holding(home.path(), MARKER), Vec::<PathBuf>::new());
    });
}

#[test]
fn without_the_key_counts_are_visible_and_words_are_not() {
    both(|home| {
        with_key(home);
        let id = sealed_chat(home, "a word: xyzzyplugh");
        without_key(home);
        let row: Value = home.all().remove(0);
        assert_eq!(row["sealed"], true);
        assert_eq!(
            (&row["title"], &row["project"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(row["messages"], 2);
        // The list of this project has it, too.
        let here = home.run(&["list", "--json"]).ok().json();
        assert_eq!(here["sessions"].as_array().unwrap().len(), 1);
        for args in [
            vec!["show", &id],
            vec!["export", &id, "--format", "md"],
            vec!["chat", "-r", &id, "-p", "again"],
            vec!["rename", &id, "title"],
        ] {
            let refused = home.run(&args).code(5);
            assert!(refused.stderr.contains("identity"), "{}", refused.stderr);
        }
        let hits = home.run(&["search", MARKER]).ok();
        assert!(hits.stderr.contains("1 sealed session"), "{}", hits.stderr);
        // What needs no key.
        home.run(&["doctor"]).ok();
        home.run(&["fork", &id]).ok();
        let copy = home.folder("copy");
        let url = format!("files:{}", copy.join("store").display());
        let before = lines(home, &id);
        home.run(&["store", "copy", &home.store_url(), &url]).ok();
        let copied = home.run(&["--store", &url, "export", &id, "--format", "jsonl"]);
        if home.backend() == crate::home::Backend::Sqlite {
            assert_eq!(copied.ok().stdout, before);
        }
    });
}

#[test]
fn a_plain_session_is_sealed_in_place_and_unsealed_to_the_same_bytes() {
    both(|home| {
        with_key(home);
        let id = home.say("a word: xyzzyplugh");
        home.run(&["tag", &id, "+xyzzyplugh"]).ok();
        home.run(&["search", MARKER]).ok();
        home.run(&["stats"]).ok();
        let plain = lines(home, &id);
        assert!(!holding(home.path(), MARKER).is_empty());
        home.run(&["seal", "-y", &id]).ok();
        assert_eq!(holding(home.path(), MARKER), Vec::<PathBuf>::new());
        home.run(&["doctor"]).ok();
        home.say_in(&id, "later");
        assert_eq!(home.said(&id).len(), 4);
        home.run(&["unseal", "-y", &id]).ok();
        home.run(&["doctor"]).ok();
        let unsealed = lines(home, &id);
        assert!(unsealed.starts_with(&plain), "{unsealed}\n{plain}");
        let hits = home.run(&["search", MARKER, "--json"]).ok().json();
        assert!(hits["total"].as_u64().unwrap() >= 1, "{hits}");
    });
}

#[test]
fn a_session_is_sealed_and_unsealed_with_its_forks() {
    both(|home| {
        with_key(home);
        let id = home.say("echo shared");
        let fork = |of: &str| {
            let fork = home.run(&["fork", of, "--json"]).ok().json();
            fork["id"].as_str().unwrap().to_owned()
        };
        let first = fork(&id);
        home.say_in(&first, "echo xyzzyplugh");
        let second = fork(&first);
        home.say_in(&second, "echo more");
        home.say_in(&id, "echo on");
        let all = [&id, &first, &second];
        let plain = all.map(|id| lines(home, id));
        let said = all.map(|id| home.said(id));
        // Off a terminal nothing is done unasked.
        home.run(&["seal", &id]).code(2).notes("add -y");
        home.run(&["seal", "-y", &id])
            .ok()
            .notes("shares entries with 2 forks, which are sealed with it")
            .notes(&crate::home::short(&second));
        assert_eq!(holding(home.path(), MARKER), Vec::<PathBuf>::new());
        assert!(home.all().iter().all(|row| row["sealed"] == true));
        assert_eq!(all.map(|id| home.said(id)), said);
        home.run(&["doctor"]).ok();
        // A fork that is made without the key is unsealed, too.
        without_key(home);
        let third = fork(&id);
        let key = home.path().join("keys/age/id.txt");
        home.settings(&format!("[seal]\nidentity = {key:?}\n"));
        home.run(&["unseal", "-y", &id]).ok().notes("3 forks");
        assert_eq!(all.map(|id| lines(home, id)), plain);
        assert_eq!(home.said(&third), said[0]);
        home.run(&["doctor"]).ok();
    });
}

#[test]
fn nothing_of_the_work_folder_is_left_in_the_store() {
    both(|home| {
        with_key(home);
        let folder = home.folder("plughfolder");
        let run = |args: &[&str]| home.prepare(args).folder(&folder).run().ok();
        let made = run(&["chat", "--agent", "demo", "--json", "-p", "echo one"]).json();
        let id = made["session_id"].as_str().unwrap().to_owned();
        run(&["search", "one"]);
        run(&["stats"]);
        run(&["list"]);
        for _ in 0..2 {
            assert!(!holding(home.path(), "dir:").is_empty());
            home.run(&["seal", "-y", &id]).ok();
            let left = holding(home.path(), "plughfolder");
            assert_eq!(left, Vec::<PathBuf>::new());
            home.run(&["doctor"]).ok();
            home.run(&["unseal", "-y", &id]).ok();
        }
    });
}

#[test]
fn who_has_no_key_is_told_what_to_set() {
    let home = &Home::new();
    let id = home.say("echo one");
    home.run(&["seal", "-y", &id])
        .code(5)
        .notes("no key to seal session")
        .notes("identity")
        .notes("passphrase_command")
        .lacks("is sealed");
    let bundle = home.path().join("x.age");
    let bundle = bundle.to_str().unwrap();
    let bogus = ["--recipient", "age1bogus", "-o", bundle];
    home.run(&[&["export", &id, "--format", "bundle"], &bogus[..]].concat())
        .code(2)
        .notes("age1bogus");
}

#[test]
fn a_project_has_its_sessions_sealed_for_recipients_that_the_user_trusts() {
    let (home, other) = (Home::new(), Home::new());
    with_key(&home);
    let recipient = with_key(&other);
    let file = home.folder("project/.tertulia").join("config.toml");
    let wanted = format!(
        "[seal]\ndefault = true\nrecipients = [{recipient:?}]\npassphrase_command = \"touch taken\"\n"
    );
    fs::write(&file, wanted).unwrap();
    let sealed = |home: &Home| {
        let first = lines(home, "@").lines().next().unwrap().to_owned();
        let first: Value = serde_json::from_str(&first).unwrap();
        let key = STANDARD.decode(first["seal"]["key"].as_str().unwrap());
        // Lengths do not tell: a wrapped key may have parts that are for no recipient.
        let key = String::from_utf8_lossy(&key.unwrap()).into_owned();
        key.matches("-> X25519 ").count()
    };
    let run = home.run(&["chat", "-p", "between us"]);
    run.ok()
        .notes("seal.passphrase_command counts only in your own settings")
        .notes("'seal.recipients'");
    assert_eq!(sealed(&home), 1);
    home.run(&["trust", "-y"]).ok();
    home.run(&["chat", "-p", "between all of us"]).ok();
    assert_eq!(sealed(&home), 2);
    assert!(!home.project().join("taken").exists());
    // The recipient reads the second one, and the first one only the user.
    let ids: Vec<String> = home.all().iter().map(|row| row["id"].to_string()).collect();
    assert_eq!(ids.len(), 2);
    home.run(&[
        "push",
        &format!("files:{}", other.path().join("store").display()),
    ])
    .ok();
    let other_store = format!("files:{}", other.path().join("store").display());
    let show = |back: &str| other.run(&["show", back, "--store", &other_store]);
    show("@").ok().says("between all of us");
    show("@~1").code(5);
    // A project cannot have the sessions of a user stored in plain.
    let own = home.path().join("keys/age/id.txt");
    home.settings(&format!("[seal]\ndefault = true\nidentity = {own:?}\n"));
    fs::write(&file, "[seal]\ndefault = false\n").unwrap();
    let run = home.run(&["chat", "-p", "still sealed"]);
    run.ok()
        .notes("seal.default = false counts only in your own settings");
    assert!(sealed(&home) > 0);
}

#[test]
fn what_cannot_look_into_sealed_sessions_says_so() {
    let home = Home::new();
    with_key(&home);
    let write = r#"use file_write {"path":"f.txt","content":"one line\n"}"#;
    home.run(&["chat", "--sealed", "--approve", "all", "-p", write])
        .ok();
    assert!(home.project().join("f.txt").exists());
    home.run(&["blame", "f.txt"])
        .ok()
        .notes("1 sealed session was not looked at");
    let blamed = home.run(&["blame", "f.txt", "--json"]).ok().json();
    assert_eq!(blamed["sealed"], 1, "{blamed}");
    // Its messages and tokens count for its project.
    let stats = home.run(&["stats", "--json"]).ok().json();
    assert_eq!(stats["totals"]["sessions"], 1, "{stats:#}");
}

#[test]
fn a_passphrase_seals_and_a_wrong_one_changes_nothing() {
    let home = Home::new();
    let seal = |passphrase: &str| {
        let command = format!("echo {passphrase}");
        home.settings(&format!(
            "[seal]\ndefault = true\nwork_factor = 4\npassphrase_command = {command:?}\n"
        ));
    };
    seal("right");
    let id = home.say("a word: xyzzyplugh");
    assert_eq!(home.said(&id).len(), 2);
    let before = lines(&home, &id);
    assert!(!before.contains(MARKER));
    seal("wrong");
    let refused = home.run(&["show", &id]).code(5);
    assert!(
        refused.stderr.contains("passphrase is wrong"),
        "{}",
        refused.stderr
    );
    home.run(&["unseal", "-y", &id]).code(5);
    home.run(&["chat", "-r", &id, "-p", "more"]).code(5);
    assert_eq!(lines(&home, &id), before);
    home.settings("");
    let refused = home.run(&["show", &id]).code(5);
    assert!(
        refused.stderr.contains("passphrase_command"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_key_file_that_others_can_read_or_that_lies_beside_the_store_is_refused() {
    let home = Home::new();
    with_key(&home);
    let id = sealed_chat(&home, "words");
    let file = home.path().join("keys/age/id.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = home.run(&["show", &id]).code(5);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let beside = home.database().with_file_name("id.txt");
    fs::copy(&file, &beside).unwrap();
    home.settings(&format!("[seal]\nidentity = {beside:?}\n"));
    let refused = home.run(&["show", &id]).code(5);
    assert!(
        refused.stderr.contains("folder of the store"),
        "{}",
        refused.stderr
    );
    let again = home.run(&["seal", "--new-identity", file.to_str().unwrap()]);
    again.code(5);
}

#[test]
fn a_bundle_is_imported_byte_for_byte_by_its_recipient() {
    let home = Home::new();
    let recipient = with_key(&home);
    let plain = home.say("a word: xyzzyplugh");
    let sealed = sealed_chat(&home, "sealed xyzzyplugh");
    let fork = home.run(&["fork", &plain, "--json"]).ok().json();
    let fork = fork["id"].as_str().unwrap().to_owned();
    home.say_in(&fork, "in the fork");
    let file = home.path().join("all.age");
    let name = file.to_str().unwrap();
    home.run(&[
        "export",
        &plain,
        &sealed,
        &fork,
        "-f",
        "bundle",
        "--recipient",
        &recipient,
        "-o",
        name,
    ])
    .ok();
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(!holding(home.path(), MARKER).contains(&file));
    let url = format!("files:{}", home.path().join("other").display());
    home.run(&["--store", &url, "import", name]).ok();
    for id in [&plain, &sealed, &fork] {
        let there = home.run(&["--store", &url, "export", id, "--format", "jsonl"]);
        assert_eq!(there.ok().stdout, lines(&home, id));
    }
    home.run(&["--store", &url, "doctor"]).ok();
    // A bundle that is cut off imports whole sessions only.
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 40]).unwrap();
    let empty = format!("files:{}", home.path().join("empty").display());
    let cut = home.run(&["--store", &empty, "import", name]).code(5);
    assert!(cut.stderr.contains("cut off"), "{}", cut.stderr);
    without_key(&home);
    let refused = home.run(&["--store", &empty, "import", name]).code(5);
    assert!(refused.stderr.contains("identity"), "{}", refused.stderr);
}

#[test]
fn a_draft_of_a_killed_program_is_sealed() {
    both(|home| {
        with_key(home);
        let config = home.path().join(".config/tertulia/config.toml");
        let settings = fs::read_to_string(&config).unwrap();
        let agent = "[agents.slow]\ntype = \"command\"\ncommand = \"sh\"\n\
                     args = [\"-c\", \"echo the xyzzyplugh answer begins so; sleep 60\"]\n";
        fs::write(&config, format!("{settings}{agent}")).unwrap();
        let mut command = home
            .prepare(&["chat", "--sealed", "--agent", "slow", "-p", "hi xyzzyplugh"])
            .command();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        match home.backend() {
            Backend::Sqlite => until_draft(&home.database()),
            Backend::Files => until("the half-written answer is saved", || {
                let drafts = fs::read_dir(home.files_folder().join(".drafts")).ok()?;
                let is_whole = |name: &Path| name.extension().is_none_or(|end| end != "new");
                let mut paths = drafts.map(|entry| entry.unwrap().path());
                paths.any(|path| is_whole(&path)).then_some(())
            }),
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holding(home.path(), MARKER), vec![config.clone()]);
        let id = home.all()[0]["id"].as_str().unwrap().to_owned();
        let said = home.said(&id);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[1].contains("the xyzzyplugh answer"), "{said:?}");
        assert_eq!(holding(home.path(), MARKER), vec![config]);
    });
}

#[test]
fn a_kill_while_a_session_is_sealed_leaves_it_whole() {
    both(|home| {
        with_key(home);
        let id = home.say("a word: xyzzyplugh");
        for turn in 0..20 {
            home.say_in(&id, &format!("xyzzyplugh {turn}"));
        }
        home.run(&["search", MARKER]).ok();
        let plain = lines(home, &id);
        let mut killed = 0;
        for number in (1..60).step_by(3) {
            let is_sealed = home.all()[0]["sealed"] == true;
            let command = if is_sealed { "unseal" } else { "seal" };
            let prepared = home.prepare(&[command, "-y", &id]);
            let calls = "pwrite64,write,fdatasync,fsync,rename,unlink,ftruncate";
            killed += u32::from(prepared.killed_at(calls, number));
            home.run(&["doctor"]).ok();
            assert_eq!(home.said(&id).len(), 42);
        }
        assert!(killed > 3, "{killed}");
        if home.all()[0]["sealed"] != true {
            home.run(&["seal", "-y", &id]).ok();
        }
        assert_eq!(holding(home.path(), MARKER), Vec::<PathBuf>::new());
        home.run(&["unseal", "-y", &id]).ok();
        assert_eq!(lines(home, &id), plain);
    });
}
