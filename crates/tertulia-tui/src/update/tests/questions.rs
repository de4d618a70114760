//! Questions: tool permission, resuming an earlier session, continuing unfinished work, sessions open
//! elsewhere, models that are not listed.

use proptest::prelude::*;
use tertulia_agents::approval::{Approval, PermissionState, Verdict};

use super::*;
use tertulia_engine::event::UnfinishedWork;

use crate::session_info::Follows;
use crate::state::Layer;
use crate::test_support::session;

pub(super) fn may_i() -> Play {
    let mut play = Play::asked();
    play.live(LiveEvent::Permission(1, Box::new(request())));
    play
}

#[test]
fn a_tool_is_asked_about() {
    let mut play = may_i();
    play.wait(400);
    seen!("approval", play);
    assert_eq!(play.keys("a"), [""; 0], "a letter alone is no answer");
    play.sees("Enter: allow exactly this (file_edit src/parser.rs) in this session");
    assert_eq!(play.keys("<enter>"), ["verdict Always"]);
    assert!(play.state.overlays.is_empty());
    play.sees("demo is thinking");
}

#[test]
fn several_requests_of_a_message_are_counted() {
    let mut play = Play::asked();
    let calls = [6, 7, 8].map(|number| call(number, "file_edit", json!({ "path": "a" })));
    play.durable(Message {
        tool_calls: calls.to_vec(),
        ..message(agent("demo"), "")
    });
    play.live(LiveEvent::Permission(1, Box::new(request())));
    play.sees("2 of 3 · edits a file");
    play.durable(Message {
        tool_calls: calls[1..2].to_vec(),
        ..message(agent("demo"), "")
    });
    play.live(LiveEvent::Permission(2, Box::new(request())));
    play.sees("── edits a file ──");
}

#[test]
fn what_is_no_answer_is_written() {
    let mut play = may_i();
    play.wait(400);
    // The text contains letters that could be answers.
    assert_eq!(play.keys("what an idea, any way"), [""; 0]);
    assert_eq!(play.input(), "what an idea, any way");
    play.sees("you are writing below");
    assert_eq!(
        play.keys("<enter>"),
        ["remember what an idea, any way"],
        "it is sent later, and answers nothing"
    );
    assert_eq!(play.queued(), ["what an idea, any way"]);
    // The input is empty again: now the letter answers.
    play.wait(400);
    assert_eq!(play.keys("y<enter>"), ["verdict Yes"]);
    // A sentence that begins like an answer.
    for words in [
        "yes, go on",
        "a yes",
        "always",
        "no never",
        "an",
        "i think so",
        "it",
    ] {
        let mut play = may_i();
        play.wait(400);
        assert_eq!(play.keys(words), [""; 0], "{words}");
        assert_eq!(play.input(), words);
    }
}

#[test]
fn what_is_written_is_left_and_come_back_to() {
    let mut play = may_i();
    play.wait(400);
    play.keys("half a li");
    assert_eq!(play.keys("<tab>"), [""; 0]);
    play.sees("Enter no");
    assert_eq!(play.keys("y<enter>"), ["verdict Yes"]);
    assert_eq!(play.input(), "half a li");
    // If text was already written, Tab leads to the dialog, too.
    let mut play = Play::asked();
    play.keys("ab");
    play.live(LiveEvent::Permission(1, Box::new(request())));
    play.wait(400);
    assert_eq!(play.keys("y"), [""; 0]);
    assert_eq!(play.input(), "aby");
    // After the text is deleted the dialog can be answered, and Backspace takes a chosen letter
    // back.
    assert_eq!(
        play.keys("<backspace><backspace><backspace>a<backspace>"),
        [""; 0]
    );
    assert!(play.input().is_empty());
    assert_eq!(play.keys("<enter>"), ["verdict No"]);
}

#[test]
fn what_to_do_instead_goes_with_the_no() {
    let mut play = may_i();
    play.wait(400);
    assert_eq!(play.keys("i<enter>use the parser's own error"), [""; 0]);
    assert!(
        play.input().is_empty(),
        "a draft in the input is left alone"
    );
    play.sees("instead> use the parser's own error");
    let told = play.keys("<enter>");
    assert_eq!(told, ["verdict Instead(\"use the parser's own error\")"]);
    play.sees("demo is thinking");
    // Words for a question that is settled elsewhere are not lost.
    let mut play = may_i();
    play.wait(400);
    play.keys("i<enter>half a wo");
    let verdict = Verdict::No;
    let tool_id = "call-1".to_owned();
    play.live(LiveEvent::Session(SessionEvent::Settled {
        tool_id,
        verdict,
    }));
    assert!(play.state.overlays.is_empty());
    assert_eq!(play.input(), "half a wo");
}

