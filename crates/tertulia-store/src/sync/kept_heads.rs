//! Remembers in a derived file which branch ends where a fork ends, so that a sync without changes does
//! not read the logs of all forks that keep a branch.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Store, place};
use tertulia_core::entry::Head;
use tertulia_core::id::SessionId;

/// Name of the derived file.
const NAME: &str = "forks";
/// Version of the file; one of another version is not used.
const VERSION: u32 = 1;

/// The branch that a fork keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptHead {
    /// End of the fork. Hashes are chained, so that it stands for the whole log: what was computed
    /// from another log is not used.
    pub(super) end: Head,
    /// Session that the branch continues.
    pub(super) root: SessionId,
    /// Last entry of the branch.
    pub(super) head: Head,
}

#[derive(Serialize, Deserialize)]
struct Document {
    version: u32,
    forks: HashMap<SessionId, KeptHead>,
}

/// The branches that forks keep, as far as they are known. Changes are saved when it is dropped.
#[derive(Debug)]
pub(super) struct KeptHeads {
    /// `None` if the store has no place for derived files.
    path: Option<PathBuf>,
    /// `None` until it is read.
    forks: Option<HashMap<SessionId, KeptHead>>,
    is_changed: bool,
}

impl KeptHeads {
    pub(super) fn of(store: &dyn Store) -> KeptHeads {
        KeptHeads {
            path: store.derived_file(NAME),
            forks: None,
            is_changed: false,
        }
    }

    fn forks(&mut self) -> &mut HashMap<SessionId, KeptHead> {
        let path = &self.path;
        self.forks.get_or_insert_with(|| {
            let bytes = path.as_ref().and_then(|path| std::fs::read(path).ok());
            let document = bytes.and_then(|bytes| serde_json::from_slice::<Document>(&bytes).ok());
            let document = document.filter(|document| document.version == VERSION);
            document.map_or_else(HashMap::new, |document| document.forks)
        })
    }

    /// Returns the branch of a fork that ends at `end`.
    pub(super) fn get(&mut self, id: SessionId, end: Head) -> Option<KeptHead> {
        let known = self.forks().get(&id).copied();
        known.filter(|known| known.end == end)
    }

    pub(super) fn insert(&mut self, id: SessionId, kept: KeptHead) {
        self.is_changed |= self.forks().insert(id, kept) != Some(kept);
    }

    /// Forgets the forks that are not among `present`.
    pub(super) fn retain(&mut self, present: &HashSet<SessionId>) {
        // Without forks that keep a branch, the file need not even be read.
        if self.forks.is_some() {
            let before = self.forks().len();
            self.forks().retain(|id, _| present.contains(id));
            self.is_changed |= self.forks().len() != before;
        }
    }
}

impl Drop for KeptHeads {
    fn drop(&mut self) {
        let (Some(path), Some(forks)) = (&self.path, self.forks.take()) else {
            return;
        };
        let document = Document {
            version: VERSION,
            forks,
        };
        if self.is_changed
            && let Ok(bytes) = serde_json::to_vec(&document)
        {
            // Ignore errors: the next sync computes it again.
            let _ = place::make_folder(place::folder_of(path))
                .and_then(|()| place::write_over(path, &bytes));
        }
    }
}
