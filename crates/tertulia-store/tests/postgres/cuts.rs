//! Connections that are cut around a commit, and a pooler in transaction mode: nothing is lost or
//! doubled.

use std::time::Duration;

use tertulia_core::id::Seq;
use tertulia_store::postgres::{Limits, PostgresAddress, PostgresOptions, PostgresStore};
use tertulia_store::sync::Branches;
use tertulia_store::{Doing, NewSession, Patience, Store, StoreError};
use tertulia_testkit::ask::{assert_log, assert_sound, draft, everything, found, list, now};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human, renamed};
use tertulia_testkit::postgres::{Schema, options};
use tertulia_testkit::postgres_proxy::{Cut, Pooler, Proxy};

const CUTS: [Cut; 2] = [Cut::BeforeCommit, Cut::AfterCommit];

fn port(url: &str) -> u16 {
    PostgresAddress::parse(url).unwrap().port()
}

/// Returns a schema, a proxy before its server, and a store behind the proxy.
fn behind_proxy() -> (Schema, Proxy, PostgresStore) {
    let schema = Schema::new();
    let proxy = Proxy::start(port(schema.url()));
    let url = proxy.url(schema.url());
    let store = PostgresStore::open(options(&url, schema.scratch().path())).unwrap();
    (schema, proxy, store)
}

#[test]
fn an_append_is_there_once() {
    let (schema, proxy, store) = behind_proxy();
    let mut writer = Writer::begin(&store, &still_clock(1));
    for turn in 0..10 {
        for cut in CUTS {
            proxy.arm(cut);
            writer.say(&store, &format!("turn {turn} {cut:?}"));
            assert_log(&store, &writer);
        }
        // Several rows, and more than one statement.
        proxy.arm(CUTS[turn % 2]);
        let long = "long ".repeat(300_000);
        writer.append(&store, vec![human(&long), human("and more")]);
    }
    assert_eq!(proxy.cuts(), 30);
    let direct = schema.open_store().unwrap();
    assert_log(&direct, &writer);
    assert_sound(&direct);
}

/// Another client continues the log between the lost answer and the second attempt.
#[test]
fn an_append_that_others_continued_is_found() {
    let (schema, proxy, store) = behind_proxy();
    let direct = schema.open_store().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    proxy.arm(Cut::AfterCommit);
    let entries = writer.chain(vec![human("in doubt")]);
    std::thread::scope(|scope| {
        let (id, after) = (writer.id, writer.head());
        let (store, ours) = (&store, &entries);
        let appended = scope.spawn(move || now(store.append(id, after, ours)));
        // As soon as the entry is there, the other client continues.
        let mut other = writer.clone();
        other.log.extend(entries.clone());
        while now(direct.read(id, after.seq, 1)).unwrap().is_empty() {}
        other.say(&direct, "by another");
        assert_eq!(
            appended.join().unwrap().unwrap(),
            entries.last().unwrap().head()
        );
        writer = other;
    });
    assert_log(&direct, &writer);
}

#[test]
fn a_session_is_created_once() {
    let (schema, proxy, store) = behind_proxy();
    let mut writers = Vec::new();
    for (seed, cut) in (1..).zip([CUTS, CUTS].concat()) {
        proxy.arm(cut);
        let writer = Writer::begin(&store, &still_clock(seed));
        proxy.arm(cut);
        writers.push(writer.fork(&store, 1));
        writers.push(writer);
    }
    let direct = schema.open_store().unwrap();
    writers
        .iter()
        .for_each(|writer| assert_log(&direct, writer));
    assert_eq!(list(&direct, &everything()).rows.len(), writers.len());
    // An id that was taken before is no doubtful success.
    proxy.arm(Cut::BeforeCommit);
    let new = NewSession {
        id: writers[1].id,
        base: None,
        entries: Writer::named(writers[1].id, &still_clock(99)).chain(vec![human("other")]),
    };
    let refused = now(store.create(&new));
    assert!(matches!(refused, Err(StoreError::Exists(_))), "{refused:?}");
}

#[test]
fn drafts_and_purges_happen_once() {
    let (schema, proxy, store) = behind_proxy();
    for (seed, cut) in (1..).zip(CUTS) {
        let mut writer = Writer::begin(&store, &still_clock(seed));
        writer.say(&store, "needle");
        let fork = writer.fork(&store, 2);
        now(store.keep_draft(writer.id, &writer.draft("half"))).unwrap();
        assert_eq!(draft(&store, writer.id).unwrap().content, "half");
        assert_eq!(found(&store, "needle").len(), 1);
        proxy.arm(cut);
        now(store.purge(writer.id)).unwrap();
        assert_log(&store, &fork);
        now(store.purge(fork.id)).unwrap();
    }
    assert_eq!(proxy.cuts(), 2);
    let left = schema.sql("SELECT count(*) FROM tertulia_entry");
    assert_eq!(left[0][0].as_deref(), Some("0"));
}

#[test]
fn an_end_is_replaced_once() {
    let (schema, proxy, store) = behind_proxy();
    let mut writer = Writer::begin(&store, &still_clock(1)).fork(&store, 1);
    for cut in CUTS {
        writer.append(&store, vec![renamed("old")]);
        let keep = writer.log.len() - 1;
        proxy.arm(cut);
        let end = vec![renamed("new"), human("words")];
        writer.replace_end(&store, keep, end).unwrap();
        assert_log(&store, &writer);
    }
    assert_eq!(proxy.cuts(), 2);
    let direct = schema.open_store().unwrap();
    assert_log(&direct, &writer);
    assert_sound(&direct);
}

