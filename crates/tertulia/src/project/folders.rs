//! What was seen of folders: which identities each has had. The file may be deleted; the sessions themselves say
//! which identities their folders had.

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
    /// Where it was last.
    pub folder: String,
    /// What stays of it when it is renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// The same of its git folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_mark: Option<String>,
    /// Its remote, when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Its root commit, when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Whether its history is too long for the root commit to be looked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rootless: bool,
    /// Every identity that it has had.
    pub ids: BTreeSet<String>,
}

impl Folders {
    /// Reads the file; `None` where there is none that can be read.
    pub fn read(file: &Path) -> Option<Folders> {
        let text = fs::read_to_string(file).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The folders that sessions, newest first, were begun in.
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

    /// The record of a folder: by what stays of it, else by where it is.
    pub fn find(&self, now: &FolderRecord) -> Option<&FolderRecord> {
        let by_mark = |known: &&FolderRecord| known.mark.is_some() && known.mark == now.mark;
        let by_path = |known: &&FolderRecord| known.folder == now.folder && !known.is_other(now);
        let mut known = self.folders.iter();
        known.clone().find(by_mark).or_else(|| known.find(by_path))
    }

    /// Other folders of the same project: with the same remote, or, without one, the same root commit.
    pub fn clones_of<'a>(
        &'a self,
        now: &'a FolderRecord,
    ) -> impl Iterator<Item = &'a FolderRecord> {
        self.folders.iter().filter(|other| {
            let same_root = now.root.is_some() && now.root == other.root;
            match (&now.remote, &other.remote) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (None, None) => same_root,
                // What is there no more was moved here, and gained or lost its remote.
                _ => same_root && other.is_gone(),
            }
        })
    }

    /// Whether no folder is known.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// Whether the file already says this of the folder.
    pub fn has(&self, now: &FolderRecord) -> bool {
        self.find(now)
            .is_some_and(|known| *known == known.clone().renewed(now))
    }

    /// Remembers a folder as it is now.
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

    /// Writes a folder, and what sessions say of others where there was no file, into the file.
    pub fn write(&self, file: &Path, now: &FolderRecord) -> CommandResult<()> {
        let _held = lock_of(file)?;
        let mut folders = Folders::read(file).unwrap_or_else(|| self.clone());
        folders.remember(now);
        let text = serde_json::to_string_pretty(&folders).map_err(|error| {
            CommandError::new(ErrorKind::Failed, "cannot write the list of projects").because(error)
        })?;
        replace(file, &text)
    }
}

impl FolderRecord {
    /// The same folder, seen again.
    fn renewed(self, now: &FolderRecord) -> FolderRecord {
        let mut ids = self.ids;
        ids.extend(now.ids.iter().cloned());
        FolderRecord { ids, ..now.clone() }
    }

    /// Whether the folder is not there any more.
    pub fn is_gone(&self) -> bool {
        !Path::new(&self.folder).exists()
    }

    /// Whether another repository is in the same place now.
    fn is_other(&self, now: &FolderRecord) -> bool {
        let differ = |ours: &Option<String>, theirs: &Option<String>| {
            ours.is_some() && theirs.is_some() && ours != theirs
        };
        differ(&self.remote, &now.remote) && differ(&self.root, &now.root)
    }
}
