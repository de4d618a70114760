//! Replaces a file atomically: readers see the old content or the new one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::fchown;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Mode, Stat};

use super::confine::Place;
use super::folder::{Folder, regular};

/// Maximum number of names tried for the temporary file.
const MOST_NAMES: u32 = 100;

/// Replaces the content of the file at `place`, creating missing folders. With `read`, only if the
/// file is still the one that was read.
pub(super) fn replace(place: &Place, content: &[u8], read: Option<&Stat>) -> io::Result<()> {
    let (folder, name) = place.parent_made()?;
    let old = match folder.stat(name) {
        Ok(stat) => Some(stat),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(old) = &old {
        regular(old)?;
        // Renaming would replace even a write-protected file.
        folder.writable(name)?;
    }
    let (mut file, temporary) = temporary_file(&folder, old.is_some())?;
    let written = fill(&mut file, content, old.as_ref())
        .and_then(|()| still(&folder, name, read))
        .and_then(|()| folder.rename(&temporary, name));
    if let Err(error) = written {
        // Removes the temporary file; a failure to do so would hide the real error.
        let _ = folder.remove(&temporary);
        return Err(error);
    }
    folder.sync()
}

/// Creates a new file beside the one to replace. Other users cannot read it until it has the mode
/// of that one.
fn temporary_file(folder: &Folder, replaces: bool) -> io::Result<(File, OsString)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mode = Mode::from_raw_mode(if replaces { 0o600 } else { 0o666 });
    for _ in 0..MOST_NAMES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".tertulia-{}-{number}.tmp", std::process::id()));
        match folder.create(&name, mode) {
            Ok(file) => return Ok((file, name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(
        "there is no name left for a temporary file",
    ))
}

fn fill(file: &mut File, content: &[u8], old: Option<&Stat>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(old) = old {
        // Only root can change the owner; for other users the new file is their own.
        let _ = fchown(&*file, Some(old.st_uid), Some(old.st_gid));
        rustix::fs::fchmod(&*file, Mode::from_raw_mode(old.st_mode))?;
    }
    file.sync_all()
}

/// Fails if the file was replaced or changed since it was read.
fn still(folder: &Folder, name: &OsStr, read: Option<&Stat>) -> io::Result<()> {
    let Some(read) = read else { return Ok(()) };
    let mark = |stat: &Stat| {
        (
            (stat.st_dev, stat.st_ino, stat.st_size),
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        )
    };
    match folder.stat(name) {
        Ok(now) if mark(&now) == mark(read) => Ok(()),
        _ => Err(io::Error::other(
            "the file changed in the meantime: read it again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_changed_since_it_was_read_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = root.join("a");
        fs::write(&path, "one").unwrap();
        let place = Place::resolve(&root, "a").unwrap();
        let read = || place.file().unwrap().stat;
        replace(&place, b"two", Some(&read())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let before = read();
        fs::write(&path, "another text").unwrap();
        let error = replace(&place, b"three", Some(&before)).unwrap_err();
        assert!(error.to_string().contains("in the meantime"), "{error}");
        fs::remove_file(&path).unwrap();
        replace(&place, b"three", Some(&before)).unwrap_err();
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "nothing is left");
    }
}
