use super::*;
use proptest::prelude::*;
use tertulia_agents::FailureKind;
use tertulia_core::entry::{Failed, Speaker, SpeakerKind, ToolCall, plain};

fn said(role: Role, content: &str, calls: &[&str], answers: Option<&str>) -> ContextMessage {
    let calls = calls
        .iter()
        .map(|id| ToolCall {
            id: (*id).to_owned(),
            name: "t".into(),
            arguments: serde_json::json!({}),
        })
        .collect();
    ContextMessage {
        seq: None,
        words: PromptMessage {
            calls,
            answers: answers.map(str::to_owned),
            ..PromptMessage::plain(role, "x", content)
        },
        unredacted: None,
        environment: None,
    }
}

fn short(messages: &[PromptMessage]) -> String {
    messages
        .iter()
        .map(|words| words.content.as_str())
        .collect::<Vec<_>>()
        .join("|")
}

#[test]
fn the_oldest_go_first_and_this_turn_never() {
    let past = [
        said(Role::User, "aaaa", &[], None),
        said(Role::Assistant, "bbbb", &[], None),
        said(Role::User, "cc", &[], None),
    ];
    let turn = [PromptMessage::plain(Role::User, "x", "now")];
    let check = |summed: Option<&str>, room, expected: &str| {
        let summed = summed.map(|words| PromptMessage::plain(Role::System, "s", words));
        assert_eq!(
            short(&context(summed.as_ref(), &past, &turn, room)),
            expected
        );
    };
    check(None, 100, "aaaa|bbbb|cc|now");
    check(None, 9, "bbbb|cc|now");
    check(None, 8, "cc|now");
    check(None, 0, "now");
    check(Some("sum"), 12, "sum|bbbb|cc|now");
}

#[test]
fn the_longest_lose_their_middles_and_what_is_asked_stays() {
    let long = "é".repeat(5000);
    let messages = || {
        let said = [
            said(Role::User, "short", &[], None),
            said(Role::Assistant, &long, &[], None),
            said(Role::User, &long, &[], None),
        ];
        said.map(|said| said.words).to_vec()
    };
    let shorter = shortened(messages(), 12_000).unwrap();
    assert_eq!(shorter[0].content, "short");
    assert_eq!(shorter[2].content, long);
    let cut = &shorter[1].content;
    assert!(
        cut.len() < 2_100 && cut.contains("bytes left out here"),
        "{}",
        cut.len()
    );
    assert!(cut.starts_with('é') && cut.ends_with('é'));
    // A part of each message is always kept.
    let least = shortened(messages(), 0).unwrap();
    assert!(least[1].content.len() > 100);
    assert_eq!(shortened(least, 0), None);
    assert_eq!(shortened(messages(), 100_000), None);
}

#[test]
fn results_follow_their_calls() {
    let past = [
        said(Role::Tool, "orphan", &[], Some("0")),
        said(Role::Assistant, "call", &["1", "2"], None),
        said(Role::User, "meanwhile", &[], None),
        said(Role::Tool, "two", &[], Some("2")),
    ];
    let given = context(None, &past, &[], 1000);
    assert_eq!(short(&given), format!("call|{INTERRUPTED}|two|meanwhile"));
    let open = dangling(&past);
    assert_eq!(
        open.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(),
        ["1"]
    );
}

#[test]
fn what_stays_begins_with_a_human() {
    let past = [
        said(Role::User, "q1", &[], None),
        said(Role::Assistant, "a1", &[], None),
        said(Role::User, "q2", &[], None),
        said(Role::Assistant, "a2", &[], None),
    ];
    let count = |words: &PromptMessage| words.content.len() as u64;
    let check = |keep, expected| assert_eq!(older(&past, keep, count), expected, "{keep}");
    check(0, 4);
    check(3, 4);
    check(4, 2);
    check(7, 2);
    check(8, 0);
}

fn any_said() -> impl Strategy<Value = ContextMessage> {
    (
        0..4u8,
        "[a-z]{0,9}",
        prop::collection::vec("[1-3]", 0..3),
        "[1-3]",
    )
        .prop_map(|(role, content, calls, answers)| {
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            match role {
                0 => said(Role::User, &content, &[], None),
                1 => said(Role::Tool, &content, &[], Some(&answers)),
                _ => said(Role::Assistant, &content, &calls, None),
            }
        })
}

proptest! {
    /// Whatever was cut off or lost, each call is followed by exactly its results.
    #[test]
    fn every_provider_can_read_it(past in prop::collection::vec(any_said(), 0..20), room in 0usize..100) {
        let given = context(None, &past, &[], room);
        let mut due: Vec<String> = Vec::new();
        for words in &given {
            match &words.answers {
                Some(id) => {
                    prop_assert!(!due.is_empty());
                    prop_assert_eq!(&due.remove(0), id);
                }
                None => prop_assert!(due.is_empty()),
            }
            due.extend(words.calls.iter().map(|call| call.id.clone()));
        }
        prop_assert!(due.is_empty());
    }
}

