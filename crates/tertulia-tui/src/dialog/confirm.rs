//! Yes/no dialog.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;

use super::quiet::Quiet;
use crate::press;

/// Yes/no dialog.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// Question, in one line.
    pub question: String,
    /// Details.
    pub detail: String,
    /// Whether Enter means yes: only after the user chose it.
    pub says_yes: bool,
    /// Time during which no answer is accepted.
    pub quiet: Quiet,
}

/// Outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// None.
    Nothing,
    /// None, but another answer is chosen.
    Changed,
    /// The key came before the question could be read: it belongs to the layer below.
    NotYet(KeyEvent),
    /// Yes.
    Yes,
    /// No.
    No,
}

impl Confirm {
    /// Creates a dialog that appears at `now`.
    pub fn new(question: &str, detail: &str, now: Timestamp) -> Confirm {
        Confirm {
            question: question.to_owned(),
            detail: detail.to_owned(),
            says_yes: false,
            quiet: Quiet::new(now),
        }
    }

    /// Handles a key.
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
