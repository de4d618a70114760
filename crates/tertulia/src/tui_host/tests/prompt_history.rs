//! Input history.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

fn file(world: &World) -> PathBuf {
    world.workspace.settings.data.join("history.jsonl")
}

fn remember(store_service: &Service, words: &str) {
    let answer = store_service.answer(Request::Remember(words.to_owned()));
    held!(answer, Answer::Remembered(kept) => kept.unwrap());
}

fn told(store_service: &Service) -> Vec<String> {
    let history = store_service.history();
    let all = (0..history.len()).map(|place| history.get(place).unwrap().to_string());
    all.collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_said_is_there_in_the_next_talk() {
    let world = World::new("files");
    let mut workspace = world.workspace.clone();
    workspace.settings.data = world.folder.path().join("new/folder");
    let store_service = service(&workspace, false);
    assert!(told(&store_service).is_empty());
    for words in ["one", "two\nlines \u{1b} 漢", "  ", "two\nlines \u{1b} 漢"] {
        remember(&store_service, words);
    }
    let again = service(&workspace, false);
    assert_eq!(told(&again), ["one", "two\nlines \u{1b} 漢"]);
    assert_eq!(mode(&workspace.settings.data), 0o700);
    assert_eq!(mode(&workspace.settings.data.join("history.jsonl")), 0o600);
}

#[test]
fn secrets_are_not_kept() {
    let world = World::new("sqlite");
    let secret = format!("sk-ant-api03-{}", "a1B2".repeat(23));
    remember(&world.store_service(), &format!("my key is {secret}"));
    let text = fs::read_to_string(file(&world)).unwrap();
    assert!(
        !text.contains(&secret) && text.contains("[redacted:"),
        "{text}"
    );
}

#[test]
fn an_ephemeral_talk_leaves_nothing() {
    let world = World::new("sqlite");
    remember(&service(&world.workspace, true), "hush");
    let forgetful = World::new("memory");
    remember(&forgetful.store_service(), "hush");
    for world in [&world, &forgetful] {
        assert!(!file(world).exists());
    }
}

#[test]
fn damaged_lines_are_passed_over() {
    let world = World::new("sqlite");
    let store_service = world.store_service();
    remember(&store_service, "first");
    let mut bytes = fs::read(file(&world)).unwrap();
    bytes.extend(b"\xff\xfe\nnull\n{\"text\":7}\n{\"text\":\"torn");
    fs::write(file(&world), bytes).unwrap();
    remember(&store_service, "second");
    assert_eq!(told(&store_service), ["first", "second"]);
}

#[test]
fn it_stays_small_and_keeps_the_newest() {
    let world = World::new("sqlite");
    let store_service = world.store_service();
    let words = |number: usize| format!("{number} {}", "x".repeat(100_000));
    for number in 0..45 {
        remember(&store_service, &words(number));
        assert!(file(&world).metadata().unwrap().len() <= 2_000_000);
    }
    let told = told(&store_service);
    assert!((8..=20).contains(&told.len()), "{}", told.len());
    let first = 45 - told.len();
    assert!(
        told.iter()
            .enumerate()
            .all(|(at, text)| *text == words(first + at))
    );
    assert_eq!(mode(&file(&world)), 0o600);
    remember(&store_service, &"y".repeat(1_000_000));
    assert_eq!(
        store_service.history().len(),
        told.len(),
        "what is very long is not kept"
    );
}

#[test]
fn two_programs_lose_nothing_to_each_other() {
    let world = World::new("sqlite");
    std::thread::scope(|scope| {
        for name in ["a", "b"] {
            let store_service = world.store_service();
            scope.spawn(move || {
                for number in 0..100 {
                    remember(&store_service, &format!("{name}{number}"));
                }
            });
        }
    });
    assert_eq!(told(&world.store_service()).len(), 200);
}

#[test]
fn where_nothing_can_be_written_it_is_said() {
    let world = World::new("sqlite");
    fs::create_dir(file(&world)).unwrap();
    let answer = world
        .store_service()
        .answer(Request::Remember("x".to_owned()));
    let why = held!(answer, Answer::Remembered(kept) => refused(kept));
    assert!(why.contains("cannot be written"), "{why}");
    assert!(told(&world.store_service()).is_empty());
}
