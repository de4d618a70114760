//! Parts of a session as HTML: no more is read than is shown, however long the session is. Results of
//! tools stand with their calls, and reasoning with its answer, also where a part ends between them.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use tertulia_core::entry::{Body, Entry, Kind};
use tertulia_core::id::Seq;
use tertulia_core::query::Row;
use tertulia_core::session::Log;
use tertulia_formats::html::{Fragment, fragments};
use tertulia_store::{Sessions, StoreResult};

use crate::protocol::{PageEntry, PageSpeaker};

/// Maximum bytes of a part, with its markup.
const MOST_BYTES: usize = 5_000_000;
/// Maximum bytes of the entries that are read for a part.
const MOST_READ: usize = 4_000_000;
/// Entries per read.
const STRIDE: u64 = 100;
/// Maximum distance between a tool call and its result.
const CONTEXT: u64 = 400;

/// Which part of a session is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The end.
    End,
    /// The entries before this one.
    Before(u64),
    /// The entries after this one, and earlier ones that show one of them.
    After(u64),
    /// This entry and its neighbours.
    Around(u64),
}

/// A part of a session.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Entries that have something to show.
    pub entries: Vec<PageEntry>,
    /// First entry that was looked at.
    pub first: u64,
    /// Last entry that was looked at.
    pub last: u64,
}

/// Entries in a row, and those elsewhere that are shown with them.
#[derive(Debug, Default)]
struct Piece {
    /// Entry before the piece.
    after: u64,
    /// Last entry of the piece.
    upto: u64,
    entries: Vec<Entry>,
    before: Vec<Entry>,
    later: Vec<Entry>,
    /// An answer that a killed program left unfinished: it stands after the last entry.
    unfinished: Option<Entry>,
}

/// Reads a part of a session and renders it.
pub async fn read(
    sessions: &Sessions,
    row: &Row,
    zone: TimeZone,
    wanted: Wanted,
    limit: usize,
) -> StoreResult<Part> {
    let reader = Reader { sessions, row };
    let head = row.meta.head.seq.0;
    let mut piece = match wanted {
        Wanted::End => reader.back(head, limit).await?,
        Wanted::Before(seq) => reader.back(seq.saturating_sub(1).min(head), limit).await?,
        Wanted::After(seq) => reader.on(seq.min(head), limit).await?,
        Wanted::Around(seq) => {
            let seq = seq.clamp(1, head.max(1));
            let mut piece = reader.back(seq, limit.div_ceil(2)).await?;
            let mut rest = reader.on(piece.upto, limit / 2).await?;
            piece.entries.append(&mut rest.entries);
            piece.upto = rest.upto;
            piece
        }
    };
    reader.add_context(&mut piece).await?;
    if piece.upto == head && !row.open {
        piece.unfinished = sessions.unfinished(&row.meta).await?;
    }
    let kind = row.meta.kind;
    let rendered =
        tokio::task::spawn_blocking(move || rendered(kind, &zone, piece, wanted, limit)).await;
    rendered.map_err(|error| tertulia_store::StoreError::Failed {
        what: "the session cannot be shown".to_owned(),
        source: error.into(),
    })
}

struct Reader<'a> {
    sessions: &'a Sessions,
    row: &'a Row,
}

