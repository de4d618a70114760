//! How a talk is shown off a screen: as text, as one JSON document, as a stream of JSON events.

use serde_json::{Value, json};
use tertulia::agent::AgentEvent;
use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::run::{Door, Notice, TalkEvent};
use tertulia::entry::{Entry, Usage};
use tertulia::formats::json;
use tertulia::id::SessionId;

use crate::args::OutputFormat;
use crate::error::CommandError;
use crate::show;
use crate::ui::{Ui, harmless};

/// The door.
pub struct Output<'a> {
    format: OutputFormat,
    ui: &'a mut Ui,
    messages: Vec<Value>,
    usage: Usage,
    refused: Option<CommandError>,
    at_line_start: bool,
}

impl<'a> Output<'a> {
    pub fn new(format: OutputFormat, ui: &'a mut Ui) -> Output<'a> {
        Output {
            format,
            ui,
            messages: Vec::new(),
            usage: Usage::default(),
            refused: None,
            at_line_start: true,
        }
    }

    /// Says which session the talk is in.
    pub fn started(&mut self, id: SessionId) {
        self.event(&json!({ "type": "session.started", "session_id": id }));
    }

    /// Says how the turn ended. What was refused is for the caller to report.
    pub fn finish(&mut self, id: SessionId, end: &TurnEnd) -> Option<CommandError> {
        self.break_line();
        let status = match end {
            TurnEnd::Answered => "completed",
            TurnEnd::Cancelled => "cancelled",
            TurnEnd::Failed(_) => "failed",
            TurnEnd::Refused => "refused",
        };
        let usage = json!({ "input": self.usage.input, "output": self.usage.output });
        if let TurnEnd::Failed(error) = end {
            self.event(&json!({ "type": "error", "kind": error.kind.name(), "message": error.message, "hint": error.hint }));
        }
        if let Some(refused) = &self.refused {
            self.event(&json!({ "type": "error", "kind": "refused", "message": refused.to_string(), "hint": null }));
        }
        self.event(&json!({ "type": "turn.completed", "session_id": id, "status": status, "usage": usage }));
        if self.format == OutputFormat::Json {
            let messages = std::mem::take(&mut self.messages);
            let document = json!({
                "session_id": id,
                "status": status,
                "messages": messages,
                "waiting_for": tertulia::conversation::chat::human().name,
                "usage": usage,
            });
            self.ui.document(&document);
        }
        self.refused.take()
    }

    /// Ends a line of the answer that has no end yet, so that notes stand on lines of their own.
    fn break_line(&mut self) {
        if self.format == OutputFormat::Text && !self.at_line_start {
            self.ui.data("\n");
            self.at_line_start = true;
        }
    }

    fn event(&mut self, event: &Value) {
        if self.format == OutputFormat::StreamJson {
            self.ui.line(&event.to_string());
        }
    }

    fn heard(&mut self, event: &AgentEvent) {
        match (event, self.format) {
            (AgentEvent::Text(text), OutputFormat::Text) => {
                if !text.is_empty() {
                    self.at_line_start = text.ends_with('\n');
                }
                self.ui.answer(text);
            }
            (AgentEvent::Text(text), OutputFormat::StreamJson) => {
                self.event(&json!({ "type": "text", "text": text }))
            }
            (AgentEvent::Reasoning(text), OutputFormat::StreamJson) => {
                self.event(&json!({ "type": "reasoning", "text": text }));
            }
            (AgentEvent::Usage(usage), _) => self.usage = *usage,
            _ => {}
        }
    }

    fn durable(&mut self, entry: &Entry) {
        if entry.message().is_none() {
            return;
        }
        let message = json::entry(entry);
        self.event(&message);
        self.messages.push(message);
    }

    fn notice(&mut self, notice: Notice) {
        self.break_line();
        if let Notice::SteppedAside { to, .. } = notice {
            self.started(to);
        }
        let (is_warning, words) = show::notice(&notice);
        match notice {
            Notice::Refused(error) => self.refused = Some(error.into()),
            _ if is_warning => self.ui.warn(&harmless(&words)),
            _ => self.ui.note(&harmless(&words)),
        }
    }
}

impl Door for Output<'_> {
    fn show(&mut self, event: TalkEvent<'_>) {
        match event {
            TalkEvent::Heard(event) => self.heard(event),
            TalkEvent::Durable(entry) => self.durable(entry),
            TalkEvent::Notice(notice) => self.notice(notice),
        }
    }
}
