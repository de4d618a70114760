//! The question whether an agent may use a tool.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::layout::Size;
use tertulia::approval::{ToolRequest, Verdict};

use super::quiet::Quiet;
use crate::tui::choice::Scroll;
use crate::tui::columns::{fold, width};
use crate::tui::press;
use crate::tui::view::dialog::approval::{inside, preview_lines};

/// The answers, in the order in which they stand.
pub const ANSWERS: [Verdict; 3] = [Verdict::Yes, Verdict::Always, Verdict::No];

/// A question whether a tool may be used.
#[derive(Clone, Debug)]
pub struct Approval {
    request: ToolRequest,
    who: String,
    quiet: Quiet,
    /// No, until somebody chooses otherwise: a stray Enter does no harm.
    chosen: usize,
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
    /// The key was pressed before the question could be read: it belongs to what was there before.
    NotYet(KeyEvent),
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
            chosen: ANSWERS.len() - 1,
            scroll: Scroll::default(),
            size,
            lines: Vec::new(),
        };
        approval.resize(size);
        approval
    }

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        self.lines = self.folded(inside(size).width);
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
            return Outcome::Answer(Verdict::No);
        }
        match press::answer(key) {
            Some('y') => return Outcome::Answer(Verdict::Yes),
            Some('a') => return Outcome::Answer(Verdict::Always),
            Some('n') => return Outcome::Answer(Verdict::No),
            _ => {}
        }
        let count = ANSWERS.len();
        match key.code {
            KeyCode::Enter => return Outcome::Answer(self.chosen()),
            KeyCode::Left | KeyCode::BackTab => self.chosen = (self.chosen + count - 1) % count,
            KeyCode::Right | KeyCode::Tab => self.chosen = (self.chosen + 1) % count,
            _ => {
                let seen = preview_lines(self.size, self.lines.len());
                if !self.scroll.moves(key, self.lines.len(), seen) {
                    return Outcome::Nothing;
                }
            }
        }
        Outcome::Changed
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
        format!("always: every {} in this session", self.request.key)
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
