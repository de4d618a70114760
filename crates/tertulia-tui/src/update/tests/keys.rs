//! Keys that cancel, leave, scroll and write.

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::*;
use crate::state::Layer;

fn mouse(play: &mut Play, kind: MouseEventKind, row: u16) -> Vec<String> {
    play.event(Event::Mouse(MouseEvent {
        kind,
        column: 3,
        row,
        modifiers: KeyModifiers::NONE,
    }))
}

#[test]
fn escape_stops_whoever_answers() {
    let mut play = Play::asked();
    assert_eq!(play.keys("<esc>"), ["cancel"]);
    assert!(play.state.is_running(), "until they have stopped");
    play.durable(Message {
        interrupted: true,
        ..message(agent("demo"), "Because")
    });
    assert_eq!(play.over(), [""; 0]);
    play.sees("stopped");
    // No agent answers now: Esc Esc opens the rewind list.
    play.wait(5_000);
    assert_eq!(play.keys("<esc>"), [""; 0]);
    play.sees("Esc again");
    assert_eq!(play.keys("<esc>"), ["moments"]);
    assert!(matches!(play.state.overlays[..], [Layer::Rewind(_)]));
}

/// The first one ends insert mode only where nothing has to be stopped.
#[test]
fn escape_stops_an_answer_in_vim_mode_too() {
    let mut play = Play::asked();
    play.state.input.set_vim(true);
    assert_eq!(play.keys("<esc>"), ["cancel"]);
    assert!(!play.state.input.is_normal());
    play.over();
    assert_eq!(play.keys("<esc>"), [""; 0]);
    assert!(play.state.input.is_normal());
}

#[test]
fn two_escapes_far_apart_are_two() {
    let mut play = Play::talked();
    play.keys("<esc>");
    play.wait(900);
    assert_eq!(play.keys("<esc>"), [""; 0]);
    assert!(play.state.overlays.is_empty());
    play.keys("x<esc>");
    assert!(play.state.overlays.is_empty(), "a letter came between");
    // During a turn the second Esc does not open the rewind list.
    let mut play = Play::asked();
    assert_eq!(play.keys("<esc>"), ["cancel"]);
    assert_eq!(play.keys("<esc>"), [""; 0]);
    assert!(play.state.overlays.is_empty());
}

#[test]
fn escape_closes_what_is_offered_first() {
    let mut play = Play::asked();
    play.keys("/re");
    play.sees("/rename");
    assert_eq!(play.keys("<esc>"), [""; 0]);
    play.sees_no("/rename");
    assert_eq!(play.keys("<^r>pars<esc>"), [""; 0]);
    assert_eq!(play.input(), "/re");
    assert_eq!(play.keys("<esc>"), ["cancel"]);
}

#[test]
fn control_c_stops_empties_and_leaves() {
    let mut play = Play::asked();
    assert_eq!(play.keys("half<^c>"), ["cancel"]);
    assert_eq!(
        play.input(),
        "half",
        "it stopped somebody, and that is enough"
    );
    // The unsent text goes to the input history.
    assert_eq!(play.keys("<^c>"), ["cancel", "leave", "remember half"]);
    assert_eq!(play.state.signal, Some(2));
    assert_eq!(play.keys("<^c>"), ["insist"]);

    let mut play = Play::talked();
    assert_eq!(play.keys("half<^c>"), [""; 0]);
    play.sees("Ctrl+C again to exit");
    assert!(play.input().is_empty());
    play.wait(2_100);
    assert_eq!(
        play.keys("<^c>"),
        [""; 0],
        "too late: it is the first again"
    );
    play.keys("x");
    assert_eq!(play.keys("<^c>"), [""; 0], "a letter came between");
    assert_eq!(play.keys("<^c>"), ["cancel", "leave"]);

    // In reading mode Ctrl+C does not clear the input.
    let mut play = Play::talked();
    play.keys("half<^o><^c>");
    assert_eq!(play.input(), "half");
}

