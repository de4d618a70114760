//! The pages of a damaged database and of its WAL, and the lines of entries in them.

use std::collections::HashMap;

use super::pack::lines_in;
use super::pages::{self, Kind};
use super::wal;
use crate::packed;
use tertulia_core::entry::Hash;

/// The largest credible number of missing pages; beyond it the header itself is damaged.
const FARTHEST_CUT: u32 = 1 << 24;

/// Reads a page of the database file.
type PageOfFile<'a> = Box<dyn Fn(u32) -> Option<Vec<u8>> + 'a>;

/// The pages of a damaged database: those in its WAL over those in its file.
pub(super) struct Image<'a> {
    file: PageOfFile<'a>,
    pub(super) count: u32,
    /// Number of complete pages.
    whole: u32,
    page_size: usize,
    log: Vec<u8>,
    /// Offset in the WAL of the newest committed version of each page.
    newest: HashMap<u32, usize>,
    /// Pages after a damaged frame of the WAL, newest first: not covered by the checksum chain, but
    /// of the same generation.
    pub(super) behind: Vec<(u32, usize)>,
}

/// Where a page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The page as the database has it.
    Current(u32),
    /// A page in the WAL, after a damaged frame.
    Behind(usize),
}

impl<'a> Image<'a> {
    pub(super) fn new(
        file: PageOfFile<'a>,
        file_size: u64,
        page_size: usize,
        log: Vec<u8>,
    ) -> Image<'a> {
        let step = page_size as u64;
        let pages = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let mut image = Image {
            file,
            count: pages(file_size.div_ceil(step)),
            whole: pages(file_size / step),
            page_size,
            log: Vec::new(),
            newest: HashMap::new(),
            behind: Vec::new(),
        };
        for frame in wal::frames(&log, page_size) {
            if frame.committed {
                image.newest.insert(frame.page, frame.offset);
                image.count = image.count.max(frame.page);
                image.whole = image.whole.max(frame.page);
            } else {
                image.behind.insert(0, (frame.page, frame.offset));
            }
        }
        image.log = log;
        image
    }

    /// Returns the actual and the expected number of pages, if the header names more than there
    /// are.
    pub(super) fn cut_short(&self) -> Option<(u32, u32)> {
        let first = self.page(1)?;
        let said = pages::number32(&first, 28)?;
        (said > self.whole && said - self.whole < FARTHEST_CUT).then_some((self.whole, said))
    }

    fn page(&self, number: u32) -> Option<Vec<u8>> {
        match self.newest.get(&number) {
            Some(offset) => self.in_log(*offset),
            None => (self.file)(number),
        }
    }

    fn in_log(&self, offset: usize) -> Option<Vec<u8>> {
        Some(self.log.get(offset..offset + self.page_size)?.to_vec())
    }

    pub(super) fn bytes_at(&self, source: Source) -> Option<Vec<u8>> {
        match source {
            Source::Current(number) => self.page(number),
            Source::Behind(offset) => self.in_log(offset),
        }
    }

    /// Reads an overflow page of a cell. For a cell after a damaged frame, prefers a page found
    /// there.
    pub(super) fn continuation(&self, source: Source, number: u32) -> Option<Vec<u8>> {
        let behind = match source {
            Source::Current(_) => None,
            Source::Behind(_) => self.behind.iter().find(|(page, _)| *page == number),
        };
        match behind {
            Some((_, offset)) => self.in_log(*offset),
            None => self.page(number),
        }
    }

    /// Returns the line of an entry, if its bytes are there.
    pub(super) fn line(&self, candidate: &Candidate) -> Option<Vec<u8>> {
        let page = self.bytes_at(candidate.source)?;
        let cell = pages::cell_at(&page, candidate.offset, Kind::Table)?;
        let (payload, _) = pages::payload(&page, &cell, |number| {
            self.continuation(candidate.source, number)
        });
        line_in(&payload, candidate.within)
    }

    /// Returns the line of an entry one of whose overflow pages was swapped with another: tries the
    /// `loose` pages until `is_right` accepts the line. `tries` limits the attempts.
    pub(super) fn line_with_pages_swapped(
        &self,
        candidate: &Candidate,
        loose: &[u32],
        tries: &mut usize,
        is_right: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let page = self.bytes_at(candidate.source)?;
        let cell = pages::cell_at(&page, candidate.offset, Kind::Table)?;
        let mut at = 0;
        loop {
            let read = |number| self.continuation(candidate.source, number);
            let (_, chain) = pages::payload(&page, &cell, read);
            let wrong = *chain.get(at)?;
            for other in loose.iter().filter(|other| **other != wrong) {
                *tries = tries.checked_sub(1)?;
                let swapped = |number| match number {
                    _ if number == wrong => self.page(*other),
                    _ if number == *other => self.page(wrong),
                    _ => self.continuation(candidate.source, number),
                };
                let (payload, _) = pages::payload(&page, &cell, swapped);
                let line = line_in(&payload, candidate.within);
                if let Some(line) = line.filter(|line| is_right(line)) {
                    return Some(line);
                }
            }
            at += 1;
        }
    }
}

/// Returns the line in the record of an entry; in that of a block, the line `within` it.
fn line_in(payload: &[u8], within: usize) -> Option<Vec<u8>> {
    let line = pages::last_bytes(payload)?;
    match packed::is_block(line) {
        true => lines_in(line).into_iter().nth(within),
        false => Some(line.to_vec()),
    }
}

/// A row that may be an entry of a session.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) source: Source,
    pub(super) offset: usize,
    /// Number of the line within its block, if it is compressed.
    pub(super) within: usize,
    /// The hash in the line, if it is readable.
    pub(super) hash: Option<Hash>,
    /// Found in a sound page that does not list it: it may have been deleted.
    pub(super) stray: bool,
}
