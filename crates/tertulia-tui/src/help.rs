//! Help overlay: keys and commands.

use crossterm::event::{KeyCode, KeyEvent};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};

use super::choice::Scroll;
use super::key_event;
use super::one_line::{OneLine, Typed};
use super::overlay::{Overlay, Reaction};
use super::view;
use super::view::brush::Look;
use crate::text::{fold, width};

/// Lines that do not scroll: the heading and the keys.
const OTHER_LINES: u16 = 3;

/// Columns before and after the keys.
pub const GAPS: usize = 4;
/// Maximum number of lines of an explanation.
const MOST_LINES: usize = 100;

/// A row of the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpRow {
    /// Section; rows of one section are consecutive.
    pub part: String,
    /// Key or command.
    pub keys: String,
    /// Explanation.
    pub what: String,
}

/// Help overlay.
#[derive(Clone, Debug)]
pub struct Help {
    rows: Vec<HelpRow>,
    /// Rows that have the words of the filter, folded for the current size.
    lines: Vec<Line>,
    scroll: Scroll,
    size: Size,
    /// Words that the rows must have.
    filter: OneLine,
    is_typing: bool,
}

/// A line of the help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Section heading.
    Part(String),
    /// Empty line.
    Gap,
    /// Key or command, and explanation.
    Row(String, String),
}

impl Overlay for Help {
    fn resize(&mut self, size: Size) {
        self.size = size;
        self.fold();
    }

    fn key(&mut self, key: KeyEvent, _now: Timestamp) -> Reaction {
        if !key_event::is_down(key) {
            return Reaction::Nothing;
        }
        let seen = usize::from(self.size.height.saturating_sub(OTHER_LINES));
        if self.scroll.moves(key, self.lines.len(), seen) {
            return Reaction::Changed;
        }
        let is_back = key.code == KeyCode::Esc;
        if is_back && (self.is_typing || !self.filter.is_empty()) {
            self.is_typing = false;
            self.set_filter(OneLine::default());
            return Reaction::Changed;
        }
        if self.is_typing && key.code == KeyCode::Enter {
            self.is_typing = false;
            return Reaction::Changed;
        }
        if key_event::leaves(key) || matches!(key.code, KeyCode::Enter | KeyCode::F(1)) {
            return Reaction::Close;
        }
        if self.is_typing {
            let mut filter = self.filter.clone();
            let typed = filter.key(key);
            self.set_filter(filter);
            return (typed != Typed::Nothing).into();
        }
        match key_event::typed(key) {
            Some('/') => {
                self.is_typing = true;
                Reaction::Changed
            }
            Some('q' | 'Q') => Reaction::Close,
            Some(letter @ (' ' | 'j' | 'k')) => {
                let code = match letter {
                    'j' => KeyCode::Down,
                    'k' => KeyCode::Up,
                    _ => KeyCode::PageDown,
                };
                self.scroll
                    .moves(code.into(), self.lines.len(), seen)
                    .into()
            }
            _ => Reaction::Nothing,
        }
    }

    fn paste(&mut self, text: &str, _now: Timestamp) -> bool {
        if self.is_typing {
            let mut filter = self.filter.clone();
            filter.insert(text);
            self.set_filter(filter);
        }
        self.is_typing
    }

    fn view(&self, look: Look, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        view::help::draw(self, look, area, buffer)
    }
}

impl Help {
    /// Creates the overlay.
    pub fn new(rows: Vec<HelpRow>) -> Help {
        let mut help = Help {
            rows,
            lines: Vec::new(),
            scroll: Scroll::default(),
            size: Size::default(),
            filter: OneLine::default(),
            is_typing: false,
        };
        help.resize(Size::new(80, 24));
        help
    }

    /// Words that the shown rows have; `None` without a search.
    pub fn filter(&self) -> Option<&OneLine> {
        (self.is_typing || !self.filter.is_empty()).then_some(&self.filter)
    }

    /// Returns true while the words are typed.
    pub fn is_typing(&self) -> bool {
        self.is_typing
    }

    fn set_filter(&mut self, filter: OneLine) {
        if filter.text() != self.filter.text() {
            self.scroll = Scroll::default();
        }
        self.filter = filter;
        self.fold();
    }

