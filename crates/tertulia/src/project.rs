//! Identifies the project of a session. A project is the set of all identities that its folder has
//! had: the folder itself, the root commit, the remote. Gaining or changing one hides no session.

mod folders;
mod git;
mod git_state;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tertulia_core::project::is_commit;
pub use tertulia_core::project::{Names, name};
use tertulia_core::query::{ProjectIds, Worktree};

pub use folders::{FolderRecord, Folders};
use git::Repository;
pub use git_state::git_state;

/// The project that a folder belongs to.
#[derive(Clone, Debug)]
pub struct Project {
    /// Identity of new sessions: the remote, else the root commit, else the folder.
    pub id: String,
    /// All identities that sessions of this project may have been created with.
    pub ids: ProjectIds,
    /// The repository's work tree, or the folder itself.
    pub root: PathBuf,
    /// The folder as it is now.
    now: FolderRecord,
    /// Identities that the folder has had.
    had: BTreeSet<String>,
    /// Earlier paths of the folder.
    moved_from: BTreeSet<String>,
    /// The git folder, shared by all worktrees.
    git: Option<PathBuf>,
    /// The folder in which the program was started.
    cwd: PathBuf,
}

impl Project {
    /// Inspects a folder. `home` is the user's home folder, `known` the result of earlier runs.
    pub fn of(folder: &Path, home: Option<&Path>, known: &Folders) -> Project {
        let repository = Repository::of(folder, home);
        let root = repository
            .as_ref()
            .map_or_else(|| folder.to_owned(), |found| found.root.clone());
        let mut now = FolderRecord {
            folder: root.display().to_string(),
            mark: mark(&root),
            ..FolderRecord::default()
        };
        now.ids.insert(directory(&root));
        if let Some(repository) = &repository {
            now.git_mark = mark(&repository.git);
            now.remote = repository.remote().map(|remote| format!("git:{remote}"));
            match known.find(&now) {
                // Searching a long history takes time, and its root never changes.
                Some(before)
                    if before.git_mark.is_some()
                        && before.git_mark == now.git_mark
                        && (before.root.is_some() || before.rootless) =>
                {
                    now.root.clone_from(&before.root);
                    now.rootless = before.rootless;
                }
                _ => match repository.root_commit(now.remote.is_some()) {
                    git::RootCommit::Found(commit) => now.root = Some(format!("git:{commit}")),
                    git::RootCommit::None => {}
                    git::RootCommit::TookTooLong => now.rootless = true,
                },
            }
            now.ids
                .extend(repository.main().map(|main| directory(&main)));
        }
        now.ids.extend(now.remote.clone());
        now.ids.extend(now.root.clone());
        let mut project = Project {
            id: now.id(),
            ids: ProjectIds::default(),
            root,
            now,
            had: BTreeSet::new(),
            moved_from: BTreeSet::new(),
            git: repository.map(|found| found.git),
            cwd: folder.to_owned(),
        };
        project.unite(known);
        project
    }

    /// Adds the identities that earlier runs saw in this folder and in other clones of its
    /// repository.
    pub fn unite(&mut self, known: &Folders) {
        let before = known.find(&self.now);
        self.moved_from =
            before.map_or_else(BTreeSet::new, |before| before.paths_before(&self.now));
        // Earlier paths of this folder, if it was moved.
        let moved_from = before
            .into_iter()
            .flat_map(|before| known.clones_of(before))
            .filter(|other| other.is_gone());
        let ids_of = |record: &FolderRecord| record.ids.clone();
        self.had = before
            .into_iter()
            .chain(moved_from)
            .flat_map(ids_of)
            .collect();
        let clones = known.clones_of(&self.now).flat_map(ids_of);
        let mut ids: BTreeSet<String> = self.now.ids.iter().chain(&self.had).cloned().collect();
        ids.extend(clones);
        // Sessions that began in this folder before it became part of a repository.
        ids.insert(directory(&self.cwd));
        self.ids = ids.into_iter().collect();
    }

    /// Returns the current identities, the one for new sessions first.
    pub fn identities(&self) -> Vec<String> {
        let others = self.now.ids.iter().filter(|id| **id != self.id);
        std::iter::once(&self.id).chain(others).cloned().collect()
    }

    /// Returns this worktree, or the folder if it is no repository.
    pub fn worktree(&self, known: &Folders) -> Worktree {
        let path = |path: &str| path.trim_end_matches('/').to_owned();
        let mut paths = vec![path(&self.now.folder)];
        paths.extend(self.moved_from.iter().map(|before| path(before)));
        let mut others: Vec<String> = known
            .repositories()
            .map(|record| path(&record.folder))
            .collect();
        let linked = self.git.as_deref().map(git::linked_worktrees);
        others.extend(linked.into_iter().flatten().map(|tree| path(&tree)));
        others.retain(|other| paths.iter().any(|path| is_below(other, path)));
        others.sort();
        others.dedup();
        Worktree { paths, others }
    }

    /// Returns where a folder of this project is now, if the project was moved.
    pub fn moved(&self, folder: &Path) -> Option<PathBuf> {
        let rests = self
            .moved_from
            .iter()
            .filter_map(|before| folder.strip_prefix(before).ok());
        let mut there = rests.map(|rest| self.root.join(rest));
        there.find(|folder| folder.is_dir())
    }

    /// Returns true if the project is a git repository.
    pub fn has_git(&self) -> bool {
        self.git.is_some()
    }

    /// Returns the folder's current record with its earlier identities, to be saved.
    pub fn record(&self) -> FolderRecord {
        let mut record = self.now.clone();
        record.ids.extend(self.had.iter().cloned());
        record
    }
}

impl std::fmt::Display for Project {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&name(&self.id, Some(&self.now.folder)))
    }
}

/// Returns the root of the project that a folder belongs to.
pub fn root_of(folder: &Path, home: Option<&Path>) -> PathBuf {
    Repository::of(folder, home).map_or_else(|| folder.to_owned(), |found| found.root)
}

/// Returns true if a path is below a folder.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

fn directory(folder: &Path) -> String {
    format!("dir:{}", folder.display())
}

/// Returns a fingerprint of a folder that survives renaming: device, inode and creation time.
/// `None` without a creation time, since a later folder may reuse the inode.
fn mark(folder: &Path) -> Option<String> {
    let found = fs::metadata(folder).ok()?;
    let born = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!(
        "{}:{}:{}",
        found.dev(),
        found.ino(),
        born.as_nanos()
    ))
}

/// Splits the identities of a session's project: all of them, the root commit, the remote.
fn sorted(ids: &[String]) -> (BTreeSet<String>, Option<String>, Option<String>) {
    let git = |id: &&String| id.starts_with("git:");
    let commit = |id: &&String| is_commit(id.trim_start_matches("git:"));
    let root = ids.iter().filter(git).find(commit).cloned();
    let remote = ids.iter().filter(git).find(|id| !commit(id)).cloned();
    (ids.iter().cloned().collect(), root, remote)
}

#[cfg(test)]
mod tests;
