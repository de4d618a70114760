//! Scans a damaged database page by page for the remains of sessions: table rows, and what the
//! indexes say of missing ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::pack::lines_in;
use super::pages::{self, Cell, Kind, Value};
use super::wal;
use crate::selection::{PURGED, id_from};
use crate::{Draft, packed};
use tertulia_core::entry::{Body, Entry, Hash, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

/// The largest credible append; a larger number is damaged.
const LONGEST_APPEND: u64 = 1000;

/// The largest credible number of missing pages; beyond it the header itself is damaged.
const FARTHEST_CUT: u32 = 1 << 24;

/// Reads a page of the database file.
type PageOfFile<'a> = Box<dyn Fn(u32) -> Option<Vec<u8>> + 'a>;

/// The pages of a damaged database: those in its WAL over those in its file.
pub(super) struct Image<'a> {
    file: PageOfFile<'a>,
    count: u32,
    /// Number of complete pages.
    whole: u32,
    page_size: usize,
    log: Vec<u8>,
    /// Offset in the WAL of the newest committed version of each page.
    newest: HashMap<u32, usize>,
    /// Pages after a damaged frame of the WAL, newest first: not covered by the checksum chain, but
    /// of the same generation.
    behind: Vec<(u32, usize)>,
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

    fn bytes_at(&self, source: Source) -> Option<Vec<u8>> {
        match source {
            Source::Current(number) => self.page(number),
            Source::Behind(offset) => self.in_log(offset),
        }
    }

    /// Reads an overflow page of a cell. For a cell after a damaged frame, prefers a page found
    /// there.
    fn continuation(&self, source: Source, number: u32) -> Option<Vec<u8>> {
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
    match pages::record(payload)?.get(3)? {
        Value::Text(line) => Some(line.to_vec()),
        Value::Blob(block) => lines_in(block).into_iter().nth(within),
        _ => None,
    }
}

/// A row that may be an entry of a session.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    source: Source,
    offset: usize,
    /// Number of the line within its block, if it is compressed.
    within: usize,
    /// The hash in the line, if it is readable.
    pub(super) hash: Option<Hash>,
    /// Found in a sound page that does not list it: it may have been deleted.
    pub(super) stray: bool,
}

/// The readable row of a session.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) id: SessionId,
    pub(super) base: Option<(i64, Seq)>,
    pub(super) purged: bool,
    pub(super) title: Option<String>,
    last: Seq,
}

/// Content of an opening entry.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) session: SessionId,
    pub(super) from: Option<Origin>,
}

/// The remains of one session.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) row: Option<SessionRow>,
    indexed: Option<SessionId>,
    pub(super) entries: BTreeMap<Seq, Vec<Candidate>>,
    pub(super) openings: BTreeMap<Seq, Opening>,
    /// Sequence numbers found in an index.
    pub(super) places: BTreeSet<Seq>,
    /// The highest sequence number that the entries announce.
    announced: Seq,
    pub(super) draft: Option<Draft>,
}

impl Remains {
    /// Returns the session's id, if known. The log takes precedence over the row, except for a
    /// purged session, whose row has a new id.
    pub(super) fn id(&self) -> Option<SessionId> {
        let row = self.row.as_ref();
        let named = |id| self.openings.values().any(|opening| opening.session == id);
        match row {
            Some(row) if row.purged || self.openings.is_empty() || named(row.id) => Some(row.id),
            _ => {
                let opening = self.openings.values().next_back();
                opening.map(|opening| opening.session).or(self.indexed)
            }
        }
    }

    /// Returns the highest sequence number that any source names.
    pub(super) fn last(&self) -> Seq {
        let row = self.row.as_ref().filter(|row| !row.purged);
        let known = row.map_or(Seq::START, |row| row.last);
        let indexed = self.places.last().copied().unwrap_or(Seq::START);
        known.max(indexed).max(self.announced)
    }

