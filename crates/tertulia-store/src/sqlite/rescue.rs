//! Writes the remains of a damaged database into a new one: each session with its intact entries,
//! and a placeholder for each lost one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;

use super::engine::SqliteEngine;
use super::image::{Candidate, Image};
use super::purge::make_shared_prefix;
use super::remains::{AllRemains, Remains};
use super::rows::{Found, find, find_no, insert_log, read_lines};
use crate::salvage::{Known, Salvaged, all_lost, derived_id, in_words, salvage};
use crate::selection::PURGED;
use crate::{Engine, Progress, Report, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Hash, Head, line_follows};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::session::Line;

/// Limit of page swaps to try: enough for a few swapped pages, and bounded if a large part of the
/// file is gone.
const MOST_TRIES: usize = 100_000;

/// What SQLite reads of the sessions of a damaged database, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Readable entries.
    pub(super) entries: HashMap<i64, BTreeMap<Seq, ShownEntry>>,
    /// Own lines of the sessions that are kept as they are read.
    pub(super) lines: HashMap<i64, Vec<Line>>,
}

/// An entry that SQLite reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum ShownEntry {
    /// It continues the entry before it.
    Proven(EntryId),
    /// It does not, or that entry is unreadable. Its line may belong to another session.
    Doubtful(Hash),
}

/// Counts of salvaged sessions and entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rescued {
    pub(super) sessions: usize,
    pub(super) entries: usize,
    /// Numbers of sessions that would have fewer entries than SQLite reads of them.
    pub(super) reduced: BTreeSet<i64>,
}

/// Writes all remains into `fresh`, and adds the losses to `report`.
pub(super) fn rescue(
    image: &Image<'_>,
    all: &AllRemains,
    fresh: &mut SqliteEngine,
    now: Timestamp,
    progress: &Progress,
    report: &mut Report,
    shown: &Shown,
) -> StoreResult<Rescued> {
    let mut rescue = Rescue {
        image,
        all,
        fresh,
        moved: HashMap::new(),
        now,
        report,
        shown,
        rescued: Rescued::default(),
        tries: MOST_TRIES,
    };
    // If two logs have one id, the log with a row is the session.
    let (known, others): (Vec<i64>, Vec<i64>) = all
        .sessions
        .keys()
        .partition(|no| all.sessions[no].row.is_some());
    let total = all.sessions.len() as u64;
    for (done, no) in known.into_iter().chain(others).enumerate() {
        progress.at("salvaging", done as u64, total);
        rescue.session(no)?;
    }
    Ok(rescue.rescued)
}

struct Rescue<'a> {
    image: &'a Image<'a>,
    all: &'a AllRemains,
    fresh: &'a mut SqliteEngine,
    /// New session numbers by old ones; `None` for sessions with nothing left.
    moved: HashMap<i64, Option<i64>>,
    now: Timestamp,
    report: &'a mut Report,
    shown: &'a Shown,
    rescued: Rescued,
    /// Remaining page swaps to try.
    tries: usize,
}

/// Where a log goes in the new database.
enum Place {
    /// It becomes a session of this id.
    Free(SessionId),
    /// The session of this number has all of it.
    There(i64),
}

