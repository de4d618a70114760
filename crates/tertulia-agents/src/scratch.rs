//! Temporary folders of programs, removed afterwards: homes for programs that have no option to save
//! nothing (the user's own files are linked into such a home, stored sessions are not), and empty
//! ones for programs that may write nowhere else.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// Locations of the programs' files, and of temporary homes that replace them.
#[derive(Clone, Debug)]
pub struct Homes {
    /// Folder that holds Gemini CLI's `.gemini`.
    pub gemini: PathBuf,
    /// Codex's home folder.
    pub codex: PathBuf,
    /// Folder for temporary homes.
    pub scratch: PathBuf,
}

/// Program whose files a home holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Gemini CLI.
    Gemini,
    /// Codex.
    Codex,
}

/// Gemini CLI's folder in a home.
const GEMINI: &str = ".gemini";
/// Where Gemini CLI keeps sessions, copies of files, and the folders in which it has worked.
const GEMINI_KEPT: &[&str] = &["tmp", "history", "projects.json"];
/// Where Codex keeps sessions, prompts and logs, besides its databases.
const CODEX_KEPT: &[&str] = &[
    "sessions",
    "archived_sessions",
    "history.jsonl",
    "session_index.jsonl",
    "log",
    "shell_snapshots",
    "memories",
];

impl Place {
    /// Environment variable that names the home.
    pub(super) const fn variable(self) -> &'static str {
        match self {
            Place::Gemini => "GEMINI_CLI_HOME",
            Place::Codex => "CODEX_HOME",
        }
    }

    fn own(self, homes: &Homes) -> PathBuf {
        match self {
            Place::Gemini => homes.gemini.join(GEMINI),
            Place::Codex => homes.codex.clone(),
        }
    }

    fn keeps(self, name: &str) -> bool {
        match self {
            Place::Gemini => GEMINI_KEPT.contains(&name),
            Place::Codex => CODEX_KEPT.contains(&name) || name.contains(".sqlite"),
        }
    }
}

/// A temporary folder that is removed on drop.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty folder below `base`. `unique` is part of its name.
    pub(super) fn empty(base: &Path, unique: &str) -> io::Result<Scratch> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = unique.chars().map(plain).collect();
        let path = base.join(format!("tertulia-{name}"));
        // Fails if the folder exists: then another process made it.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch(path))
    }

    /// Creates a home with the user's settings and login. `unique` is part of its name.
    pub(super) fn make(place: Place, homes: &Homes, unique: &str) -> io::Result<Scratch> {
        let scratch = Scratch::empty(&homes.scratch, unique)?;
        let inner = match place {
            Place::Gemini => scratch.0.join(GEMINI),
            Place::Codex => scratch.0.clone(),
        };
        if inner != scratch.0 {
            DirBuilder::new().mode(0o700).create(&inner)?;
        }
        let own = match std::fs::read_dir(place.own(homes)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(scratch),
            Err(error) => return Err(error),
        };
        for entry in own {
            let entry = entry?;
            if !place.keeps(&entry.file_name().to_string_lossy()) {
                symlink(entry.path(), inner.join(entry.file_name()))?;
            }
        }
        Ok(scratch)
    }

    /// Path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Removes links, not their targets.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn settings_are_there_and_sessions_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let homes = Homes {
            gemini: folder.path().join("home"),
            codex: folder.path().join("home/.codex"),
            scratch: folder.path().to_owned(),
        };
        fs::create_dir_all(homes.gemini.join(".gemini/tmp/p/chats")).unwrap();
        fs::write(homes.gemini.join(".gemini/settings.json"), "{}").unwrap();
        let scratch = Scratch::make(Place::Gemini, &homes, "a:b/c").unwrap();
        assert_eq!(scratch.path(), folder.path().join("tertulia-a-b-c"));
        let inner = scratch.path().join(".gemini");
        assert_eq!(
            fs::read_to_string(inner.join("settings.json")).unwrap(),
            "{}"
        );
        assert!(!inner.join("tmp").exists());
        // Stored sessions go with the home; the user's own files stay.
        fs::create_dir(inner.join("tmp")).unwrap();
        assert!(Scratch::make(Place::Gemini, &homes, "a:b/c").is_err());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
        assert!(homes.gemini.join(".gemini/settings.json").exists());
        fs::create_dir_all(homes.codex.join("sessions")).unwrap();
        fs::write(homes.codex.join("auth.json"), "{}").unwrap();
        fs::write(homes.codex.join("state_5.sqlite"), "").unwrap();
        let scratch = Scratch::make(Place::Codex, &homes, "d").unwrap();
        let linked = fs::read_dir(scratch.path()).unwrap().flatten();
        let linked: Vec<_> = linked.map(|entry| entry.file_name()).collect();
        assert_eq!(linked, ["auth.json"]);
    }
}
