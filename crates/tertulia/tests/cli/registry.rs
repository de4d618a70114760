//! The agent registry: `agents scan`, `register`, `list`, `verify`, `info`, `delete`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{Home, Output, Prepared, finish, keys, until};
use crate::pty::Terminal;

/// Writes an executable script in the home.
pub fn program(home: &Home, path: &str, script: &str) -> String {
    let path = home.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Prepares a command line that finds programs in the home's `bin` first.
pub fn with_bin<'a>(home: &'a Home, args: &[&str]) -> Prepared<'a> {
    let path = std::env::var("PATH").unwrap();
    let bin = home.path().join("bin").display().to_string();
    home.prepare(args).env("PATH", format!("{bin}:{path}"))
}

fn file(home: &Home) -> PathBuf {
    home.path().join(".config/tertulia/agents.json")
}

fn register(home: &Home, name: &str, command: &str) -> Output {
    home.run(&["agents", "register", name, "--command", command])
}

fn registered(home: &Home) -> Value {
    home.run(&["agents", "list", "--json"]).ok().json()
}

fn names(home: &Home) -> Vec<String> {
    let list = registered(home);
    let agents = list["agents"].as_array().unwrap().iter();
    agents
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns true if the process with this id runs. A zombie does not.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_scan_finds_programs_and_changes_nothing() {
    let home = Home::new();
    let claude = program(&home, "bin/claude", "echo '9.8.7 (Claude Code)'");
    let old = ".nvm/versions/node/v9.0.0/bin/opencode";
    program(&home, old, "echo 0.0.9");
    let new = ".nvm/versions/node/v22.1.0/bin/opencode";
    let opencode = program(&home, new, "echo opencode 1.2.3");
    program(&home, "bin/codex", "echo melted >&2; exit 3");
    let pid = home.path().join("pid");
    let script = format!("sleep 300 & echo $! > {}; wait", pid.display());
    program(&home, "bin/gemini", &script);
    let scan = with_bin(&home, &["agents", "scan", "--json"]).run().ok();
    let document = scan.json();
    let of = |name: &str| {
        let programs = document["programs"].as_array().unwrap().iter();
        let mut found = programs.filter(|program| program["name"] == name);
        found.next().unwrap().clone()
    };
    assert_eq!(
        keys(&of("claude")),
        [
            "name",
            "path",
            "program",
            "reason",
            "registered",
            "registered_as",
            "version"
        ]
    );
    assert_eq!(of("claude")["path"], json!(claude));
    assert_eq!(of("claude")["version"], "9.8.7");
    assert_eq!(of("claude")["registered"], false);
    assert_eq!(of("opencode")["path"], json!(opencode));
    assert_eq!(of("opencode")["version"], "1.2.3");
    assert!(of("codex")["reason"].as_str().unwrap().contains("melted"));
    assert!(
        of("gemini-cli")["reason"]
            .as_str()
            .unwrap()
            .contains("slowly")
    );
    // The slow one was killed with all its children.
    assert!(!is_alive(&fs::read_to_string(pid).unwrap()));
    assert!(!file(&home).exists());
    program(&home, "bin/gemini", "echo 0.61.0");
    with_bin(&home, &["agents", "scan"])
        .run()
        .ok()
        .says(&claude)
        .says("9.8.7")
        .says("melted");
}

#[test]
fn adapters_are_found_and_registered_as_what_they_are() {
    let home = Home::new();
    let adapter = program(&home, "bin/codex-acp", "echo codex-acp 2.6.0");
    let slow = program(
        &home,
        "bin/gemini",
        "sleep 4; echo 'Update available: 0.99.0'; echo 0.61.0",
    );
    let scan = with_bin(&home, &["agents", "scan", "--json"])
        .run()
        .ok()
        .json();
    let programs = scan["programs"].as_array().unwrap().clone();
    let of = |name: &str| {
        programs
            .iter()
            .find(|program| program["name"] == name)
            .cloned()
    };
    assert_eq!(of("codex-acp").unwrap()["path"], json!(adapter));
    assert_eq!(of("codex-acp").unwrap()["version"], "2.6.0");
    assert_eq!(
        of("claude-agent-acp"),
        None,
        "nobody needs one that is not there"
    );
    // A slow start is a start, and a notice is not a version.
    assert_eq!(of("gemini-cli").unwrap()["path"], json!(slow));
    assert_eq!(of("gemini-cli").unwrap()["version"], "0.61.0");
    let line = ["agents", "register", "xx", "--command", "codex-acp"];
    with_bin(&home, &line).run().ok();
    with_bin(&home, &["agents", "register", "--auto", "google-gemini"])
        .run()
        .ok();
    let info = |name: &str| home.run(&["agents", "info", name, "--json"]).ok().json();
    assert_eq!(info("xx")["type"], "acp");
    assert_eq!(info("gemini-cli")["type"], "gemini-cli");
}

#[test]
fn whoever_stops_a_scan_leaves_nothing_behind() {
    let home = Home::new();
    let pid = home.path().join("pid");
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 300",
        pid.display()
    );
    program(&home, "bin/claude", &script);
    let line = ["agents", "register", "--auto", "claude"];
    let child = with_bin(&home, &line)
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = until("the program runs", || fs::read_to_string(&pid).ok());
    let own = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(own, Signal::TERM).unwrap();
    finish(child, "register")
        .code(143)
        .notes("nothing was changed");
    assert!(!is_alive(&begun));
    assert!(!file(&home).exists());
}