impl Reader<'_> {
    async fn entries(&self, after: u64, upto: u64) -> StoreResult<Vec<Entry>> {
        let count = usize::try_from(upto.saturating_sub(after)).unwrap_or(usize::MAX);
        if count == 0 {
            return Ok(Vec::new());
        }
        let id = self.row.meta.id;
        let log = self.sessions.load_part(id, Seq(after), count).await?;
        Ok(log.entries)
    }

    /// Reads backwards from `upto` until about `limit` entries have something to show.
    async fn back(&self, upto: u64, limit: usize) -> StoreResult<Piece> {
        let mut piece = Piece {
            after: upto,
            upto,
            ..Piece::default()
        };
        let mut size = 0;
        while piece.after > 0 && shown(&piece.entries) < limit && size < MOST_READ {
            let after = piece.after.saturating_sub(STRIDE);
            let mut earlier = self.entries(after, piece.after).await?;
            piece.after = after;
            // A stride may have more than is wanted, and large entries.
            let mut kept = earlier.len();
            let mut count = shown(&piece.entries);
            while kept > 0 && count < limit && size < MOST_READ {
                kept -= 1;
                size += earlier[kept].line().len();
                count += usize::from(is_shown(&earlier[kept]));
            }
            if kept > 0 {
                piece.after = earlier[kept].seq.0.saturating_sub(1);
                earlier.drain(..kept);
            }
            earlier.append(&mut piece.entries);
            piece.entries = earlier;
        }
        Ok(piece)
    }

    /// Reads forwards after `after` until about `limit` entries have something to show.
    async fn on(&self, after: u64, limit: usize) -> StoreResult<Piece> {
        let head = self.row.meta.head.seq.0;
        let mut piece = Piece {
            after,
            upto: after,
            ..Piece::default()
        };
        let (mut size, mut count) = (0, 0);
        while piece.upto < head && count < limit && size < MOST_READ {
            let upto = piece.upto.saturating_add(STRIDE).min(head);
            let later = self.entries(piece.upto, upto).await?;
            piece.upto = upto;
            for entry in later {
                if count >= limit && is_shown(&entry) || size >= MOST_READ {
                    piece.upto = entry.seq.0.saturating_sub(1);
                    break;
                }
                size += entry.line().len();
                count += usize::from(is_shown(&entry));
                piece.entries.push(entry);
            }
        }
        Ok(piece)
    }

    /// Adds what is shown together with entries of the piece, but stands before or after it.
    async fn add_context(&self, piece: &mut Piece) -> StoreResult<()> {
        let (mut results, continues) = (orphans(&piece.entries), continues(&piece.entries));
        if !results.is_empty() || continues {
            let from = piece.after.saturating_sub(CONTEXT);
            let earlier = self.entries(from, piece.after).await?;
            let owner = earlier.iter().rposition(|entry| !is_part(entry));
            for (place, entry) in earlier.into_iter().enumerate().rev() {
                let calls = entry
                    .message()
                    .map_or(&[][..], |message| &message.tool_calls);
                let wanted = calls.iter().any(|call| results.contains(&call.id));
                let is_owner = continues && owner.is_some_and(|owner| owner <= place);
                calls.iter().for_each(|call| {
                    results.remove(&call.id);
                });
                if wanted || is_owner {
                    piece.before.insert(0, entry);
                }
            }
        }
        let calls = unanswered(&piece.entries, &piece.before);
        let head = self.row.meta.head.seq.0;
        if piece.upto < head && !piece.entries.is_empty() {
            let upto = match calls.is_empty() {
                true => piece.upto.saturating_add(8).min(head),
                false => piece.upto.saturating_add(CONTEXT).min(head),
            };
            let later = self.entries(piece.upto, upto).await?;
            let parts = later.iter().take_while(|entry| is_part(entry)).count();
            piece.later = later
                .into_iter()
                .enumerate()
                .filter(|(place, entry)| *place < parts || answers(entry, &calls))
                .map(|(_, entry)| entry)
                .collect();
        }
        Ok(())
    }
}

/// Returns true if an entry is shown in the one before it, whatever that is.
fn is_part(entry: &Entry) -> bool {
    matches!(entry.body, Body::Thought(_) | Body::ShellOutput(_))
}

/// Returns true if an entry has an element of its own: this need not be exact.
fn is_shown(entry: &Entry) -> bool {
    match entry.message() {
        Some(message) => message.tool_outcome().is_none(),
        None => !is_part(entry),
    }
}

fn shown(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| is_shown(entry)).count()
}

fn continues(entries: &[Entry]) -> bool {
    entries.first().is_some_and(is_part)
}

/// Returns the calls whose results are among the entries, but which are not.
fn orphans(entries: &[Entry]) -> HashSet<String> {
    let mut calls: HashSet<&str> = HashSet::new();
    let mut found = HashSet::new();
    for message in entries.iter().filter_map(Entry::message) {
        calls.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
        if message.tool_outcome().is_some()
            && let Some(id) = &message.tool_call_id
            && !calls.contains(id.as_str())
        {
            found.insert(id.clone());
        }
    }
    found
}

