//! `push`, `pull`, `sync`: between stores of this machine, over a stand-in for ssh, watching, and
//! killed in the middle.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tertulia_core::id::SessionId;
use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::idle::is_idle;
use tertulia_testkit::logs::{Writer, ai, human};

use crate::home::{Backend, Home, Prepared, both, files_below, finish, keys, short, until};

fn contents(home: &Home) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = home
        .all()
        .iter()
        .map(|session| {
            let id = session["id"].as_str().unwrap();
            (id.to_owned(), home.said(id))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn two_stores_become_equal_and_then_nothing_moves() {
    both(|here| {
        let there = Home::new();
        let (ours, theirs) = (here.say("echo ours"), there.say("echo theirs"));
        here.run(&["tag", &ours, "+x"]).ok();
        there.run(&["rm", "-y", &theirs]).ok();
        let url = there.store_url();
        let sync = here.run(&["sync", &url, "--json"]).ok().json();
        assert_eq!(
            keys(&sync),
            ["diverged", "pulled", "pushed", "skipped", "with"]
        );
        assert_eq!(sync["with"], url.as_str());
        assert_eq!(
            sync["pulled"],
            json!({ "sessions": 1, "entries": 4, "created": 1, "extended": 0, "forked": 0 })
        );
        assert_eq!(sync["pushed"]["created"], 1);
        assert_eq!(contents(here), contents(&there));
        assert_eq!(there.show(&ours)["tags"], json!(["x"]));
        // The trash is an entry like others.
        here.run(&["list", "--all", "--trash"])
            .ok()
            .says("echo theirs");
        here.run(&["search", "--all", "ours"]).ok().lacks("Nothing");
        here.run(&["sync", &url])
            .ok()
            .notes("Pulled nothing new from")
            .notes("Pushed nothing new to");
        here.say_in(&ours, "echo more");
        here.run(&["push", &url])
            .ok()
            .notes("Pushed 2 entries (1 session extended) to");
        // It moves to the other home's folder, which is an entry, too.
        there.say_in(&ours, "echo back");
        here.run(&["pull", &url])
            .ok()
            .notes("Pulled 3 entries (1 session extended) from");
        assert_eq!(contents(here), contents(&there));
        here.run(&["doctor"]).ok();
        there.run(&["doctor"]).ok();
    });
}

#[test]
fn what_diverged_offline_survives_on_both_sides() {
    let (here, there) = (Home::new(), Home::with(Backend::Files));
    let id = here.say("echo shared");
    let url = there.store_url();
    here.run(&["push", &url]).ok();
    here.say_in(&id, "echo ours");
    there.say_in(&id, "echo theirs");
    let would = here.run(&["sync", &url, "--dry-run", "--json"]).ok().json();
    assert_eq!((here.all().len(), there.all().len()), (1, 1));
    let done = here.run(&["sync", &url, "--json"]).ok().json();
    assert_eq!(would, done);
    let diverged = done["diverged"].as_array().unwrap();
    assert_eq!(diverged.len(), 2);
    for (home, side, mine, other) in [
        (&here, "here", "echo ours", "echo theirs"),
        (&there, "there", "echo theirs", "echo ours"),
    ] {
        let found = diverged.iter().find(|it| it["side"] == side).unwrap();
        assert_eq!(found["session"], id.as_str());
        let fork = found["fork"].as_str().unwrap();
        assert_eq!(home.said(&id)[2], mine);
        assert_eq!(home.said(fork)[2], other);
        assert_eq!(home.show(fork)["parent"]["relation"], "conflict");
        home.run(&["log", &id, "--graph"])
            .ok()
            .says(&format!("└─○ {}", short(fork)))
            .says("conflict at 3");
    }
    // The other continuation grows in its fork, whichever side it grows on.
    let fork = |home: &Home| {
        let all = home.all();
        let fork = all.iter().find(|session| session["id"] != id.as_str());
        fork.unwrap()["id"].as_str().unwrap().to_owned()
    };
    there.say_in(&id, "echo theirs again");
    here.say_in(&fork(&here), "echo to theirs");
    // Both sides continued the same branch: that diverges once more.
    here.run(&["sync", &url])
        .ok()
        .notes("continued on both sides");
    here.run(&["sync", &url]).ok().notes("Pulled nothing new");
    assert_eq!((here.all().len(), there.all().len()), (3, 3));
    let texts = |home: &Home| {
        let mut texts: Vec<_> = contents(home).into_iter().map(|(_, said)| said).collect();
        texts.sort();
        texts
    };
    assert_eq!(texts(&here), texts(&there));
    here.run(&["doctor"]).ok();
    there.run(&["doctor"]).ok();
}

#[test]
fn the_usual_partner_comes_from_the_settings() {
    let (here, there) = (Home::new(), Home::new());
    here.say("echo one");
    for command in ["push", "pull", "sync"] {
        let output = here.run(&[command, "--json"]).code(2);
        assert!(
            output.error()["hint"]
                .as_str()
                .unwrap()
                .contains("[sync] with")
        );
    }
    here.settings(&format!("[sync]\nwith = \"{}\"\n", there.store_url()));
    here.run(&["sync"]).ok().notes("1 new session");
    assert_eq!(contents(&here), contents(&there));
    // A project that is not trusted chooses no partner.
    here.settings("");
    let folder = here.project().join(".tertulia");
    fs::create_dir(&folder).unwrap();
    let settings = format!("[sync]\nwith = \"{}\"\n", there.store_url());
    fs::write(folder.join("config.toml"), settings).unwrap();
    here.run(&["sync"])
        .code(2)
        .notes("ignored without your trust");
}

#[test]
fn wrong_partners_are_named() {
    let home = Home::new();
    home.say("echo one");
    home.run(&["pull", "sqlite:no.db"]).code(3).notes("no.db");
    home.run(&["sync", "files:no", "--dry-run"]).code(3);
    assert_eq!(fs::read_dir(home.project()).unwrap().count(), 0);
    home.run(&["sync", &home.store_url()])
        .code(2)
        .notes("the same store");
    for wrong in [
        "desk",
        "ssh://",
        "ssh://-oProxyCommand=x",
        "sqlite::memory:",
        "http://x",
    ] {
        home.run(&["sync", wrong]).code(2).notes(wrong);
    }
    fs::write(home.project().join("text"), "no store").unwrap();
    home.run(&["sync", "sqlite:text"]).code(5).notes("text");
}

#[test]
fn what_is_readable_moves_and_damage_is_named() {
    let (here, there) = (Home::new(), Home::with(Backend::Files));
    let (hurt, sound) = (there.say("echo tomatoes"), there.say("echo potatoes"));
    there.say_in(&hurt, "echo later words");
    let mut logs = files_below(&there.files_folder()).into_iter();
    let name = format!("{hurt}.jsonl");
    let log = logs.find(|path| path.to_string_lossy().ends_with(&name));
    let log = log.unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let at = text.rfind("tomatoes").unwrap();
    let mut bytes = text.into_bytes();
    bytes[at] = b'T';
    fs::write(&log, bytes).unwrap();
    let url = there.store_url();
    let output = here.run(&["pull", &url, "--json"]).code(5);
    let pulled = output.json();
    assert_eq!(pulled["skipped"][0]["session"], hurt.as_str());
    let reason = pulled["skipped"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("does not match its hash"), "{reason}");
    assert_eq!(here.said(&sound).len(), 2);
    // What stands before the damage is there.
    assert_eq!(here.said(&hurt), ["echo tomatoes"]);
    there.run(&["doctor", "--repair"]).repaired();
    here.run(&["sync", &url]).ok();
    assert_eq!(contents(&here), contents(&there));
    here.run(&["doctor"]).ok();
}

/// Makes a stand-in for ssh that runs the command in another home.
fn stand_in(here: &Home, there: &Home) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_tertulia")).parent().unwrap();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{0}/calls'\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\n\
         exec env -i HOME='{1}' PATH='{2}':\"$PATH\" sh -c \"$*\"\n",
        here.path().display(),
        there.path().display(),
        program.display()
    );
    let path = here.path().join("ssh");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn over<'a>(here: &'a Home, ssh: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Prepared<'a> {
    here.prepare(args).env("TERTULIA_SSH", ssh)
}