impl Rescue<'_> {
    /// Writes one session into the new database, its base first.
    fn session(&mut self, no: i64) -> StoreResult<()> {
        let all = self.all;
        let Some(remains) = all
            .sessions
            .get(&no)
            .filter(|_| !self.moved.contains_key(&no))
        else {
            return Ok(());
        };
        self.moved.insert(no, None);
        let id = remains.id().unwrap_or_else(|| made_up("session", no));
        let as_read = self.shown.lines.get(&no);
        let was = match as_read {
            None => base_of(all, no, remains),
            Some(_) => base_in_row(remains),
        };
        let base = match &was {
            None => None,
            Some((base_no, head)) => self.base(id, *base_no, head.seq)?,
        };
        let parent = base.as_ref().map_or(Head::START, |(_, head)| *head);
        let before = match (&was, &base) {
            (Some((_, head)), Some(_)) if head.hash != Hash::NONE => *head,
            _ => parent,
        };
        let lines = match as_read {
            None => self.lines(remains, before),
            Some(lines) => lines.iter().map(|line| (line.seq, line.clone())).collect(),
        };
        let known = Known {
            session: id,
            parent,
            parent_was: before,
            base: base
                .as_ref()
                .and_then(|(found, _)| base_to_name(all, remains, found)),
            last: remains.last(),
            now: self.now,
        };
        let mut salvaged = salvage(&known, &lines);
        let purged = remains.row.as_ref().is_some_and(|row| row.purged);
        if !purged {
            salvaged.close_append(&known);
        }
        self.compare_with_shown(no, id, &salvaged)?;
        let whole = salvaged.kept;
        // A fork still has the beginning that it shares.
        if whole == 0 && base.is_none() {
            self.nothing_left(no, remains, &salvaged);
            return Ok(());
        }
        let id = match self.free_id(id, no, &salvaged)? {
            Place::Free(id) => id,
            Place::There(new_no) => {
                // Forks of this log continue the other one.
                self.moved.insert(no, Some(new_no));
                return Ok(());
            }
        };
        if remains.id().is_none() {
            self.report.lost.push(format!(
                "session {id}: which session it was is lost; this id is new"
            ));
        }
        self.report.lost.extend(in_words(id, &salvaged));
        let new_no = self.fresh.write(|transaction, say| {
            let (new_no, _) = insert_log(transaction, say, id, base, &salvaged.entries)?;
            if let Some(found) = find_no(transaction, say, new_no)?.filter(|_| purged) {
                make_shared_prefix(transaction, &found).map_err(say.of("cannot salvage"))?;
            }
            Ok(new_no)
        })?;
        self.moved.insert(no, Some(new_no));
        self.rescued.sessions += usize::from(!purged);
        self.rescued.entries += whole;
        self.draft(remains, id)
    }

    /// Notes a session that would have less than SQLite reads of it. Fails if that is so even with
    /// the lines that SQLite reads.
    fn compare_with_shown(
        &mut self,
        no: i64,
        id: SessionId,
        salvaged: &Salvaged,
    ) -> StoreResult<()> {
        let is_as_read = self.shown.lines.contains_key(&no);
        match self.first_reduced(no, salvaged) {
            None if is_as_read => self.report.repaired.push(format!(
                "session {id} is kept as it can be read: its pages alone would give less"
            )),
            None => {}
            Some(seq) if is_as_read => {
                return Err(StoreError::failed(
                    format!("a repair would lose entry {seq} of session {id}, which can be read"),
                    "nothing was changed; export the session first",
                ));
            }
            Some(_) => {
                self.rescued.reduced.insert(no);
            }
        }
        Ok(())
    }

    /// Returns the first entry that SQLite reads of a session and that its repaired log lacks.
    fn first_reduced(&self, no: i64, salvaged: &Salvaged) -> Option<Seq> {
        let shown = self.shown.entries.get(&no)?;
        let lost: HashSet<Seq> = salvaged.lost.iter().copied().collect();
        let entries = salvaged.entries.iter();
        let kept: HashMap<Seq, EntryId> = entries
            .filter(|entry| !lost.contains(&entry.seq))
            .map(|entry| (entry.seq, entry.id))
            .collect();
        let is_reduced = |seq: &Seq, entry: &ShownEntry| match entry {
            ShownEntry::Proven(id) => kept.get(seq) != Some(id),
            ShownEntry::Doubtful(hash) => {
                !kept.contains_key(seq) && !self.is_of_another(no, *seq, *hash)
            }
        };
        let mut reduced = shown.iter().filter(|(seq, entry)| is_reduced(seq, entry));
        reduced.next().map(|(seq, _)| *seq)
    }

    /// Returns true if a line was placed in another session.
    fn is_of_another(&self, no: i64, seq: Seq, hash: Hash) -> bool {
        let has_it = |remains: &Remains| {
            let there = remains.entries.get(&seq).into_iter().flatten();
            there
                .filter(|there| !there.stray)
                .any(|there| there.hash == Some(hash))
        };
        let mut others = self.all.sessions.iter().filter(|(other, _)| **other != no);
        others.any(|(_, remains)| has_it(remains))
    }

    fn nothing_left(&mut self, no: i64, remains: &Remains, salvaged: &Salvaged) {
        let purged = remains.row.as_ref().is_some_and(|row| row.purged);
        if purged || (remains.row.is_none() && salvaged.entries.is_empty()) {
            return;
        }
        let name = match remains.id() {
            Some(id) => format!("session {id}"),
            None => format!("session number {no}, whose id is lost"),
        };
        let title = remains.row.as_ref().and_then(|row| row.title.as_deref());
        let title = title.map_or(String::new(), |title| format!(" ({title:?})"));
        let lost = all_lost(&format!("{name}{title}"), salvaged);
        self.report.lost.push(lost);
    }

    /// Returns the id for a log, or the number of the log that has all of its entries in the new
    /// database. A second log of the same id gets a new id.
    fn free_id(&mut self, id: SessionId, no: i64, salvaged: &Salvaged) -> StoreResult<Place> {
        let say = self.fresh.say();
        let Some(found) = find(&self.fresh.connection, &say, id)? else {
            return Ok(Place::Free(id));
        };
        let there = read_lines(
            &self.fresh.connection,
            &say,
            found.log(),
            Seq::START,
            Seq(u64::MAX),
            usize::MAX,
        )?;
        let there: Vec<&[u8]> = there.iter().map(|line| &line.bytes[..]).collect();
        let is_there = |entry: &Entry| there.contains(&entry.line().as_bytes());
        if salvaged.entries.iter().all(is_there) {
            return Ok(Place::There(found.no));
        }
        let other = made_up(&id.to_string(), no);
        self.report.lost.push(format!(
            "session {id}: a second log of that id is kept as session {other}"
        ));
        Ok(Place::Free(other))
    }

    /// Chooses one line per sequence number: among several, the one that continues the previous
    /// line.
    fn lines(&mut self, remains: &Remains, parent: Head) -> BTreeMap<Seq, Line> {
        let mut lines = BTreeMap::new();
        let mut before = Some(parent);
        for (seq, candidates) in &remains.entries {
            let parent = before.filter(|head| head.seq.next() == *seq);
            let chosen = self.choose(candidates, parent.map(|head| head.hash));
            before = chosen
                .as_ref()
                .and_then(|(_, hash)| hash.map(|hash| Head { seq: *seq, hash }));
            if let Some((bytes, _)) = chosen {
                lines.insert(*seq, Line { seq: *seq, bytes });
            }
        }
        lines
    }

    fn choose(
        &mut self,
        candidates: &[Candidate],
        parent: Option<Hash>,
    ) -> Option<(Vec<u8>, Option<Hash>)> {
        let mut best: Option<(Vec<u8>, Option<Hash>)> = None;
        for candidate in candidates {
            let Some(line) = self.image.line(candidate) else {
                continue;
            };
            let follows =
                |line: &str| parent.is_some_and(|hash| line_follows(line, &hash).is_some());
            if candidate.hash.is_some() && std::str::from_utf8(&line).is_ok_and(follows) {
                return Some((line, candidate.hash));
            }
            let better = match &best {
                None => true,
                Some((_, hash)) => hash.is_none() && candidate.hash.is_some(),
            };
            if better && !candidate.stray {
                best = Some((line, candidate.hash));
            }
        }
        let Some(parent) = parent else {
            return best;
        };
        for candidate in candidates.iter().filter(|candidate| !candidate.stray) {
            let is_right = |line: &[u8]| {
                std::str::from_utf8(line).is_ok_and(|line| line_follows(line, &parent).is_some())
            };
            let found = self.image.line_with_pages_swapped(
                candidate,
                &self.all.loose,
                &mut self.tries,
                is_right,
            );
            if let Some(line) = found {
                let hash = Entry::decode(&line).ok().map(|entry| entry.hash);
                return Some((line, hash));
            }
        }
        best
    }

    /// Saves the session's draft in the new database.
    fn draft(&mut self, remains: &Remains, id: SessionId) -> StoreResult<()> {
        let Some(mut draft) = remains.draft.clone() else {
            return Ok(());
        };
        if let Some(found) = find(&self.fresh.connection, &self.fresh.say(), id)? {
            draft.after = found.meta.head;
            self.fresh.keep_draft(id, &draft)?;
        }
        Ok(())
    }

    /// Returns the base in the new database, with its head at the fork.
    fn base(
        &mut self,
        id: SessionId,
        base_no: i64,
        base_seq: Seq,
    ) -> StoreResult<Option<(Found, Head)>> {
        self.session(base_no)?;
        let say = self.fresh.say();
        let found = match self.moved.get(&base_no) {
            Some(Some(new_no)) => find_no(&self.fresh.connection, &say, *new_no)?,
            _ => None,
        };
        let head = match &found {
            None => None,
            Some(found) => {
                let lines = read_lines(
                    &self.fresh.connection,
                    &say,
                    found.log(),
                    base_seq.back(1),
                    base_seq,
                    1,
                )?;
                let line = lines.first();
                line.and_then(|line| Entry::decode(&line.bytes).ok())
                    .map(|entry| entry.head())
            }
        };
        if head.is_none() {
            self.report.lost.push(format!(
                "session {id}: the beginning that it shared is gone"
            ));
        }
        Ok(found.zip(head))
    }
}

