//! Reads one log file: its lines, its end, and random access by sequence number.
//!
//! A log is lines, each ended by a line feed, in the order of their sequence numbers. Bytes after
//! the last complete append were never acknowledged: bytes without a line feed, or lines of an
//! append whose last line (`then` 0) is missing. Sequence numbers are read from the start of a
//! line, `{"v":1,"seq":N,`, so that finding one needs no JSON parsing; a line without that prefix
//! gets its number from its position.

use std::io;

use super::log_file::LogBytes;
use tertulia_core::entry::{Entry, Head, after_seq_name};
use tertulia_core::id::Seq;
use tertulia_core::session::Line;

/// Initial read size while looking for a line's end.
const CHUNK: u64 = 8192;
/// Bisection ends at this distance, where sequential reading is as cheap.
const NEAR: u64 = 16 * 1024;
/// Upper limit for sequence numbers and gaps; anything above is a damaged number.
const FARTHEST: u64 = 4_000_000;
/// The longest credible line: many times the limit of a message.
const LONGEST_LINE: u64 = 64 << 20;
/// A line with fewer bytes is no entry, because ids and hashes alone are longer.
const SHORTEST_ENTRY: usize = 100;
/// Most lines of a log that are too short to be entries.
const MOST_SHORT: usize = 100_000;
/// Largest gap before a line that no following line confirms.
const FARTHEST_ALONE: u64 = 1000;

/// The end of a log.
#[derive(Debug)]
pub(super) struct Tail {
    /// Where the acknowledged lines end.
    pub(super) end: u64,
    /// The file's size; above `end` if an append was torn.
    pub(super) size: u64,
    pub(super) last: Last,
}

/// The last acknowledged line.
#[derive(Debug)]
pub(super) enum Last {
    Nothing,
    Entry(Head),
    Damaged(String),
}

impl Tail {
    /// Finds a log's end, reading little more than its last line. A shared prefix may end in the
    /// middle of an append, where the last fork starts; it was written as a whole, so all of it
    /// counts.
    pub(super) fn of_log(file: &dyn LogBytes, shared_prefix: bool) -> io::Result<Tail> {
        let size = file.size()?;
        let mut end = end_of_lines(file, size)?;
        // A whole entry plus one byte was acknowledged, and its line feed is damaged: an
        // interrupted append has no such byte.
        if size > end + 1 && size - end <= LONGEST_LINE {
            let mut rest = read_range(file, end, size)?;
            if rest.pop().is_some() && Entry::decode(&rest).is_ok_and(|entry| entry.then == 0) {
                let last = Last::Damaged("its line does not end in a line feed".into());
                return Ok(Tail {
                    end: size,
                    size,
                    last,
                });
            }
        }
        loop {
            if end == 0 {
                let last = Last::Nothing;
                return Ok(Tail { end, size, last });
            }
            let (start, line) = line_before(file, end)?;
            let last = match Entry::decode(&line) {
                Ok(entry) if entry.then > 0 && !shared_prefix => {
                    end = start_of_append(file, start, entry.then)?;
                    continue;
                }
                Ok(entry) => Last::Entry(entry.head()),
                Err(error) => Last::Damaged(error.to_string()),
            };
            return Ok(Tail { end, size, last });
        }
    }

    /// Finds the end of a live session's log.
    pub(super) fn of(file: &dyn LogBytes) -> io::Result<Tail> {
        Tail::of_log(file, false)
    }

    pub(super) fn is_torn(&self) -> bool {
        self.size > self.end
    }
}

/// Returns the offset of the append whose line at `start` announces `then` more entries.
pub(super) fn start_of_append(file: &dyn LogBytes, start: u64, then: u32) -> io::Result<u64> {
    let (mut start, mut then) = (start, then);
    while start > 0 {
        let (before, line) = line_before(file, start)?;
        match Entry::decode(&line) {
            Ok(entry) if then.checked_add(1) == Some(entry.then) => {
                start = before;
                then = entry.then;
            }
            _ => break,
        }
    }
    Ok(start)
}

