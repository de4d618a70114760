//! Brings the ledger up to date with a store.

use std::collections::HashMap;

use super::Ledger;
use super::facts;
use super::record::{Step, Watermark};
use crate::{Deadline, Progress, Store, StoreError, StoreResult};
use tertulia_core::entry::{Entry, Head, Relation};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Lookup, Page, Trash};
use tertulia_core::session::SessionMeta;

/// Sessions listed at a time.
const PAGE: usize = 500;
/// Sessions listed at a time where only the newest matter.
const SHORT_PAGE: usize = 16;
/// Lines read at a time.
const LINES: usize = 500;
/// Entries that are written in one transaction.
const BATCH: usize = 4000;
/// Attempts to follow a store that another process follows at the same time.
const ATTEMPTS: usize = 3;

/// Which sessions to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    All,
    /// The newest, until some in a row are unchanged, then others: each call goes on where the last
    /// one stopped, so that several calls look at all of them.
    Newest,
}

/// Result of catching up.
#[derive(Clone, Debug, Default)]
pub struct CaughtUp {
    /// Sessions that were new or changed.
    pub sessions: u64,
    /// Entries that were read.
    pub entries: u64,
    /// Sessions that the store no longer has.
    pub removed: u64,
    /// Sessions that could not be read, with the reason.
    pub failed: Vec<(SessionId, String)>,
    /// True if the time limit passed before everything was read.
    pub paused: bool,
}

impl Ledger {
    /// Reads what is new in the store, within the time limit of `progress`. Returns early if it
    /// passes; a later call goes on. Entries that cannot be read are counted, and a session that
    /// cannot be read does not hide others.
    pub async fn catch_up(
        &mut self,
        store: &dyn Store,
        extent: Extent,
        progress: &Progress,
    ) -> StoreResult<CaughtUp> {
        let mut run = Run {
            removals: 0,
            ledger: self,
            store,
            deadline: progress.deadline(),
            steps: Vec::new(),
            pending: 0,
            skipped: false,
            done: CaughtUp::default(),
        };
        for _ in 0..ATTEMPTS {
            run.skipped = false;
            run.removals = run.ledger.removals()?;
            match extent {
                Extent::All => run.all(progress).await?,
                Extent::Newest => {
                    run.newest().await?;
                    run.others().await?;
                }
            }
            run.flush()?;
            // What another process has begun to read may not be whole yet. If it has removed sessions,
            // others that are new were not written.
            if !run.skipped || run.is_over() {
                break;
            }
        }
        Ok(run.done)
    }
}

/// One run of catching up.
struct Run<'a> {
    /// How often sessions had been removed from the ledger before any was read.
    removals: u64,
    ledger: &'a mut Ledger,
    store: &'a dyn Store,
    deadline: Deadline,
    steps: Vec<Step>,
    /// Entries in `steps`.
    pending: usize,
    /// True if another process wrote the same sessions.
    skipped: bool,
    done: CaughtUp,
}