#[test]
fn what_a_scan_finds_is_registered_once() {
    let home = Home::new();
    let claude = program(&home, "bin/claude", "echo 9.8.7");
    program(&home, "bin/codex", "exit 3");
    let auto = ["agents", "register", "--auto", "claude", "codex", "--json"];
    let output = with_bin(&home, &auto).run().ok();
    let agents = output.json()["agents"].clone();
    assert_eq!(agents.as_array().unwrap().len(), 1, "{output:?}");
    assert_eq!(agents[0]["name"], "claude");
    assert_eq!(agents[0]["command"], json!(claude));
    // Permissions are not registered.
    assert_eq!(agents[0]["args"], json!([]));
    assert_eq!(agents[0]["version"], "9.8.7");
    assert!(output.stderr.contains("is not registered"), "{output:?}");
    let before = fs::read(file(&home)).unwrap();
    let output = with_bin(&home, &auto).run().ok();
    assert_eq!(output.json()["agents"], json!([]));
    assert_eq!(fs::read(file(&home)).unwrap(), before);
    let scan = with_bin(&home, &["agents", "scan", "--json"]).run().ok();
    assert_eq!(
        scan.json()["programs"][0]["registered_as"],
        json!(["claude"])
    );
    home.run(&["agents", "register", "--auto", "telepathy"])
        .code(3)
        .notes("telepathy")
        .notes("claude");
}

#[test]
fn a_registered_program_is_listed_shown_and_asked() {
    let home = Home::new();
    let arguments = ["--arg", "a-z", "--arg", "A-Z", "--display-name", "Loud"];
    let line = ["agents", "register", "upper", "--command", "tr"];
    let output = home.run(&[&line[..], &arguments].concat()).ok();
    output.notes("'upper' is registered").notes("verify");
    let list = registered(&home);
    assert_eq!(list["file"], json!(file(&home).display().to_string()));
    let agent = &list["agents"][0];
    assert_eq!(
        keys(agent),
        [
            "args",
            "command",
            "display_name",
            "installed_at",
            "last_verified",
            "name",
            "use_pty",
            "version"
        ]
    );
    assert_eq!(agent["display_name"], "Loud");
    assert_eq!(agent["args"], json!(["a-z", "A-Z"]));
    assert!(Path::new(agent["command"].as_str().unwrap()).is_absolute());
    home.run(&["agents", "list"])
        .ok()
        .says("upper")
        .says("never");
    home.run(&["agents", "info", "upper"])
        .ok()
        .says("Loud")
        .says("a-z A-Z")
        .says("there");
    let info = home.run(&["agents", "info", "upper", "--json"]).ok().json();
    assert_eq!(
        (&info["type"], &info["found"]),
        (&json!("command"), &json!(true))
    );
    // `agents` lists the registered agents too, and they answer.
    home.run(&["agents"]).ok().says("upper").says("demo");
    let one = home.run(&["agents", "upper", "--json"]).ok().json();
    assert_eq!(one["agents"][0]["ready"], true);
    let output = home.run(&["chat", "--agent", "upper", "-p", "hi"]).ok();
    assert_eq!(output.stdout, "HI\n");
    let output = home.run(&["-c", "-p", "again"]).ok();
    assert!(output.stdout.contains("AGAIN"), "{output:?}");
    home.run(&["agents", "delete", "upper", "-y"]).ok();
    home.run(&["-c", "-p", "again"]).code(6).notes("upper");
}

