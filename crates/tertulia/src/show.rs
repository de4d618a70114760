//! Formats entries and agent events as text for a terminal.

use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_agents::approval::ToolRequest;
use tertulia_agents::{AgentEvent, TodoState};
use tertulia_core::entry::{
    Body, Entry, Kind, Message, PairedAgent, Role, SpeakerKind, ToolCall, ToolOutcome,
};
use tertulia_core::session::{Damage, SessionMeta};
use tertulia_core::team::markers;

use crate::moment::{clock, lasting};
use crate::ui::{ADDED, AGENT, BOLD, DIM, HUMAN, REMOVED, Ui, fit, harmless};

/// Formats a message for a transcript. In teams, markers are removed and the addressees shown
/// instead.
pub fn message(ui: &Ui, entry: &Entry, message: &Message, kind: Kind, now: Timestamp) -> String {
    let content = match kind {
        Kind::Team => markers::shown(&message.content),
        Kind::Chat | Kind::Pair => message.content.clone(),
    };
    let style = match message.speaker.kind {
        SpeakerKind::Human => HUMAN,
        SpeakerKind::Ai => AGENT,
        SpeakerKind::System | SpeakerKind::Tool => BOLD,
    };
    let name = ui.styled(style, &harmless(&message.speaker.display_name));
    let mut when = clock(entry.at, now);
    if !message.addressees.is_empty() {
        let names = message.addressees.iter();
        let names: Vec<&str> = names
            .map(|addressee| addressee.identifier.as_str())
            .collect();
        when.push_str(&format!(" · to {}", harmless(&names.join(", "))));
    }
    if let Some(thread) = message.thread.as_deref().filter(|_| kind == Kind::Pair) {
        when.push_str(&format!(" · {}'s thread", harmless(thread)));
    }
    if let Some(model) = &message.model {
        when.push_str(&format!(" · {}", harmless(model)));
    }
    match message.tool_outcome() {
        Some(outcome) => when.push_str(&format!(" · {} {}", outcome.sign(), outcome.name())),
        None if message.interrupted => when.push_str(" · interrupted"),
        None => {}
    }
    let mut text = format!(
        "{name}  {}\n",
        ui.styled(DIM, &format!("{} · {when}", entry.seq))
    );
    // A message that only calls tools has no text.
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        // Control characters can harm only a terminal; other output gets the exact text.
        let content = if ui.has_screen() {
            harmless(&content)
        } else {
            content
        };
        text.push_str(content.trim_end_matches('\n'));
        text.push('\n');
    }
    for call in &message.tool_calls {
        text.push_str(&ui.styled(
            DIM,
            &format!(
                "→ {} {}\n",
                harmless(&call.name),
                harmless(&call.arguments.to_string())
            ),
        ));
    }
    text
}

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
    parts.push(format!("over {}", lasting(meta.duration())));
    parts.join(" · ")
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
        Body::Message(message) => {
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
            let handed_on = message.role == Role::User && message.speaker.kind == SpeakerKind::Ai;
            let to = message.thread.as_ref().filter(|_| handed_on);
            let to = to.map(|thread| format!(" to the {thread}"));
            format!(
                "{}{}{mark}: {}{calls}",
                message.speaker.display_name,
                to.unwrap_or_default(),
                message.content
            )
        }
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
        Body::Failed(failed) => tertulia_formats::markdown::failure(failed),
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
        Body::Compacted(compacted) => format!(
            "compacted up to entry {} by {}: {}",
            compacted.upto, compacted.agent, compacted.summary
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
        Body::Unknown(kind) => format!("({kind}: from a newer version)"),
    };
    harmless(&what)
}

