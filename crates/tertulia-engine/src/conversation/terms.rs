//! Records the terms that the user sets, so that they hold for every frontend and every fork.

use tokio_util::sync::CancellationToken;

use super::Conversation;
use crate::frontend::Frontend;
use tertulia_core::approval::Approval;
use tertulia_core::entry::{Body, SpeakerKind, Terms};

impl Conversation {
    /// Records a tighter policy at once. A looser one waits for the next prompt: a user who changes their
    /// mind before that leaves no trace of it.
    pub async fn record_terms(&mut self, frontend: &mut dyn Frontend) {
        if self.writer.meta().is_some() && self.unrecorded(false).is_some() {
            self.cancel = CancellationToken::new();
            self.write(None, Vec::new(), frontend).await;
        }
    }

    /// Sets the member as whom the user speaks. It is recorded with the next prompt.
    pub fn sit(&mut self, seat: Option<String>) {
        self.seat = seat;
    }

    /// Returns entries with the terms that are to be recorded before them.
    pub(super) fn with_terms(&mut self, bodies: Vec<Body>) -> Vec<Body> {
        let has_begun = self.writer.meta().is_some();
        let is_prompt = |body: &Body| {
            let Body::Message(message) = body else {
                return false;
            };
            message.speaker.kind == SpeakerKind::Human
        };
        let with_prompt = !has_begun || bodies.iter().any(is_prompt);
        let terms = Terms {
            approve: self.unrecorded(with_prompt),
            seat: self.new_seat(with_prompt),
            ..self.moved(with_prompt)
        };
        if terms.is_empty() {
            return bodies;
        }
        self.recorded_mode = terms.approve.or(self.recorded_mode);
        if terms.seat.is_some() {
            self.recorded_seat.clone_from(&self.seat);
        }
        match has_begun {
            true => {
                let bodies = bodies.into_iter();
                std::iter::once(Body::Terms(terms)).chain(bodies).collect()
            }
            false => {
                self.writer.begin_with(terms);
                bodies
            }
        }
    }

    /// Returns the seat, empty for none, if it is to be recorded now.
    fn new_seat(&self, with_prompt: bool) -> Option<String> {
        let is_new = with_prompt && self.seat != self.recorded_seat;
        is_new.then(|| self.seat.clone().unwrap_or_default())
    }

    /// Takes the terms of a folder that the session moves to, once the user has agreed to it.
    fn moved(&mut self, with_prompt: bool) -> Terms {
        let folder = &mut self.options.folder;
        let moved = folder
            .moved
            .take_if(|_| with_prompt && folder.question.is_none());
        moved.unwrap_or_default()
    }

    /// Returns the policy that the user set, if it is to be recorded now: one that is tighter than what
    /// would hold after a restart, or any with a prompt.
    fn unrecorded(&self, with_prompt: bool) -> Option<Approval> {
        let mode = self.options.rules.said_mode()?;
        let recorded = self.recorded_mode;
        let is_tighter = mode < recorded.unwrap_or(Approval::Ask);
        (recorded != Some(mode) && (is_tighter || with_prompt)).then_some(mode)
    }
}
