//! Reads SQLite's write-ahead log without SQLite: the frames that SQLite would use, and other
//! frames of the same generation.

use super::pages::number32;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;

/// A page in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Page number in the database.
    pub(super) page: u32,
    /// Offset of its bytes in the log.
    pub(super) offset: usize,
    /// True if SQLite itself would use the frame: the checksum chain up to it is intact, and its
    /// transaction was committed.
    pub(super) committed: bool,
}

/// Returns the frames of the log's newest generation, in order.
pub(super) fn frames(log: &[u8], page_size: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    let step = FRAME_HEADER + page_size;
    let big_endian = number32(log, 0).filter(|magic| magic & !1 == MAGIC);
    let mut sum = big_endian.and_then(|magic| {
        let sum = checksum((0, 0), log.get(..24)?, magic & 1 == 1);
        (number32(log, 24) == Some(sum.0) && number32(log, 28) == Some(sum.1)).then_some(sum)
    });
    // If the header is damaged, the first frame still has the generation's salt.
    let salt_at = if sum.is_some() { 16 } else { HEADER + 8 };
    let Some(salt) = log.get(salt_at..salt_at + 8) else {
        return frames;
    };
    let is_big = big_endian.is_some_and(|magic| magic & 1 == 1);
    let mut sound = 0;
    let mut broken = false;
    for (at, frame) in log
        .get(HEADER..)
        .unwrap_or_default()
        .chunks(step)
        .enumerate()
    {
        if frame.len() < step || frame.get(8..16) != Some(salt) {
            sum = None;
            continue;
        }
        let (Some(page), Some(commit)) = (number32(frame, 0), number32(frame, 4)) else {
            break;
        };
        sum = sum.and_then(|sum| {
            let sum = checksum(sum, &frame[..8], is_big);
            let sum = checksum(sum, &frame[FRAME_HEADER..], is_big);
            (number32(frame, 16) == Some(sum.0) && number32(frame, 20) == Some(sum.1))
                .then_some(sum)
        });
        broken |= sum.is_none();
        if page == 0 {
            continue;
        }
        frames.push(Frame {
            page,
            offset: HEADER + at * step + FRAME_HEADER,
            committed: false,
        });
        if sum.is_some() && commit > 0 {
            sound = frames.len();
        }
    }
    if !broken {
        // Frames after the last commit were never acknowledged.
        frames.truncate(sound);
    }
    frames[..sound]
        .iter_mut()
        .for_each(|frame| frame.committed = true);
    frames
}

fn checksum(start: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let word = |bytes: &[u8]| {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    bytes.chunks_exact(8).fold(start, |(one, two), pair| {
        let one = one.wrapping_add(word(&pair[..4])).wrapping_add(two);
        (one, two.wrapping_add(word(&pair[4..])).wrapping_add(one))
    })
}