/// Returns the log and the head that a session continues: by the hash in its opening, or else by
/// its row.
fn base_of(all: &AllRemains, no: i64, remains: &Remains) -> Option<(i64, Head)> {
    let first = remains.entries.keys().next();
    let opening = remains.openings.first_key_value();
    let opening = opening.filter(|(seq, _)| Some(*seq) == first);
    let row = base_in_row(remains);
    let Some((seq, opening)) = opening else {
        return row;
    };
    let from = opening.from.as_ref()?;
    if opening.is_unaltered && from.seq.next() != *seq {
        return None;
    }
    let before = seq.back(1);
    let shared = all.shared.get(&from.hash);
    let shared = shared.filter(|(_, at)| *at == before);
    let named = || {
        let bears_it = |(_, other): &(&i64, &Remains)| other.id() == Some(from.id);
        all.sessions.iter().find(bears_it).map(|(base, _)| *base)
    };
    let is_known = shared.is_some() || opening.is_unaltered;
    let shared = shared.map(|(base, _)| *base);
    let base = shared.or(row.map(|(base, _)| base)).or_else(named);
    let head = Head {
        seq: before,
        hash: if is_known { from.hash } else { Hash::NONE },
    };
    base.filter(|base| *base != no).map(|base| (base, head))
}

/// Returns the log that a session continues by its row, as reading finds it.
fn base_in_row(remains: &Remains) -> Option<(i64, Head)> {
    let hash = Hash::NONE;
    let (base, seq) = remains.row.as_ref()?.base?;
    Some((base, Head { seq, hash }))
}

/// Returns the id that an altered opening is to name, if no session has the id that it names.
fn base_to_name(all: &AllRemains, remains: &Remains, base: &Found) -> Option<SessionId> {
    let (_, opening) = remains.openings.first_key_value()?;
    let named = opening.from.as_ref()?.id;
    let is_there = all.sessions.values().any(|other| other.id() == Some(named));
    (!is_there && base.state != PURGED).then_some(base.meta.id)
}

/// Derives an id for a log without one; the same repair of the same file gives the same id.
fn made_up(name: &str, no: i64) -> SessionId {
    SessionId::new(derived_id(&format!("{name} {no}")))
}
