//! Hints that delete, repair, overwrite or move are followed word by word, and lose no word.

use std::fs;
use std::path::PathBuf;

use super::hints::{commands, follow};
use crate::home::{Backend, Home, both, files_below, messages, short};

/// Returns the files that hold the sessions of a home.
fn stored(home: &Home) -> Vec<PathBuf> {
    match home.backend() {
        Backend::Sqlite => vec![home.database()],
        Backend::Files => {
            let mut files = files_below(&home.files_folder());
            files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
            files
        }
    }
}

fn has(file: &PathBuf, words: &str) -> bool {
    let bytes = fs::read(file).unwrap();
    bytes
        .windows(words.len())
        .any(|part| part == words.as_bytes())
}

/// Alters these words wherever the sessions are stored.
fn alter(home: &Home, words: &str, altered: &str) {
    assert_eq!(words.len(), altered.len());
    for file in stored(home) {
        let mut bytes = fs::read(&file).unwrap();
        for place in 0..=bytes.len() - words.len() {
            if bytes[place..].starts_with(words.as_bytes()) {
                bytes[place..place + words.len()].copy_from_slice(altered.as_bytes());
            }
        }
        fs::write(&file, bytes).unwrap();
    }
}

/// Returns what `show` gives of a session, even if it is damaged.
fn shown(home: &Home, id: &str) -> Vec<String> {
    let session = home.run(&["show", id, "--json"]).json();
    let messages = messages(&session);
    let words = messages
        .iter()
        .map(|message| message["content"].as_str().unwrap());
    words.map(str::to_owned).collect()
}

/// Makes a session with an altered message in the middle, beside another one.
fn damaged(home: &Home) -> (String, String) {
    let (one, two) = (home.say("echo one"), home.say("echo two"));
    home.say_in(&one, "echo plover");
    home.say_in(&one, "echo last");
    alter(home, "plover", "PLOVER");
    (one, two)
}

#[test]
fn the_hint_at_damage_keeps_all_that_is_shown() {
    both(|home| {
        let (one, two) = damaged(home);
        let before = [shown(home, &one), shown(home, &two)];
        assert!(before[0].contains(&"last".to_owned()), "{before:?}");
        let told = home.run(&["doctor"]).code(5);
        follow(home, &commands(&told)[0]).repaired();
        assert_eq!([shown(home, &one), shown(home, &two)], before);
        home.run(&["doctor"]).ok();
        let kept = files_below(home.path());
        assert!(kept.iter().any(|file| has(file, "PLOVER")), "{kept:?}");
    });
}

#[test]
fn the_hints_of_merge_and_copy_at_damage_keep_all_that_is_shown() {
    both(|home| {
        let (one, two) = damaged(home);
        let before = [shown(home, &one), shown(home, &two)];
        let from = home.store_url();
        let copy = ["store", "copy", &from, "files:elsewhere"];
        let told = home.run(&copy).code(5);
        let merge = ["merge", &one, &two];
        let as_told = commands(&home.run(&merge).code(5)).remove(0);
        follow(home, &commands(&told)[0]).repaired();
        assert_eq!([shown(home, &one), shown(home, &two)], before);
        // The other hint says the same, and finds nothing more to do.
        follow(home, &as_told).ok();
        assert_eq!([shown(home, &one), shown(home, &two)], before);
        home.run(&copy).ok();
        home.run(&merge).ok();
        assert_eq!(shown(home, "@").len(), before[0].len() + before[1].len());
    });
}

