//! Renders a conversation as one prompt, for programs that take only text, and selects the messages
//! that an agent's own session lacks.

use super::PromptMessage;
use tertulia_core::entry::Role;

/// Maximum length of a tool's arguments or result in characters, for an agent that takes over: the
/// conversation matters more.
const TOOL_WORDS: usize = 400;

/// Precedes what was said to and by another agent.
const HANDED_OVER: &str = "[You take over this conversation from another agent. What was said without you follows, with long \
results of tools shortened. Answer the last message.]";

/// Tells an agent about a withdrawn message that its own session has.
const WITHDRAWN: &str = "[The message before this one was stopped before an answer and is withdrawn: do not act on it.]";

/// What an agent's own session keeps of a turn that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recall {
    /// The prompt, and the answer up to the cut.
    All,
    /// The prompt and the tools that were used, but not the answer that was cut off.
    Asked,
    /// Nothing, or unknown.
    Nothing,
}

/// Returns the messages that an agent's own session lacks, given that it has seen the first `known`
/// messages. The last one is to be answered.
pub(super) fn unheard(
    name: &str,
    messages: &[PromptMessage],
    known: usize,
    recall: Recall,
) -> Vec<PromptMessage> {
    let known = known.min(messages.len().saturating_sub(1));
    let (before, after) = messages.split_at(known);
    let mut told: Vec<PromptMessage> = match recall {
        Recall::All => Vec::new(),
        Recall::Asked => cut_off_turn(before)
            .iter()
            .filter(|words| words.role == Role::Assistant && words.cut_off)
            .cloned()
            .collect(),
        Recall::Nothing => cut_off_turn(before).to_vec(),
    };
    for words in after {
        let has_it = recall != Recall::Nothing && words.withdrawn.as_deref() == Some(name);
        match has_it {
            true if told.last().is_some_and(|last| last.content == WITHDRAWN) => {}
            true => told.push(PromptMessage {
                content: WITHDRAWN.to_owned(),
                ..words.clone()
            }),
            false => told.push(words.clone()),
        }
    }
    told
}

/// Returns the last turn if it was cut off, or an empty slice.
fn cut_off_turn(messages: &[PromptMessage]) -> &[PromptMessage] {
    let asked = messages.iter().rposition(|words| words.role == Role::User);
    let turn = &messages[asked.unwrap_or(0)..];
    match turn.iter().any(|words| words.cut_off) {
        true => turn,
        false => &[],
    }
}

/// Renders a first message alone, and later ones with the conversation before them, so that the
/// agent `name` can follow without a memory of its own. `system` precedes everything. A conversation in
/// which another agent answered is handed over: that is said, and the results of tools are shortened.
pub(super) fn talk(name: &str, system: Option<&str>, messages: &[PromptMessage]) -> String {
    let mut parts = Vec::new();
    parts.extend(system.map(str::to_owned));
    if let Some((last, earlier)) = messages.split_last() {
        let is_other = |said: &PromptMessage| said.role == Role::Assistant && said.speaker != name;
        let is_handed_over = earlier.iter().any(is_other);
        parts.extend(is_handed_over.then(|| HANDED_OVER.to_owned()));
        let room = if is_handed_over {
            TOOL_WORDS
        } else {
            usize::MAX
        };
        parts.extend(earlier.iter().map(|said| told(said, room)));
        parts.push(last.content.clone());
    }
    parts.join("\n\n")
}

/// Renders one earlier message, with at most `room` characters of a tool's arguments or result.
fn told(message: &PromptMessage, room: usize) -> String {
    if message.role == Role::Tool {
        return format!("[result: {}]", brief(&message.content, room));
    }
    let mut lines = Vec::new();
    if !message.content.is_empty() || message.calls.is_empty() {
        let mark = if message.cut_off {
            " [cut off here]"
        } else {
            ""
        };
        lines.push(format!("{}: {}{mark}", message.speaker, message.content));
    }
    lines.extend(message.calls.iter().map(|call| {
        let given = brief(&call.arguments.to_string(), room);
        format!("[{} used {} {given}]", message.speaker, call.name)
    }));
    lines.join("\n")
}

