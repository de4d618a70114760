//! The session screen in all its states.

use jiff::SignedDuration;
use tertulia_agents::{AgentError, FailureKind, Retry, Todo, TodoState};
use tertulia_core::entry::{Failed, Intent};
use tertulia_engine::event::{ContextUse, QueuedMember};
use tertulia_engine::pair::{Budget, PairEvent, Progress};

use super::*;
use crate::item::Tone;
use crate::test_support::said;

const EVERYTHING: &str = "# Findings\n\nThe parser is *slow* because of the `lock`:\n\n\
    ```rust\nfn parse() {\n    let line = read(); // 漢字\n}\n```\n\n\
    ```diff\n-    let line = read();\n+    let line = read().trim_end();\n```\n\n\
    | what | how long |\n|---|---:|\n| reading 読む | 12 ms |\n| 👩‍👩‍👧 waiting | 340 ms |\n";

#[test]
fn before_anything_is_said() {
    let mut play = Play::new(SessionInfo {
        last: Some(Box::new(meta(5, 12))),
        ..info(Kind::Chat)
    });
    seen!("opening", play);
    play.opened();
    seen!("welcome", play);
    // A notice leaves it its place.
    play.live(LiveEvent::Session(SessionEvent::notice(
        Tone::Warning,
        "unknown setting 'colour'",
    )));
    play.sees("unknown setting 'colour'");
    play.sees("Enter resumes it.");
    // A small screen keeps what matters most: who answers, and the way back.
    play.at((40, 8));
    play.sees("demo answers");
    play.sees("Enter resumes it.");
    play.sees_no("F1 all keys");
}

#[test]
fn enter_resumes_the_last_session_and_words_begin_a_new_one() {
    let offering = || {
        let mut play = Play::new(SessionInfo {
            last: Some(Box::new(meta(5, 12))),
            ..info(Kind::Chat)
        });
        play.opened();
        play
    };
    let mut play = offering();
    assert_eq!(play.keys("<enter>"), ["cancel", "leave"]);
    assert_eq!(play.state.next, Some(Next::resume(id(5))));
    let mut play = offering();
    assert_eq!(play.keys("x<backspace> <enter>"), [""; 0]);
    assert_eq!(
        play.keys("<^u>hello<enter>"),
        ["remember hello", "say hello"]
    );
    play.durable(message(person(), "hello"));
    play.over();
    // Once something was said, Enter alone does nothing.
    assert_eq!(play.keys("<enter>"), [""; 0]);
    assert!(!play.state.is_leaving());
    let mut play = Play::chat();
    assert_eq!(play.keys("<enter>"), [""; 0]);
}

#[test]
fn an_attached_session_without_messages_says_who_answers() {
    let mut created = meta(1, 0);
    created.head.seq = Seq(1);
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(created)),
        is_remote: true,
        introduction: String::new(),
        agent: String::new(),
        model: None,
        ..info(Kind::Chat)
    });
    play.sees("A server runs this session");
    let floor = SessionState {
        agent: Some("sage".to_owned()),
        model: Some("claude-sonnet-4-5".to_owned()),
        ..play.floor()
    };
    let floor = Box::new(floor);
    play.live(LiveEvent::Session(SessionEvent::Opened { floor }));
    play.sees("sage answers (claude-sonnet-4-5).");
    let seen = play.seen();
    let status = seen.lines().last().unwrap_or_default();
    assert!(
        status.starts_with("● ready · sage · claude-sonnet-4-5"),
        "{status}"
    );
    assert!(!status.contains("saved"), "{status}");
}

#[test]
fn the_time_of_an_answer_on_a_server_does_not_begin_anew() {
    let mut play = Play::new(SessionInfo {
        is_remote: true,
        busy_since: Some(before(2)),
        ..info(Kind::Chat)
    });
    play.opened();
    play.live(LiveEvent::Session(SessionEvent::Began));
    play.sees("2 min 0 s");
    play.over();
    play.live(LiveEvent::Session(SessionEvent::Began));
    play.sees("is thinking… 0 s");
}

