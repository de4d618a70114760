//! Session locks: one lock file per open session, in a folder beside the store. The operating
//! system releases the lock when its holder ends in any way.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::{self, File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{StoreResult, place};
use tertulia_core::id::SessionId;

/// Retry interval and number of retries before a lock counts as held by another process.
const GLANCE: Duration = Duration::from_millis(1);
const GLANCES: usize = 20;

/// The session locks of one store.
#[derive(Clone, Debug)]
pub enum Claims {
    /// For a store on disk: a folder of lock files.
    Folder(PathBuf),
    /// For a store in memory: no other process can see it.
    Memory(Arc<Mutex<HashSet<SessionId>>>),
}

/// Lock on an open session, released on drop. What it holds is known to the backend alone.
#[derive(Debug)]
pub struct SessionLock {
    id: SessionId,
    _guard: Box<dyn Guard>,
}

/// Releases a session lock when it is dropped.
pub(super) trait Guard: Debug + Send + Sync {}

impl SessionLock {
    pub(super) fn new(id: SessionId, guard: impl Guard + 'static) -> SessionLock {
        SessionLock {
            id,
            _guard: Box::new(guard),
        }
    }

    /// Returns the locked session.
    pub fn session(&self) -> SessionId {
        self.id
    }
}

/// A locked file.
#[derive(Debug)]
struct LockedFile {
    path: PathBuf,
    _file: File,
}

impl Guard for LockedFile {}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Removed while still locked, so that no other process can lock the file in between.
        let _ = fs::remove_file(&self.path);
    }
}

/// An id among the open sessions of this process.
#[derive(Debug)]
struct Noted {
    id: SessionId,
    open: Arc<Mutex<HashSet<SessionId>>>,
}

impl Guard for Noted {}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Ok(mut open) = self.open.lock() {
            open.remove(&self.id);
        }
    }
}

impl Claims {
    pub(super) fn memory() -> Claims {
        Claims::Memory(Arc::default())
    }

    /// Locks a session; returns `None` if it is open elsewhere.
    pub(super) fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        match self {
            Claims::Memory(open) => {
                let free = open.lock().is_ok_and(|mut open| open.insert(id));
                let open = open.clone();
                Ok(free.then(|| SessionLock::new(id, Noted { id, open })))
            }
            Claims::Folder(folder) => {
                place::make_folder(folder)?;
                let path = folder.join(id.to_string());
                let mut patience = GLANCES;
                loop {
                    let file = place::lock_file(&path)?;
                    match file.try_lock() {
                        // A listing that checks whether the session is open holds the lock for a
                        // moment.
                        Err(TryLockError::WouldBlock) if patience > 0 => {
                            patience -= 1;
                            std::thread::sleep(GLANCE);
                        }
                        Err(TryLockError::WouldBlock) => return Ok(None),
                        Err(TryLockError::Error(error)) => {
                            return Err(place::trouble(&path, "cannot lock", error));
                        }
                        // The last holder may have removed the file between opening and locking: a
                        // lock on an unlinked file excludes no other process.
                        Ok(()) if place::names_this_file(&path, &file) => {
                            let locked = LockedFile { path, _file: file };
                            return Ok(Some(SessionLock::new(id, locked)));
                        }
                        Ok(()) => {}
                    }
                }
            }
        }
    }

    /// Returns true if the session is open.
    pub(super) fn is_open(&self, id: SessionId) -> bool {
        match self {
            Claims::Memory(open) => open.lock().is_ok_and(|open| open.contains(&id)),
            Claims::Folder(folder) => File::open(folder.join(id.to_string()))
                .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claims: &Claims) {
        let id = SessionId::new(uuid::Uuid::from_u128(5));
        let other = SessionId::new(uuid::Uuid::from_u128(6));
        assert!(!claims.is_open(id));
        let first = claims.claim(id).unwrap().unwrap();
        assert_eq!(first.session(), id);
        assert!(claims.is_open(id) && !claims.is_open(other));
        assert!(claims.claim(id).unwrap().is_none());
        assert!(claims.claim(other).unwrap().is_some());
        drop(first);
        assert!(!claims.is_open(id));
        assert!(claims.claim(id).unwrap().is_some());
    }

    #[test]
    fn one_holder_at_a_time() {
        check(&Claims::memory());
        let home = tempfile::tempdir().unwrap();
        check(&Claims::Folder(home.path().join("open")));
        // Released locks leave no files.
        assert_eq!(fs::read_dir(home.path().join("open")).unwrap().count(), 0);
    }
}
