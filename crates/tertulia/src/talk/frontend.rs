//! The frontend outside the TUI: shows a session as text, as one JSON document, or as a stream of
//! JSON events.

mod failures;

use async_trait::async_trait;
use serde_json::{Value, json};
use tertulia_agents::approval::{PermissionState, ToolRequest, Verdict};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Body, Entry, Kind, Message, ShellOutput, Speaker, ToolOutcome, Usage};
use tertulia_core::id::SessionId;
use tertulia_core::team::markers::Unmarked;
use tertulia_engine::error::ErrorBody;
use tertulia_engine::event::{SessionEvent, Tone};
use tertulia_engine::frontend::Frontend;
use tertulia_engine::pair::{PairEvent, text};
use tertulia_engine::team::events::Output as Routed;
use tertulia_formats::json;

use super::caller::SessionCaller;
use super::keyboard::Keyboard;
use super::{paired, permissions, routed};
use crate::args::OutputFormat;
use crate::error::CommandError;
use crate::show;
use crate::ui::{AGENT, DIM, Ui, harmless};

pub use failures::Failure;

/// Frontend that writes to the standard streams.
pub struct Output<'a> {
    format: OutputFormat,
    ui: &'a mut Ui,
    /// Source of answers to permission questions; `None` if the user cannot be asked.
    keyboard: Option<&'a mut Keyboard>,
    /// Calls the user before a permission question.
    caller: Option<SessionCaller>,
    /// Messages of the final JSON document. The other formats have already written them and keep
    /// none, since agents may run for very long before a person is next.
    messages: Vec<Value>,
    /// Messages that are not saved yet, oldest first, for the same document.
    held: Vec<Value>,
    /// Number of messages that are not saved yet.
    unsaved: usize,
    usage: Usage,
    refused: Option<CommandError>,
    line: LineState,
    /// The agent of a team or pair that is answering, and the filter that hides its markers.
    speaker: Option<(Speaker, Unmarked)>,
    /// Whether the agent's name has been written above its text.
    named: bool,
    /// The last failure, held until it is known whether the run ends with it.
    failure: Option<Failure>,
    /// All failures of the run, for the final JSON document.
    errors: Vec<Value>,
    /// Names of the agents that failed, each once.
    failed: Vec<String>,
    /// Newlines held back until text follows: after a marker on a line of its own, none does.
    ends: String,
    /// Whether text is shown with its markers: only teams have markers.
    verbatim: bool,
    /// Number of messages in the session.
    count: u64,
}

/// How a run ended.
pub struct End<'a> {
    pub session: SessionId,
    pub status: &'static str,
    pub failure: Option<&'a AgentError>,
    /// The error of a team in which no member was asked.
    pub nobody_asked: Option<&'a CommandError>,
    /// Why the message was rejected before a turn began.
    pub refusal: Option<&'a ErrorBody>,
    /// Name of the participant whose turn it is.
    pub waiting_for: String,
}

