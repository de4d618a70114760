//! How a talk is shown off a screen: as text, as one JSON document, as a stream of JSON events.

use async_trait::async_trait;
use serde_json::{Value, json};
use tertulia::agent::AgentEvent;
use tertulia::approval::{ToolRequest, Verdict};
use tertulia::conversation::chat::TurnEnd;
use tertulia::conversation::door::{Door, Notice, TalkEvent};
use tertulia::entry::{Entry, Usage};
use tertulia::formats::json;
use tertulia::id::SessionId;

use super::keyboard::Keyboard;
use crate::args::OutputFormat;
use crate::error::CommandError;
use crate::show;
use crate::ui::{DIM, Ui, harmless};

/// The door.
pub struct Output<'a> {
    format: OutputFormat,
    ui: &'a mut Ui,
    /// Where the person answers, if there is one to be asked.
    keyboard: Option<&'a mut Keyboard>,
    messages: Vec<Value>,
    /// Messages that are said and not saved, oldest first.
    held: Vec<Value>,
    usage: Usage,
    refused: Option<CommandError>,
    line: LineState,
}

/// What stands on the line that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineState {
    Empty,
    Answer,
    Reasoning,
}

impl<'a> Output<'a> {
    pub fn new(
        format: OutputFormat,
        ui: &'a mut Ui,
        keyboard: Option<&'a mut Keyboard>,
    ) -> Output<'a> {
        Output {
            format,
            ui,
            keyboard,
            messages: Vec::new(),
            held: Vec::new(),
            usage: Usage::default(),
            refused: None,
            line: LineState::Empty,
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
            let mut messages = std::mem::take(&mut self.messages);
            messages.append(&mut self.held);
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

    /// Ends a line that has no end yet, so that notes stand on lines of their own.
    fn break_line(&mut self) {
        if self.format == OutputFormat::Text && self.line != LineState::Empty {
            self.ui.data("\n");
            self.line = LineState::Empty;
        }
    }

    fn event(&mut self, event: &Value) {
        if self.format == OutputFormat::StreamJson {
            self.ui.line(&event.to_string());
        }
    }

    fn heard(&mut self, event: &AgentEvent) {
        if let Some(object) = show::event_object(event) {
            self.event(&object);
        }
        match (event, self.format) {
            (AgentEvent::Text(text), OutputFormat::Text) => self.write(text),
            // Only whoever watches wants to see it think.
            (AgentEvent::Reasoning(text), OutputFormat::Text) if self.ui.has_screen() => {
                self.think(text);
            }
            (AgentEvent::Text(_) | AgentEvent::Reasoning(_), _) => {}
            (event, format) => {
                if let Some(words) = show::event_words(event) {
                    self.break_line();
                    match event {
                        AgentEvent::Unknown(_) | AgentEvent::Session(_) | AgentEvent::Model(_) => {
                            self.ui.detail(&words);
                        }
                        AgentEvent::Remark(_) => self.ui.warn(&harmless(&words)),
                        // A stream has said it already, and a document has it in its messages.
                        _ if format == OutputFormat::Text => self.ui.note(&words),
                        _ => {}
                    }
                }
            }
        }
    }

    fn write(&mut self, text: &str) {
        if self.line == LineState::Reasoning {
            self.break_line();
        }
        if !text.is_empty() {
            self.line = if text.ends_with('\n') {
                LineState::Empty
            } else {
                LineState::Answer
            };
        }
        self.ui.answer(text);
    }

    fn think(&mut self, text: &str) {
        if self.line == LineState::Answer {
            self.break_line();
        }
        self.line = LineState::Reasoning;
        let words = self.ui.styled(DIM, &harmless(text));
        self.ui.data(&words);
    }

    fn durable(&mut self, entry: &Entry) {
        let Some(message) = entry.message() else {
            return;
        };
        if self.held.is_empty() {
            self.usage = self.usage.plus(message.usage.unwrap_or_default());
        } else {
            // It was held, and counted, before.
            self.held.remove(0);
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

#[async_trait]
impl Door for Output<'_> {
    fn show(&mut self, event: TalkEvent<'_>) {
        match event {
            TalkEvent::Heard(event) => self.heard(event),
            TalkEvent::Durable(entry) => self.durable(entry),
            TalkEvent::Held(message) => {
                self.usage = self.usage.plus(message.usage.unwrap_or_default());
                self.held.push(json::held(message));
            }
            TalkEvent::Notice(notice) => self.notice(notice),
        }
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        self.break_line();
        let Some(keyboard) = self.keyboard.as_deref_mut() else {
            return Verdict::No;
        };
        self.ui.ask(&show::request(self.ui, request));
        keyboard.put_aside();
        loop {
            self.ui
                .prompt("Allow it? [y]es, [n]o, [a]lways in this session: ");
            let Some(line) = keyboard.fresh_line().await else {
                return Verdict::No;
            };
            match String::from_utf8_lossy(&line)
                .trim()
                .to_lowercase()
                .as_str()
            {
                "y" | "yes" => return Verdict::Yes,
                "a" | "always" => return Verdict::Always,
                "n" | "no" => return Verdict::No,
                _ => {}
            }
        }
    }
}
