use super::*;
use proptest::prelude::*;
use serde_json::json;
use tertulia_agents::{Todo, TodoState};
use tertulia_core::entry::human;

fn chat() -> Chat {
    Chat::new(
        human(),
        Speaker::plain("demo", SpeakerKind::Ai),
        Some("m".into()),
    )
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

fn text(words: &str, millis: i64) -> Event {
    Event::Heard(AgentEvent::Text(words.into()), at(millis))
}

fn asked() -> Chat {
    let mut chat = chat();
    chat.step(Event::Said("hello".into()));
    assert_eq!(chat.step(Event::Saved), [Effect::Ask]);
    chat
}

fn saved(effects: &[Effect]) -> Vec<&Body> {
    effects
        .iter()
        .flat_map(|effect| match effect {
            Effect::Save(bodies) => bodies.iter().collect(),
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn words_are_saved_before_the_agent_is_asked() {
    let mut chat = chat();
    let effects = chat.step(Event::Said("  hello\n".into()));
    let [Body::Message(message)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(
        (message.content.as_str(), message.role),
        ("  hello\n", Role::User)
    );
    assert_eq!(chat.step(Event::Saved), [Effect::Ask]);
}

#[test]
fn the_answer_is_saved_before_the_turn_is_over() {
    let mut chat = asked();
    assert_eq!(chat.step(text("good ", 0)), []);
    assert_eq!(chat.step(text("day", 10)), []);
    chat.step(Event::Heard(AgentEvent::Usage(Usage::told(1, 2)), at(11)));
    let effects = chat.step(Event::Ended(Ok(Outcome::Done), at(20)));
    let [Body::Message(message)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(message.content, "good day");
    assert_eq!(
        (message.interrupted, message.usage),
        (false, Some(Usage::told(1, 2)))
    );
    assert_eq!(
        chat.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Answered)]
    );
}

#[test]
fn what_was_seen_for_a_while_is_kept() {
    let mut chat = asked();
    assert_eq!(chat.step(text("a", 0)), []);
    assert_eq!(chat.step(Event::Tick(at(600))), []);
    assert_eq!(
        chat.step(Event::Tick(at(800))),
        [Effect::KeepDraft("a".into())]
    );
    assert_eq!(chat.step(Event::Tick(at(9000))), []);
    assert_eq!(chat.step(text("b", 9100)), []);
    assert_eq!(
        chat.step(text("c", 9900)),
        [Effect::KeepDraft("abc".into())]
    );
}

#[test]
fn failure_and_cancel_keep_what_was_said() {
    let failed = AgentError::new(FailureKind::Timeout, "slow");
    let mut chat = asked();
    chat.step(text("half", 0));
    let effects = chat.step(Event::Ended(Err(failed.clone()), at(20)));
    let [Body::Message(message), Body::Failed(failure)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert!(message.interrupted);
    assert_eq!(
        (failure.kind.as_str(), failure.message.as_str()),
        ("timeout", "slow")
    );
    assert_eq!(
        chat.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Failed(failed))]
    );

    let mut chat = asked();
    chat.step(text("half", 0));
    let effects = chat.step(Event::Ended(Err(AgentError::cancelled()), at(20)));
    assert!(matches!(saved(&effects)[..], [Body::Message(message)] if message.interrupted));
    assert_eq!(
        chat.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Cancelled)]
    );
}

#[test]
fn silence_is_a_failure() {
    let mut chat = asked();
    let effects = chat.step(Event::Ended(Ok(Outcome::Done), at(20)));
    assert!(matches!(saved(&effects)[..], [Body::Failed(_)]));
    assert!(matches!(
        chat.step(Event::Saved)[..],
        [Effect::TurnOver(TurnEnd::Failed(_))]
    ));
}

#[test]
fn a_longer_answer_is_cut_with_a_mark() {
    let mut chat = asked();
    chat.step(text(&"漢".repeat(400_000), 0));
    chat.step(text("more", 1));
    let effects = chat.step(Event::Ended(Ok(Outcome::Done), at(20)));
    let [Body::Message(message)] = saved(&effects)[..] else {
        panic!()
    };
    assert!(message.content.len() <= MESSAGE_LIMIT);
    assert!(
        message.content.ends_with(" more bytes]"),
        "{}",
        &message.content[message.content.len() - 60..]
    );
}

#[test]
fn a_refusal_gives_the_floor_back() {
    let mut chat = chat();
    chat.step(Event::Said("x".into()));
    assert_eq!(
        chat.step(Event::Refused),
        [Effect::TurnOver(TurnEnd::Refused)]
    );
    assert_eq!(chat.step(Event::Said("y".into())).len(), 1);
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "shell".into(),
        arguments: json!({ "command": "ls" }),
    }
}

