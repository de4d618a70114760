//! Where a store lives, so that it can be opened again as another process would.

use std::path::Path;

use tertulia_store::{Store, StoreResult};

use crate::scratch::Scratch;

/// A place for one store, empty at first. Each opening is a handle of its own, as another process
/// would have it.
pub trait Place: Sync {
    /// Opens the store that lives here.
    fn open(&self) -> Box<dyn Store>;
}

/// A place on disk.
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
    /// A new empty folder, in which `open` opens a store.
    pub fn new(open: F) -> Folder<F> {
        Folder {
            scratch: Scratch::new(),
            open,
        }
    }

    /// The folder.
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
