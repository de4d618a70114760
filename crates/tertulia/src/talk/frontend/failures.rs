//! Failures of agents in a run: warned about as they happen, and listed in the final document.

use serde_json::json;
use tertulia_agents::AgentError;
use tertulia_core::entry::Speaker;

use super::Output;
use crate::ui::harmless;

/// An agent of a team or pair could not answer.
pub struct Failure {
    /// Which agent failed, and why.
    pub words: String,
    /// What the user can do about it.
    pub hint: Option<String>,
}

impl Output<'_> {
    /// Takes a failure that was not reported yet, for the caller to report.
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// Returns the display names of the agents of a team or pair that failed.
    pub fn failed_agents(&self) -> &[String] {
        &self.failed
    }

    pub(super) fn failed(&mut self, speaker: &Speaker, error: &AgentError) {
        self.rested();
        self.note_failure(&speaker.display_name);
        self.error(
            Some(&speaker.id),
            error.kind.name(),
            &error.message,
            error.hint.as_deref(),
        );
        self.tell_failure();
        let words = format!(
            "{} could not answer: {}",
            speaker.display_name, error.message
        );
        self.failure = Some(Failure {
            words,
            hint: error.hint.clone(),
        });
    }

    /// Records an error for the final document, and writes it to the stream.
    pub(super) fn error(
        &mut self,
        speaker: Option<&str>,
        kind: &str,
        message: &str,
        hint: Option<&str>,
    ) {
        let mut error = json!({ "kind": kind, "message": message, "hint": hint });
        if let Some(speaker) = speaker {
            error["speaker"] = json!(speaker);
        }
        let mut event = error.clone();
        event["type"] = json!("error");
        self.event(&event);
        self.errors.push(error);
    }

    fn note_failure(&mut self, name: &str) {
        if !self.failed.iter().any(|known| known == name) {
            self.failed.push(name.to_owned());
        }
    }

    /// Warns of a failure that does not end the run.
    pub(super) fn tell_failure(&mut self) {
        if let Some(Failure { words, hint }) = self.failure.take() {
            let hint = hint.map(|hint| format!(" ({hint})"));
            let words = format!("{words}{}", hint.unwrap_or_default());
            self.ui.warn(&harmless(&words));
        }
    }

    /// Records a failure of a pair's worker, which the instructor is told of.
    pub(super) fn worker_failed(&mut self, error: &AgentError) {
        self.note_failure("Worker");
        self.errors.push(json!({
            "speaker": "worker",
            "kind": error.kind.name(),
            "message": error.message,
            "hint": error.hint,
        }));
    }
}
