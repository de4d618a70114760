//! Walks a folder tree: follows no links, skips files that git ignores, and stops at the time limit
//! or on cancellation.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::confine::Place;
use super::folder::Folder;

/// Time limit of every tool except commands.
const LONGEST: Duration = Duration::from_secs(20);
/// Maximum depth: each folder on the way is held open.
const DEEPEST: usize = 100;
/// Maximum number of names read from one folder.
const MOST_NAMES: usize = 100_000;
/// Maximum number of bytes read from a `.gitignore`.
const MOST_RULES: u64 = 1 << 20;

/// Why a search ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// Cancelled.
    Cancelled,
    /// The time limit was reached.
    OutOfTime,
    /// Enough was found.
    Enough,
}

/// Time limit and cancellation of a search.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    cancel: CancellationToken,
    limit: Duration,
    end: Option<Instant>,
}

impl Watch {
    /// Starts a watch that ends after `limit` at most.
    pub(super) fn start(cancel: &CancellationToken, limit: Duration) -> Watch {
        let limit = limit.min(LONGEST);
        Watch {
            cancel: cancel.clone(),
            limit,
            end: Instant::now().checked_add(limit),
        }
    }

    /// Returns an error if the search must stop.
    pub(super) fn check(&self) -> Result<(), Halt> {
        if self.cancel.is_cancelled() {
            return Err(Halt::Cancelled);
        }
        match self.end {
            Some(end) if Instant::now() >= end => Err(Halt::OutOfTime),
            _ => Ok(()),
        }
    }

    /// Message for the agent about a search that reached its time limit.
    pub(super) fn overdue(&self) -> String {
        format!(
            "[stopped after {} s: not everything was looked at; narrow the search]",
            self.limit.as_secs_f32()
        )
    }
}

/// A file or folder found by the walk.
pub(super) struct Found<'a> {
    /// Folder that contains it.
    pub(super) folder: &'a Folder,
    /// Name in that folder.
    pub(super) name: &'a OsStr,
    /// Path relative to the work folder.
    pub(super) inside: &'a Path,
    /// Type of the file.
    pub(super) kind: FileType,
}

/// What a walk left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Files of a folder that has too many.
    pub(super) names: bool,
    /// Folders that are too deep.
    pub(super) depth: bool,
}

impl LeftOut {
    /// Lines for the agent about it.
    pub(super) fn told(self) -> impl Iterator<Item = String> {
        let names = "[some folders have too many files: not all were seen]".to_owned();
        let depth = format!("[deeper than {DEEPEST} levels: not all were seen]");
        let lines = [(self.names, names), (self.depth, depth)];
        lines
            .into_iter()
            .filter_map(|(is, line)| is.then_some(line))
    }
}

/// Visits everything below `place`, sorted by name in each folder, `levels` deep. Returns what was
/// left out because there was too much of it.
pub(super) fn walk(
    place: &Place,
    levels: usize,
    watch: &Watch,
    visit: &mut dyn FnMut(&Found<'_>) -> Result<(), Halt>,
) -> Result<Result<LeftOut, Halt>, String> {
    let folder = place
        .folder()
        .map_err(|error| format!("cannot open the folder {}: {error}", place.shown()))?;
    let mut walker = Walker {
        root: place.root(),
        rules: rules_above(place),
        levels: levels.min(DEEPEST),
        left_out: LeftOut::default(),
        watch,
        visit,
    };
    let done = walker.descend(&folder, place.inside(), 1);
    Ok(done.map(|()| walker.left_out))
}

/// Unlimited depth, up to `DEEPEST`.
pub(super) const ALL_LEVELS: usize = DEEPEST;

struct Walker<'a> {
    root: &'a Path,
    /// Ignore rules of the folders on the way down, the outermost first.
    rules: Vec<Gitignore>,
    levels: usize,
    left_out: LeftOut,
    watch: &'a Watch,
    visit: &'a mut dyn FnMut(&Found<'_>) -> Result<(), Halt>,
}

