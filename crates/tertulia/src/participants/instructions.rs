//! Reads the project's instructions for agents: `AGENTS.md`, else `CLAUDE.md`, of each folder from the
//! project's root down to the work folder. They may come from another author: their text goes into
//! prompts and has no other effect.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tertulia_agents::system_prompt::InstructionFile;

use crate::agents::shown;
use crate::show;

/// Names of instruction files; of each folder, the first that is there counts.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// Maximum size of all files together, in bytes: they are sent with every request.
const LIMIT: u64 = 64 * 1024;

/// The project's instructions, and what the user should know about them.
#[derive(Debug, Default)]
pub struct Instructions {
    /// The files, the most general first.
    pub files: Vec<InstructionFile>,
    /// Resolved paths of the files.
    pub paths: Vec<PathBuf>,
    /// Says which files were loaded, if there are any.
    pub note: Option<String>,
    /// Names the files that could not be used.
    pub warnings: Vec<String>,
}

/// Returns how many bytes of instructions an agent gets whose context is compacted at so many tokens:
/// about a quarter of them, so that there is room for a conversation.
pub fn limit(compact_at: Option<u64>) -> u64 {
    compact_at.map_or(LIMIT, |tokens| tokens.min(LIMIT))
}

/// Reads the instructions for work in `folder`, which is in the project at `root`.
pub fn read(root: &Path, folder: &Path, limit: u64) -> Instructions {
    let resolve = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, folder) = (resolve(root), resolve(folder));
    let below = folder.ancestors().take_while(|at| at.starts_with(&root));
    let mut folders: Vec<&Path> = below.collect();
    folders.reverse();
    let mut reader = Reader {
        root: &root,
        left: limit,
        loaded: Vec::new(),
        found: Instructions::default(),
    };
    for folder in folders {
        let mut files = NAMES.iter().map(|name| folder.join(name));
        if let Some(file) = files.find(|file| fs::symlink_metadata(file).is_ok()) {
            reader.take(&file);
        }
    }
    let mut found = reader.found;
    if !reader.loaded.is_empty() {
        found.note = Some(format!(
            "Project instructions: {}.",
            reader.loaded.join(", ")
        ));
    }
    found
}

struct Reader<'a> {
    root: &'a Path,
    /// Number of bytes that may still be read.
    left: u64,
    /// Descriptions of the files so far.
    loaded: Vec<String>,
    found: Instructions,
}

