//! Names of projects. A project is known by the address of its git remote, its root commit or its
//! folder.

use std::collections::BTreeMap;

use crate::session::SessionMeta;

/// Returns a short name of a project: the last parts of its remote, or its folder. A root commit is
/// not readable, so `folder`, where a session began, is used instead.
pub fn name(id: &str, folder: Option<&str>) -> String {
    longer_name(id, folder, 0)
}

/// Returns a name with so many more parts of the path.
fn longer_name(id: &str, folder: Option<&str>, more: usize) -> String {
    let last = |path: &str, parts: usize| {
        let mut names: Vec<&str> = path.rsplit('/').take(parts + more).collect();
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

/// Names of several projects, each of which has its own: as short as `name` if no other has that
/// one, else with as much of the path as tells them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<String, String>);

impl Names {
    /// Returns the names of projects, given with a folder of each.
    pub fn of<'a>(projects: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Names {
        // Of several folders of a project, the shortest is the least surprising.
        let mut folders: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for (id, folder) in projects {
            let known = folders.entry(id).or_insert(folder);
            let rank = |folder: Option<&str>| folder.map(|text| (text.len(), text.to_owned()));
            if known.is_none() || (folder.is_some() && rank(folder) < rank(*known)) {
                *known = folder;
            }
        }
        let mut names = Names::default();
        let mut rest: Vec<(&str, Option<&str>)> = folders.into_iter().collect();
        for more in 0.. {
            let longer = rest
                .iter()
                .map(|(id, folder)| longer_name(id, *folder, more));
            let longer: Vec<String> = longer.collect();
            let unchanged = |(id, folder): &(&str, Option<&str>)| {
                more > 0 && longer_name(id, *folder, more) == longer_name(id, *folder, more - 1)
            };
            let is_last = rest.iter().all(unchanged);
            let mut still = Vec::new();
            for (at, (id, folder)) in rest.iter().enumerate() {
                let same = longer.iter().filter(|name| **name == longer[at]).count();
                let is_taken = names.0.values().any(|name| *name == longer[at]);
                match same > 1 || is_taken {
                    false => drop(names.0.insert((*id).to_owned(), longer[at].clone())),
                    // Two repositories were in one folder, one after the other.
                    true if is_last => {
                        let hash: String = id.trim_start_matches("git:").chars().take(8).collect();
                        let name = format!("{} ({hash})", longer[at]);
                        names.0.insert((*id).to_owned(), name);
                    }
                    true => still.push((*id, *folder)),
                }
            }
            rest = still;
            if rest.is_empty() {
                break;
            }
        }
        names
    }

    /// Returns the names of the projects of sessions.
    pub fn of_sessions<'a>(sessions: impl IntoIterator<Item = &'a SessionMeta>) -> Names {
        let projects = sessions.into_iter();
        Names::of(projects.filter_map(|meta| {
            let project = meta.project.as_deref()?;
            Some((project, meta.cwd.as_deref()))
        }))
    }

    /// Returns the name of a project; empty if it is none of these.
    pub fn get(&self, id: Option<&str>) -> &str {
        let name = id.and_then(|id| self.0.get(id));
        name.map_or("", String::as_str)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_of_one_name_are_told_apart() {
        let (one, two) = (
            format!("git:{}", "a".repeat(40)),
            format!("git:{}", "b".repeat(40)),
        );
        let (three, four) = (
            format!("git:{}", "c".repeat(40)),
            format!("git:{}", "d".repeat(40)),
        );
        let names = Names::of([
            (one.as_str(), Some("/home/u/x/app")),
            (one.as_str(), Some("/home/u/worktrees/app-2")),
            (two.as_str(), Some("/home/u/y/app")),
            (three.as_str(), Some("/home/u/tool")),
            (four.as_str(), Some("/home/u/tool")),
            ("git:a.example/org/api", None),
            ("git:b.example/org/api", None),
            ("git:a.example/org/web", None),
            ("dir:/home/u/notes", None),
        ]);
        let shown = |id: &str| names.get(Some(id)).to_owned();
        assert_eq!((shown(&one), shown(&two)), ("x/app".into(), "y/app".into()));
        assert_eq!(shown(&three), "/home/u/tool (cccccccc)");
        assert_eq!(shown(&four), "/home/u/tool (dddddddd)");
        assert_eq!(shown("git:a.example/org/api"), "a.example/org/api");
        assert_eq!(shown("git:b.example/org/api"), "b.example/org/api");
        assert_eq!(shown("git:a.example/org/web"), "org/web");
        assert_eq!(shown("dir:/home/u/notes"), "/home/u/notes");
        assert_eq!((names.get(None), names.get(Some("dir:/x"))), ("", ""));
    }
}