    /// Folds the rows that have all words of the filter for the current width.
    fn fold(&mut self) {
        let columns = usize::from(self.size.width);
        let room = columns.saturating_sub(self.key_columns(columns) + GAPS);
        let words = self.filter.text().to_lowercase();
        let mut lines = Vec::new();
        let mut part = "";
        for row in self.rows.iter().filter(|row| row.has(&words)) {
            if row.part != part {
                if !lines.is_empty() {
                    lines.push(Line::Gap);
                }
                part = &row.part;
                lines.push(Line::Part(row.part.clone()));
            }
            let (folded, _) = fold(&row.what, room, MOST_LINES);
            for (number, what) in folded.into_iter().enumerate() {
                let keys = if number == 0 { row.keys.as_str() } else { "" };
                lines.push(Line::Row(keys.to_owned(), what));
            }
        }
        self.lines = lines;
    }

    /// Visible lines for a viewport height, and the number of lines after them.
    pub fn seen(&self, count: usize) -> (&[Line], usize) {
        let top = self.scroll.top(self.lines.len(), count);
        let end = (top + count).min(self.lines.len());
        (&self.lines[top..end], self.lines.len() - end)
    }

    /// Width of the key column for a screen width.
    pub fn key_columns(&self, columns: usize) -> usize {
        let widest = self.rows.iter().map(|row| width(&row.keys)).max();
        widest.unwrap_or_default().min(columns / 2)
    }
}

impl HelpRow {
    /// Returns true if the row has all words, which are in lower case.
    fn has(&self, words: &str) -> bool {
        let text = format!("{} {} {}", self.part, self.keys, self.what).to_lowercase();
        words.split_whitespace().all(|word| text.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::{any_key, any_size, key, look, noon, screen};
    use crate::view;

    fn some() -> Help {
        let row = |part: &str, keys: &str, what: &str| HelpRow {
            part: part.to_owned(),
            keys: keys.to_owned(),
            what: what.to_owned(),
        };
        let mut rows = vec![
            row("Talking", "Enter", "send"),
            row("Talking", "Alt+Enter", "new line"),
            row(
                "Talking",
                "Esc Esc",
                "go back to something that you said, and go on from there in a fork of this session",
            ),
        ];
        let commands = (0..30).map(|number| row("Commands", &format!("/command{number}"), "漢字"));
        rows.extend(commands);
        Help::new(rows)
    }

    fn shown(help: &Help, size: (u16, u16)) -> String {
        screen(size, |area, buffer| {
            view::help::draw(help, look(), area, buffer)
        })
    }

    #[test]
    fn rows_stand_in_their_parts() {
        let mut help = some();
        insta::assert_snapshot!("help_80", shown(&help, (80, 24)));
        insta::assert_snapshot!("help_120", shown(&help, (120, 40)));
        assert_eq!(help.key(key("pgdn"), noon()), Reaction::Changed);
        assert!(shown(&help, (80, 24)).contains("/command29"));
        for name in ["esc", "q", "enter", "f1", "^c"] {
            assert_eq!(help.key(key(name), noon()), Reaction::Close, "{name}");
        }
    }

    #[test]
    fn words_are_found() {
        let mut help = some();
        for name in ["/", "F", "o", "r", "k", " ", "e", "s", "c"] {
            assert_eq!(help.key(key(name), noon()), Reaction::Changed, "{name}");
        }
        let shown_now = shown(&help, (80, 24));
        assert!(shown_now.contains("Esc Esc"), "{shown_now}");
        assert!(!shown_now.contains("/command"), "{shown_now}");
        assert_eq!(help.key(key("enter"), noon()), Reaction::Changed);
        assert_eq!(help.key(key("esc"), noon()), Reaction::Changed, "all rows");
        assert!(shown(&help, (80, 24)).contains("/command1"));
        for name in ["/", "x", "y", "z"] {
            help.key(key(name), noon());
        }
        assert!(shown(&help, (80, 24)).contains("no help on 'xyz'"));
        help.key(key("esc"), noon());
        assert_eq!(help.key(key("esc"), noon()), Reaction::Close);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn no_keys_and_no_size_break_it(
            keys in proptest::collection::vec(any_key(), 0..20), size in any_size(), told in any_size(),
        ) {
            let mut help = some();
            help.resize(Size::new(told.0, told.1));
            for key in keys {
                help.key(key, noon());
                shown(&help, size);
            }
        }
    }
}
