//! Reads parts of a log: no more than requested, however long the log is.

use std::collections::HashMap;

use tertulia_core::entry::{Entry, Kind, Message, ToolOutcome};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Row;
use tertulia_core::session::{Damage, Log};
use tertulia_core::tool_files::files_of;
use tertulia_engine::error::ErrorKind;
use tertulia_store::StoreError;

use super::StoreService;
use crate::entries::{self, is_result, things};
use crate::error::{TuiError, TuiResult};
use crate::host::Workspace;
use crate::item::{Item, Tone, What};
use crate::rewind::{self, Moment};
use crate::transcript::{Loaded, Matches, Scan, Scanned, Wanted, matches};

/// Approximate maximum number of bytes read for one part.
const MOST_BYTES: usize = 4_000_000;
/// Maximum number of entries read for one part, unless none of them is shown.
const MOST_ENTRIES: u64 = 4_000;
/// Number of items searched at once.
const SCANNED: usize = 4_000;
/// Entries in the first read, small because entries may be large.
const FIRST_STRIDE: u64 = 8;
/// Minimum and maximum number of entries in further reads.
const SHORTEST_STRIDE: u64 = 4;
const STRIDE: u64 = 400;
/// Maximum distance between a tool call and its result.
const CONTEXT: u64 = 400;
/// Entries read at a time when looking for the other half.
const CONTEXT_STRIDE: u64 = 25;

/// Reads the log of one session, up to its head when the reader was created.
pub struct Reader<'a> {
    workspace: &'a Workspace,
    id: SessionId,
    kind: Kind,
    /// Last entry.
    pub head: Seq,
    most_bytes: usize,
}

/// A part of a log.
#[derive(Debug, Default)]
pub struct Piece {
    pub log: Log,
    /// Entry before the part.
    pub after: Seq,
    /// Last entry of the part.
    pub upto: Seq,
}

impl Piece {
    fn has(&self, seq: Seq) -> bool {
        self.after < seq && seq <= self.upto
    }
}

impl StoreService {
    /// Loads a part of a transcript. A session that is not in the store yet is empty.
    pub(super) async fn transcript(
        &self,
        session: SessionId,
        kind: Kind,
        wanted: Wanted,
    ) -> TuiResult<Loaded> {
        let row = match self.workspace().sessions.row(session).await {
            Err(StoreError::NotFound(_)) => {
                return Ok(Loaded {
                    wanted,
                    items: Vec::new(),
                    more_before: false,
                    more_after: false,
                });
            }
            row => row?,
        };
        let reader = Reader::of(self.workspace(), &row).showing(kind);
        let piece = match wanted {
            Wanted::Before { seq, count } => reader.back(seq.back(1), count).await?,
            Wanted::After { seq, count } => reader.on(seq, count).await?,
            Wanted::Around { seq, count } => {
                reader.around(seq, count / 2, count - count / 2).await?
            }
        };
        Ok(Loaded {
            wanted,
            more_before: piece.after > Seq::START,
            more_after: piece.upto < reader.head,
            items: reader.items(piece).await?,
        })
    }

    /// Searches the part of a transcript that ends with the requested entry.
    pub(super) async fn scan(
        &self,
        session: SessionId,
        kind: Kind,
        scan: &Scan,
    ) -> TuiResult<Scanned> {
        let row = match self.workspace().sessions.row(session).await {
            Err(StoreError::NotFound(_)) => {
                return Ok(Scanned {
                    matches: Matches::new(),
                    after: Seq::START,
                });
            }
            row => row?,
        };
        let reader = Reader::of(self.workspace(), &row).showing(kind);
        let piece = reader.back(scan.upto, SCANNED).await?;
        let after = piece.after;
        let items = reader.items(piece).await?;
        Ok(Scanned {
            matches: matches(&items, &scan.pattern),
            after,
        })
    }

