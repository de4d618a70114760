//! Who has which session open: one lock file per open session, in a folder beside the store. The
//! system lets go of the lock when its holder ends, however it ends.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{StoreResult, place};
use tertulia_core::id::SessionId;

/// How long a glance at a lock may take, and after how many of them it is somebody's for good.
const GLANCE: Duration = Duration::from_millis(1);
const GLANCES: usize = 20;

/// The claims on the sessions of one store.
#[derive(Clone, Debug)]
pub(super) enum Claims {
    /// For a store on disk: a folder of lock files.
    Folder(PathBuf),
    /// For a store in memory: no other process can see it.
    Memory(Arc<Mutex<HashSet<SessionId>>>),
}

/// Holding this means having the session open.
#[derive(Debug)]
pub struct SessionLock {
    id: SessionId,
    held: Held,
}

#[derive(Debug)]
enum Held {
    /// The file is never used, only held: its lock is the claim.
    Lock(
        #[expect(dead_code, reason = "held, not used")] File,
        PathBuf,
    ),
    Memory(Arc<Mutex<HashSet<SessionId>>>),
}

impl Claims {
    pub(super) fn memory() -> Claims {
        Claims::Memory(Arc::default())
    }

    /// Claims a session, unless somebody has it.
    pub(super) fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        match self {
            Claims::Memory(open) => {
                let free = open.lock().is_ok_and(|mut open| open.insert(id));
                Ok(free.then(|| SessionLock {
                    id,
                    held: Held::Memory(open.clone()),
                }))
            }
            Claims::Folder(folder) => {
                place::make_folder(folder)?;
                let path = folder.join(id.to_string());
                let mut patience = GLANCES;
                loop {
                    let file = place::lock_file(&path)?;
                    match file.try_lock() {
                        // A list that looks whether the session is open holds the lock for a moment.
                        Err(TryLockError::WouldBlock) if patience > 0 => {
                            patience -= 1;
                            std::thread::sleep(GLANCE);
                        }
                        Err(TryLockError::WouldBlock) => return Ok(None),
                        Err(TryLockError::Error(error)) => {
                            return Err(place::trouble(&path, "cannot lock", error));
                        }
                        // The last holder may have removed the name between our opening and our
                        // locking: a lock on a file without a name keeps nobody out.
                        Ok(()) if place::names_this_file(&path, &file) => {
                            return Ok(Some(SessionLock {
                                id,
                                held: Held::Lock(file, path),
                            }));
                        }
                        Ok(()) => {}
                    }
                }
            }
        }
    }

    /// Whether somebody has the session open.
    pub(super) fn is_open(&self, id: SessionId) -> bool {
        match self {
            Claims::Memory(open) => open.lock().is_ok_and(|open| open.contains(&id)),
            Claims::Folder(folder) => File::open(folder.join(id.to_string()))
                .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))),
        }
    }
}

impl SessionLock {
    /// The session that is open.
    pub fn session(&self) -> SessionId {
        self.id
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        match &self.held {
            Held::Memory(open) => {
                if let Ok(mut open) = open.lock() {
                    open.remove(&self.id);
                }
            }
            // Removed while it is still locked, so that no one can lock it in between.
            Held::Lock(_, path) => {
                let _ = fs::remove_file(path);
            }
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
        // Nothing is left of claims that were let go.
        assert_eq!(fs::read_dir(home.path().join("open")).unwrap().count(), 0);
    }
}