/// Returns the offset after the last line feed at or before `size`.
fn end_of_lines(file: &dyn LogBytes, size: u64) -> io::Result<u64> {
    let mut end = size;
    while end > 0 {
        let from = end.saturating_sub(CHUNK);
        let bytes = read_range(file, from, end)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// Returns the offset and bytes of the line whose line feed is just before `end`.
pub(super) fn line_before(file: &dyn LogBytes, end: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut size = CHUNK;
    loop {
        let from = end.saturating_sub(size);
        let bytes = read_range(file, from, end)?;
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if let Some(at) = text.iter().rposition(|byte| *byte == b'\n') {
            return Ok((from + at as u64 + 1, text[at + 1..].to_vec()));
        }
        if from == 0 {
            return Ok((0, text.to_vec()));
        }
        assert_line(size)?;
        size = size.saturating_mul(4);
    }
}

/// Reads the bytes between two offsets, as far as the file has them.
pub(super) fn read_range(file: &dyn LogBytes, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Iterates over lines from an offset.
pub(super) struct Lines<'a> {
    file: &'a dyn LogBytes,
    /// File offset of the buffer's end.
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Consumed bytes of the buffer.
    used: usize,
    step: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a dyn LogBytes, from: u64, end: u64) -> Lines<'a> {
        Lines {
            file,
            at: from,
            end,
            buffer: Vec::new(),
            used: 0,
            step: CHUNK,
        }
    }

    /// Returns the next line and its offset. Trailing bytes without a line feed count as a line
    /// with a damaged line feed, because `end` is where the acknowledged lines end.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut searched = self.used;
        loop {
            let unsearched = self.buffer.get(searched..).unwrap_or_default();
            if let Some(found) = unsearched.iter().position(|byte| *byte == b'\n') {
                let feed = searched + found;
                let line = self.buffer[self.used..feed].to_vec();
                let offset = self.at - (self.buffer.len() - self.used) as u64;
                self.used = feed + 1;
                return Ok(Some((offset, line)));
            }
            searched = self.buffer.len() - self.used;
            self.buffer.drain(..self.used);
            self.used = 0;
            let to = self.end.min(self.at.saturating_add(self.step));
            let more = read_range(self.file, self.at, to)?;
            if more.is_empty() {
                let rest = std::mem::take(&mut self.buffer);
                let offset = self.at - rest.len() as u64;
                return Ok((!rest.is_empty()).then_some((offset, rest)));
            }
            self.at += more.len() as u64;
            self.buffer.extend(more);
            assert_line((self.buffer.len() - self.used) as u64)?;
            self.step = (self.step * 2).min(1 << 20);
        }
    }
}

fn assert_line(length: u64) -> io::Result<()> {
    match length <= LONGEST_LINE {
        true => Ok(()),
        false => Err(not_a_log("a line of it has no end")),
    }
}

fn not_a_log(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Parses the sequence number at the start of a line.
pub(super) fn place_named(line: &[u8]) -> Option<Seq> {
    let digits = after_seq_name(line)?;
    let length = digits.iter().position(|byte| *byte == b',')?;
    let digits = std::str::from_utf8(digits.get(..length)?).ok()?;
    digits.parse().ok().map(Seq).filter(|seq| seq.0 > 0)
}

/// Returns the sequence number of a line after `before`: the named one, unless the neighbouring
/// lines contradict it.
fn place_after(before: Seq, line: &[u8], following: Option<&[u8]>) -> Seq {
    let expected = before.next();
    let Some(named) = place_named(line).filter(|named| *named > expected) else {
        return expected;
    };
    let gap = named.0 - expected.0;
    let borne_out = match following.map(place_named) {
        Some(Some(next)) => next > named && gap <= FARTHEST,
        Some(None) | None => gap <= FARTHEST_ALONE,
    };
    if borne_out { named } else { expected }
}

/// Returns the sequence number of a log's first line: 1, or the successor of the base's.
pub(super) fn first_place(file: &dyn LogBytes, end: u64) -> io::Result<Option<Seq>> {
    let mut lines = Lines::new(file, 0, end);
    let mut named = Vec::new();
    while named.len() < 16 {
        let Some((_, line)) = lines.next()? else {
            break;
        };
        named.push(place_named(&line));
        // Two consistent numbers are enough.
        if let [.., Some(a), Some(b)] = named[..]
            && b > a
        {
            break;
        }
    }
    if named.is_empty() {
        return Ok(None);
    }
    let from_line = |at: usize| {
        let seq = named.get(at).copied().flatten()?;
        let first = seq.0.checked_sub(at as u64)?;
        (1..=FARTHEST).contains(&first).then_some(Seq(first))
    };
    // The first line is trusted if the second does not contradict it.
    let first = match (
        named.first().copied().flatten(),
        named.get(1).copied().flatten(),
    ) {
        // The third line tells which of the two is altered.
        (Some(first), Some(second)) if second <= first => {
            let first = from_line(0).filter(|first| from_line(2) == Some(*first));
            first.or_else(|| from_line(1))
        }
        (Some(_), _) => from_line(0),
        (None, _) => (1..named.len()).find_map(from_line),
    };
    Ok(Some(first.unwrap_or(Seq(1))))
}

/// Offset of a line, and the sequence number of the line before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor {
    pub(super) offset: u64,
    pub(super) before: Seq,
}