/// Content of the current output line.
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
            caller: None,
            messages: Vec::new(),
            held: Vec::new(),
            unsaved: 0,
            usage: Usage::default(),
            refused: None,
            line: LineState::Empty,
            speaker: None,
            named: false,
            failure: None,
            errors: Vec::new(),
            failed: Vec::new(),
            ends: String::new(),
            verbatim: false,
            count: 0,
        }
    }

    /// Adapts the output to the kind of session.
    pub fn of(mut self, kind: Kind) -> Output<'a> {
        self.verbatim = kind == Kind::Pair;
        self
    }

    /// Calls the user before a permission question.
    pub fn calling(mut self, caller: SessionCaller) -> Output<'a> {
        self.caller = Some(caller);
        self
    }

    /// Stops in the middle of an answer; later output begins on a line of its own.
    pub fn cut_off(&mut self) {
        self.tell_failure();
        self.hear_out();
        // The terminal echoes the interrupt key on the line, even if no output is there.
        if self.ui.has_screen() && self.line == LineState::Empty && self.ends.is_empty() {
            self.ui.data("\n");
        }
        self.break_line();
    }

    /// Reports how the run ended. Returns the error of a rejected message for the caller to report.
    pub fn finish(&mut self, end: &End<'_>) -> Option<CommandError> {
        self.hear_out();
        self.break_line();
        self.tell_failure();
        let usage = json!({ "input": self.usage.input, "output": self.usage.output });
        if let Some(error) = end.failure {
            self.error(
                None,
                error.kind.name(),
                &error.message,
                error.hint.as_deref(),
            );
        }
        if let Some(error) = end.nobody_asked {
            self.error(
                None,
                "nobody_asked",
                &error.to_string(),
                error.hints().first().map(String::as_str),
            );
        }
        let refusal = end.refusal.cloned().map(CommandError::from);
        self.refused = refusal.or(self.refused.take());
        if let Some(refused) = &self.refused {
            self.event(&json!({ "type": "error", "kind": "refused", "message": refused.to_string(), "hint": null }));
        }
        self.event(&json!({
            "type": "turn.completed",
            "session_id": end.session,
            "status": end.status,
            "waiting_for": end.waiting_for,
            "usage": usage,
        }));
        if self.format == OutputFormat::Json {
            let mut messages = std::mem::take(&mut self.messages);
            messages.append(&mut self.held);
            let document = json!({
                "session_id": end.session,
                "status": end.status,
                "messages": messages,
                "waiting_for": end.waiting_for,
                "usage": usage,
                "errors": std::mem::take(&mut self.errors),
            });
            self.ui.document(&document);
        }
        self.refused.take()
    }

    /// Ends an unfinished line, so that notes stand on lines of their own.
    fn break_line(&mut self) {
        // An agent that has written no text has no line to end.
        let ends = !std::mem::take(&mut self.ends).is_empty() && self.named;
        if self.format == OutputFormat::Text && (self.line != LineState::Empty || ends) {
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
        if let Some(mut object) = show::event_object(event) {
            if let Some((speaker, _)) = &self.speaker {
                object["speaker"] = json!(speaker.id);
            }
            self.event(&object);
        }
        match (event, self.format) {
            (AgentEvent::Text(text), OutputFormat::Text) => {
                let shown = match &mut self.speaker {
                    Some((_, words)) if !self.verbatim => words.push(text),
                    _ => text.clone(),
                };
                self.write(&shown);
            }
            // Reasoning is shown on a terminal only.
            (AgentEvent::Reasoning(text), OutputFormat::Text) if self.ui.has_screen() => {
                self.think(text);
            }
            (AgentEvent::Text(_) | AgentEvent::Reasoning(_), _) => {}
            (event, format) => {
                if let Some(words) = show::event_words(event) {
                    self.hear_out();
                    self.break_line();
                    match event {
                        AgentEvent::Unknown(_) | AgentEvent::Session(_) | AgentEvent::Model(_) => {
                            self.ui.detail(&words);
                        }
                        AgentEvent::Remark(_) => self.ui.warn(&harmless(&words)),
                        // The stream has it already, and the document has it in its messages.
                        _ if format == OutputFormat::Text => self.ui.note(&words),
                        _ => {}
                    }
                }
            }
        }
    }

    /// An agent of a team or pair is prompted.
    fn asked(&mut self, speaker: &Speaker) {
        if self.verbatim {
            self.rested();
        }
        self.hear_out();
        self.break_line();
        self.tell_failure();
        self.event(&json!({ "type": "turn.started", "speaker": speaker.id }));
        self.speaker = Some((speaker.clone(), Unmarked::default()));
        self.named = false;
        // On a terminal the name shows who is prompted; elsewhere it is written only above text.
        if self.ui.has_screen() {
            self.name();
        }
    }

    /// Writes the name of the answering agent, once.
    fn name(&mut self) {
        let Some((speaker, _)) = self.speaker.as_ref().filter(|_| !self.named) else {
            return;
        };
        if self.format == OutputFormat::Text {
            let name = harmless(&speaker.display_name);
            let name = self.ui.styled(AGENT, &format!("{name}:"));
            self.ui.data(&format!("{name}\n"));
        }
        self.named = true;
    }

    /// Writes text that was held back because it might have been the beginning of a marker.
    fn hear_out(&mut self) {
        if self.format != OutputFormat::Text {
            return;
        }
        if let Some((_, words)) = &mut self.speaker {
            let rest = std::mem::take(words).finish();
            self.write(&rest);
        }
    }

    /// An agent has finished: an empty line separates it from the next.
    fn rested(&mut self) {
        if self.speaker.is_none() {
            return;
        }
        self.hear_out();
        self.break_line();
        self.speaker = None;
        if self.format == OutputFormat::Text && self.named {
            self.ui.data("\n");
        }
    }

    fn routed(&mut self, output: &Routed) {
        // A routing event means that the agent has finished.
        self.rested();
        if let Some(object) = routed::object(output) {
            self.event(&object);
        }
        for (tone, words) in routed::words(output) {
            let words = harmless(&words);
            match tone {
                routed::Tone::Warning => self.ui.warn(&words),
                routed::Tone::Note => self.ui.note(&words),
                // The queue is of interest on a terminal only.
                routed::Tone::Watching if self.ui.has_screen() => self.ui.note(&words),
                routed::Tone::Watching | routed::Tone::Detail => self.ui.detail(&words),
            }
        }
    }

    fn paired(&mut self, event: &PairEvent) {
        self.rested();
        self.event(&paired::object(event));
        let words = harmless(&text::event(event));
        match event {
            PairEvent::WorkerFailed(error) => {
                self.worker_failed(error);
                self.ui.warn(&words);
            }
            _ => self.ui.note(&words),
        }
    }

    fn write(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.line == LineState::Reasoning {
            self.break_line();
        }
        self.line = if text.ends_with('\n') {
            LineState::Empty
        } else {
            LineState::Answer
        };
        if self.speaker.is_none() {
            return self.ui.answer(text);
        }
        let words = text.trim_end_matches('\n');
        if !words.is_empty() {
            self.name();
            let before = std::mem::take(&mut self.ends);
            self.ui.answer(&format!("{before}{words}"));
        }
        self.ends.push_str(&text[words.len()..]);
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
        if let Body::ShellOutput(shell) = &entry.body {
            self.ran(shell);
        }
        let Some(message) = entry.message() else {
            return;
        };
        self.count += 1;
        if self.unsaved == 0 {
            self.attached(message);
            self.usage = self.usage.plus(message.usage.unwrap_or_default());
        } else {
            // The message was counted when it was held.
            self.unsaved -= 1;
            self.held.drain(..self.held.len().min(1));
        }
        match self.format {
            OutputFormat::Text => {}
            OutputFormat::StreamJson => self.event(&json::entry(entry)),
            OutputFormat::Json => self.messages.push(json::entry(entry)),
        }
    }

    /// Says how a shell command of the user ended, unless it succeeded.
    fn ran(&mut self, shell: &ShellOutput) {
        self.break_line();
        match (shell.exit, shell.outcome) {
            (Some(0), _) | (None, ToolOutcome::Interrupted) => {}
            (Some(code), _) => self.ui.note(&format!("exit status {code}")),
            (None, outcome) => self.ui.note(outcome.name()),
        }
    }

    /// Names the files that the user attached.
    fn attached(&mut self, message: &Message) {
        for file in &message.attachments {
            self.ui.note(&show::attached_line(file));
        }
    }

    fn held(&mut self, message: &Message) {
        self.attached(message);
        self.usage = self.usage.plus(message.usage.unwrap_or_default());
        self.unsaved += 1;
        if self.format == OutputFormat::Json {
            self.held.push(json::held(message));
        }
    }

    fn permissions(&mut self, state: &PermissionState) {
        self.event(&json!({
            "type": "permissions",
            "approve": state.mode.name(),
            "always": state.always,
        }));
        if self.format == OutputFormat::Text && self.ui.has_screen() {
            let words = format!("{}; /permissions revokes it", permissions::line(state));
            self.ui.note(&harmless(&words));
        }
    }

    fn notice(&mut self, tone: Tone, text: &str, error: Option<ErrorBody>) {
        self.hear_out();
        self.break_line();
        let words = harmless(&self.ui.invocation.complete(text));
        match (error, tone) {
            (Some(error), _) => self.refused = Some(error.into()),
            (None, Tone::Note) => self.ui.note(&words),
            (None, Tone::Warning | Tone::Error) => self.ui.warn(&words),
        }
    }

    fn started(&mut self, id: SessionId, resumed: Option<u64>) {
        self.count = resumed.unwrap_or(0);
        self.event(&json!({
            "type": "session.started",
            "session_id": id,
            "resumed": resumed.is_some(),
            "messages": self.count,
        }));
    }

    /// The session continues in a fork.
    fn moved(&mut self, to: SessionId) {
        self.hear_out();
        self.break_line();
        self.started(to, Some(self.count));
    }
}

