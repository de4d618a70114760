//! Small files that the program keeps for its user: private, locked while they change, replaced as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{CommandError, CommandResult, ErrorKind};

/// How long another program may take to write its change.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before the lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock of a file, which lies beside it since the file itself is replaced by each change.
pub fn lock_of(file: &Path) -> CommandResult<File> {
    let folder = file.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    lock(&folder.join(format!(".{name}.lock")))
}

/// Replaces a file as a whole: readers see the old one or the new one.
pub fn replace(file: &Path, text: &str) -> CommandResult<()> {
    // Whoever keeps it elsewhere and links to it wants the link to stay.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let temporary = file.with_extension("json.new");
    let write = || -> io::Result<()> {
        // What a program left that was killed while it wrote.
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

/// A file for its owner alone, to be opened for writing.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Makes a folder and what is missing above it, each for its owner alone whatever the umask.
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
            // Another program was faster.
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

/// Waits for the lock. It is on a file of its own, since the registry's is replaced by each change;
/// the system lets go of it when its holder ends, however that ends.
pub fn lock(path: &Path) -> CommandResult<File> {
    let failed = |error| trouble(path, "cannot be locked", error);
    let file = private()
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(failed)?;
    // Under an odd umask the next one could not open it. If it is somebody else's, it is theirs to set.
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

/// What went wrong with a file.
pub fn trouble(path: &Path, what: &str, error: io::Error) -> CommandError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
        _ => ErrorKind::Failed,
    };
    CommandError::new(kind, format!("{} {what}", path.display())).because(error)
}
