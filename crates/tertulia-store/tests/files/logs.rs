//! Logs: interrupted appends, two writers, partial reads, damage.

#![allow(unused_imports, reason = "one list of names for the whole suite")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tertulia_core::entry::{
    Body, Created, Entry, Forked, Head, Kind, Message, NewEntry, Origin, Relation, Role, Speaker,
    SpeakerKind,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Filter, Lookup, Page, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_core::session::{Line, Log};
use tertulia_store::files::FilesStore;
use tertulia_store::{
    CheckMode, Draft, Maintenance, NewSession, Progress, Report, Store, StoreError,
};
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

use super::home::*;

#[test]
fn an_append_cut_off_anywhere_leaves_all_that_was_acknowledged() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["first", "second"]);
    let path = home.log(session);
    let sound = fs::read(&path).unwrap();
    home.say(session, head, &["third", "fourth"]);
    let whole = fs::read(&path).unwrap();
    for cut in sound.len()..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let lines = home.read(session);
        assert_eq!(seqs(&lines), [1, 2, 3], "cut at {cut}");
        assert!(home.check().is_clean());
        let expected_notes = usize::from(cut > sound.len());
        assert_eq!(home.check().notes.len(), expected_notes, "cut at {cut}");
        home.say(session, head, &["anew"]);
        let lines = home.read(session);
        assert_eq!(seqs(&lines), [1, 2, 3, 4]);
        assert!(is_sound(session, &lines));
        let torn = PathBuf::from(format!("{}.torn-{}", path.display(), sound.len()));
        if cut > sound.len() {
            assert_eq!(fs::read(&torn).unwrap(), &whole[sound.len()..cut]);
            assert_eq!(mode(&torn), 0o600);
            fs::remove_file(&torn).unwrap();
        } else {
            assert!(!torn.exists());
        }
    }
}

/// Words of many blocks on disk.
fn long_words() -> String {
    "many words ".repeat(2000)
}

/// Overwrites the middle of the last append of a log with zeros, line feeds or other bytes.
fn make_hole(path: &Path, whole: &[u8], sound: usize, filler: &[u8]) {
    let mut bytes = whole.to_vec();
    let hole = bytes[sound + 4096..sound + 12_288].iter_mut();
    hole.zip(filler.iter().cycle())
        .for_each(|(byte, with)| *byte = *with);
    fs::write(path, bytes).unwrap();
}

/// After a power cut the end of an append can be on disk, and its middle not.
#[test]
fn an_append_without_its_middle_was_cut_off() {
    let words = long_words();
    for append in [&[&words[..]][..], &[&words, "and on"], &["first", &words]] {
        for filler in [&b"\0"[..], b"old bytes\n", b"{}\n\n"] {
            let home = Home::new();
            let session = id(1);
            let head = home.create(session);
            let head = home.say(session, head, &["hello"]);
            let path = home.log(session);
            let sound = fs::read(&path).unwrap().len();
            let mark = home.dir().join(".index/changed").join(session.to_string());
            let marked = fs::read(&mark).unwrap();
            home.say(session, head, append);
            make_hole(&path, &fs::read(&path).unwrap(), sound, filler);
            let torn = fs::read(&path).unwrap()[sound..].to_vec();
            // It was never acknowledged.
            fs::write(&mark, marked).unwrap();
            assert_eq!(seqs(&home.read(session)), [1, 2]);
            let report = home.check();
            assert!(report.is_clean(), "{report:?}");
            assert!(report.notes[0].contains("an append that was cut off"));
            assert_eq!(home.listed(), [session]);
            assert!(home.check().is_clean());
            say(&home.again(), session, head, &["anew"]).unwrap();
            let lines = home.read(session);
            assert_eq!(seqs(&lines), [1, 2, 3]);
            assert!(is_sound(session, &lines));
            let aside = PathBuf::from(format!("{}.torn-{sound}", path.display()));
            assert_eq!(fs::read(aside).unwrap(), torn);
        }
    }
}

/// What derived data knows was acknowledged: a hole in it is damage.
#[test]
fn a_hole_in_an_acknowledged_append_is_damage() {
    let words = long_words();
    for append in [&[&words[..]][..], &[&words, "and on"]] {
        for is_listed in [false, true] {
            let home = Home::new();
            let session = id(1);
            let head = home.create(session);
            let path = home.log(session);
            let sound = fs::read(&path).unwrap().len();
            let head = home.say(session, head, append);
            if is_listed {
                assert_eq!(home.listed(), [session]);
                let mark = home.dir().join(".index/changed").join(session.to_string());
                assert!(!mark.exists());
            }
            make_hole(&path, &fs::read(&path).unwrap(), sound, b"\0");
            let report = home.check();
            assert_eq!(report.damage[0].seq, Seq(2), "{report:?}");
            assert_eq!(home.read(session).len(), 1 + append.len());
            let report = home.repair();
            assert!(report.lost[0].contains("entry 2"), "{report:?}");
            assert!(say(&home.store, session, head, &["stale"]).is_err());
        }
    }
}

