//! Temporary directories.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory that is deleted with its contents on drop.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Scratch {
    /// Creates an empty directory.
    pub fn new() -> Scratch {
        let made = tempfile::Builder::new().prefix("tertulia-").tempdir();
        Scratch(made.expect("a temporary folder can be made"))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns all files, at any depth, that contain these bytes.
    pub fn files_with(&self, needle: &[u8]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(&folder).unwrap() {
                let path = item.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if holds(&fs::read(&path).unwrap_or_default(), needle) {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_bytes_and_disappears() {
        let scratch = Scratch::new();
        let deep = scratch.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("file"), "one two").unwrap();
        assert_eq!(scratch.files_with(b"e tw"), [deep.join("file")]);
        assert!(scratch.files_with(b"three").is_empty());
        let path = scratch.path().to_owned();
        drop(scratch);
        assert!(!path.exists());
    }
}
