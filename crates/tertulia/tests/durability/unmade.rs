//! A store that cannot be created acknowledges nothing: messages are reported as unsaved and
//! written to a file.

use serde_json::Value;

use super::full::{Small, bare_world, bring_back, may_mount, rescued, said};
use super::world::{Backend, Ran};

/// Returns the events of this type.
fn events(ran: &Ran, kind: &str) -> Vec<Value> {
    let lines = ran.out.lines().map(serde_json::from_str::<Value>);
    let events = lines.map(|line| line.unwrap_or_else(|error| panic!("{error}: {ran:?}")));
    events.filter(|event| event["type"] == kind).collect()
}

fn first_turn(backend: Backend, test: &str, spoil: impl Fn(&Small), mend: impl Fn(&Small)) {
    if !may_mount(test) {
        return;
    }
    let (small, _root, place) = bare_world(backend);
    spoil(&small);
    let stream = ["--output-format", "stream-json"];
    let ran = place.run(&[&["chat", "-p", "echo precious"][..], &stream].concat());
    assert!(!ran.broke(), "{ran:?}");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(events(&ran, "message"), Vec::<Value>::new(), "{ran:?}");
    assert_eq!(events(&ran, "turn.completed").len(), 1, "{ran:?}");
    let first = ran.err.lines().next().unwrap_or_default();
    assert!(
        first.contains("not saved"),
        "it is not said at once: {ran:?}"
    );
    assert!(!ran.err.contains("Resume:"), "{ran:?}");
    let file = rescued(&place, &ran);
    mend(&small);
    bring_back(&place, &file);
    assert_eq!(said(&place, "echo precious"), 1);
    assert_eq!(said(&place, "precious"), 1);
    place.assert_sound("with a store");
}

fn full(backend: Backend, test: &str) {
    first_turn(backend, test, |small| small.fill(0), Small::make_room);
}

fn unwritable(backend: Backend, test: &str) {
    first_turn(
        backend,
        test,
        |small| small.remount("ro"),
        |small| small.remount("rw"),
    );
}

#[test]
fn sqlite_without_room_acknowledges_nothing() {
    full(
        Backend::Sqlite,
        "unmade::sqlite_without_room_acknowledges_nothing",
    );
}

#[test]
fn files_without_room_acknowledge_nothing() {
    full(
        Backend::Files,
        "unmade::files_without_room_acknowledge_nothing",
    );
}

#[test]
fn sqlite_at_an_unwritable_place_acknowledges_nothing() {
    let test = "unmade::sqlite_at_an_unwritable_place_acknowledges_nothing";
    unwritable(Backend::Sqlite, test);
}

#[test]
fn files_at_an_unwritable_place_acknowledge_nothing() {
    let test = "unmade::files_at_an_unwritable_place_acknowledge_nothing";
    unwritable(Backend::Files, test);
}

/// The store is created as soon as possible, in the same session.
#[test]
fn room_that_returns_in_the_middle_is_used() {
    if !may_mount("unmade::room_that_returns_in_the_middle_is_used") {
        return;
    }
    for backend in [Backend::Sqlite, Backend::Files] {
        let (small, _root, place) = bare_world(backend);
        small.fill(0);
        let settings = place.home.join(".config/tertulia");
        std::fs::create_dir_all(&settings).unwrap();
        let agent = format!(
            "[agents.cleaner]\ntype = \"command\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"rm {}; echo cleaned\"]\nconfine = false\n",
            small.filler().display()
        );
        std::fs::write(settings.join("config.toml"), agent).unwrap();
        let args = ["chat", "-p", "my words", "--agent", "cleaner"];
        let ran = place.run(&[&args[..], &["--output-format", "stream-json"]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let durable = events(&ran, "message");
        assert_eq!(durable.len(), 2, "both are durable in the end: {ran:?}");
        assert_eq!(said(&place, "my words"), 1, "{ran:?}");
        assert!(ran.err.contains("Resume:"), "{ran:?}");
        place.assert_sound("with room again");
    }
}