#[test]
fn control_d_leaves_where_nothing_is_written() {
    let mut play = Play::talked();
    assert_eq!(play.keys("x<left><^d>"), [""; 0]);
    assert!(play.input().is_empty() && !play.state.is_leaving());
    assert_eq!(play.keys("<^d>"), ["cancel", "leave"]);
    assert_eq!((play.state.signal, play.state.next.clone()), (None, None));
    assert_eq!(play.keys("<^d>"), ["insist"]);
    let mut play = Play::asked();
    assert_eq!(play.keys("<^d>"), ["cancel", "leave"]);
}

#[test]
fn a_signal_ends_everything_also_on_the_way_to_another_talk() {
    let mut play = Play::asked();
    assert_eq!(play.event(Event::Signal(15)), ["cancel", "leave"]);
    assert_eq!(play.state.signal, Some(15));
    let mut play = Play::talked();
    play.keys("/new<enter>");
    assert!(play.state.next.is_some());
    assert_eq!(play.event(Event::Signal(15)), ["insist"]);
    assert_eq!((play.state.signal, &play.state.next), (Some(15), &None));
    // A lost terminal does not hurry the exit, but there is no next session either.
    for event in [Event::Unplugged, Event::Signal(1)] {
        let mut play = Play::talked();
        play.keys("/new<enter>");
        assert_eq!(play.event(event), [""; 0]);
        assert_eq!((play.state.signal, &play.state.next), (Some(1), &None));
    }
    let mut play = Play::talked();
    assert_eq!(play.event(Event::Unplugged), ["cancel", "leave"]);
    assert_eq!(play.event(Event::Signal(1)), [""; 0]);
    assert_eq!(play.state.signal, Some(1));
}

#[test]
fn words_that_were_typed_meanwhile_are_said_in_their_order() {
    let mut play = Play::asked();
    assert_eq!(play.keys("one<enter>"), ["remember one"]);
    assert_eq!(play.keys("two<enter>"), ["remember two"]);
    assert_eq!(play.keys("thr"), [""; 0]);
    assert_eq!(play.over(), ["say one"]);
    play.durable(message(person(), "one"));
    assert_eq!(play.over(), ["say two"]);
    play.durable(message(person(), "two"));
    assert_eq!(play.over(), [""; 0]);
    assert_eq!(play.input(), "thr");
    // Also before the session is open.
    let mut play = Play::new(info(Kind::Chat));
    assert_eq!(play.keys("first<enter>"), ["remember first"]);
    assert_eq!(play.opened(), ["say first"]);
}

#[test]
fn words_come_back_when_somebody_is_stopped() {
    let mut play = Play::asked();
    play.keys("one<enter>two<enter>thr<esc>");
    assert_eq!(play.input(), "one\ntwo\nthr");
    assert!(play.state.ahead.is_empty());
    assert_eq!(play.over(), [""; 0]);
    assert_eq!(play.input(), "one\ntwo\nthr");
    // A message sent between the cancellation and the end of the turn comes back too.
    let mut play = Play::asked();
    play.keys("<esc>late<enter>");
    assert_eq!(play.over(), [""; 0]);
    assert_eq!(play.input(), "late");
    // After leaving, the queued text is available for the next session.
    let mut play = Play::asked();
    play.keys("one<enter>tw");
    play.event(Event::Signal(15));
    assert_eq!(play.input(), "one\ntw");
}

#[test]
fn nothing_is_lost_between_two_talks() {
    let mut play = Play::talked();
    play.keys("/new<enter>");
    assert_eq!(play.keys("hello<enter>"), [""; 0]);
    assert_eq!(play.input(), "hello");
    play.keys("<^u>/tree<enter>");
    assert_eq!(play.input(), "/tree");
    assert_eq!(play.keys("<^u>/exit<enter>"), ["insist"]);
    play.live(gone());
    assert!(play.state.is_over() && play.state.ahead.is_empty());
}