#[test]
fn registering_anew_tells_what_it_was() {
    let home = Home::new();
    let (one, two) = (program(&home, "one", ""), program(&home, "two", ""));
    register(&home, "x", &one).ok().lacks("(was: ");
    register(&home, "x", &two).ok().notes("(was: ").notes(&one);
    // A relative path is resolved, and stored as an absolute one.
    register(&home, "y", "../one").ok();
    let y = registered(&home)["agents"][1]["command"].clone();
    assert!(y.as_str().unwrap().starts_with('/'), "{y}");
    let free = ["agents", "register", "claude", "--command", &one, "--arg"];
    home.run(&[&free[..], &["--dangerously-skip-permissions"]].concat())
        .ok()
        .notes("without --dangerously-skip-permissions")
        .notes("--approve all");
    let info = home.run(&["agents", "info", "claude", "--json"]).ok();
    assert_eq!(info.json()["started_with"], json!([]));
    register(&home, "gemini", &one).ok().notes("name of an API");
    let both = home.run(&["agents", "gemini", "--json"]).ok().json();
    let types = [&both["agents"][0]["type"], &both["agents"][1]["type"]];
    assert_eq!(types, ["gemini", "gemini-cli"]);
}

#[test]
fn what_is_asked_for_in_a_wrong_way_changes_nothing() {
    let home = Home::new();
    let tr = "/usr/bin/env";
    for wrong in [
        &["agents", "register"][..],
        &["agents", "register", "x"],
        &["agents", "register", "--command", tr],
        &["agents", "register", "x", "y", "--command", tr],
        &["agents", "register", "--auto", "--command", tr],
        &["agents", "register", "--auto", "--arg", "x"],
        &["agents", "register", "", "--command", tr],
        &["agents", "register", " x", "--command", tr],
        &["agents", "register", "a\u{7}b", "--command", tr],
        &["agents", "register", "demo", "--command", tr],
        &["agents", "register", &"x".repeat(101), "--command", tr],
        &["agents", "register", "x", "--command", ""],
        &[
            "agents",
            "register",
            "x",
            "--command",
            "no-such-program-here",
        ],
        &["agents", "register", "x", "--command", "./nowhere"],
        &["agents", "register", "x", "--command", "."],
        &["agents", "verify", "x", "--all"],
        &["agents", "list", "x"],
    ] {
        home.run(wrong).code(2);
    }
    assert!(!file(&home).exists());
    home.run(&["agents", "list"]).ok().notes("--auto");
    home.run(&["agents", "verify"]).ok().notes("--auto");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let home = Home::new();
    for verb in ["info", "verify", "delete"] {
        home.run(&["agents", verb, "x"]).code(3).notes("--auto");
    }
    for name in ["claude-work", "upper", "lower"] {
        register(&home, name, "/usr/bin/env").ok();
    }
    for verb in ["info", "verify", "delete"] {
        let output = home.run(&["agents", verb, "uper", "--json"]).code(3);
        let error = output.error();
        assert_eq!(error["kind"], "not_found");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("the nearest are: upper, lower"), "{hint}");
        home.run(&["agents", verb, "demo"])
            .code(3)
            .notes("needs no registration");
    }
    assert_eq!(names(&home).len(), 3);
}

