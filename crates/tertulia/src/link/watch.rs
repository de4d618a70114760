//! Watches the files of a store, so that waiting for a change costs nothing.

use std::path::Path;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::settings::StoreUrl;

/// Calls `changed` whenever entries are written to a store, until the watcher is dropped. Returns
/// `None` for a store without files, which must be looked at from time to time.
pub fn watch_store(
    url: &StoreUrl,
    changed: impl Fn() + Send + 'static,
) -> CommandResult<Option<RecommendedWatcher>> {
    let (path, folder, mode) = match url {
        StoreUrl::Memory => return Ok(None),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(_) => return Ok(None),
        StoreUrl::Files(path) => (path.clone(), path.clone(), RecursiveMode::Recursive),
        // The file may be replaced as a whole, so its folder is watched.
        StoreUrl::Sqlite(path) => {
            let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
            (path.clone(), folder, RecursiveMode::NonRecursive)
        }
    };
    let is_files = matches!(url, StoreUrl::Files(_));
    let on_event = move |event: notify::Result<Event>| {
        let counts = match &event {
            Ok(event) if !event.need_rescan() => {
                is_write(event.kind)
                    && event.paths.iter().any(|at| match is_files {
                        true => is_log(at),
                        false => is_database(&path, at),
                    })
            }
            // Events were lost.
            _ => true,
        };
        if counts {
            changed();
        }
    };
    let failed = |error: notify::Error| {
        let message = format!("{url} cannot be watched: {error}");
        CommandError::new(ErrorKind::Failed, message).hint("sync from time to time instead")
    };
    let mut watcher = notify::recommended_watcher(on_event).map_err(failed)?;
    watcher.watch(&folder, mode).map_err(failed)?;
    Ok(Some(watcher))
}

/// Reading causes events, too.
fn is_write(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_)
    )
}

/// Derived files of a store change without new entries.
fn is_log(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(".jsonl") && !name.starts_with('.')
}

fn is_database(database: &Path, path: &Path) -> bool {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    path == database || path.as_os_str() == log
}