#[test]
fn what_goes_to_the_trash_comes_back_as_hinted() {
    let home = Home::new();
    let (one, two) = (home.say("echo one"), home.say("echo two"));
    let said = || [shown(&home, &one), shown(&home, &two)];
    let before = said();
    let mut remove = vec!["rm", &one, &two];
    home.run(&remove).code(2).notes("add -y");
    remove.push("-y");
    let removed = home.run(&remove).ok();
    assert!(home.all().is_empty());
    for command in commands(&removed) {
        follow(&home, &command).ok();
    }
    assert_eq!((home.all().len(), said()), (2, before.clone()));

    let mut prune = vec!["prune", "--older-than", "0s"];
    home.run(&prune).code(2).notes("add -y");
    assert_eq!(home.all().len(), 2);
    prune.push("-y");
    let pruned = home.run(&prune).ok();
    assert!(home.all().is_empty());
    for command in commands(&pruned) {
        follow(&home, &command).ok();
    }
    assert_eq!((home.all().len(), said()), (2, before.clone()));

    home.run(&["merge", &one, &two]).ok();
    let merged = home.all().len();
    let again = ["merge", &one, &two, "--order", "theirs"];
    let told = home.run(&again).ok();
    let command = commands(&told).remove(0);
    follow(&home, &format!("{command} -y")).ok();
    home.run(&again).ok();
    assert_eq!((home.all().len(), said()), (merged, before));
}

#[test]
fn a_replaced_export_takes_no_word_away() {
    let home = Home::new();
    let one = home.say("echo one");
    let file = home.project().join("one.md");
    let mut export = vec!["export", &one, "-o", "one.md"];
    home.run(&export).ok();
    let first = fs::read_to_string(&file).unwrap();
    home.say_in(&one, "echo more");
    home.run(&export).code(1).notes("add --force");
    assert_eq!(fs::read_to_string(&file).unwrap(), first);
    export.push("--force");
    home.run(&export).ok();
    assert!(has(&file, "more") && has(&file, "one"));
    // In a folder, --force says what it takes, and leaves alone what is no export.
    let two = home.say("echo two");
    let mut export = vec!["export", &one, &two, "-o", "texts"];
    home.run(&export).ok();
    let texts = files_below(&home.project().join("texts"));
    let page = texts
        .iter()
        .find(|file| file.display().to_string().contains(&short(&one)))
        .unwrap();
    home.say_in(&one, "echo still more");
    home.run(&export)
        .code(1)
        .notes("add --force to replace earlier exports with all that was written into them");
    export.push("--force");
    home.run(&export).ok();
    assert!(has(page, "still more"));
    fs::write(page, "A note by hand.\n").unwrap();
    home.run(&export).code(1).notes("move it away");
    assert!(has(page, "A note by hand."));
    let aside = home.project().join("by-hand.md");
    fs::rename(page, &aside).unwrap();
    home.run(&export).ok();
    assert!(has(page, "still more") && has(&aside, "A note by hand."));
    assert_eq!(shown(&home, &one).len(), 6);
}

#[test]
fn the_hint_at_unreadable_logins_ends_nothing_else() {
    let home = Home::new();
    let one = home.say("echo one");
    home.run(&["web", "token", "create", "phone"]).ok();
    let files = files_below(home.path());
    let is_logins = |file: &&PathBuf| file.ends_with("web.json");
    let logins = files.iter().find(is_logins).unwrap();
    fs::write(logins, "{").unwrap();
    let list = ["web", "token", "list"];
    home.run(&list).code(5).notes("delete it");
    fs::remove_file(logins).unwrap();
    home.run(&list).ok().lacks("phone");
    assert_eq!(shown(&home, &one), ["echo one", "one"]);
}

#[test]
fn the_hint_at_unreadable_decisions_keeps_the_file() {
    let home = Home::new();
    let own = home.project().join(".tertulia");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("config.toml"), "[approval]\nmode = \"all\"\n").unwrap();
    let trust = ["trust", "-y"];
    home.run(&trust).ok();
    let list = ["trust", "--list"];
    let files = files_below(home.path());
    let is_decisions = |file: &&PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy();
        name.starts_with("trust")
    };
    let decisions = files.iter().find(is_decisions).unwrap();
    fs::write(decisions, "{").unwrap();
    home.run(&list).code(5).notes("move the file away");
    let aside = decisions.with_extension("aside");
    fs::rename(decisions, &aside).unwrap();
    home.run(&trust).ok();
    home.run(&list).ok().says("project");
    assert_eq!(fs::read_to_string(&aside).unwrap(), "{");
}
