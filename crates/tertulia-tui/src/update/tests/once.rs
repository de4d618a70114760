//! Each event is shown once, and each request is sent once.

use tertulia_engine::error::ErrorKind;

use super::*;
use crate::error::TuiError;
use crate::item::Tone;
use crate::test_support::said;

fn count(play: &Play, text: &str) -> usize {
    let seen = play.seen();
    let (talk, _status) = seen.trim_end().rsplit_once('\n').unwrap();
    talk.matches(text).count()
}

#[test]
fn what_streams_becomes_the_message() {
    let mut play = Play::asked();
    play.text("Because of ");
    play.text("the disk.");
    assert_eq!(count(&play, "Because of the disk."), 1);
    // What was said is saved; the answer is not said yet.
    play.sees(" · saved");
    play.durable(message(agent("demo"), "Because of the disk."));
    assert_eq!(count(&play, "Because of the disk."), 1);
    play.over();
    play.sees("saved");
    // Two equal answers in a row are two messages.
    play.keys("again<enter>");
    play.text("Because of the disk.");
    play.durable(message(agent("demo"), "Because of the disk."));
    assert_eq!(count(&play, "Because of the disk."), 2);
}

#[test]
fn what_was_held_and_is_saved_later_is_there_once() {
    let mut play = Play::chat();
    play.keys("hello there<enter>");
    let question = message(person(), "hello there");
    let answer = message(agent("demo"), "good day");
    play.live(LiveEvent::Session(SessionEvent::Held {
        message: Box::new(question.clone()),
    }));
    play.text("good day");
    play.live(LiveEvent::Session(SessionEvent::Held {
        message: Box::new(answer.clone()),
    }));
    play.sees("UNSAVED");
    play.durable(question);
    play.sees("UNSAVED");
    play.durable(answer);
    assert_eq!(count(&play, "hello there"), 1);
    assert_eq!(count(&play, "good day"), 1);
    play.sees_no("UNSAVED");
    play.over();
    play.turn("and now?", "now it is written at once");
    assert_eq!(count(&play, "and now?"), 1);
    assert_eq!(play.state.meta.as_ref().unwrap().messages, 4);
}

#[test]
fn what_never_became_a_message_does_not_go_on() {
    let mut play = Play::asked();
    play.text("Because of");
    play.over();
    assert!(!play.state.transcript.is_streaming());
    play.keys("what?<enter>");
    play.text("Another thing");
    play.sees_no("Because ofAnother");
    play.sees("Another thing");
}

#[test]
fn a_talk_asks_for_what_it_needs_once() {
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(meta(1, 1_000))),
        ..info(Kind::Chat)
    });
    assert_eq!(play.wait(10), [""; 0], "not before it is open");
    let asked = play.opened();
    assert_eq!(asked, ["load Before { seq: Seq(1001), count: 400 }"]);
    play.text("meanwhile");
    assert_eq!(play.wait(100), [""; 0]);
    assert_eq!(play.keys("x<pgup>"), [""; 0]);
    play.at((120, 40));
    let wanted = Wanted::Before {
        seq: Seq(1001),
        count: 400,
    };
    let items =
        (601..=1000).map(|seq| said(seq, "You", SpeakerKind::Human, 9, &format!("words {seq}")));
    let items: Vec<Item> = items.collect();
    let answer = |loaded| Answer::Transcript {
        session: id(1),
        wanted,
        loaded,
    };
    let first = Loaded {
        wanted,
        items: items.clone(),
        more_before: true,
        more_after: false,
    };
    assert_eq!(play.answer(answer(Ok(first.clone()))), [""; 0]);
    play.keys("<end>");
    assert_eq!(count(&play, "words 1000"), 1);
    // The same answer again is ignored.
    play.answer(answer(Ok(first)));
    assert_eq!(count(&play, "words 1000"), 1);
    assert_eq!(count(&play, "restored"), 1);
}

#[test]
fn what_cannot_be_loaded_is_told_and_not_asked_for_again_and_again() {
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(meta(1, 10))),
        ..info(Kind::Chat)
    });
    assert_eq!(play.opened().len(), 1);
    let wanted = Wanted::Before {
        seq: Seq(11),
        count: 400,
    };
    let refused = play.answer(Answer::Transcript {
        session: id(1),
        wanted,
        loaded: Err(TuiError {
            kind: ErrorKind::Failed,
            message: "the disk is gone".to_owned(),
            hints: Vec::new(),
        }),
    });
    assert_eq!(refused, [""; 0]);
    play.sees("the disk is gone");
    assert_eq!(play.wait(100), [""; 0]);
    assert_eq!(play.keys("<pgup>").len(), 1, "whoever moves asks again");
}

#[test]
fn news_after_leaving_changes_no_way() {
    let mut play = Play::asked();
    play.keys("<^d>");
    play.text("more");
    play.durable(message(agent("demo"), "more"));
    play.live(LiveEvent::Session(SessionEvent::notice(
        Tone::Warning,
        "late".to_owned(),
    )));
    assert_eq!(play.over(), [""; 0]);
    assert_eq!(play.state.phase, Phase::Leaving);
    // A late answer neither switches the session nor interrupts saving.
    let row = crate::test_support::session(5, "Release notes", 50);
    let found = Answer::Found("notes".to_owned(), Ok(Box::new(row)));
    assert_eq!(play.answer(found), [""; 0]);
    assert_eq!(play.state.next, None);
    play.live(gone());
    assert!(play.state.is_over());
}

#[test]
fn a_talk_that_cannot_be_opened_is_over() {
    use crate::error::TuiError;
    use tertulia_engine::error::ErrorKind;
    let mut play = Play::new(info(Kind::Chat));
    let error = TuiError::new(ErrorKind::Failed, "somebody else has it open");
    play.live(LiveEvent::NotOpened(Box::new(error)));
    play.live(gone());
    assert!(play.state.is_over() && play.state.broken.is_some() && !play.state.has_begun);
}

#[test]
fn a_session_goes_on_under_the_id_that_the_talk_tells() {
    let mut play = Play::talked();
    let floor = SessionState {
        id: id(8),
        ..play.floor()
    };
    play.live(LiveEvent::Session(SessionEvent::Over {
        floor: Box::new(floor),
    }));
    assert_eq!(play.paste("/tree"), [""; 0]);
    let effects = play.effects(Event::Key(key("enter")));
    let asked = effects.iter().any(|effect| {
        matches!(effect, Effect::Ask(request) if matches!(**request, Request::Tree(of) if of == id(8)))
    });
    assert!(asked, "{effects:?}");
}

#[test]
fn time_passes_only_where_something_is_seen_of_it() {
    let mut play = Play::talked();
    play.wait(60_000);
    assert_eq!(play.state.due(play.now()), None);
    play.keys("go<enter>");
    let due = play.state.due(play.now()).unwrap();
    assert!(due <= Duration::from_millis(100), "{due:?}");
    play.over();
    play.wait(60_000);
    assert_eq!(play.state.due(play.now()), None);
    play.keys("/nonsense<enter>");
    assert!(play.state.due(play.now()).is_some());
}
