//! Folders held open by file descriptor, so that operations stay in them even if their names
//! change. Follows no links.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Opening must not block on a pipe, and must not acquire a controlling terminal.
const OPEN_FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A folder that is held open.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

/// A regular file, opened for reading.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// The file.
    pub(super) file: File,
    /// Metadata when it was opened.
    pub(super) stat: Stat,
}

impl OpenFile {
    /// Size in bytes.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
}

impl Folder {
    /// Opens a folder by its absolute path, of which only the last component must not be a link.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::open(path, OPEN_FOLDER, Mode::empty())?))
    }

    /// Opens a subfolder.
    pub(super) fn step(&self, name: &OsStr) -> io::Result<Folder> {
        match rustix::fs::openat(&self.0, name, OPEN_FOLDER, Mode::empty()) {
            Ok(folder) => Ok(Folder(folder)),
            Err(Errno::NOTDIR) if self.stat(name).is_ok_and(|stat| is_link(&stat)) => {
                Err(Errno::LOOP.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a subfolder, creating it if it is missing.
    pub(super) fn step_or_make(&self, name: &OsStr) -> io::Result<Folder> {
        match self.step(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.step(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the metadata of a name in the folder.
    pub(super) fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(
            &self.0,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Opens a regular file for reading; fails for other types.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<OpenFile> {
        // Checked first, because opening a device may already have effects.
        regular(&self.stat(name)?)?;
        let file = rustix::fs::openat(&self.0, name, OPEN_FILE, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        regular(&stat)?;
        Ok(OpenFile {
            file: File::from(file),
            stat,
        })
    }

    /// Creates a new file for writing; fails if the name exists.
    pub(super) fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, name, flags, mode)?.into())
    }

    /// Renames a file, replacing an existing one.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Fails if a file is not writable.
    pub(super) fn writable(&self, name: &OsStr) -> io::Result<()> {
        let wanted = rustix::fs::Access::WRITE_OK;
        Ok(rustix::fs::accessat(
            &self.0,
            name,
            wanted,
            AtFlags::empty(),
        )?)
    }

    /// Returns the target of a link.
    pub(super) fn link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsStr::from_bytes(target.to_bytes()).to_owned())
    }

    /// Lists the names in the folder, unsorted, each with its type.
    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = (OsString, FileType)> + '_> {
        let entries = Dir::read_from(&self.0)?;
        Ok(entries.map_while(Result::ok).filter_map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                return None;
            }
            // Some file systems do not report the type in the listing.
            let kind = match entry.file_type() {
                FileType::Unknown => FileType::from_raw_mode(self.stat(&name).ok()?.st_mode),
                known => known,
            };
            Some((name, kind))
        }))
    }

    /// Syncs the folder, which makes its names durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// Fails if it is not a regular file, and names the type.
pub(super) fn regular(stat: &Stat) -> io::Result<()> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "it is a folder, not a file",
        FileType::Symlink => "it is a link, not a regular file",
        FileType::Fifo => "it is a pipe (FIFO), not a regular file",
        FileType::Socket => "it is a socket, not a regular file",
        FileType::CharacterDevice | FileType::BlockDevice => "it is a device, not a regular file",
        _ => "it is not a regular file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}