#[test]
fn deleting_asks_first() {
    let home = Home::new();
    let one = program(&home, "one", "");
    register(&home, "x", &one).ok();
    home.run(&["agents", "delete", "x"]).code(2).notes("-y");
    home.prepare(&["agents", "delete", "x"])
        .stdin("y\n")
        .run()
        .code(2);
    for (answer, code) in [("n\n", 1), ("y\n", 0)] {
        assert_eq!(names(&home), ["x"]);
        let mut terminal = Terminal::open(&home, &["agents", "delete", "x"], &[]);
        terminal.sees("[y/N]", 1);
        terminal.types(answer);
        assert_eq!(terminal.ends().0, code);
    }
    assert_eq!(names(&home), Vec::<String>::new());
    assert!(Path::new(&one).exists());
    register(&home, "x", &one).ok();
    let line = ["agents", "delete", "x", "-y", "--json"];
    let gone = home.run(&line).ok().json();
    assert_eq!(gone["deleted"]["command"], json!(one));
}

#[test]
fn verifying_starts_programs_without_keys_and_keeps_what_worked() {
    let home = Home::new();
    let script = "echo \"$ANTHROPIC_API_KEY$1\" > ../seen; echo 'claude 3.2.1'";
    register(&home, "claude", &program(&home, "claude", script)).ok();
    // A program that does not support `--version` has still started.
    register(&home, "odd", &program(&home, "odd", "exit 2")).ok();
    let output = home
        .prepare(&["agents", "verify", "--json"])
        .env("ANTHROPIC_API_KEY", "k-12345")
        .run()
        .ok();
    let tried = &output.json()["agents"];
    assert_eq!(tried[0]["version"], "3.2.1");
    assert_eq!(
        (&tried[1]["ok"], &tried[1]["version"]),
        (&json!(true), &Value::Null)
    );
    let seen = fs::read_to_string(home.path().join("seen")).unwrap();
    assert_eq!(seen, "--version\n");
    let agents = registered(&home)["agents"].clone();
    assert_eq!(agents[0]["version"], "3.2.1");
    let verified = agents[1]["last_verified"].clone();
    assert!(verified.is_string(), "{agents}");
    fs::remove_file(home.path().join("odd")).unwrap();
    home.run(&["agents", "verify", "claude"])
        .ok()
        .says("starts")
        .says("3.2.1");
    for line in [
        &["agents", "verify", "odd"][..],
        &["agents", "verify", "-a"],
    ] {
        home.run(line).code(6).says("does not start").notes("'odd'");
    }
    assert_eq!(registered(&home)["agents"][1]["last_verified"], verified);
    home.run(&["agents", "info", "odd"]).ok().says("not found");
}

#[test]
fn the_registry_is_for_its_owner_alone_whatever_the_umask() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for umask in ["000", "077", "277"] {
        let home = Home::new();
        let folder = home.path().join("new/folder");
        let place = folder.to_str().unwrap();
        let line = [
            "agents",
            "register",
            "x",
            "--command",
            "tr",
            "--data-dir",
            place,
        ];
        home.prepare(&line).umask(umask).run().ok();
        assert_eq!(mode(&folder), 0o700, "{umask}");
        assert_eq!(mode(folder.parent().unwrap()), 0o700, "{umask}");
        assert_eq!(mode(&folder.join("agents.json")), 0o600, "{umask}");
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), 0o600, "{umask} {}", path.display());
        }
    }
}