#[test]
fn the_status_line_tells_context_cost_and_tokens() {
    let mut play = Play::talked();
    play.sees("↑1.2k ↓340");
    play.sees_no("ctx");
    play.sees_no("$");
    let mut answer = message(agent("sage"), "hello");
    answer.model = Some("claude-sonnet-4-5".to_owned());
    answer.usage = Some(Usage::told(100_000, 1_000));
    play.durable(answer);
    let floor = SessionState {
        context: Some(ContextUse {
            tokens: 42_900,
            limit: 100_000,
        }),
        ..play.floor()
    };
    let floor = Box::new(floor);
    play.live(LiveEvent::Session(SessionEvent::Over { floor }));
    play.at((120, 40));
    play.sees("ctx 42 % · $0.32 · ↑101k ↓1.3k · saved");
    play.paste("/info");
    play.keys("<enter>");
    play.sees("$0.32, without demo-1: no price is known");
    play.sees("42 % of 100 000 tokens");
}

#[test]
fn the_cost_of_a_resumed_session_is_asked_for() {
    let mut before = meta(1, 4);
    before.tokens = Usage::told(10, 10);
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(before)),
        ..info(Kind::Chat)
    });
    let wanted = play.opened();
    assert!(wanted.contains(&"bill 4".to_owned()), "{wanted:?}");
}

#[test]
fn a_notice_stands_on_the_rule_and_repeats_nothing() {
    let mut play = Play::talked();
    play.keys("<esc>");
    let seen = play.seen();
    let row = seen.lines().position(|line| line.contains("Esc again"));
    let rule = seen.lines().position(|line| line.contains("──────"));
    assert!(row.is_some() && row == rule, "{seen}");
    // It ends with its cause.
    play.keys("<esc>");
    play.sees("Rewind to just before…");
    play.sees_no("Esc again");
    play.keys("<esc>");
    // What the transcript shows is not said a second time, unless it is out of sight.
    let text = "the disk is slow";
    let warn = |play: &mut Play| {
        play.live(LiveEvent::Session(SessionEvent::notice(
            Tone::Warning,
            text,
        )));
        play.seen().matches(text).count()
    };
    assert_eq!(warn(&mut play), 1);
    // What was wrong with a command is forgotten with the next one.
    play.keys("/renmae x<enter>");
    play.sees("did you mean /rename?");
    play.keys("<^u>/info<enter>");
    play.sees_no("did you mean");
    play.keys("<esc>/sessions<enter>");
    assert_eq!(warn(&mut play), 1);
    play.keys("<esc>");
    // Without a rule, a row of the transcript gives way.
    let mut play = Play::talked();
    play.at((40, 7));
    play.keys("<esc>");
    play.sees("Esc again");
}

#[test]
fn what_was_said_with_everything_in_it() {
    let mut play = Play::chat();
    play.turn("Why is the parser slow? 遅い 🐢", EVERYTHING);
    seen!("said", play);
}

#[test]
fn an_answer_comes() {
    let mut play = Play::asked();
    seen!("asked", play);
    play.wait(3_250);
    play.live(LiveEvent::Session(SessionEvent::Thought {
        text: "The lock is taken twice. ".to_owned(),
    }));
    seen!("thinking", play);
    play.text("Because every reader ");
    play.text("takes the lo");
    seen!("speaking", play);
    play.heard(AgentEvent::Retrying(Retry {
        attempt: 2,
        of: 5,
        wait: Duration::from_secs(8),
        reason: "429 too many requests".to_owned(),
    }));
    seen!("retrying", play);
}

#[test]
fn tools_are_used() {
    let mut play = Play::asked();
    let used = call(3, "shell", json!({ "command": "cargo test parser" }));
    play.heard(AgentEvent::ToolStarted(used.clone()));
    play.heard(AgentEvent::Todos(
        [
            ("Read the parser", TodoState::Completed),
            ("Write a test that fails", TodoState::InProgress),
            ("Mend it 直す", TodoState::Pending),
        ]
        .map(|(text, state)| Todo {
            text: text.to_owned(),
            state,
        })
        .to_vec(),
    ));
    seen!("tool_running", play);
    play.durable(Message {
        tool_calls: vec![used],
        ..message(agent("demo"), "I run the tests.")
    });
    play.heard(AgentEvent::ToolCompleted {
        id: "call-3".to_owned(),
        output: "1 failed".to_owned(),
        ok: false,
    });
    play.durable(Message {
        tool_call_id: Some("call-3".to_owned()),
        outcome: Some(ToolOutcome::Failed),
        ..message(
            Speaker::plain("shell", SpeakerKind::Tool),
            "1 failed\nparser::ends",
        )
    });
    seen!("tool_failed", play);
    play.keys("<^o>a");
    play.sees("parser::ends");
}

