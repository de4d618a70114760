//! A question to the user, directly above the input.
//!
//! A letter alone never answers: it chooses, and Enter answers. Any other letter, and any letter after
//! one that chose, is text for the input: a sentence that happens to begin with `a` allows nothing.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_agents::approval::Verdict;

use super::quiet::Quiet;
use super::subject::{Answer, Choice, Subject, plain};
use crate::choice::Scroll;
use crate::key_event;
use crate::one_line::{OneLine, Typed};
use crate::overlay::{Overlay, Reaction};
use crate::text::width;
use crate::text::wrap::Row;
use crate::theme::Theme;
use crate::view;
use crate::view::brush::Look;

/// Rows besides the details: heading, meaning of the answers, and the answers.
pub const OTHER_ROWS: usize = 3;
/// Columns left free on both sides together.
const SIDES: u16 = 2;

/// A question about one subject.
#[derive(Clone, Debug)]
pub struct Question {
    subject: Subject,
    asked_at: Timestamp,
    quiet: Quiet,
    /// Index of the chosen answer.
    chosen: usize,
    /// The letter that chose. If another letter follows, it was the start of a sentence.
    letter: Option<KeyEvent>,
    /// Whether keys go to the input because text is being written there.
    writing: bool,
    /// What to do instead, while that is being written.
    instead: Option<OneLine>,
    scroll: Scroll,
    size: Size,
    theme: Theme,
    /// Details for the current width.
    rows: Vec<Row>,
}

impl Overlay for Question {
    fn resize(&mut self, size: Size) {
        let is_same_width = self.size.width == size.width;
        self.size = size;
        if !is_same_width || self.rows.is_empty() {
            self.rows = self.folded(size.width);
        }
    }

    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return self.pass(key);
        }
        let pages = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
        if self.instead.is_some() && !pages {
            return self.tell(key);
        }
        if key_event::leaves(key) {
            return self.subject.way_out().0;
        }
        if self.writing && !pages {
            return match key.code {
                KeyCode::Tab => {
                    self.writing = false;
                    Reaction::Changed
                }
                _ => self.pass(key),
            };
        }
        if let Some(letter) = key_event::answer(key) {
            let mut choices = self.choices().iter();
            let choice = choices.position(|choice| choice.letter == letter);
            return match choice.filter(|_| self.letter.is_none()) {
                Some(choice) => self.choose(choice, Some(key)),
                None => self.pass(key),
            };
        }
        let count = self.choices().len();
        match key.code {
            KeyCode::Enter => self.answer(),
            KeyCode::Left => self.choose((self.chosen + count - 1) % count, None),
            KeyCode::Right | KeyCode::Tab => self.choose((self.chosen + 1) % count, None),
            KeyCode::Backspace if self.letter.is_some() => self.unchoose(),
            // Switches the tool policy: for what is asked next.
            KeyCode::BackTab => Reaction::Pass(vec![key]),
            _ => {
                let (count, seen) = (self.rows.len(), self.seen(self.size.height));
                self.scroll.moves(key, count, seen).into()
            }
        }
    }

    fn paste(&mut self, text: &str, _now: Timestamp) -> bool {
        match &mut self.instead {
            Some(instead) => {
                instead.insert(text);
                true
            }
            None => false,
        }
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.quiet.due(now)
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::dialog::question::draw(self, look, area, buffer)
    }
}

impl Question {
    /// Creates a question that appears at `now`.
    pub fn new(subject: Subject, now: Timestamp, (size, theme): (Size, Theme)) -> Question {
        let mut question = Question {
            chosen: subject.default_choice(),
            subject,
            asked_at: now,
            quiet: Quiet::new(now),
            letter: None,
            writing: false,
            instead: None,
            scroll: Scroll::default(),
            size,
            theme,
            rows: Vec::new(),
        };
        question.resize(size);
        question
    }

    /// Sets whether text is being written in the input: then keys go there, and Tab returns to the
    /// question.
    pub fn set_writing(&mut self, writing: bool) {
        self.writing = writing;
        if writing {
            self.unchoose();
        }
    }

