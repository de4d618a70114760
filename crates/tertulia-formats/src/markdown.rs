//! Exports a session as Markdown.

mod index;

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use tertulia_core::entry::{Body, Entry, Message, Role, ToolOutcome};
use tertulia_core::session::{Log, SessionMeta};

use crate::html::escape;
pub use index::{index, is_index};

/// Returns the whole transcript.
pub fn transcript(meta: &SessionMeta, log: &Log) -> String {
    let mut text = format!("# {}\n\n", one_line(meta.title_or_untitled()));
    text.push_str(&format!("- session: `{}`\n", meta.id));
    text.push_str(&format!("- kind: {}\n", meta.kind.name()));
    text.push_str(&format!("- created: {}\n", meta.created_at));
    text.push_str(&format!("- updated: {}\n", meta.updated_at));
    text.push_str(&format!("- messages: {}\n", meta.messages));
    let tokens = meta.tokens;
    text.push_str(&format!(
        "- tokens: {} ({} in, {} out)\n",
        tokens.input + tokens.output,
        tokens.input,
        tokens.output
    ));
    if !meta.agents.is_empty() {
        text.push_str(&format!(
            "- agents: {}\n",
            one_line(&meta.agents.join(", "))
        ));
    }
    if !meta.tags.is_empty() {
        text.push_str(&format!("- tags: {}\n", one_line(&meta.tags.join(", "))));
    }
    if let Some(parent) = &meta.parent {
        let (relation, id) = (parent.relation.name(), parent.id);
        text.push_str(&match parent.place() {
            Some(seq) => format!("- {relation} of `{id}` at entry {seq}\n"),
            None => format!("- {relation} of `{id}`\n"),
        });
    }
    if let Some(merged) = &meta.merged {
        text.push_str(&format!(
            "- and of `{}` at entry {}\n",
            merged.id, merged.seq
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
            format!(
                "\n> {}: (stopped before an answer)\n",
                one_line(&failed.agent)
            )
        }
        Body::Failed(failed) => format!("\n> {}\n", one_line(&failed.to_string())),
        Body::Switched(switched) => format!("\n> {}\n", one_line(&switched.to_string())),
        Body::Lost(lost) => format!("\n> An entry is lost here: {}\n", one_line(&lost.reason)),
        Body::Shell(shell) => {
            let fence = fence_for(&shell.command);
            format!(
                "\n## You · {}\n\n{fence}sh\n{}\n{fence}\n",
                entry.at,
                shell.command.trim_end_matches('\n')
            )
        }
        Body::ShellOutput(shell) => {
            let text = shell.text();
            let fence = fence_for(&text);
            format!("\n{fence}\n{}\n{fence}\n", text.trim_end_matches('\n'))
        }
        _ => String::new(),
    }
}

fn spoken(entry: &Entry, message: &Message) -> String {
    let mut text = format!(
        "\n## {} · {}\n\n",
        one_line(&message.speaker.display_name),
        entry.at
    );
    if let Some(outcome) = message
        .tool_outcome()
        .filter(|outcome| *outcome != ToolOutcome::Ok)
    {
        text.push_str(&format!("{} {}\n\n", outcome.sign(), outcome.name()));
    }
    if message.role == Role::Tool {
        // Tool output is not Markdown.
        let fence = fence_for(&message.content);
        let output = message.content.trim_end_matches('\n');
        text.push_str(&format!("{fence}\n{output}\n{fence}\n"));
    } else if !message.content.is_empty() {
        text.push_str(&contained(&message.content));
    }
    for file in &message.attachments {
        let content = file.marked();
        let fence = fence_for(&content);
        text.push_str(&format!(
            "\n<details>\n<summary>Attached {}, {} bytes</summary>\n\n{fence}\n{}\n{fence}\n\n</details>\n",
            escape(&one_line(&file.path)),
            file.bytes,
            content.trim_end_matches('\n')
        ));
    }
    for call in &message.tool_calls {
        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        let fence = fence_for(&arguments);
        text.push_str(&format!(
            "\nTool `{}`:\n\n{fence}json\n{arguments}\n{fence}\n",
            one_line(&call.name)
        ));
    }
    if message.interrupted {
        text.push_str("\n> (interrupted)\n");
    }
    text
}

/// Added to headings in messages, to place them below those of the speakers.
const DEEPER: &str = "##";

/// Returns the text of a message in a form in which no heading can pass for a speaker and no open
/// construct (a fence, a comment) can swallow the next message. It renders the same otherwise.
fn contained(content: &str) -> String {
    let mut text = content.to_owned();
    let headings: Vec<Range<usize>> = Parser::new(content)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Heading { .. }) => Some(range),
            _ => None,
        })
        .collect();
    for range in headings.into_iter().rev() {
        let heading = &content[range.clone()];
        match atx_marks(heading) {
            // Setext heading: the underline becomes a rule.
            None => {
                let underline = heading.trim_end().rfind('\n').unwrap_or(0);
                text.insert(range.start + underline, '\n');
            }
            Some(1..=4) => text.insert_str(range.start, DEEPER),
            // There are only six levels.
            Some(marks) => text.insert_str(range.start, &"#".repeat(6 - marks)),
        }
    }
    let text = without_html_headings(&text);
    let text = format!("{}\n", text.strip_suffix('\n').unwrap_or(&text));
    if !is_open(&text) {
        return text;
    }
    let last = text.lines().rev().find_map(opening_fence);
    let closed = format!("{text}{}\n", last.unwrap_or_default());
    if last.is_some() && !is_open(&closed) {
        return closed;
    }
    let fence = fence_for(content);
    format!("{fence}\n{}\n{fence}\n", content.trim_end_matches('\n'))
}

