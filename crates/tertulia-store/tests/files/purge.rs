//! Purges: what is removed and what stays.

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
fn a_purged_session_leaves_what_its_forks_share() {
    let home = Home::new();
    let session = id(1);
    let head = home.create(session);
    let shared = home.say(session, head, &["shared words"]);
    home.say(session, shared, &["private words"]);
    let fork = id(2);
    let fork_head = home.fork(fork, session, shared);
    let of_fork = id(3);
    home.fork(of_fork, fork, fork_head);
    assert_eq!(home.hits("words").len(), 2);
    block_on(home.store.purge(session)).unwrap();
    assert!(matches!(
        block_on(home.store.read(session, Seq::START, 1)),
        Err(StoreError::NotFound(_))
    ));
    assert!(matches!(
        block_on(home.store.purge(session)),
        Err(StoreError::NotFound(_))
    ));
    assert!(!home.listed().contains(&session));
    assert!(
        block_on(home.store.find(&Lookup::Id(session), 1))
            .unwrap()
            .is_empty()
    );
    assert_eq!(seqs(&home.read(of_fork)), [1, 2, 3, 4, 5, 6]);
    assert_eq!(home.hits("shared").len(), 1);
    assert!(home.hits("private").is_empty());
    for file in files_under(&home.dir()) {
        let bytes = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!bytes.contains("private words"), "{}", file.display());
    }
    assert!(home.check().is_clean());
    // The id can be used again; the forks keep their shared prefix.
    let before = home.read(of_fork);
    home.create(session);
    assert_eq!(home.listed().len(), 3);
    assert_eq!(home.read(of_fork), before);
    assert_eq!(home.again_reads(of_fork), before);
    assert!(home.check().is_clean(), "{:?}", home.check());
    block_on(home.store.purge(session)).unwrap();
    assert_eq!(home.read(of_fork), before);
    // Without forks nothing stays.
    block_on(home.store.purge(of_fork)).unwrap();
    assert!(
        !files_under(&home.dir())
            .iter()
            .any(|path| path.to_string_lossy().contains(&of_fork.to_string()))
    );
}

/// Shared prefixes are found without derived data, also through a session that is completely gone.
#[test]
fn a_fork_finds_its_beginning_past_what_is_gone() {
    let home = Home::new();
    let (base, middle, low) = (id(1), id(2), id(3));
    let first = home.create(base);
    let head = home.say(base, first, &["shared words"]);
    home.fork(middle, base, head);
    home.fork(low, middle, first);
    let before = home.read(low);
    block_on(home.store.purge(middle)).unwrap();
    assert!(
        !files_under(&home.dir())
            .iter()
            .any(|path| path.to_string_lossy().contains(&middle.to_string()))
    );
    block_on(home.store.purge(base)).unwrap();
    fs::remove_dir_all(home.dir().join(".index")).unwrap();
    assert_eq!(home.again_reads(low), before);
    assert!(home.check().is_clean(), "{:?}", home.check());
    let of_low = id(4);
    home.fork(of_low, low, first);
    let before = home.read(of_low);
    // Its chain of parents has two purged sessions.
    block_on(home.store.purge(low)).unwrap();
    assert_eq!(home.again_reads(of_low), before);
    assert_eq!(block_on(home.store.info()).unwrap().entries, 1 + 2);
    assert!(home.check().is_clean(), "{:?}", home.check());
    block_on(home.store.purge(of_low)).unwrap();
    assert_eq!(logs_under(&home.dir()), [] as [PathBuf; 0]);
}

/// A purge that was interrupted between writing the shared prefix and removing the log.
#[test]
fn a_purge_that_was_cut_off_can_be_done_again() {
    let home = Home::new();
    let (base, fork) = (id(1), id(2));
    let first = home.create(base);
    let head = home.say(base, first, &["shared words"]);
    home.say(base, head, &["private words"]);
    home.fork(fork, base, head);
    let (path, log) = (home.log(base), fs::read(home.log(base)).unwrap());
    let (whole, shared) = (home.read(base), home.read(fork));
    block_on(home.store.purge(base)).unwrap();
    fs::write(&path, &log).unwrap();
    assert_eq!(home.again_reads(base), whole);
    assert_eq!(home.again_reads(fork), shared);
    assert!(home.check().is_clean(), "{:?}", home.check());
    block_on(home.store.purge(base)).unwrap();
    assert_eq!(home.again_reads(fork), shared);
    assert_eq!(logs_under(&home.dir()).len(), 2);
    // An untrimmed shared prefix is trimmed by the next purge of any session.
    let shared_prefix = path.with_extension("shared");
    fs::write(&shared_prefix, &log).unwrap();
    assert_eq!(home.again_reads(fork), shared);
    home.create(id(9));
    block_on(home.store.purge(id(9))).unwrap();
    assert_eq!(home.again_reads(fork), shared);
    for file in files_under(&home.dir()) {
        let bytes = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!bytes.contains("private"), "{}", file.display());
    }
    block_on(home.store.purge(fork)).unwrap();
    assert_eq!(logs_under(&home.dir()), [] as [PathBuf; 0]);
}

/// Returns the logs and the files beside them.
fn logs_under(dir: &Path) -> Vec<PathBuf> {
    let mut logs = files_under(dir);
    logs.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains(".jsonl") || name.contains(".shared")
    });
    logs
}

impl Home {
    fn again_reads(&self, session: SessionId) -> Vec<Line> {
        block_on(self.again().read(session, Seq::START, usize::MAX)).unwrap()
    }
}