    /// Returns messages of people, newest first, and whether there may be earlier ones.
    pub(super) async fn moments(
        &self,
        session: SessionId,
        wanted: rewind::Wanted,
    ) -> TuiResult<(Vec<Moment>, bool)> {
        let row = self.row(session).await?;
        let reader = Reader::of(self.workspace(), &row);
        let mut at = wanted.before.map_or(reader.head, |seq| seq.back(1));
        at = at.min(reader.head);
        let mut moments: Vec<Moment> = Vec::new();
        let mut changes = Changes::default();
        let mut measure = Measure::new(wanted.count, MOST_BYTES);
        while at > Seq::START && !measure.is_full() {
            let after = at.back(measure.stride());
            let log = reader.read(after, at).await?;
            at = after;
            for entry in log.entries.iter().rev() {
                if let Some(message) = entry.message() {
                    changes.add(message);
                }
                let message = entry.message().filter(|message| {
                    message.speaker.kind == tertulia_core::entry::SpeakerKind::Human
                });
                measure.add(entry.line().len(), usize::from(message.is_some()));
                if let Some(message) = message {
                    let moment = Moment::new(entry.seq, entry.at, &message.content);
                    moments.push(moment.changing(std::mem::take(&mut changes.files)));
                }
                if measure.is_full() {
                    at = entry.seq.back(1);
                    break;
                }
            }
        }
        // What was changed before the oldest one of this page is rather said too early than not at all.
        if let Some(last) = moments.last_mut() {
            last.changed.extend(changes.files);
        }
        Ok((moments, at > Seq::START))
    }

    /// Returns the full text of one message.
    pub(super) async fn words(&self, session: SessionId, seq: Seq) -> TuiResult<String> {
        let row = self.row(session).await?;
        let last = row.meta.head.seq;
        if seq == Seq::START || seq > last {
            let words = format!("session {} has no entry {seq}", session.short());
            return Err(TuiError::new(ErrorKind::NotFound, words)
                .hint(format!("it has entries 1 to {last}")));
        }
        let log = self.workspace().sessions.load_one(&row.meta, seq).await?;
        let entry = log.entries.iter().find(|entry| entry.seq == seq);
        let message = entry.and_then(Entry::message);
        message
            .map(|message| message.content.clone())
            .ok_or_else(|| {
                let words = format!("entry {seq} of {} is not a message", session.short());
                TuiError::new(ErrorKind::NotFound, words)
            })
    }

    /// List row of a session.
    pub(super) async fn row(&self, session: SessionId) -> TuiResult<Row> {
        Ok(self.workspace().sessions.row(session).await?)
    }
}

impl<'a> Reader<'a> {
    pub fn of(workspace: &'a Workspace, row: &Row) -> Reader<'a> {
        Reader {
            workspace,
            id: row.meta.id,
            kind: row.meta.kind,
            head: row.meta.head.seq,
            most_bytes: MOST_BYTES,
        }
    }

    /// Shows messages as in a conversation of this kind.
    pub fn showing(self, kind: Kind) -> Reader<'a> {
        Reader { kind, ..self }
    }

