//! When the user is told that the session needs them.

use super::*;
use crate::notify::{Notify, Occasion, message};
use crate::view;

/// A session whose agent was prompted, under the default settings and with a command.
fn waiting() -> Play {
    let mut play = Play::asked();
    play.state.notify = Notify {
        command: vec!["tell-me".to_owned()],
        ..Notify::default()
    };
    play
}

fn permission(play: &mut Play) -> Vec<String> {
    play.live(LiveEvent::Permission(1, Box::new(request())))
}

#[test]
fn a_permission_calls_the_user_unless_they_look() {
    let line = "demo asks for permission";
    let message = message(id(1), Occasion::Permission, line, None);
    let command = format!("notify {message}");
    let all = ["ring", &command, "desktop demo asks for permission"];
    let mut play = waiting();
    assert_eq!(permission(&mut play), all);
    let mut play = waiting();
    play.event(Event::Focus(true));
    assert_eq!(permission(&mut play), [command.as_str()]);
    let mut play = waiting();
    play.event(Event::Focus(true));
    play.event(Event::Focus(false));
    assert_eq!(permission(&mut play), all);
    let mut play = waiting();
    play.state.notify = Notify::silent();
    assert_eq!(permission(&mut play), [""; 0]);
}

#[test]
fn the_end_of_a_long_turn_calls_the_user() {
    let ended = |milliseconds, play: &mut Play| {
        play.wait(milliseconds);
        let effects = play.over();
        effects
            .iter()
            .filter(|effect| !effect.starts_with("notify"))
            .count()
    };
    assert_eq!(ended(9_000, &mut waiting()), 0);
    assert_eq!(ended(11_000, &mut waiting()), 2);
    let mut play = waiting();
    play.event(Event::Focus(true));
    assert_eq!(ended(11_000, &mut play), 0, "the user sees it");
    let mut play = waiting();
    play.keys("<esc>");
    assert_eq!(ended(11_000, &mut play), 0, "the user stopped it");
    let mut play = waiting();
    play.keys("and then?<enter>");
    play.wait(11_000);
    assert_eq!(play.over(), ["say and then?"], "the next turn begins");
}

#[test]
fn the_window_is_named_after_the_session_and_its_state() {
    let mut play = Play::chat();
    assert_eq!(view::title::of(&play.state), "tertulia");
    play = Play::asked();
    assert_eq!(view::title::of(&play.state), "working · Why is it slow?");
    permission(&mut play);
    assert_eq!(view::title::of(&play.state), "needs you · Why is it slow?");
}
