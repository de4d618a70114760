//! Dialog that asks for permission to use a tool.
//!
//! A letter alone never answers: `y`, `a` and `n` choose, Enter answers. Any other letter, and any
//! letter after one that chose, is text for the input: a sentence that happens to begin with `a`
//! allows nothing.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use tertulia_agents::approval::{ToolRequest, Verdict};

use super::quiet::Quiet;
use crate::choice::Scroll;
use crate::geometry::{dialog_inside, dialog_lines};
use crate::key_event;
use crate::overlay::{Overlay, Reaction};
use crate::text::{fold, width};
use crate::view;
use crate::view::brush::Look;

/// The answers in display order.
pub const ANSWERS: [Verdict; 3] = [Verdict::Yes, Verdict::Always, Verdict::No];

/// Lines inside the frame besides the preview: scroll hint, meaning of "always", a gap and the
/// answers.
pub const OTHER_LINES: usize = 4;

/// Index of "no".
const NO: usize = ANSWERS.len() - 1;

/// Dialog for one tool request.
#[derive(Clone, Debug)]
pub struct Approval {
    request: ToolRequest,
    who: String,
    quiet: Quiet,
    /// Index of the chosen answer; "no" by default, so that a stray Enter does no harm.
    chosen: usize,
    /// The letter that chose. If another letter follows, it was the start of a sentence.
    letter: Option<KeyEvent>,
    /// Whether keys go to the input because text is being written there.
    writing: bool,
    scroll: Scroll,
    size: Size,
    /// Preview folded for the current size.
    lines: Vec<PreviewLine>,
}

/// A line of the preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviewLine {
    /// Text.
    pub text: String,
    /// Role in a diff.
    pub kind: LineKind,
}

/// Role of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Unchanged, or not part of a diff.
    Same,
    /// Added.
    Added,
    /// Removed.
    Removed,
    /// Header with the position of the change.
    Place,
    /// Not part of the preview: the meaning of "always", if that is longer than a line.
    Note,
}

impl Overlay for Approval {
    fn resize(&mut self, size: Size) {
        let is_same_width = dialog_inside(self.size).width == dialog_inside(size).width;
        self.size = size;
        if !is_same_width || self.lines.is_empty() {
            self.lines = self.folded(dialog_inside(size).width);
        }
    }

    fn key(&mut self, key: KeyEvent, now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        if !self.quiet.lets_through(now) {
            return self.pass(key);
        }
        if key_event::leaves(key) {
            return Reaction::Answer(Verdict::No);
        }
        let pages = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
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
            let answer = ['y', 'a', 'n'].iter().position(|answer| *answer == letter);
            return match answer.filter(|_| self.letter.is_none()) {
                Some(answer) => self.choose(answer, Some(key)),
                None => self.pass(key),
            };
        }
        let count = ANSWERS.len();
        match key.code {
            KeyCode::Enter => Reaction::Answer(self.chosen()),
            KeyCode::Left => self.choose((self.chosen + count - 1) % count, None),
            KeyCode::Right | KeyCode::Tab => self.choose((self.chosen + 1) % count, None),
            KeyCode::Backspace if self.letter.is_some() => self.choose(NO, None),
            _ => {
                let seen = dialog_lines(self.size, self.lines.len(), OTHER_LINES);
                self.scroll.moves(key, self.lines.len(), seen).into()
            }
        }
    }

    fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.quiet.due(now)
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::dialog::approval::draw(self, look, area, buffer);
        None
    }
}

impl Approval {
    /// Creates a dialog that appears at `now`. `who` is the display name of the agent.
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

    /// Sets whether text is being written in the input: then keys go there, and Tab returns to the
    /// dialog.
    pub fn set_writing(&mut self, writing: bool) {
        self.writing = writing;
        if writing {
            self.choose(NO, None);
        }
    }

    /// Returns true if keys go to the input.
    pub fn is_writing(&self) -> bool {
        self.writing
    }

    fn choose(&mut self, answer: usize, letter: Option<KeyEvent>) -> Reaction {
        (self.chosen, self.letter) = (answer, letter);
        Reaction::Changed
    }

    /// Passes a key on, after the letter that chose.
    fn pass(&mut self, key: KeyEvent) -> Reaction {
        let letter = self.letter.take();
        self.chosen = NO;
        Reaction::Pass(letter.into_iter().chain([key]).collect())
    }

    /// Returns true if the dialog accepts keys.
    pub fn is_awake(&self, now: Timestamp) -> bool {
        self.quiet.is_over(now)
    }

    /// The tool request.
    pub fn request(&self) -> &ToolRequest {
        &self.request
    }

    /// Display name of the agent.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The answer that Enter gives.
    pub fn chosen(&self) -> Verdict {
        ANSWERS[self.chosen]
    }

    /// Preview folded to a width.
    pub fn lines(&self, columns: u16) -> std::borrow::Cow<'_, [PreviewLine]> {
        match columns == dialog_inside(self.size).width {
            true => self.lines.as_slice().into(),
            false => self.folded(columns).into(),
        }
    }

    /// Index of the first visible line, given the total and the viewport height.
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

    /// Describes what "always" would allow.
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
