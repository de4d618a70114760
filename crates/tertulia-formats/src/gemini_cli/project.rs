//! The project that a session file belongs to: the file itself only has a hash of its folder.

use std::path::Path;

use serde_json::Value;

use crate::importer::Input;

/// Maximum size of the files that name projects.
const LIMIT: u64 = 10_000_000;

/// What the place of a session file says about its sessions.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Working directory of the project.
    pub(super) cwd: Option<String>,
    /// The session whose agent started the sessions of the file.
    pub(super) parent: Option<String>,
}

impl Folder {
    /// Looks at the folders above a file: `tmp/<project>/chats`, and below it a folder for the
    /// subagents of each session.
    pub(super) fn of(path: &Path) -> Folder {
        let is_chats = |folder: &&Path| folder.file_name().is_some_and(|name| name == "chats");
        let Some(chats) = path.ancestors().skip(1).take(2).find(is_chats) else {
            return Folder::default();
        };
        let above = path.parent().filter(|folder| *folder != chats);
        let parent = above
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        Folder {
            cwd: chats.parent().and_then(cwd),
            parent: parent.map(str::to_owned),
        }
    }
}

fn cwd(project: &Path) -> Option<String> {
    if let Some(cwd) = read(&project.join(".project_root")) {
        let cwd = cwd.trim().to_owned();
        return Some(cwd).filter(|cwd| !cwd.is_empty());
    }
    let registry = project.parent()?.parent()?.join("projects.json");
    let registry: Value = serde_json::from_str(&read(&registry)?).ok()?;
    let name = project.file_name()?.to_str()?;
    let projects = registry.get("projects")?.as_object()?;
    let found = projects
        .iter()
        .find(|(_, known)| known.as_str() == Some(name));
    found.map(|(cwd, _)| cwd.clone())
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(Input::of(path).read(LIMIT).ok()?).ok()
}
