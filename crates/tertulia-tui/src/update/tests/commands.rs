//! Effects of every command, also during a turn and before the first message.

use tertulia_core::entry::Intent;
use tertulia_engine::error::ErrorKind;
use tertulia_engine::event::QueuedMember;
use tertulia_engine::notice::COMPACTED;

use super::*;
use crate::error::TuiError;
use crate::item::Tone;
use crate::slash;
use crate::state::Layer;

/// Effects of a command besides being added to the input history.
fn wanted(play: &mut Play, command: &str) -> Vec<String> {
    play.paste(command);
    let mut wanted = play.keys("<enter>");
    // A command that has to wait stays in the input.
    if play.input().is_empty() {
        assert_eq!(wanted.remove(0), format!("remember {command}"));
    }
    wanted
}

/// Commands that only send a request to the store service, at any time.
const ASKING: &[(&str, &str)] = &[
    ("/rename A better title", "rename A better title"),
    ("/tag +a -b", r#"tag +["a"] -["b"]"#),
    ("/export", "export None None"),
    (
        "/export json talk.json",
        r#"export Some(Json) Some("talk.json")"#,
    ),
    ("/compare yesterday", "compare yesterday"),
    ("/tree", "tree"),
    ("/stats", "stats"),
    ("/undo", "undo"),
    ("/agents", "agents"),
    ("/team list", "teams"),
];

/// Commands that are not possible during a turn.
const WAITING: &[(&str, &str)] = &[
    ("/fork", "fork None"),
    ("/fork 3", "fork Some(3)"),
    ("/rewind 3", "words 3"),
    ("/rewind", "moments"),
    ("/resume yesterday", "find yesterday"),
    ("/retry", "say "),
    ("/compact", "compact"),
    ("/as ben", r#"as Some("ben")"#),
    ("/as", "as None"),
];

#[test]
fn commands_ask_for_what_they_need() {
    for (command, expected) in ASKING.iter().chain(WAITING) {
        let mut play = Play::talked();
        assert_eq!(wanted(&mut play, command), [*expected], "{command}");
        assert!(play.input().is_empty(), "{command}");
    }
    for (command, expected) in ASKING {
        let mut play = Play::asked();
        assert_eq!(wanted(&mut play, command), [*expected], "{command}");
        assert!(play.state.is_running());
    }
}

#[test]
fn some_wait_until_nobody_answers() {
    let changing = ["/new", "/model other", "/team deploy design.yaml"];
    for command in WAITING.iter().map(|(command, _)| *command).chain(changing) {
        let mut play = Play::asked();
        assert_eq!(wanted(&mut play, command), [""; 0], "{command}");
        play.sees("demo is answering; Esc first, then /");
        assert_eq!(play.input(), command);
        assert!(play.state.is_running() && !play.state.is_leaving());
    }
}

#[test]
fn some_need_something_that_was_said() {
    for command in [
        "/rename x",
        "/tag +a",
        "/fork",
        "/rewind",
        "/rewind 3",
        "/export",
        "/compare x",
        "/tree",
        "/stats",
    ] {
        let mut play = Play::chat();
        assert_eq!(wanted(&mut play, command), [""; 0], "{command}");
        play.sees("no messages yet");
    }
    // Esc Esc has nothing to rewind to either.
    let mut play = Play::chat();
    assert_eq!(play.keys("<esc><esc>"), [""; 0]);
    assert!(play.state.overlays.is_empty());
}

#[test]
fn some_open_something_at_any_time() {
    type Opened = fn(&Layer) -> bool;
    let opens: [(&str, Opened); 8] = [
        ("/help", |overlay| matches!(overlay, Layer::Help(_))),
        ("/sessions", |overlay| matches!(overlay, Layer::Picker(_))),
        ("/resume", |overlay| matches!(overlay, Layer::Picker(_))),
        ("/search lock", |overlay| {
            matches!(overlay, Layer::Search(_))
        }),
        ("/members", |overlay| matches!(overlay, Layer::Sheet(_))),
        ("/queue", |overlay| matches!(overlay, Layer::Sheet(_))),
        ("/task", |overlay| matches!(overlay, Layer::Sheet(_))),
        ("/info", |overlay| matches!(overlay, Layer::Sheet(_))),
    ];
    for (command, is_it) in opens {
        for mut play in [Play::chat(), Play::talked(), Play::asked()] {
            wanted(&mut play, command);
            assert!(is_it(&play.state.overlays[0]), "{command}");
            play.keys("<esc>");
            assert!(play.state.overlays.is_empty(), "{command}");
        }
    }
}

#[test]
fn some_lead_to_another_talk() {
    let next = |mut play: Play, command: &str| {
        assert_eq!(wanted(&mut play, command), ["cancel", "leave"], "{command}");
        assert_eq!(play.state.phase, Phase::Leaving);
        play.live(gone());
        assert!(play.state.is_over());
        play.state.next
    };
    let new = Next::New {
        agent: Some("demo".to_owned()),
        model: Some("demo-1".to_owned()),
    };
    assert_eq!(next(Play::talked(), "/new"), Some(new));
    let team = |config: &str, fresh| Next::Team {
        config: config.to_owned(),
        fresh,
    };
    let deployed = next(Play::talked(), "/team deploy design.yaml");
    assert_eq!(deployed, Some(team("design.yaml", false)));
    let anew = next(Play::open(info(Kind::Team)), "/new");
    assert_eq!(anew, Some(team("/teams/design.yaml", true)));
    let anew = next(Play::open(info(Kind::Pair)), "/new");
    assert_eq!(anew, Some(Next::Pair));
    for command in ["/end", "/exit", "/quit"] {
        assert_eq!(next(Play::talked(), command), None);
        assert_eq!(next(Play::asked(), command), None);
        assert_eq!(next(Play::chat(), command), None);
    }
}

#[test]
fn a_session_that_was_named_is_gone_on_with() {
    let mut play = Play::talked();
    wanted(&mut play, "/resume notes");
    let row = Box::new(crate::test_support::session(5, "Release notes", 50));
    let found = play.answer(Answer::Found("notes".to_owned(), Ok(row)));
    assert_eq!(found, ["cancel", "leave"]);
    assert_eq!(play.state.next, Some(Next::resume(id(5))));

    let mut play = Play::talked();
    wanted(&mut play, "/resume this");
    let row = Box::new(crate::test_support::session(1, "Fix the parser", 50));
    assert_eq!(
        play.answer(Answer::Found("this".to_owned(), Ok(row))),
        [""; 0]
    );
    play.sees("that is this session");

    let mut play = Play::talked();
    wanted(&mut play, "/resume nothing");
    let refusal = TuiError::new(ErrorKind::Failed, "there is no session 'nothing'");
    play.answer(Answer::Found("nothing".to_owned(), Err(refusal)));
    play.sees("there is no session 'nothing'");
    assert!(!play.state.is_leaving());
}

#[test]
fn models_are_for_one_agent_and_going_on_is_for_pairs() {
    let mut play = Play::open(info(Kind::Team));
    assert_eq!(wanted(&mut play, "/model other"), [""; 0]);
    play.sees("each member has its own agent and model");
    assert_eq!(wanted(&mut play, "/go"), [""; 0]);
    play.sees("/go is for pairs");
    let mut play = Play::open(info(Kind::Pair));
    assert_eq!(wanted(&mut play, "/go"), ["say "]);
    assert!(play.state.is_running());
    assert_eq!(wanted(&mut play, "/go"), [""; 0]);
}

#[test]
fn the_seat_of_who_left_is_given_away_on_the_screen() {
    let mut play = Play::open(info(Kind::Team));
    wanted(&mut play, "/team map dora=ben");
    play.sees("/team map is for a team's session");
    play.durable(message(person(), "hello"));
    play.paste("/team map dora");
    play.keys("<enter>");
    play.sees("needs OLD=NEW");
    play.keys("<^u>");
    assert_eq!(wanted(&mut play, "/team map dora=ben"), ["cancel", "leave"]);
    let Some(Next::Resume {
        team: Some(team), ..
    }) = play.state.next
    else {
        panic!("{:?}", play.state.next);
    };
    assert_eq!(team.config, "/teams/design.yaml");
    assert_eq!(team.map, ["dora=ben"]);
}

#[test]
fn speaking_as_somebody_is_an_order_like_any_other() {
    let mut play = Play::open(info(Kind::Team));
    assert_eq!(wanted(&mut play, "/as ann"), [r#"as Some("ann")"#]);
    // A message typed meanwhile is sent afterwards, by the new speaker.
    assert_eq!(play.keys("hello<enter>"), ["remember hello"]);
    assert_eq!(play.over(), ["say hello"]);
    assert!(play.state.is_running());
    play.durable(message(person(), "hello"));
    assert_eq!(play.over(), [""; 0]);
    assert!(!play.state.is_running());
    // Only people are offered: a user cannot speak as an agent.
    play.keys("/as ");
    play.sees("ann  Ann, a person");
    play.sees_no("cleo  ");
}

#[test]
fn what_is_no_command_is_not_lost() {
    let mut play = Play::talked();
    play.paste("/hlep");
    assert_eq!(play.keys("<enter>"), [""; 0]);
    play.sees("did you mean /help?");
    assert_eq!(play.input(), "/hlep");
    play.keys("<^u>");
    let said = play.keys("/usr/bin is a folder<enter>");
    assert_eq!(said[1..], ["say /usr/bin is a folder"]);
}

#[test]
fn every_command_of_the_table_is_tried_here() {
    let tried: Vec<&str> = ASKING
        .iter()
        .chain(WAITING)
        .map(|(command, _)| *command)
        .chain([
            "/help",
            "/sessions",
            "/search",
            "/members",
            "/queue",
            "/task",
            "/info",
            "/new",
            "/model",
            "/approve",
            "/permissions",
            "/end",
            "/exit",
            "/quit",
            "/go",
        ])
        .collect();
    for command in slash::COMMANDS {
        let name = |tried: &&&str| tried.split(' ').next() == Some(command.name);
        assert!(tried.iter().find(name).is_some(), "{}", command.name);
    }
}

#[test]
fn members_are_shown_with_role_agent_and_turn() {
    let mut play = Play::open(info(Kind::Team));
    play.keys("hello [NEXT: ben, cleo]<enter>");
    play.live(LiveEvent::Session(SessionEvent::Asked {
        speaker: Speaker {
            id: "m-ben".to_owned(),
            ..agent("Ben")
        },
    }));
    play.state.queue = crate::queue::Queue::new(vec![QueuedMember {
        name: "Cleo".to_owned(),
        intent: Intent::P2,
        is_you: false,
    }]);
    play.keys("/members<enter>");
    play.sees("[NEXT: ann]");
    let shown = play.seen();
    let line = |name: &str| {
        shown
            .lines()
            .find(|line| line.contains(name))
            .unwrap_or_default()
    };
    assert!(line("[NEXT: ann]").contains("lead    person"), "{shown}");
    let ben = line("[NEXT: ben]");
    assert!(
        ben.contains("author  sage · claude-sonnet-4-5  speaking"),
        "{shown}"
    );
    assert!(
        line("[NEXT: cleo]").contains("claude-sonnet-4-5  queued"),
        "{shown}"
    );
}

/// The activity line says that it is under way, and the entry that it is done.
#[test]
fn a_compaction_leaves_one_line() {
    let mut play = Play::talked();
    play.keys("/compact<enter>");
    for text in ["summarising the 2 oldest messages", COMPACTED] {
        play.live(LiveEvent::Session(SessionEvent::Notice {
            tone: Tone::Note,
            text: text.to_owned(),
            error: None,
        }));
    }
    play.sees_no("oldest messages");
    play.sees_no(COMPACTED);
}
