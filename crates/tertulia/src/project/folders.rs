//! Records the identities that folders have had. The file may be deleted: sessions also record the
//! identities of their folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tertulia_core::session::SessionMeta;

use super::sorted;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::private_file::{lock_of, replace};

/// All folders in which the program was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folders {
    folders: Vec<FolderRecord>,
}

/// One folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderRecord {
    /// Last known path.
    pub folder: String,
    /// Fingerprint that survives renaming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Fingerprint of its git folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_mark: Option<String>,
    /// Remote at the last inspection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Root commit at the last inspection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Whether the history is too long to find the root commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rootless: bool,
    /// All identities that it has had.
    pub ids: BTreeSet<String>,
    /// Paths that it had before it was moved.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub moved_from: BTreeSet<String>,
}

impl Folders {
    /// Reads the file; `None` if it is missing or unreadable.
    pub fn read(file: &Path) -> Option<Folders> {
        let text = fs::read_to_string(file).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Collects the folders that sessions began in, newest session first.
    pub fn of_sessions<'a>(sessions: impl IntoIterator<Item = &'a SessionMeta>) -> Folders {
        let mut folders = Folders::default();
        for session in sessions {
            let path = session
                .project_ids
                .iter()
                .find_map(|id| id.strip_prefix("dir:"));
            let Some(path) = path else { continue };
            let (ids, root, remote) = sorted(&session.project_ids);
            match folders
                .folders
                .iter_mut()
                .find(|known| known.folder == path)
            {
                Some(known) => known.ids.extend(ids),
                None => folders.folders.push(FolderRecord {
                    folder: path.to_owned(),
                    remote,
                    root,
                    ids,
                    ..FolderRecord::default()
                }),
            }
        }
        folders
    }

    /// Returns the record of a folder: by its fingerprint, else by its path.
    pub fn find(&self, now: &FolderRecord) -> Option<&FolderRecord> {
        let by_mark = |known: &&FolderRecord| known.mark.is_some() && known.mark == now.mark;
        let by_path = |known: &&FolderRecord| known.folder == now.folder && !known.is_other(now);
        let mut known = self.folders.iter();
        known.clone().find(by_mark).or_else(|| known.find(by_path))
    }

    /// Returns the folders in which the program was used on this machine, and which are still there.
    pub fn used(&self) -> impl Iterator<Item = &Path> {
        let was_used = self.folders.iter().filter(|known| known.mark.is_some());
        let folders = was_used.map(|known| Path::new(&known.folder));
        folders.filter(|folder| folder.is_dir())
    }

    /// Returns true if the program was used in a folder on this machine, or in the repository around it.
    /// What sessions say does not count: they may come from elsewhere.
    pub fn knows(&self, folder: &Path) -> bool {
        let was_used = self.folders.iter().filter(|known| known.mark.is_some());
        was_used.clone().any(|known| {
            let path = Path::new(&known.folder);
            folder == path || known.git_mark.is_some() && folder.starts_with(path)
        })
    }