impl Reader<'_> {
    fn take(&mut self, file: &Path) {
        let name = file.strip_prefix(self.root).unwrap_or(file);
        let name = shown(&name.to_string_lossy());
        match self.read(file) {
            Ok(Some((path, text, size))) => {
                let cut = (text.len() as u64) < size;
                let bytes = show::bytes(text.len() as u64);
                self.loaded.push(match cut {
                    true => format!("{name} (the first {bytes} of {})", show::bytes(size)),
                    false => format!("{name} ({bytes})"),
                });
                self.left -= text.len() as u64;
                let text = match cut {
                    true => format!(
                        "{text}\n[cut here: {} of {size} bytes are left out]",
                        size - text.len() as u64
                    ),
                    false => text,
                };
                self.found.files.push(InstructionFile { path: name, text });
                self.found.paths.push(path);
            }
            Ok(None) => {}
            Err(why) => self.found.warnings.push(format!(
                "the project's instructions in {name} are left out: {why}"
            )),
        }
    }

    /// Reads as much of a file as is left, with its resolved path and its size. Returns `None` for a
    /// file without words, and for one that was read before under another name.
    fn read(&self, file: &Path) -> Result<Option<(PathBuf, String, u64)>, String> {
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => "the link leads nowhere".to_owned(),
            _ => format!("the file cannot be read ({error})"),
        };
        let path = file.canonicalize().map_err(unreadable)?;
        // A link could have any private file sent to a provider.
        if !path.starts_with(self.root) {
            return Err("the link leads out of the project".to_owned());
        }
        if self.found.paths.contains(&path) {
            return Ok(None);
        }
        // Opening a pipe would wait for its writer.
        if !fs::metadata(&path).map_err(unreadable)?.is_file() {
            return Err("it is not a file".to_owned());
        }
        let open = File::open(&path).map_err(unreadable)?;
        let size = open.metadata().map_err(unreadable)?.len();
        let mut bytes = Vec::new();
        let read = open.take(self.left).read_to_end(&mut bytes);
        let read = read.map_err(unreadable)? as u64;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // The limit cut a character in two.
            Err(error) if read < size && error.utf8_error().error_len().is_none() => {
                let whole = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(whole);
                String::from_utf8(bytes).unwrap_or_default()
            }
            Err(_) => return Err("it is not UTF-8 text".to_owned()),
        };
        if text.contains('\0') {
            return Err("it is not text".to_owned());
        }
        if text.trim().is_empty() {
            return match size > 0 && self.left < size {
                true => Err("there is no room left for it".to_owned()),
                false => Ok(None),
            };
        }
        Ok(Some((path, text, size)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A project with a folder `app/deep`.
    fn project(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let project = tempfile::tempdir().unwrap();
        fs::create_dir_all(project.path().join("app/deep")).unwrap();
        for (name, content) in files {
            fs::write(project.path().join(name), content).unwrap();
        }
        project
    }

    fn read_in(project: &tempfile::TempDir, folder: &str, limit: u64) -> Instructions {
        read(project.path(), &project.path().join(folder), limit)
    }

    fn texts(found: &Instructions) -> Vec<(&str, &str)> {
        let files = found.files.iter();
        files
            .map(|file| (file.path.as_str(), file.text.as_str()))
            .collect()
    }

    #[test]
    fn files_come_from_the_root_down_one_per_folder() {
        let project = project(&[
            ("AGENTS.md", b"root"),
            ("CLAUDE.md", b"not this"),
            ("app/CLAUDE.md", b"app"),
            ("app/deep/AGENTS.md", b"deep"),
        ]);
        let found = read_in(&project, "app", LIMIT);
        assert_eq!(
            texts(&found),
            [("AGENTS.md", "root"), ("app/CLAUDE.md", "app")]
        );
        let note = "Project instructions: AGENTS.md (4 bytes), app/CLAUDE.md (3 bytes).";
        assert_eq!(found.note.as_deref(), Some(note));
        assert!(found.warnings.is_empty());
        let all = read_in(&project, "app/deep", LIMIT);
        assert_eq!(all.files.len(), 3);
        // Files above the root are not the project's.
        let found = read(
            &project.path().join("app/deep"),
            &project.path().join("app/deep"),
            LIMIT,
        );
        assert_eq!(texts(&found), [("AGENTS.md", "deep")]);
    }

    #[test]
    fn unusable_files_are_named() {
        let project = project(&[
            ("AGENTS.md", b"caf\xe9"),
            ("app/AGENTS.md", b"a\0b"),
            ("app/deep/CLAUDE.md", b"fine"),
        ]);
        let found = read_in(&project, "app/deep", LIMIT);
        assert_eq!(texts(&found), [("app/deep/CLAUDE.md", "fine")]);
        let expected = [
            "the project's instructions in AGENTS.md are left out: it is not UTF-8 text",
            "the project's instructions in app/AGENTS.md are left out: it is not text",
        ];
        assert_eq!(found.warnings, expected);
    }

    #[test]
    fn links_stay_in_the_project() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let project = project(&[("app/rules", b"rules")]);
        let at = |name: &str| project.path().join(name);
        symlink(outside.path().join("secret"), at("AGENTS.md")).unwrap();
        symlink(at("app/rules"), at("app/AGENTS.md")).unwrap();
        symlink(at("app/rules"), at("app/deep/AGENTS.md")).unwrap();
        let found = read_in(&project, "app/deep", LIMIT);
        // The second link to the same file adds nothing.
        assert_eq!(texts(&found), [("app/AGENTS.md", "rules")]);
        let [warning] = &found.warnings[..] else {
            panic!("{:?}", found.warnings);
        };
        assert!(
            warning.ends_with("the link leads out of the project"),
            "{warning}"
        );
        fs::remove_file(at("AGENTS.md")).unwrap();
        symlink(at("gone"), at("AGENTS.md")).unwrap();
        let found = read_in(&project, "", LIMIT);
        assert!(found.warnings[0].ends_with("the link leads nowhere"));
        fs::remove_file(at("AGENTS.md")).unwrap();
        fs::create_dir(at("AGENTS.md")).unwrap();
        let found = read_in(&project, "", LIMIT);
        assert!(found.warnings[0].ends_with("it is not a file"));
    }

    #[test]
    fn long_files_are_cut_between_characters() {
        let project = project(&[
            ("AGENTS.md", "äöü".as_bytes()),
            ("app/AGENTS.md", b"more"),
            ("app/deep/AGENTS.md", b" \n"),
        ]);
        let found = read_in(&project, "app/deep", 5);
        assert_eq!(
            texts(&found)[0].1,
            "äö\n[cut here: 2 of 6 bytes are left out]"
        );
        // One byte is left, which counts for the next file.
        assert_eq!(
            texts(&found)[1].1,
            "m\n[cut here: 3 of 4 bytes are left out]"
        );
        assert_eq!(
            found.note.as_deref(),
            Some(
                "Project instructions: AGENTS.md (the first 4 bytes of 6 bytes), \
                 app/AGENTS.md (the first 1 bytes of 4 bytes)."
            )
        );
        let found = read_in(&project, "app", 4);
        let expected = "the project's instructions in app/AGENTS.md are left out: there is no room left for it";
        assert_eq!(found.warnings, [expected]);
    }

    #[test]
    fn small_contexts_get_less() {
        assert_eq!(limit(None), 65_536);
        assert_eq!(limit(Some(100_000)), 65_536);
        assert_eq!(limit(Some(3_000)), 3_000);
    }
}
