//! Databases that cannot be opened, and what the error says.

use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::Page;
use tertulia_store::postgres::{PostgresAddress, PostgresStore};
use tertulia_store::{Maintenance, NewSession, Store, StoreError};
use tertulia_testkit::ask::{assert_log, everything, now};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human};
use tertulia_testkit::postgres::{Schema, TestServer, options, sql};

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let schema = Schema::new();
    let writer = Writer::begin(&schema.open_store().unwrap(), &still_clock(1));
    schema.sql("UPDATE tertulia_store SET format = 99");
    let refused = schema.open_store().unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::NewerFormat {
                found: 99,
                known: 1,
                ..
            }
        ),
        "{refused}"
    );
    schema.sql("UPDATE tertulia_store SET format = 1");
    assert_log(&schema.open_store().unwrap(), &writer);
}

#[test]
fn a_schema_of_something_else_is_left_alone() {
    let check = |statement: &str, words: &str| {
        let schema = Schema::new();
        schema.sql(statement);
        let refused = schema.open_store().unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, StoreError::NotAStore { .. }), "{text}");
        assert!(text.contains(words), "{text}");
        let tables = schema.sql(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()",
        );
        assert_eq!(tables[0][0].as_deref(), Some("1"), "{statement}");
    };
    check("CREATE TABLE invoices(id int)", "invoices");
    check("CREATE TABLE tertulia_store(colour text)", "tertulia_store");
}

/// Tables without their row were left by a program that was killed while it made them.
#[test]
fn an_interrupted_beginning_is_completed() {
    let schema = Schema::new();
    drop(schema.open_store().unwrap());
    schema.sql("DELETE FROM tertulia_store; DROP TABLE tertulia_lease, tertulia_snapshot");
    let store = schema.open_store().unwrap();
    let writer = Writer::begin(&store, &still_clock(1));
    assert!(now(store.claim(writer.id)).unwrap().is_some());
}

#[test]
fn a_server_that_is_not_there_is_named_without_the_password() {
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let url = format!("postgres://ann:hunter2@127.0.0.1:{port}/notes");
    let scratch = tempfile::tempdir().unwrap();
    let refused = PostgresStore::open(options(&url, scratch.path())).unwrap_err();
    let text = format!("{refused} {refused:?}");
    assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_password_is_needed_and_sent() {
    let schema = Schema::new();
    let server = TestServer::shared().url();
    let _ = tertulia_testkit::postgres::try_sql(
        server,
        "CREATE ROLE with_password LOGIN PASSWORD 'hunter2'",
    );
    let name = schema.url().rsplit_once("%3D").unwrap().1;
    sql(
        server,
        &format!("GRANT ALL ON SCHEMA {name} TO with_password"),
    );
    let open = |user: &str| {
        let url = schema.url().replace("postgres@", &format!("{user}@"));
        PostgresStore::open(options(&url, schema.scratch().path()))
    };
    for user in ["with_password", "with_password:wrong"] {
        let refused = open(user).unwrap_err();
        let text = format!("{refused:?}");
        assert!(text.contains("password"), "{text}");
        assert!(!text.contains("wrong"), "{text}");
    }
    let store = open("with_password:hunter2").unwrap();
    let info = now(store.info()).unwrap();
    assert!(!info.place.contains("hunter2"), "{info:?}");
    assert!(info.server.unwrap().starts_with("PostgreSQL "));
    assert!(info.latency_ms.is_some_and(|latency| latency > 0.0));
    let address = PostgresAddress::parse(schema.url()).unwrap();
    assert!(address.or_password(Some("x".to_owned())).has_password());
}

/// A role that may only read can read, and its writes are refused in words.
#[test]
fn a_role_that_may_only_read() {
    let schema = Schema::new();
    let mut writer = Writer::begin(&schema.open_store().unwrap(), &still_clock(1));
    let server = TestServer::shared().url();
    let _ = tertulia_testkit::postgres::try_sql(server, "CREATE ROLE only_reads LOGIN");
    let name = schema.url().rsplit_once("%3D").unwrap().1;
    sql(
        server,
        &format!(
            "GRANT USAGE ON SCHEMA {name} TO only_reads;
             GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO only_reads"
        ),
    );
    let url = schema.url().replace("postgres@", "only_reads@");
    let store = PostgresStore::open(options(&url, schema.scratch().path())).unwrap();
    assert_log(&store, &writer);
    let refused = writer.try_append(&store, vec![human("no")]);
    assert!(
        matches!(refused, Err(StoreError::ReadOnly { .. })),
        "{refused:?}"
    );
}

/// A role that may not even read is told that, and not that it may not write.
#[test]
fn a_role_that_may_not_read() {
    let schema = Schema::new();
    drop(schema.open_store().unwrap());
    let server = TestServer::shared().url();
    let _ = tertulia_testkit::postgres::try_sql(server, "CREATE ROLE reads_nothing LOGIN");
    let name = schema.url().rsplit_once("%3D").unwrap().1;
    schema.sql(&format!("GRANT USAGE ON SCHEMA {name} TO reads_nothing"));
    let url = schema.url().replace("postgres@", "reads_nothing@");
    let open = || PostgresStore::open(options(&url, schema.scratch().path()));
    let check = |refused: StoreError| {
        let text = refused.to_string();
        assert!(text.ends_with(" may not be read"), "{refused:?}");
        assert!(format!("{refused:?}").contains("permission denied"));
    };
    check(open().unwrap_err());
    schema.sql("GRANT SELECT ON tertulia_store TO reads_nothing");
    let store = open().unwrap();
    check(now(store.list(&everything(), &Page::first(10))).unwrap_err());
    let writer = Writer::named(SessionId::new(uuid::Uuid::from_u128(7)), &still_clock(1));
    let refused = now(store.read(writer.id, Seq::START, 1)).unwrap_err();
    check(refused);
    let new = NewSession {
        id: writer.id,
        base: None,
        entries: writer.chain(vec![human("no")]),
    };
    let refused = now(store.create(&new));
    assert!(
        matches!(refused, Err(StoreError::ReadOnly { .. })),
        "{refused:?}"
    );
}

/// A line that does not fit into one row comes back whole.
#[test]
fn long_lines_are_kept_in_parts() {
    let schema = Schema::new();
    let store = schema.open_store().unwrap();
    let mut writer = Writer::begin(&store, &still_clock(1));
    writer.say(&store, &"x".repeat(1_000_000));
    writer.say(&store, &"é".repeat(500_000));
    assert_log(&store, &writer);
    let parts = schema.sql(
        "SELECT count(*), max(length(line)) FROM tertulia_part
         UNION ALL SELECT count(*), max(length(line)) FROM tertulia_entry",
    );
    assert_eq!(parts[0][0].as_deref(), Some("2"));
    assert_eq!(parts[1][1].as_deref(), Some("524288"));
}
