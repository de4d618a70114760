//! Updates the catalogue from the logs; reads only what was appended.

use std::path::Path;
use std::time::Duration;

use super::base;
use super::catalogue::{Catalogue, Record};
use super::engine::{FilesEngine, open_log};
use super::file_stamp::FileStamp;
use super::log::{self, Anchor};
use super::log_file::{LogBytes, is_there};
use super::names::{self, LogName, Walk};
use super::opening::Opening;
use crate::chain::{self, apply, is_snapshot_due};
use crate::index::{self, Index};
use crate::{Progress, StoreError, StoreResult, place};
use tertulia_core::entry::{Body, Entry, Head, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::SessionMeta;

/// Result of folding a log.
pub(super) struct Folded {
    pub(super) record: Record,
    snapshots: Vec<(Seq, String)>,
    /// True if the log was folded from its beginning.
    anew: bool,
}

fn anchor(offset: u64, before: Seq) -> Anchor {
    Anchor { offset, before }
}

impl FilesEngine {
    /// Returns the catalogue, opened at first use; in memory if it cannot be opened on disk.
    pub(super) fn catalogue(&mut self) -> StoreResult<&Catalogue> {
        if self.catalogue.as_ref().is_some_and(Catalogue::is_gone) {
            self.catalogue = None;
        }
        if self.catalogue.is_none() {
            let folder = self.dir.join(names::INDEX_FOLDER);
            let opened = place::make_folder(&folder)
                .and_then(|()| patiently(|| Catalogue::open(Some(&folder.join(names::CATALOGUE)))));
            match opened {
                Ok(catalogue) => self.catalogue = Some(catalogue),
                Err(_) => self.derive_in_memory()?,
            }
        }
        self.catalogue
            .as_ref()
            .ok_or_else(|| StoreError::failed("cannot open the catalogue", "it was just closed"))
    }

    /// Switches to a catalogue and an index in memory.
    fn derive_in_memory(&mut self) -> StoreResult<()> {
        self.catalogue = Some(Catalogue::open(None)?);
        self.index = Some(Index::open(None)?);
        Ok(())
    }

    /// Brings the catalogue up to date.
    pub(super) fn refresh(&mut self) -> StoreResult<()> {
        self.refresh_telling(&Progress::unseen())
    }

    /// Brings the catalogue up to date and reports how many logs are read.
    pub(super) fn refresh_telling(&mut self, progress: &Progress) -> StoreResult<()> {
        let Err(error) = self.refresh_once(progress) else {
            return Ok(());
        };
        if self.catalogue.as_ref().is_none_or(Catalogue::is_in_memory) {
            return Err(error);
        }
        if matches!(
            error,
            StoreError::Damaged { .. } | StoreError::NotAStore { .. }
        ) {
            self.catalogue = None;
            index::discard(&self.dir.join(names::INDEX_FOLDER).join(names::CATALOGUE));
            if self.refresh_once(progress).is_ok() {
                return Ok(());
            }
        }
        // A full disk must not hide the sessions on it.
        self.derive_in_memory()?;
        self.refresh_once(progress)
    }

    fn refresh_once(&mut self, progress: &Progress) -> StoreResult<()> {
        let before = self.before_comparison()?;
        self.compare(progress)?;
        self.after_comparison(before)
    }

    /// Compares all logs with the catalogue, and takes in those that have changed.
    fn compare(&mut self, progress: &Progress) -> StoreResult<()> {
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        let mut known = self.catalogue()?.stamps()?;
        let mut stale = Vec::new();
        for log in walk.logs {
            let seen = known.remove(&log.key());
            match log.metadata().map(|found| FileStamp::of(&found)) {
                Ok(stamp)
                    if seen.is_some_and(|(_, path, seen)| {
                        seen == stamp && log.path.ends_with(path)
                    }) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                _ => stale.push(log),
            }
        }
        if known.is_empty() && stale.is_empty() {
            return Ok(());
        }
        self.catalogue()?.begin()?;
        // Logs in an unreadable folder are not gone.
        let done = match walk.unreadable.first() {
            Some((_, why)) => known
                .keys()
                .try_for_each(|key| self.catalogue()?.put_unreadable(*key, why))
                .and_then(|()| self.take_in(Vec::new(), &stale, progress)),
            None => {
                let gone = known.into_values().map(|(no, ..)| no).collect();
                self.take_in(gone, &stale, progress)
            }
        };
        self.catalogue()?.end(done)
    }

    /// Derives all rows again. A catalogue that is too damaged for that is replaced.
    pub(super) fn derive_anew(&mut self) -> StoreResult<()> {
        let path = self.dir.join(names::INDEX_FOLDER).join(names::CATALOGUE);
        match self.derive_in_place() {
            Err(error) if error.is_damage() || matches!(error, StoreError::Failed { .. }) => {
                self.catalogue = None;
                index::discard(&path);
                self.derive_in_place()
            }
            done => done,
        }
    }

    /// Derives all rows again in one transaction, so that no reader sees an incomplete list.
    fn derive_in_place(&mut self) -> StoreResult<()> {
        let walk = Walk::of(&self.dir)?;
        self.names.take(&walk);
        self.catalogue()?.begin()?;
        let done = self
            .catalogue()
            .and_then(Catalogue::clear)
            .and_then(|()| self.take_in(Vec::new(), &walk.logs, &Progress::unseen()));
        self.catalogue()?.end(done)
    }

    fn take_in(
        &mut self,
        gone: Vec<i64>,
        stale: &[LogName],
        progress: &Progress,
    ) -> StoreResult<()> {
        for no in gone {
            self.catalogue()?.remove(no)?;
        }
        let total = stale.len() as u64;
        for (done, log) in stale.iter().enumerate() {
            progress.at("reading sessions", done as u64, total);
            self.bring_up(log)?;
        }
        progress.at("reading sessions", total, total);
        self.settle_owners()
    }

    /// Brings the row of one log up to date.
    pub(super) fn bring_up(&mut self, log: &LogName) -> StoreResult<()> {
        let folded = match self.fold_on(log) {
            Ok(folded) => folded,
            // Purged meanwhile.
            Err(_) if !is_there(&log.path) => return Ok(()),
            // An unreadable log must not hide the others.
            Err(error) => {
                let catalogue = self.catalogue()?;
                if catalogue.number(log.id, log.shared_prefix)?.is_none() {
                    catalogue.put(&Record::blank(log))?;
                }
                return catalogue.put_unreadable(log.key(), &error.to_string());
            }
        };
        let Some(folded) = folded else {
            if let Some(no) = self.catalogue()?.number(log.id, log.shared_prefix)? {
                self.catalogue()?.remove(no)?;
            }
            return Ok(());
        };
        let no = self.catalogue()?.put(&folded.record)?;
        if folded.anew {
            self.catalogue()?.drop_snapshots(no)?;
            self.catalogue()?.disown(no)?;
        }
        for (seq, row) in &folded.snapshots {
            self.catalogue()?.put_snapshot(no, *seq, row)?;
        }
        Ok(())
    }

    /// Folds a log, starting from the stored record if that is still valid.
    fn fold_on(&mut self, log: &LogName) -> StoreResult<Option<Folded>> {
        let stored = self.catalogue()?.record(log.id, log.shared_prefix)?;
        self.fold(log, stored.map(|(_, record)| record))
    }

    /// Folds a log from `stored`, or from its beginning. Returns `None` if the log has no entry and
    /// its creation was interrupted.
    pub(super) fn fold(
        &mut self,
        log: &LogName,
        stored: Option<Record>,
    ) -> StoreResult<Option<Folded>> {
        let say = |error| place::trouble(&log.path, "cannot read", error);
        let (file, _) = open_log(&log.path)?;
        let stamp = FileStamp::of(&file.file().metadata().map_err(say)?);
        let tail = self.tail_of(&log.path, &file)?;
        let known = last_known(log, stored.as_ref());
        let Some(first) = log::first_place(&file, tail.end).map_err(say)? else {
            let damage = without_entry(&file, tail.size, known).map_err(say)?;
            return Ok(damage.map(|damage| Folded::nothing(log, stamp, known, stored, damage)));
        };
        let base_before = stored.as_ref().and_then(|stored| stored.base.clone());
        let continued = stored.filter(|stored| {
            stored.stamp.size < stamp.size
                && stored.folded <= tail.end
                && ends_with(&file, stored).unwrap_or(false)
        });
        let anew = continued.is_none();
        let mut damage = continued.as_ref().and_then(|stored| stored.damage.clone());
        let (base, mut meta, from) = if let Some(stored) = continued {
            let from = anchor(stored.folded, stored.last);
            (stored.base, stored.meta, from)
        } else {
            let opening = base::opening(&log.path, &file, tail.end).map_err(say)?;
            let (base, start) = self.start_of_fold(opening, base_before)?;
            if base.is_some() && start.is_none() {
                damage = Some("the beginning that it shares with another session is gone".into());
            }
            let meta = start.unwrap_or_else(|| SessionMeta::blank(log.id));
            (base, meta, anchor(0, first.back(1)))
        };
        let mut snapshots = Vec::new();
        let mut parent = Some(meta.head).filter(|head| head.seq == from.before);
        if meta.head.seq < from.before {
            damage.get_or_insert_with(|| missing(meta.head.seq, from.before));
        }
        let mut opened = None;
        let last = log::each_line(&file, from, tail.end, &mut |line| {
            let entry = apply(&mut meta, &line);
            if let Some(wrong) = damage_of(entry.as_ref(), parent.as_ref(), line.seq) {
                damage.get_or_insert(wrong);
            }
            parent = entry.as_ref().map(Entry::head);
            opened = entry.as_ref().and_then(session_opened).or(opened);
            if is_snapshot_due(&meta, line.seq)
                && let Ok(row) = serde_json::to_string(&meta)
            {
                snapshots.push((line.seq, row));
            }
            true
        })
        .map_err(say)?;
        meta.id = log.id;
        let is_another = opened.is_some_and(|opened| opened != log.id) && !log.is_shared_prefix();
        if is_another {
            damage.get_or_insert_with(|| "it is the log of another session by what it says".into());
        } else if last < known {
            damage = Some(missing(last, known));
        }
        let record = Record {
            id: log.id,
            shared_prefix: log.shared_prefix,
            path: log.path.clone(),
            stamp,
            folded: tail.end,
            last,
            known: if is_another { last } else { last.max(known) },
            damage,
            base,
            meta,
        };
        Ok(Some(Folded {
            record,
            snapshots,
            anew,
        }))
    }

    /// Returns what a log continues according to its opening, and the metadata at that entry.
    fn start_of_fold(
        &mut self,
        opening: Opening,
        base_before: Option<Origin>,
    ) -> StoreResult<(Option<Origin>, Option<SessionMeta>)> {
        let base = match opening.entry {
            Some(_) => opening.origin,
            // The catalogue may still know the origin that the damaged line named.
            None => opening.origin.or(base_before),
        };
        let start = match &base {
            Some(origin) => self.summary_at(origin)?,
            None => None,
        };
        Ok((base, start))
    }

    /// Returns the metadata of a session at the entry that a fork continues.
    pub(super) fn summary_at(&mut self, origin: &Origin) -> StoreResult<Option<SessionMeta>> {
        let Some(path) = self.base_path(origin)? else {
            return Ok(None);
        };
        let mut meta = self
            .nearest_summary(&path, origin.seq)?
            .unwrap_or_else(|| SessionMeta::blank(origin.id));
        let lines = self.read_between(&path, meta.head.seq, origin.seq, usize::MAX)?;
        chain::fold(&mut meta, &lines);
        Ok(Some(meta))
    }

    /// Returns the newest metadata in the catalogue at or before `seq`, of a log or of its bases.
    fn nearest_summary(&mut self, path: &Path, seq: Seq) -> StoreResult<Option<SessionMeta>> {
        let mut passed = Vec::new();
        let (mut path, mut seq) = (path.to_owned(), seq);
        while !passed.contains(&path)
            && let Some(name) = LogName::parse(&path)
        {
            let (file, size) = open_log(&path)?;
            let say = |error| place::trouble(&name.path, "cannot read", error);
            let stored = self.catalogue()?.record(name.id, name.shared_prefix)?;
            let mut known = Vec::new();
            if let Some((no, record)) = stored {
                known.push(record.meta);
                known.extend(self.catalogue()?.snapshot(no, seq)?);
            }
            for meta in known {
                let head = meta.head;
                if head.seq <= seq
                    && let Some(entry) = log::own_entry(&file, size, head.seq).map_err(say)?
                    && entry.hash == head.hash
                {
                    return Ok(Some(meta));
                }
            }
            let Some(origin) = base::opening(&path, &file, size).map_err(say)?.origin else {
                break;
            };
            let Some(base) = self.base_path(&origin)? else {
                break;
            };
            seq = seq.min(origin.seq);
            passed.push(std::mem::replace(&mut path, base));
        }
        Ok(None)
    }
}

/// Opens derived data, retrying while another process creates it: SQLite does not wait for that.
pub(super) fn patiently<T>(open: impl Fn() -> StoreResult<T>) -> StoreResult<T> {
    for _ in 0..100 {
        match open() {
            Err(StoreError::Locked { .. }) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened,
        }
    }
    open()
}

/// Returns true if the log still has the last entry that was folded.
fn ends_with(file: &dyn LogBytes, stored: &Record) -> std::io::Result<bool> {
    if stored.folded == 0 {
        return Ok(false);
    }
    let (_, line) = log::line_before(file, stored.folded)?;
    Ok(Entry::decode(&line).is_ok_and(|entry| entry.head() == stored.meta.head))
}

/// Returns the highest sequence number ever seen in a log; none for a shared prefix, which was
/// truncated on purpose.
pub(super) fn last_known(log: &LogName, stored: Option<&Record>) -> Seq {
    match stored {
        Some(stored) if !log.is_shared_prefix() => stored.known,
        _ => Seq::START,
    }
}

/// Describes the damage of an entry that should continue `parent`, if the parent is known.
fn damage_of(entry: Option<&Entry>, parent: Option<&Head>, seq: Seq) -> Option<String> {
    match (entry, parent) {
        (None, _) => Some(format!("entry {seq} cannot be read")),
        (Some(_), Some(parent)) if parent.seq.next() != seq => {
            Some(missing(parent.seq, seq.back(1)))
        }
        (Some(entry), Some(parent)) if !entry.follows(parent) => {
            Some(format!("entry {seq} does not match its hash"))
        }
        _ => None,
    }
}

/// Message for missing entries after `after` up to `upto`.
pub(super) fn missing(after: Seq, upto: Seq) -> String {
    match upto.0.saturating_sub(after.0) {
        1 => format!("entry {upto} is missing"),
        _ => format!("entries {} to {upto} are missing", after.next()),
    }
}

/// Describes the damage of a log without entries. `None` if it never had any and its bytes are the
/// start of an entry: its creation was interrupted.
pub(super) fn without_entry(
    file: &dyn LogBytes,
    size: u64,
    known: Seq,
) -> std::io::Result<Option<String>> {
    if known > Seq::START {
        return Ok(Some(missing(Seq::START, known)));
    }
    let start = log::read_range(file, 0, size.min(7))?;
    let is_cut_off = b"{\"v\":1,".starts_with(&start[..]);
    Ok((!is_cut_off).then(|| "it holds no entry, only other bytes".to_owned()))
}

/// Returns the session id in an opening entry.
pub(super) fn session_opened(entry: &Entry) -> Option<SessionId> {
    match &entry.body {
        Body::Created(created) => Some(created.session),
        Body::Forked(forked) => Some(forked.session),
        _ => None,
    }
}

impl Folded {
    /// Record of a log with no entries left; keeps the earlier metadata.
    fn nothing(
        log: &LogName,
        stamp: FileStamp,
        known: Seq,
        stored: Option<Record>,
        damage: String,
    ) -> Folded {
        let record = Record {
            id: log.id,
            shared_prefix: log.shared_prefix,
            path: log.path.clone(),
            stamp,
            folded: 0,
            last: Seq::START,
            known,
            damage: Some(damage),
            base: stored.as_ref().and_then(|stored| stored.base.clone()),
            meta: stored.map_or_else(|| SessionMeta::blank(log.id), |stored| stored.meta),
        };
        Folded {
            record,
            snapshots: Vec::new(),
            anew: true,
        }
    }
}
