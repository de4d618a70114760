//! Session locks that expire, and writers that come too late.

use std::time::{Duration, Instant};

use tertulia_store::postgres::{Limits, PostgresAddress, PostgresOptions, PostgresStore};
use tertulia_store::{Patience, Store, StoreError};
use tertulia_testkit::ask::{assert_log, now, row};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human};
use tertulia_testkit::postgres::{Schema, options};
use tertulia_testkit::postgres_proxy::Proxy;

const LEASE: Duration = Duration::from_millis(600);

fn with_short_leases(schema: &Schema, url: &str) -> PostgresOptions {
    let limits = Limits {
        lease: LEASE,
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
    let here = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    let there = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    let writer = Writer::begin(&here, &still_clock(1));
    let lock = now(here.claim(writer.id)).unwrap().unwrap();
    let holder = now(there.holder(writer.id)).unwrap().unwrap();
    assert_eq!(holder.pid, std::process::id());
    assert_eq!(holder.program.as_deref(), Some("tertulia test"));
    assert_eq!(holder.host.as_deref(), Some("here"));
    assert!(holder.since.is_some());
    let until = Instant::now() + LEASE * 3;
    while Instant::now() < until {
        assert!(now(there.claim(writer.id)).unwrap().is_none());
        assert!(row(&there, writer.id).open);
        std::thread::sleep(LEASE / 10);
    }
    drop(lock);
    assert!(now(there.claim(writer.id)).unwrap().is_some());
    assert_eq!(now(there.holder(writer.id)).unwrap(), None);
}

/// A renewal that reaches the server after the release does not bring the lock back.
#[test]
fn a_late_renewal_renews_nothing() {
    let schema = Schema::new();
    let here = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    let writer = Writer::begin(&here, &still_clock(1));
    let lock = now(here.claim(writer.id)).unwrap().unwrap();
    let token = schema.sql("SELECT token FROM tertulia_lease").remove(0);
    let token = token[0].clone().unwrap();
    drop(lock);
    schema.sql(&format!(
        "UPDATE tertulia_lease SET expires = now() + interval '1 hour' WHERE token = '{token}'"
    ));
    let there = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    assert!(now(there.claim(writer.id)).unwrap().is_some());
}

/// The lock of a holder that is cut off ends, and its late append is refused: not interleaved with
/// those of the next holder, nor before them.
#[test]
fn a_writer_that_lost_its_lock_is_refused() {
    let schema = Schema::new();
    let port = PostgresAddress::parse(schema.url()).unwrap().port();
    let proxy = Proxy::start(port);
    let here = PostgresStore::open(with_short_leases(&schema, &proxy.url(schema.url()))).unwrap();
    let there = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    let mut writer = Writer::begin(&here, &still_clock(1));
    let lock = now(here.claim(writer.id)).unwrap().unwrap();
    writer.say(&here, "while it holds the lock");
    proxy.silence(true);
    let deadline = Instant::now() + LEASE * 20;
    let taken = loop {
        assert!(Instant::now() < deadline, "the lock does not end");
        if let Some(taken) = now(there.claim(writer.id)).unwrap() {
            break taken;
        }
        std::thread::sleep(LEASE / 20);
    };
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
    let here = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    let there = PostgresStore::open(with_short_leases(&schema, schema.url())).unwrap();
    let writer = Writer::begin(&here, &still_clock(1));
    let mut claim = here.claim(writer.id);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(claim.as_mut().poll(&mut context).is_pending());
    drop(claim);
    let deadline = Instant::now() + LEASE * 20;
    while !row(&there, writer.id).open {
        assert!(Instant::now() < deadline, "the lock was not taken");
    }
    while now(there.claim(writer.id)).unwrap().is_none() {
        assert!(Instant::now() < deadline, "the lock does not end");
        std::thread::sleep(LEASE / 20);
    }
}