#[test]
fn pages_are_turned_and_the_wheel_scrolls() {
    let mut play = Play::chat();
    for number in 0..12 {
        play.turn(&format!("question {number}"), "yes\n\nno\n\nmaybe");
    }
    play.sees("question 11");
    play.keys("<pgup>");
    play.sees_no("question 11");
    play.text("more");
    play.sees("3 new lines · Ctrl+End");
    play.keys("<pgdn><pgdn>");
    play.sees("question 11");
    mouse(&mut play, MouseEventKind::ScrollUp, 5);
    mouse(&mut play, MouseEventKind::ScrollUp, 5);
    play.sees_no("more");
    // Sending a message scrolls to the end.
    play.over();
    play.keys("now<enter>");
    play.sees("more");
}

#[test]
fn what_is_dragged_over_is_copied() {
    let mut play = Play::talked();
    let line = |play: &Play, text: &str| {
        let at = play.seen().lines().position(|line| line.contains(text));
        u16::try_from(at.unwrap()).unwrap()
    };
    let row = line(&play, "Why is it slow");
    let button = MouseButton::Left;
    mouse(&mut play, MouseEventKind::Down(button), row);
    mouse(&mut play, MouseEventKind::Drag(button), row + 1);
    let copied = mouse(&mut play, MouseEventKind::Up(button), row + 1);
    assert!(copied[0].contains("Why is it slow?"), "{copied:?}");
    // Below the transcript there is nothing to copy.
    mouse(&mut play, MouseEventKind::Down(button), 23);
    assert_eq!(mouse(&mut play, MouseEventKind::Up(button), 23), [""; 0]);
}

#[test]
fn the_wheel_moves_lists_and_answers_no_question() {
    let mut play = Play::talked();
    play.keys("<f1>");
    let before = play.seen();
    mouse(&mut play, MouseEventKind::ScrollDown, 5);
    assert_ne!(play.seen(), before);
    let mut play = Play::asked();
    play.live(LiveEvent::Permission(1, Box::new(request())));
    mouse(&mut play, MouseEventKind::ScrollUp, 5);
    assert!(play.input().is_empty(), "it is no arrow for the input");
    play.wait(400);
    mouse(&mut play, MouseEventKind::ScrollUp, 5);
    assert_eq!(play.keys("y<enter>"), ["verdict Yes"]);
}

#[test]
fn the_editor_gets_the_text_and_gives_it_back() {
    let mut play = Play::talked();
    assert_eq!(play.keys("half<^g>"), ["edit half"]);
    play.event(Event::Edited(Ok("a whole\nsentence\n".to_owned())));
    assert_eq!(play.input(), "a whole\nsentence");
    play.event(Event::Edited(Err("vi is not there".to_owned())));
    assert_eq!(play.input(), "a whole\nsentence");
}

#[test]
fn keys_of_every_screen_work_on_every_screen() {
    for mut play in [Play::new(info(Kind::Chat)), Play::talked(), Play::asked()] {
        for before in ["", "<f1>", "<esc>/sessions<enter>", "<^r>x"] {
            play.keys(before);
            let redrawn = play.keys("<^l>");
            assert_eq!(redrawn, ["redraw"], "{before}");
            assert_eq!(play.keys("<^z>"), ["suspend"], "{before}");
        }
    }
}

#[test]
fn a_key_that_comes_up_is_none() {
    let mut play = Play::talked();
    let mut up = key("x");
    up.kind = crossterm::event::KeyEventKind::Release;
    play.event(Event::Key(up));
    assert!(play.input().is_empty());
}

#[test]
fn a_click_takes_a_completion() {
    let mut play = Play::chat();
    play.keys("/re");
    let seen = play.at((80, 24));
    let row = seen.lines().position(|line| line.contains("/rename TITLE"));
    let row = u16::try_from(row.unwrap()).unwrap();
    mouse(&mut play, MouseEventKind::Down(MouseButton::Left), row);
    assert_eq!(play.input(), "/rename ");
}
