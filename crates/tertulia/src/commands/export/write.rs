//! Writes files that only their owner can read.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{CommandError, CommandResult, ErrorKind};

/// Writes a file with mode 0600. Without `force`, fails if the file exists.
pub fn write(file: &Path, content: &[u8], force: bool) -> CommandResult<()> {
    let failed = |error: std::io::Error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let failed = CommandError::new(
            ErrorKind::Failed,
            format!("{} cannot be written", file.display()),
        )
        .because(error);
        if exists {
            failed.hint("choose another name, or add --force to replace it")
        } else {
            failed
        }
    };
    if !force {
        return write_new(file, content).map(drop).map_err(failed);
    }
    replace(file, content).map(drop).map_err(failed)
}

/// Replaces a file in one step. Returns the new one, which was locked before it took its place.
pub fn replace(file: &Path, content: &[u8]) -> std::io::Result<File> {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".tertulia-{}", uuid::Uuid::new_v4().simple()));
    let temporary = PathBuf::from(name);
    let made = write_new(&temporary, content)?;
    let replaced = made.lock().and_then(|()| std::fs::rename(&temporary, file));
    if let Err(error) = replaced {
        // The error of the rename is the one to report; ignore a failure to clean up.
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder_of(file)?;
    Ok(made)
}

/// Syncs the folder of a file, so that the directory entry survives a crash as well.
fn sync_folder_of(file: &Path) -> std::io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::File::open(folder)?.sync_all()
}

/// Creates and syncs a new file. Removes the file again if writing fails: otherwise each attempt on
/// a full disk would leave an empty file behind.
fn write_new(file: &Path, content: &[u8]) -> std::io::Result<File> {
    let mut made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    let written = made
        .write_all(content)
        .and_then(|()| made.sync_all())
        .and_then(|()| sync_folder_of(file));
    if written.is_err() {
        // The write error is the one to report; ignore a failure to clean up.
        let _ = std::fs::remove_file(file);
    }
    written.map(|()| made)
}
