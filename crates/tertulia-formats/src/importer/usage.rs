//! Usage of programs that do not record it with each answer.

use tertulia_core::entry::{SpeakerKind, Usage};
use tertulia_core::foreign::Foreign;

/// Attaches the figures of the last request to the last answer. Totals of a session are not
/// attached anywhere: they would count twice after the session goes on.
pub fn attach_last(session: &mut Foreign, usage: Usage) {
    if usage == Usage::default() {
        return;
    }
    let mut answers = session
        .said
        .iter_mut()
        .filter(|said| said.message.speaker.kind == SpeakerKind::Ai);
    if let Some(last) = answers.next_back() {
        last.message.usage = Some(usage);
        last.message.usage_id = Some(last.id.to_string());
    }
    if answers.next().is_some() {
        let words = "usage of all answers but the last, which the program did not record";
        session.changes.lost.push(words.to_owned());
    }
}
