//! Watches files while a client needs to know of their changes: the store, and the credentials.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use notify::{Event, RecursiveMode, Watcher};
use tertulia_server::host::StoreChanges;
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