impl Run<'_> {
    async fn all(&mut self, progress: &Progress) -> StoreResult<()> {
        let mut known = self.ledger.watermarks()?;
        let mut metas = Vec::new();
        let mut cursor = None;
        loop {
            let page = Page {
                limit: PAGE,
                cursor,
            };
            let listing = self.store.list(&everything(), &page).await?;
            metas.extend(listing.rows.into_iter().map(|row| row.meta));
            cursor = listing.next;
            if cursor.is_none() {
                break;
            }
            if self.is_over() {
                return Ok(());
            }
        }
        let heads: HashMap<SessionId, Seq> =
            metas.iter().map(|meta| (meta.id, meta.head.seq)).collect();
        let mut changed = Vec::new();
        for meta in metas {
            let base = base_of(&meta, |id| heads.get(&id).copied());
            let from = known.remove(&meta.id);
            if from
                != Some(Watermark {
                    base,
                    head: meta.head,
                })
            {
                changed.push((meta, base, from));
            }
        }
        let total = changed.len() as u64;
        for (count, (meta, base, from)) in changed.into_iter().enumerate() {
            progress.at("counting usage", count as u64, total);
            if self.is_over() {
                progress.at("counting usage", total, total);
                return Ok(());
            }
            self.follow(meta, base, from).await?;
        }
        progress.at("counting usage", total, total);
        self.flush()?;
        // What remains was not listed. A session that was written to meanwhile has moved in the
        // list, so each is looked up before it is taken for gone.
        let mut gone = Vec::new();
        for id in known.into_keys() {
            if self.store.find(&Lookup::Id(id), 1).await?.is_empty() {
                gone.push(id);
            }
        }
        if !gone.is_empty() {
            self.ledger.remove(&gone)?;
            self.done.removed = gone.len() as u64;
        }
        self.ledger.set_complete(true)
    }

    async fn newest(&mut self) -> StoreResult<()> {
        let mut cursor = None;
        loop {
            let page = Page {
                limit: SHORT_PAGE,
                cursor,
            };
            let listing = self.store.list(&everything(), &page).await?;
            let mut unchanged = true;
            for row in listing.rows {
                let meta = row.meta;
                let from = self.ledger.watermark(meta.id)?;
                if from.is_some_and(|from| from.head == meta.head) {
                    continue;
                }
                unchanged = false;
                self.follow_listed(meta, from).await?;
                // Asked afterwards: each call makes progress, however short its time is.
                if self.is_over() {
                    return Ok(());
                }
            }
            cursor = listing.next;
            if unchanged || cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Looks at the sessions after those that an earlier call looked at, until time is up. A ledger
    /// that had all of them once looks at a few, since an import may add old ones.
    async fn others(&mut self) -> StoreResult<()> {
        let was_complete = self.ledger.is_complete()?;
        let mut cursor = self.ledger.reached()?;
        while !self.done.paused {
            let page = Page {
                limit: SHORT_PAGE,
                cursor,
            };
            let listing = self.store.list(&everything(), &page).await?;
            for row in listing.rows {
                let from = self.ledger.watermark(row.meta.id)?;
                if from.is_some_and(|from| from.head == row.meta.head) {
                    continue;
                }
                self.follow_listed(row.meta, from).await?;
                if self.is_over() {
                    return Ok(());
                }
            }
            self.flush()?;
            cursor = listing.next;
            self.ledger.set_reached(cursor.as_ref())?;
            if cursor.is_none() {
                return self.ledger.set_complete(true);
            }
            if was_complete || self.is_over() {
                break;
            }
        }
        Ok(())
    }

    async fn follow_listed(
        &mut self,
        meta: SessionMeta,
        from: Option<Watermark>,
    ) -> StoreResult<()> {
        let parent = match &meta.parent {
            Some(parent) => self.ledger.watermark(parent.id)?,
            None => None,
        };
        let base = base_of(&meta, |_| parent.map(|parent| parent.head.seq));
        self.follow(meta, base, from).await
    }

    /// Reads a session from its watermark on, or from its beginning if its log was replaced.
    async fn follow(
        &mut self,
        meta: SessionMeta,
        base: Seq,
        from: Option<Watermark>,
    ) -> StoreResult<()> {
        let start = match from {
            Some(from) if from.base == base && from.head.seq < meta.head.seq => from.head,
            _ => unread_from(base),
        };
        let id = meta.id;
        self.done.sessions += 1;
        match self.read(&meta, base, from, start).await {
            Ok(true) => Ok(()),
            // The log does not continue where the ledger ended.
            Ok(false) => match self.read(&meta, base, from, unread_from(base)).await {
                Ok(_) => Ok(()),
                Err(error) => self.fail(id, &error),
            },
            Err(error) => self.fail(id, &error),
        }
    }

    fn fail(&mut self, id: SessionId, error: &StoreError) -> StoreResult<()> {
        // Steps before the failure are kept: what was read is counted.
        self.done.failed.push((id, error.to_string()));
        Ok(())
    }

    /// Reads the lines after `start` into steps. Returns false if the first one does not continue
    /// `start`.
    async fn read(
        &mut self,
        meta: &SessionMeta,
        base: Seq,
        from: Option<Watermark>,
        start: Head,
    ) -> StoreResult<bool> {
        let mut from = from;
        let mut afresh = start == unread_from(base);
        let mut at = start;
        while at.seq < meta.head.seq || afresh {
            let lines = self.store.read(meta.id, at.seq, LINES).await?;
            if !afresh && at == start {
                let first = lines.first().map(|line| Entry::decode(&line.bytes));
                if !matches!(first, Some(Ok(entry)) if entry.follows(&start)) {
                    return Ok(false);
                }
            }
            let mut step = Step {
                meta: meta.clone(),
                from,
                afresh,
                to: Watermark { base, head: at },
                entries: Vec::new(),
                links: Vec::new(),
                unread: 0,
            };
            let mut seq = at.seq;
            for line in lines.iter().filter(|line| line.seq <= meta.head.seq) {
                step.unread += (line.seq.0 - seq.0).saturating_sub(1);
                seq = line.seq;
                match Entry::decode(&line.bytes) {
                    Ok(entry) => {
                        at = entry.head();
                        step.links.extend(facts::link_of(&entry));
                        step.entries.extend(facts::of(&entry, meta.cwd.as_deref()));
                    }
                    Err(_) => {
                        step.unread += 1;
                        at = Head { seq, ..Head::START };
                    }
                }
            }
            if lines.len() < LINES || at.seq >= meta.head.seq {
                // The head of the metadata stands for the end, even if entries are missing there.
                step.unread += meta.head.seq.0.saturating_sub(seq.0);
                at = meta.head;
            }
            step.to.head = at;
            from = Some(step.to);
            afresh = false;
            self.done.entries += lines.len() as u64;
            self.pending += lines.len().max(1);
            self.steps.push(step);
            if self.pending >= BATCH {
                self.flush()?;
                if self.deadline.has_passed() {
                    break;
                }
            }
        }
        Ok(true)
    }

    fn flush(&mut self) -> StoreResult<()> {
        self.pending = 0;
        let steps = std::mem::take(&mut self.steps);
        if !steps.is_empty() {
            self.skipped |= self.ledger.record(&steps, self.removals)?;
        }
        Ok(())
    }

    fn is_over(&mut self) -> bool {
        self.done.paused |= self.deadline.has_passed();
        self.done.paused
    }
}

/// Returns the filter that finds every session.
fn everything() -> Filter {
    Filter {
        trash: Trash::With,
        ..Filter::default()
    }
}

/// Returns the last entry that a session shares with its parent: the parent's rows have it already.
/// `head_of` returns the end of a session that the ledger follows. Without it, or if the parent is
/// no fork's origin, everything is read; entries that others have count once all the same.
fn base_of(meta: &SessionMeta, head_of: impl Fn(SessionId) -> Option<Seq>) -> Seq {
    let Some(parent) = &meta.parent else {
        return Seq::START;
    };
    // Only a fork's parent names the shared prefix: merges and replays name where the other ended.
    let is_fork = matches!(parent.relation, Relation::Fork | Relation::Conflict);
    match head_of(parent.id) {
        Some(end) if is_fork && end >= parent.seq => parent.seq,
        _ => Seq::START,
    }
}

/// Returns the head of a session of which nothing was read.
fn unread_from(base: Seq) -> Head {
    Head {
        seq: base,
        ..Head::START
    }
}