/// Returns the kind of an entry for people. Scripts read `type` of `show --json`.
pub fn entry_kind(body: &Body) -> &str {
    match body {
        Body::Seated(_) => "team",
        Body::Tasked(_) => "team task",
        Body::Paired(_) => "pair",
        Body::Budgeted(_) => "rounds",
        Body::Thought(_) => "reasoning",
        Body::Linked(_) => "agent",
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

/// Converts an agent event to a JSON object of the stream, if the stream reports it.
pub fn event_object(event: &AgentEvent) -> Option<Value> {
    Some(match event {
        AgentEvent::Text(text) => json!({ "type": "text", "text": text }),
        AgentEvent::Reasoning(text) => json!({ "type": "reasoning", "text": text }),
        AgentEvent::ToolStarted(call) => json!({
            "type": "tool.started", "id": call.id, "name": call.name, "arguments": call.arguments,
        }),
        AgentEvent::ToolCompleted { id, output, ok } => json!({
            "type": "tool.completed", "id": id, "ok": ok, "output": output,
        }),
        AgentEvent::Todos(todos) => {
            let items: Vec<Value> = todos
                .iter()
                .map(|todo| json!({ "text": todo.text, "state": todo.state.name() }))
                .collect();
            json!({ "type": "todo_list", "items": items })
        }
        AgentEvent::Retrying(retry) => json!({
            "type": "retry",
            "attempt": retry.attempt,
            "of": retry.of,
            "wait_ms": u64::try_from(retry.wait.as_millis()).unwrap_or(u64::MAX),
            "reason": retry.reason,
        }),
        AgentEvent::Remark(text) => json!({ "type": "remark", "text": text }),
        AgentEvent::Unknown(value) => json!({ "type": "agent.event", "event": value }),
        AgentEvent::Usage(_) | AgentEvent::Session(_) | AgentEvent::Model(_) => return None,
    })
}

/// Describes what an agent does.
pub fn event_words(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::ToolStarted(call) => format!("→ {}", call_line(call)),
        AgentEvent::ToolCompleted { output, ok, .. } => {
            let mark = ToolOutcome::of(output, *ok).sign();
            let says_something =
                |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("```");
            let first = output.lines().find(says_something);
            let more = output.lines().count().saturating_sub(1);
            let more = if more > 0 {
                format!(" (and {more} more lines)")
            } else {
                String::new()
            };
            format!("  {mark} {}{more}", fit(first.unwrap_or("nothing"), 100))
        }
        AgentEvent::Todos(todos) => {
            let lines: Vec<String> = todos
                .iter()
                .map(|todo| {
                    let mark = match todo.state {
                        TodoState::Pending => "☐",
                        TodoState::InProgress => "▸",
                        TodoState::Completed => "☑",
                        TodoState::Cancelled => "☒",
                    };
                    format!("{mark} {}", fit(&todo.text, 100))
                })
                .collect();
            lines.join("\n")
        }
        AgentEvent::Retrying(retry) => format!(
            "{}; trying again in {:.1} s ({} of {})",
            retry.reason,
            retry.wait.as_secs_f32(),
            retry.attempt,
            retry.of
        ),
        AgentEvent::Remark(text) => text.clone(),
        AgentEvent::Session(id) => format!("its own session is {id}"),
        AgentEvent::Model(model) => format!("its model is {model}"),
        AgentEvent::Unknown(value) => format!("unknown event: {}", fit(&value.to_string(), 200)),
        AgentEvent::Text(_) | AgentEvent::Reasoning(_) | AgentEvent::Usage(_) => return None,
    })
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

/// Formats a permission question.
pub fn request(ui: &Ui, request: &ToolRequest) -> String {
    let head = format!("{} ({} risk)", request.call.name, request.risk.name());
    let mut text = ui.styled_words(BOLD, &harmless(&head));
    for line in harmless(&request.preview).lines() {
        let line = match line.as_bytes().first() {
            Some(b'+') => ui.styled_words(ADDED, line),
            Some(b'-') => ui.styled_words(REMOVED, line),
            _ => line.to_owned(),
        };
        text.push_str(&format!("\n  {line}"));
    }
    text
}

/// Lists the damage, one line each.
pub fn damage(damage: &[Damage]) -> Vec<String> {
    damage.iter().map(Damage::to_string).collect()
}