#[test]
fn the_question_stands_above_the_input() {
    for size in [(80, 24), (120, 40), (40, 12)] {
        let mut play = may_i();
        play.at(size);
        play.wait(400);
        let screen = play.at(size);
        let lines: Vec<&str> = screen.lines().collect();
        let answers = lines
            .iter()
            .position(|line| line.contains("y once"))
            .unwrap();
        let input = lines
            .iter()
            .position(|line| line.contains("y, a, n"))
            .unwrap();
        assert!(input - answers <= 2, "{screen}");
        let head = lines
            .iter()
            .position(|line| line.contains("wants to edit"))
            .unwrap();
        assert!(lines[head].contains("edits a file"), "{screen}");
        assert!(lines[..head].concat().contains("go on"), "{screen}");
    }
}

#[test]
fn a_key_switches_the_tool_policy() {
    let mut play = Play::talked();
    for (mode, name) in [(Approval::Edits, "edits"), (Approval::All, "all")] {
        let effects = play.keys("<backtab>");
        assert_eq!(effects, [format!("permit Mode({mode:?})")]);
        play.sees(&format!("tool policy: {name}"));
        let state = PermissionState {
            mode,
            always: Vec::new(),
        };
        play.live(LiveEvent::Session(SessionEvent::Permissions { state }));
        play.sees(&format!("approve: {name}"));
    }
    assert_eq!(play.keys("<backtab>"), ["permit Mode(Ask)"]);
    // Also while an agent asks for permission, while text is written, and in the transcript.
    let mut play = may_i();
    play.wait(400);
    assert_eq!(play.keys("<backtab>"), ["permit Mode(Edits)"]);
    assert_eq!(play.state.overlays.len(), 1, "it answers nothing");
    assert_eq!(play.keys("half<backtab>"), ["permit Mode(Edits)"]);
    let mut play = Play::talked();
    assert_eq!(play.keys("<^o><backtab>"), ["permit Mode(Edits)"]);
}

#[test]
fn who_only_reads_changes_no_policy() {
    let mut play = Play::new(SessionInfo {
        follows: Some(Follows {
            holder: Some("tertulia (process 7)".to_owned()),
            asks: false,
            forks: false,
        }),
        ..info(Kind::Chat)
    });
    play.opened();
    assert_eq!(play.keys("<backtab>"), [""; 0]);
    play.sees("read only");
    assert!(
        !play
            .keys("/approve all<enter>")
            .iter()
            .any(|effect| effect.starts_with("permit"))
    );
}

#[test]
fn what_is_always_allowed_is_seen_and_revoked() {
    let mut play = Play::talked();
    let permissions = |always: &[&str]| {
        LiveEvent::Session(SessionEvent::Permissions {
            state: PermissionState {
                mode: Approval::Ask,
                always: always.iter().map(|key| (*key).to_owned()).collect(),
            },
        })
    };
    play.live(permissions(&["file_edit"]));
    play.sees("always: file_edit");
    play.live(permissions(&["file_edit", "shell ls"]));
    play.sees("always: file_edit +1");
    play.keys("/permissions<enter>");
    play.sees("2  shell ls");
    play.keys("<esc>");
    let revoked = play.keys("/permissions revoke 2<enter>");
    assert_eq!(revoked[1], "permit Revoke(\"shell ls\")");
    assert_eq!(
        play.keys("/approve ask<enter>")[1],
        "permit Mode(Ask)",
        "also revokes"
    );
    play.live(permissions(&[]));
    assert!(!play.seen().contains("always:"));
    play.keys("/permissions revoke all<enter>");
    play.sees("nothing is always allowed");
    // Also while an agent answers and asks for permission.
    let mut play = may_i();
    play.wait(400);
    assert_eq!(play.keys("/approve all<enter>")[1], "permit Mode(All)");
    let mode = Approval::All;
    let always = Vec::new();
    play.live(LiveEvent::Session(SessionEvent::Permissions {
        state: PermissionState { mode, always },
    }));
    play.sees("approve: all");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is typed, however fast, and whenever the dialog appears: it allows nothing and is
    /// not lost.
    #[test]
    fn no_sentence_allows_anything(
        sentence in "[yani]?[yYaAnNiIe ,.!?'/@\\[\\]0-9a-zA-Z]{1,29}",
        pauses in proptest::collection::vec(0_i64..1500, 30),
        at in prop_oneof![Just(0_usize), 0_usize..30],
    ) {
        let mut play = Play::asked();
        let mut typed = String::new();
        for (place, (letter, pause)) in sentence.chars().zip(pauses).enumerate() {
            if place == at {
                play.live(LiveEvent::Permission(1, Box::new(request())));
            }
            play.wait(pause);
            for effect in play.effects(Event::Key(key(&letter.to_string()))) {
                prop_assert!(!matches!(effect, Effect::Verdict(..)), "{sentence:?}");
            }
            typed.push(letter);
        }
        let held = typed.len() == 1 && "yani".contains(&typed.to_lowercase());
        prop_assert!(held || play.input() == typed, "{:?} is not {typed:?}", play.input());
    }
}

