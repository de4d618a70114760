//! Small files with private permissions: locked while they change, replaced atomically.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{CommandError, CommandResult, ErrorKind};

/// How long to wait for another program to write its change.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// Pause between attempts to take the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock of a file. The lock is a file beside it, since each change replaces the file
/// itself.
pub fn lock_of(file: &Path) -> CommandResult<File> {
    let folder = file.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    lock(&folder.join(format!(".{name}.lock")))
}

/// Replaces a file atomically: readers see the old one or the new one.
pub fn replace(file: &Path, text: &str) -> CommandResult<()> {
    // Follows a link, so that its target is replaced and the link stays.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let temporary = file.with_extension("json.new");
    let write = || -> io::Result<()> {
        // Left by a program that was killed while it wrote.
        if let Err(error) = fs::remove_file(&temporary)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut made = private().create_new(true).open(&temporary)?;
        made.set_permissions(Permissions::from_mode(0o600))?;
        made.write_all(text.as_bytes())?;
        made.sync_all()?;
        fs::rename(&temporary, &file)?;
        sync_folder_of(&file)
    };
    write().map_err(|error| trouble(&file, "cannot be written", error))
}

/// Returns options to open a file for writing, with permissions for its owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Creates a folder and its missing parents, each for its owner only, whatever the umask.
pub fn make_folder(folder: &Path) -> CommandResult<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
    }
    let make = || -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => {
                fs::set_permissions(folder, Permissions::from_mode(0o700))?;
                sync_folder_of(folder)
            }
            // Another program has created it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    };
    make().map_err(|error| trouble(folder, "cannot be made", error))
}

/// Syncs the folder that holds `path`, so that the name survives a crash as well as the content.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Waits for the lock on a lock file. The system releases it when its holder ends, in any way.
pub fn lock(path: &Path) -> CommandResult<File> {
    let failed = |error| trouble(path, "cannot be locked", error);
    let file = private()
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed)?;
    // With an unusual umask the next program could not open it. Fails harmlessly for another user's
    // file.
    let _ = file.set_permissions(Permissions::from_mode(0o600));
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(CommandError::new(
                    ErrorKind::Conflict,
                    format!("another program holds {}", path.display()),
                )
                .hint("wait for it, or end it; nothing was changed"));
            }
        }
    }
}

/// Returns the error for a failed file operation.
pub fn trouble(path: &Path, what: &str, error: io::Error) -> CommandError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        _ => ErrorKind::Failed,
    };
    CommandError::new(kind, format!("{} {what}", path.display())).because(error)
}
