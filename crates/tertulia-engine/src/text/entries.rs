//! Entries and tool calls on one line.

use jiff::SignedDuration;
use serde_json::Value;
use tertulia_core::entry::{
    Attachment, Body, Entry, Message, PairedAgent, Role, SpeakerKind, ToolCall, ToolOutcome,
};
use tertulia_core::session::{Damage, SessionMeta};

use super::{fit, harmless};
use crate::pair::text::lasting;

/// Formats a count: "1 message", "2 messages".
pub fn count(number: u64, thing: &str) -> String {
    let (stem, plural) = match thing.strip_suffix('y') {
        // "entry" becomes "entries", but "day" becomes "days".
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => (stem, "ies"),
        _ if thing.ends_with('s') => (thing, "es"),
        _ => (thing, "s"),
    };
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {stem}{plural}"),
    }
}

/// Formats a number of messages.
pub fn messages(number: u64) -> String {
    count(number, "message")
}

/// Formats the message count of each speaker and the duration of the session.
pub fn statistics(meta: &SessionMeta) -> String {
    let mut parts: Vec<String> = meta
        .speakers
        .iter()
        .map(|spoke| format!("{} {}", harmless(&spoke.display_name), spoke.messages))
        .collect();
    let duration = meta.duration().max(SignedDuration::from_secs(1));
    parts.push(format!("within {}", lasting(duration)));
    parts.join(", ")
}

/// Formats an attached file on one line.
pub fn attached_line(file: &Attachment) -> String {
    let cut = match file.cut {
        0 => String::new(),
        _ => format!(" (the first {})", size(file.content.len() as u64)),
    };
    harmless(&format!(
        "attached {}, {}{cut}",
        file.path,
        size(file.bytes)
    ))
}

/// Formats a size in bytes.
fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Formats any entry on one line.
pub fn entry_line(entry: &Entry) -> String {
    let what = match &entry.body {
        Body::Created(created) => format!("{} session created", created.kind.name()),
        Body::Forked(forked) => format!(
            "{} of {} at entry {}",
            forked.relation.name(),
            forked.from.id.short(),
            forked.from.seq
        ),
        Body::Message(message) => message_line(message),
        Body::Renamed(renamed) => format!("title: {}", renamed.title),
        Body::Tagged(tagged) => {
            let added = tagged.add.iter().map(|tag| format!("+{tag}"));
            let removed = tagged.remove.iter().map(|tag| format!("-{tag}"));
            added.chain(removed).collect::<Vec<_>>().join(" ")
        }
        Body::Trashed(_) => "moved to the trash".to_owned(),
        Body::Restored(_) => "taken out of the trash".to_owned(),
        Body::Undone(undone) => format!("took entry {} back", undone.change),
        Body::Failed(failed) if failed.withdrawn => {
            format!("{}: (stopped before an answer)", failed.agent)
        }
        Body::Failed(failed) => failed.to_string(),
        Body::Seated(seated) => match &seated.file {
            Some(file) => format!("team started from {file}"),
            None => "team resumed".to_owned(),
        },
        Body::Tasked(tasked) => tasked.task.clone(),
        Body::Paired(_) | Body::Budgeted(_) | Body::Thought(_) => pair_line(&entry.body),
        Body::Linked(linked) => {
            format!(
                "{} keeps this in its session {}",
                linked.agent, linked.native
            )
        }
        Body::Switched(switched) => switched.to_string(),
        Body::Terms(terms) => terms.to_string(),
        Body::Environment(environment) => environment.to_string(),
        Body::Compacted(compacted) => format!(
            "{} summarised the session up to entry {}: {}",
            compacted.agent, compacted.upto, compacted.summary
        ),
        Body::Lost(lost) => format!("an entry is lost: {}", lost.reason),
        Body::Repaired(repaired) => {
            format!(
                "repaired: {} lost, {} doubtful",
                repaired.lost.len(),
                repaired.doubtful.len()
            )
        }
        Body::Imported(imported) => format!(
            "imported from {}, session {}",
            imported.program, imported.original
        ),
        Body::Merged(_) | Body::Replayed(_) => origin_line(&entry.body),
        Body::Keyed(_) => "who can read the session changed".to_owned(),
        Body::Sealed(sealed) => format!("(sealed: {})", sealed.of),
        Body::Shell(shell) => format!("!{}", shell.command),
        Body::ShellOutput(shell) => shell.text(),
        Body::Unknown(kind) => format!("({kind}: from a newer version)"),
    };
    harmless(&what)
}

