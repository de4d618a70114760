//! Session locks: one lock file per open session, in a folder beside the store. The operating
//! system releases the lock when its holder ends in any way.
//!
//! The file names its holder. Another program can take a session over: it puts a locked file of its own
//! in the place of that one, and the appends of the earlier holder are refused from then on.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::fs::{self, File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::queue::{LockHolder, Patience, Record};
use super::{StoreError, StoreResult, place};
use tertulia_core::id::SessionId;

/// Retry interval and number of retries before a lock counts as held by another process.
const GLANCE: Duration = Duration::from_millis(1);
const GLANCES: usize = 20;

/// The session locks of one store.
#[derive(Clone, Debug)]
pub enum Claims {
    /// For a store on disk: a folder of lock files.
    Folder(Arc<LockFolder>),
    /// For a store in memory: no other process can see it.
    Memory(Arc<Mutex<HashSet<SessionId>>>),
}

/// A folder of lock files.
#[derive(Debug)]
pub struct LockFolder {
    path: PathBuf,
    /// Locks that this process has taken.
    held: Mutex<HashMap<SessionId, Arc<File>>>,
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
    id: SessionId,
    path: PathBuf,
    file: Arc<File>,
    folder: Arc<LockFolder>,
}

impl Guard for LockedFile {}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if let Ok(mut held) = self.folder.held.lock()
            && held
                .get(&self.id)
                .is_some_and(|file| Arc::ptr_eq(file, &self.file))
        {
            held.remove(&self.id);
        }
        // Removed while still locked, so that no other process can lock the file in between. The file of
        // a program that took over stays.
        if place::names_this_file(&self.path, &self.file) {
            let _ = fs::remove_file(&self.path);
        }
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

impl LockFolder {
    fn path_of(&self, id: SessionId) -> PathBuf {
        self.path.join(id.to_string())
    }

    /// Makes the lock of a file that this process has locked.
    fn lock(self: &Arc<Self>, id: SessionId, file: File, me: &Patience) -> SessionLock {
        Record::Inside.write(&file, &me.holder());
        let file = Arc::new(file);
        if let Ok(mut held) = self.held.lock() {
            held.insert(id, file.clone());
        }
        let locked = LockedFile {
            id,
            path: self.path_of(id),
            file,
            folder: self.clone(),
        };
        SessionLock::new(id, locked)
    }

