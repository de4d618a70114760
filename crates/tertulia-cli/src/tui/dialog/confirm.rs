//! A question that is answered by yes or no.

use crossterm::event::{KeyCode, KeyEvent};

use crate::tui::press;

/// A question that is answered by yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// The question, in one line.
    pub question: String,
    /// What one should know before answering.
    pub detail: String,
    /// Whether Enter says yes: only if somebody chose it.
    pub says_yes: bool,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but another answer is chosen.
    Changed,
    /// Yes.
    Yes,
    /// No.
    No,
}

impl Confirm {
    /// A question.
    pub fn new(question: &str, detail: &str) -> Confirm {
        Confirm {
            question: question.to_owned(),
            detail: detail.to_owned(),
            says_yes: false,
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if press::leaves(key) {
            return Outcome::No;
        }
        match (press::answer(key), key.code) {
            (Some('y'), _) => Outcome::Yes,
            (Some('n'), _) => Outcome::No,
            (_, KeyCode::Enter) if self.says_yes => Outcome::Yes,
            (_, KeyCode::Enter) => Outcome::No,
            (_, KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab) => {
                self.says_yes = !self.says_yes;
                Outcome::Changed
            }
            _ => Outcome::Nothing,
        }
    }
}