fn message_line(message: &Message) -> String {
    let mark = match message.tool_outcome() {
        Some(ToolOutcome::Denied) => " (denied)",
        Some(ToolOutcome::Failed) => " (failed)",
        _ if message.interrupted => " (interrupted)",
        _ => "",
    };
    let calls: String = message
        .tool_calls
        .iter()
        .map(|call| format!(" → {}", call_line(call)))
        .collect();
    let files: String = message
        .attachments
        .iter()
        .map(|file| format!(" ({})", attached_line(file)))
        .collect();
    let handed_on = message.role == Role::User && message.speaker.kind == SpeakerKind::Ai;
    let to = message.thread.as_ref().filter(|_| handed_on);
    let to = to.map(|thread| format!(" to the {thread}"));
    format!(
        "{}{}{mark}: {}{files}{calls}",
        message.speaker.display_name,
        to.unwrap_or_default(),
        message.content
    )
}

/// Describes where the messages of a merged or replayed session come from.
fn origin_line(body: &Body) -> String {
    match body {
        Body::Merged(merged) => format!(
            "merge of {} at entry {} and {} at entry {}",
            merged.ours.id.short(),
            merged.ours.seq,
            merged.theirs.id.short(),
            merged.theirs.seq
        ),
        Body::Replayed(replayed) => {
            let model = replayed.model.as_ref();
            let model = model.map(|model| format!(" ({model})")).unwrap_or_default();
            let of = replayed.of.id.short();
            format!("replay of {of} with {}{model}", replayed.agent)
        }
        body => body.kind().to_owned(),
    }
}

/// Returns the kind of an entry for people. Scripts read `type` of `show --json`.
pub fn entry_kind(body: &Body) -> &str {
    match body {
        Body::Seated(_) => "team",
        Body::Tasked(_) => "team task",
        Body::Paired(_) => "pair",
        Body::Budgeted(_) => "rounds",
        Body::Thought(_) => "reasoning",
        Body::Linked(_) | Body::Switched(_) => "agent",
        Body::Shell(_) => "command",
        Body::ShellOutput(_) => "output",
        body => body.kind(),
    }
}

/// Formats an entry that only pairs have, on one line.
fn pair_line(body: &Body) -> String {
    let shown = |seat: &PairedAgent| match &seat.model {
        Some(model) => format!("{} ({model})", seat.agent),
        None => seat.agent.clone(),
    };
    match body {
        Body::Paired(paired) => format!(
            "instructor {}, worker {}, in {}",
            shown(&paired.instructor),
            shown(&paired.worker),
            paired.work_dir
        ),
        Body::Budgeted(budgeted) => budgeted.budget.to_string(),
        Body::Thought(thought) => format!("{}: {}", thought.thread, thought.text),
        _ => String::new(),
    }
}

/// Formats a tool call on one line: its name and the values of its arguments, without JSON syntax.
pub fn call_line(call: &ToolCall) -> String {
    let values: Vec<String> = match &call.arguments {
        Value::Object(fields) => fields
            .values()
            .map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
            .collect(),
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    };
    fit(&format!("{} {}", call.name, values.join(" ")), 120)
}

/// Lists the damage, one line each.
pub fn damage(damage: &[Damage]) -> Vec<String> {
    damage.iter().map(Damage::to_string).collect()
}
