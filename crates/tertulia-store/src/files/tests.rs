//! What only an engine of files shows.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use tertulia_core::entry::{Body, Entry, Head, NewEntry};
use tertulia_core::id::{EntryId, SessionId};
use tertulia_core::query::{Filter, HitFilter, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_testkit::logs::{created, human};
use uuid::Uuid;

use super::*;
use crate::engine::Engine;
use crate::{NewSession, Progress, StoreError};

pub(super) fn id(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

pub(super) fn open(dir: &Path, patience: &Patience) -> FilesEngine {
    let claims = Claims::folder(dir.join(names::OPEN_FOLDER));
    FilesEngine::open(&dir.to_owned(), &claims, patience).unwrap()
}

pub(super) fn chained(head: &Head, bodies: Vec<Body>) -> Vec<Entry> {
    let new = bodies.into_iter().map(|body| NewEntry {
        id: EntryId::new(Uuid::now_v7()),
        at: Timestamp::now(),
        body,
        redacted: Default::default(),
        author: None,
    });
    Entry::chain(head, new.collect()).unwrap()
}

pub(super) fn create(engine: &mut FilesEngine, n: u128) -> Head {
    let opening = Body::Created(created(id(n)));
    let new = NewSession {
        id: id(n),
        base: None,
        entries: chained(&Head::START, vec![opening, human("hello")]),
    };
    engine.create(&new).unwrap()
}

pub(super) fn append(engine: &mut FilesEngine, n: u128, head: Head) -> Head {
    let entries = chained(&head, vec![human("more")]);
    engine.append(id(n), head, &entries).unwrap()
}

/// Another process may be appending to a log whose creation is repeated.
#[test]
fn a_creation_that_is_repeated_waits_for_the_log() {
    let home = tempfile::tempdir().unwrap();
    let patience = Patience::new(Duration::from_millis(100), "t", None, || {
        Timestamp::UNIX_EPOCH
    });
    let mut engine = open(home.path(), &patience);
    let opening = Body::Created(created(id(1)));
    let new = NewSession {
        id: id(1),
        base: None,
        entries: chained(&Head::START, vec![opening, human("hello")]),
    };
    engine.create(&new).unwrap();
    let path = engine.live(id(1)).unwrap();
    let other = fs::File::open(&path).unwrap();
    other.lock().unwrap();
    let mut second = open(home.path(), &patience);
    let refused = second.create(&new);
    assert!(matches!(refused, Err(StoreError::Held(_))), "{refused:?}");
    other.unlock().unwrap();
    second.create(&new).unwrap();
}

#[test]
fn a_search_says_that_its_index_could_not_be_kept() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = open(home.path(), &Patience::default());
    create(&mut engine, 1);
    let query = SearchQuery {
        words: SearchTerms::parse("hello").unwrap(),
        filter: Filter::default(),
        said: HitFilter::default(),
        limit: 10,
    };
    let search = |engine: &mut FilesEngine| engine.search(&query, &Progress::unseen()).unwrap();
    assert!(!search(&mut engine).unindexed);
    // A file where the folder of derived data should be.
    let index = home.path().join(names::INDEX_FOLDER);
    fs::remove_dir_all(&index).unwrap();
    fs::write(&index, "in the way").unwrap();
    let hits = search(&mut open(home.path(), &Patience::default()));
    assert_eq!(hits.total, 1);
    assert!(hits.unindexed);
}