impl Walker<'_> {
    fn descend(&mut self, folder: &Folder, inside: &Path, level: usize) -> Result<(), Halt> {
        self.rules.push(rules_of(folder, &self.root.join(inside)));
        let done = self.look_through(folder, inside, level);
        self.rules.pop();
        done
    }

    fn look_through(&mut self, folder: &Folder, inside: &Path, level: usize) -> Result<(), Halt> {
        for (name, kind) in self.sorted_names(folder)? {
            self.watch.check()?;
            let inside = inside.join(&name);
            if name == ".git" || self.is_ignored(&inside, kind) {
                continue;
            }
            (self.visit)(&Found {
                folder,
                name: &name,
                inside: &inside,
                kind,
            })?;
            if kind != FileType::Directory {
                continue;
            }
            if level == DEEPEST {
                self.left_out.depth = true;
            } else if level < self.levels {
                // A folder that cannot be read is skipped.
                if let Ok(below) = folder.step(&name) {
                    self.descend(&below, &inside, level + 1)?;
                }
            }
        }
        Ok(())
    }

    fn sorted_names(&mut self, folder: &Folder) -> Result<Vec<(OsString, FileType)>, Halt> {
        let mut names = Vec::new();
        for entry in folder.names().into_iter().flatten() {
            if names.len() == MOST_NAMES {
                self.left_out.names = true;
                break;
            }
            self.watch.check()?;
            names.push(entry);
        }
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(names)
    }

    fn is_ignored(&self, inside: &Path, kind: FileType) -> bool {
        let path = self.root.join(inside);
        // The innermost matching rule decides.
        self.rules
            .iter()
            .rev()
            .map(|rules| rules.matched(&path, kind == FileType::Directory))
            .find(|found| !found.is_none())
            .is_some_and(|found| matches!(found, Match::Ignore(_)))
    }
}

/// Returns the ignore rules of the folders above `place`: up to the work folder, and on to the root
/// of its repository. Above the work folder nothing but these rules is read.
fn rules_above(place: &Place) -> Vec<Gitignore> {
    let mut rules = rules_of_repository(place.root());
    let mut path = PathBuf::from(place.root());
    let mut folder = Folder::open(&path).ok();
    for name in place.inside() {
        let Some(here) = folder else { break };
        rules.push(rules_of(&here, &path));
        path.push(name);
        folder = here.step(name).ok();
    }
    rules
}

fn rules_of_repository(root: &Path) -> Vec<Gitignore> {
    let Some(depth) = root
        .ancestors()
        .position(|folder| folder.join(".git").exists())
    else {
        return Vec::new();
    };
    let mut above: Vec<&Path> = root.ancestors().skip(1).take(depth).collect();
    above.reverse();
    above
        .into_iter()
        .filter_map(|path| Some(rules_of(&Folder::open(path).ok()?, path)))
        .collect()
}

/// Parses the `.gitignore` of a folder. It is opened like any other file, because a pipe or a link
/// to a device of this name must do no harm.
fn rules_of(folder: &Folder, path: &Path) -> Gitignore {
    let mut text = Vec::new();
    if let Ok(opened) = folder.file(OsStr::new(".gitignore")) {
        // A partly read file counts as far as it was read.
        let _ = opened.file.take(MOST_RULES).read_to_end(&mut text);
    }
    if text.is_empty() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(&text)
        .trim_start_matches('\u{feff}')
        .lines()
    {
        // An invalid line ignores nothing, as with git.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn seen(
        root: &Path,
        watch: &Watch,
        visit: &mut dyn FnMut(usize) -> Result<(), Halt>,
    ) -> (Vec<String>, Result<LeftOut, Halt>) {
        let place = Place::resolve(root, ".").unwrap();
        let mut names = Vec::new();
        let done = walk(&place, ALL_LEVELS, watch, &mut |found| {
            names.push(found.inside.to_str().unwrap().to_owned());
            visit(names.len())
        });
        (names, done.unwrap())
    }

    #[test]
    fn it_ends_when_it_is_no_longer_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["a", "b", "c", "d"] {
            fs::write(root.join(name), "").unwrap();
        }
        let cancel = CancellationToken::new();
        let watch = Watch::start(&cancel, LONGEST);
        let enough = |count| match count {
            3 => Err(Halt::Enough),
            _ => Ok(()),
        };
        let (names, done) = seen(&root, &watch, &mut { enough });
        assert_eq!((names.len(), done), (3, Err(Halt::Enough)));
        let (names, done) = seen(&root, &watch, &mut |count| {
            if count == 2 {
                cancel.cancel();
            }
            Ok(())
        });
        assert_eq!((names.len(), done), (2, Err(Halt::Cancelled)));
        let over = Watch::start(&CancellationToken::new(), Duration::ZERO);
        let (names, done) = seen(&root, &over, &mut |_| Ok(()));
        assert_eq!((names.len(), done), (0, Err(Halt::OutOfTime)));
    }

    #[test]
    fn the_rules_of_the_repository_above_count() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("part/desk/sub")).unwrap();
        fs::write(top.join(".gitignore"), "*.log\n/part/desk/made\n").unwrap();
        fs::write(top.join("part/.gitignore"), "!kept.log\n").unwrap();
        for name in ["a.log", "kept.log", "made", "sub/b.log", "sub/c"] {
            fs::write(top.join("part/desk").join(name), "").unwrap();
        }
        let watch = Watch::start(&CancellationToken::new(), LONGEST);
        let names = || seen(&top.join("part/desk"), &watch, &mut |_| Ok(())).0;
        assert_eq!(
            names().len(),
            6,
            "outside a repository they are not looked for"
        );
        fs::create_dir(top.join(".git")).unwrap();
        assert_eq!(names(), ["kept.log", "sub", "sub/c"]);
    }
}
