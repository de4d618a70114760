//! Private files and folders: readable by their owner only, whatever the umask, and synced.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{StoreError, StoreResult};

/// Appends `suffix` to the file name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the folder that holds `path`.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a folder and its missing parents, each with mode 0700 and synced into its parent.
pub(super) fn make_folder(folder: &Path) -> StoreResult<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {
            return Ok(());
        }
        Err(error) => return Err(trouble(folder, "cannot make the folder", error)),
    }
    sync_folder_of(folder).inspect_err(|_| {
        // Another process that finds the folder would assume that it is synced.
        let _ = fs::remove_dir(folder);
    })
}

/// Creates a new file with mode 0600; fails if it exists.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Opens a lock file; creates it with mode 0600.
pub(super) fn lock_file(path: &Path) -> StoreResult<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| trouble(path, "cannot open the lock file", error))
}

/// Replaces a file atomically: readers see the old or the new content. `mark` ends the temporary
/// name.
pub(super) fn replace_file(path: &Path, mark: &str, content: &[u8]) -> StoreResult<()> {
    let temporary = with_suffix(path, mark);
    let write = || -> io::Result<()> {
        let _ = fs::remove_file(&temporary);
        let mut file = create_file(&temporary)?;
        io::Write::write_all(&mut file, content)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        trouble(path, "cannot write", error)
    })
}

/// Replaces a file atomically and durably.
pub(super) fn write_over(path: &Path, content: &[u8]) -> StoreResult<()> {
    replace_file(path, &format!(".new-{}", std::process::id()), content)?;
    sync_folder_of(path)
}

/// Returns the first free name for the copy of a damaged file, from the time of its repair on.
pub(super) fn damaged_name(path: &Path, mark: &str, now: Timestamp) -> PathBuf {
    let mut second = now.as_second().max(0);
    loop {
        let kept = with_suffix(path, &format!("{mark}damaged-{second}"));
        if !kept.exists() && !with_suffix(&kept, "-wal").exists() {
            return kept;
        }
        second += 1;
    }
}

/// Gives a file a second name, so that its bytes stay when another file replaces it.
pub(super) fn keep_as(path: &Path, kept: &Path) -> StoreResult<()> {
    fs::hard_link(path, kept)
        .or_else(|_| fs::copy(path, kept).map(drop))
        .map_err(|error| trouble(path, "cannot keep a copy of", error))?;
    sync_folder_of(kept)
}

/// Syncs the folder that holds `path`, so that the name survives a crash as well as the content.
pub(super) fn sync_folder_of(path: &Path) -> StoreResult<()> {
    let folder = folder_of(path);
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| trouble(folder, "cannot sync the folder", error))
}

/// Removes group and other permissions from a file that may be older than this program.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    let metadata = fs::metadata(path)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Returns true if the path still refers to the open file: a lock on an unlinked file excludes no
/// other process.
pub(super) fn names_this_file(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(named), Ok(held)) => named.ino() == held.ino() && named.dev() == held.dev(),
        _ => false,
    }
}

/// Returns true if this process cannot open another file: SQLite has no error code for that.
pub(super) fn is_out_of_files() -> bool {
    let refused = File::open("/").err().and_then(|error| error.raw_os_error());
    let limits = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    refused.is_some_and(|code| limits.iter().any(|limit| limit.raw_os_error() == code))
}

/// Maps an I/O error to the `StoreError` variant that callers handle.
pub(super) fn trouble(place: &Path, what: &str, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full {
            place: place.display().to_string(),
        },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreError::ReadOnly {
                place: place.display().to_string(),
                reason: error.to_string(),
            }
        }
        io::ErrorKind::InvalidData => {
            StoreError::damaged(place.display().to_string(), error.to_string())
        }
        _ => StoreError::failed(format!("{what} {}", place.display()), error),
    }
}

/// Opens a file for reading. Fails for anything but a regular file: opening a FIFO would wait, and a
/// device has no end.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        // A socket cannot be opened at all.
        .map_err(|error| match fs::metadata(path) {
            Ok(found) if !found.is_file() => not_regular(),
            _ => error,
        })?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file")
}

/// Reads a small file, if it is a regular one.
pub(super) fn read_small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Escapes a name as one path component, without collisions: every byte but lower-case letters,
/// digits, `-`, `_` and inner dots becomes `%` and two digits.
pub(super) fn path_part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => part.push(char::from(byte)),
            b'.' if at > 0 => part.push('.'),
            _ => part.push_str(&format!("%{byte:02x}")),
        }
    }
    if part.is_empty() {
        part.push('%');
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_inside_their_folder() {
        let check = |name: &str, expected: &str| assert_eq!(path_part(name), expected);
        check("chat", "chat");
        check("a b", "a%20b");
        check("a_b", "a_b");
        check("..", "%2e.");
        check("../x", "%2e.%2fx");
        check("Team", "%54eam");
        check("équipe", "%c3%a9quipe");
        check("", "%");
    }

    proptest! {
        #[test]
        fn two_names_never_share_a_part(a in "\\PC{0,8}", b in "\\PC{0,8}") {
            prop_assert_eq!(a == b, path_part(&a).eq_ignore_ascii_case(&path_part(&b)));
        }
    }

    #[test]
    fn folders_are_private() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/b/c");
        make_folder(&folder).unwrap();
        for made in ["a", "a/b", "a/b/c"] {
            let mode = fs::metadata(home.path().join(made))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }
}