/// A conflict stays one if the connection is cut as well.
#[test]
fn a_conflict_is_no_success() {
    let (schema, proxy, store) = behind_proxy();
    let mut writer = Writer::begin(&store, &still_clock(1));
    let mut late = writer.clone();
    writer.say(&schema.open_store().unwrap(), "first");
    for cut in CUTS {
        proxy.arm(cut);
        let refused = late.try_append(&store, vec![human("second")]);
        assert!(
            matches!(refused, Err(StoreError::Conflict { head, .. }) if head == writer.head()),
            "{refused:?}"
        );
    }
    assert_log(&store, &writer);
}

/// No operation depends on what an earlier transaction left in its connection.
#[test]
fn a_pooler_in_transaction_mode_can_stand_between() {
    let schema = Schema::new();
    // The schema is that of the pooler's connections: it does not pass settings of a client on.
    let name = schema.url().rsplit_once("%3D").unwrap().1.to_owned();
    let pooler = Pooler::start(port(schema.url()), &name, 3);
    let url = format!(
        "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
        pooler.port
    );
    let store = PostgresStore::open(options(&url, schema.scratch().path())).unwrap();
    let mut writers: Vec<Writer> = (1..=4)
        .map(|seed| Writer::begin(&store, &still_clock(seed)))
        .collect();
    let before = pooler.transactions();
    std::thread::scope(|scope| {
        for writer in &mut writers {
            let store = &store;
            scope.spawn(move || {
                let lock = now(store.claim(writer.id)).unwrap().unwrap();
                for turn in 0..20 {
                    writer.say(store, &format!("needle {turn}"));
                    now(store.keep_draft(writer.id, &writer.draft("half"))).unwrap();
                    assert_eq!(
                        now(store.read(writer.id, Seq(1), 5)).unwrap().len().min(1),
                        1
                    );
                }
                drop(lock);
                let fork = writer.fork(store, 5);
                assert_log(store, &fork);
                now(store.purge(fork.id)).unwrap();
            });
        }
    });
    assert!(pooler.transactions() > before + 80);
    writers.iter().for_each(|writer| assert_log(&store, writer));
    assert_eq!(found(&store, "needle").len(), 80);
    assert_sound(&store);
}

/// A server that does not answer for longer than a client waits: an error says so, and the entry is there
/// at most once, whatever arrives late.
#[test]
fn a_silent_server_is_an_error_in_time() {
    let schema = Schema::new();
    let proxy = Proxy::start(port(schema.url()));
    let url = proxy.url(schema.url());
    let store = PostgresStore::open(PostgresOptions {
        limits: Limits {
            connect: Duration::from_millis(300),
            answer: Duration::from_secs(2),
            ..Limits::default()
        },
        patience: Patience::new(Duration::from_secs(5), "test", None, || {
            jiff::Timestamp::UNIX_EPOCH
        }),
        ..options(&url, schema.scratch().path())
    })
    .unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    let entries = writer.chain(vec![human("in doubt")]);
    proxy.silence(true);
    let refused = now(store.append(writer.id, writer.head(), &entries)).unwrap_err();
    let words = refused.to_string();
    assert!(matches!(refused, StoreError::Unreachable { .. }), "{words}");
    proxy.silence(false);
    match now(store.append(writer.id, writer.head(), &entries)) {
        Ok(head) => assert_eq!(head, entries[0].head()),
        Err(StoreError::Conflict { head, .. }) => assert_eq!(head, entries[0].head()),
        other => panic!("{other:?}"),
    }
    writer.log.extend(entries);
    assert_log(&store, &writer);
    writer.say(&store, "and on");
    assert_log(&schema.open_store().unwrap(), &writer);
}

/// A server that goes away while sessions are moved ends the transfer at the first session that
/// cannot be moved; the next one goes on there.
#[test]
fn a_transfer_ends_when_the_server_goes_away() {
    let schema = Schema::new();
    let proxy = Proxy::start(port(schema.url()));
    let url = proxy.url(schema.url());
    let here = tertulia_store::sqlite::SqliteStore::in_memory().unwrap();
    for seed in 1..=30 {
        Writer::begin(&here, &still_clock(seed)).say(&here, "moved");
    }
    let there = PostgresStore::open(PostgresOptions {
        patience: Patience::new(Duration::from_secs(3), "test", None, || {
            jiff::Timestamp::UNIX_EPOCH
        }),
        ..options(&url, schema.scratch().path())
    })
    .unwrap();
    let push = || {
        let (here, there) = (Branches::of(&here), Branches::of(&there));
        crate::sync::move_all(&here, &there, Doing::Write)
    };
    proxy.close_after(8);
    let ended = push().unwrap_err();
    assert!(matches!(ended, StoreError::Unreachable { .. }), "{ended:?}");
    proxy.close(false);
    let done = push().unwrap();
    assert!((1..30).contains(&done.created), "{done:?}");
    assert!(done.skipped.is_empty(), "{done:?}");
    assert_eq!(list(&there, &everything()).rows.len(), 30);
    assert_sound(&there);
}
