use super::*;
use proptest::prelude::*;
use tertulia_core::entry::ToolCall;

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
