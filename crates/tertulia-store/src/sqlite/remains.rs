//! What is left of the sessions in a damaged database, found page by page: rows of the tables, and what
//! the indexes say was there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::list::id_from;
use super::pages::{self, Cell, Kind, Value};
use super::rows::PURGED;
use super::wal;
use crate::Draft;
use tertulia_core::entry::{Body, Entry, Hash, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

/// An append has no more entries than this: a larger number is damaged.
const LONGEST_APPEND: u64 = 1000;

/// A header that says that more pages than this are missing is damaged itself.
const FARTHEST_CUT: u32 = 1 << 24;

/// Reads a page of the database file.
type PageOfFile<'a> = Box<dyn Fn(u32) -> Option<Vec<u8>> + 'a>;

/// The pages of a damaged database: those in its write-ahead log over those in its file.
pub(super) struct Image<'a> {
    file: PageOfFile<'a>,
    count: u32,
    /// How many pages are there in full.
    whole: u32,
    page_size: usize,
    log: Vec<u8>,
    /// Where in the log the newest version of a page begins.
    newest: HashMap<u32, usize>,
    /// Pages behind a damaged place of the log, newest first: the log does not vouch for them, but they
    /// are pages of the same generation.
    behind: Vec<(u32, usize)>,
}

/// Where a page was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The page as the database has it.
    Current(u32),
    /// A page in the log, behind a damaged place of it.
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

    /// How many pages there are, and how many there were, if the header says more.
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

    /// A page that continues a cell: with a page from behind a damage belong the others there.
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

    /// The line of an entry, as far as its bytes are there.
    pub(super) fn line(&self, candidate: &Candidate) -> Option<Vec<u8>> {
        let page = self.bytes_at(candidate.source)?;
        let cell = pages::cell_at(&page, candidate.offset, Kind::Table)?;
        let (payload, _) = pages::payload(&page, &cell, |number| {
            self.continuation(candidate.source, number)
        });
        line_in(&payload)
    }

    /// The line of an entry of which one page was put in the place of another: `loose` are the pages
    /// that it may be now, and `is_right` knows the line. `tries` limits how many are tried.
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
                if let Some(line) = line_in(&payload).filter(|line| is_right(line)) {
                    return Some(line);
                }
            }
            at += 1;
        }
    }
}

/// The line in the record of an entry.
fn line_in(payload: &[u8]) -> Option<Vec<u8>> {
    match pages::record(payload)?.get(3)? {
        Value::Text(line) => Some(line.to_vec()),
        _ => None,
    }
}

/// A row that may be an entry of a session.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    source: Source,
    offset: usize,
    /// The hash that the line carries, if it is readable.
    pub(super) hash: Option<Hash>,
    /// Found in a sound page that does not list it: perhaps it was removed.
    pub(super) stray: bool,
}

/// What the table of sessions knew of one.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) id: SessionId,
    pub(super) base: Option<(i64, Seq)>,
    pub(super) purged: bool,
    pub(super) title: Option<String>,
    last: Seq,
}

/// What an entry that begins a session says.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) session: SessionId,
    pub(super) from: Option<Origin>,
}

/// What is left of one session.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) row: Option<SessionRow>,
    indexed: Option<SessionId>,
    pub(super) entries: BTreeMap<Seq, Vec<Candidate>>,
    pub(super) openings: BTreeMap<Seq, Opening>,
    /// Places that an index says there were.
    pub(super) places: BTreeSet<Seq>,
    /// The last place that the entries themselves say there was.
    announced: Seq,
    pub(super) draft: Option<Draft>,
}

impl Remains {
    /// Which session this is, if anything still says so. The log knows best; a purged session has
    /// given its name away.
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

    /// The last place that anything says there was.
    pub(super) fn last(&self) -> Seq {
        let row = self.row.as_ref().filter(|row| !row.purged);
        let known = row.map_or(Seq::START, |row| row.last);
        let indexed = self.places.last().copied().unwrap_or(Seq::START);
        known.max(indexed).max(self.announced)
    }

    /// Whether there are entries that nothing but a stray copy knows of.
    fn is_stray(&self) -> bool {
        self.row.is_none()
            && self.indexed.is_none()
            && self.places.is_empty()
            && self.entries.values().flatten().all(|entry| entry.stray)
    }
}

/// What is left of all sessions, by their numbers in the damaged database.
#[derive(Debug, Default)]
pub(super) struct AllRemains {
    pub(super) sessions: BTreeMap<i64, Remains>,
    /// In which log the entries stand that forks continue.
    pub(super) shared: HashMap<Hash, (i64, Seq)>,
    /// Pages that are in no b-tree: the rest of long rows, for one.
    pub(super) loose: Vec<u32>,
    /// Whether anything of the layout is there.
    pub(super) is_ours: bool,
}

impl AllRemains {
    /// Looks at every page. `tell` is told how many of how many.
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

    /// How many entries the file is known to have held.
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
                    hash: None,
                    stray,
                };
                self.take_entry(*no, Seq(seq.cast_unsigned()), line, candidate);
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

    fn take_entry(&mut self, no: i64, seq: Seq, line: &Value<'_>, mut candidate: Candidate) {
        let entry = match line {
            Value::Text(line) => Entry::decode(line).ok(),
            _ => None,
        };
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

/// Whether the values on a page are those of an entry's row.
fn looks_like_entry(values: &[Value<'_>]) -> bool {
    matches!(values, [Value::Null, Value::Int(no), Value::Int(seq), Value::Text(_) | Value::Cut]
        if *no > 0 && *seq > 0)
}

/// A row of the table of sessions; its id is for the caller to give.
fn session_row(values: &[Value<'_>]) -> Option<SessionRow> {
    let state = values.get(9)?.int()?;
    let meta: Option<SessionMeta> = match values.get(12)? {
        Value::Text(row) => serde_json::from_slice(row).ok(),
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
