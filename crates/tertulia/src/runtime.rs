//! The program's runtime: made when a command first needs it, so that commands that only read a store
//! do without. Everything else that is asynchronous runs on it: conversations on the main thread, a
//! session of the TUI and an agent's tasks on its workers. Only a server has runtimes of its own, one
//! for sessions and one for clients, so that neither delays the other.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// File descriptors that the runtime, its signal handlers and an agent need to start.
const FILES_NEEDED: usize = 12;

/// Time that background tasks get to end.
pub const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// Number of worker threads: a busy task must not delay timers and input.
const WORKERS: usize = 2;

/// Fails if the limit on open files is too low for the runtime to start: it would panic.
pub fn enough_files() -> io::Result<()> {
    let probe = || std::fs::File::open("/dev/null");
    let opened: io::Result<Vec<_>> = (0..FILES_NEEDED).map(|_| probe()).collect();
    opened.map(drop)
}

/// Returns the runtime.
pub fn get() -> io::Result<Handle> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = &*known {
        return Ok(runtime.handle().clone());
    }
    enough_files()?;
    let made = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()?;
    Ok(known.insert(made).handle().clone())
}

/// Blocks until work on a store is done. A store on disk has threads of its own and needs no runtime,
/// whose start would take a sixth of the time of a short command.
pub fn wait_for_store<T>(work: impl Future<Output = T>) -> T {
    futures::executor::block_on(work)
}

/// Stops all that still runs, without waiting long.
pub fn end() {
    let known = RUNTIME
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(runtime) = known {
        runtime.shutdown_timeout(LEAVE_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_until_it_ends() {
        let (one, other) = (get().unwrap(), get().unwrap());
        assert_eq!(one.id(), other.id());
        let task = one.spawn(std::future::pending::<()>());
        end();
        assert!(task.is_finished());
    }
}
