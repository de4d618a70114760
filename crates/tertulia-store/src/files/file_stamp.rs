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
