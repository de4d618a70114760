//! Names of projects. A project is known by the address of its git remote, its root commit or its
//! folder.

use crate::session::SessionMeta;

/// Returns a short name of a project: the last parts of its remote, or its folder. A root commit is
/// not readable, so `folder`, where a session began, is used instead.
pub fn name(id: &str, folder: Option<&str>) -> String {
    let last = |path: &str, parts: usize| {
        let mut names: Vec<&str> = path.rsplit('/').take(parts).collect();
        names.reverse();
        names.join("/")
    };
    match (id.strip_prefix("git:"), id.strip_prefix("dir:")) {
        (Some(commit), _) if is_commit(commit) => match folder {
            Some(folder) => last(folder, 1),
            None => commit.chars().take(8).collect(),
        },
        (Some(remote), _) => last(remote, 2),
        (_, Some(path)) => path.to_owned(),
        _ => id.to_owned(),
    }
}

/// Returns a short name of a session's project.
pub fn name_of(session: &SessionMeta) -> String {
    let project = session.project.as_deref();
    project.map_or_else(String::new, |id| name(id, session.cwd.as_deref()))
}

/// Returns true if the text is a full commit hash.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