/// Returns the calls among the entries whose results are not.
fn unanswered(entries: &[Entry], before: &[Entry]) -> HashSet<String> {
    let mut calls = HashSet::new();
    for message in before.iter().chain(entries).filter_map(Entry::message) {
        calls.extend(message.tool_calls.iter().map(|call| call.id.clone()));
        if let Some(id) = &message.tool_call_id {
            calls.remove(id);
        }
    }
    calls
}

fn answers(entry: &Entry, calls: &HashSet<String>) -> bool {
    let message = entry.message();
    let id = message.and_then(|message| message.tool_call_id.as_ref());
    id.is_some_and(|id| calls.contains(id))
}

fn rendered(kind: Kind, zone: &TimeZone, piece: Piece, wanted: Wanted, limit: usize) -> Part {
    let Piece {
        after,
        upto,
        entries,
        before,
        later,
        unfinished,
    } = piece;
    let mut log = Log::default();
    log.entries.extend(before);
    log.entries.extend(entries);
    log.entries.extend(later);
    let draft = unfinished.as_ref().map(|entry| entry.seq.0);
    log.entries.extend(unfinished);
    let shows = |fragment: &Fragment| {
        let is_later = match wanted {
            Wanted::After(_) => fragment.last > after,
            Wanted::End | Wanted::Before(_) | Wanted::Around(_) => fragment.seq > after,
        };
        is_later && (fragment.seq <= upto || Some(fragment.seq) == draft)
    };
    let mut all: Vec<Fragment> = fragments(kind, &log, zone);
    all.retain(shows);
    let mut part = Part {
        entries: Vec::new(),
        first: after + 1,
        last: upto,
    };
    let backwards = matches!(wanted, Wanted::End | Wanted::Before(_));
    cut(&mut all, &mut part, backwards, limit);
    let mut sources = log.entries.iter();
    for fragment in all {
        if let Some(entry) = sources.find(|entry| entry.seq.0 == fragment.seq) {
            part.entries.push(page_entry(entry, fragment));
        }
    }
    part
}

/// Leaves out what exceeds the limits, at the end that can be asked for again.
fn cut(all: &mut Vec<Fragment>, part: &mut Part, backwards: bool, limit: usize) {
    let weight = |fragment: &Fragment| {
        fragment.html.len() + fragment.text.as_ref().map_or(0, String::len) + 200
    };
    let mut size = 0;
    let fits = |fragment: &Fragment| {
        size += weight(fragment);
        size <= MOST_BYTES
    };
    if backwards {
        let count = all.iter().rev().map(fits).take_while(|fits| *fits).count();
        let count = count.min(limit).max(1).min(all.len());
        let surplus = all.len() - count;
        all.drain(..surplus);
        if surplus > 0 {
            part.first = all.first().map_or(part.first, |fragment| fragment.seq);
        }
    } else {
        let count = all.iter().map(fits).take_while(|fits| *fits).count();
        let count = count.max(1).min(all.len());
        if let Some(next) = all.get(count) {
            part.last = next.seq.saturating_sub(1);
        }
        all.truncate(count);
    }
}

fn page_entry(entry: &Entry, fragment: Fragment) -> PageEntry {
    let message = entry.message();
    let speaker = message.map(|message| PageSpeaker {
        name: message.speaker.name.clone(),
        display: message.speaker.display_name.clone(),
        kind: serde_json::to_value(message.speaker.kind)
            .ok()
            .and_then(|kind| Some(kind.as_str()?.to_owned()))
            .unwrap_or_default(),
    });
    PageEntry {
        seq: entry.seq.0,
        id: entry.id.to_string(),
        at: entry.at.to_string(),
        kind: entry.body.kind().to_owned(),
        role: message.map(|message| message.role.name().to_owned()),
        speaker,
        html: fragment.html,
        text: fragment.text,
        interrupted: message.is_some_and(|message| message.interrupted),
        client_id: message.and_then(|message| message.client_id.clone()),
    }
}
