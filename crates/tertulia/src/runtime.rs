//! The program's runtime: single-threaded, made when a command first needs it, so that `--version` and
//! completions do without.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

static RUNTIME: Mutex<Option<Arc<Runtime>>> = Mutex::new(None);

/// Returns the runtime.
pub fn get() -> io::Result<Arc<Runtime>> {
    let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(runtime) => Ok(runtime.clone()),
        None => {
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