    /// Returns true if the session is known from stray entries only.
    fn is_stray(&self) -> bool {
        self.row.is_none()
            && self.indexed.is_none()
            && self.places.is_empty()
            && self.entries.values().flatten().all(|entry| entry.stray)
    }
}

/// The remains of all sessions, by their numbers in the damaged database.
#[derive(Debug, Default)]
pub(super) struct AllRemains {
    pub(super) sessions: BTreeMap<i64, Remains>,
    /// The log that holds each entry that a fork continues, by the entry's hash.
    pub(super) shared: HashMap<Hash, (i64, Seq)>,
    /// Pages outside any b-tree, such as overflow pages of long rows.
    pub(super) loose: Vec<u32>,
    /// True if any part of the store's layout was found.
    pub(super) is_ours: bool,
}

impl AllRemains {
    /// Scans every page. `tell` receives the number of scanned pages and the total.
    pub(super) fn of(image: &Image<'_>, tell: impl Fn(u64, u64)) -> AllRemains {
        let mut all = AllRemains::default();
        for number in 1..=image.count {
            if number % 1024 == 0 {
                tell(number.into(), image.count.into());
            }
            all.scan(image, Source::Current(number), number == 1);
        }
        for (number, offset) in &image.behind {
            all.scan(image, Source::Behind(*offset), *number == 1);
        }
        all.sessions.retain(|_, remains| !remains.is_stray());
        let wanted: HashSet<Hash> = all
            .sessions
            .values()
            .flat_map(|remains| remains.openings.values())
            .filter_map(|opening| opening.from.as_ref().map(|from| from.hash))
            .collect();
        for (no, remains) in &all.sessions {
            for (seq, candidates) in &remains.entries {
                for hash in candidates.iter().filter_map(|candidate| candidate.hash) {
                    if wanted.contains(&hash) {
                        all.shared.entry(hash).or_insert((*no, *seq));
                    }
                }
            }
        }
        all
    }

    /// Returns how many entries the file is known to have held.
    pub(super) fn entries_known(&self) -> usize {
        let known = |remains: &Remains| {
            let mut places = remains.places.clone();
            places.extend(remains.entries.keys());
            places.len()
        };
        self.sessions.values().map(known).sum()
    }

    fn scan(&mut self, image: &Image<'_>, source: Source, is_first: bool) {
        let Some(bytes) = image.bytes_at(source) else {
            return;
        };
        let page = pages::read(&bytes, is_first);
        if let (Source::Current(number), None) = (source, page.kind)
            && bytes.iter().any(|byte| *byte != 0)
        {
            self.loose.push(number);
        }
        for cell in &page.cells {
            self.take(image, source, &bytes, cell, false);
        }
        let listed: HashSet<usize> = page.cells.iter().map(|cell| cell.offset).collect();
        for cell in pages::carve(&bytes, looks_like_entry) {
            if !listed.contains(&cell.offset) {
                self.take(image, source, &bytes, &cell, page.sound);
            }
        }
    }

