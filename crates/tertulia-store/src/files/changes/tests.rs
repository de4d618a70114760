use std::io::Write as _;

use tertulia_core::entry::Head;
use tertulia_core::query::{Filter, Page};
use tertulia_testkit::logs::human;
use tertulia_testkit::waiting::wait_until;

use super::super::tests::{append, chained, create, id, open};
use super::*;
use crate::engine::Engine;
use crate::queue::Patience;

/// Opens a store whose catalogue is trusted however few logs there are.
fn engine(dir: &Path) -> FilesEngine {
    let mut engine = open(dir, &Patience::default());
    engine.marks.few = -1;
    engine.marks.settled_after = Duration::ZERO;
    engine
}

/// Lists all sessions: their numbers and entries, newest first.
fn list(engine: &mut FilesEngine) -> Vec<(u128, u64)> {
    let listing = engine.list(&Filter::default(), &Page::first(100)).unwrap();
    let row = |row: &tertulia_core::query::Row| (row.meta.id.uuid().as_u128(), row.meta.head.seq.0);
    listing.rows.iter().map(row).collect()
}

/// Waits until a file that is written now has a later modification time than all before: the clock of
/// a file system goes by ticks.
fn wait_for_the_next_tick() {
    let folder = tempfile::tempdir().unwrap();
    let touched = || {
        let file = folder.path().join("tick");
        fs::write(&file, "").unwrap();
        fs::metadata(&file).unwrap().modified().unwrap()
    };
    let first = touched();
    wait_until("the clock of the file system ticks", || touched() > first);
}

/// A store with three sessions, all known to its catalogue.
fn known(home: &Path) -> (FilesEngine, Vec<Head>) {
    let mut engine = engine(home);
    let heads = (1..=3).map(|n| create(&mut engine, n)).collect();
    wait_for_the_next_tick();
    assert!(engine.refresh_for_list().unwrap());
    assert!(!engine.refresh_for_list().unwrap());
    (engine, heads)
}

#[test]
fn own_writers_need_no_comparison() {
    let home = tempfile::tempdir().unwrap();
    let (mut writer, heads) = known(home.path());
    append(&mut writer, 1, heads[0]);
    let head = create(&mut writer, 4);
    append(&mut writer, 4, head);
    create(&mut writer, 5);
    let mut reader = engine(home.path());
    assert!(!reader.refresh_for_list().unwrap());
    assert_eq!(list(&mut reader), [(5, 2), (4, 3), (1, 3), (3, 2), (2, 2)]);
    assert!(reader.marks.all().is_empty());
    // A writer that goes on leaves its mark again.
    let path = writer.live_if_any(id(4)).unwrap().unwrap();
    let head = writer.head_of(&path).unwrap().unwrap();
    append(&mut writer, 4, head);
    assert!(!reader.refresh_for_list().unwrap());
    assert_eq!(list(&mut reader)[0], (4, 4));
}

#[test]
fn other_programs_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let (mut engine, _) = known(home.path());
    let path = |n: u128, engine: &mut FilesEngine| engine.live_if_any(id(n)).unwrap().unwrap();
    let settle = |engine: &mut FilesEngine| {
        wait_for_the_next_tick();
        engine.refresh_for_list().unwrap();
        assert!(!engine.refresh_for_list().unwrap());
    };
    // Removed, and copied in again.
    let one = path(1, &mut engine);
    let bytes = fs::read(&one).unwrap();
    fs::remove_file(&one).unwrap();
    assert_eq!(list(&mut engine), [(3, 2), (2, 2)]);
    settle(&mut engine);
    fs::write(&one, &bytes).unwrap();
    assert_eq!(list(&mut engine).len(), 3);
    settle(&mut engine);
    // Moved to another folder.
    let folder = home.path().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    fs::rename(&one, folder.join(one.file_name().unwrap())).unwrap();
    assert_eq!(list(&mut engine).len(), 3);
    assert!(path(1, &mut engine).starts_with(&folder));
    settle(&mut engine);
    // Appended to, and cut.
    let two = path(2, &mut engine);
    let head = engine.head_of(&two).unwrap().unwrap();
    let line = chained(&head, vec![human("by hand")])[0].line().to_owned();
    let mut file = fs::OpenOptions::new().append(true).open(&two).unwrap();
    writeln!(file, "{line}").unwrap();
    assert_eq!(list(&mut engine)[0], (2, 3));
    fs::OpenOptions::new()
        .write(true)
        .open(&two)
        .unwrap()
        .set_len(0)
        .unwrap();
    let listing = engine.list(&Filter::default(), &Page::first(9)).unwrap();
    assert_eq!(listing.damaged[0].id, Some(id(2)));
    assert_eq!(listing.sessions, 2);
}

#[test]
fn a_comparison_counts_until_the_system_starts_again() {
    let home = tempfile::tempdir().unwrap();
    let (mut engine, heads) = known(home.path());
    let compared = home.path().join(names::INDEX_FOLDER).join(COMPARED);
    fs::write(&compared, "another start").unwrap();
    assert!(engine.refresh_for_list().unwrap());
    assert!(!engine.refresh_for_list().unwrap());
    // A mark that cannot be left ends it as well.
    let marks = home.path().join(names::INDEX_FOLDER).join(CHANGED);
    fs::remove_dir(&marks).unwrap();
    fs::write(&marks, "in the way").unwrap();
    append(&mut engine, 1, heads[0]);
    assert!(!compared.exists());
    assert_eq!(list(&mut engine)[0], (1, 3));
}

#[test]
fn marks_tell_how_a_folder_came_to_be() {
    let mark = |n: u128, before, after| {
        let created = Created {
            folder: "chat".to_owned(),
            name: n.to_string(),
            before,
            after,
        };
        (SessionId::new(uuid::Uuid::from_u128(n)), Some(created))
    };
    let check = |marks: &[(i64, i64)], expected| {
        let marks = marks.iter().zip(1..);
        let marks = marks.map(|((before, after), n)| mark(n, *before, *after));
        let mut folders = Folders::from([(b"chat".to_vec(), (7, 10))]);
        advance(&mut folders, &marks.collect());
        assert_eq!(folders[&b"chat"[..]], (7, expected));
    };
    check(&[], 10);
    check(&[(10, 11)], 11);
    check(&[(12, 13), (10, 11), (11, 12)], 13);
    check(&[(10, 10), (10, 12), (12, 12)], 12);
    // Another program was there in between.
    check(&[(10, 11), (12, 13)], 11);
    check(&[(9, 10)], 10);
}
