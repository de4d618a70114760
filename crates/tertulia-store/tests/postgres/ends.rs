//! Ends of logs that one machine replaces while another one has them in its own search index.

use tertulia_store::Store;
use tertulia_store::postgres::PostgresStore;
use tertulia_testkit::ask::{assert_log, assert_sound, found};
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, human, renamed, tagged};
use tertulia_testkit::place::Place;
use tertulia_testkit::postgres::{Schema, options};
use tertulia_testkit::scratch::Scratch;

/// The index of another machine has the old end: as long as the new one, and longer.
#[test]
fn the_index_of_another_machine_follows() {
    let (schema, far) = (Schema::new(), Scratch::new());
    let here = schema.open();
    let there = PostgresStore::open(options(schema.url(), far.path())).unwrap();
    let mut base = Writer::begin(&*here, &still_clock(1));
    base.say(&*here, "hello");
    let mut fork = base.fork(&*here, 2);
    fork.append(&*here, vec![renamed("tomatoes")]);
    assert_eq!(found(&there, "tomatoes"), [(fork.id, 4)]);
    let ends = [
        (vec![renamed("potatoes")], "potatoes"),
        (
            vec![renamed("leek"), human("some leek"), tagged(&["x"], &[])],
            "leek",
        ),
    ];
    let mut before = "tomatoes";
    for (end, word) in ends {
        let count = end.len().min(2);
        fork.replace_end(&*here, 3, end).unwrap();
        assert_log(&there, &fork);
        for store in [&*here, &there as &dyn Store] {
            assert_eq!(found(store, before), [], "{before}");
            assert_eq!(found(store, word).len(), count, "{word}");
            assert_eq!(found(store, "hello").len(), 1);
        }
        before = word;
    }
    fork.append(&there, vec![human("needle")]);
    assert_log(&*here, &fork);
    assert_sound(&*here);
    assert_sound(&there);
}