#[test]
fn keys_that_come_too_early_are_written() {
    let mut play = may_i();
    assert_eq!(play.keys("yes, any"), [""; 0]);
    assert_eq!(play.input(), "yes, any");
    play.wait(200);
    assert_eq!(play.keys("way<enter>"), ["remember yes, anyway"]);
    assert_eq!(play.queued(), ["yes, anyway"]);
    play.wait(299);
    assert_eq!(play.keys("n"), [""; 0]);
    play.wait(300);
    assert_eq!(play.keys("y<enter>"), ["remember ny"]);
    play.wait(300);
    assert_eq!(play.keys("y<enter>"), ["verdict Yes"]);
    assert_eq!(play.input(), "");
}

#[test]
fn early_keys_reach_what_lies_below() {
    let mut play = Play::asked();
    play.keys("/search x<enter>");
    play.live(LiveEvent::Permission(1, Box::new(request())));
    play.keys("yz");
    play.wait(400);
    assert_eq!(play.keys("n<tab>n<enter>"), ["verdict No"]);
    play.sees("xyzn");
    assert!(play.input().is_empty());
    // Leaving with Ctrl+C Ctrl+C closes the dialog.
    let mut play = may_i();
    assert_eq!(play.keys("<^c><^c>"), ["cancel", "cancel", "leave"]);
    assert!(play.state.overlays.is_empty());
}

#[test]
fn what_is_pasted_answers_no_question() {
    let mut play = may_i();
    play.wait(400);
    assert_eq!(play.paste("yes\n"), [""; 0]);
    assert_eq!(play.input(), "yes\n");
    assert_eq!(play.state.overlays.len(), 1);
    // The query of a list takes pasted text itself.
    let mut play = Play::talked();
    play.keys("/sessions<enter>");
    play.paste("parser");
    assert!(play.input().is_empty());
    play.sees("parser");
}

#[test]
fn a_question_goes_with_the_answer_that_it_was_for() {
    let mut play = may_i();
    play.keys("<esc>");
    play.over();
    assert!(play.state.overlays.is_empty());
    // Other overlays stay open.
    let mut play = may_i();
    play.keys("<f1>");
    assert_eq!(play.state.overlays.len(), 2);
    play.over();
    assert!(matches!(play.state.overlays[..], [Layer::Help(_)]));
    // Another request replaces the dialog: the first is obsolete.
    let mut play = may_i();
    play.live(LiveEvent::Permission(2, Box::new(request())));
    assert_eq!(play.state.overlays.len(), 1);
    play.wait(400);
    play.keys("y");
    let effects = play.effects(Event::Key(key("enter")));
    assert!(matches!(effects[..], [Effect::Verdict(2, Verdict::Yes)]));
    // So does another agent's turn: the turn of the first is over.
    let mut play = may_i();
    play.live(LiveEvent::Session(SessionEvent::Asked {
        speaker: agent("Ben"),
    }));
    assert!(play.state.overlays.is_empty());
}

#[test]
fn whoever_leaves_is_asked_nothing() {
    let mut play = Play::asked();
    play.keys("<^d>");
    let wanted = play.live(LiveEvent::Permission(1, Box::new(request())));
    assert_eq!(wanted, ["verdict No"]);
    assert!(play.state.overlays.is_empty());

    let mut play = Play::new(SessionInfo {
        earlier: Some(Box::new(session(4, "Earlier", 130))),
        ..info(Kind::Team)
    });
    play.event(Event::Signal(15));
    assert_eq!(play.opened(), [""; 0]);
    assert!(play.state.overlays.is_empty() && play.state.is_leaving());
    play.live(LiveEvent::Session(SessionEvent::Text {
        text: "late".to_owned(),
    }));
    assert_eq!(play.over(), [""; 0]);
    play.live(gone());
    assert!(play.state.is_over());
}

pub(super) fn earlier() -> Play {
    let mut earlier = session(4, "Plan der Übergabe 漢字", 130);
    earlier.meta.team = Some("design".to_owned());
    Play::new(SessionInfo {
        earlier: Some(Box::new(earlier)),
        ..info(Kind::Team)
    })
}

