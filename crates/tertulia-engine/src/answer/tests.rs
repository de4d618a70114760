use super::*;
use proptest::prelude::*;
use serde_json::json;
use tertulia_agents::{Todo, TodoState};

fn answer() -> Answer {
    let speaker = Speaker::plain("demo", SpeakerKind::Ai);
    Answer::new(speaker, Some("m".into()), None, None)
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

fn text(words: &str, millis: i64) -> Event {
    Event::Received(AgentEvent::Text(words.into()), at(millis))
}

fn thought(words: &str, millis: i64) -> Event {
    Event::Received(AgentEvent::Reasoning(words.into()), at(millis))
}

fn draft(text: &str, reasoning: &str) -> Effect {
    Effect::KeepDraft(PartialAnswer {
        text: text.to_owned(),
        reasoning: reasoning.to_owned(),
    })
}

fn asked() -> Answer {
    let mut answer = answer();
    assert_eq!(answer.step(Event::Asked), [Effect::Ask]);
    answer
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
fn the_answer_is_saved_before_the_turn_is_over() {
    let mut answer = asked();
    assert_eq!(answer.step(text("good ", 0)), []);
    assert_eq!(answer.step(text("day", 10)), []);
    answer.step(Event::Received(
        AgentEvent::Usage(Usage::told(1, 2)),
        at(11),
    ));
    let effects = answer.step(Event::Ended(Ok(Outcome::Done), at(20)));
    let [Body::Message(message)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(message.content, "good day");
    assert_eq!(
        (message.interrupted, message.usage),
        (false, Some(Usage::told(1, 2)))
    );
    assert_eq!(
        answer.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Answered)]
    );
}

#[test]
fn what_was_seen_for_a_while_is_kept() {
    let mut answer = asked();
    assert_eq!(answer.step(text("a", 0)), []);
    assert_eq!(answer.step(Event::Tick(at(600))), []);
    assert_eq!(answer.step(Event::Tick(at(800))), [draft("a", "")]);
    assert_eq!(answer.step(Event::Tick(at(9000))), []);
    assert_eq!(answer.step(text("b", 9100)), []);
    assert_eq!(answer.step(text("c", 9900)), [draft("abc", "")]);
}

#[test]
fn reasoning_is_saved_with_the_message_that_it_led_to() {
    let mut answer = asked();
    answer.step(thought("First I ", 0));
    assert_eq!(
        answer.step(thought("look.", 800)),
        [draft("", "First I look.")]
    );
    let call = ToolCall {
        id: "c1".into(),
        name: "file_read".into(),
        arguments: json!({}),
    };
    let calls = Outcome::Calls {
        calls: vec![call.clone()],
        memo: None,
    };
    let effects = answer.step(Event::Ended(Ok(calls), at(900)));
    assert!(
        matches!(saved(&effects)[..], [Body::Message(message)] if message.reasoning.as_deref() == Some("First I look."))
    );
    answer.step(Event::Saved);
    answer.step(Event::Used {
        call,
        output: "x".into(),
        ok: true,
    });
    answer.step(Event::Saved);
    answer.step(thought("It is x.", 1000));
    answer.step(text("x", 1001));
    let effects = answer.step(Event::Ended(Ok(Outcome::Done), at(1002)));
    assert!(
        matches!(saved(&effects)[..], [Body::Message(message)] if message.reasoning.as_deref() == Some("It is x."))
    );
}

#[test]
fn reasoning_without_an_answer_is_saved_too() {
    let mut answer = asked();
    answer.step(thought("Hm.", 0));
    let effects = answer.step(Event::Ended(Err(AgentError::cancelled()), at(20)));
    let [Body::Thought(thought), Body::Failed(failed)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((thought.text.as_str(), failed.withdrawn), ("Hm.", true));
}

#[test]
fn failure_and_cancel_keep_what_was_said() {
    let failed = AgentError::new(FailureKind::Timeout, "slow");
    let mut answer = asked();
    answer.step(text("half", 0));
    let effects = answer.step(Event::Ended(Err(failed.clone()), at(20)));
    let [Body::Message(message), Body::Failed(failure)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert!(message.interrupted);
    assert_eq!(
        (failure.kind.as_str(), failure.message.as_str()),
        ("timeout", "slow")
    );
    assert_eq!(
        answer.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Failed(failed))]
    );

    let mut answer = asked();
    answer.step(text("half", 0));
    let effects = answer.step(Event::Ended(Err(AgentError::cancelled()), at(20)));
    assert!(matches!(saved(&effects)[..], [Body::Message(message)] if message.interrupted));
    assert_eq!(
        answer.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Cancelled)]
    );
}