    fn take(&mut self, image: &Image<'_>, source: Source, bytes: &[u8], cell: &Cell, stray: bool) {
        let (payload, _) = pages::payload(bytes, cell, |number| image.continuation(source, number));
        let Some(values) = pages::record(&payload) else {
            return;
        };
        match (cell.rowid, &values[..]) {
            (Some(_), [Value::Null, Value::Int(no), Value::Int(seq), line]) if *no > 0 => {
                let candidate = Candidate {
                    source,
                    offset: cell.offset,
                    within: 0,
                    hash: None,
                    stray,
                };
                let seq = Seq(seq.cast_unsigned());
                match line {
                    Value::Blob(block) => self.take_block(*no, seq, block, &candidate),
                    Value::Text(line) => self.take_entry(*no, seq, line, candidate),
                    _ => self.take_entry(*no, seq, &[], candidate),
                }
            }
            (Some(no), [Value::Null, Value::Blob(id), Value::Blob(_), ..])
                if values.len() == 13 && !stray =>
            {
                if let (Ok(id), Some(row)) = ((*id).try_into(), session_row(&values)) {
                    let id = id_from(id);
                    let known = self.sessions.entry(no).or_default();
                    known.row.get_or_insert(SessionRow { id, ..row });
                    self.is_ours = true;
                }
            }
            (Some(no), [Value::Null, Value::Text(body)]) if !stray => {
                if let Ok(draft) = serde_json::from_slice(body) {
                    let known = self.sessions.entry(no).or_default();
                    known.draft.get_or_insert(draft);
                }
            }
            (
                Some(_),
                [
                    Value::Text(b"table"),
                    Value::Text(b"session" | b"entry"),
                    ..,
                ],
            ) => {
                self.is_ours = true;
            }
            (None, [Value::Int(no), Value::Int(seq), Value::Int(_)]) if *no > 0 => {
                let known = self.sessions.entry(*no).or_default();
                known.places.insert(Seq(seq.cast_unsigned()));
            }
            (None, [.., Value::Int(_), Value::Blob(id), Value::Int(no)]) => {
                if let Ok(id) = (*id).try_into() {
                    let known = self.sessions.entry(*no).or_default();
                    known.indexed.get_or_insert(id_from(id));
                }
            }
            _ => {}
        }
    }

    /// Takes the entries of a block; a damaged one has at least its first.
    fn take_block(&mut self, no: i64, seq: Seq, block: &[u8], candidate: &Candidate) {
        let mut lines = lines_in(block);
        if lines.is_empty() {
            lines.push(Vec::new());
        }
        for (within, line) in lines.iter().enumerate() {
            let seq = Seq(seq.0.saturating_add(within as u64));
            let candidate = Candidate {
                within,
                ..candidate.clone()
            };
            self.take_entry(no, seq, line, candidate);
        }
    }

    fn take_entry(&mut self, no: i64, seq: Seq, line: &[u8], mut candidate: Candidate) {
        let entry = Entry::decode(line).ok();
        let known = self.sessions.entry(no).or_default();
        if let Some(entry) = entry.filter(|entry| entry.seq == seq) {
            candidate.hash = Some(entry.hash);
            self.is_ours = true;
            let opening = match entry.body {
                Body::Created(created) => Some((created.session, None)),
                Body::Forked(forked) => Some((forked.session, Some(forked.from))),
                _ => None,
            };
            if let Some((session, from)) = opening.filter(|_| !candidate.stray) {
                let opening = Opening { session, from };
                known.openings.entry(seq).or_insert(opening);
            }
            let then = u64::from(entry.then);
            if then <= LONGEST_APPEND && !candidate.stray {
                known.announced = known.announced.max(Seq(seq.0.saturating_add(then)));
            }
        }
        known.entries.entry(seq).or_default().push(candidate);
    }
}

/// Returns true if the values have the shape of an entry's row.
fn looks_like_entry(values: &[Value<'_>]) -> bool {
    let [Value::Null, Value::Int(no), Value::Int(seq), line] = values else {
        return false;
    };
    let is_line = match line {
        Value::Text(_) | Value::Cut => true,
        Value::Blob(block) => packed::is_block(block),
        _ => false,
    };
    is_line && *no > 0 && *seq > 0
}

/// Parses a row of the session table; the caller sets the id.
fn session_row(values: &[Value<'_>]) -> Option<SessionRow> {
    let state = values.get(9)?.int()?;
    let meta = match values.get(12)? {
        Value::Text(row) => SessionMeta::from_json(row).ok(),
        _ => None,
    };
    let base = values.get(3)?.int().zip(values.get(4)?.int());
    let title = match values.get(8)? {
        Value::Text(title) => Some(String::from_utf8_lossy(title).into_owned()),
        _ => None,
    };
    Some(SessionRow {
        id: id_from([0; 16]),
        base: base.map(|(no, seq)| (no, Seq(seq.cast_unsigned()))),
        purged: state == PURGED,
        title,
        last: meta.map_or(Seq::START, |meta| meta.head.seq),
    })
}
