//! Watches files while a client or the screen needs to know of their changes: the store, its session
//! locks, and the credentials.

use std::any::Any;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use notify::{Event, RecursiveMode, Watcher};
use tertulia_server::host::StoreChanges;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tokio::sync::watch;

use crate::link::watch_store;
use crate::settings::StoreUrl;

/// A watcher that is shared by all that wait for changes, and exists only while one does.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Weak<Watching>>>);

struct Watching {
    changed: watch::Receiver<()>,
    /// Ends the watching when dropped.
    _watcher: Box<dyn Any + Send + Sync>,
}

impl Shared {
    fn changes(
        &self,
        start: impl FnOnce(watch::Sender<()>) -> Option<Box<dyn Any + Send + Sync>>,
    ) -> Option<StoreChanges> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let watching = match shared.upgrade() {
            Some(watching) => watching,
            None => {
                let (tell, changed) = watch::channel(());
                let watching = Arc::new(Watching {
                    changed,
                    _watcher: start(tell)?,
                });
                *shared = Arc::downgrade(&watching);
                watching
            }
        };
        let mut changed = watching.changed.clone();
        changed.mark_unchanged();
        Some(StoreChanges::new(changed, watching))
    }
}

/// Watches the store.
#[derive(Clone, Default)]
pub struct StoreWatch(Shared);

impl StoreWatch {
    /// Returns the changes of a store, or `None` if they cannot be seen.
    pub fn changes(&self, url: &StoreUrl) -> Option<StoreChanges> {
        self.0.changes(|tell| {
            let watcher = watch_store(url, move || {
                tell.send_replace(());
            });
            Some(Box::new(watcher.ok()??))
        })
    }
}

/// Returns the changes of a store's session locks, or `None` if they cannot be seen.
pub fn lock_changes(url: &StoreUrl) -> Option<StoreChanges> {
    let folder = match url {
        StoreUrl::Sqlite(path) => SqliteStore::lock_folder(path),
        StoreUrl::Files(path) => FilesStore::lock_folder(path),
        _ => return None,
    };
    // It is made with the first lock; a folder that is not there cannot be watched.
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    made.ok()?;
    Shared::default().changes(|tell| {
        let on_event = move |event: notify::Result<Event>| {
            if !event.is_ok_and(|event| event.kind.is_access()) {
                tell.send_replace(());
            }
        };
        let mut watcher = notify::recommended_watcher(on_event).ok()?;
        watcher.watch(&folder, RecursiveMode::NonRecursive).ok()?;
        Some(Box::new(watcher))
    })
}

/// Watches one small file that is replaced as a whole.
#[derive(Clone)]
pub struct FileWatch {
    path: PathBuf,
    shared: Shared,
}

impl FileWatch {
    /// Creates the watcher of a file.
    pub fn new(path: &Path) -> FileWatch {
        FileWatch {
            path: path.to_owned(),
            shared: Shared::default(),
        }
    }

    /// Returns the changes of the file, or `None` if they cannot be seen.
    pub fn changes(&self) -> Option<StoreChanges> {
        self.shared.changes(|tell| {
            let name = self.path.file_name()?.to_owned();
            let on_event = move |event: notify::Result<Event>| {
                let is_it = |path: &PathBuf| path.file_name() == Some(&name);
                if event.is_ok_and(|event| !event.kind.is_access() && event.paths.iter().any(is_it))
                {
                    tell.send_replace(());
                }
            };
            let mut watcher = notify::recommended_watcher(on_event).ok()?;
            let folder = self.path.parent()?;
            watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
            Some(Box::new(watcher))
        })
    }
}