#[test]
fn a_team_takes_turns() {
    let mut play = Play::open(info(Kind::Team));
    play.keys("hello [NEXT: ben, cleo]<enter>");
    let person = Speaker {
        id: "m-ann".to_owned(),
        ..Speaker::plain("Ann", SpeakerKind::Human)
    };
    play.durable(message(person, "hello [NEXT: ben, cleo]"));
    let floor = SessionState {
        waiting: vec![
            QueuedMember {
                name: "Cleo".to_owned(),
                intent: Intent::P1,
                is_you: false,
            },
            QueuedMember {
                name: "多恵".to_owned(),
                intent: Intent::P2,
                is_you: false,
            },
        ],
        writer: "Ann".to_owned(),
        ..play.floor()
    };
    play.live(LiveEvent::Session(SessionEvent::Asked {
        speaker: Speaker {
            id: "m-ben".to_owned(),
            ..agent("Ben")
        },
    }));
    play.text("Hello Ann.");
    play.state.queue = crate::queue::Queue::new(floor.waiting.clone());
    seen!("team", play);
    play.live(LiveEvent::Session(SessionEvent::Failed {
        speaker: agent("Ben"),
        error: AgentError::new(FailureKind::Auth, "the key was refused"),
    }));
    seen!("member_failed", play);
    play.keys("<^u>/queue<enter>");
    play.sees("Cleo (P1)");
    play.keys("<esc>");
    play.live(LiveEvent::Session(SessionEvent::Over {
        floor: Box::new(floor),
    }));
    seen!("team_waits", play);
}

#[test]
fn a_pair_works_in_rounds() {
    let mut play = Play::open(info(Kind::Pair));
    play.keys("make it fast<enter>");
    play.durable(message(person(), "make it fast"));
    play.live(LiveEvent::Session(SessionEvent::Asked {
        speaker: agent("boss"),
    }));
    play.durable(message(agent("boss"), "Measure first."));
    play.live(LiveEvent::Session(SessionEvent::Pair {
        event: PairEvent::Round(Progress {
            round: 3,
            worker_calls: 2,
            remaining: Budget::Calls(7),
            tokens: Usage::told(12_000, 800),
            elapsed: SignedDuration::from_secs(75),
        }),
    }));
    play.live(LiveEvent::Session(SessionEvent::Asked {
        speaker: agent("hand"),
    }));
    play.wait(5_000);
    seen!("pair", play);
    play.sees("round 3");
    assert_eq!(play.over(), ["ring"]);
}

#[test]
fn the_time_of_a_pair_never_goes_back() {
    let mut play = Play::open(info(Kind::Pair));
    play.keys("make it fast<enter>");
    play.durable(message(person(), "make it fast"));
    let elapsed = |play: &Play| {
        let status = view::screen::status(&play.state, play.now().at);
        status.pair.unwrap().elapsed.as_secs()
    };
    play.wait(30_000);
    play.live(LiveEvent::Session(SessionEvent::Pair {
        event: PairEvent::Round(Progress {
            round: 1,
            worker_calls: 0,
            remaining: Budget::Calls(7),
            tokens: Usage::told(1, 1),
            elapsed: SignedDuration::from_secs(30),
        }),
    }));
    assert_eq!(elapsed(&play), 30);
    play.wait(20_000);
    assert_eq!(elapsed(&play), 50);
    play.live(LiveEvent::Session(SessionEvent::Asked {
        speaker: agent("hand"),
    }));
    assert_eq!(elapsed(&play), 50);
    play.wait(10_000);
    play.over();
    assert_eq!(elapsed(&play), 60);
}

#[test]
fn words_wait_to_be_said() {
    let mut play = Play::asked();
    play.keys("and then?<enter>");
    seen!("one_ahead", play);
    play.paste("two\nlines");
    play.keys("<enter>third, half");
    seen!("two_ahead", play);
}

