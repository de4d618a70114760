//! The help screen: keys and commands, as they are given.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Size;

use super::choice::Scroll;
use super::columns::{fold, width};
use super::press;

/// How many lines of the screen do not scroll: the heading and the keys.
const OTHER_LINES: u16 = 3;

/// How many columns stand before the keys and after them.
pub const GAPS: usize = 4;
/// No explanation is longer.
const MOST_LINES: usize = 100;

/// One thing that can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelpRow {
    /// Where or with what: rows of one part follow each other.
    pub part: String,
    /// The key or the command.
    pub keys: String,
    /// What it does.
    pub what: String,
}

/// The help screen.
#[derive(Clone, Debug)]
pub struct Help {
    rows: Vec<HelpRow>,
    /// The rows as they are folded for this size.
    lines: Vec<Line>,
    scroll: Scroll,
    size: Size,
}

/// A line of the help screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The name of a part.
    Part(String),
    /// Nothing.
    Gap,
    /// A key or a command, and what it does.
    Row(String, String),
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// Nothing, but the screen looks different.
    Changed,
    /// To leave.
    Leave,
}

impl Help {
    /// A help screen of some rows.
    pub fn new(rows: Vec<HelpRow>) -> Help {
        let mut help = Help {
            rows,
            lines: Vec::new(),
            scroll: Scroll::default(),
            size: Size::default(),
        };
        help.resize(Size::new(80, 24));
        help
    }

    /// Tells how large the screen is.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
        let columns = usize::from(size.width);
        let room = columns.saturating_sub(self.key_columns(columns) + GAPS);
        let mut lines = Vec::new();
        let mut part = "";
        for row in &self.rows {
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

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Outcome {
        if !press::is_down(key) {
            return Outcome::Nothing;
        }
        let closes = matches!(key.code, KeyCode::Enter | KeyCode::F(1));
        if closes || press::leaves(key) || press::answer(key) == Some('q') {
            return Outcome::Leave;
        }
        let seen = usize::from(self.size.height.saturating_sub(OTHER_LINES));
        match self.scroll.moves(key, self.lines.len(), seen) {
            true => Outcome::Changed,
            false => Outcome::Nothing,
        }
    }

    /// The lines that are seen where so many fit, and how many follow.
    pub fn seen(&self, count: usize) -> (&[Line], usize) {
        let top = self.scroll.top(self.lines.len(), count);
        let end = (top + count).min(self.lines.len());
        (&self.lines[top..end], self.lines.len() - end)
    }

    /// How many columns the keys and commands have on a screen of so many.
    pub fn key_columns(&self, columns: usize) -> usize {
        let widest = self.rows.iter().map(|row| width(&row.keys)).max();
        widest.unwrap_or_default().min(columns / 2)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tui::stage::{any_key, any_size, key, look, screen};
    use crate::tui::view;

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
            view::help::draw(help, look(), area, buffer);
            None
        })
    }

    #[test]
    fn rows_stand_in_their_parts() {
        let mut help = some();
        insta::assert_snapshot!("help_80", shown(&help, (80, 24)));
        insta::assert_snapshot!("help_120", shown(&help, (120, 40)));
        assert_eq!(help.key(key("pgdn")), Outcome::Changed);
        assert!(shown(&help, (80, 24)).contains("/command29"));
        for name in ["esc", "q", "enter", "f1", "^c"] {
            assert_eq!(help.key(key(name)), Outcome::Leave, "{name}");
        }
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
                help.key(key);
                shown(&help, size);
            }
        }
    }
}
