//! A talk as one text, for programs that are given nothing else.

use super::Utterance;
use crate::entry::Role;

/// Longer than this, what a tool was given or answered is cut: the talk is what matters.
const TOOL_WORDS: usize = 400;

/// The first words alone; later ones with the talk before them, so that a program that remembers
/// nothing can follow. `system` precedes everything.
pub(super) fn talk(system: Option<&str>, messages: &[Utterance]) -> String {
    let mut parts = Vec::new();
    parts.extend(system.map(str::to_owned));
    if let Some((last, earlier)) = messages.split_last() {
        parts.extend(earlier.iter().map(told));
        parts.push(last.content.clone());
    }
    parts.join("\n\n")
}

/// One earlier message, with the tools that it used in brief.
fn told(message: &Utterance) -> String {
    if message.role == Role::Tool {
        return format!("[result: {}]", brief(&message.content));
    }
    let mut lines = Vec::new();
    if !message.content.is_empty() || message.calls.is_empty() {
        lines.push(format!("{}: {}", message.speaker, message.content));
    }
    lines.extend(message.calls.iter().map(|call| {
        let given = brief(&call.arguments.to_string());
        format!("[{} used {} {given}]", message.speaker, call.name)
    }));
    lines.join("\n")
}

fn brief(text: &str) -> String {
    let mut words: String = text.trim().chars().take(TOOL_WORDS).collect();
    if words.len() < text.trim().len() {
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::ToolCall;

    fn check(system: Option<&str>, messages: &[Utterance], expected: &str) {
        assert_eq!(talk(system, messages), expected);
    }

    #[test]
    fn the_last_words_stand_alone() {
        let (ana, bot) = (
            Utterance::plain(Role::User, "ana", "one"),
            Utterance::plain(Role::Assistant, "bot", "two"),
        );
        let last = Utterance::plain(Role::User, "ana", "three");
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
    fn tools_are_told_in_brief() {
        let mut called = Utterance::plain(Role::Assistant, "bot", "");
        called.calls.push(ToolCall {
            id: "1".into(),
            name: "shell".into(),
            arguments: serde_json::json!({"command": "ls"}),
        });
        let result = Utterance::plain(Role::Tool, "shell", format!("é{}", "x".repeat(1000)));
        let last = Utterance::plain(Role::User, "ana", "and?");
        let expected = format!(
            "[bot used shell {{\"command\":\"ls\"}}]\n\n[result: é{}…]\n\nand?",
            "x".repeat(399)
        );
        check(None, &[called.clone(), result, last.clone()], &expected);
        called.content = "Looking.".into();
        check(
            None,
            &[called, last],
            "bot: Looking.\n[bot used shell {\"command\":\"ls\"}]\n\nand?",
        );
    }
}
