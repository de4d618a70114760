//! Messages typed ahead: seen, edited in their place, removed; commands that have to wait.

use tertulia_core::entry::Intent;
use tertulia_engine::event::QueuedMember;

use super::*;

/// The prompt is saved, and the turn ends.
fn answered(play: &mut Play, prompt: &str) -> Vec<String> {
    play.durable(message(person(), prompt));
    play.over()
}

#[test]
fn a_queued_message_is_edited_in_its_place() {
    let mut play = Play::asked();
    play.keys("one<enter>two<enter>three<enter>");
    play.sees("queued: one (+2) · ↑ edit");
    play.keys("<up>");
    assert_eq!(
        (play.input().as_str(), play.queued()),
        ("three", vec!["one", "two"])
    );
    play.sees("editing queued message 3 of 3 · Enter keep · Ctrl+X remove");
    play.keys("<up>!");
    assert_eq!(
        (play.input().as_str(), play.queued()),
        ("two!", vec!["one", "three"])
    );
    assert_eq!(play.keys("<enter>"), ["remember two!"]);
    assert_eq!(
        (play.input().as_str(), play.queued()),
        ("", vec!["one", "two!", "three"])
    );
    // Nothing is said twice.
    assert_eq!(play.over(), ["say one"]);
    assert_eq!(answered(&mut play, "one"), ["say two!"]);
    assert_eq!(answered(&mut play, "two!"), ["say three"]);
    assert_eq!(answered(&mut play, "three"), [""; 0]);
}

#[test]
fn the_way_through_the_queue_changes_nothing() {
    let mut play = Play::asked();
    play.keys("one<enter>two<enter><up><up><up><up>");
    assert_eq!(play.input(), "one");
    play.keys("<down>");
    assert_eq!(play.input(), "two");
    play.keys("<down>");
    assert_eq!(
        (play.input().as_str(), play.queued()),
        ("", vec!["one", "two"])
    );
    // A draft is no queued message, and ↑ recalls the history as before.
    play.keys("draft<up>");
    assert_eq!(
        (play.input().as_str(), play.queued()),
        ("two", vec!["one", "two"])
    );
}

#[test]
fn a_queued_message_is_removed() {
    let mut play = Play::asked();
    play.keys("one<enter>two<enter><up><^x>");
    assert_eq!((play.input().as_str(), play.queued()), ("", vec!["one"]));
    play.sees("removed from the queue");
    play.keys("<up><^u>");
    assert!(play.queued().is_empty() && play.state.ahead.is_empty());
    assert_eq!(play.over(), [""; 0]);
}

#[test]
fn those_behind_the_edited_one_wait_for_it() {
    let mut play = Play::asked();
    play.keys("one<enter>two<enter><up><up>");
    assert_eq!(play.over(), [""; 0]);
    assert_eq!(play.keys("!<enter>"), ["remember one!", "say one!"]);
    assert_eq!(answered(&mut play, "one!"), ["say two"]);
    // The one before it does not.
    let mut play = Play::asked();
    play.keys("one<enter>two<enter><up>");
    assert_eq!(play.over(), ["say one"]);
    play.keys("!<enter>");
    assert_eq!(answered(&mut play, "one"), ["say two!"]);
    // Without the edited one, the queue goes on at once.
    let mut play = Play::asked();
    play.keys("one<enter>two<enter><up><up>");
    play.over();
    assert_eq!(play.keys("<^x>"), ["say two"]);
}

#[test]
fn an_edited_message_comes_back_with_the_others() {
    let mut play = Play::asked();
    play.keys("one<enter>two<enter>three<enter><up><up>!<esc>");
    assert_eq!(play.input(), "one\ntwo!\nthree");
    assert!(play.state.ahead.is_empty());
    let mut play = Play::asked();
    play.keys("one<enter>two<enter><up><up>");
    play.over();
    play.keys("<^c>");
    assert_eq!(play.input(), "one\ntwo");
}

#[test]
fn the_queue_is_told() {
    let mut play = Play::asked();
    play.keys("one<enter>/queue<enter>");
    play.sees("you: one");
    let mut play = Play::talked();
    play.keys("/queue<enter>");
    play.sees("the queue is empty");
}

#[test]
fn a_command_that_has_to_wait_stays_in_the_input() {
    for command in [
        "/new",
        "/compact",
        "/fork 3",
        "/rewind",
        "/resume abc",
        "/model x",
    ] {
        let mut play = Play::asked();
        play.paste(command);
        assert_eq!(play.keys("<enter>"), [""; 0], "{command}");
        assert_eq!(play.input(), command);
        let name = command.split(' ').next().unwrap();
        play.sees(&format!("demo is answering; Esc first, then {name}"));
        assert!(!play.state.is_leaving());
    }
}

#[test]
fn the_members_that_wait_stay_beside_an_own_message() {
    let mut play = Play::open(info(Kind::Team));
    play.keys("hello [NEXT: ben, cleo]<enter>");
    play.state.queue = crate::queue::Queue::new(vec![QueuedMember {
        name: "Cleo".to_owned(),
        intent: Intent::P2,
        is_you: false,
    }]);
    play.sees("next: Cleo");
    play.keys("one more<enter>");
    play.sees("next: Cleo");
    play.sees("queued: one more");
}
