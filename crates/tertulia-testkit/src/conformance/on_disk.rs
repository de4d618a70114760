//! Files on disk.

use std::path::{Path, PathBuf};

use tertulia_store::{Progress, Store, StoreResult};

use super::unsent::words;
use crate::ask::{assert_sound, found, now};
use crate::clock::still_clock;
use crate::logs::Writer;
use crate::place::{Folder, Place};

/// A word that occurs in no other text.
const SECRET: &str = "zyzzyvaquux";

/// The first bytes of compressed lines.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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
    now(store.keep_unsent(writer.id, &words(&[SECRET]))).unwrap();
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

/// The same for a session that was compressed, and for its fork; what they had takes less room.
pub fn what_was_compressed_and_purged_is_in_no_file<S, F>(folder: &Folder<F>)
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    let store = folder.open();
    let mut writer = Writer::begin(&*store, &still_clock(1));
    for turn in 0..300 {
        writer.say(&*store, &format!("{SECRET} {turn} {}", "words ".repeat(50)));
    }
    let fork = writer.fork(&*store, 200);
    let before = now(store.info()).unwrap();
    let ids = [writer.id, fork.id];
    now(store.compress(&ids, &Progress::unseen())).unwrap();
    let after = now(store.info()).unwrap();
    assert!(after.bytes * 3 < before.bytes, "{before:?} {after:?}");
    assert!(after.format > before.format, "earlier programs refuse it");
    let packed = || folder.scratch().files_with(&MAGIC);
    assert_ne!(packed(), NONE);
    now(store.purge(writer.id)).unwrap();
    assert_sound(&*store);
    now(store.purge(fork.id)).unwrap();
    assert_eq!((holding(folder), packed()), (NONE.to_vec(), NONE.to_vec()));
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
