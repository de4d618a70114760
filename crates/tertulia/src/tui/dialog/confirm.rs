//! A question that is answered by yes or no.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;

use super::quiet::Quiet;
use crate::tui::press;

/// A question that is answered by yes or no.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// The question, in one line.
    pub question: String,
    /// What one should know before answering.
    pub detail: String,
    /// Whether Enter says yes: only if somebody chose it.
    pub says_yes: bool,
    /// The time in which it takes no answer.
    pub quiet: Quiet,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but another answer is chosen.
    Changed,
    /// The key was pressed before the question could be read: it belongs to what was there before.
    NotYet(KeyEvent),
    /// Yes.
    Yes,
    /// No.
    No,
}

impl Confirm {
    /// A question that appears now.
    pub fn new(question: &str, detail: &str, now: Timestamp) -> Confirm {
        Confirm {
            question: question.to_owned(),
            detail: detail.to_owned(),
            says_yes: false,
            quiet: Quiet::new(now),
        }
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return Outcome::NotYet(key);
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
