//! Compares results of a store with those of the model.

use std::fmt::Debug;

use tertulia_core::id::Seq;
use tertulia_core::query::{Filter, Lookup, Page, SearchQuery};
use tertulia_core::session::{Line, SessionMeta};
use tertulia_core::sizes::Sizes;
use tertulia_store::{CheckMode, Progress, Store, StoreError, StoreResult};

use super::op::PROJECTS;
use super::plain::{Plain, Session};
use super::play::Play;
use crate::ask::{everything, now, query};

/// Result of a step: success, or a description of the difference.
pub(super) type Step = Result<(), String>;

/// Returns the value of a call that must succeed.
pub(super) fn answered<T>(answer: StoreResult<T>) -> Result<T, String> {
    answer.map_err(|error| format!("refused: {error:?}"))
}

/// Expects `NotFound` for a purged session.
pub(super) fn absent<T: Debug>(answer: StoreResult<T>, session: &Session) -> Step {
    match answer {
        Err(StoreError::NotFound(id)) if id == session.id => Ok(()),
        other => Err(format!("session {} is purged, but: {other:?}", session.id)),
    }
}

/// Expects two values to be equal.
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Step {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}\n   found {found:?}\nexpected {expected:?}"))
}

/// Expects two sections of a log to be equal; reports only the first different line, as text.
fn same_lines(found: &[Line], expected: &[Line]) -> Step {
    let text = |line: Option<&Line>| {
        line.map(|line| (line.seq, String::from_utf8_lossy(&line.bytes).into_owned()))
    };
    for at in 0..found.len().max(expected.len()) {
        let what = format!(
            "line {} of {} ({} expected)",
            at + 1,
            found.len(),
            expected.len()
        );
        same(&what, &text(found.get(at)), &text(expected.get(at)))?;
    }
    Ok(())
}

impl Play {
    /// Compares after every step: all rows, logs and drafts, common search terms and the counts.
    pub(super) fn compare(&self, store: &dyn Store) -> Step {
        self.list(store, &everything(), 1000)?;
        let mut common = query("appl*");
        self.search(store, &common)?;
        common.filter.project = Some(PROJECTS[0].into());
        self.search(store, &common)?;
        for n in 0..self.model.sessions.len() {
            self.read(store, n, Seq::START, usize::MAX)?;
            let session = &self.model.sessions[n];
            let draft = now(store.draft(session.id));
            if session.alive {
                same("the draft", &answered(draft)?, &session.valid_draft())?;
            } else {
                absent(draft, session)?;
            }
        }
        let mut logs = answered(now(store.sizes()))?;
        for log in &mut logs {
            // The model knows no compression.
            log.stored = log.end - log.start;
        }
        same("sizes", &Sizes::of(&logs), &self.model.sizes())?;
        let info = answered(now(store.info()))?;
        let trashed = self
            .model
            .alive()
            .filter(|session| session.meta().trashed_at.is_some());
        same(
            "sessions, trashed and entries",
            &(info.sessions, info.trashed, info.entries),
            &(
                self.model.alive().count() as u64,
                trashed.count() as u64,
                self.model.entries().len() as u64,
            ),
        )
    }

    pub(super) fn list(&self, store: &dyn Store, filter: &Filter, limit: usize) -> Step {
        let expected = self.model.rows(filter);
        let mut rows: Vec<SessionMeta> = Vec::new();
        let mut page = Page::first(limit);
        loop {
            let listing = answered(now(store.list(filter, &page)))?;
            same("hidden", &listing.hidden, &self.model.hidden(filter))?;
            rows.extend(listing.rows.into_iter().map(|row| row.meta));
            page.cursor = listing.next;
            if page.cursor.is_none() || rows.len() > expected.len() {
                break;
            }
        }
        same("the list", &rows, &expected)
    }

    pub(super) fn read(&self, store: &dyn Store, n: usize, after: Seq, limit: usize) -> Step {
        let session = &self.model.sessions[n];
        let answer = now(store.read(session.id, after, limit));
        if !session.alive {
            return absent(answer, session);
        }
        let expected = Plain::lines(session, after, limit);
        same_lines(&answered(answer)?, &expected)
    }

    pub(super) fn find(&self, store: &dyn Store, lookup: &Lookup) -> Step {
        let rows = answered(now(store.find(lookup, 1000)))?;
        let rows: Vec<SessionMeta> = rows.into_iter().map(|row| row.meta).collect();
        same("the look-up", &rows, &self.model.named(lookup))
    }

    pub(super) fn search(&self, store: &dyn Store, query: &SearchQuery) -> Step {
        let hits = answered(now(store.search(query, &Progress::unseen())))?;
        let (expected, elsewhere) = self.model.found(query);
        // No two entries of a history have the same time.
        let mut places: Vec<_> = hits.hits.iter().map(|hit| (hit.at, hit.seq)).collect();
        places.sort_unstable();
        let mut wanted: Vec<_> = expected
            .iter()
            .map(|(entry, _)| (entry.at, entry.seq))
            .collect();
        wanted.sort_unstable();
        same("the places", &places, &wanted)?;
        same(
            "total and elsewhere",
            &(hits.total, hits.elsewhere),
            &(expected.len() as u64, elsewhere),
        )?;
        for hit in &hits.hits {
            let shown = expected
                .iter()
                .any(|(entry, owners)| entry.at == hit.at && owners.contains(&hit.session));
            if !shown {
                return Err(format!(
                    "{hit:?} is shown in a session that does not have it"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn check(&self, store: &dyn Store) -> Step {
        let report = answered(now(store.check(CheckMode::Look, &Progress::unseen())))?;
        if !report.is_clean() {
            return Err(format!("the check found {report:?}"));
        }
        same(
            "checked",
            &(report.sessions, report.entries),
            &(
                self.model.alive().count() as u64,
                self.model.entries().len() as u64,
            ),
        )
    }
}
