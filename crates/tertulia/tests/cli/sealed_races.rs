//! Sealing beside programs that write: every word that was typed is somewhere.

use std::path::Path;
use std::process::{Child, Stdio};

use tertulia_testkit::soak::sampled;

use super::sealed::with_key;
use crate::home::{Home, both, finish};

/// Races per store.
const RACES: u64 = 250;

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command = home.prepare(args).command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Imports the files with words that could not be saved, and returns how many there were.
fn import_unsaved(home: &Home, folder: &Path) -> usize {
    let files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("tertulia-unsaved"))
        .collect();
    for file in &files {
        home.run(&["import", file.to_str().unwrap()]).ok();
        std::fs::remove_file(file).unwrap();
    }
    files.len()
}

#[test]
fn words_typed_while_a_session_is_sealed_are_kept() {
    both(|home| {
        with_key(home);
        let id = home.say("echo begin");
        let (mut answered, mut unsaved, mut refused) = (0, 0, 0);
        let races = sampled(0..RACES, 25);
        for race in &races {
            let words = format!("echo typed-{race}-end");
            let rows = home.all();
            let row = rows.iter().find(|row| row["id"] == id.as_str()).unwrap();
            let is_sealed = row["sealed"] == true;
            let chat = start(home, &["chat", "-r", &id, "--agent", "demo", "-p", &words]);
            // Any moment is right: the programs race.
            for _ in 0..race % 4 {
                home.run(&["--version"]).ok();
            }
            let verb = if is_sealed { "unseal" } else { "seal" };
            let sealing = start(home, &[verb, "-y", &id]);
            let chat = finish(chat, "chat");
            let sealing = finish(sealing, verb);
            refused += usize::from(!sealing.status.success());
            unsaved += import_unsaved(home, &home.project());
            let hits = home.run(&[
                "search",
                "--all",
                &format!("\"typed-{race}-end\""),
                "--json",
            ]);
            let hits = hits.ok().json();
            assert!(
                hits["total"].as_u64().unwrap() >= 1,
                "race {race}: {} {} / {}",
                chat.status,
                chat.stderr,
                sealing.stderr
            );
            answered += usize::from(chat.status.success());
        }
        home.run(&["doctor"]).ok();
        eprintln!(
            "{:?}: {} races, {answered} answered, {unsaved} in files, {refused} times not sealed, 0 lost",
            home.backend(),
            races.len()
        );
        assert_eq!(answered + unsaved, races.len());
    });
}