#[test]
fn a_talk_goes_on_where_it_was_left() {
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(meta(1, 2))),
        ..info(Kind::Chat)
    });
    play.opened();
    let wanted = Wanted::Before {
        seq: Seq(3),
        count: 400,
    };
    play.answer(loaded(
        wanted,
        vec![
            said(1, "You", SpeakerKind::Human, 91, "Why is it slow?"),
            said(2, "demo", SpeakerKind::Ai, 90, "Because of the lock."),
        ],
    ));
    seen!("restored", play);
    play.turn("And now?", "Now it is fast.");
    seen!("restored_and_on", play);
}

#[test]
fn what_went_wrong_is_seen() {
    let mut play = Play::asked();
    play.durable(Message {
        interrupted: true,
        ..message(agent("demo"), "Because every reader")
    });
    play.live(LiveEvent::Session(SessionEvent::notice(
        Tone::Note,
        "stopped".to_owned(),
    )));
    play.over();
    seen!("interrupted", play);

    let mut play = Play::chat();
    play.turn("my key is [redacted:aws-key]", "I see no key.");
    let words = "1 secret was replaced before it was saved: aws-key";
    play.live(LiveEvent::Session(SessionEvent::notice(
        Tone::Note,
        words.to_owned(),
    )));
    seen!("redacted", play);

    let mut play = Play::asked();
    play.entry(Body::Failed(Failed {
        agent: "demo".to_owned(),
        kind: "auth".to_owned(),
        message: "the key was refused".to_owned(),
        retry_at: None,
        withdrawn: false,
    }));
    let floor = SessionState {
        failed: true,
        ..play.floor()
    };
    play.live(LiveEvent::Session(SessionEvent::Over {
        floor: Box::new(floor),
    }));
    seen!("failed", play);
}

#[test]
fn what_is_not_saved_is_told() {
    let mut play = Play::asked();
    let words = "it cannot be saved: no space left on device; it is tried again";
    play.live(LiveEvent::Session(SessionEvent::notice(
        Tone::Warning,
        words.to_owned(),
    )));
    play.text("Because of the disk.");
    play.live(LiveEvent::Session(SessionEvent::Held {
        message: Box::new(message(agent("demo"), "Because of the disk.")),
    }));
    let floor = SessionState {
        unsaved: true,
        ..play.floor()
    };
    play.live(LiveEvent::Session(SessionEvent::Over {
        floor: Box::new(floor),
    }));
    seen!("unsaved", play);

    let mut play = Play::open(SessionInfo {
        ephemeral: true,
        ..info(Kind::Chat)
    });
    play.sees("Nothing of this session is saved.");
    play.turn("Who am I?", "I forget.");
    seen!("ephemeral", play);
}

#[test]
fn everything_is_read_again() {
    let mut play = Play::chat();
    for number in 0..12 {
        play.turn(
            &format!("question {number}"),
            &format!("answer {number}\n\nat length"),
        );
    }
    play.keys("a draft<^o><pgup>");
    seen!("reading", play);
    play.keys("/answer 3<enter>");
    play.sees("answer 3");
    play.keys("<home>V<up>");
    let copied = play.keys("y");
    assert!(copied[0].contains("answer 2\n\nat length"), "{copied:?}");
    play.sees("copied");
    play.keys("<esc><esc>");
    assert!(!play.state.reading);
    assert_eq!(play.input(), "a draft");
    play.sees("answer 11");
}

#[test]
fn words_are_completed_and_found_again() {
    let mut play = Play::talked();
    play.keys("/re");
    seen!("completion", play);
    play.keys("<esc><^u><^r>pars");
    seen!("history_search", play);
    play.keys("<enter>");
    assert_eq!(play.input(), "fix the parser");
}

#[test]
fn short_messages_come_and_go() {
    let mut play = Play::talked();
    play.paste("/rename");
    play.keys("<enter>");
    play.event(Event::Edited(Err("vi is not there".to_owned())));
    seen!("toasts", play);
    assert_eq!(play.input(), "/rename");
    play.wait(20_000);
    play.sees_no("vi is not there");
}

/// A disk may be slow.
#[test]
fn what_was_said_is_not_called_saved_before_it_is() {
    let mut play = Play::talked();
    play.sees(" · saved");
    play.keys("hello<enter>");
    play.sees(" saving…");
    play.durable(message(person(), "hello"));
    play.sees(" · saved");
}
