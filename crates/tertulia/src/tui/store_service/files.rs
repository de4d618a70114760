//! Files whose names complete a word.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder};

use crate::env;
use crate::tui::completion::Candidate;

/// How many files are offered.
const MOST: usize = 10_000;
/// So many are offered whatever is written; of the others only those that fit.
const ANY: usize = 5_000;
/// How many are looked at.
const MOST_LOOKED_AT: usize = 100_000;
/// How long may be looked while somebody types.
pub const PATIENCE: Duration = Duration::from_millis(400);
/// How deep: first what is near, so that one huge folder does not hide what lies beside it.
const DEPTHS: [usize; 3] = [1, 3, 16];

/// The files below a folder, past what git ignores, named as whoever wrote this would go on: as many as
/// are found in this time.
pub fn below(cwd: &Path, written: &str, patience: Duration) -> Vec<Candidate> {
    let (typed, rest) = written.split_at(written.rfind('/').map_or(0, |slash| slash + 1));
    let folder = place(cwd, typed);
    // What is written may be pieces of a path: then all are looked through.
    let (folder, typed, rest) = match folder.is_dir() {
        true => (folder, typed, rest),
        false => (cwd.to_owned(), "", written),
    };
    // Elsewhere only what is there: nobody wants to walk through a whole disk.
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

fn place(cwd: &Path, typed: &str) -> PathBuf {
    match typed.strip_prefix("~/").zip(env::path("HOME")) {
        Some((rest, home)) => home.join(rest),
        None => cwd.join(typed),
    }
}

fn is_within(cwd: &Path, folder: &Path) -> bool {
    match (cwd.canonicalize(), folder.canonicalize()) {
        (Ok(cwd), Ok(folder)) => folder.starts_with(cwd),
        _ => false,
    }
}

struct Search<'a> {
    /// The folder as it was written.
    typed: &'a str,
    /// What is written of the rest.
    rest: &'a str,
    known: HashSet<PathBuf>,
    found: Vec<Candidate>,
    looked_at: usize,
    end: Instant,
}

impl Search<'_> {
    /// Looks as deep as this. Whether it is worth going on.
    fn walk(&mut self, folder: &Path, depth: usize) -> bool {
        let walk = WalkBuilder::new(folder)
            .max_depth(Some(depth))
            .hidden(!self.rest.starts_with('.'))
            .require_git(false)
            .follow_links(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        // What cannot be read is passed over.
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
        // What has line feeds in its name cannot be written on one line.
        if name.contains(char::is_control) || self.known.contains(path) {
            return;
        }
        if self.found.len() >= ANY && !fits(name, self.rest) {
            return;
        }
        self.known.insert(path.to_owned());
        // A link to a folder can be gone on with, though it is not gone through.
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

/// Whether a name has these letters in this order.
fn fits(name: &str, letters: &str) -> bool {
    let mut name = name.chars().flat_map(char::to_lowercase);
    let mut letters = letters.chars().flat_map(char::to_lowercase);
    letters.all(|letter| name.any(|other| other == letter))
}