    /// Limits the bytes read for one part.
    pub fn at_most(self, most_bytes: usize) -> Reader<'a> {
        Reader { most_bytes, ..self }
    }

    /// Reads the entries after `after` up to and including `upto`.
    pub async fn read(&self, after: Seq, upto: Seq) -> TuiResult<Log> {
        let count = usize::try_from(upto.0.saturating_sub(after.0)).unwrap_or(usize::MAX);
        let sessions = &self.workspace.sessions;
        Ok(sessions.load_part(self.id, after, count).await?)
    }

    /// Reads about `count` items up to an entry, the nearest ones.
    pub async fn back(&self, upto: Seq, count: usize) -> TuiResult<Piece> {
        let upto = upto.min(self.head);
        let mut measure = Measure::new(count, self.most_bytes);
        let (mut log, mut at) = (Log::default(), upto);
        while at > Seq::START && !measure.is_full() {
            let after = at.back(measure.stride());
            let mut earlier = self.read(after, at).await?;
            at = after;
            for (seq, bytes, things) in places(&earlier).into_iter().rev() {
                measure.add(bytes, things);
                if measure.is_full() {
                    at = seq.back(1);
                    break;
                }
            }
            cut(&mut earlier, |seq| seq > at);
            earlier.entries.append(&mut log.entries);
            earlier.damage.append(&mut log.damage);
            log = earlier;
        }
        Ok(Piece {
            log,
            after: at,
            upto,
        })
    }

    /// Reads about `count` items after an entry, the nearest ones.
    pub async fn on(&self, after: Seq, count: usize) -> TuiResult<Piece> {
        let after = after.min(self.head);
        let mut measure = Measure::new(count, self.most_bytes);
        let (mut log, mut at) = (Log::default(), after);
        while at < self.head && !measure.is_full() {
            let upto = Seq(at.0 + measure.stride()).min(self.head);
            let mut later = self.read(at, upto).await?;
            at = upto;
            for (seq, bytes, things) in places(&later) {
                measure.add(bytes, things);
                if measure.is_full() {
                    at = seq;
                    break;
                }
            }
            cut(&mut later, |seq| seq <= at);
            log.entries.append(&mut later.entries);
            log.damage.append(&mut later.damage);
        }
        Ok(Piece {
            log,
            after,
            upto: at,
        })
    }

    /// Reads about `before` items before an entry, and about `on` from the entry on.
    pub async fn around(&self, seq: Seq, before: usize, on: usize) -> TuiResult<Piece> {
        let middle = seq.min(self.head).back(1);
        let mut piece = self.back(middle, before).await?;
        let mut later = self.on(middle, on).await?;
        piece.log.entries.append(&mut later.log.entries);
        piece.log.damage.append(&mut later.log.damage);
        Ok(Piece {
            upto: later.upto,
            ..piece
        })
    }

    /// Converts a part to items. Tool results are shown with their calls; if the edge of the part
    /// separates them, the result is shown in the part that contains the call.
    pub async fn items(&self, mut piece: Piece) -> TuiResult<Vec<Item>> {
        let mut items: Vec<Item> = piece.log.damage.iter().map(damaged).collect();
        let entries = std::mem::take(&mut piece.log.entries);
        let entries = self.with_context(&piece, entries).await?;
        let within = |item: &Item| item.seq.is_some_and(|seq| piece.has(seq));
        items.extend(
            entries::items(&entries, self.kind)
                .into_iter()
                .filter(within),
        );
        // Damage is shown before the readable rest.
        items.sort_by_key(|item| item.seq);
        Ok(items)
    }

    /// Adds the calls before a part and the results after it that belong to its entries.
    async fn with_context(&self, piece: &Piece, entries: Vec<Entry>) -> TuiResult<Vec<Entry>> {
        let mut entries = entries;
        let mut at = piece.after;
        let end = at.back(CONTEXT);
        while at > end && LooseEnds::of(&entries, piece).results {
            let after = at.back(CONTEXT_STRIDE).max(end);
            let mut earlier = self.read(after, at).await?.entries;
            at = after;
            earlier.retain(is_about_tools);
            earlier.append(&mut entries);
            entries = earlier;
        }
        let mut at = piece.upto;
        let end = Seq(at.0 + CONTEXT).min(self.head);
        while at < end && LooseEnds::of(&entries, piece).calls {
            let upto = Seq(at.0 + CONTEXT_STRIDE).min(end);
            let mut later = self.read(at, upto).await?.entries;
            at = upto;
            later.retain(is_about_tools);
            entries.append(&mut later);
        }
        Ok(entries)
    }
}

/// What a part of a log lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LooseEnds {
    /// It contains results without their calls.
    results: bool,
    /// It contains calls without their results.
    calls: bool,
}