#[test]
fn a_log_cut_off_in_its_making_is_no_session() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    let path = home.log(session);
    let whole = fs::read(&path).unwrap();
    for cut in [0, 1, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(home.listed().is_empty());
        let read = block_on(home.store.read(session, Seq::START, 10));
        assert!(matches!(read, Err(StoreError::NotFound(_))));
        let report = home.check();
        assert!(report.is_clean() && !report.notes.is_empty());
    }
    // The id is free, and the bytes are kept.
    home.create(session);
    assert_eq!(home.listed(), [session]);
    let kept = PathBuf::from(format!("{}.torn-0", path.display()));
    assert_eq!(fs::read(kept).unwrap(), &whole[..whole.len() - 1]);
    // So are those of a second creation that was interrupted.
    fs::write(&path, "zzz").unwrap();
    home.create(session);
    let kept = |name: &str| fs::read(format!("{}.{name}", path.display())).unwrap();
    assert_eq!(kept("torn-0"), &whole[..whole.len() - 1]);
    assert_eq!(kept("torn-00"), b"zzz");
    let taken = Entry::chain(&Head::START, vec![opening(session)]).unwrap();
    assert!(matches!(
        home.make(session, None, taken),
        Err(StoreError::Exists(_))
    ));
}

#[test]
fn of_two_who_write_one_is_told() {
    let home = Home::new();
    let other = home.again();
    let session = id(1);
    let head = home.create(session);
    let ours = home.say(session, head, &["ours"]);
    match say(&other, session, head, &["theirs"]) {
        Err(StoreError::Conflict { head, .. }) => assert_eq!(head, ours),
        answer => panic!("{answer:?}"),
    }
    let theirs = say(&other, session, ours, &["theirs"]).unwrap();
    assert!(say(&home.store, session, ours, &["late"]).is_err());
    home.say(session, theirs, &["in turn"]);
    assert!(is_sound(session, &home.read(session)));
    // One store purges a session whose log the other has open.
    let head = block_on(home.store.find(&Lookup::Id(session), 1)).unwrap()[0]
        .meta
        .head;
    block_on(other.purge(session)).unwrap();
    assert!(matches!(
        say(&home.store, session, head, &["too late"]),
        Err(StoreError::NotFound(_))
    ));
}

