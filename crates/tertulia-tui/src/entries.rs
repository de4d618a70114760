//! Converts log entries to transcript items.

use serde_json::json;
use tertulia_agents::FailureKind;
use tertulia_core::entry::{
    Body, Entry, Kind, Message, Role, ShellCommand, SpeakerKind, ToolCall, ToolOutcome, human,
};
use tertulia_core::id::Seq;
use tertulia_core::team::markers;
use tertulia_engine::text::entries as show;

use super::item::{COMMAND, Item, Said, Tone, Used, What};

/// Converts entries to items, in order. Tool results are merged into their calls.
pub fn items(entries: &[Entry], kind: Kind) -> Vec<Item> {
    let mut items = Vec::new();
    for entry in entries {
        match &entry.body {
            Body::Message(message) => said(&mut items, Some(entry), message, kind),
            // A note suffices: the user cancelled it, and the truncated message is marked as such.
            Body::Failed(failed) if failed.kind == FailureKind::Cancelled.name() => {
                items.push(notice(entry, Tone::Note));
            }
            Body::Failed(_) | Body::Lost(_) | Body::Repaired(_) => {
                items.push(notice(entry, Tone::Error));
            }
            Body::Compacted(compacted) => items.push(Item {
                seq: Some(entry.seq),
                what: What::Summary {
                    upto: compacted.upto.0,
                    text: compacted.summary.clone(),
                    folded: true,
                },
            }),
            Body::Tasked(tasked) => items.push(Item {
                seq: Some(entry.seq),
                what: What::Notice {
                    tone: Tone::Note,
                    text: format!("the team's task: {}", tasked.task),
                },
            }),
            Body::Forked(_) | Body::Switched(_) | Body::Terms(_) => {
                items.push(notice(entry, Tone::Note));
            }
            Body::Shell(shell) => items.push(Item {
                seq: Some(entry.seq),
                what: What::Used(command(shell, entry)),
            }),
            Body::ShellOutput(shell) => {
                let id = shell.run.to_string();
                put_output(&mut items, &id, &shell.text(), shell.outcome);
            }
            Body::Thought(thought) => items.push(reasoning(Some(entry.seq), &thought.text)),
            _ => {}
        }
    }
    items
}

/// Converts a shell command of the user to a tool call, unfolded.
fn command(shell: &ShellCommand, entry: &Entry) -> Used {
    Used {
        call: ToolCall {
            id: shell.run.to_string(),
            name: COMMAND.to_owned(),
            arguments: json!({ "command": shell.command }),
        },
        speaker: human(),
        at: Some(entry.at),
        model: None,
        output: None,
        live: String::new(),
        folded: false,
    }
}

/// Converts one message to items.
pub fn of_message(message: &Message, kind: Kind, entry: Option<&Entry>) -> Vec<Item> {
    let mut items = Vec::new();
    said(&mut items, entry, message, kind);
    items
}

/// Number of items of an entry. A tool result counts with its call.
pub fn things(entry: &Entry) -> usize {
    match &entry.body {
        Body::Message(message) if is_result(message) => 0,
        Body::Message(message) => {
            let parts = message.tool_calls.len() + message.attachments.len();
            let parts = parts + usize::from(message.reasoning.is_some());
            parts + usize::from(has_words(message))
        }
        Body::Failed(_)
        | Body::Lost(_)
        | Body::Repaired(_)
        | Body::Compacted(_)
        | Body::Tasked(_)
        | Body::Thought(_)
        | Body::Shell(_)
        | Body::Switched(_)
        | Body::Terms(_)
        | Body::Forked(_) => 1,
        _ => 0,
    }
}

/// Returns true if a message is a tool result.
pub fn is_result(message: &Message) -> bool {
    message.role == Role::Tool || message.speaker.kind == SpeakerKind::Tool
}

/// Returns true if a message only forwards the message of an agent of a pair to the other: it has
/// already been shown.
fn is_handed_on(message: &Message, kind: Kind) -> bool {
    kind == Kind::Pair && message.role == Role::User && message.speaker.kind == SpeakerKind::Ai
}

/// Returns false for a message that consists of tool calls only.
fn has_words(message: &Message) -> bool {
    !message.content.is_empty() || message.tool_calls.is_empty()
}

fn notice(entry: &Entry, tone: Tone) -> Item {
    Item {
        seq: Some(entry.seq),
        what: What::Notice {
            tone,
            text: show::entry_line(entry),
        },
    }
}

fn said(items: &mut Vec<Item>, entry: Option<&Entry>, message: &Message, kind: Kind) {
    let seq = entry.map(|entry| entry.seq);
    if is_handed_on(message, kind) {
        return;
    }
    if is_result(message) {
        if put_result(items, message) {
            return;
        }
        // The call is not loaded.
        let text = format!("{}: {}", message.speaker.name, message.content);
        let what = What::Notice {
            tone: Tone::Note,
            text,
        };
        return items.push(Item { seq, what });
    }
    if let Some(text) = &message.reasoning {
        items.push(reasoning(seq, text));
    }
    if has_words(message) {
        items.push(Item {
            seq,
            what: What::Said(spoken(message, kind, entry)),
        });
    }
    items.extend(message.attachments.iter().map(|file| Item {
        seq,
        what: What::Notice {
            tone: Tone::Note,
            text: show::attached_line(file),
        },
    }));
    items.extend(message.tool_calls.iter().map(|call| Item {
        seq,
        what: What::Used(Used {
            call: call.clone(),
            speaker: message.speaker.clone(),
            at: entry.map(|entry| entry.at),
            model: message.model.clone(),
            output: None,
            live: String::new(),
            folded: true,
        }),
    }));
}

/// Reasoning that is over, folded.
fn reasoning(seq: Option<Seq>, text: &str) -> Item {
    let what = What::Thought {
        text: text.to_owned(),
        folded: true,
    };
    Item { seq, what }
}

/// Adds a tool result to its call; returns false if the call is not loaded.
fn put_result(items: &mut [Item], message: &Message) -> bool {
    let Some(id) = &message.tool_call_id else {
        return false;
    };
    let outcome = message.tool_outcome().unwrap_or(ToolOutcome::Ok);
    put_output(items, id, &message.content, outcome)
}

/// Adds the output of a tool call; returns false if the call is not loaded.
fn put_output(items: &mut [Item], id: &str, output: &str, outcome: ToolOutcome) -> bool {
    let call = items
        .iter_mut()
        .rev()
        .find_map(|item| match &mut item.what {
            What::Used(used) if used.call.id == id && used.output.is_none() => Some(used),
            _ => None,
        });
    match call {
        Some(used) => {
            used.end(output, outcome);
            true
        }
        None => false,
    }
}

/// Converts a message to its displayed form.
pub fn spoken(message: &Message, kind: Kind, entry: Option<&Entry>) -> Said {
    Said {
        speaker: message.speaker.clone(),
        to: message
            .addressees
            .iter()
            .map(|addressee| addressee.identifier.clone())
            .collect(),
        at: entry.map(|entry| entry.at),
        model: message.model.clone(),
        text: match kind {
            Kind::Team => markers::shown(&message.content),
            Kind::Chat | Kind::Pair => message.content.clone(),
        },
        interrupted: message.interrupted,
        streaming: false,
    }
}