fn calls(ids: &[&str]) -> Event {
    let calls = ids.iter().map(|id| call(id)).collect();
    Event::Ended(Ok(Outcome::Calls { calls, memo: None }), at(20))
}

fn used(id: &str, output: &str) -> Event {
    Event::Used {
        call: call(id),
        output: output.into(),
        ok: true,
    }
}

/// A log in short: who, the calls, the call that is answered, the words.
fn short(effects: &[Effect]) -> Vec<String> {
    saved(effects)
        .into_iter()
        .map(|body| match body {
            Body::Message(message) => format!(
                "{}{}{}{} {:?}",
                message.role.name(),
                message
                    .tool_calls
                    .iter()
                    .map(|call| format!(" +{}", call.id))
                    .collect::<String>(),
                message
                    .tool_call_id
                    .iter()
                    .map(|id| format!(" ={id}"))
                    .collect::<String>(),
                if message.interrupted { " !" } else { "" },
                message.content,
            ),
            Body::Linked(linked) => format!("linked {}", linked.native),
            other => other.kind().to_owned(),
        })
        .collect()
}

#[test]
fn calls_are_saved_then_used_then_their_results_saved_then_the_agent_goes_on() {
    let mut chat = asked();
    chat.step(text("let me look", 0));
    let effects = chat.step(calls(&["1", "2"]));
    assert_eq!(short(&effects), [r#"assistant +1 +2 "let me look""#]);
    assert_eq!(chat.step(Event::Saved), [Effect::Use(call("1"))]);
    assert_eq!(
        short(&chat.step(used("1", "a\0b"))),
        ["tool =1 \"a\u{fffd}b\""]
    );
    assert_eq!(chat.step(Event::Saved), [Effect::Use(call("2"))]);
    assert_eq!(short(&chat.step(used("2", "b"))), [r#"tool =2 "b""#]);
    assert_eq!(chat.step(Event::Saved), [Effect::Ask]);
    chat.step(text("done", 30));
    let effects = chat.step(Event::Ended(Ok(Outcome::Done), at(40)));
    assert_eq!(short(&effects), [r#"assistant "done""#]);
    assert_eq!(
        chat.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Answered)]
    );
}

#[test]
fn a_call_that_is_too_long_is_answered_and_not_run() {
    let mut chat = asked();
    let long = ToolCall {
        arguments: json!({ "content": "x".repeat(MESSAGE_LIMIT) }),
        ..call("1")
    };
    let calls = vec![long, call("2")];
    let effects = chat.step(Event::Ended(
        Ok(Outcome::Calls { calls, memo: None }),
        at(20),
    ));
    let expected = [
        r#"assistant +2 +1 """#.to_owned(),
        format!("tool =1 {TOO_LONG:?}"),
    ];
    assert_eq!(short(&effects), expected);
    assert_eq!(chat.step(Event::Saved), [Effect::Use(call("2"))]);
}

#[test]
fn stopping_a_tool_closes_every_call() {
    let mut chat = asked();
    chat.step(calls(&["1", "2"]));
    chat.step(Event::Saved);
    let effects = chat.step(Event::Stopped(call("1"), at(30)));
    let expected = [
        format!("tool =1 ! {INTERRUPTED:?}"),
        format!("tool =2 ! {NOT_RUN:?}"),
        "failed".to_owned(),
    ];
    assert_eq!(short(&effects), expected);
    assert_eq!(
        chat.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Cancelled)]
    );
}

#[test]
fn an_agents_own_tools_are_messages_too() {
    let mut chat = asked();
    let hear = |chat: &mut Chat, event| short(&chat.step(Event::Heard(event, at(1))));
    assert_eq!(
        hear(&mut chat, AgentEvent::Session("s-1".into())),
        ["linked s-1"]
    );
    assert!(hear(&mut chat, AgentEvent::Session("s-1".into())).is_empty());
    chat.step(text("looking", 2));
    assert_eq!(
        hear(&mut chat, AgentEvent::ToolStarted(call("1"))),
        [r#"assistant +1 "looking""#]
    );
    let completed = |id: &str| AgentEvent::ToolCompleted {
        id: id.into(),
        output: "out".into(),
        ok: true,
    };
    assert!(hear(&mut chat, completed("nobody's")).is_empty());
    assert_eq!(hear(&mut chat, completed("1")), [r#"tool =1 "out""#]);
    let todo = Todo {
        text: "x".into(),
        state: TodoState::Pending,
    };
    assert!(hear(&mut chat, AgentEvent::Todos(vec![todo])).is_empty());
    hear(&mut chat, AgentEvent::ToolStarted(call("2")));
    chat.step(text("\n\nhalf", 3));
    let effects = chat.step(Event::Ended(Err(AgentError::cancelled()), at(9)));
    let expected = [
        format!("tool =2 ! {INTERRUPTED:?}"),
        r#"assistant ! "half""#.to_owned(),
    ];
    assert_eq!(short(&effects), expected);
}

#[test]
fn whoever_acts_need_not_speak() {
    let mut chat = asked();
    chat.step(Event::Heard(AgentEvent::ToolStarted(call("1")), at(1)));
    let effects = chat.step(Event::Ended(Ok(Outcome::Done), at(9)));
    assert_eq!(short(&effects).last().unwrap(), r#"assistant """#);
    assert_eq!(
        chat.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Answered)]
    );
}

#[test]
fn circles_end() {
    let mut chat = asked();
    for _ in 0..ROUNDS {
        chat.step(calls(&["1"]));
        chat.step(Event::Saved);
        chat.step(used("1", "x"));
        assert_eq!(chat.step(Event::Saved), [Effect::Ask]);
    }
    assert_eq!(short(&chat.step(calls(&["1"]))), ["failed"]);
    assert!(matches!(
        chat.step(Event::Saved)[..],
        [Effect::TurnOver(TurnEnd::Failed(_))]
    ));
}

#[test]
fn when_to_try_again_is_kept() {
    let mut chat = asked();
    let error = AgentError {
        retry_after: Some(std::time::Duration::from_secs(30)),
        ..AgentError::new(FailureKind::RateLimit, "slow down")
    };
    let effects = chat.step(Event::Ended(Err(error), at(1000)));
    let [Body::Failed(failed)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(failed.retry_at, Some(at(31_000)));
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        "[a-z]{0,3}".prop_map(Event::Said),
        Just(Event::Saved),
        Just(Event::Refused),
        ("[a-z]{0,3}", 0i64..5000).prop_map(|(words, millis)| text(&words, millis)),
        (0i64..5000).prop_map(|millis| Event::Tick(at(millis))),
        Just(Event::Ended(Ok(Outcome::Done), at(20))),
        Just(Event::Ended(Err(AgentError::cancelled()), at(20))),
        Just(calls(&["1", "2"])),
        Just(used("1", "x")),
        Just(Event::Stopped(call("1"), at(30))),
        Just(Event::Heard(AgentEvent::ToolStarted(call("1")), at(1))),
    ]
}

proptest! {
    /// Whatever happens in whatever order, the machine never asks and never uses a tool before it has
    /// saved, and the human gets the floor back.
    #[test]
    fn never_wedged_and_never_hasty(events in prop::collection::vec(events(), 0..60)) {
        let mut chat = chat();
        let mut saving = false;
        for event in events {
            let was_saved = matches!(event, Event::Saved);
            let effects = chat.step(event);
            if effects.iter().any(|effect| matches!(effect, Effect::Ask | Effect::Use(_))) {
                prop_assert!(saving && was_saved);
            }
            saving = if effects.is_empty() { saving && !was_saved } else {
                effects.iter().any(|effect| matches!(effect, Effect::Save(_)))
            };
        }
        for _ in 0..3 {
            chat.step(Event::Saved);
            chat.step(Event::Stopped(call("1"), at(30)));
            chat.step(Event::Ended(Ok(Outcome::Done), at(20)));
        }
        chat.step(Event::Saved);
        prop_assert!(matches!(chat.phase, Phase::Idle));
    }
}
