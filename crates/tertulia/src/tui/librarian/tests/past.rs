//! What a person said before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

fn file(world: &World) -> PathBuf {
    world.house.settings.data.join("history.jsonl")
}

fn remember(librarian: &Librarian, words: &str) {
    let answer = librarian.answer(Request::Remember(words.to_owned()));
    held!(answer, Answer::Remembered(kept) => kept.unwrap());
}

fn told(librarian: &Librarian) -> Vec<String> {
    let history = librarian.history();
    let all = (0..history.len()).map(|place| history.get(place).unwrap().to_string());
    all.collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_said_is_there_in_the_next_talk() {
    let world = World::new("files");
    let mut house = world.house.clone();
    house.settings.data = world.folder.path().join("new/folder");
    let librarian = Librarian::new(house.clone(), None, false);
    assert!(told(&librarian).is_empty());
    for words in ["one", "two\nlines \u{1b} 漢", "  ", "two\nlines \u{1b} 漢"] {
        remember(&librarian, words);
    }
    let again = Librarian::new(house.clone(), None, false);
    assert_eq!(told(&again), ["one", "two\nlines \u{1b} 漢"]);
    assert_eq!(mode(&house.settings.data), 0o700);
    assert_eq!(mode(&house.settings.data.join("history.jsonl")), 0o600);
}

#[test]
fn secrets_are_not_kept() {
    let world = World::new("sqlite");
    let secret = format!("sk-ant-api03-{}", "a1B2".repeat(23));
    remember(&world.librarian(), &format!("my key is {secret}"));
    let text = fs::read_to_string(file(&world)).unwrap();
    assert!(
        !text.contains(&secret) && text.contains("[redacted:"),
        "{text}"
    );
}

#[test]
fn an_ephemeral_talk_leaves_nothing() {
    let world = World::new("sqlite");
    remember(&Librarian::new(world.house.clone(), None, true), "hush");
    let forgetful = World::new("memory");
    remember(&forgetful.librarian(), "hush");
    for world in [&world, &forgetful] {
        assert!(!file(world).exists());
    }
}

#[test]
fn damaged_lines_are_passed_over() {
    let world = World::new("sqlite");
    let librarian = world.librarian();
    remember(&librarian, "first");
    let mut bytes = fs::read(file(&world)).unwrap();
    bytes.extend(b"\xff\xfe\nnull\n{\"text\":7}\n{\"text\":\"torn");
    fs::write(file(&world), bytes).unwrap();
    remember(&librarian, "second");
    assert_eq!(told(&librarian), ["first", "second"]);
}

#[test]
fn it_stays_small_and_keeps_the_newest() {
    let world = World::new("sqlite");
    let librarian = world.librarian();
    let words = |number: usize| format!("{number} {}", "x".repeat(100_000));
    for number in 0..45 {
        remember(&librarian, &words(number));
        assert!(file(&world).metadata().unwrap().len() <= 2_000_000);
    }
    let told = told(&librarian);
    assert!((8..=20).contains(&told.len()), "{}", told.len());
    let first = 45 - told.len();
    assert!(
        told.iter()
            .enumerate()
            .all(|(at, text)| *text == words(first + at))
    );
    assert_eq!(mode(&file(&world)), 0o600);
    remember(&librarian, &"y".repeat(1_000_000));
    assert_eq!(
        librarian.history().len(),
        told.len(),
        "what is very long is not kept"
    );
}

#[test]
fn two_programs_lose_nothing_to_each_other() {
    let world = World::new("sqlite");
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let librarian = world.librarian();
            scope.spawn(move || {
                for number in 0..100 {
                    remember(&librarian, &format!("{name}{number}"));
                }
            });
        }
    });
    assert_eq!(told(&world.librarian()).len(), 200);
}

#[test]
fn where_nothing_can_be_written_it_is_said() {
    let world = World::new("sqlite");
    fs::create_dir(file(&world)).unwrap();
    let answer = world.librarian().answer(Request::Remember("x".to_owned()));
    let why = held!(answer, Answer::Remembered(kept) => refused(kept));
    assert!(why.contains("cannot be written"), "{why}");
    assert!(told(&world.librarian()).is_empty());
}