#[test]
fn another_machine_needs_nothing_but_the_program() {
    let (here, there) = (Home::with(Backend::Files), Home::new());
    let ssh = stand_in(&here, &there);
    let (ours, theirs) = (here.say("echo ours"), there.say("echo theirs"));
    let sync = |url: &str| over(&here, &ssh, &["sync", url]).run().ok();
    sync("ssh://ada@desk:2222").notes("1 new session");
    let calls = fs::read_to_string(here.path().join("calls")).unwrap();
    assert_eq!(calls, "-p 2222 -- ada@desk tertulia sync-serve\n");
    assert_eq!(contents(&here), contents(&there));
    sync("ssh://desk")
        .notes("Pushed nothing new")
        .notes("Pulled nothing new");
    here.say_in(&ours, "echo here");
    there.say_in(&ours, "echo there");
    there.say_in(&theirs, "echo more");
    sync("ssh://desk")
        .notes("continued on both sides")
        .notes("1 session extended");
    sync("ssh://desk")
        .notes("Pushed nothing new")
        .notes("Pulled nothing new");
    assert_eq!((here.all().len(), there.all().len()), (3, 3));
    // A database and a folder at paths of their own, the second with characters of a shell.
    let odd = there.folder("it's $HOME;x");
    sync(&format!("ssh://desk{}", odd.display())).notes("Pushed");
    assert!(
        files_below(&odd)
            .iter()
            .any(|path| path.extension().is_some_and(|it| it == "jsonl"))
    );
    sync("ssh://desk/~/other.db").notes("Pushed");
    assert!(there.path().join("other.db").exists());
    here.run(&["doctor"]).ok();
    there.run(&["doctor"]).ok();
}

