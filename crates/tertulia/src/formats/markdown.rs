//! A session for people to read and to put elsewhere.

use crate::entry::{Body, Entry, Message, Role};
use crate::session::{Log, Summary};

/// The whole transcript.
pub fn transcript(summary: &Summary, log: &Log) -> String {
    let mut text = format!("# {}\n\n", one_line(summary.title_or_untitled()));
    text.push_str(&format!("- session: `{}`\n", summary.id));
    text.push_str(&format!("- kind: {}\n", summary.kind.name()));
    text.push_str(&format!("- begun: {}\n", summary.created_at));
    if !summary.agents.is_empty() {
        text.push_str(&format!("- agents: {}\n", summary.agents.join(", ")));
    }
    if !summary.tags.is_empty() {
        text.push_str(&format!("- tags: {}\n", summary.tags.join(", ")));
    }
    if let Some(parent) = &summary.parent {
        text.push_str(&format!(
            "- {} of `{}` at entry {}\n",
            parent.relation.name(),
            parent.id,
            parent.seq
        ));
    }
    for damage in &log.damage {
        text.push_str(&format!(
            "- damaged: entry {}: {}\n",
            damage.seq,
            one_line(&damage.reason)
        ));
    }
    for entry in &log.entries {
        text.push_str(&section(entry));
    }
    text
}

fn section(entry: &Entry) -> String {
    match &entry.body {
        Body::Message(message) => spoken(entry, message),
        Body::Failed(failed) if failed.withdrawn => {
            format!("\n> {}: (stopped before an answer)\n", failed.agent)
        }
        Body::Failed(failed) => {
            format!(
                "\n> {} failed ({}): {}\n",
                failed.agent,
                failed.kind,
                one_line(&failed.message)
            )
        }
        Body::Lost(lost) => format!("\n> An entry is lost here: {}\n", one_line(&lost.reason)),
        _ => String::new(),
    }
}

fn spoken(entry: &Entry, message: &Message) -> String {
    let mut text = format!(
        "\n## {} · {}\n\n",
        one_line(&message.speaker.display_name),
        entry.at
    );
    if message.role == Role::Tool {
        // What a tool printed is not written for this page.
        let fence = fence_for(&message.content);
        let output = message.content.trim_end_matches('\n');
        text.push_str(&format!("{fence}\n{output}\n{fence}\n"));
    } else if !message.content.is_empty() {
        text.push_str(&message.content);
        if !message.content.ends_with('\n') {
            text.push('\n');
        }
    }
    for call in &message.tool_calls {
        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        let fence = fence_for(&arguments);
        text.push_str(&format!(
            "\nTool `{}`:\n\n{fence}json\n{arguments}\n{fence}\n",
            call.name
        ));
    }
    if message.interrupted {
        text.push_str("\n> (interrupted)\n");
    }
    text
}

/// A fence that the content does not close.
fn fence_for(content: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in content.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_hold() {
        let check = |content: &str, expected: &str| assert_eq!(fence_for(content), expected);
        check("plain", "```");
        check("a ``` b", "````");
        check("`````", "``````");
    }
}
