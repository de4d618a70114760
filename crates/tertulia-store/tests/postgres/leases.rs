//! Session locks that expire, and writers that come too late.

use std::time::Duration;

use tertulia_store::postgres::{Limits, PostgresAddress, PostgresOptions, PostgresStore};
use tertulia_store::{Patience, Store, StoreError};
use tertulia_testkit::ask::{assert_log, now, row};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human};
use tertulia_testkit::postgres::{Schema, options};
use tertulia_testkit::postgres_proxy::Proxy;
use tertulia_testkit::waiting::{wait_for, wait_until};

/// For locks that are to end.
const SHORT: Duration = Duration::from_millis(600);
/// For locks that are to stay: three times as long as a renewal may be late on a busy machine.
const LONG: Duration = Duration::from_secs(6);

fn with_leases(schema: &Schema, url: &str, lease: Duration) -> PostgresOptions {
    let limits = Limits {
        lease,
        ..Limits::default()
    };
    let patience = Patience::new(
        Duration::from_secs(30),
        "tertulia test",
        Some("here"),
        || jiff::Timestamp::UNIX_EPOCH,
    );
    PostgresOptions {
        limits,
        patience,
        ..options(url, schema.scratch().path())
    }
}

/// A lock that is renewed stays, however long its holder takes.
#[test]
fn a_lock_is_renewed_while_it_is_held() {
    let schema = Schema::new();
    let here = PostgresStore::open(with_leases(&schema, schema.url(), LONG)).unwrap();
    let there = PostgresStore::open(with_leases(&schema, schema.url(), LONG)).unwrap();
    let writer = Writer::begin(&here, &still_clock(1));
    let lock = now(here.claim(writer.id)).unwrap().unwrap();
    let holder = now(there.holder(writer.id)).unwrap().unwrap();
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(holder.program.as_deref(), Some("tertulia test"));
    assert_eq!(holder.host.as_deref(), Some("here"));
    assert!(holder.since.is_some());
    let expires = || schema.sql("SELECT expires FROM tertulia_lease").remove(0);
    for _ in 0..3 {
        let before = expires();
        wait_until("the lock is renewed", || expires() != before);
        assert!(now(there.claim(writer.id)).unwrap().is_none());
        assert!(row(&there, writer.id).open);
    }
    drop(lock);
    assert!(now(there.claim(writer.id)).unwrap().is_some());
    assert_eq!(now(there.holder(writer.id)).unwrap(), None);
}

/// A renewal that reaches the server after the release does not bring the lock back.
#[test]
fn a_late_renewal_renews_nothing() {
    let schema = Schema::new();
    let here = PostgresStore::open(with_leases(&schema, schema.url(), SHORT)).unwrap();
    let writer = Writer::begin(&here, &still_clock(1));
    let lock = now(here.claim(writer.id)).unwrap().unwrap();
    let token = schema.sql("SELECT token FROM tertulia_lease").remove(0);
    let token = token[0].clone().unwrap();
    drop(lock);
    schema.sql(&format!(
        "UPDATE tertulia_lease SET expires = now() + interval '1 hour' WHERE token = '{token}'"
    ));
    let there = PostgresStore::open(with_leases(&schema, schema.url(), SHORT)).unwrap();
    assert!(now(there.claim(writer.id)).unwrap().is_some());
}

/// Only sessions that are open have a row, and a holder whose lock was taken stays refused when the next
/// one has released it.
#[test]
fn a_released_lock_leaves_no_row_and_no_way_back() {
    let schema = Schema::new();
    let here = PostgresStore::open(with_leases(&schema, schema.url(), LONG)).unwrap();
    let there = PostgresStore::open(with_leases(&schema, schema.url(), LONG)).unwrap();
    let mut writer = Writer::begin(&here, &still_clock(1));
    let rows = || schema.sql("SELECT session FROM tertulia_lease").len();
    for _ in 0..3 {
        let lock = now(here.claim(writer.id)).unwrap().unwrap();
        writer.say(&here, "with the lock");
        assert_eq!(rows(), 1);
        drop(lock);
        assert_eq!(rows(), 0);
    }
    let lost = now(here.claim(writer.id)).unwrap().unwrap();
    drop(now(there.take_over(writer.id)).unwrap());
    assert_eq!(rows(), 0);
    let refused = writer.clone().try_append(&here, vec![human("late")]);
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    let next = now(there.claim(writer.id)).unwrap().unwrap();
    let refused = writer.clone().try_append(&here, vec![human("later")]);
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    writer.say(&there, "by the next holder");
    drop((lost, next));
    writer.say(&here, "free again");
    assert_log(&here, &writer);
}

/// The row of a holder that died goes when another lock is taken.
#[test]
fn rows_of_dead_holders_are_swept() {
    let schema = Schema::new();
    let here = PostgresStore::open(with_leases(&schema, schema.url(), LONG)).unwrap();
    let (died, next) = (
        Writer::begin(&here, &still_clock(1)),
        Writer::begin(&here, &still_clock(2)),
    );
    schema.sql(&format!(
        "INSERT INTO tertulia_lease VALUES('{}', gen_random_uuid(), 1, now() - interval '8 days', '')",
        died.id
    ));
    let _lock = now(here.claim(next.id)).unwrap().unwrap();
    let rows = schema.sql("SELECT session FROM tertulia_lease");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][0], Some(next.id.to_string()));
}

/// The lock of a holder that is cut off ends, and its late append is refused: not interleaved with
/// those of the next holder, nor before them.
#[test]
fn a_writer_that_lost_its_lock_is_refused() {
    let schema = Schema::new();
    let port = PostgresAddress::parse(schema.url()).unwrap().port();
    let proxy = Proxy::start(port);
    let here = PostgresStore::open(with_leases(&schema, &proxy.url(schema.url()), SHORT)).unwrap();
    let there = PostgresStore::open(with_leases(&schema, schema.url(), SHORT)).unwrap();
    let mut writer = Writer::begin(&here, &still_clock(1));
    let lock = now(here.claim(writer.id)).unwrap().unwrap();
    writer.say(&here, "while it holds the lock");
    proxy.silence(true);
    let taken = wait_for("the lock ends", || now(there.claim(writer.id)).unwrap());
    proxy.silence(false);
    let mut late = writer.clone();
    let refused = late.try_append(&here, vec![human("late")]);
    assert!(
        matches!(refused, Err(StoreError::Conflict { id, .. }) if id == writer.id),
        "{refused:?}"
    );
    writer.say(&there, "by the next holder");
    assert_log(&there, &writer);
    // Dropping the lost lock does not release that of the next holder.
    drop(lock);
    assert!(row(&there, writer.id).open);
    drop(taken);
    assert!(!row(&there, writer.id).open);
    writer.say(&here, "free again");
    assert_log(&here, &writer);
}

/// A lock whose caller did not wait for it is not kept for ever.
#[test]
fn a_lock_that_was_not_waited_for_ends() {
    let schema = Schema::new();
    let here = PostgresStore::open(with_leases(&schema, schema.url(), SHORT)).unwrap();
    let there = PostgresStore::open(with_leases(&schema, schema.url(), SHORT)).unwrap();
    let writer = Writer::begin(&here, &still_clock(1));
    let mut claim = here.claim(writer.id);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(claim.as_mut().poll(&mut context).is_pending());
    drop(claim);
    // It may have ended by the time that the list is read, but leaves its row.
    let rows = || schema.sql("SELECT session FROM tertulia_lease").len();
    wait_until("the lock is taken", || rows() == 1);
    wait_for("the lock ends", || now(there.claim(writer.id)).unwrap());
}