fn message(kind: SpeakerKind, role: Role, content: &str) -> Body {
    let speaker = Speaker::plain("x", kind);
    Body::Message(plain(&speaker, role, content.to_owned()))
}

fn human(content: &str) -> Body {
    message(SpeakerKind::Human, Role::User, content)
}

fn stopped() -> Body {
    Body::Failed(Failed {
        agent: "demo".to_owned(),
        kind: FailureKind::Cancelled.name().to_owned(),
        message: String::new(),
        retry_at: None,
        withdrawn: true,
    })
}

/// Adds entries as a write does: as logged, and before redaction.
fn add(context: &mut Context, logged: &Body, unredacted: &Body) {
    let seq = Some(Seq::START);
    context.add(seq, logged, unredacted);
}

#[test]
fn secrets_reach_the_agent_until_the_turn_ends() {
    let mut context = Context::default();
    add(&mut context, &human("key [redacted]"), &human("key sk-1"));
    context.begin_answer();
    assert_eq!(short(&context.prompt()), "key sk-1");
    assert!(context.past().is_empty());
    let answer = message(SpeakerKind::Ai, Role::Assistant, "fine");
    add(&mut context, &answer, &answer);
    assert_eq!(short(&context.prompt()), "key sk-1|fine");
    context.end_turn();
    assert_eq!(short(&context.prompt()), "key [redacted]|fine");
    assert_eq!(context.past().len(), 2);
}

#[test]
fn a_stopped_message_is_withdrawn_when_another_follows() {
    let mut context = Context::default();
    for body in [human("one"), stopped()] {
        add(&mut context, &body, &body);
    }
    context.end_turn();
    // A pair may still resume it.
    assert_eq!(short(&context.prompt()), "one");
    add(&mut context, &human("two"), &human("two"));
    let given = context.prompt();
    assert_eq!(given[0].withdrawn.as_deref(), Some("demo"));
    assert!(given[0].content.ends_with("> one"), "{}", given[0].content);
    assert_eq!(given[1].content, "two");
    // In a chat, nothing can resume it.
    add(&mut context, &stopped(), &stopped());
    context.withdraw_stopped();
    assert_eq!(context.prompt()[1].withdrawn.as_deref(), Some("demo"));
}

#[test]
fn a_summary_replaces_the_oldest_and_the_rest_keeps_its_place() {
    let mut context = Context::default();
    for number in 0..4 {
        let body = human(&number.to_string());
        add(&mut context, &body, &body);
    }
    context.begin_answer();
    assert_eq!(context.past().len(), 3);
    context.compact(2, "sum");
    assert_eq!(context.past().len(), 1);
    add(&mut context, &stopped(), &stopped());
    context.withdraw_stopped();
    let given = context.prompt();
    assert!(given[0].content.ends_with("sum"), "{}", given[0].content);
    assert_eq!(given[1].content, "2");
    assert!(given[2].content.ends_with("> 3"), "{}", given[2].content);
}

/// The first environment belongs to the system prompt, later ones to the messages that they were told
/// with: also after the messages before them were summarised.
#[test]
fn a_changed_environment_goes_with_its_message() {
    let environment = |day: i8, thread: Option<&str>| {
        Body::Environment(Environment {
            date: jiff::civil::date(2026, 3, day),
            git: None,
            approve: "ask".to_owned(),
            thread: thread.map(str::to_owned),
        })
    };
    let mut context = Context::default();
    let answer = message(SpeakerKind::Ai, Role::Assistant, "yes");
    for body in [
        human("one"),
        environment(1, None),
        answer.clone(),
        human("two"),
        answer.clone(),
        human("three"),
        environment(2, None),
        answer.clone(),
        human("four"),
        environment(3, None),
        answer,
    ] {
        add(&mut context, &body, &body);
    }
    let day = |environment: Option<&Environment>| environment.map(|told| told.date.day());
    let notes = |context: &Context| -> Vec<String> {
        let notes = context.given().filter_map(|words| words.note.clone());
        notes.collect()
    };
    let told = ["2", "3"].map(|day| format!("[The date is now 2026-03-0{day}.]"));
    assert_eq!(notes(&context), told);
    assert_eq!(day(context.first_environment()), Some(1));
    assert_eq!(day(context.last_environment()), Some(3));
    context.compact(4, "summary");
    assert_eq!(notes(&context), told[1..]);
    assert_eq!(day(context.first_environment()), Some(2));
    assert!(concerns(&environment(1, None), None));
    assert!(!concerns(&environment(1, Some("worker")), None));
}