/// Returns the number of marks of an ATX heading (`## title`), or `None` for a setext heading, whose
/// first line may begin with marks, too (`#title`).
fn atx_marks(heading: &str) -> Option<usize> {
    let title = heading.trim_start_matches('#');
    let marks = heading.len() - title.len();
    let is_atx = title.is_empty() || title.starts_with(char::is_whitespace);
    (is_atx && (1..=6).contains(&marks)).then_some(marks)
}

/// Returns true if a heading after the text would not be parsed as one.
fn is_open(text: &str) -> bool {
    let probed = format!("{text}\n## x\n");
    let start = text.len() + 1;
    !Parser::new(&probed)
        .into_offset_iter()
        .any(|(event, range)| {
            matches!(event, Event::Start(Tag::Heading { .. })) && range.start == start
        })
}

/// Returns the fence with which a line opens a code block.
fn opening_fence(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '>']);
    ['`', '~'].into_iter().find_map(|mark| {
        let length = line.len() - line.trim_start_matches(mark).len();
        (length >= 3).then(|| &line[..length])
    })
}

/// Escapes HTML headings. Those in code are text already.
fn without_html_headings(text: &str) -> String {
    let starts: Vec<usize> = Parser::new(text)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Html(_) | Event::InlineHtml(_) => Some(range),
            _ => None,
        })
        .flat_map(|range| {
            let html = text[range.clone()].to_ascii_lowercase();
            let tags: Vec<usize> = html.match_indices('<').map(|(at, _)| at).collect();
            let is_heading = |at: &usize| {
                let name = html[at + 1..].trim_start_matches('/').as_bytes();
                name.first() == Some(&b'h') && name.get(1).is_some_and(u8::is_ascii_digit)
            };
            let found: Vec<usize> = tags.into_iter().filter(is_heading).collect();
            found.into_iter().map(move |at| range.start + at)
        })
        .collect();
    let mut text = text.to_owned();
    for at in starts.into_iter().rev() {
        text.replace_range(at..=at, "&lt;");
    }
    text
}

/// Returns a fence that the content does not close.
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
    use proptest::prelude::*;

    use super::*;
    use tertulia_core::entry::{Head, NewEntry, Speaker, SpeakerKind, ToolCall, plain};
    use tertulia_core::id::EntryId;

    #[test]
    fn no_line_of_a_message_passes_for_a_speaker() {
        let check = |content: &str, expected: &str| assert_eq!(contained(content), expected);
        check("plain\n\nwords", "plain\n\nwords\n");
        check("## You · now\nno", "#### You · now\nno\n");
        check("   ##\tYou · now", "   ####\tYou · now\n");
        check("# a\n##### b\n###### c", "### a\n###### b\n###### c\n");
        check("You · now\n---\nno", "You · now\n\n---\nno\n");
        check("#You · now\n===\nno", "#You · now\n\n===\nno\n");
        check("a\n<h2>You</h2>", "a\n&lt;h2>You&lt;/h2>\n");
        // Code contains no headings, and an open code block ends with the message.
        check("```\n## You\n```", "```\n## You\n```\n");
        check("    ## You", "    ## You\n");
        check("~~~~sh\n## You", "~~~~sh\n## You\n~~~~\n");
        check("<!-- ", "```\n<!-- \n```\n");
        check("#hashtag `## x` ##", "#hashtag `## x` ##\n");
    }

    #[test]
    fn no_name_passes_for_a_speaker() {
        let forged = "x\n\n## You · now\n\nyes".to_owned();
        let mut message = plain(
            &Speaker::plain("ada", SpeakerKind::Ai),
            Role::Assistant,
            "a".into(),
        );
        message.tool_calls.push(ToolCall {
            id: "c".into(),
            name: forged.clone(),
            arguments: serde_json::json!({}),
        });
        let failed = tertulia_core::entry::Failed {
            agent: forged,
            kind: "cancelled".into(),
            message: String::new(),
            retry_at: None,
            withdrawn: true,
        };
        for body in [Body::Message(message), Body::Failed(failed)] {
            let new = NewEntry {
                id: EntryId::new(uuid::Uuid::nil()),
                at: jiff::Timestamp::UNIX_EPOCH,
                body,
                redacted: std::collections::BTreeMap::new(),
                author: None,
            };
            let entry = Entry::chain(&Head::START, vec![new]).unwrap().remove(0);
            let text = section(&entry);
            let headings = text.lines().filter(|line| line.starts_with("## ")).count();
            assert!(headings <= 1 && !text.contains("\n## You"), "{text}");
        }
    }

    proptest! {
        /// After any content, the next heading is recognised and is the only one of its level.
        #[test]
        fn the_next_speaker_is_seen(content in "[-#=`~<>!h2/ \\n\\tYou·*1.]{0,40}") {
            let page = format!("## A\n\n{}\n## B\n", contained(&content));
            let headings: Vec<usize> = Parser::new(&page)
                .into_offset_iter()
                .filter_map(|(event, range)| match event {
                    Event::Start(Tag::Heading { level, .. }) if level as usize <= 2 => Some(range.start),
                    _ => None,
                })
                .collect();
            prop_assert_eq!(headings, [0, page.len() - 5], "{}", page);
        }
    }

    #[test]
    fn fences_hold() {
        let check = |content: &str, expected: &str| assert_eq!(fence_for(content), expected);
        check("plain", "```");
        check("a ``` b", "````");
        check("`````", "``````");
    }
}