#[test]
fn silence_is_a_failure() {
    let mut answer = asked();
    let effects = answer.step(Event::Ended(Ok(Outcome::Done), at(20)));
    assert!(matches!(saved(&effects)[..], [Body::Failed(_)]));
    assert!(matches!(
        answer.step(Event::Saved)[..],
        [Effect::TurnOver(TurnEnd::Failed(_))]
    ));
}

#[test]
fn a_longer_answer_is_cut_with_a_mark() {
    let mut answer = asked();
    answer.step(text(&"漢".repeat(400_000), 0));
    answer.step(text("more", 1));
    let effects = answer.step(Event::Ended(Ok(Outcome::Done), at(20)));
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
    let mut answer = asked();
    answer.step(text("x", 0));
    answer.step(Event::Ended(Ok(Outcome::Done), at(1)));
    assert_eq!(
        answer.step(Event::Refused),
        [Effect::TurnOver(TurnEnd::Refused)]
    );
    assert_eq!(answer.step(Event::Asked), [Effect::Ask]);
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
    let mut answer = asked();
    answer.step(text("let me look", 0));
    let effects = answer.step(calls(&["1", "2"]));
    assert_eq!(short(&effects), [r#"assistant +1 +2 "let me look""#]);
    assert_eq!(answer.step(Event::Saved), [Effect::Use(call("1"))]);
    assert_eq!(
        short(&answer.step(used("1", "a\0b"))),
        ["tool =1 \"a\u{fffd}b\""]
    );
    assert_eq!(answer.step(Event::Saved), [Effect::Use(call("2"))]);
    assert_eq!(short(&answer.step(used("2", "b"))), [r#"tool =2 "b""#]);
    assert_eq!(answer.step(Event::Saved), [Effect::Ask]);
    answer.step(text("done", 30));
    let effects = answer.step(Event::Ended(Ok(Outcome::Done), at(40)));
    assert_eq!(short(&effects), [r#"assistant "done""#]);
    assert_eq!(
        answer.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Answered)]
    );
}

#[test]
fn a_call_that_is_too_long_is_answered_and_not_run() {
    let mut answer = asked();
    let long = ToolCall {
        arguments: json!({ "content": "x".repeat(MESSAGE_LIMIT) }),
        ..call("1")
    };
    let calls = vec![long, call("2")];
    let effects = answer.step(Event::Ended(
        Ok(Outcome::Calls { calls, memo: None }),
        at(20),
    ));
    let expected = [
        r#"assistant +2 +1 """#.to_owned(),
        format!("tool =1 {TOO_LONG:?}"),
    ];
    assert_eq!(short(&effects), expected);
    assert_eq!(answer.step(Event::Saved), [Effect::Use(call("2"))]);
}

#[test]
fn stopping_a_tool_closes_every_call() {
    let mut answer = asked();
    answer.step(calls(&["1", "2"]));
    answer.step(Event::Saved);
    let effects = answer.step(Event::Stopped(call("1"), at(30)));
    let expected = [
        format!("tool =1 ! {INTERRUPTED:?}"),
        format!("tool =2 ! {NOT_RUN:?}"),
        "failed".to_owned(),
    ];
    assert_eq!(short(&effects), expected);
    assert_eq!(
        answer.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Cancelled)]
    );
}

#[test]
fn an_agents_own_tools_are_messages_too() {
    let mut answer = asked();
    let receive = |answer: &mut Answer, event| short(&answer.step(Event::Received(event, at(1))));
    assert_eq!(
        receive(&mut answer, AgentEvent::Session("s-1".into())),
        ["linked s-1"]
    );
    assert!(receive(&mut answer, AgentEvent::Session("s-1".into())).is_empty());
    answer.step(text("looking", 2));
    assert_eq!(
        receive(&mut answer, AgentEvent::ToolStarted(call("1"))),
        [r#"assistant +1 "looking""#]
    );
    let completed = |id: &str| AgentEvent::ToolCompleted {
        id: id.into(),
        output: "out".into(),
        ok: true,
    };
    assert!(receive(&mut answer, completed("nobody's")).is_empty());
    assert_eq!(receive(&mut answer, completed("1")), [r#"tool =1 "out""#]);
    let todo = Todo {
        text: "x".into(),
        state: TodoState::Pending,
    };
    assert!(receive(&mut answer, AgentEvent::Todos(vec![todo])).is_empty());
    receive(&mut answer, AgentEvent::ToolStarted(call("2")));
    answer.step(text("\n\nhalf", 3));
    let effects = answer.step(Event::Ended(Err(AgentError::cancelled()), at(9)));
    let expected = [
        format!("tool =2 ! {INTERRUPTED:?}"),
        r#"assistant ! "half""#.to_owned(),
    ];
    assert_eq!(short(&effects), expected);
}

#[test]
fn whoever_acts_need_not_speak() {
    let mut answer = asked();
    answer.step(Event::Received(AgentEvent::ToolStarted(call("1")), at(1)));
    let effects = answer.step(Event::Ended(Ok(Outcome::Done), at(9)));
    assert_eq!(short(&effects).last().unwrap(), r#"assistant """#);
    assert_eq!(
        answer.step(Event::Saved),
        [Effect::TurnOver(TurnEnd::Answered)]
    );
}

#[test]
fn circles_end() {
    let mut answer = asked();
    for _ in 0..ROUNDS {
        answer.step(calls(&["1"]));
        answer.step(Event::Saved);
        answer.step(used("1", "x"));
        assert_eq!(answer.step(Event::Saved), [Effect::Ask]);
    }
    assert_eq!(short(&answer.step(calls(&["1"]))), ["failed"]);
    assert!(matches!(
        answer.step(Event::Saved)[..],
        [Effect::TurnOver(TurnEnd::Failed(_))]
    ));
}

#[test]
fn when_to_try_again_is_kept() {
    let mut answer = asked();
    let error = AgentError {
        retry_after: Some(std::time::Duration::from_secs(30)),
        ..AgentError::new(FailureKind::RateLimit, "slow down")
    };
    let effects = answer.step(Event::Ended(Err(error), at(1000)));
    let [Body::Failed(failed)] = saved(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(failed.retry_at, Some(at(31_000)));
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Asked),
        Just(Event::Saved),
        Just(Event::Refused),
        ("[a-z]{0,3}", 0i64..5000).prop_map(|(words, millis)| text(&words, millis)),
        (0i64..5000).prop_map(|millis| Event::Tick(at(millis))),
        Just(Event::Ended(Ok(Outcome::Done), at(20))),
        Just(Event::Ended(Err(AgentError::cancelled()), at(20))),
        Just(calls(&["1", "2"])),
        Just(used("1", "x")),
        Just(Event::Stopped(call("1"), at(30))),
        Just(Event::Received(AgentEvent::ToolStarted(call("1")), at(1))),
    ]
}

proptest! {
    /// Whatever happens in whatever order, the machine never goes on and never uses a tool before it
    /// has saved, and the answer ends.
    #[test]
    fn never_wedged_and_never_hasty(events in prop::collection::vec(events(), 0..60)) {
        let mut answer = answer();
        let mut saving = false;
        for event in events {
            let was_saved = matches!(event, Event::Saved);
            let begins = matches!(event, Event::Asked);
            let effects = answer.step(event);
            if effects.iter().any(|effect| matches!(effect, Effect::Ask | Effect::Use(_))) {
                prop_assert!(begins || saving && was_saved);
            }
            saving = if effects.is_empty() { saving && !was_saved } else {
                effects.iter().any(|effect| matches!(effect, Effect::Save(_)))
            };
        }
        for _ in 0..3 {
            answer.step(Event::Saved);
            answer.step(Event::Stopped(call("1"), at(30)));
            answer.step(Event::Ended(Ok(Outcome::Done), at(20)));
        }
        answer.step(Event::Saved);
        prop_assert!(matches!(answer.phase, Phase::Idle));
    }
}
