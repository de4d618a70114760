//! Location of a store, to open it several times like several processes.

use std::path::Path;

use tertulia_store::{Store, StoreResult};

use crate::scratch::Scratch;

/// Location of one store, empty at first. Each call of `open` returns a handle of its own, like
/// that of another process.
pub trait Place: Sync {
    /// Opens the store.
    fn open(&self) -> Box<dyn Store>;
}

/// A location on disk.
#[derive(Debug)]
pub struct Folder<F> {
    scratch: Scratch,
    open: F,
}

impl<S, F> Folder<F>
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    /// Creates an empty directory, in which `open` opens a store.
    pub fn new(open: F) -> Folder<F> {
        Folder {
            scratch: Scratch::new(),
            open,
        }
    }

    /// Returns the directory.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }
}

impl<S, F> Place for Folder<F>
where
    S: Store + 'static,
    F: Fn(&Path) -> StoreResult<S> + Sync,
{
    fn open(&self) -> Box<dyn Store> {
        Box::new((self.open)(self.scratch.path()).expect("the store can be opened"))
    }
}