/// Bisects for an anchor at or shortly before the line after `after`.
fn anchor(file: &dyn LogBytes, end: u64, first: Seq, after: Seq) -> io::Result<Anchor> {
    let mut low = Anchor {
        offset: 0,
        before: first.back(1),
    };
    let mut high = end;
    while high.saturating_sub(low.offset) > NEAR {
        let middle = low.offset + (high - low.offset) / 2;
        match neighbours(file, middle, high, end)? {
            // A number further ahead than there are bytes is damaged.
            Some((offset, seq))
                if seq > low.before
                    && seq <= after
                    && seq.0 - low.before.0 <= offset - low.offset =>
            {
                low = Anchor {
                    offset,
                    before: seq.back(1),
                };
            }
            // Starting too early only costs time.
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Returns the first line from `from` on whose number the following line confirms.
fn neighbours(
    file: &dyn LogBytes,
    from: u64,
    before: u64,
    end: u64,
) -> io::Result<Option<(u64, Seq)>> {
    let mut lines = Lines::new(file, from.saturating_sub(1), end);
    lines.next()?;
    let mut previous: Option<(u64, Seq)> = None;
    while let Some((offset, line)) = lines.next()? {
        let named = place_named(&line);
        if let (Some((offset, seq)), Some(named)) = (previous, named)
            && named == seq.next()
        {
            return Ok(Some((offset, seq)));
        }
        if offset >= before {
            break;
        }
        previous = named.map(|named| (offset, named));
    }
    Ok(None)
}

/// Passes lines from an anchor on to `visit` until it returns false. Returns the number of the last
/// accepted line.
pub(super) fn each_line(
    file: &dyn LogBytes,
    from: Anchor,
    end: u64,
    visit: &mut dyn FnMut(Line) -> bool,
) -> io::Result<Seq> {
    let mut lines = Lines::new(file, from.offset, end);
    let mut before = from.before;
    let mut waiting = lines.next()?;
    let mut short = 0;
    while let Some((_, bytes)) = waiting {
        short += usize::from(bytes.len() < SHORTEST_ENTRY);
        if short > MOST_SHORT {
            return Err(not_a_log("it is not a log: most of its lines are empty"));
        }
        let following = lines.next()?;
        let seq = place_after(
            before,
            &bytes,
            following.as_ref().map(|(_, line)| &line[..]),
        );
        if !visit(Line { seq, bytes }) {
            break;
        }
        before = seq;
        waiting = following;
    }
    Ok(before)
}

/// Reads at most `limit` of the file's own lines after `after` up to `upto`, without reading the
/// others.
pub(super) fn read_own(
    file: &dyn LogBytes,
    end: u64,
    after: Seq,
    upto: Seq,
    limit: usize,
) -> io::Result<Vec<Line>> {
    let mut found = Vec::new();
    let Some(first) = first_place(file, end)? else {
        return Ok(found);
    };
    if limit == 0 || after >= upto {
        return Ok(found);
    }
    let from = anchor(file, end, first, after)?;
    each_line(file, from, end, &mut |line| {
        if line.seq > upto {
            return false;
        }
        if line.seq > after {
            found.push(line);
        }
        found.len() < limit
    })?;
    Ok(found)
}

/// Returns the file's own entry with that sequence number, if it can be decoded.
pub(super) fn own_entry(file: &dyn LogBytes, end: u64, seq: Seq) -> io::Result<Option<Entry>> {
    let lines = read_own(file, end, seq.back(1), seq, 1)?;
    Ok(lines
        .first()
        .and_then(|line| Entry::decode(&line.bytes).ok())
        .filter(|entry| entry.seq == seq))
}

/// Returns the last bytes of a log that ends with an entry.
pub(super) fn ending(head: Head) -> String {
    format!("{}\"}}\n", head.hash)
}

/// Returns true if the lines of a log end with an entry.
pub(super) fn ends_with(lines: &[u8], head: Head) -> bool {
    lines.ends_with(ending(head).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn log(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn places(content: &[u8]) -> Vec<u64> {
        let file = log(content);
        let lines = read_own(
            &file,
            content.len() as u64,
            Seq::START,
            Seq(u64::MAX),
            usize::MAX,
        );
        lines.unwrap().iter().map(|line| line.seq.0).collect()
    }

    fn named(seqs: &[u64]) -> Vec<u8> {
        let lines: Vec<String> = seqs
            .iter()
            .map(|seq| format!("{{\"v\":1,\"seq\":{seq},\"x\":1}}\n"))
            .collect();
        lines.concat().into_bytes()
    }

    #[test]
    fn lines_stand_where_they_say_unless_that_is_a_lie() {
        assert_eq!(places(&named(&[1, 2, 3])), [1, 2, 3]);
        assert_eq!(places(&named(&[7, 8, 9])), [7, 8, 9]);
        assert_eq!(places(&named(&[1, 3, 5, 6])), [1, 3, 5, 6]);
        assert_eq!(places(&named(&[1, 97, 3, 4])), [1, 2, 3, 4]);
        assert_eq!(places(&named(&[97, 2, 3])), [1, 2, 3]);
        assert_eq!(places(&named(&[6, 6, 8])), [6, 7, 8]);
        assert_eq!(places(&named(&[1, 2, u64::MAX])), [1, 2, 3]);
        assert_eq!(places(&named(&[1, 1, 1])), [1, 2, 3]);
        assert_eq!(places(b"\n\n\n"), [1, 2, 3]);
        assert_eq!(places(b"rubbish"), [1]);
        assert_eq!(
            places(&[b"bad\n".to_vec(), named(&[12, 13])].concat()),
            [11, 12, 13]
        );
    }

    #[test]
    fn any_bytes_have_an_end() {
        let (zeros, feeds) = ([0; 20_000], [b'\n'; 20_000]);
        for content in [&b""[..], b"\n", b"x", b"x\n\0\0", &zeros, &feeds] {
            let tail = Tail::of(&log(content)).unwrap();
            assert!(tail.end <= tail.size);
        }
    }
}