    fn claim(self: &Arc<Self>, id: SessionId, me: &Patience) -> StoreResult<Option<SessionLock>> {
        place::make_folder(&self.path)?;
        let path = self.path_of(id);
        let mut patience = GLANCES;
        loop {
            let file = place::lock_file(&path)?;
            match file.try_lock() {
                // A listing that checks whether the session is open holds the lock for a moment.
                Err(TryLockError::WouldBlock) if patience > 0 => {
                    patience -= 1;
                    std::thread::sleep(GLANCE);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => {
                    return Err(place::trouble(&path, "cannot lock", error));
                }
                // The last holder may have removed the file between opening and locking: a lock on an
                // unlinked file excludes no other process.
                Ok(()) if place::names_this_file(&path, &file) => {
                    return Ok(Some(self.lock(id, file, me)));
                }
                Ok(()) => {}
            }
        }
    }

    fn take_over(self: &Arc<Self>, id: SessionId, me: &Patience) -> StoreResult<SessionLock> {
        place::make_folder(&self.path)?;
        let path = self.path_of(id);
        let new = place::with_suffix(&path, &format!("-{}", std::process::id()));
        let say = |error| place::trouble(&new, "cannot lock", error);
        let file = place::lock_file(&new)?;
        file.lock().map_err(say)?;
        Record::Inside.write(&file, &me.holder());
        fs::rename(&new, &path).map_err(say)?;
        Ok(self.lock(id, file, me))
    }

    fn holder(&self, id: SessionId) -> Option<LockHolder> {
        let file = File::open(self.path_of(id)).ok()?;
        is_locked(&file).then(|| Record::Inside.read(&file).unwrap_or_default())
    }

    fn is_fenced(&self, id: SessionId) -> bool {
        let held = self.held.lock().ok();
        let file = held.and_then(|held| held.get(&id).cloned());
        file.is_some_and(|file| !place::names_this_file(&self.path_of(id), &file))
    }
}

fn is_locked(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

impl Claims {
    pub(super) fn memory() -> Claims {
        Claims::Memory(Arc::default())
    }

    /// Returns the locks in a folder.
    pub(super) fn folder(path: PathBuf) -> Claims {
        Claims::Folder(Arc::new(LockFolder {
            path,
            held: Mutex::default(),
        }))
    }

    /// Locks a session for the program that `me` names; returns `None` if it is open elsewhere.
    pub(super) fn claim(&self, id: SessionId, me: &Patience) -> StoreResult<Option<SessionLock>> {
        match self {
            Claims::Memory(open) => {
                let free = open.lock().is_ok_and(|mut open| open.insert(id));
                let open = open.clone();
                Ok(free.then(|| SessionLock::new(id, Noted { id, open })))
            }
            Claims::Folder(folder) => folder.claim(id, me),
        }
    }

    /// Locks a session, also if it is open elsewhere.
    pub(super) fn take_over(&self, id: SessionId, me: &Patience) -> StoreResult<SessionLock> {
        match self {
            Claims::Memory(_) => self.claim(id, me)?.ok_or_else(|| {
                let words = "this program has the session open already";
                StoreError::Refused(words.to_owned())
            }),
            Claims::Folder(folder) => folder.take_over(id, me),
        }
    }

    /// Returns who has a session open.
    pub(super) fn holder(&self, id: SessionId) -> Option<LockHolder> {
        match self {
            Claims::Memory(_) => self.is_open(id).then(LockHolder::default),
            Claims::Folder(folder) => folder.holder(id),
        }
    }

    /// Returns true if this process had locked the session, and another one took it over.
    pub(super) fn is_fenced(&self, id: SessionId) -> bool {
        match self {
            Claims::Memory(_) => false,
            Claims::Folder(folder) => folder.is_fenced(id),
        }
    }

    /// Returns true if the session is open.
    pub(super) fn is_open(&self, id: SessionId) -> bool {
        match self {
            Claims::Memory(open) => open.lock().is_ok_and(|open| open.contains(&id)),
            Claims::Folder(folder) => {
                File::open(folder.path_of(id)).is_ok_and(|file| is_locked(&file))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(claims: &Claims) {
        let me = &Patience::default();
        let id = SessionId::new(uuid::Uuid::from_u128(5));
        let other = SessionId::new(uuid::Uuid::from_u128(6));
        assert!(!claims.is_open(id));
        let first = claims.claim(id, me).unwrap().unwrap();
        assert_eq!(first.session(), id);
        assert!(claims.is_open(id) && !claims.is_open(other));
        assert!(claims.claim(id, me).unwrap().is_none());
        assert!(claims.claim(other, me).unwrap().is_some());
        drop(first);
        assert!(!claims.is_open(id));
        assert!(claims.claim(id, me).unwrap().is_some());
    }

    #[test]
    fn one_holder_at_a_time() {
        check(&Claims::memory());
        let home = tempfile::tempdir().unwrap();
        check(&Claims::folder(home.path().join("open")));
        // Released locks leave no files.
        assert_eq!(fs::read_dir(home.path().join("open")).unwrap().count(), 0);
    }

    #[test]
    fn a_session_is_taken_over() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("open");
        let [here, there] = [&folder, &folder].map(|folder| Claims::folder(folder.clone()));
        let id = SessionId::new(uuid::Uuid::from_u128(5));
        let now = || "2026-11-17T08:00:00Z".parse().unwrap();
        let me = &Patience::new(Duration::ZERO, "tertulia 1.0", Some("laptop"), now);
        assert_eq!(here.holder(id), None);
        let first = here.claim(id, me).unwrap().unwrap();
        let holder = there.holder(id).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(holder.host.as_deref(), Some("laptop"));
        assert_eq!(holder.since, Some(now()));
        assert!(!here.is_fenced(id) && !there.is_fenced(id));
        let second = there.take_over(id, me).unwrap();
        assert!(here.is_fenced(id) && !there.is_fenced(id));
        // The earlier holder's end does not release the lock of the other.
        drop(first);
        assert!(there.is_open(id) && !here.is_fenced(id));
        assert!(here.claim(id, me).unwrap().is_none());
        drop(second);
        assert!(!there.is_open(id));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        // What is free can be taken over, too.
        drop(here.take_over(id, me).unwrap());
        assert!(here.claim(id, me).unwrap().is_some());
    }
}
