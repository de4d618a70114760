//! Damaged rows: a check finds them, and a repair keeps what is readable and the original.

use jiff::Timestamp;
use tertulia_core::entry::Head;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::Log;
use tertulia_store::postgres::PostgresStore;
use tertulia_store::{CheckMode, Maintenance, Progress, Report};
use tertulia_testkit::ask::{assert_log, assert_sound, everything, found, lines, list, look, now};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::Writer;
use tertulia_testkit::postgres::Schema;

/// A session with a fork and a session beside them.
struct Family {
    schema: Schema,
    store: PostgresStore,
    writer: Writer,
    fork: Writer,
    other: Writer,
}

impl Family {
    fn new() -> Family {
        let schema = Schema::new();
        let store = schema.open_store().unwrap();
        let mut writer = Writer::begin(&store, &still_clock(1));
        for turn in 0..6 {
            writer.say(&store, &format!("needle {turn}"));
        }
        let mut fork = writer.fork(&store, 5);
        fork.say(&store, "needle of the fork");
        let mut other = Writer::begin(&store, &still_clock(2));
        other.say(&store, "something else");
        Family {
            schema,
            store,
            writer,
            fork,
            other,
        }
    }

    fn sql(&self, statement: &str) {
        let id = self.writer.id;
        self.schema
            .sql(&statement.replace("SESSION", &format!("'{id}'")));
    }

    fn repair(&self) -> Report {
        let mode = CheckMode::Repair(Timestamp::UNIX_EPOCH);
        now(self.store.check(mode, &Progress::unseen())).unwrap()
    }

    fn readable(&self, id: SessionId) -> Log {
        let log = Log::read(id, Some(Head::START), Seq::START, &lines(&self.store, id));
        assert_eq!(log.damage, []);
        log
    }

    fn kept_rows(&self) -> u64 {
        let rows = self.schema.sql("SELECT count(*) FROM tertulia_damaged");
        rows[0][0].as_deref().unwrap().parse().unwrap()
    }
}

/// Entries that are missing or altered: the rest is salvaged, in the fork, too.
#[test]
fn lost_and_altered_entries() {
    let check = |statement: &str, lost: &str| {
        let family = Family::new();
        family.sql(statement);
        let report = look(&family.store);
        assert!(!report.damage.is_empty(), "{statement}: {report:?}");
        assert!(report.damage.iter().all(|it| it.session != family.other.id));
        let repaired = family.repair();
        assert!(!repaired.repaired.is_empty(), "{repaired:?}");
        let words = repaired.lost.join("\n");
        assert!(words.contains(lost), "{statement}: {words}");
        assert!(look(&family.store).is_clean(), "{statement}");
        assert!(family.kept_rows() > 0, "the original is kept");
        family.readable(family.writer.id);
        family.readable(family.fork.id);
        assert_log(&family.store, &family.other);
        assert_eq!(found(&family.store, "fork").len(), 1);
        assert_sound(&family.store);
        // A second repair has nothing to do.
        assert!(family.repair().repaired.is_empty());
    };
    check(
        "DELETE FROM tertulia_entry WHERE session = SESSION AND seq = 3",
        "entry 3",
    );
    check(
        "DELETE FROM tertulia_entry WHERE session = SESSION AND seq = 7",
        "entry 7",
    );
    check(
        "UPDATE tertulia_entry SET line = '\\x00ff' WHERE session = SESSION AND seq = 2",
        "entry 2",
    );
    check(
        "UPDATE tertulia_entry SET line = convert_to(replace(convert_from(line, 'UTF8'),
           'needle 1', 'noodle 1'), 'UTF8') WHERE session = SESSION AND seq = 3",
        "entry 3 is readable but not as it was written",
    );
}

/// Derived rows that are wrong or unreadable are derived anew, and nothing is lost.
#[test]
fn derived_rows() {
    let check = |statement: &str| {
        let family = Family::new();
        family.sql(statement);
        assert!(!look(&family.store).is_clean(), "{statement}");
        let report = family.repair();
        assert_eq!(report.lost, Vec::<String>::new(), "{statement}");
        assert!(look(&family.store).is_clean(), "{statement}");
        for writer in [&family.writer, &family.fork, &family.other] {
            assert_log(&family.store, writer);
        }
    };
    check("UPDATE tertulia_session SET row = 'no metadata' WHERE id = SESSION");
    check("UPDATE tertulia_session SET title = 5 WHERE id = SESSION");
    check("UPDATE tertulia_session SET head = 2 WHERE id = SESSION");
    check("UPDATE tertulia_session SET state = 1 WHERE id = SESSION");
    // The row is gone, the entries are not.
    check("DELETE FROM tertulia_session WHERE id = SESSION");
}