#[test]
fn of_many_who_register_at_once_nobody_is_lost() {
    let home = Home::new();
    let children: Vec<_> = (0..8)
        .map(|number| {
            let name = format!("agent-{number}");
            let line = ["agents", "register", &name, "--command", "/usr/bin/env"];
            home.prepare(&line)
                .command()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        finish(child, "register").ok();
    }
    assert_eq!(names(&home).len(), 8);
}

#[test]
fn a_registry_that_cannot_be_read_stays_as_it_is() {
    let home = Home::new();
    let wrong: [(&[u8], &[&str]); 4] = [
        (
            br#"{"schemaVersion":"1.1","agents":{"a":{"name":"b","command":"","args":"x"}}}"#,
            &[
                "/agents/a/name",
                "/agents/a/command",
                "/agents/a/args",
                "displayName",
                "usePty",
            ],
        ),
        (b"{\"schemaVersion\":", &["not JSON", "line 1"]),
        (b"\xff\xfe", &["not UTF-8"]),
        (
            br#"{"schemaVersion":"9.9","agents":{}}"#,
            &["not supported", "upgrade"],
        ),
    ];
    home.run(&["team", "init"]).ok();
    home.settings("[agents.whole]\ncommand = \"tr\"\nargs = [\"a-z\", \"A-Z\"]\n");
    for (bytes, words) in wrong {
        fs::write(file(&home), bytes).unwrap();
        for line in [
            &["agents", "register", "x", "--command", "/usr/bin/env"][..],
            &["agents", "list"],
            &["agents", "info", "a"],
            &["agents", "delete", "a", "-y"],
            &["agents", "verify"],
            &["agents", "scan"],
            &["agents"],
            &["team", "check", "demo"],
        ] {
            let mut output = home.run(line).code(5).notes("agents.json");
            for word in words {
                output = output.notes(word);
            }
        }
        assert_eq!(fs::read(file(&home)).unwrap(), bytes);
        // A session that needs no registered agent is not affected.
        home.run(&["chat", "-p", "echo hello"]).ok().says("hello");
        home.run(&["chat", "--agent", "whole", "-p", "hello"])
            .ok()
            .says("HELLO");
        home.run(&["chat", "--agent", "codex", "-p", "hello"])
            .code(5);
    }
}

#[test]
fn what_agent_chatter_has_registered_is_there() {
    let home = Home::new();
    let other = home.folder(".agent-chatter/agents").join("config.json");
    let claude = program(&home, "claude", "echo 3.2.1");
    let document = json!({
        "schemaVersion": "1.1",
        "agents": {
            "claude": {
                "name": "claude", "displayName": "Claude Code", "command": claude,
                "args": ["--permission-mode", "bypassPermissions", "--output-format", "stream-json", "--verbose"],
                "usePty": false, "installedAt": "2025-11-29T10:00:00.000Z",
            },
        },
    });
    let text = document.to_string();
    fs::write(&other, &text).unwrap();
    assert_eq!(names(&home), ["claude"]);
    assert_eq!(
        registered(&home)["file"],
        json!(other.display().to_string())
    );
    home.run(&["agents", "info", "claude"])
        .ok()
        .notes("bypassPermissions");
    assert!(!file(&home).exists());
    register(&home, "x", "/usr/bin/env")
        .ok()
        .notes("taken over");
    assert_eq!(names(&home), ["claude", "x"]);
    assert_eq!(fs::read_to_string(&other).unwrap(), text);
    register(&home, "y", "/usr/bin/env")
        .ok()
        .lacks("taken over");
}

#[test]
fn a_team_file_does_not_choose_the_program_of_a_registered_agent() {
    let home = Home::new();
    let (mine, theirs) = (program(&home, "mine", ""), "tools/theirs");
    program(&home, "project/teams/tools/theirs", "");
    home.run(&["team", "init", "teams/t.json"]).ok();
    let file = home.project().join("teams/t.json");
    let text = fs::read_to_string(&file).unwrap();
    let mut team: Value = serde_json::from_str(&text).unwrap();
    team["agents"] = json!([{ "name": "helpful", "command": theirs, "args": ["-x"] }]);
    team["team"]["members"][0]["agentType"] = json!("helpful");
    team["team"]["members"][0]["type"] = json!("ai");
    fs::write(&file, team.to_string()).unwrap();
    let check = ["team", "check", "teams/t.json"];
    let folder = home.project().join("teams");
    home.run(&check)
        .ok()
        .notes(&format!(
            "the team file runs a program as 'helpful', so make sure that you trust it: {}/tools/theirs -x",
            folder.display()
        ))
        .lacks("not found");
    register(&home, "helpful", &mine).ok();
    home.run(&check)
        .ok()
        .notes("the registered one is used")
        .lacks("the team file runs a program");
}
