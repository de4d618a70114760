//! Identity and version of a file, as its metadata tells.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Inode, size and modification time of a file at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) modified: i64,
}

impl FileStamp {
    pub(super) fn of(metadata: &Metadata) -> FileStamp {
        FileStamp {
            inode: metadata.ino(),
            size: metadata.len(),
            modified: metadata
                .mtime()
                .wrapping_mul(1_000_000_000)
                .wrapping_add(metadata.mtime_nsec()),
        }
    }
}

impl FileStamp {
    /// Stamp of no file.
    pub(super) const NONE: FileStamp = FileStamp {
        inode: 0,
        size: 0,
        modified: 0,
    };

    /// Reads a stamp from the three columns of a row from `first` on.
    pub(super) fn in_row(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<FileStamp> {
        Ok(FileStamp {
            inode: row.get::<_, i64>(first)?.cast_unsigned(),
            size: row.get::<_, i64>(first + 1)?.cast_unsigned(),
            modified: row.get(first + 2)?,
        })
    }
}
