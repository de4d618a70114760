//! Tests of recordings, recorded results and divergence.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::entry::{Compacted, Failed, Head, NewEntry, human};
use crate::id::{EntryId, Seq};

fn chained(bodies: Vec<Body>) -> Vec<Entry> {
    let new = bodies.into_iter().enumerate().map(|(number, body)| {
        let redacted = match &body {
            Body::Message(message) if message.content.contains("[redacted:") => {
                BTreeMap::from([("token".to_owned(), 1)])
            }
            _ => BTreeMap::new(),
        };
        NewEntry {
            id: EntryId::new(Uuid::from_u128(number as u128 + 1)),
            at: Timestamp::UNIX_EPOCH,
            body,
            redacted,
            author: None,
        }
    });
    Entry::chain(&Head::START, new.collect()).unwrap()
}

fn recording(bodies: Vec<Body>) -> Recording {
    Recording::of(&chained(bodies))
}

fn prompt(text: &str) -> Body {
    Body::Message(plain(&human(), Role::User, text.to_owned()))
}

fn answer(text: &str) -> Body {
    Body::Message(said(text))
}

fn said(text: &str) -> Message {
    let agent = Speaker::plain("a", SpeakerKind::Ai);
    plain(&agent, Role::Assistant, text.to_owned())
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

fn calling(calls: Vec<ToolCall>) -> Body {
    Body::Message(Message {
        tool_calls: calls,
        ..said("")
    })
}

fn result(id: &str, text: &str, outcome: ToolOutcome) -> Body {
    let tool = Speaker::plain("tool", SpeakerKind::Tool);
    Body::Message(Message {
        tool_call_id: Some(id.to_owned()),
        outcome: Some(outcome),
        ..plain(&tool, Role::Tool, text.to_owned())
    })
}

fn failed(kind: &str) -> Body {
    Body::Failed(Failed {
        agent: "a".to_owned(),
        kind: kind.to_owned(),
        message: "no key".to_owned(),
        retry_at: None,
        withdrawn: false,
    })
}

fn matches(original: Vec<Body>, replay: Vec<Body>) -> Vec<TurnMatch> {
    let (original, replay) = (recording(original), recording(replay));
    let compared = compare(&original.turns, &replay.turns);
    compared.turns.iter().map(|turn| turn.result).collect()
}

#[test]
fn turns_hold_texts_calls_results_and_tokens() {
    let system = Speaker::plain("system", SpeakerKind::System);
    let spent = |text, usage| {
        Body::Message(Message {
            usage: Some(usage),
            model: Some("m".to_owned()),
            ..said(text)
        })
    };
    let recording = recording(vec![
        answer("before any prompt"),
        Body::Message(plain(&system, Role::System, "be brief".to_owned())),
        prompt("one"),
        spent("Looking.  \n", Usage::told(1, 2)),
        calling(vec![
            call("1", "grep", json!({"pattern": "x"})),
            call("2", "glob", json!({})),
        ]),
        result("2", "files", ToolOutcome::Ok),
        result("1", "[not run: no]", ToolOutcome::Denied),
        spent("Found it.", Usage::told(10, 20)),
        prompt("two [redacted:token]"),
        Body::Compacted(Compacted {
            upto: Seq(3),
            summary: "s".to_owned(),
            agent: "a".to_owned(),
            model: None,
            usage: Some(Usage::told(100, 200)),
            thread: None,
        }),
        answer("Well."),
    ]);
    assert_eq!((recording.early, recording.system), (1, 1));
    assert_eq!(recording.redacted(), 1);
    assert_eq!(usage_of(&recording.turns), Some(Usage::told(111, 222)));
    let [one, two] = &recording.turns[..] else {
        panic!("{recording:#?}");
    };
    assert_eq!((one.prompt.as_str(), one.redacted), ("one", false));
    assert_eq!(one.text, "Looking.\n\nFound it.");
    assert_eq!(one.end, AnswerEnd::Complete);
    let results: Vec<_> = one.calls.iter().map(|call| call.result.clone()).collect();
    let denied = ToolOutcome::Denied;
    assert_eq!(
        results,
        [("[not run: no]", denied), ("files", ToolOutcome::Ok)].map(|(text, outcome)| {
            let text = text.to_owned();
            Some(RecordedResult { text, outcome })
        })
    );
    assert_eq!((two.text.as_str(), two.redacted), ("Well.", true));
    let models: Vec<_> = one.usage.iter().map(|spent| spent.model.clone()).collect();
    assert_eq!(models, [Some("m".to_owned()), Some("m".to_owned())]);
}

#[test]
fn repeated_call_ids_keep_their_results_apart() {
    let twice = |path: &str| calling(vec![call("0", "file_read", json!({ "path": path }))]);
    let recording = recording(vec![
        prompt("one"),
        twice("a"),
        result("0", "first", ToolOutcome::Ok),
        twice("b"),
        result("0", "second", ToolOutcome::Ok),
        answer("done"),
        prompt("two"),
        twice("c"),
    ]);
    let results = recording.calls().map(|call| call.result.as_ref());
    let texts: Vec<_> = results
        .map(|result| result.map(|result| result.text.as_str()))
        .collect();
    assert_eq!(texts, [Some("first"), Some("second"), None]);
    assert_eq!(recording.turns[1].end, AnswerEnd::CutOff);
}

#[test]
fn withdrawn_prompts_are_counted_and_not_played() {
    let recording = recording(vec![
        prompt("no, wait"),
        failed("cancelled"),
        prompt("this"),
        answer("yes"),
        prompt("half"),
        answer("I was"),
        failed("cancelled"),
    ]);
    let prompts: Vec<_> = recording.turns.iter().map(|turn| &turn.prompt).collect();
    assert_eq!(prompts, ["this", "half"]);
    assert_eq!(recording.withdrawn, 1);
    assert_eq!(recording.turns[1].end, AnswerEnd::CutOff);
}

#[test]
fn a_recorded_result_answers_one_equal_call() {
    let read = |path: &str| call("x", "file_read", json!({ "path": path, "limit": 1 }));
    let recording = recording(vec![
        prompt("one"),
        calling(vec![read("a"), read("b"), read("a"), read("open")]),
        result("x", "a before", ToolOutcome::Ok),
        result("x", "b", ToolOutcome::Failed),
        result("x", "a after", ToolOutcome::Ok),
    ]);
    let mut recorded = RecordedCalls::of(&recording);
    let mut taken = |call: &ToolCall| recorded.take(call).map(|result| result.text);
    assert_eq!(taken(&call("y", "glob", json!({}))), None);
    assert_eq!(
        taken(&call("y", "file_write", read("a").arguments)),
        None,
        "another tool"
    );
    let reordered = serde_json::from_str(r#"{"limit":1,"path":"a"}"#).unwrap();
    assert_eq!(
        taken(&call("y", "file_read", reordered)),
        Some("a before".to_owned())
    );
    assert_eq!(taken(&read("a")), Some("a after".to_owned()));
    assert_eq!(taken(&read("a")), None, "both are used");
    assert_eq!(taken(&read("b")), Some("b".to_owned()));
    assert_eq!(taken(&read("open")), None, "it has no result");
}

#[test]
fn a_call_with_a_secret_finds_its_redacted_record() {
    let secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let live = call(
        "1",
        "shell",
        json!({ "command": format!("echo {secret}"), "n": [1, { "k": "v" }] }),
    );
    let kept = redacted(&live);
    assert!(!kept.arguments.to_string().contains(&secret), "{kept:?}");
    let recording = recording(vec![
        prompt("one"),
        calling(vec![kept]),
        result("1", "told", ToolOutcome::Ok),
    ]);
    let taken = RecordedCalls::of(&recording).take(&live).unwrap();
    assert_eq!(taken.text, "told");
}

#[test]
fn tools_are_compared_before_text() {
    let turn = |calls: Vec<ToolCall>, text: &str| {
        let mut bodies = vec![prompt("p"), calling(calls.clone())];
        let results = calls.iter();
        bodies.extend(results.map(|call| result(&call.id, "ok", ToolOutcome::Ok)));
        bodies.push(answer(text));
        bodies
    };
    let grep = |pattern: &str| call("1", "grep", json!({ "pattern": pattern }));
    let original = || turn(vec![grep("a")], "text");
    assert_eq!(
        matches(original(), turn(vec![grep("a")], "text\n\n")),
        [TurnMatch::Same]
    );
    assert_eq!(
        matches(original(), turn(vec![grep("a")], "Text")),
        [TurnMatch::OtherText]
    );
    for calls in [vec![], vec![grep("b")], vec![grep("a"), grep("a")]] {
        assert_eq!(
            matches(original(), turn(calls, "other")),
            [TurnMatch::OtherTools]
        );
    }
    let other_id = ToolCall {
        id: "9".to_owned(),
        ..grep("a")
    };
    assert_eq!(
        matches(original(), turn(vec![other_id], "text")),
        [TurnMatch::Same]
    );
}

#[test]
fn a_call_that_the_recording_lacks_is_a_divergence() {
    let grep = || calling(vec![call("1", "grep", json!({}))]);
    let refused = vec![
        prompt("p"),
        grep(),
        result("1", &unrecorded(), ToolOutcome::Denied),
        answer("done"),
    ];
    let without_result = vec![prompt("p"), grep(), answer("done")];
    assert_eq!(
        matches(without_result, refused.clone()),
        [TurnMatch::OtherTools]
    );
    assert_eq!(matches(refused.clone(), refused), [TurnMatch::Same]);
}

#[test]
fn incomplete_answers_are_told_apart() {
    let whole = || vec![prompt("p"), answer("a")];
    let failed = || vec![prompt("p"), failed("auth")];
    let cut = || {
        let interrupted = Message {
            interrupted: true,
            ..said("a")
        };
        vec![prompt("p"), Body::Message(interrupted)]
    };
    assert_eq!(matches(whole(), failed()), [TurnMatch::Failed]);
    assert_eq!(matches(cut(), failed()), [TurnMatch::Failed]);
    assert_eq!(matches(failed(), failed()), [TurnMatch::Same]);
    assert_eq!(matches(failed(), whole()), [TurnMatch::Missing]);
    assert_eq!(matches(cut(), whole()), [TurnMatch::Missing]);
    assert_eq!(matches(whole(), cut()), [TurnMatch::Missing]);
    assert_eq!(matches(whole(), vec![prompt("p")]), [TurnMatch::Missing]);
    assert_eq!(matches(whole(), vec![]), [TurnMatch::Missing]);
    assert_eq!(matches(vec![], whole()), [TurnMatch::Missing]);
}

#[test]
fn similarity_is_the_share_of_common_words() {
    assert_eq!(similarity("", ""), 1.0);
    assert_eq!(similarity("a b c", "x y z"), 0.0);
    assert_eq!(similarity("word", ""), 0.0);
    assert_eq!(similarity("one two three four", "one two 3 four"), 0.75);
    assert_eq!(similarity("one two", "one  two"), 0.9999);
    assert_eq!(similarity("茶会は楽しい", "茶会は悲しい"), 0.8333);
    let long = "word ".repeat(20_000);
    let almost = similarity(&long, &format!("{long}x"));
    assert!((0.99..1.0).contains(&almost), "{almost}");
}

/// Bodies of a chat in any order, also in orders that no program writes.
fn any_body() -> impl Strategy<Value = Body> {
    let text = "[a-c ]{0,6}";
    let id = "[12]";
    prop_oneof![
        3 => text.prop_map(|text| prompt(&text)),
        3 => text.prop_map(|text| answer(&text)),
        1 => text.prop_map(|text| {
            Body::Message(Message {
                interrupted: true,
                ..said(&text)
            })
        }),
        2 => (id, text).prop_map(|(id, text)| calling(vec![call(&id, "grep", json!({ "x": text }))])),
        2 => (id, text).prop_map(|(id, text)| result(&id, &text, ToolOutcome::Ok)),
        1 => id.prop_map(|id| result(&id, &unrecorded(), ToolOutcome::Denied)),
        1 => Just(failed("auth")),
        1 => Just(failed("cancelled")),
    ]
}

fn any_log() -> impl Strategy<Value = Vec<Body>> {
    prop::collection::vec(any_body(), 0..30)
}

proptest! {
    #[test]
    fn a_log_does_not_diverge_from_itself(bodies in any_log()) {
        let recording = recording(bodies);
        let compared = compare(&recording.turns, &recording.turns);
        prop_assert_eq!(compared.turns.len(), recording.turns.len());
        prop_assert_eq!(compared.first_divergence(), None);
        for turn in compared.turns {
            prop_assert_eq!(turn.similarity, Some(1.0));
        }
    }

    #[test]
    fn the_first_divergence_is_the_first_of_all(one in any_log(), other in any_log()) {
        let (one, other) = (recording(one), recording(other));
        let compared = compare(&one.turns, &other.turns);
        let first = compared.first_divergence();
        let upto = first.unwrap_or(compared.turns.len());
        // All turns before it are the same by themselves, too.
        prop_assert_eq!(
            compare(&one.turns[..upto], &other.turns[..upto]).first_divergence(),
            None
        );
        if let Some(first) = first {
            prop_assert!(compared.turns[first].result != TurnMatch::Same);
            let (one, other) = (one.turns.get(first), other.turns.get(first));
            let differs = one.zip(other).is_none_or(|(one, other)| {
                one.text != other.text || one.end != other.end || one.calls != other.calls
            });
            prop_assert!(differs);
        }
    }

    #[test]
    fn a_changed_turn_is_where_it_diverges(bodies in any_log(), at in any::<prop::sample::Index>()) {
        let original = recording(bodies);
        prop_assume!(!original.turns.is_empty());
        let at = at.index(original.turns.len());
        let mut replay = original.clone();
        replay.turns[at].text.push_str(" changed");
        replay.turns.truncate(at + 1);
        let compared = compare(&original.turns, &replay.turns);
        prop_assert_eq!(compared.first_divergence(), Some(at));
        prop_assert_eq!(compared.turns[at].result, TurnMatch::OtherText);
    }

    #[test]
    fn only_equal_texts_have_a_similarity_of_one(one in "[ab ]{0,12}", other in "[ab ]{0,12}") {
        let forth = similarity(&one, &other);
        prop_assert!((0.0..=1.0).contains(&forth));
        prop_assert_eq!(forth == 1.0, one == other);
    }
}
