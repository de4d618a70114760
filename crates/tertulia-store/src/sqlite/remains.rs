//! Scans a damaged database page by page for the remains of sessions: table rows, and what the
//! indexes say of missing ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::image::{Candidate, Image, Source};
use super::pack::lines_in;
use super::pages::{self, Cell, Value};
use super::placement::{Content, Place, Placement, Row, Verdict};
use crate::selection::{PURGED, id_from};
use crate::{Draft, packed};
use tertulia_core::entry::{Body, Entry, Hash, Head, Origin, line_follows};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

/// The largest credible append; a larger number is damaged.
const LONGEST_APPEND: u64 = 1000;

/// The readable row of a session.
#[derive(Clone, Debug)]
pub(super) struct SessionRow {
    pub(super) id: SessionId,
    pub(super) base: Option<(i64, Seq)>,
    pub(super) purged: bool,
    pub(super) title: Option<String>,
    head: Head,
}

/// Content of an opening entry.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    pub(super) session: SessionId,
    pub(super) from: Option<Origin>,
    /// The line matches its hash.
    pub(super) is_unaltered: bool,
}

impl Opening {
    fn of(entry: &Entry) -> Option<Opening> {
        let (session, from) = match &entry.body {
            Body::Created(created) => (created.session, None),
            Body::Forked(forked) => (forked.session, Some(forked.from.clone())),
            _ => return None,
        };
        let parent = from.as_ref().map_or(Hash::NONE, |from| from.hash);
        let is_unaltered = line_follows(entry.line(), &parent).is_some();
        Some(Opening {
            session,
            from,
            is_unaltered,
        })
    }
}

/// The remains of one session.
#[derive(Debug, Default)]
pub(super) struct Remains {
    pub(super) row: Option<SessionRow>,
    indexed: Option<SessionId>,
    pub(super) entries: BTreeMap<Seq, Vec<Candidate>>,
    pub(super) openings: BTreeMap<Seq, Opening>,
    /// Sequence numbers in an index whose rows are gone.
    pub(super) places: BTreeSet<Seq>,
    /// The highest sequence number that the entries announce.
    announced: Seq,
    pub(super) draft: Option<Draft>,
}

impl Remains {
    /// Returns the session's id, if known. An unaltered opening takes precedence over the row,
    /// except for a purged session, whose row has a new id.
    pub(super) fn id(&self) -> Option<SessionId> {
        let row = self.row.as_ref();
        let openings = || self.openings.values().rev();
        let unaltered = || openings().filter(|opening| opening.is_unaltered);
        match row {
            Some(row) if row.purged || unaltered().any(|opening| opening.session == row.id) => {
                Some(row.id)
            }
            _ => {
                let named = unaltered().next().map(|opening| opening.session);
                let doubtful = || openings().next().map(|opening| opening.session);
                named
                    .or(row.map(|row| row.id))
                    .or(self.indexed)
                    .or_else(doubtful)
            }
        }
    }

    /// Returns the highest sequence number that any source names.
    pub(super) fn last(&self) -> Seq {
        let row = self.row.as_ref().filter(|row| !row.purged);
        let known = row.map_or(Seq::START, |row| self.place_of(row.head));
        let indexed = self.places.last().copied().unwrap_or(Seq::START);
        known.max(indexed).max(self.announced)
    }

