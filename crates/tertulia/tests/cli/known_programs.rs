//! Programs that `agents scan` knows: their versions, types and arguments.

use std::fs;

use serde_json::{Value, json};

use super::registry::{program, with_bin};
use crate::home::Home;

#[test]
fn the_second_opencode_is_told_apart() {
    let home = Home::new();
    let opencode = program(&home, "bin/opencode", "echo 2.0.32");
    let only = "2.0.32: runs with `--approve all` only";
    with_bin(&home, &["agents", "opencode"])
        .run()
        .ok()
        .says(only);
    let scan = ["agents", "scan"];
    let scan = with_bin(&home, &scan).run().ok().says("2.0.32");
    assert!(scan.stdout.contains(&format!("{opencode}: runs with")));
    let auto = ["agents", "register", "--auto", "opencode"];
    with_bin(&home, &auto).run().ok();
    home.run(&["agents", "verify"]).ok().says(only);
    // It is refused before it does anything.
    let asked = [
        "chat",
        "--agent",
        "opencode",
        "--approve",
        "none",
        "-p",
        "x",
    ];
    with_bin(&home, &asked)
        .run()
        .code(6)
        .notes("OpenCode 2, whose tools cannot be restricted");
    program(&home, "bin/opencode", "echo 1.18.33");
    let output = with_bin(&home, &["agents", "opencode"]).run().ok();
    output.says("1.18.33").lacks("--approve all");
}

#[test]
fn other_programs_are_registered_with_their_types_and_arguments() {
    let home = Home::new();
    let known = [
        ("qwen", "acp", json!(["--acp"])),
        ("copilot", "acp", json!(["--acp"])),
        ("cline", "command", json!([])),
        ("cn", "command", json!(["-p"])),
        ("pi", "command", json!(["-p"])),
    ];
    for (name, ..) in &known {
        program(&home, &format!("bin/{name}"), "echo 1.2.3");
    }
    let found = |document: &Value, name: &str| {
        let programs = document["programs"].as_array().unwrap().iter();
        let mut found = programs.filter(|program| program["name"] == name);
        found.next().cloned()
    };
    let scan = with_bin(&home, &["agents", "scan", "--json"]).run().ok();
    let scan = scan.json();
    let auto = [
        "agents", "register", "--auto", "qwen", "copilot", "cline", "cn", "pi",
    ];
    with_bin(&home, &auto).run().ok().notes("qwen --acp");
    for (name, kind, args) in known {
        assert_eq!(found(&scan, name).unwrap()["version"], "1.2.3", "{name}");
        let info = home.run(&["agents", "info", name, "--json"]).ok().json();
        assert_eq!(info["type"], kind, "{name}");
        assert_eq!(info["args"], args, "{name}");
    }
    // One that is not there is optional, and not listed.
    fs::remove_file(home.path().join("bin/cn")).unwrap();
    let scan = with_bin(&home, &["agents", "scan", "--json"]).run().ok();
    assert_eq!(found(&scan.json(), "cn"), None);
    // The same under another name, and with arguments of the user's.
    let line = ["agents", "register", "qq", "--command", "qwen"];
    with_bin(&home, &line).run().ok();
    let info = |name: &str| home.run(&["agents", "info", name, "--json"]).ok().json();
    assert_eq!(info("qq")["type"], "acp");
    with_bin(&home, &[&line[..], &["--arg=-p"]].concat())
        .run()
        .ok();
    assert_eq!(info("qq")["type"], "command");
}