#[async_trait]
impl Frontend for Output<'_> {
    fn show(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Started { id, resumed } => self.started(id, resumed),
            SessionEvent::Moved { to } => self.moved(to),
            SessionEvent::Text { text } => self.heard(&AgentEvent::Text(text)),
            SessionEvent::Thought { text } => self.heard(&AgentEvent::Reasoning(text)),
            SessionEvent::Printed { text } => self.write(&text),
            SessionEvent::Heard { event } => self.heard(&event),
            SessionEvent::Durable { .. } => {
                if let Some(entry) = event.entry() {
                    self.durable(&entry);
                }
            }
            SessionEvent::Held { message } => self.held(&message),
            SessionEvent::Asked { speaker } => self.asked(&speaker),
            SessionEvent::Failed { speaker, error } => self.failed(&speaker, &error),
            SessionEvent::Routed { output } => self.routed(&output),
            SessionEvent::Pair { event } => self.paired(&event),
            // There is no queue: a line is read when the turn has ended.
            SessionEvent::Unsent { .. } | SessionEvent::Withdrawn { .. } => {}
            SessionEvent::Permissions { state } => self.permissions(&state),
            SessionEvent::Notice { tone, text, error } => self.notice(tone, &text, error),
            // Line mode and single turns get these from the turn's result.
            SessionEvent::Opened { .. }
            | SessionEvent::NotOpened { .. }
            | SessionEvent::Began
            | SessionEvent::MayI { .. }
            | SessionEvent::Settled { .. }
            | SessionEvent::Over { .. }
            | SessionEvent::Gone { .. } => {}
        }
    }

    async fn approve(&mut self, request: &ToolRequest) -> Verdict {
        self.hear_out();
        self.break_line();
        let Some(keyboard) = self.keyboard.as_deref_mut() else {
            return Verdict::Unanswered;
        };
        if let Some(caller) = &self.caller {
            caller.asked(&request.preview);
        }
        permissions::ask(request, self.ui, keyboard).await
    }
}

#[cfg(test)]
mod tests;
