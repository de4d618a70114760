//! Where a session belongs: the git repository by its remote or its root commit, so that it survives a
//! moved or renamed folder; else the folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of the project that a folder belongs to.
pub fn of(folder: &Path) -> String {
    let Some((root, git)) = repository(folder) else {
        return format!("dir:{}", folder.display());
    };
    if let Some(remote) = remote(&git) {
        return format!("git:{remote}");
    }
    match root_commit(&root) {
        Some(commit) => format!("git:{commit}"),
        None => format!("dir:{}", root.display()),
    }
}

/// The work tree and the git folder with its settings.
fn repository(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    for root in folder.ancestors() {
        let git = root.join(".git");
        if git.is_dir() {
            return Some((root.to_owned(), git));
        }
        // A work tree beside its repository has a file that says where it is.
        if let Ok(pointer) = fs::read_to_string(&git) {
            let target = root.join(pointer.strip_prefix("gitdir:")?.trim());
            let common = fs::read_to_string(target.join("commondir")).ok();
            let git = common.map_or_else(|| target.clone(), |common| target.join(common.trim()));
            return Some((root.to_owned(), git));
        }
    }
    None
}

fn remote(git: &Path) -> Option<String> {
    let config = fs::read_to_string(git.join("config")).ok()?;
    let mut section = String::new();
    let mut first = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.to_owned();
        } else if section.starts_with("[remote ")
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "url"
        {
            let url = normalised(value.trim());
            if section == "[remote \"origin\"]" {
                return Some(url);
            }
            first.get_or_insert(url);
        }
    }
    first
}

/// The same repository has one name, however it is reached; a password in its address is nobody's business.
fn normalised(url: &str) -> String {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = match (url.find('@'), url.find('/')) {
        (Some(at), slash) if slash.is_none_or(|slash| at < slash) => &url[at + 1..],
        _ => url,
    };
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let (host, path) = match url.find([':', '/']) {
        Some(at) if at > 0 => (&url[..at], &url[at + 1..]),
        _ => return url.to_owned(),
    };
    format!("{}/{}", host.to_lowercase(), path.trim_start_matches('/'))
}

fn root_commit(root: &Path) -> Option<String> {
    let output = Command::new("git")
        .args(["rev-list", "--max-parents=0", "HEAD"])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let commits = String::from_utf8(output.stdout).ok()?;
    commits
        .lines()
        .last()
        .map(str::to_owned)
        .filter(|commit| !commit.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_one_name() {
        let check = |url: &str, expected: &str| assert_eq!(normalised(url), expected);
        check("https://Example.org/team/talk.git", "example.org/team/talk");
        check(
            "https://user:secret@example.org/team/talk",
            "example.org/team/talk",
        );
        check("git@example.org:team/talk.git", "example.org/team/talk");
        check("ssh://git@example.org/team/talk/", "example.org/team/talk");
        check("/srv/git/talk.git", "/srv/git/talk");
    }

    #[test]
    fn a_folder_without_git_is_its_own_project() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(of(home.path()), format!("dir:{}", home.path().display()));
        fs::create_dir_all(home.path().join(".git")).unwrap();
        fs::create_dir_all(home.path().join("a/b")).unwrap();
        fs::write(
            home.path().join(".git/config"),
            "[remote \"up\"]\n url = u@h.org:x\n[remote \"origin\"]\n\turl = https://h.org/y.git\n",
        )
        .unwrap();
        assert_eq!(of(&home.path().join("a/b")), "git:h.org/y");
    }
}
