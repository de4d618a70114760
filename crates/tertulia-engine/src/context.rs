//! Builds an agent's context: the compaction summary of the older part, as many of the later
//! messages as fit, and the current turn complete, with every tool call followed by its result.

use super::chat::INTERRUPTED;
use tertulia_agents::PromptMessage;
use tertulia_core::entry::{Message, Role};
use tertulia_core::id::Seq;

/// Heading of the compaction summary.
const SUMMARY: &str = "Summary of the conversation up to here:";

/// Prompt for a compaction summary of the older part.
pub const SUMMARISE: &str = "Summarise our conversation so far, so that you can go on with nothing but \
your summary. Keep what matters for going on: what was asked for, what was decided and why, what was done \
and with which result, names, paths, numbers and code that will be needed again, and what is still open. \
Answer with the summary alone.";

/// A message in the context.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextMessage {
    /// Sequence number in the log, once it has one.
    pub seq: Option<Seq>,
    /// The message as an agent receives it.
    pub words: PromptMessage,
}

/// What an agent remembers of a session: one per thread.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// Compaction summary that replaces the messages before `messages`.
    pub summary: Option<PromptMessage>,
    /// Messages, oldest first.
    pub messages: Vec<ContextMessage>,
}

/// Converts a message of the log for a prompt.
pub fn prompt_message(message: &Message) -> PromptMessage {
    PromptMessage {
        calls: message.tool_calls.clone(),
        answers: message.tool_call_id.clone(),
        cut_off: message.interrupted,
        ..PromptMessage::plain(
            message.role,
            &message.speaker.display_name,
            message.content.clone(),
        )
    }
}

/// Converts the compaction summary for a prompt.
pub fn summary(words: &str) -> PromptMessage {
    PromptMessage::plain(Role::System, "summary", format!("{SUMMARY}\n\n{words}"))
}

/// Returns the messages for an agent, oldest first, in `room` bytes. The current turn is always
/// complete.
pub fn context(
    summary: Option<&PromptMessage>,
    past: &[ContextMessage],
    turn: &[PromptMessage],
    room: usize,
) -> Vec<PromptMessage> {
    let fixed: usize = summary.into_iter().chain(turn).map(weight).sum();
    let mut room = room.saturating_sub(fixed);
    let fits = past
        .iter()
        .rev()
        .take_while(|said| {
            let weight = weight(&said.words);
            let fits = weight <= room;
            room = room.saturating_sub(weight);
            fits
        })
        .count();
    let recent = past[past.len() - fits..].iter().map(|said| &said.words);
    let messages: Vec<&PromptMessage> = summary.into_iter().chain(recent).chain(turn).collect();
    paired(&messages)
}

/// Returns the total size of messages in bytes.
pub fn total_weight(messages: &[PromptMessage]) -> usize {
    messages.iter().map(weight).sum()
}

/// Returns the size of a message in bytes.
pub fn weight(words: &PromptMessage) -> usize {
    let calls: usize = words
        .calls
        .iter()
        .map(|call| call.name.len() + call.arguments.to_string().len())
        .sum();
    words.content.len() + calls
}

/// Minimum number of bytes kept of a message that is cut.
const LEAST: usize = 200;

/// Cuts the middles of the longest messages, so that all together have at most `room` bytes. The
/// message to answer stays complete, and the log keeps everything. Returns `None` if nothing can be
/// cut.
pub fn shortened(mut messages: Vec<PromptMessage>, room: usize) -> Option<Vec<PromptMessage>> {
    let asked = messages.iter().rposition(|words| words.role == Role::User);
    let total = total_weight(&messages);
    let fixed = asked.map_or(0, |at| weight(&messages[at]));
    let (mut low, mut high) = (LEAST, total.max(LEAST));
    while low < high {
        let cap = low.midpoint(high + 1);
        let others = messages.iter().enumerate();
        let others = others.filter(|(at, _)| Some(*at) != asked);
        let sum: usize = others.map(|(_, words)| weight(words).min(cap)).sum();
        match sum + fixed <= room {
            true => low = cap,
            false => high = cap - 1,
        }
    }
    let mut cut = false;
    for (at, words) in messages.iter_mut().enumerate() {
        if Some(at) != asked
            && let Some(shorter) = without_middle(&words.content, low)
        {
            words.content = shorter;
            cut = true;
        }
    }
    cut.then_some(messages)
}

/// Cuts the middle of a text that is longer than `room`: two thirds of the rest are its beginning.
fn without_middle(text: &str, room: usize) -> Option<String> {
    // The mark takes some room, too.
    if text.len() <= room + LEAST / 2 {
        return None;
    }
    let head = text.floor_char_boundary(room / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - room / 3);
    let missing = tail.saturating_sub(head);
    Some(format!(
        "{}\n[… {missing} bytes left out here …]\n{}",
        &text[..head],
        &text[tail..]
    ))
}

/// Puts each result directly after its call, a mark in place of a missing one, and drops results
/// without a call: providers accept nothing else.
fn paired(messages: &[&PromptMessage]) -> Vec<PromptMessage> {
    let mut taken = vec![false; messages.len()];
    let mut paired = Vec::new();
    for (at, words) in messages.iter().enumerate() {
        if words.role == Role::Tool {
            continue;
        }
        paired.push((*words).clone());
        for call in &words.calls {
            let result = (at + 1..messages.len()).find(|&later| {
                !taken[later] && messages[later].answers.as_deref() == Some(call.id.as_str())
            });
            paired.push(match result {
                Some(later) => {
                    taken[later] = true;
                    messages[later].clone()
                }
                None => PromptMessage {
                    answers: Some(call.id.clone()),
                    ..PromptMessage::plain(Role::Tool, &call.name, INTERRUPTED)
                },
            });
        }
    }
    paired
}

/// Returns the calls without a result, oldest first: these remain after a crash.
pub fn dangling(past: &[ContextMessage]) -> Vec<tertulia_core::entry::ToolCall> {
    let mut open: Vec<tertulia_core::entry::ToolCall> = Vec::new();
    for said in past {
        open.extend(said.words.calls.iter().cloned());
        if let Some(answers) = &said.words.answers
            && let Some(at) = open.iter().position(|call| &call.id == answers)
        {
            open.remove(at);
        }
    }
    open
}

/// Returns how many of the oldest messages must be summarised so that the rest counts at most
/// `keep`. The rest begins with a user's message, or is empty.
pub fn older(past: &[ContextMessage], keep: u64, count: impl Fn(&PromptMessage) -> u64) -> usize {
    let mut kept = 0;
    let mut cut = past.len();
    for (at, said) in past.iter().enumerate().rev() {
        kept += count(&said.words);
        if kept > keep {
            break;
        }
        if said.words.role == Role::User {
            cut = at;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
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
}
