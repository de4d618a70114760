//! The file of a log: lines as they are, or compressed as `<log>.zst`.
//!
//! A log has one path, that of its plain file, whichever file holds it. If both are there, as a kill can
//! leave them, the plain one counts unless it is shorter.

use std::cell::RefCell;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::packed::{self, Block};
use crate::place;

/// End of the name of a compressed log.
pub(super) const PACKED: &str = ".zst";

/// The largest credible log, plain or unpacked: many times the limit of a session. A larger one, such
/// as a file with holes or one that unpacks without end, is not read.
const LARGEST: u64 = 2 << 30;

/// How often a log is looked for while another process packs or unpacks it.
const ATTEMPTS: usize = 10;

/// Bytes of a log, by offset.
pub(super) trait LogBytes {
    /// Returns the number of bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads bytes from an offset, and returns how many; none at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl LogBytes for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

/// An open log.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    packed: Option<Packed>,
}

/// The content of a compressed log.
#[derive(Debug)]
struct Packed {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
    /// The block that was read last, unpacked: most reads go on where the last one ended.
    last: RefCell<Option<(usize, Vec<u8>)>>,
}

impl LogFile {
    /// Opens a log.
    pub(super) fn open(log: &Path) -> io::Result<LogFile> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let path = held_by(log);
            match place::open_regular(&path) {
                // Another process may have packed or unpacked it meanwhile.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && is_there(log)
                        && attempts < ATTEMPTS => {}
                opened => return LogFile::of(opened?, path != log),
            }
        }
    }

    fn of(mut file: File, is_packed: bool) -> io::Result<LogFile> {
        assert_credible(file.metadata()?.len())?;
        let packed = match is_packed {
            false => None,
            true => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Some(Packed {
                    blocks: packed::find_blocks(&bytes),
                    bytes,
                    last: RefCell::new(None),
                })
            }
        };
        assert_credible(packed.as_ref().map_or(0, Packed::size))?;
        Ok(LogFile { file, packed })
    }

    /// Returns true if a block of a compressed log cannot be read.
    pub(super) fn has_damaged_blocks(&self) -> bool {
        self.packed.as_ref().is_some_and(|packed| {
            let mut blocks = packed.blocks.iter();
            blocks.any(|block| block.is_damaged(&packed.bytes))
        })
    }

    /// Returns the file that holds the log.
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl LogBytes for LogFile {
    fn size(&self) -> io::Result<u64> {
        match &self.packed {
            None => self.file.size(),
            Some(packed) => Ok(packed.size()),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.packed {
            None => FileExt::read_at(&self.file, buffer, offset),
            Some(packed) => Ok(packed.read_at(buffer, offset)),
        }
    }
}

impl Packed {
    fn size(&self) -> u64 {
        let last = self.blocks.last();
        last.map_or(0, |last| last.start + last.size as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        let after = self.blocks.partition_point(|block| block.start <= offset);
        let Some((at, block)) = after
            .checked_sub(1)
            .and_then(|at| Some((at, self.blocks.get(at)?)))
        else {
            return 0;
        };
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|(known, _)| *known != at) {
            *last = Some((at, block.read(&self.bytes)));
        }
        let plain = last.as_ref().map_or(&[][..], |(_, plain)| plain);
        let from = usize::try_from(offset - block.start).unwrap_or(usize::MAX);
        let there = plain.get(from..).unwrap_or_default();
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        count
    }
}

fn assert_credible(size: u64) -> io::Result<()> {
    match size <= LARGEST {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is too large for a log: {} MB", size / 1_000_000),
        )),
    }
}

/// Returns the path of a log's compressed file.
pub(super) fn packed_path(log: &Path) -> PathBuf {
    place::with_suffix(log, PACKED)
}

/// Number of looks for a log that may be on its way from one file to the other.
const LOOKS: u32 = 10;

/// Returns true if there is a log, in either file.
pub(super) fn is_there(log: &Path) -> bool {
    // Other processes may compress the log and make it plain again between two looks.
    (0..LOOKS).any(|_| log.exists() || packed_path(log).exists())
}

/// Returns the file that holds a log; its own path if there is none.
pub(super) fn held_by(log: &Path) -> PathBuf {
    let packed = packed_path(log);
    match (fs::metadata(log), fs::metadata(&packed)) {
        (Err(_), Ok(_)) => packed,
        (Ok(plain), Ok(_)) if is_longer(&packed, plain.len()) => packed,
        _ => log.to_owned(),
    }
}

/// Returns true if a compressed log has more than so many bytes.
fn is_longer(packed: &Path, size: u64) -> bool {
    let opened = place::open_regular(packed).and_then(|file| LogFile::of(file, true));
    opened
        .and_then(|log| log.size())
        .is_ok_and(|there| there > size)
}

/// Returns the metadata of the file that holds a log.
pub(super) fn metadata(log: &Path) -> io::Result<Metadata> {
    fs::metadata(held_by(log))
}
