//! Stores that version 0.1.0 wrote open, verify and go on. `data/store-0.1.0` was filled by that
//! version: chats with tools, tags and a failed answer, a fork, a team, a pair, the trash, and an
//! answer that was cut off by a kill.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::home::{Backend, Home, both, messages};

/// Returns the id of a session of the data.
fn id(number: u32) -> String {
    format!("01920000-0000-7000-8000-{number:012}")
}

/// Puts the old store in the place of the home's own.
fn settle(home: &Home) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-0.1.0");
    match home.backend() {
        Backend::Sqlite => {
            let database = home.database();
            fs::create_dir_all(database.parent().unwrap()).unwrap();
            fs::copy(data.join("tertulia.db"), database).unwrap();
        }
        Backend::Files => copy_folder(&data.join("logs"), &home.files_folder()),
    }
    home.settings("[agents.slow]\ntype = \"demo\"\n");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

fn sound(home: &Home, sessions: u64) {
    let report = home.run(&["doctor", "--json"]).ok().json();
    assert_eq!(report["sessions"], sessions, "{report}");
    assert_eq!(report["damage"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["faults"].as_array().unwrap().len(), 0, "{report}");
}

#[test]
fn everything_in_it_is_read() {
    both(|home| {
        settle(home);
        sound(home, 8);
        let all = home.all();
        assert_eq!(all.len(), 7);
        let find = |title: &str| all.iter().find(|row| row["title"] == title).unwrap();
        assert_eq!(
            find("First chat")["tags"],
            serde_json::json!(["blue", "work"])
        );
        assert_eq!(find("First chat (fork)")["parent"]["id"], id(1));
        assert_eq!(find("Plan a bird table")["kind"], "team");
        assert_eq!(find("Sort the library")["kind"], "pair");
        let trash = home
            .run(&["list", "--all", "--trash", "--json"])
            .ok()
            .json();
        assert_eq!(trash["sessions"][0]["id"], id(3));

        let tools = messages(&home.show(&id(2)));
        let output = tools
            .iter()
            .find(|message| message["role"] == "tool")
            .unwrap();
        let output = output["content"].as_str().unwrap();
        assert!(output.starts_with("from-the-shell"), "{output}");
        assert_eq!(home.said(&id(4))[0], "my token is [redacted:github-token]");
        let cut_off = messages(&home.show(&id(7)));
        assert_eq!(cut_off.last().unwrap()["interrupted"], true);

        let found = home
            .run(&["search", "--all", "bicycle", "--json"])
            .ok()
            .json();
        let hits = found["hits"].as_array().unwrap();
        assert!(hits.iter().any(|hit| hit["session"] == id(1)), "{found}");
    });
}

#[test]
fn every_kind_of_session_goes_on() {
    both(|home| {
        settle(home);
        let resumed = |args: &[&str]| -> Value {
            let run = home.prepare(args).run().ok();
            run.json()
        };
        let json = ["--output-format", "json"];
        let chat = resumed(&[
            "chat",
            "-s",
            &id(1),
            // All worked in /srv/library, a folder that few machines have.
            "--here",
            "-p",
            "what did I say?",
            json[0],
            json[1],
        ]);
        let answer = chat["messages"][1]["content"].as_str().unwrap();
        assert!(answer.contains("remember the blue bicycle"), "{answer}");
        let fork = home.all();
        let fork = fork
            .iter()
            .find(|row| row["parent"]["id"] == id(1))
            .unwrap();
        let fork = fork["id"].as_str().unwrap();
        home.say_in(fork, "the fork, too");
        home.say_in(&id(2), "tools are no hindrance");
        home.say_in(&id(7), "after the kill");
        assert!(
            home.said(&id(7))[1].starts_with("1 2 3 "),
            "{:?}",
            home.said(&id(7))
        );
        home.run(&["team", "init"]).ok();
        let team = home.run(&[
            "team",
            "demo",
            "--resume",
            &id(5),
            "--here",
            "[NEXT: Ada] go on",
        ]);
        assert!(team.ok().stdout.contains("Ada:"));
        let here = home.project().to_str().unwrap().to_owned();
        let again = "[r+2] once more";
        let pair = home.run(&["pair", "--resume", &id(6), "--work-dir", &here, again]);
        assert!(pair.ok().stdout.contains("Instructor:"));
        home.run(&["restore", &id(3)]).ok();
        sound(home, 8);
        assert_eq!(home.all().len(), 8);
    });
}
