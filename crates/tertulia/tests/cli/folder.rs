//! The folder of a session: tools work in it, in every frontend and from every folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::home::{Home, Output};
use crate::pty::{CTRL_D, Terminal};

/// A prompt that makes the demo agent write a file.
const WRITES: &str = r#"use file_write {"path":"made","content":"x"}"#;

/// Answers a prompt in a folder, with every tool allowed.
fn says(home: &Home, folder: &Path, args: &[&str], words: &str) -> Output {
    let mut all = vec!["chat", "--approve", "all"];
    all.extend(args);
    all.extend(["-p", words]);
    home.prepare(&all).folder(folder).run()
}

fn has(folder: &Path) -> bool {
    folder.join("made").exists()
}

/// Returns the folder that the newest session works in.
fn recorded(home: &Home) -> String {
    home.all()[0]["cwd"].as_str().unwrap().to_owned()
}

/// A home with a session of another home, and the folder that it was recorded in.
fn imported() -> (Home, Home, PathBuf) {
    let (there, here) = (Home::new(), Home::new());
    let own = there.folder("own");
    says(&there, &own, &[], "hello").ok();
    let file = here.path().join("session.jsonl");
    let file = file.to_str().unwrap();
    there.run(&["export", "@", "-f", "jsonl", "-o", file]).ok();
    here.run(&["import", file]).ok();
    (there, here, own)
}

#[test]
fn a_session_that_is_resumed_elsewhere_works_in_its_own_folder() {
    let home = Home::new();
    let (own, other) = (home.folder("own"), home.folder("other"));
    says(&home, &own, &["--name", "first"], "hello").ok();
    let output = says(&home, &other, &["-r", "first"], WRITES).ok();
    output.notes(&format!("Working in {}", own.display()));
    assert!(has(&own) && !has(&other));
}

#[test]
fn settings_and_instructions_are_those_of_the_session_s_folder() {
    let home = Home::new();
    let (own, other) = (home.folder("own"), home.folder("other"));
    for (folder, agent) in [(&own, "mine"), (&other, "theirs")] {
        fs::create_dir(folder.join(".git")).unwrap();
        fs::create_dir(folder.join(".tertulia")).unwrap();
        let settings = format!("agent = \"{agent}\"\n");
        fs::write(folder.join(".tertulia/config.toml"), settings).unwrap();
    }
    home.settings("[agents.mine]\ntype = \"demo\"\n[agents.theirs]\ntype = \"demo\"\n");
    let first = home.prepare(&["chat", "-p", "hello", "--name", "first"]);
    first.folder(&own).run().ok();
    home.run(&["fork", "first:1"]).ok();
    let forked = home.prepare(&["chat", "-r", "@", "-p", "again"]);
    forked.folder(&other).run().ok();
    let agents = &home.show("@")["agents"];
    assert_eq!(agents, &serde_json::json!(["mine"]));
}

#[test]
fn a_session_moves_here_only_if_that_is_asked_for() {
    let home = Home::new();
    let (own, other) = (home.folder("own"), home.folder("other"));
    says(&home, &own, &["--name", "first"], "hello").ok();
    says(&home, &other, &["-r", "first", "--here"], WRITES).ok();
    assert!(has(&other) && !has(&own));
    assert_eq!(Path::new(&recorded(&home)), other);
    // From now on.
    fs::remove_file(other.join("made")).unwrap();
    says(&home, &own, &["-r", "first"], WRITES).ok();
    assert!(has(&other) && !has(&own));
    let listed = home.prepare(&["list"]).folder(&other).run().ok();
    listed.says("first");
    // A fork from before it moved has the terms in force.
    fs::remove_file(other.join("made")).unwrap();
    home.run(&["fork", "first:2"]).ok();
    says(&home, &own, &["-r", "@"], WRITES).ok();
    assert!(has(&other) && !has(&own));
}

#[test]
fn the_folder_of_another_machine_is_confirmed_first() {
    let (_there, here, own) = imported();
    let output = says(&here, &here.project(), &["-r", "@"], WRITES).code(2);
    output
        .notes("where you have not worked with tertulia yet")
        .notes("--here");
    assert!(!has(&own) && !has(&here.project()));
    assert_eq!(here.said("@").len(), 2, "nothing was said");
    // A user who stands in it need not say so.
    says(&here, &own, &["-r", "@"], WRITES).ok();
    assert!(has(&own));
    // Now it is known.
    fs::remove_file(own.join("made")).unwrap();
    says(&here, &here.project(), &["-r", "@"], WRITES).ok();
    assert!(has(&own) && !has(&here.project()));
}

#[test]
fn the_folder_of_another_machine_is_confirmed_on_the_terminal_once() {
    let (_there, here, own) = imported();
    let args = ["--plain", "--approve", "all", "-r", "@"];
    let mut terminal = Terminal::open(&here, &args, &[]);
    terminal.sees("> ", 1);
    terminal.types(format!("{WRITES}\r"));
    terminal.sees("Work in it from now on?", 1);
    assert!(!has(&own), "before an answer");
    terminal.types("n\r");
    terminal.sees("not allowed to work in", 1);
    assert!(!has(&own));
    terminal.types(format!("{WRITES}\r"));
    terminal.sees("Work in it from now on?", 2);
    terminal.types("y\r");
    terminal.sees("The tool said", 1);
    assert!(has(&own) && !has(&here.project()));
    terminal.types(CTRL_D);
    terminal.ends();
    says(&here, &here.project(), &["-r", "@"], "hello").ok();
}

#[test]
fn a_folder_that_is_gone_is_told_and_nothing_runs_elsewhere() {
    let home = Home::new();
    let own = home.folder("own");
    says(&home, &own, &["--name", "first"], "hello").ok();
    fs::remove_dir_all(&own).unwrap();
    let output = says(&home, &home.project(), &["-r", "first"], WRITES).code(2);
    output.notes("is gone").notes("--here");
    assert!(!has(&home.project()) && !own.exists());
    home.run(&["show", "first"]).ok().says("hello");
    let mut terminal = Terminal::open(&home, &["--plain", "-r", "first"], &[]);
    terminal.sees("the folder of this session is gone", 1);
    terminal.types("hello again\r");
    terminal.sees("Move the session to this folder", 1);
    terminal.types("y\r");
    terminal.sees("You said: “hello again”", 1);
    terminal.types(CTRL_D);
    terminal.ends();
    assert_eq!(Path::new(&recorded(&home)), home.project());
}
