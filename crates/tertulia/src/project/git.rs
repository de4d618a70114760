//! Reads the identities of a git repository.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tertulia_core::project::is_commit;

/// Time limit for finding the root commit if the remote is already an identity.
const SHORT: Duration = Duration::from_secs(1);
/// Time limit if only the folder is an identity.
const LONG: Duration = Duration::from_secs(10);

/// A git repository.
pub struct Repository {
    /// The work tree.
    pub root: PathBuf,
    /// The git folder with its settings, shared by all work trees.
    pub git: PathBuf,
}

/// Result of the search for the root commit.
pub enum RootCommit {
    Found(String),
    None,
    TookTooLong,
}

impl Repository {
    /// Finds the repository that a folder belongs to. A repository of the whole home folder (for
    /// dotfiles), or above it, does not make everything below one project.
    pub fn of(folder: &Path, home: Option<&Path>) -> Option<Repository> {
        let home = home.map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
        let too_wide = |root: &Path| {
            let above_home = home.as_ref().is_some_and(|home| home.starts_with(root));
            root != folder && (above_home || root.parent().is_none())
        };
        for root in folder.ancestors().take_while(|root| !too_wide(root)) {
            let git = root.join(".git");
            if git.is_dir() {
                return Some(Repository {
                    root: root.to_owned(),
                    git,
                });
            }
            // In a linked work tree, `.git` is a file with the path of the git folder.
            if let Ok(pointer) = fs::read_to_string(&git) {
                let target = root.join(pointer.strip_prefix("gitdir:")?.trim());
                let common = fs::read_to_string(target.join("commondir")).ok();
                let git =
                    common.map_or_else(|| target.clone(), |common| target.join(common.trim()));
                return Some(Repository {
                    root: root.to_owned(),
                    git,
                });
            }
        }
        None
    }

    /// Returns the main work tree, if this is a linked one.
    pub fn main(&self) -> Option<PathBuf> {
        let git = fs::canonicalize(&self.git).ok()?;
        (git.file_name()? == ".git")
            .then(|| git.parent().map(Path::to_owned))?
            .filter(|main| *main != self.root)
    }

    /// Returns the normalised address of `origin`, else of the first remote.
    pub fn remote(&self) -> Option<String> {
        let config = fs::read_to_string(self.git.join("config")).ok()?;
        let mut section = String::new();
        let mut first = None;
        for line in config.lines().map(str::trim) {
            if line.starts_with('[') {
                section = line.to_owned();
            } else if section.starts_with("[remote ")
                && let Some((key, value)) = line.split_once('=')
                && key.trim() == "url"
                && let Some(url) = normalised(value.trim().trim_matches('"'), &self.root)
            {
                if section == "[remote \"origin\"]" {
                    return Some(url);
                }
                first.get_or_insert(url);
            }
        }
        first
    }

    /// Prepares git for this repository, in one of its folders.
    pub fn command(&self, folder: &Path) -> Command {
        let mut git = Command::new("git");
        // In a hook of another repository these variables would point there.
        for name in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_COMMON_DIR",
            "GIT_INDEX_FILE",
        ] {
            git.env_remove(name);
        }
        // Where `.git` is damaged, git would answer for a repository further up.
        if let Some(above) = self.root.parent() {
            git.env("GIT_CEILING_DIRECTORIES", above);
        }
        git.current_dir(folder);
        git
    }

    /// Finds the oldest commit without a parent. A shallow clone does not have it.
    pub fn root_commit(&self, has_remote: bool) -> RootCommit {
        if self.git.join("shallow").exists() {
            return RootCommit::None;
        }
        let started = self
            .command(&self.root)
            .args(["rev-list", "--max-parents=0", "HEAD"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = started else {
            return RootCommit::None;
        };
        let limit = if has_remote { SHORT } else { LONG };
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            match child.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) if begun.elapsed() < limit => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return RootCommit::TookTooLong;
                }
            }
        }
        let output = child
            .wait_with_output()
            .ok()
            .filter(|output| output.status.success())
            .and_then(|output| String::from_utf8(output.stdout).ok());
        let commit = output
            .as_deref()
            .and_then(|commits| commits.lines().last())
            .filter(|commit| is_commit(commit));
        commit.map_or(RootCommit::None, |commit| {
            RootCommit::Found(commit.to_owned())
        })
    }
}

/// Returns the paths of the linked work trees that a git folder knows.
pub fn linked_worktrees(git: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(git.join("worktrees")) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let pointer = fs::read_to_string(entry.path().join("gitdir")).ok()?;
            // The path of the tree's `.git`, absolute or relative to this entry.
            let pointer = plain(&entry.path().join(pointer.trim()));
            Some(Path::new(&pointer).parent()?.display().to_string())
        })
        .collect()
}

/// Normalises a remote's address, so that a repository has one name however it is reached: without
/// scheme, user, password and port. Returns `None` for an address without a path.
fn normalised(url: &str, root: &Path) -> Option<String> {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, url),
    };
    let bare = |path: &str| {
        let path = path.trim_end_matches('/');
        path.strip_suffix(".git").unwrap_or(path).to_owned()
    };
    let is_path = match scheme {
        Some(scheme) => scheme.eq_ignore_ascii_case("file"),
        None => rest
            .find(':')
            .is_none_or(|colon| rest[..colon].contains('/')),
    };
    if is_path {
        // A relative remote such as "../origin" differs between folders.
        let path = bare(&plain(&root.join(rest)));
        return (!rest.is_empty() && path.len() > 1).then_some(path);
    }
    let authority = rest.find('/').unwrap_or(rest.len());
    let rest = rest[..authority]
        .rfind('@')
        .map_or(rest, |at| &rest[at + 1..]);
    let (host, path) = rest.split_at(rest.find([':', '/'])?);
    let path = match (scheme, path.strip_prefix(':')) {
        (Some(_), Some(port)) => port.split_once('/')?.1,
        (_, Some(path)) => path,
        (_, None) => path,
    };
    let path = bare(path.trim_start_matches('/'));
    (!host.is_empty() && !path.is_empty()).then(|| format!("{}/{path}", host.to_lowercase()))
}

/// Resolves `.` and `..` in a path without reading the file system.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name() {
        let check = |url: &str, expected: &str| {
            let found = normalised(url, Path::new("/home/me/talk"));
            assert_eq!(found.as_deref().unwrap_or("none"), expected, "{url}");
        };
        for url in [
            "https://Example.org/team/talk.git",
            "https://user:secret@example.org/team/talk",
            "https://user:p@ss@example.org/team/talk",
            "https://example.org:443/team/talk.git/",
            "git@example.org:team/talk.git",
            "example.org:team/talk",
            "git@example.org:/team/talk.git",
            "ssh://git@example.org/team/talk/",
            "ssh://git@EXAMPLE.org:2222/team/talk.git",
            "git://example.org/team/talk",
        ] {
            check(url, "example.org/team/talk");
        }
        check("/srv/git/talk.git", "/srv/git/talk");
        check("file:///srv/git/talk.git/", "/srv/git/talk");
        check("../origin.git", "/home/me/origin");
        check("./a:b", "/home/me/talk/a:b");
        for nothing in [
            "",
            "https://",
            "https://example.org",
            "https://example.org/",
            "git@example.org:",
            "/",
        ] {
            check(nothing, "none");
        }
    }
}
