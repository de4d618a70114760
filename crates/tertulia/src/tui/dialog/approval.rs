//! The question whether an agent may use a tool.
//!
//! A letter alone never answers it: `y`, `a` and `n` choose, Enter answers. Every other letter, and every letter
//! after one that was chosen with, is text for the input: a sentence that happens to begin with `a` allows nothing.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::layout::Size;
use tertulia_agents::approval::{ToolRequest, Verdict};

use super::quiet::Quiet;
use crate::tui::choice::Scroll;
use crate::tui::columns::{fold, width};
use crate::tui::press;
use crate::tui::view::dialog::approval::{inside, preview_lines};

/// The answers, in the order in which they stand.
pub const ANSWERS: [Verdict; 3] = [Verdict::Yes, Verdict::Always, Verdict::No];

/// The place of "no" among the answers.
const NO: usize = ANSWERS.len() - 1;

/// A question whether a tool may be used.
#[derive(Clone, Debug)]
pub struct Approval {
    request: ToolRequest,
    who: String,
    quiet: Quiet,
    /// No, until the user chooses otherwise: a stray Enter does no harm.
    chosen: usize,
    /// The letter that chose. It is the first letter of a sentence if another one follows.
    letter: Option<KeyEvent>,
    /// Whether keys go to the input: something is written there.
    writing: bool,
    scroll: Scroll,
    size: Size,
    /// The preview as it is folded for this size.
    lines: Vec<PreviewLine>,
}

/// A line of what a tool would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewLine {
    /// The text.
    pub text: String,
    /// What it is in a change.
    pub kind: LineKind,
}

/// What a line is in a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It stays, or there is no change.
    Same,
    /// It is added.
    Added,
    /// It is taken away.
    Removed,
    /// It says where the change is.
    Place,
    /// It is not of the tool: what "always" would allow, where that is longer than a line.
    Note,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing yet, but the question looks different.
    Changed,
    /// The keys are no answer: they belong to the input, or to whatever lies below the question.
    Pass(Option<KeyEvent>, KeyEvent),
    /// This.
    Answer(Verdict),
}

impl Approval {
    /// A question that appears now. `who` is the agent, as people know it.
    pub fn new(request: ToolRequest, who: &str, now: Timestamp, size: Size) -> Approval {
        let mut approval = Approval {
            request,
            who: who.to_owned(),
            quiet: Quiet::new(now),
            chosen: NO,
            letter: None,
            writing: false,
            scroll: Scroll::default(),
            size,
            lines: Vec::new(),
        };
        approval.resize(size);
        approval
    }

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        let is_same_width = inside(self.size).width == inside(size).width;
        self.size = size;
        if !is_same_width || self.lines.is_empty() {
            self.lines = self.folded(inside(size).width);
        }
    }

    /// Tells whether something is written below: then keys go there, and Tab comes back.
    pub fn set_writing(&mut self, writing: bool) {
        self.writing = writing;
        if writing {
            self.choose(NO, None);
        }
    }

    /// Whether keys go to the input.
    pub fn is_writing(&self) -> bool {
        self.writing
    }

    fn choose(&mut self, answer: usize, letter: Option<KeyEvent>) -> Outcome {
        (self.chosen, self.letter) = (answer, letter);
        Outcome::Changed
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent, now: Timestamp) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return self.pass(key);
        }
        if press::leaves(key) {
            return Outcome::Answer(Verdict::No);
        }
        let pages = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
        if self.writing && !pages {
            return match key.code {
                KeyCode::Tab => {
                    self.writing = false;
                    Outcome::Changed
                }
                _ => self.pass(key),
            };
        }
        if let Some(letter) = press::answer(key) {
            let answer = ['y', 'a', 'n'].iter().position(|answer| *answer == letter);
            return match answer.filter(|_| self.letter.is_none()) {
                Some(answer) => self.choose(answer, Some(key)),
                None => self.pass(key),
            };
        }
        let count = ANSWERS.len();
        match key.code {
            KeyCode::Enter => Outcome::Answer(self.chosen()),
            KeyCode::Left => self.choose((self.chosen + count - 1) % count, None),
            KeyCode::Right | KeyCode::Tab => self.choose((self.chosen + 1) % count, None),
            KeyCode::Backspace if self.letter.is_some() => self.choose(NO, None),
            _ => {
                let seen = preview_lines(self.size, self.lines.len());
                match self.scroll.moves(key, self.lines.len(), seen) {
                    true => Outcome::Changed,
                    false => Outcome::Nothing,
                }
            }
        }
    }

    /// Gives a key away, after the letter that chose.
    fn pass(&mut self, key: KeyEvent) -> Outcome {
        let letter = self.letter.take();
        self.chosen = NO;
        Outcome::Pass(letter, key)
    }

    /// When it begins to take keys.
    pub fn due(&self) -> Timestamp {
        self.quiet.until()
    }

    /// Whether it takes keys now.
    pub fn is_awake(&self, now: Timestamp) -> bool {
        self.quiet.is_over(now)
    }

    /// What is asked.
    pub fn request(&self) -> &ToolRequest {
        &self.request
    }

    /// Who asks.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The answer that Enter gives.
    pub fn chosen(&self) -> Verdict {
        ANSWERS[self.chosen]
    }

    /// What the tool would do, in lines of so many columns.
    pub fn lines(&self, columns: u16) -> std::borrow::Cow<'_, [PreviewLine]> {
        match columns == inside(self.size).width {
            true => self.lines.as_slice().into(),
            false => self.folded(columns).into(),
        }
    }

    /// The first line that is seen of so many, where so many fit.
    pub fn top(&self, count: usize, seen: usize) -> usize {
        self.scroll.top(count, seen)
    }

    fn folded(&self, columns: u16) -> Vec<PreviewLine> {
        let preview = self.request.preview.trim_end_matches('\n');
        let mut lines = Vec::new();
        for line in preview.split('\n') {
            let kind = kind(line);
            let (folded, _) = fold(line, usize::from(columns), usize::MAX);
            lines.extend(folded.into_iter().map(|text| PreviewLine { text, kind }));
        }
        let always = self.always();
        if width(&always) > usize::from(columns) {
            let kind = LineKind::Note;
            let (folded, _) = fold(&format!("\n{always}"), usize::from(columns), usize::MAX);
            lines.extend(folded.into_iter().map(|text| PreviewLine { text, kind }));
        }
        lines
    }

    /// What "always" would allow.
    pub fn always(&self) -> String {
        format!("a: allow every {} until you leave", self.request.key)
    }
}

fn kind(line: &str) -> LineKind {
    let is_place = ["--- ", "+++ ", "@@"]
        .iter()
        .any(|mark| line.starts_with(mark));
    match line.as_bytes().first() {
        _ if is_place => LineKind::Place,
        Some(b'+') => LineKind::Added,
        Some(b'-') => LineKind::Removed,
        _ => LineKind::Same,
    }
}