impl LooseEnds {
    fn of(entries: &[Entry], piece: &Piece) -> LooseEnds {
        // Ids may be reused; a result belongs to the latest open call.
        let mut waiting: HashMap<&str, Vec<Seq>> = HashMap::new();
        let mut results = false;
        for entry in entries {
            let Some(message) = entry.message() else {
                continue;
            };
            if !is_result(message) {
                for call in &message.tool_calls {
                    waiting.entry(&call.id).or_default().push(entry.seq);
                }
            } else if let Some(id) = message.tool_call_id.as_deref() {
                let call = waiting.get_mut(id).and_then(Vec::pop);
                results |= call.is_none() && piece.has(entry.seq);
            }
        }
        let calls = waiting.values().flatten().any(|seq| piece.has(*seq));
        LooseEnds { results, calls }
    }
}

fn is_about_tools(entry: &Entry) -> bool {
    let message = entry.message();
    message.is_some_and(|message| is_result(message) || !message.tool_calls.is_empty())
}

/// Entries and damaged places in order, each with its size and number of items.
fn places(log: &Log) -> Vec<(Seq, usize, usize)> {
    let read = log.entries.iter();
    let read = read.map(|entry| (entry.seq, entry.line().len(), things(entry)));
    let damaged = log.damage.iter().map(|damage| (damage.seq, 0, 1));
    let mut places: Vec<_> = read.chain(damaged).collect();
    places.sort_by_key(|(seq, ..)| *seq);
    places
}

fn cut(log: &mut Log, keeps: impl Fn(Seq) -> bool) {
    log.entries.retain(|entry| keeps(entry.seq));
    log.damage.retain(|damage| keeps(damage.seq));
}

fn damaged(damage: &Damage) -> Item {
    Item {
        seq: Some(damage.seq),
        what: What::Notice {
            tone: Tone::Error,
            text: format!("entry {} is damaged: {}", damage.seq, damage.reason),
        },
    }
}

/// Amount read so far, and the limits.
struct Measure {
    things: usize,
    bytes: usize,
    entries: u64,
    count: usize,
    most_bytes: usize,
}

impl Measure {
    fn new(count: usize, most_bytes: usize) -> Measure {
        Measure {
            things: 0,
            bytes: 0,
            entries: 0,
            count,
            most_bytes,
        }
    }

    fn add(&mut self, bytes: usize, things: usize) {
        self.things += things;
        self.bytes += bytes;
        self.entries += 1;
    }

    /// At least one item is read, because an empty part would be taken for the end.
    fn is_full(&self) -> bool {
        let is_much = self.bytes >= self.most_bytes || self.entries >= MOST_ENTRIES;
        self.things >= self.count || (self.things > 0 && is_much)
    }

    /// Number of entries to read next, estimated from the size of those read so far.
    fn stride(&self) -> u64 {
        if self.entries == 0 {
            return FIRST_STRIDE;
        }
        let size = (self.bytes as u64 / self.entries).max(1);
        let room = self.most_bytes.saturating_sub(self.bytes) as u64;
        // At most as many as were read already, so that a small window stays small.
        (room / size).clamp(SHORTEST_STRIDE, self.entries.clamp(FIRST_STRIDE, STRIDE))
    }
}

/// Files that tool calls changed, gathered from the newest message back.
#[derive(Debug, Default)]
struct Changes {
    files: Vec<String>,
    /// Calls that were not carried out.
    undone: Vec<String>,
}

impl Changes {
    fn add(&mut self, message: &Message) {
        if let (Some(outcome), Some(call)) = (message.tool_outcome(), &message.tool_call_id)
            && outcome != ToolOutcome::Ok
        {
            self.undone.push(call.clone());
        }
        for call in &message.tool_calls {
            let files = files_of(call).into_iter().filter(|file| file.written);
            for file in files.filter(|_| !self.undone.contains(&call.id)) {
                if !self.files.contains(&file.path) {
                    self.files.push(file.path);
                }
            }
        }
    }
}