fn brief(text: &str, room: usize) -> String {
    let mut words: String = text.trim().chars().take(room).collect();
    if words.len() < text.trim().len() {
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use tertulia_core::entry::ToolCall;

    fn check(system: Option<&str>, messages: &[PromptMessage], expected: &str) {
        assert_eq!(talk("bot", system, messages), expected);
    }

    #[test]
    fn the_last_words_stand_alone() {
        let (ana, bot) = (
            PromptMessage::plain(Role::User, "ana", "one"),
            PromptMessage::plain(Role::Assistant, "bot", "two"),
        );
        let last = PromptMessage::plain(Role::User, "ana", "three");
        check(None, &[], "");
        check(None, std::slice::from_ref(&ana), "one");
        check(
            Some("Be kind."),
            std::slice::from_ref(&ana),
            "Be kind.\n\none",
        );
        check(None, &[ana, bot, last], "ana: one\n\nbot: two\n\nthree");
    }

    #[test]
    fn only_what_its_own_session_lacks_is_told() {
        let said = |role, words: &str| PromptMessage::plain(role, "bot", words);
        let withdrawn = |agent: &str| PromptMessage {
            withdrawn: Some(agent.to_owned()),
            ..said(Role::User, "[marked] no")
        };
        let partial = PromptMessage {
            cut_off: true,
            ..said(Role::Assistant, "two is")
        };
        let (one, three) = (said(Role::User, "one"), said(Role::User, "three"));
        let check = |messages: &[PromptMessage], known, recall, expected: &str| {
            let told = talk("bot", None, &unheard("bot", messages, known, recall));
            assert_eq!(told, expected, "{recall:?}");
        };
        let cut_off = [one.clone(), partial, three.clone()];
        check(&cut_off, 2, Recall::All, "three");
        check(&cut_off, 9, Recall::All, "three");
        check(
            &cut_off,
            2,
            Recall::Asked,
            "bot: two is [cut off here]\n\nthree",
        );
        check(
            &cut_off,
            2,
            Recall::Nothing,
            "bot: one\n\nbot: two is [cut off here]\n\nthree",
        );
        let answered = [one, said(Role::Assistant, "two"), three.clone()];
        for recall in [Recall::All, Recall::Asked, Recall::Nothing] {
            check(&answered, 2, recall, "three");
            check(&answered, 1, recall, "bot: two\n\nthree");
        }
        let stopped = [withdrawn("bot"), withdrawn("bot"), three.clone()];
        for recall in [Recall::All, Recall::Asked] {
            check(&stopped, 0, recall, &format!("bot: {WITHDRAWN}\n\nthree"));
        }
        let words = "bot: [marked] no\n\nthree";
        check(&stopped[1..], 0, Recall::Nothing, words);
        // This agent has never seen what another agent was prompted with.
        check(&[withdrawn("ana"), three], 0, Recall::All, words);
    }

    #[test]
    fn only_a_hand_over_is_announced_and_shortened() {
        let mut called = PromptMessage::plain(Role::Assistant, "bot", "");
        called.calls.push(ToolCall {
            id: "1".into(),
            name: "shell".into(),
            arguments: serde_json::json!({"command": "ls"}),
        });
        let result = PromptMessage::plain(Role::Tool, "shell", format!("é{}", "x".repeat(1000)));
        let last = PromptMessage::plain(Role::User, "ana", "and?");
        let own = format!(
            "[bot used shell {{\"command\":\"ls\"}}]\n\n[result: é{}]\n\nand?",
            "x".repeat(1000)
        );
        let talked = [called.clone(), result, last.clone()];
        check(None, &talked, &own);
        let taken = format!(
            "{HANDED_OVER}\n\n[bot used shell {{\"command\":\"ls\"}}]\n\n[result: é{}…]\n\nand?",
            "x".repeat(399)
        );
        assert_eq!(talk("other", None, &talked), taken);
        called.content = "Looking.".into();
        check(
            None,
            &[called, last],
            "bot: Looking.\n[bot used shell {\"command\":\"ls\"}]\n\nand?",
        );
    }
}
