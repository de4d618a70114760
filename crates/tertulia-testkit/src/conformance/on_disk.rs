//! Files on disk.

use std::path::{Path, PathBuf};

use tertulia_store::{Store, StoreResult};

use crate::ask::{assert_sound, found, now};
use crate::clock::still_clock;
use crate::logs::Writer;
use crate::place::{Folder, Place};

/// A word that occurs in no other text.
const SECRET: &str = "zyzzyvaquux";

const NONE: [PathBuf; 0] = [];

/// Returns the files that contain the word.
fn holding<S, F>(folder: &Folder<F>) -> Vec<PathBuf>
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    folder.scratch().files_with(SECRET.as_bytes())
}

/// A purge is physical: no file contains the text any more, neither log nor index.
pub fn what_is_purged_is_in_no_file<S, F>(folder: &Folder<F>)
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    let store = folder.open();
    let clock = still_clock(1);
    let mut kept = Writer::begin(&*store, &clock);
    kept.say(&*store, "something else");
    let mut writer = Writer::begin(&*store, &clock);
    writer.say(&*store, SECRET);
    now(store.keep_draft(writer.id, &writer.draft(SECRET))).unwrap();
    assert_eq!(found(&*store, SECRET).len(), 1);
    // Ensures that the search itself works.
    assert_ne!(holding(folder), NONE);
    now(store.purge(writer.id)).unwrap();
    assert_eq!(holding(folder), NONE);
    assert_sound(&*store);
}

/// The same for a prefix shared with forks, once the forks are purged, too.
pub fn what_was_purged_with_its_forks_is_in_no_file<S, F>(folder: &Folder<F>)
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    let store = folder.open();
    let mut writer = Writer::begin(&*store, &still_clock(1));
    writer.say(&*store, SECRET);
    let fork = writer.fork(&*store, 2);
    now(store.purge(writer.id)).unwrap();
    now(store.purge(fork.id)).unwrap();
    assert_eq!(holding(folder), NONE);
    assert_sound(&*store);
}

/// Sizes are those of files.
pub fn bytes_are_counted<S, F>(folder: &Folder<F>)
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    let store = folder.open();
    let mut writer = Writer::begin(&*store, &still_clock(1));
    let small = now(store.info()).unwrap();
    assert!(small.bytes > 0);
    writer.say(&*store, &"long ".repeat(20_000));
    let large = now(store.info()).unwrap();
    assert!(large.bytes >= small.bytes + 100_000, "{small:?} {large:?}");
    assert_eq!(found(&*store, "long").len(), 1);
    assert!(now(store.info()).unwrap().index_bytes > 0);
}
