//! File backend: one JSONL log per session, for `jq` and `rg`.
//!
//! ```text
//! DIR/tertulia-store.json                  {"format":1,"backend":"files"}
//! DIR/<team or kind>/<created ms>-<id>.jsonl   a session's own entries, one per line
//! DIR/<team or kind>/<created ms>-<id>.shared  shared prefix of a purged session (….2.shared …)
//! DIR/….jsonl.zst                          an old log, compressed, in place of the plain one
//! DIR/….jsonl.base                         what a fork continues, if its parent is gone
//! DIR/….jsonl.torn-<offset>                bytes of an interrupted append
//! DIR/….jsonl.damaged-<seconds>            a log as it was before a repair
//! DIR/.index/catalogue.db, search.db       derived list rows and full-text index: may be deleted
//! DIR/.index/ledger.db                     usage, tool calls and files touched, derived as well
//! DIR/.index/forks.db                      the diverged branches that forks keep, as JSON, derived as well
//! DIR/.open/, DIR/.drafts/<id>.json        session locks and the lock holder; partial answers
//! ```
//!
//! A fork's log begins with its `forked` entry; its shared prefix is read from its base. The parts:
//! `open` (the marker), `names` (file names), `log` (the lines of one log), `log_file` (its bytes, plain or
//! compressed), `pack` (compresses it), `engine` (create, read,
//! drafts), `append`, `cut_off` (appends that were), `base` and `owners` (what forks continue), `catalogue`, `stamps`, `fold` and
//! `changes` (list rows), `list`, `search`, `sizes`, `purge`, `check`, `repair`.

mod append;
mod base;
mod catalogue;
mod changes;
mod check;
mod cut_off;
mod engine;
mod file_stamp;
mod fold;
mod list;
mod log;
mod log_file;
mod names;
mod open;
mod opening;
mod owners;
mod pack;
mod purge;
mod repair;
mod search;
mod sizes;
mod stamps;
#[cfg(test)]
mod tests;
mod unsent;

use std::path::{Path, PathBuf};

use super::StoreResult;
use super::engine::Threaded;
use super::queue::Patience;
use super::session_lock::Claims;
use engine::FilesEngine;

pub use open::FORMAT;

/// A store in a folder of logs.
pub type FilesStore = Threaded<FilesEngine>;

impl FilesStore {
    /// Opens the store in a folder; creates one if the folder is missing or empty.
    pub fn open(dir: &Path) -> StoreResult<FilesStore> {
        Self::open_with(dir, &Patience::default())
    }

    /// Opens the store with a given [`Patience`] for other processes.
    pub fn open_with(dir: &Path, patience: &Patience) -> StoreResult<FilesStore> {
        let claims = Claims::folder(Self::lock_folder(dir));
        Self::start(dir.to_owned(), claims, patience)
    }

    /// Returns the folder of session locks of the store in a folder.
    pub fn lock_folder(dir: &Path) -> PathBuf {
        dir.join(names::OPEN_FOLDER)
    }
}