    /// Returns other folders of the same project: with the same remote, or, without one, the same
    /// root commit.
    pub fn clones_of<'a>(
        &'a self,
        now: &'a FolderRecord,
    ) -> impl Iterator<Item = &'a FolderRecord> {
        self.folders.iter().filter(|other| {
            let same_root = now.root.is_some() && now.root == other.root;
            match (&now.remote, &other.remote) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (None, None) => same_root,
                // A folder that no longer exists was moved here, and gained or lost its remote.
                _ => same_root && other.is_gone(),
            }
        })
    }

    /// Returns the current identity of the project that has had this one.
    pub fn current_id(&self, id: &str) -> Option<String> {
        let known = self.folders.iter().find(|known| known.ids.contains(id))?;
        let current = known.remote.as_ref().or(known.root.as_ref());
        Some(
            current
                .cloned()
                .unwrap_or_else(|| format!("dir:{}", known.folder)),
        )
    }

    /// Returns all identities of the project that has had this one.
    pub fn ids_of(&self, id: &str) -> BTreeSet<String> {
        let current = self.current_id(id);
        let same = |known: &&FolderRecord| {
            known.ids.iter().any(|known| known == id)
                || known
                    .ids
                    .iter()
                    .any(|known| current.as_ref() == Some(known))
        };
        let records = self.folders.iter().filter(same);
        let ids = records.flat_map(|known| known.ids.iter().cloned());
        ids.chain([id.to_owned()]).chain(current.clone()).collect()
    }

    /// Returns the folders that are, or were, worktrees of a repository.
    pub fn repositories(&self) -> impl Iterator<Item = &FolderRecord> {
        self.folders.iter().filter(|known| {
            known.git_mark.is_some() || known.remote.is_some() || known.root.is_some()
        })
    }

    /// Returns the record of a folder that no longer exists: its own, or that of the repository that
    /// it was in. A repository of the whole home folder has only itself.
    pub fn of_gone(&self, folder: &Path, home: Option<&Path>) -> Option<&FolderRecord> {
        let too_wide = |root: &Path| home.is_some_and(|home| home.starts_with(root));
        let above = folder
            .ancestors()
            .skip(1)
            .take_while(|root| !too_wide(root));
        let all: Vec<&FolderRecord> = self.folders.iter().collect();
        let repositories: Vec<&FolderRecord> = self.repositories().collect();
        named(&all, folder).or_else(|| {
            let mut above = above;
            above.find_map(|root| named(&repositories, root))
        })
    }

    /// Returns true if no folder is known.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Returns true if the record of the folder is up to date.
    pub fn has(&self, now: &FolderRecord) -> bool {
        self.find(now)
            .is_some_and(|known| *known == known.clone().renewed(now))
    }

    /// Adds or updates the record of a folder.
    fn remember(&mut self, now: &FolderRecord) {
        match self.find(now).cloned() {
            Some(known) => {
                let renewed = known.clone().renewed(now);
                for record in self.folders.iter_mut().filter(|record| **record == known) {
                    *record = renewed.clone();
                }
            }
            None => self.folders.push(now.clone()),
        }
    }

    /// Writes a folder's record to the file; a new file also gets the records in `self`, taken from
    /// sessions.
    pub fn write(&self, file: &Path, now: &FolderRecord) -> CommandResult<()> {
        // A server opens many sessions of one folder: only the first has something to record.
        if Folders::read(file).is_some_and(|known| known.has(now)) {
            return Ok(());
        }
        let _held = lock_of(file)?;
        let mut folders = Folders::read(file).unwrap_or_else(|| self.clone());
        folders.remember(now);
        folders.replace(file)
    }
}

impl Folders {
    /// Removes the records of the folders that have one of these identities from the file.
    pub fn forget(file: &Path, ids: &[String]) -> CommandResult<()> {
        let is_known = |folders: &Folders| {
            let mut records = folders.folders.iter();
            records.any(|record| ids.iter().any(|id| record.ids.contains(id)))
        };
        if !Folders::read(file).is_some_and(|folders| is_known(&folders)) {
            return Ok(());
        }
        let _held = lock_of(file)?;
        let mut folders = Folders::read(file).unwrap_or_default();
        folders
            .folders
            .retain(|record| !ids.iter().any(|id| record.ids.contains(id)));
        folders.replace(file)
    }

    fn replace(&self, file: &Path) -> CommandResult<()> {
        let text = serde_json::to_string_pretty(self).map_err(|error| {
            CommandError::new(ErrorKind::Failed, "cannot write the list of projects").because(error)
        })?;
        replace(file, &text)
    }
}

/// Returns the record of the folder that has, or had, this path.
fn named<'a>(records: &[&'a FolderRecord], path: &Path) -> Option<&'a FolderRecord> {
    let path = path.display().to_string();
    let now = |record: &&&FolderRecord| record.folder == path;
    let before = |record: &&&FolderRecord| record.moved_from.contains(&path);
    let id = format!("dir:{path}");
    let ever = |record: &&&FolderRecord| record.ids.contains(&id);
    let records = || records.iter();
    let found = records().find(now).or_else(|| records().find(before));
    found.or_else(|| records().find(ever)).copied()
}

impl FolderRecord {
    /// Returns the identity of new sessions in the folder: the remote, else the root commit, else the
    /// folder.
    pub fn id(&self) -> String {
        let git = self.remote.clone().or_else(|| self.root.clone());
        git.unwrap_or_else(|| format!("dir:{}", self.folder))
    }

    /// Returns the record updated to `now`, keeping earlier identities.
    fn renewed(self, now: &FolderRecord) -> FolderRecord {
        let moved_from = self.paths_before(now);
        let mut ids = self.ids;
        ids.extend(now.ids.iter().cloned());
        FolderRecord {
            ids,
            moved_from,
            ..now.clone()
        }
    }

    /// Returns the paths that the folder had before the one that it has now.
    pub fn paths_before(&self, now: &FolderRecord) -> BTreeSet<String> {
        let mut paths = self.moved_from.clone();
        paths.insert(self.folder.clone());
        paths.remove(&now.folder);
        paths
    }

    /// Returns true if the folder no longer exists.
    pub fn is_gone(&self) -> bool {
        !Path::new(&self.folder).exists()
    }

    /// Returns true if another repository is at the same path now.
    fn is_other(&self, now: &FolderRecord) -> bool {
        let differ = |ours: &Option<String>, theirs: &Option<String>| {
            ours.is_some() && theirs.is_some() && ours != theirs
        };
        differ(&self.remote, &now.remote) && differ(&self.root, &now.root)
    }
}
