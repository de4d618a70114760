//! Compressed lines. Lines are packed in blocks, each a zstd frame with a checksum, so that a part of a
//! log is read without the rest of it and damage loses one block only.

use std::io;

use zstd::zstd_safe;

use super::{StoreError, StoreResult};
use tertulia_core::id::SessionId;

/// A block ends with the first line that makes it this large, in bytes.
const BLOCK: usize = 64 * 1024;

/// The largest credible block: a larger size is damaged. A line holds at most one message, with its
/// tool calls.
const LARGEST: u64 = 32 * 1024 * 1024;

/// Compression level: sessions are packed once and read seldom.
const LEVEL: i32 = 9;

/// The first bytes of a frame.
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

/// What stands for a block that cannot be read: a line that is no entry.
const FILLER: u8 = b'?';

/// Result of compressing sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Number of compressed sessions.
    pub sessions: u64,
    /// Bytes of their logs before.
    pub before: u64,
    /// Bytes of their logs now.
    pub after: u64,
    /// Number of sessions that were compressed already, or are too small to gain anything.
    pub unchanged: u64,
    /// Sessions that were left as they are, and why.
    pub skipped: Vec<(SessionId, String)>,
}

impl Compressed {
    /// Adds the outcome of one session: its size before and after, or `None` if it stays as it is.
    /// Fails if the others would fail, too.
    pub(crate) fn add(
        &mut self,
        id: SessionId,
        outcome: StoreResult<Option<(u64, u64)>>,
    ) -> StoreResult<()> {
        match outcome {
            Ok(Some((before, after))) => {
                self.sessions += 1;
                self.before += before;
                self.after += after;
            }
            Ok(None) => self.unchanged += 1,
            Err(StoreError::Refused(reason)) => self.skipped.push((id, reason)),
            Err(error @ (StoreError::NotFound(_) | StoreError::Damaged { .. })) => {
                self.skipped.push((id, error.to_string()));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Cuts lines into blocks. Every line belongs to one block, with its line feed.
pub(crate) fn blocks<L: AsRef<[u8]>>(lines: &[L]) -> impl Iterator<Item = &[L]> {
    let mut rest = lines;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let full = rest.iter().position(|line| {
            bytes += line.as_ref().len() + 1;
            bytes >= BLOCK
        });
        let count = full.map_or(rest.len(), |last| last + 1);
        let (block, after) = rest.split_at(count);
        rest = after;
        (!block.is_empty()).then_some(block)
    })
}

/// Packs lines into a block, each with a line feed. Fails if unpacking does not give the same bytes.
pub(crate) fn pack<L: AsRef<[u8]>>(lines: &[L]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    for line in lines {
        plain.extend_from_slice(line.as_ref());
        plain.push(b'\n');
    }
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    let block = compressor.compress(&plain)?;
    match unpack(&block).is_some_and(|again| again == plain) {
        true => Ok(block),
        false => Err(io::Error::other("the compressed bytes cannot be read back")),
    }
}

/// Unpacks a block. Returns `None` if it is damaged.
pub(crate) fn unpack(block: &[u8]) -> Option<Vec<u8>> {
    let size = content_size(block)?;
    let plain = zstd::bulk::decompress(block, size).ok()?;
    (plain.len() == size).then_some(plain)
}

/// Returns true if bytes begin like a block.
pub(crate) fn is_block(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

fn content_size(block: &[u8]) -> Option<usize> {
    let size = zstd_safe::get_frame_content_size(block).ok().flatten()?;
    usize::try_from(size).ok().filter(|_| size <= LARGEST)
}

/// A block in a file of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Offset of its first unpacked byte among those of all blocks.
    pub(crate) start: u64,
    /// Its unpacked size.
    pub(crate) size: usize,
    /// Its packed bytes: offset and length.
    pub(crate) packed: (usize, usize),
}

impl Block {
    /// Returns the unpacked bytes. Damaged ones are replaced by one line that is no entry.
    pub(crate) fn read(&self, file: &[u8]) -> Vec<u8> {
        self.unpack(file).unwrap_or_else(|| {
            let mut filler = vec![FILLER; self.size];
            if let Some(last) = filler.last_mut() {
                *last = b'\n';
            }
            filler
        })
    }
}

impl Block {
    /// Returns true if the block cannot be unpacked.
    pub(crate) fn is_damaged(&self, file: &[u8]) -> bool {
        self.unpack(file).is_none()
    }

    fn unpack(&self, file: &[u8]) -> Option<Vec<u8>> {
        let (at, length) = self.packed;
        let plain = unpack(file.get(at..at + length)?)?;
        (plain.len() == self.size).then_some(plain)
    }
}

/// Finds the blocks of a file, without unpacking them. Bytes that are no block count as a damaged one.
pub(crate) fn find_blocks(file: &[u8]) -> Vec<Block> {
    let mut found = Vec::new();
    let (mut at, mut start) = (0, 0);
    while at < file.len() {
        let rest = &file[at..];
        let length = zstd_safe::find_frame_compressed_size(rest).ok();
        let sound = length.filter(|_| is_block(rest)).zip(content_size(rest));
        let (length, size) = sound.filter(|(length, _)| *length > 0).unwrap_or_else(|| {
            let next = rest.windows(MAGIC.len()).skip(1).position(is_block);
            (next.map_or(rest.len(), |next| next + 1), 2)
        });
        found.push(Block {
            start,
            size,
            packed: (at, length),
        });
        at += length;
        start += size as u64;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    fn packed(lines: &[String]) -> Vec<u8> {
        blocks(lines)
            .flat_map(|block| pack(block).unwrap())
            .collect()
    }

    fn unpacked(file: &[u8]) -> Vec<u8> {
        let found = find_blocks(file);
        found.iter().flat_map(|block| block.read(file)).collect()
    }

    fn lines(count: usize) -> Vec<String> {
        (0..count)
            .map(|n| {
                format!(
                    "{{\"v\":1,\"seq\":{n},\"text\":\"{}\"}}",
                    "words ".repeat(n % 50)
                )
            })
            .collect()
    }

    #[test]
    fn blocks_are_read_one_by_one() {
        let lines = lines(3000);
        let file = packed(&lines);
        let plain: Vec<u8> = lines
            .iter()
            .flat_map(|line| format!("{line}\n").into_bytes())
            .collect();
        assert!(file.len() * 4 < plain.len());
        assert_eq!(unpacked(&file), plain);
        let found = find_blocks(&file);
        assert!(found.len() > 3, "{}", found.len());
        for block in found {
            let from = usize::try_from(block.start).unwrap();
            assert_eq!(block.read(&file), plain[from..from + block.size]);
            assert!(plain[from..from + block.size].ends_with(b"\n"));
        }
        assert_eq!(find_blocks(b""), []);
        assert_eq!(blocks::<String>(&[]).count(), 0);
    }

    #[test]
    fn damage_loses_one_block() {
        let lines = lines(3000);
        let file = packed(&lines);
        let sound = find_blocks(&file);
        for at in [0, file.len() / 2, file.len() - 1] {
            let mut damaged = file.clone();
            damaged[at] ^= 0x55;
            let text = String::from_utf8_lossy(&unpacked(&damaged)).into_owned();
            let there: HashSet<&str> = text.lines().collect();
            let whole = lines
                .iter()
                .filter(|line| there.contains(line.as_str()))
                .count();
            let hit = sound
                .iter()
                .find(|block| at < block.packed.0 + block.packed.1)
                .unwrap();
            let lost = hit
                .read(&file)
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            assert_eq!(whole, lines.len() - lost, "at {at}");
            assert!(text.contains('?') && text.ends_with('\n'));
        }
        // A file that was cut off.
        let text = unpacked(&file[..file.len() - 9]);
        assert!(text.ends_with(b"?\n"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let found = find_blocks(&bytes);
            let length: usize = found.iter().map(|block| block.packed.1).sum();
            prop_assert_eq!(length, bytes.len());
            unpacked(&bytes);
            unpacked(&[&MAGIC[..], &bytes].concat());
        }

        #[test]
        fn any_lines_come_back(lines in proptest::collection::vec("[^\n]{0,200}", 0..40)) {
            let plain: String = lines.iter().map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(unpacked(&packed(&lines)), plain.into_bytes());
        }
    }
}
