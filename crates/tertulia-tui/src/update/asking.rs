//! Asks the user, and says in the empty input what can be written there.

use super::{held, open};
use crate::dialog::question::Question;
use crate::dialog::subject::Subject;
use crate::effect::Now;
use crate::state::{Layer, Phase, State};

/// Asks the user. Text that is being written goes on being written.
pub fn ask(state: &mut State, subject: Subject, now: Now) {
    let mut question = Question::new(subject, now.at, (state.size, state.theme));
    let is_below = state.overlays.is_empty();
    question.set_writing(is_below && !state.input.is_empty());
    open(state, Layer::Question(Box::new(question)));
}

/// Placeholder of the empty input.
pub fn hint(state: &State) -> String {
    if let Some(question) = state.overlays.last().and_then(Layer::question) {
        return match question.instead() {
            Some(_) => "write above what to do instead".to_owned(),
            None => how_to_answer(question),
        };
    }
    if let (Phase::Open, Some(follows)) = (state.phase, &state.info.follows) {
        return held::placeholder(follows).to_owned();
    }
    let hint = match (state.phase, &state.running) {
        (Phase::Leaving | Phase::Gone, _) => "",
        (Phase::Open, None) if state.offered().is_some() => {
            "say something, / for commands, or Enter to resume the last session"
        }
        (Phase::Open, None) => "say something, or / for commands",
        (Phase::Opening, _) | (Phase::Open, Some(_)) => {
            "type ahead: sent when the current answer ends"
        }
    };
    hint.to_owned()
}

/// Names the keys that answer a question: `y, a or n and Enter answers; …`.
fn how_to_answer(question: &Question) -> String {
    let letters = question.choices().iter().map(|choice| choice.letter);
    let letters: Vec<String> = letters.map(String::from).collect();
    let letters = match letters.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    format!("{letters} and Enter answers; anything else is written here")
}
