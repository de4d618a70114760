//! Question for permission to use a tool, directly above the input.
//!
//! A letter alone never answers: `y`, `a`, `n` and `i` choose, Enter answers. Any other letter, and
//! any letter after one that chose, is text for the input: a sentence that happens to begin with `a`
//! allows nothing.

#[cfg(test)]
mod tests;

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::Style;
use ratatui::text::Line;
use tertulia_agents::approval::{ToolRequest, Verdict};
use tertulia_engine::text::permissions::covers;
use tertulia_engine::text::tools;

use super::quiet::Quiet;
use crate::choice::Scroll;
use crate::diff;
use crate::key_event;
use crate::one_line::{OneLine, Typed};
use crate::overlay::{Overlay, Reaction};
use crate::text::wrap::{Margin, Row};
use crate::text::{fold, width};
use crate::theme::Theme;
use crate::view;
use crate::view::brush::Look;

/// Rows besides the preview: heading, meaning of the answers, and the answers.
pub const OTHER_ROWS: usize = 3;
/// Columns left free on both sides together.
const SIDES: u16 = 2;

/// An answer that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Allow this call.
    Once,
    /// Allow this call, and what is equal to it until the session ends.
    Session,
    /// Deny this call.
    No,
    /// Deny this call, and write what to do instead.
    Instead,
}

/// The answers in display order, with their letters.
pub const CHOICES: [(char, Choice); 4] = [
    ('y', Choice::Once),
    ('a', Choice::Session),
    ('n', Choice::No),
    ('i', Choice::Instead),
];

/// Index of "no".
const NO: usize = 2;

/// Question about one tool request.
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
    /// What to do instead, while that is being written.
    instead: Option<OneLine>,
    scroll: Scroll,
    size: Size,
    theme: Theme,
    /// Preview for the current width.
    rows: Vec<Row>,
}

impl Overlay for Approval {
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
            return Reaction::Answer(Verdict::No);
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
            let choice = CHOICES.iter().position(|(known, _)| *known == letter);
            return match choice.filter(|_| self.letter.is_none()) {
                Some(choice) => self.choose(choice, Some(key)),
                None => self.pass(key),
            };
        }
        let count = CHOICES.len();
        match key.code {
            KeyCode::Enter => self.answer(),
            KeyCode::Left => self.choose((self.chosen + count - 1) % count, None),
            KeyCode::Right | KeyCode::Tab => self.choose((self.chosen + 1) % count, None),
            KeyCode::Backspace if self.letter.is_some() => self.choose(NO, None),
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
        view::dialog::approval::draw(self, look, area, buffer)
    }
}

impl Approval {
    /// Creates a question that appears at `now`. `who` is the display name of the agent.
    pub fn new(
        request: ToolRequest,
        who: &str,
        now: Timestamp,
        (size, theme): (Size, Theme),
    ) -> Approval {
        let mut approval = Approval {
            request,
            who: who.to_owned(),
            quiet: Quiet::new(now),
            chosen: NO,
            letter: None,
            writing: false,
            instead: None,
            scroll: Scroll::default(),
            size,
            theme,
            rows: Vec::new(),
        };
        approval.resize(size);
        approval
    }

    /// Sets whether text is being written in the input: then keys go there, and Tab returns to the
    /// question.
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

    /// What to do instead, while that is being written.
    pub fn instead(&self) -> Option<&OneLine> {
        self.instead.as_ref()
    }

    /// Gives the answer that is chosen.
    fn answer(&mut self) -> Reaction {
        Reaction::Answer(match self.chosen() {
            Choice::Once => Verdict::Yes,
            Choice::Session => Verdict::Always,
            Choice::No => Verdict::No,
            Choice::Instead => {
                self.letter = None;
                self.instead = Some(OneLine::default());
                return Reaction::Changed;
            }
        })
    }

    /// Handles a key while it is written what to do instead.
    fn tell(&mut self, key: KeyEvent) -> Reaction {
        let Some(instead) = &mut self.instead else {
            return Reaction::Nothing;
        };
        match key.code {
            KeyCode::Esc => {
                self.instead = None;
                self.choose(NO, None)
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

    /// Passes a key on, after the letter that chose.
    fn pass(&mut self, key: KeyEvent) -> Reaction {
        let letter = self.letter.take();
        self.chosen = NO;
        Reaction::Pass(letter.into_iter().chain([key]).collect())
    }

    /// Returns true if the question accepts keys.
    pub fn is_awake(&self, now: Timestamp) -> bool {
        self.quiet.is_over(now)
    }

    /// The tool request.
    pub fn request(&self) -> &ToolRequest {
        &self.request
    }

    /// Heading: who wants to do what.
    pub fn heading(&self) -> String {
        format!("{} wants to {}", self.who, tools::wish(&self.request))
    }

    /// Display name of the agent.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The answer that Enter gives.
    pub fn chosen(&self) -> Choice {
        CHOICES[self.chosen].1
    }

    /// Returns true if an answer was chosen by a key.
    pub fn has_chosen(&self) -> bool {
        self.letter.is_some() || self.chosen != NO
    }

    /// Preview for a width.
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

    /// Number of preview rows that are seen in a height. The answers come first, then the heading,
    /// then a row of the preview.
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
        let preview = self.request.preview.trim_end_matches('\n');
        let (margin, text) = (Margin::default(), self.theme.text());
        let mut out = Vec::new();
        match tools::verb(&self.request.call).changes() {
            true => out = diff::rows(preview, 0, (&margin, text), columns, self.theme),
            false => plain(preview, text, columns, &mut out),
        }
        let always = self.always();
        if width(&always) > columns {
            plain(&format!("\n{always}"), self.theme.dim(), columns, &mut out);
        }
        out
    }

    /// Describes what "this session" would allow.
    pub fn always(&self) -> String {
        format!("a: {}", covers(&self.request))
    }
}

/// Folds text. All of its spaces are shown: nothing may hide behind them.
fn plain(text: &str, style: Style, columns: usize, out: &mut Vec<Row>) {
    let (lines, _) = fold(text, columns, usize::MAX);
    out.extend(lines.into_iter().map(|line| Row {
        line: Line::styled(line, style),
        source: 0..0,
    }));
}
