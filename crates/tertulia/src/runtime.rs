//! The program's runtime: single-threaded, made when a command first needs it, so that `--version` and
//! completions do without.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

static RUNTIME: Mutex<Option<Arc<Runtime>>> = Mutex::new(None);

/// File descriptors that the runtime, its signal handlers and an agent need to start.
const FILES_NEEDED: usize = 12;

/// Fails if the limit on open files is too low for the runtime to start: it would panic.
pub fn enough_files() -> io::Result<()> {
    let probe = || std::fs::File::open("/dev/null");
    let opened: io::Result<Vec<_>> = (0..FILES_NEEDED).map(|_| probe()).collect();
    opened.map(drop)
}

/// Returns a runtime that waits for a store on disk: without files of its own where there are too few,
/// because such a store has threads and needs no more.
pub fn for_store() -> io::Result<Arc<Runtime>> {
    get().or_else(|_| Builder::new_current_thread().build().map(Arc::new))
}

/// Returns the runtime.
pub fn get() -> io::Result<Arc<Runtime>> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(runtime) => Ok(runtime.clone()),
        None => {
            enough_files()?;
            let made = Builder::new_current_thread().enable_all().build()?;
            Ok(known.insert(Arc::new(made)).clone())
        }
    }
}

/// Stops all that still runs, without waiting longer than `limit`.
pub fn end(limit: Duration) {
    let known = RUNTIME
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(runtime) = known.and_then(Arc::into_inner) {
        runtime.shutdown_timeout(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_until_it_ends() {
        let (one, other) = (get().unwrap(), get().unwrap());
        assert!(Arc::ptr_eq(&one, &other));
        let task = one.spawn(std::future::pending::<()>());
        drop((one, other));
        end(Duration::from_secs(1));
        assert!(task.is_finished());
    }
}
