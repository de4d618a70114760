//! File names as completion candidates.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder};

use crate::completion::Candidate;
use crate::host::Workspace;

/// Maximum number of candidates.
const MOST: usize = 10_000;
/// Number of candidates offered regardless of the typed text; beyond that only matching ones.
const ANY: usize = 5_000;
/// Maximum number of directory entries visited.
const MOST_LOOKED_AT: usize = 100_000;
/// Time limit while the user types.
pub const PATIENCE: Duration = Duration::from_millis(400);
/// Depths of the successive walks: near files first, so that a huge folder does not hide its
/// neighbours.
const DEPTHS: [usize; 3] = [1, 3, 16];

/// Returns the files below a folder that git does not ignore, named as continuations of the typed
/// text; as many as are found in time.
pub fn below(workspace: &Workspace, written: &str, patience: Duration) -> Vec<Candidate> {
    let (typed, rest) = written.split_at(written.rfind('/').map_or(0, |slash| slash + 1));
    let (cwd, folder) = (&workspace.cwd, workspace.path(typed));
    // The text may consist of parts of a path: search everything then.
    let (folder, typed, rest) = match folder.is_dir() {
        true => (folder, typed, rest),
        false => (cwd.to_owned(), "", written),
    };
    // Outside the working directory list only the folder itself, not the whole disk.
    let deepest = if is_within(cwd, &folder) {
        DEPTHS.len()
    } else {
        1
    };
    let mut search = Search {
        typed,
        rest,
        known: HashSet::new(),
        found: Vec::new(),
        looked_at: 0,
        end: Instant::now() + patience,
    };
    for depth in &DEPTHS[..deepest] {
        if !search.walk(&folder, *depth) {
            break;
        }
    }
    search.found
}

fn is_within(cwd: &Path, folder: &Path) -> bool {
    match (cwd.canonicalize(), folder.canonicalize()) {
        (Ok(cwd), Ok(folder)) => folder.starts_with(cwd),
        _ => false,
    }
}

struct Search<'a> {
    /// The folder as typed.
    typed: &'a str,
    /// The typed text after the folder.
    rest: &'a str,
    known: HashSet<PathBuf>,
    found: Vec<Candidate>,
    looked_at: usize,
    end: Instant,
}

impl Search<'_> {
    /// Walks to a depth; returns false once a limit is reached.
    fn walk(&mut self, folder: &Path, depth: usize) -> bool {
        let walk = WalkBuilder::new(folder)
            .max_depth(Some(depth))
            .hidden(!self.rest.starts_with('.'))
            .require_git(false)
            .follow_links(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        // Unreadable entries are skipped.
        let known = self.found.len();
        let mut goes_on = true;
        for entry in walk.flatten() {
            self.looked_at += 1;
            goes_on = self.looked_at <= MOST_LOOKED_AT
                && self.found.len() < MOST
                && Instant::now() < self.end;
            if !goes_on {
                break;
            }
            self.take(folder, &entry);
        }
        self.found[known..].sort_by(|a, b| a.insert.cmp(&b.insert));
        goes_on
    }

    fn take(&mut self, folder: &Path, entry: &DirEntry) {
        let path = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let Some(name) = path.to_str().filter(|name| !name.is_empty()) else {
            return;
        };
        // A name with control characters, such as line feeds, cannot be written on one line.
        if name.contains(char::is_control) || self.known.contains(path) {
            return;
        }
        if self.found.len() >= ANY && !fits(name, self.rest) {
            return;
        }
        self.known.insert(path.to_owned());
        // A symlink to a folder can be completed further, though the walk does not follow it.
        let is_folder = entry
            .file_type()
            .is_some_and(|kind| kind.is_dir() || (kind.is_symlink() && entry.path().is_dir()));
        let written = format!("{}{name}", self.typed);
        self.found.push(match is_folder {
            true => Candidate::new(format!("{written}/")).going_on(),
            false => Candidate::new(written),
        });
    }
}

/// Returns true if the name contains these letters in this order.
fn fits(name: &str, letters: &str) -> bool {
    let mut name = name.chars().flat_map(char::to_lowercase);
    let mut letters = letters.chars().flat_map(char::to_lowercase);
    letters.all(|letter| name.any(|other| other == letter))
}
