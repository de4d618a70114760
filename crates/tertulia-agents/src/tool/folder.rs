//! Folders held open, so that what is done in them is done there, whatever their names lead to by
//! then. No link is followed here.

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
/// A pipe must not make its opener wait, and a terminal must not become ours.
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
    /// What it was when it was opened.
    pub(super) stat: Stat,
}

impl OpenFile {
    /// Its size in bytes.
    pub(super) fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }
}

impl Folder {
    /// Opens a folder by its whole path, of which only the last part may not be a link.
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder(rustix::fs::open(path, OPEN_FOLDER, Mode::empty())?))
    }

    /// Opens a folder in it.
    pub(super) fn step(&self, name: &OsStr) -> io::Result<Folder> {
        match rustix::fs::openat(&self.0, name, OPEN_FOLDER, Mode::empty()) {
            Ok(folder) => Ok(Folder(folder)),
            Err(Errno::NOTDIR) if self.stat(name).is_ok_and(|stat| is_link(&stat)) => {
                Err(Errno::LOOP.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a folder in it, making it first if it is missing.
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

    /// What a name in it stands for.
    pub(super) fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(
            &self.0,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    /// Opens a regular file in it for reading, and nothing else.
    pub(super) fn file(&self, name: &OsStr) -> io::Result<OpenFile> {
        // Looked at first, because opening a device may already do something.
        regular(&self.stat(name)?)?;
        let file = rustix::fs::openat(&self.0, name, OPEN_FILE, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        regular(&stat)?;
        Ok(OpenFile {
            file: File::from(file),
            stat,
        })
    }

    /// Makes a new file in it for writing; an error if there is one.
    pub(super) fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, name, flags, mode)?.into())
    }

    /// Gives a file in it another name, replacing what had that name.
    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file in it.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Whether a file in it may be written.
    pub(super) fn writable(&self, name: &OsStr) -> io::Result<()> {
        let wanted = rustix::fs::Access::WRITE_OK;
        Ok(rustix::fs::accessat(
            &self.0,
            name,
            wanted,
            AtFlags::empty(),
        )?)
    }

    /// Where a link in it points.
    pub(super) fn link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsStr::from_bytes(target.to_bytes()).to_owned())
    }

    /// The names in it as they come, each with what it is.
    pub(super) fn names(&self) -> io::Result<impl Iterator<Item = (OsString, FileType)> + '_> {
        let entries = Dir::read_from(&self.0)?;
        Ok(entries.map_while(Result::ok).filter_map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                return None;
            }
            // Some file systems do not say it in the listing.
            let kind = match entry.file_type() {
                FileType::Unknown => FileType::from_raw_mode(self.stat(&name).ok()?.st_mode),
                known => known,
            };
            Some((name, kind))
        }))
    }

    /// Makes its names durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// Whether something is a regular file, and if not, what it is instead.
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
