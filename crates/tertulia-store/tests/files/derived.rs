//! Opening, file permissions, and derived data.

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
fn only_a_store_is_opened() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("s");
    let refused = |dir: &Path| matches!(FilesStore::open(dir), Err(StoreError::NotAStore { .. }));
    fs::write(&dir, "a file").unwrap();
    assert!(refused(&dir));
    fs::remove_file(&dir).unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("letter.txt"), "dear").unwrap();
    assert!(refused(&dir));
    assert_eq!(files_under(&dir).len(), 1);
    fs::remove_file(dir.join("letter.txt")).unwrap();
    let marker = dir.join("tertulia-store.json");
    for content in ["", "[]", "{\"format\":1,\"backend\":\"other\"}"] {
        fs::write(&marker, content).unwrap();
        assert!(refused(&dir), "{content}");
        assert_eq!(fs::read_to_string(&marker).unwrap(), content);
    }
    fs::write(&marker, "{\"format\":3,\"else\":true}").unwrap();
    assert!(matches!(
        FilesStore::open(&dir),
        Err(StoreError::NewerFormat { found: 3, .. })
    ));
    assert_eq!(files_under(&dir).len(), 1);
    fs::remove_file(&marker).unwrap();
    FilesStore::open(&dir).unwrap();
    let marked = fs::read_to_string(&marker).unwrap();
    assert_eq!(marked.trim(), "{\"format\":1,\"backend\":\"files\"}");
    FilesStore::open(&dir).unwrap();
}

#[test]
fn everything_is_private_whatever_the_umask() {
    rustix::process::umask(rustix::fs::Mode::empty());
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let head = home.say(session, head, &["words"]);
    let draft = Draft {
        after: head,
        id: EntryId::new(Uuid::from_u128(7)),
        at: at(1),
        speaker: Speaker::plain("bo", SpeakerKind::Ai),
        model: None,
        thread: None,
        content: "half".into(),
        reasoning: None,
        sealed: false,
    };
    block_on(home.store.keep_draft(session, &draft)).unwrap();
    assert_eq!(block_on(home.store.draft(session)).unwrap(), Some(draft));
    home.hits("words");
    let _claim = block_on(home.store.claim(session)).unwrap();
    for file in files_under(&home.dir()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        assert_eq!(mode(file.parent().unwrap()), 0o700);
    }
    home.say(session, head, &["more"]);
    assert_eq!(block_on(home.store.draft(session)).unwrap(), None);
    assert!(
        fs::read_dir(home.dir().join(".drafts"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn derived_data_may_be_deleted_and_logs_replaced() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let old = fs::read(home.log(session)).unwrap();
    let longer = home.say(session, head, &["apples"]);
    let other = home.create(id(2));
    home.say(id(2), other, &["pears"]);
    assert_eq!(home.hits("apples"), [session]);
    fs::remove_dir_all(home.dir().join(".index")).unwrap();
    let again = Home {
        store: home.again(),
        home: home.home,
    };
    assert_eq!(again.hits("pears"), [id(2)]);
    assert_eq!(again.listed().len(), 2);
    // Only the catalogue is deleted: the log numbers in the index are invalid now.
    for file in files_under(&again.dir().join(".index")) {
        if file.to_string_lossy().contains("catalogue") {
            fs::remove_file(file).unwrap();
        }
    }
    assert_eq!(again.hits("apples"), [session]);
    // A log that was restored from a backup, and has grown differently since.
    fs::write(again.log(session), old).unwrap();
    let row = block_on(again.store.find(&Lookup::Id(session), 1)).unwrap();
    assert_eq!(row[0].meta.head, head);
    assert!(say(&again.store, session, longer, &["no"]).is_err());
    again.say(session, head, &["plums", "and", "cherries"]);
    assert_eq!(again.hits("cherries"), [session]);
    assert!(again.hits("apples").is_empty());
    assert!(again.check().is_clean());
    fs::remove_file(again.log(id(2))).unwrap();
    assert!(again.hits("pears").is_empty());
    assert_eq!(again.listed(), [session]);
}

#[test]
fn a_fork_lists_what_a_full_fold_says() {
    let home = Home::new();
    let session = id(1);
    let mut head = home.create(session);
    let mut heads = vec![head];
    for n in 0..600 {
        head = home.say(session, head, &[&format!("message {n}")]);
        heads.push(head);
    }
    home.listed();
    for (n, place) in [(2, 0), (3, 255), (4, 400), (5, 600)] {
        home.fork(id(n), session, heads[place]);
    }
    home.fork(id(6), id(4), heads[300]);
    home.listed();
    for n in 1..=6 {
        let entries: Vec<Entry> = home
            .read(id(n))
            .iter()
            .map(|line| Entry::decode(&line.bytes).unwrap())
            .collect();
        let folded = tertulia_core::session::SessionMeta::of(id(n), &entries);
        let found = block_on(home.store.find(&Lookup::Id(id(n)), 1)).unwrap();
        assert_eq!(found[0].meta, folded, "session {n}");
    }
    assert!(home.check().is_clean());
    let info = block_on(home.store.info()).unwrap();
    assert_eq!((info.sessions, info.entries), (6, 601 + 5 * 2));
    let rebuilt = block_on(home.store.rebuild(&Progress::unseen())).unwrap();
    assert_eq!((rebuilt.sessions, rebuilt.entries), (6, 611));
    assert_eq!(home.listed().len(), 6);
}

#[test]
fn where_nothing_can_be_derived_on_disk_it_is_derived_in_memory() {
    let home = Home::new();
    fs::write(home.dir().join(".index"), "in the way").unwrap();
    let session = id(1);
    let head = home.create(session);
    home.say(session, head, &["words"]);
    assert_eq!(home.listed(), [session]);
    assert_eq!(home.hits("words"), [session]);
    home.say(session, home_head(&home, session), &["others"]);
    assert_eq!(home.hits("others"), [session]);
    assert!(home.check().is_clean());
}

fn home_head(home: &Home, session: SessionId) -> Head {
    let found = block_on(home.store.find(&Lookup::Id(session), 1)).unwrap();
    found[0].meta.head
}

#[test]
fn damaged_derived_data_is_derived_anew() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    home.say(session, head, &["words"]);
    assert_eq!(home.hits("words"), [session]);
    let index = home.dir().join(".index");
    for name in ["catalogue.db", "search.db"] {
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(index.join(format!("{name}{suffix}")));
        }
        fs::write(index.join(name), [7; 5000]).unwrap();
    }
    let again = Home {
        store: home.again(),
        home: home.home,
    };
    assert_eq!(again.listed(), [session]);
    assert_eq!(again.hits("words"), [session]);
    assert!(again.check().is_clean());
}

#[test]
fn logs_that_continue_each_other_in_a_circle_end() {
    let home = Home::new();
    let head = home.create(id(1));
    let head = home.say(id(1), head, &["words"]);
    home.fork(id(2), id(1), head);
    home.fork(id(3), id(2), head);
    // The second is made to continue the third.
    let (from, to) = (id(1).to_string(), id(3).to_string());
    spoil(&home.log(id(2)), &from, &to);
    assert!(!home.read(id(2)).is_empty());
    home.listed();
    home.hits("words");
    assert!(!home.check().is_clean());
    home.repair();
    block_on(home.store.purge(id(2))).unwrap();
}