#[test]
fn a_link_that_fails_says_why() {
    let (here, there) = (Home::new(), Home::new());
    here.say("echo one");
    let fails = |ssh: &str, words: &str| {
        over(&here, ssh, &["sync", "ssh://desk"])
            .run()
            .code(1)
            .notes(words);
    };
    fails("no-such-ssh", "no ssh here");
    let script = |name: &str, text: &str| {
        let path = here.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    fails(&script("absent", "exit 127"), "install tertulia there");
    fails(
        &script("down", "echo 'no route' >&2; exit 255"),
        "could not connect",
    );
    fails(&script("chatty", "echo Welcome"), "must print nothing");
    let newer = r#"echo '{"tertulia_sync":99,"store":"x"}'; cat >/dev/null"#;
    fails(&script("newer", newer), "upgrade tertulia on this machine");
    // Cut after some answers: what arrived stays, and the next run continues.
    for number in 0..5 {
        there.say(&format!("echo {number}"));
    }
    let ssh = stand_in(&here, &there);
    // The end of `sed` is the end of the link: in a pipeline, the shell would keep it open, and a line that
    // `sed` did not read would be waited for.
    let begin = "mkfifo \"$0.pipe\"; exec 3<&0";
    let far = format!("'{}' \"$@\" <&3 >\"$0.pipe\" &", ssh.display());
    let cut = script(
        "cut",
        &format!("{begin}\n{far}\nexec sed -u 8q \"$0.pipe\""),
    );
    fails(&cut, "link was cut");
    let arrived = here.all().len();
    assert!((1..6).contains(&arrived), "{arrived}");
    over(&here, &ssh, &["sync", "ssh://desk"]).run().ok();
    assert_eq!(contents(&here), contents(&there));
}

#[test]
fn the_far_end_of_a_link_keeps_no_line_without_end() {
    let there = Home::new();
    let mut child = there
        .prepare(&["sync-serve"])
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut requests = child.stdin.take().unwrap();
    let piece = vec![b'x'; 1_000_000];
    let mut taken = 0;
    while requests.write_all(&piece).is_ok() {
        taken += 1;
        assert!(taken < 20, "the far end reads on");
    }
    finish(child, "sync-serve")
        .code(1)
        .notes("a line of more than 8000000 bytes");
}

/// Starts `sync --watch` and returns it with the lines that it prints.
pub fn watching(prepared: &Prepared<'_>) -> (Child, impl Iterator<Item = String>) {
    let mut child = prepared
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    (child, lines.map_while(Result::ok))
}

fn watch_both_ways(here: &Home, there: &Home, prepared: &Prepared<'_>) {
    let id = here.say("echo before");
    let (mut child, mut lines) = watching(prepared);
    let first = lines.next().unwrap();
    assert!(first.contains("exchanging sessions with"), "{first}");
    let has = |home: &Home, id: &str, count: usize| {
        until("the session is exchanged", || {
            let session = home.run(&["show", id, "--json"]);
            let is_there = session.status.success() && home.said(id).len() == count;
            is_there.then_some(())
        });
    };
    has(there, &id, 2);
    let theirs = there.say("echo theirs");
    has(here, &theirs, 2);
    here.say_in(&theirs, "echo answer");
    has(there, &theirs, 4);
    assert!(lines.next().unwrap().contains("pushed 3 entries"));
    // Nothing happens: nothing is done.
    until("the watch is idle", || {
        is_idle(child.id(), Duration::from_millis(1500)).then_some(())
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(!child.wait().unwrap().success());
    here.run(&["doctor"]).ok();
    there.run(&["doctor"]).ok();
}

#[test]
fn a_watch_exchanges_changes_and_costs_nothing_when_idle() {
    let (here, there) = (Home::new(), Home::with(Backend::Files));
    there.say("echo first");
    let prepared = here.prepare(&["sync", "--watch", &there.store_url()]);
    watch_both_ways(&here, &there, &prepared);
}

#[test]
fn a_watch_says_once_what_it_cannot_move() {
    let (here, there) = (Home::with(Backend::Files), Home::new());
    there.say("echo theirs");
    here.say("echo damaged");
    let log = files_below(&here.files_folder())
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .unwrap();
    let altered = fs::read_to_string(&log)
        .unwrap()
        .replace("damaged", "altered");
    fs::write(&log, altered).unwrap();
    let prepared = here.prepare(&["sync", "--watch", &there.store_url()]);
    let (mut child, lines) = watching(&prepared);
    let mut seen = Vec::new();
    let mut said = 0;
    for line in lines {
        let is_round = line.contains("pushed") || line.contains("pulled");
        seen.push(line);
        if is_round {
            said += 1;
            if said == 3 {
                break;
            }
            there.say(&format!("echo round {said}"));
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let warned = seen.iter().filter(|line| line.contains("was not moved"));
    assert_eq!(warned.count(), 1, "{seen:#?}");
}

#[test]
fn a_watch_over_a_link_hears_of_changes_there() {
    let (here, there) = (Home::with(Backend::Files), Home::new());
    let ssh = stand_in(&here, &there);
    let prepared = over(&here, &ssh, &["sync", "--watch", "ssh://desk"]);
    watch_both_ways(&here, &there, &prepared);
}

#[test]
fn a_killed_push_goes_on_where_it_was() {
    let (here, there) = (Home::new(), Home::with(Backend::Files));
    here.say("echo first");
    let ids: Vec<SessionId> = {
        let store = SqliteStore::open(&here.database()).unwrap();
        let clock = still_clock(7);
        let mut made = Vec::new();
        for number in 0..150 {
            let mut writer = Writer::begin(&store, &clock);
            writer.append(
                &store,
                vec![human(&format!("question {number}")), ai("demo", "yes")],
            );
            let fork = writer.fork(&store, 2);
            made.extend([writer.id, fork.id]);
        }
        made
    };
    let url = there.store_url();
    let mut killed = 0;
    for logs in [1, 20, 60, 120, 180, 240] {
        let mut child = here
            .prepare(&["push", &url])
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("so many logs are there", || {
            let folder = there.files_folder();
            let has_all = folder.exists() && files_below(&folder).len() >= logs;
            (has_all || child.try_wait().unwrap().is_some()).then_some(())
        });
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed > 0, "every push ended before it was killed");
    let child = here
        .prepare(&["push", &url, "--json"])
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let last: Value = finish(child, "push").ok().json();
    assert_eq!(last["skipped"], json!([]));
    assert_eq!(last["pushed"]["sessions"], 301);
    there.run(&["doctor"]).ok();
    for id in ids {
        let raw = |home: &Home| home.run(&["show", &id.to_string(), "--raw"]).ok().stdout;
        if id.uuid().as_u128() % 16 == 0 {
            assert_eq!(raw(&here), raw(&there));
        }
    }
    let again = here.run(&["push", &url, "--json"]).ok().json();
    assert_eq!(again["pushed"]["entries"], 0);
}

#[test]
fn a_new_store_is_announced() {
    let (here, there) = (Home::new(), Home::new());
    here.say("echo one");
    let made = "a new store was made at";
    for url in ["sqlite:new.db", "files:new"] {
        let output = here.run(&["sync", url]).ok();
        let path = here.project().join(url.split_once(':').unwrap().1);
        output.notes(&format!(
            "{made} {}:{}",
            url.split_once(':').unwrap().0,
            path.display()
        ));
        here.run(&["sync", url]).ok().lacks(made);
    }
    here.run(&["push", "files:other"]).ok().notes(made);
    // A folder that is there and empty.
    here.run(&["push", &format!("files:{}", here.folder("empty").display())])
        .ok()
        .notes(made);
    let ssh = stand_in(&here, &there);
    let sync = || {
        over(&here, &ssh, &["sync", "ssh://desk/~/new.db"])
            .run()
            .ok()
    };
    sync().notes(made).notes("new.db");
    sync().lacks(made);
}

#[test]
fn a_session_that_is_sealed_in_one_store_is_named_once() {
    for sealed_here in [true, false] {
        let (here, there) = (Home::new(), Home::with(Backend::Files));
        let id = here.say("echo one");
        let url = there.store_url();
        here.run(&["push", &url]).ok();
        let (sealing, plain) = match sealed_here {
            true => (&here, &there),
            false => (&there, &here),
        };
        super::sealed::with_key(sealing);
        sealing.run(&["seal", "-y", &id]).ok();
        let words = match sealed_here {
            true => "was not moved: it is sealed here and stored in plain there",
            false => "was not moved: it is sealed there and stored in plain here",
        };
        let output = here.run(&["sync", &url]).code(5);
        let count = output.stderr.matches(&id).count();
        assert_eq!(count, 1, "{}", output.stderr);
        output
            .notes(&format!("session {id} {words}"))
            .notes("not moved: 1 session")
            .notes("the plain copy has nothing that the sealed one lacks")
            .notes("both copies stay as they are")
            .lacks("tertulia rm")
            .lacks("doctor")
            .lacks("already");
        let json = here.run(&["sync", &url, "--json"]).code(5).json();
        assert_eq!(json["skipped"].as_array().unwrap().len(), 1, "{json}");
        here.run(&["push", &url]).code(5).notes(words);
        here.run(&["pull", &url]).code(5).notes(words);
        // The way out that the hint names.
        let key = sealing.path().join("keys/age/id.txt");
        plain.settings(&format!("[seal]\nidentity = {key:?}\n"));
        let other = if sealed_here { &here } else { &there };
        plain
            .run(&["sync", &other.store_url()])
            .ok()
            .notes("is sealed now, too");
        assert_eq!(plain.all()[0]["sealed"], true);
    }
}