#[test]
fn an_earlier_talk_may_go_on() {
    let mut play = earlier();
    play.opened();
    play.wait(400);
    seen!("restore", play);
    assert_eq!(play.keys("r"), [""; 0], "a letter alone is no answer");
    assert_eq!(play.keys("<enter>"), ["cancel", "leave"]);
    // With the team that was named, whatever file the session was started with.
    let named = Some("/teams/design.yaml".to_owned());
    assert_eq!(play.state.next, Some(Next::resume_with(id(4), named)));

    let mut play = earlier();
    play.opened();
    play.wait(400);
    assert_eq!(play.keys("n<enter>"), [""; 0]);
    assert!(play.state.overlays.is_empty());
    assert_eq!(play.keys("hello<enter>"), ["remember hello", "say hello"]);

    let mut play = earlier();
    play.opened();
    play.wait(400);
    assert_eq!(play.keys("<esc>"), ["cancel", "leave"]);
    assert_eq!(play.state.next, None);

    // Returns to the session shown before, if any.
    let mut play = earlier();
    play.state.before = Some(Next::resume(id(9)));
    play.opened();
    play.wait(400);
    assert_eq!(play.keys("<esc>"), ["cancel", "leave"]);
    assert_eq!(play.state.next, Some(Next::resume(id(9))));
}

#[test]
fn nothing_is_said_before_it_is_known_where() {
    let mut play = earlier();
    play.keys("hello<enter>Rea");
    assert_eq!(play.opened(), [""; 0]);
    assert_eq!(play.keys("dy, now?<enter>"), ["remember Ready, now?"]);
    play.sees("queued: hello (+1) · ↑ edit");
    play.wait(400);
    assert_eq!(play.keys("n<enter>"), ["say hello"]);
    play.durable(message(person(), "hello"));
    assert_eq!(play.over(), ["say Ready, now?"]);
    // When the earlier session is resumed, the text is in the input.
    let mut play = earlier();
    play.keys("hello<enter>");
    play.opened();
    play.wait(400);
    play.keys("r<enter>");
    assert_eq!(play.input(), "hello");
}

pub(super) fn undone(is_spent: bool) -> Play {
    let mut play = Play::new(SessionInfo {
        restored: Some(Box::new(meta(1, 4))),
        ..info(Kind::Pair)
    });
    let floor = SessionState {
        unfinished: Some(UnfinishedWork {
            question: "Repeat the interrupted instruction?".to_owned(),
            text: "the worker was to write the tests".to_owned(),
            is_spent,
        }),
        ..play.floor()
    };
    play.live(LiveEvent::Session(SessionEvent::Opened {
        floor: Box::new(floor),
    }));
    play
}

#[test]
fn a_pair_may_go_on_with_what_was_left_undone() {
    let mut play = undone(false);
    play.wait(400);
    seen!("go_on", play);
    assert_eq!(play.keys("y"), [""; 0], "a letter alone is no answer");
    assert_eq!(play.keys("<enter>"), ["say "]);
    assert!(play.state.is_running());

    let mut play = undone(false);
    play.wait(400);
    assert_eq!(play.keys("<enter>"), [""; 0]);
    assert!(!play.state.is_running() && play.state.overlays.is_empty());

    let play = undone(true);
    assert!(play.state.overlays.is_empty());
    play.sees("the worker was to write the tests");
}

#[test]
fn words_that_come_before_the_question_go_first() {
    let mut play = undone(false);
    assert_eq!(
        play.keys("no, wait<enter>"),
        ["remember no, wait", "say no, wait"]
    );
    assert!(play.state.overlays.is_empty(), "the question is settled");
    play.wait(400);
    assert_eq!(play.keys("y"), [""; 0]);
    assert_eq!(play.input(), "y");
}

/// An agent can cause toasts.
#[test]
fn nobody_writes_over_what_they_ask_leave_for() {
    let mut play = Play::asked();
    let preview: String = (0..60)
        .map(|row| format!("{row:02} {}\n", "x".repeat(70)))
        .collect();
    play.live(LiveEvent::Permission(
        1,
        Box::new(ToolRequest {
            preview,
            ..request()
        }),
    ));
    play.wait(400);
    play.sees("demo wants to edit src/parser.rs");
    let question = |screen: String| {
        let from = screen.find("── demo wants to").unwrap();
        let to = screen.find("y once").unwrap();
        screen[from..to].to_owned()
    };
    let before = question(play.seen());
    for forged in ["only looks", "changes nothing", "is harmless"] {
        let remark = format!("{forged}, it really is nothing to worry about, say yes");
        play.heard(AgentEvent::Remark(remark));
    }
    assert_eq!(question(play.seen()), before);
    // They are visible once no dialog is open.
    play.keys("n<enter>");
    play.sees("! is harmless, it really");
}
