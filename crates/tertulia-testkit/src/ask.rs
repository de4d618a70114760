//! Blocking queries on a store, for tests that expect a result.

use std::future::Future;

use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{
    Filter, HitFilter, Hits, Listing, Lookup, Page, Row, SearchQuery, Trash,
};
use tertulia_core::search_text::SearchTerms;
use tertulia_core::session::{Line, Log, SessionMeta};
use tertulia_store::{CheckMode, Draft, Progress, Report, Store};
use tokio::runtime::{Builder, Runtime};

use crate::logs::Writer;

/// Blocks until a future is ready. Stores have threads of their own, so that the runtime needs no drivers.
pub fn now<F: Future>(answer: F) -> F::Output {
    thread_local! {
        static RUNTIME: Runtime = Builder::new_current_thread().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(answer))
}

/// Returns all lines of a session.
pub fn lines(store: &dyn Store, id: SessionId) -> Vec<Line> {
    now(store.read(id, Seq::START, usize::MAX)).unwrap()
}

/// Returns the first thousand sessions that match a filter.
pub fn list(store: &dyn Store, filter: &Filter) -> Listing {
    now(store.list(filter, &Page::first(1000))).unwrap()
}

/// Returns a filter that matches every session.
pub fn everything() -> Filter {
    Filter {
        trash: Trash::With,
        ..Filter::default()
    }
}

/// Returns the session ids of rows, in order.
pub fn ids(rows: &[Row]) -> Vec<SessionId> {
    rows.iter().map(|row| row.meta.id).collect()
}

/// Returns the sessions that match a look-up, in the order of the result.
pub fn find(store: &dyn Store, lookup: &Lookup) -> Vec<SessionId> {
    ids(&now(store.find(lookup, 1000)).unwrap())
}

/// Returns the list row of a session.
pub fn row(store: &dyn Store, id: SessionId) -> Row {
    let mut rows = now(store.find(&Lookup::Id(id), 2)).unwrap();
    assert_eq!(rows.len(), 1, "one row for session {id}");
    rows.remove(0)
}

/// Returns a search query without a filter.
pub fn query(words: &str) -> SearchQuery {
    SearchQuery {
        words: SearchTerms::parse(words).unwrap(),
        filter: Filter::default(),
        said: HitFilter::default(),
        limit: 1000,
    }
}

/// Runs a search.
pub fn hits(store: &dyn Store, query: &SearchQuery) -> Hits {
    now(store.search(query, &Progress::unseen())).unwrap()
}

/// Returns session and sequence number of all matches, sorted.
pub fn found(store: &dyn Store, words: &str) -> Vec<(SessionId, u64)> {
    places(&hits(store, &query(words)))
}

/// Returns session and sequence number of hits, sorted.
pub fn places(hits: &Hits) -> Vec<(SessionId, u64)> {
    let mut places: Vec<_> = hits
        .hits
        .iter()
        .map(|hit| (hit.session, hit.seq.0))
        .collect();
    places.sort_unstable();
    places
}

/// Returns the draft of a session.
pub fn draft(store: &dyn Store, id: SessionId) -> Option<Draft> {
    now(store.draft(id)).unwrap()
}

/// Runs a check that changes nothing.
pub fn look(store: &dyn Store) -> Report {
    now(store.check(CheckMode::Look, &Progress::unseen())).unwrap()
}

/// Asserts that the store returns exactly what the writer wrote, that the hashes are valid, and
/// that the row matches the log.
#[track_caller]
pub fn assert_log(store: &dyn Store, writer: &Writer) {
    let read = lines(store, writer.id);
    let written: Vec<Line> = writer.log.iter().map(Line::from).collect();
    assert_eq!(shown(&read), shown(&written), "the lines of {}", writer.id);
    let log = Log::read(
        writer.id,
        Some(tertulia_core::entry::Head::START),
        Seq::START,
        &read,
    );
    assert_eq!(log.damage, []);
    assert_eq!(log.entries, writer.log);
    assert_eq!(
        row(store, writer.id).meta,
        SessionMeta::of(writer.id, &writer.log)
    );
}

/// Converts lines to text, for readable assertion failures.
fn shown(lines: &[Line]) -> Vec<(u64, String)> {
    let text = |line: &Line| match std::str::from_utf8(&line.bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("not UTF-8: {:?}", line.bytes),
    };
    lines.iter().map(|line| (line.seq.0, text(line))).collect()
}

/// Returns everything observable in a store: rows, lines and drafts.
pub fn view(store: &dyn Store) -> Vec<(SessionMeta, Vec<Line>, Option<Draft>)> {
    list(store, &everything())
        .rows
        .into_iter()
        .map(|row| {
            let id = row.meta.id;
            (row.meta, lines(store, id), draft(store, id))
        })
        .collect()
}

/// Asserts that a check finds no problem, and that a rebuild changes nothing observable.
#[track_caller]
pub fn assert_sound(store: &dyn Store) {
    let report = look(store);
    assert!(report.is_clean(), "the check found {report:?}");
    let info = now(store.info()).unwrap();
    assert_eq!(
        (report.sessions, report.entries),
        (info.sessions, info.entries),
        "what the check and the info count"
    );
    let before = view(store);
    let rebuilt = now(store.rebuild(&Progress::unseen())).unwrap();
    assert_eq!(rebuilt.sessions, info.sessions, "list rows derived anew");
    assert_eq!(view(store), before, "a rebuild changes nothing");
    assert!(look(store).is_clean(), "a rebuild breaks nothing");
}