#[test]
fn many_writers_lose_nothing() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = home.again();
            scope.spawn(move || {
                let mut done = 0;
                while done < 20 {
                    let head = block_on(store.find(&Lookup::Id(session), 1)).unwrap()[0]
                        .meta
                        .head;
                    match say(&store, session, head, &[&format!("{writer} {done}"), "and"]) {
                        Ok(_) => done += 1,
                        Err(StoreError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let lines = home.read(session);
    assert_eq!(lines.len(), 1 + 4 * 20 * 2);
    assert!(is_sound(session, &lines));
}

#[test]
fn reading_a_piece_is_reading_all_and_cutting() {
    let home = Home::new();
    let session = id(1);
    let mut entries = Entry::chain(&Head::START, vec![opening(session)]).unwrap();
    let mut random: u64 = 42;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    while entries.len() < 5000 {
        let words = "x".repeat(usize::try_from(next(400)).unwrap());
        let head = entries.last().unwrap().head();
        entries.extend(Entry::chain(&head, vec![said(&words)]).unwrap());
    }
    home.make(session, None, entries).unwrap();
    let path = home.log(session);
    let check = |next: &mut dyn FnMut(u64) -> u64| {
        let all = home.read(session);
        assert_eq!(all.len(), 5000);
        for _ in 0..200 {
            let after = next(5100);
            let limit = usize::try_from(next(80)).unwrap();
            let piece = block_on(home.store.read(session, Seq(after), limit)).unwrap();
            let expected: Vec<Line> = all
                .iter()
                .filter(|line| line.seq.0 > after)
                .take(limit)
                .cloned()
                .collect();
            assert_eq!(piece, expected, "after {after}, {limit}");
        }
        all
    };
    let sound = check(&mut next);
    // Damage does not renumber other lines: one line is garbage, one has a wrong number.
    spoil(&path, "{\"v\":1,\"seq\":2500,", "#\"v\":1,\"seq\":2500,");
    spoil(&path, "{\"v\":1,\"seq\":3000,", "{\"v\":1,\"seq\":9000,");
    let spoilt = check(&mut next);
    assert_eq!(seqs(&spoilt), seqs(&sound));
    let log = Log::read(session, Some(Head::START), Seq::START, &spoilt);
    let damaged: Vec<u64> = log.damage.iter().map(|damage| damage.seq.0).collect();
    assert_eq!(damaged, [2500, 3000]);
}

#[test]
fn damage_is_found_and_repaired() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let middle = home.say(session, head, &["one", "two"]);
    let head = home.say(session, middle, &["three"]);
    let fork = id(2);
    home.fork(fork, session, middle);
    let late = id(3);
    home.fork(late, session, head);
    assert!(home.check().is_clean());
    let path = home.log(session);
    spoil(&path, "\"two\"", "\"wto\"");
    let report = home.check();
    assert_eq!(report.damage.len(), 1);
    assert_eq!(report.damage[0].seq, Seq(3));
    let report = home.repair();
    assert!(!report.repaired.is_empty() && !report.lost.is_empty());
    assert!(home.check().is_clean(), "{:?}", home.check());
    for session in [session, fork, late] {
        assert!(is_sound(session, &home.read(session)));
    }
    let kept = PathBuf::from(format!(
        "{}.damaged-{}",
        path.display(),
        at(5000).as_second()
    ));
    assert!(fs::read_to_string(kept).unwrap().contains("wto"));
    assert_eq!(home.listed().len(), 3);
    assert_eq!(home.hits("fork").len(), 2);
}

#[test]
fn a_damaged_last_line_stops_appends_until_a_repair() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["one"]);
    let path = home.log(session);
    spoil(&path, "\"type\":\"message\"", "\"type\"#\"message\"");
    assert_eq!(seqs(&home.read(session)), [1, 2]);
    match say(&home.again(), session, head, &["two"]) {
        Err(StoreError::Damaged { reason, .. }) => assert!(reason.contains("repair")),
        answer => panic!("{answer:?}"),
    }
    let open = block_on(home.store.claim(session)).unwrap();
    let refused = block_on(
        home.store
            .check(CheckMode::Repair(at(5000)), &Progress::unseen()),
    );
    assert!(matches!(refused, Err(StoreError::Locked { .. })));
    drop(open);
    home.repair();
    assert!(home.check().is_clean());
    let lines = home.read(session);
    let head = Entry::decode(&lines.last().unwrap().bytes).unwrap().head();
    home.say(session, head, &["two"]);
    assert!(is_sound(session, &home.read(session)));
}

#[test]
fn a_fork_outlives_its_first_line() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["shared words"]);
    let fork = id(2);
    home.fork(fork, session, head);
    spoil(
        &home.log(fork),
        "\"type\":\"forked\"",
        "\"type\"#\"forked\"",
    );
    assert_eq!(seqs(&home.read(fork)), [1, 2, 3, 4]);
    assert_eq!(home.check().damage.len(), 1);
    home.repair();
    assert!(home.check().is_clean(), "{:?}", home.check());
    let lines = home.read(fork);
    assert!(is_sound(fork, &lines) && lines.len() >= 4);
    // Without its base the sequence numbers stay, and the shared text is lost.
    fs::remove_file(home.log(session)).unwrap();
    assert!(!home.check().is_clean());
    home.repair();
    assert!(home.check().is_clean(), "{:?}", home.check());
    assert!(is_sound(fork, &home.read(fork)));
}

#[test]
fn what_is_no_log_is_named_and_hides_nothing() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    let folder = home.log(session).parent().unwrap().to_owned();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    for (n, content) in [&b"\n\n\n"[..], &[0; 3000], b"{}\n{}\n", b"rubbish"]
        .into_iter()
        .enumerate()
    {
        let name = format!("{n}-{}.jsonl", id(100 + n as u128));
        fs::write(folder.join(name), content).unwrap();
    }
    let report = home.check();
    assert!(report.notes.iter().any(|note| note.contains("notes.txt")));
    assert_eq!(report.damage.len(), 5);
    assert!(home.listed().contains(&session));
    assert!(home.hits("nothing").is_empty());
    home.repair();
    assert!(home.check().is_clean(), "{:?}", home.check());
    assert!(folder.join("notes.txt").exists());
}

#[test]
fn a_log_under_a_wrong_name_gets_its_own() {
    let home = Home::new();
    let session = id(1);
    home.create(session);
    let path = home.log(session);
    fs::rename(&path, path.with_file_name(format!("7-{}.jsonl", id(9)))).unwrap();
    assert!(!home.check().is_clean());
    home.repair();
    assert!(home.check().is_clean());
    assert_eq!(home.listed(), [session]);
}