/// An unreadable row in the list hides no session.
#[test]
fn a_damaged_row_is_listed() {
    let family = Family::new();
    family.sql("UPDATE tertulia_session SET row = '' WHERE id = SESSION");
    let listing = list(&family.store, &everything());
    assert_eq!(listing.rows.len(), 3);
    assert_eq!(listing.damaged.len(), 1);
    assert_eq!(listing.damaged[0].id, Some(family.writer.id));
    family.sql("DELETE FROM tertulia_entry WHERE session = SESSION AND seq = 7");
    assert!(!list(&family.store, &everything()).damaged.is_empty());
}

/// Of a session of which nothing is readable only the copy remains; its fork keeps its own entries.
#[test]
fn nothing_left() {
    let family = Family::new();
    family.sql("UPDATE tertulia_entry SET line = '' WHERE session = SESSION");
    let report = family.repair();
    assert!(
        report
            .lost
            .iter()
            .any(|lost| lost.contains("all 7 entries are lost")),
        "{report:?}"
    );
    assert_eq!(list(&family.store, &everything()).rows.len(), 2);
    let log = family.readable(family.fork.id);
    assert!(log.entries.len() >= 2);
    assert!(family.kept_rows() >= 7);
    assert_log(&family.store, &family.other);
}

/// Moves entries so far away that no repair fills the gap.
const MOVED_AWAY: &str = r#"UPDATE tertulia_entry SET seq = seq + 200000, line = convert_to(replace(
             convert_from(line, 'UTF8'), '"seq":' || seq || ',',
             '"seq":' || (seq + 200000) || ','), 'UTF8')
           WHERE session = SESSION AND seq > 5"#;

/// No repair fills a gap of more than 100 000 entries, but reading gives what is behind it.
#[test]
fn a_log_that_a_repair_would_shorten_is_left_as_it_is() {
    let family = Family::new();
    family.sql(MOVED_AWAY);
    let other = family.other.id;
    family.schema.sql(&format!(
        "UPDATE tertulia_entry SET line = '\\x00ff' WHERE session = '{other}' AND seq = 2"
    ));
    let before = lines(&family.store, family.writer.id);
    assert_eq!(before.last().unwrap().seq, Seq(200_007));
    let report = family.repair();
    assert_eq!(lines(&family.store, family.writer.id), before);
    assert_log(&family.store, &family.fork);
    let named = format!("session {}: left as it is", family.writer.id);
    assert!(report.lost.iter().any(|it| it.starts_with(&named)));
    family.readable(other);
}

/// The fork of a log that is left as it is keeps what reading gives of the beginning that they share.
#[test]
fn a_fork_keeps_the_beginning_of_a_log_that_is_left_as_it_is() {
    let family = Family::new();
    family.sql(MOVED_AWAY);
    family.sql("UPDATE tertulia_entry SET line = '\\x00ff' WHERE session = SESSION AND seq = 5");
    let before = lines(&family.store, family.fork.id);
    let report = family.repair();
    assert!(lines(&family.store, family.fork.id) == before, "{report:?}");
    let named = format!("session {}: left as it is", family.fork.id);
    assert!(
        report.lost.iter().any(|it| it.starts_with(&named)),
        "{report:?}"
    );
}

/// What a repair cannot repair is named, whether or not it leaves a log as it is.
#[test]
fn what_is_still_damaged_is_named() {
    let check = |statement: &str| {
        let family = Family::new();
        family.sql(statement);
        let other = family.other.id;
        family.schema.sql(&format!(
            "UPDATE tertulia_session SET title = 5 WHERE id = '{other}';
             CREATE RULE stuck AS ON UPDATE TO tertulia_session WHERE old.id = '{other}'
             DO INSTEAD NOTHING"
        ));
        let report = family.repair();
        let named = format!("session {other}: its row in the list is not what its log says");
        assert!(
            report.lost.iter().any(|it| it.starts_with(&named)),
            "{statement}: {report:?}"
        );
    };
    check("SELECT 1");
    check(MOVED_AWAY);
}