    /// Returns true if keys go to the input.
    pub fn is_writing(&self) -> bool {
        self.writing
    }

    /// What to do instead, while that is being written.
    pub fn instead(&self) -> Option<&OneLine> {
        self.instead.as_ref()
    }

    /// Takes the letter that chose: text follows it, so that it was the start of a sentence.
    pub fn take_letter(&mut self) -> Option<KeyEvent> {
        let letter = self.letter.take();
        self.unchoose();
        letter
    }

    /// Gives the answer that is chosen.
    fn answer(&mut self) -> Reaction {
        if self.chosen().answer == Answer::Instead {
            self.letter = None;
            self.instead = Some(OneLine::default());
            return Reaction::Changed;
        }
        self.subject.reaction(self.chosen().answer)
    }

    /// Handles a key while it is written what to do instead.
    fn tell(&mut self, key: KeyEvent) -> Reaction {
        let Some(instead) = &mut self.instead else {
            return Reaction::Nothing;
        };
        match key.code {
            KeyCode::Esc => {
                self.instead = None;
                self.unchoose()
            }
            KeyCode::Enter => match Verdict::denied(instead.text()) {
                // Without words there is nothing to tell.
                Verdict::No => Reaction::Nothing,
                verdict => Reaction::Answer(verdict),
            },
            _ if key_event::with_control(key) == Some('c') => Reaction::Answer(Verdict::No),
            _ => (instead.key(key) != Typed::Nothing).into(),
        }
    }

    fn choose(&mut self, choice: usize, letter: Option<KeyEvent>) -> Reaction {
        (self.chosen, self.letter) = (choice, letter);
        Reaction::Changed
    }

    fn unchoose(&mut self) -> Reaction {
        self.choose(self.subject.default_choice(), None)
    }

    /// Passes a key on, after the letter that chose.
    fn pass(&mut self, key: KeyEvent) -> Reaction {
        let letter = self.take_letter();
        Reaction::Pass(letter.into_iter().chain([key]).collect())
    }

    /// Returns true if the question accepts keys.
    pub fn is_awake(&self, now: Timestamp) -> bool {
        self.quiet.is_over(now)
    }

    /// What is asked.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The answers in display order.
    pub fn choices(&self) -> &'static [Choice] {
        self.subject.choices()
    }

    /// The answer that Enter gives.
    pub fn chosen(&self) -> Choice {
        self.choices()[self.chosen]
    }

    /// Index of the answer that Enter gives.
    pub fn chosen_place(&self) -> usize {
        self.chosen
    }

    /// Returns true if an answer was chosen by a key.
    pub fn has_chosen(&self) -> bool {
        self.letter.is_some() || self.chosen != self.subject.default_choice()
    }

    /// Details for a width.
    pub fn rows(&self, columns: u16) -> std::borrow::Cow<'_, [Row]> {
        match columns == self.size.width {
            true => self.rows.as_slice().into(),
            false => self.folded(columns).into(),
        }
    }

    /// Number of rows that the question would fill.
    pub fn height(&self) -> u16 {
        u16::try_from(self.rows.len() + OTHER_ROWS).unwrap_or(u16::MAX)
    }

    /// Number of rows of details that are seen in a height. The answers come first, then the heading,
    /// then a row of the details.
    pub fn seen(&self, height: u16) -> usize {
        match usize::from(height) {
            height @ 0..=3 => height.saturating_sub(2),
            height => height - OTHER_ROWS,
        }
    }

    /// Index of the first visible row, given the total and the viewport height.
    pub fn top(&self, count: usize, seen: usize) -> usize {
        self.scroll.top(count, seen)
    }

    fn folded(&self, columns: u16) -> Vec<Row> {
        let columns = usize::from(columns.saturating_sub(SIDES)).max(1);
        let mut out = self.subject.details(columns, self.theme, self.asked_at);
        let note = self.subject.note();
        if width(&note) > columns {
            plain(&format!("\n{note}"), self.theme.dim(), columns, &mut out);
        }
        out
    }
}