    /// Returns the sequence number of the head in a row: that of the entry with its hash if there is
    /// one, because the number may be damaged.
    fn place_of(&self, head: Head) -> Seq {
        let has_it = |(_, there): &(&Seq, &Vec<Candidate>)| {
            there.iter().any(|entry| entry.hash == Some(head.hash))
        };
        let found = self.entries.iter().rev().find(has_it);
        found.map_or(head.seq, |(seq, _)| *seq)
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
    /// Rows that may be entries, until they are placed.
    rows: Vec<Row>,
    /// Places by the index, for each rowid.
    index: HashMap<i64, Vec<Place>>,
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
        all.place_rows(image);
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
            (Some(rowid), [Value::Null, Value::Int(no), Value::Int(seq), _]) => {
                let candidate = Candidate {
                    source,
                    offset: cell.offset,
                    within: 0,
                    hash: None,
                    stray,
                };
                let columns = (*no, Seq(seq.cast_unsigned()));
                let line = pages::last_bytes(&payload).unwrap_or_default();
                match packed::is_block(line) {
                    true => self.take_block(rowid, columns, line, &candidate),
                    false => self.take_entry(rowid, columns, line, candidate),
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
            (None, [Value::Int(no), Value::Int(seq), Value::Int(rowid)]) if *no > 0 => {
                let place = (*no, Seq(seq.cast_unsigned()));
                let known = self.index.entry(*rowid).or_default();
                if !known.contains(&place) {
                    known.push(place);
                }
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
    fn take_block(&mut self, rowid: i64, columns: Place, block: &[u8], candidate: &Candidate) {
        let mut lines = lines_in(block);
        if lines.is_empty() {
            lines.push(Vec::new());
        }
        for (within, line) in lines.iter().enumerate() {
            let (no, seq) = columns;
            let columns = (no, Seq(seq.0.saturating_add(within as u64)));
            let candidate = Candidate {
                within,
                ..candidate.clone()
            };
            self.take_entry(rowid, columns, line, candidate);
        }
    }

    fn take_entry(&mut self, rowid: i64, columns: Place, line: &[u8], candidate: Candidate) {
        let entry = Entry::decode(line).ok();
        self.is_ours |= entry.is_some();
        self.rows.push(Row {
            rowid,
            columns,
            candidate,
            content: entry.map(|entry| Content {
                seq: entry.seq,
                hash: entry.hash,
                then: entry.then,
                opening: Opening::of(&entry),
            }),
        });
    }

    /// Gives every row to the session that it belongs to.
    fn place_rows(&mut self, image: &Image<'_>) {
        let rows = std::mem::take(&mut self.rows);
        let index = std::mem::take(&mut self.index);
        let ids: HashMap<i64, SessionId> = self
            .sessions
            .iter()
            .filter_map(|(no, known)| {
                let row = known.row.as_ref().map(|row| row.id);
                Some((*no, row.or(known.indexed)?))
            })
            .collect();
        let verdicts = Placement::new(image, &rows, &index, &ids).decide();
        let mut there: HashSet<i64> = HashSet::new();
        for (row, verdict) in rows.into_iter().zip(verdicts) {
            if !row.candidate.stray {
                there.insert(row.rowid);
            }
            self.put(row, verdict);
        }
        for (rowid, places) in index {
            for (no, seq) in places.into_iter().filter(|_| !there.contains(&rowid)) {
                let known = self.sessions.entry(no).or_default();
                known.places.insert(seq);
            }
        }
        self.reunite();
    }

    fn put(&mut self, row: Row, verdict: Verdict) {
        let Some((no, seq)) = verdict.place() else {
            return;
        };
        let known = self.sessions.entry(no).or_default();
        let mut candidate = row.candidate;
        if let Some(content) = row.content.filter(|content| content.seq == seq) {
            candidate.hash = Some(content.hash);
            if let Some(opening) = content.opening.filter(|_| !candidate.stray) {
                known.openings.entry(seq).or_insert(opening);
            }
            let then = u64::from(content.then);
            let is_altered = matches!(verdict, Verdict::Altered(_));
            if then <= LONGEST_APPEND && !candidate.stray && !is_altered {
                known.announced = known.announced.max(Seq(seq.0.saturating_add(then)));
            }
        }
        known.entries.entry(seq).or_default().push(candidate);
    }

    /// Gives a row without entries to the log of its id that has no row: the row's number is damaged.
    fn reunite(&mut self) {
        let numbers: Vec<i64> = self.sessions.keys().copied().collect();
        for no in numbers {
            let Some(id) = self.sessions.get(&no).and_then(|known| {
                let row = known.row.as_ref()?;
                (known.entries.is_empty() && !row.purged).then_some(row.id)
            }) else {
                continue;
            };
            let is_its_log = |known: &Remains| {
                known.row.is_none() && !known.entries.is_empty() && known.id() == Some(id)
            };
            let log = self.sessions.iter().find(|(_, known)| is_its_log(known));
            if let Some(log) = log.map(|(log, _)| *log)
                && let Some(empty) = self.sessions.remove(&no)
                && let Some(known) = self.sessions.get_mut(&log)
            {
                known.row = empty.row;
                known.draft = known.draft.take().or(empty.draft);
            }
        }
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
        head: meta.map_or(Head::START, |meta| meta.head),
    })
}
