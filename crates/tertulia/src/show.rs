//! Formats entries and agent events as text for a terminal.

use jiff::Timestamp;
use serde_json::{Value, json};
use tertulia_agents::approval::ToolRequest;
use tertulia_agents::{AgentEvent, TodoState};
use tertulia_core::entry::{Body, Entry, Kind, Message, SpeakerKind, ToolOutcome, human};
use tertulia_core::team::markers;
pub use tertulia_engine::text::entries::{
    attached_line, call_line, count, damage, entry_kind, entry_line, messages, statistics,
};

use tertulia_engine::text::tools;

use crate::moment::clock;
use crate::ui::{ADDED, AGENT, BOLD, DIM, HUMAN, REMOVED, Ui, fit, harmless};

/// Formats a message for a transcript. In teams, markers are removed and the addressees shown
/// instead.
pub fn message(ui: &Ui, entry: &Entry, message: &Message, kind: Kind, now: Timestamp) -> String {
    let content = match (message.tool_outcome(), kind) {
        (Some(outcome), _) => tools::readable_output(&message.content, outcome).into_owned(),
        (None, Kind::Team) => markers::shown(&message.content),
        (None, Kind::Chat | Kind::Pair) => message.content.clone(),
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
    for file in &message.attachments {
        text.push_str(&ui.styled(DIM, &format!("{}\n", attached_line(file))));
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

/// Formats a shell command of the user, or its output, for a transcript.
pub fn command(ui: &Ui, entry: &Entry, now: Timestamp) -> Option<String> {
    // As in messages, only a terminal can be harmed.
    let shown = |text: &str| match ui.has_screen() {
        true => harmless(text),
        false => text.to_owned(),
    };
    match &entry.body {
        Body::Shell(shell) => {
            let name = ui.styled(HUMAN, &human().display_name);
            let when = format!("{} · {}", entry.seq, clock(entry.at, now));
            let when = ui.styled(DIM, &when);
            Some(format!("\n{name}  {when}\n!{}\n", shown(&shell.command)))
        }
        Body::ShellOutput(shell) => {
            let text = shell.text();
            Some(format!("{}\n", shown(text.trim_end_matches('\n'))))
        }
        _ => None,
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
        AgentEvent::ToolOutput { .. }
        | AgentEvent::Usage(_)
        | AgentEvent::Requests(_)
        | AgentEvent::Session(_)
        | AgentEvent::Model(_) => return None,
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
            "retrying in {:.1} s ({} of {}): {}",
            retry.wait.as_secs_f32(),
            retry.attempt,
            retry.of,
            retry.reason
        ),
        AgentEvent::Remark(text) => text.clone(),
        AgentEvent::Session(id) => format!("its own session is {id}"),
        AgentEvent::Model(model) => format!("its model is {model}"),
        AgentEvent::Unknown(value) => format!("unknown event: {}", fit(&value.to_string(), 200)),
        AgentEvent::Text(_)
        | AgentEvent::Reasoning(_)
        | AgentEvent::ToolOutput { .. }
        | AgentEvent::Usage(_)
        | AgentEvent::Requests(_) => return None,
    })
}

/// Formats a permission question.
pub fn request(ui: &Ui, request: &ToolRequest) -> String {
    let (wish, risk) = (tools::wish(request), request.risk.name());
    let mut head = format!("The agent wants to {wish}, {risk} risk");
    if !request.folder.is_empty() && request.call.name != tools::WORK_IN {
        head.push_str(&format!(", in {}", request.folder));
    }
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

/// Formats a size.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{} kB", count / 1000),
        _ => format!("{} MB", count / 1_000_000),
    }
}
