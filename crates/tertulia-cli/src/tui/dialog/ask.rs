//! A question that is answered by a line.

use crossterm::event::{KeyCode, KeyEvent};

use crate::tui::one_line::{OneLine, Typed};
use crate::tui::press;

/// A question that is answered by a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The question.
    pub question: String,
    /// What stands there as long as nothing is typed.
    pub placeholder: String,
    /// The answer so far.
    pub line: OneLine,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but something was typed.
    Changed,
    /// Not to answer.
    Leave,
    /// This.
    Answer(String),
}

impl Ask {
    /// A question, with an answer that may be changed.
    pub fn new(question: &str, placeholder: &str, answer: &str) -> Ask {
        Ask {
            question: question.to_owned(),
            placeholder: placeholder.to_owned(),
            line: OneLine::new(answer),
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if press::leaves(key) {
            return Outcome::Leave;
        }
        if key.code == KeyCode::Enter {
            return Outcome::Answer(self.line.text().trim().to_owned());
        }
        match self.line.key(key) {
            Typed::Nothing => Outcome::Nothing,
            Typed::Moved | Typed::Changed => Outcome::Changed,
        }
    }

    /// Takes pasted text.
    pub fn paste(&mut self, text: &str) {
        self.line.insert(text);
    }
}
