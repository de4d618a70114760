//! Resolves a path with all its links, and ensures that it is inside the work folder.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FileType;

use super::folder::{Folder, OpenFile};
use crate::obeyed::is_obeyed;
use tertulia_core::preview::one_line;

/// Maximum number of links to follow; longer chains count as loops.
const MOST_LINKS: usize = 40;

/// A path inside the work folder, without links at the time of resolution.
#[derive(Clone, Debug)]
pub(super) struct Place {
    root: PathBuf,
    inside: PathBuf,
    /// Whether the requested path ends in a link.
    pub(super) by_link: bool,
    /// Whether a link on the way points to nothing.
    pub(super) dangling: bool,
    /// Whether programs act on what the file says, by the requested path or the real one.
    pub(super) obeyed: bool,
}

impl Place {
    /// Resolves `asked`, which is relative to `root` or absolute. Refuses paths that lead outside.
    pub(super) fn resolve(root: &Path, asked: &str) -> Result<Place, String> {
        if asked.is_empty() {
            return Err("the argument `path` is empty".to_owned());
        }
        let real = follow(&root.join(asked), root).map_err(|trouble| trouble.told(asked, root))?;
        let named = Path::new(asked);
        let named = named.strip_prefix(root).unwrap_or(named);
        match real.path.strip_prefix(root) {
            Ok(inside) => Ok(Place {
                obeyed: is_obeyed(inside) || is_obeyed(named),
                inside: inside.to_owned(),
                root: root.to_owned(),
                by_link: real.by_link,
                dangling: real.dangling,
            }),
            Err(_) => Err(Trouble::Outside.told(asked, root)),
        }
    }

    /// Path relative to the work folder.
    pub(super) fn inside(&self) -> &Path {
        &self.inside
    }

    /// The work folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Formats the relative path for agents and users.
    pub(super) fn shown(&self) -> String {
        shown(&self.inside)
    }

    /// Absolute path.
    pub(super) fn full(&self) -> PathBuf {
        self.root.join(&self.inside)
    }

    /// Opens it as a folder, step by step and through no link.
    pub(super) fn folder(&self) -> std::io::Result<Folder> {
        self.inside
            .iter()
            .try_fold(Folder::open(&self.root)?, |folder, name| folder.step(name))
    }

    /// Opens the parent folder the same way, and returns it with the name in it. The work folder
    /// itself has no parent.
    pub(super) fn parent(&self) -> std::io::Result<(Folder, &OsStr)> {
        self.parent_by(Folder::step)
    }

    /// Like `parent`, but creates missing folders.
    pub(super) fn parent_made(&self) -> std::io::Result<(Folder, &OsStr)> {
        self.parent_by(Folder::step_or_make)
    }

    fn parent_by(
        &self,
        step: impl Fn(&Folder, &OsStr) -> std::io::Result<Folder>,
    ) -> std::io::Result<(Folder, &OsStr)> {
        let name = self
            .inside
            .file_name()
            .ok_or_else(|| std::io::Error::other("it is the work folder itself"))?;
        let above = self.inside.parent().unwrap_or(Path::new(""));
        let folder = above
            .iter()
            .try_fold(Folder::open(&self.root)?, |folder, name| {
                step(&folder, name)
            })?;
        Ok((folder, name))
    }

    /// Returns the type of the file.
    pub(super) fn kind(&self) -> std::io::Result<FileType> {
        if self.inside.as_os_str().is_empty() {
            return Ok(FileType::Directory);
        }
        let (folder, name) = self.parent()?;
        Ok(FileType::from_raw_mode(folder.stat(name)?.st_mode))
    }

    /// Opens a regular file for reading; other types are an error. `None` if it does not exist.
    pub(super) fn existing_file(&self) -> Result<Option<OpenFile>, String> {
        let opened = self.parent().and_then(|(folder, name)| folder.file(name));
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot open {}: {error}", self.shown())),
        }
    }

    /// Like `existing_file`, but a missing file is an error too.
    pub(super) fn file(&self) -> Result<OpenFile, String> {
        self.existing_file()?
            .ok_or_else(|| format!("there is no file {}", self.shown()))
    }
}

/// Formats a relative path.
pub(super) fn shown(inside: &Path) -> String {
    match inside.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => one_line(&inside.to_string_lossy()),
    }
}

enum Trouble {
    Outside,
    Circle,
    Unseen(std::io::Error),
}

impl Trouble {
    fn told(self, asked: &str, root: &Path) -> String {
        let (asked, root) = (one_line(asked), root.display());
        match self {
            Trouble::Outside => format!(
                "'{asked}' is outside the work folder {root}, links followed: it cannot be used; \
                 give a path relative to that folder"
            ),
            Trouble::Circle => format!("the links of '{asked}' go in a circle"),
            Trouble::Unseen(error) => format!("cannot look at '{asked}': {error}"),
        }
    }
}

struct Real {
    path: PathBuf,
    by_link: bool,
    dangling: bool,
}

/// A path component that is still to be followed.
struct Part {
    name: OsString,
    of_link: bool,
}

/// Follows every link of an absolute path, also if its last components do not exist. Unlike
/// `canonicalize` it resolves a path that does not exist yet.
fn follow(path: &Path, root: &Path) -> Result<Real, Trouble> {
    let mut real = Real {
        path: PathBuf::from("/"),
        by_link: false,
        dangling: false,
    };
    let mut ahead = Vec::new();
    pile(&mut ahead, path, false);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part.name == ".." {
            real.path.pop();
            continue;
        }
        let next = real.path.join(&part.name);
        match fs::symlink_metadata(&next) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Trouble::Circle);
                }
                real.by_link |= ahead.is_empty() && !part.of_link;
                let target = fs::read_link(&next).map_err(Trouble::Unseen)?;
                if target.is_absolute() {
                    real.path = PathBuf::from("/");
                }
                pile(&mut ahead, &target, true);
            }
            Ok(_) => real.path = next,
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => {
                    real.dangling |= part.of_link;
                    real.path = next;
                }
                // Reveals nothing about paths outside, not even that one cannot be read.
                _ if !next.starts_with(root) => return Err(Trouble::Outside),
                _ => return Err(Trouble::Unseen(error)),
            },
        }
    }
    Ok(real)
}

/// Pushes the components of a path on the stack, the first on top.
fn pile(ahead: &mut Vec<Part>, path: &Path, of_link: bool) {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    ahead.extend(parts.map(|name| Part { name, of_link }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct World {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let root = base.join("desk");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(base.join("desk-not")).unwrap();
        fs::create_dir(base.join("out")).unwrap();
        fs::write(base.join("out/secret"), "s").unwrap();
        fs::write(root.join("a/file"), "f").unwrap();
        symlink("a", root.join("in")).unwrap();
        symlink(base.join("out"), root.join("away")).unwrap();
        symlink("../out/secret", root.join("secret")).unwrap();
        symlink("nothing", root.join("dangling")).unwrap();
        symlink("../out/new", root.join("dangling-away")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink(root.join("a/b"), root.join("deep")).unwrap();
        World { _dir: dir, root }
    }

    #[test]
    fn inside_is_found_with_links_followed() {
        let world = world();
        let check = |asked: &str, expected: &str| {
            let place = Place::resolve(&world.root, asked).unwrap();
            assert_eq!(place.inside(), Path::new(expected), "{asked}");
        };
        check(".", "");
        check("a/file", "a/file");
        check("./a//b/../file", "a/file");
        check("in/file", "a/file");
        check("in/../in/b/new/file", "a/b/new/file");
        // The parent of the link's target, not of the link.
        check("deep/../file", "a/file");
        check("new/../other", "other");
        check("../desk/a", "a");
        let whole = world.root.join("a/file");
        check(whole.to_str().unwrap(), "a/file");
    }

    #[test]
    fn outside_is_refused() {
        let world = world();
        for asked in [
            "..",
            "../out/secret",
            "../desk-not/x",
            "a/../../out/secret",
            "away",
            "away/secret",
            "away/new",
            "secret",
            "dangling-away",
            "deep/../../../out/secret",
            "/etc/passwd",
            "/",
            "/proc/self/cwd/../../../../../../../etc/passwd",
            "/proc/self/root/etc/passwd",
            "new/../../x",
        ] {
            let error = Place::resolve(&world.root, asked).unwrap_err();
            assert!(
                error.contains("outside the work folder"),
                "{asked}: {error}"
            );
        }
        let error = Place::resolve(&world.root, "circle").unwrap_err();
        assert!(error.contains("circle"), "{error}");
        assert!(Place::resolve(&world.root, "").is_err());
        assert!(Place::resolve(&world.root, "a\0b").is_err());
    }

    #[test]
    fn links_are_noted() {
        let world = world();
        let check = |asked: &str, by_link: bool, dangling: bool| {
            let place = Place::resolve(&world.root, asked).unwrap();
            assert_eq!(
                (place.by_link, place.dangling),
                (by_link, dangling),
                "{asked}"
            );
        };
        check("in", true, false);
        check("in/file", false, false);
        check("in/new", false, false);
        check("dangling", true, true);
        check("dangling/x", false, true);
        check("new", false, false);
    }

    #[test]
    fn a_folder_swapped_for_a_link_is_not_followed() {
        let world = world();
        let place = Place::resolve(&world.root, "a/secret").unwrap();
        fs::rename(world.root.join("a"), world.root.join("c")).unwrap();
        symlink("../out", world.root.join("a")).unwrap();
        assert!(place.existing_file().is_err());
        assert!(place.parent_made().is_err());
        let place = Place::resolve(&world.root, "c/file").unwrap();
        fs::remove_file(world.root.join("c/file")).unwrap();
        symlink("../../out/secret", world.root.join("c/file")).unwrap();
        assert!(place.existing_file().is_err());
    }
}
