//! One-line text field for queries, titles and tags.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::key_event;
use crate::text::{one_line, width_of};

/// Maximum length; a large text may be pasted by mistake.
const MOST_BYTES: usize = 4096;

/// A line of text with a cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneLine {
    text: String,
    /// Byte offset, always at a grapheme boundary.
    cursor: usize,
}

/// Outcome of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    /// The key does not apply to a text field.
    Nothing,
    /// The cursor may have moved.
    Moved,
    /// The text has changed.
    Changed,
}

impl OneLine {
    /// Creates a line with the cursor at its end.
    pub fn new(text: &str) -> OneLine {
        let mut line = OneLine::default();
        line.insert(text);
        line
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Typed {
        if let Some(letter) = key_event::typed(key) {
            return self.insert(letter.encode_utf8(&mut [0; 4]));
        }
        let alone = key.modifiers.is_empty();
        let word = key
            .modifiers
            .intersects(KeyModifiers::ALT | KeyModifiers::CONTROL);
        match (key.code, key_event::with_control(key)) {
            (KeyCode::Left, _) if word => self.move_to(self.word_before()),
            (KeyCode::Right, _) if word => self.move_to(self.word_after()),
            (KeyCode::Left, _) if alone => self.move_to(self.before()),
            (KeyCode::Right, _) if alone => self.move_to(self.after()),
            (KeyCode::Home, _) | (_, Some('a')) => self.move_to(0),
            (KeyCode::End, _) | (_, Some('e')) => self.move_to(self.text.len()),
            (KeyCode::Backspace, _) if word => self.remove(self.word_before(), self.cursor),
            (_, Some('w')) => self.remove(self.word_before(), self.cursor),
            (KeyCode::Backspace, _) | (_, Some('h')) => self.remove(self.before(), self.cursor),
            (KeyCode::Delete, _) => self.remove(self.cursor, self.after()),
            (_, Some('u')) => self.remove(0, self.cursor),
            (_, Some('k')) => self.remove(self.cursor, self.text.len()),
            _ => Typed::Nothing,
        }
    }

    /// Inserts text at the cursor, as one line.
    pub fn insert(&mut self, text: &str) -> Typed {
        let room = MOST_BYTES.saturating_sub(self.text.len());
        let text = one_line(&text[..text.floor_char_boundary(room)]).into_owned();
        // The replacement of a control character is longer than the character.
        let text = &text[..text.floor_char_boundary(room)];
        if text.is_empty() {
            return Typed::Nothing;
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A combining mark may have merged with its neighbour.
        self.cursor = self.boundary_from(self.cursor);
        Typed::Changed
    }

    fn boundary_from(&self, at: usize) -> usize {
        self.text
            .grapheme_indices(true)
            .map(|(start, _)| start)
            .find(|start| *start >= at)
            .unwrap_or(self.text.len())
    }

    fn move_to(&mut self, to: usize) -> Typed {
        self.cursor = to;
        Typed::Moved
    }

    fn remove(&mut self, from: usize, to: usize) -> Typed {
        if from == to {
            return Typed::Moved;
        }
        self.text.replace_range(from..to, "");
        self.cursor = self.boundary_from(from);
        Typed::Changed
    }

    fn before(&self) -> usize {
        let mut letters = self.text[..self.cursor].grapheme_indices(true);
        letters.next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        let mut letters = self.text[self.cursor..].graphemes(true);
        self.cursor + letters.next().map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let mut words = self.text[..self.cursor].unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let mut words = self.text[self.cursor..].unicode_word_indices();
        let end = words.next().map(|(at, word)| self.cursor + at + word.len());
        end.unwrap_or(self.text.len())
    }

    /// Part of the text visible in a width, and the column of the cursor in it.
    pub fn seen(&self, columns: u16) -> (&str, u16) {
        let columns = usize::from(columns.max(1));
        let (mut start, mut column) = (self.cursor, 0);
        for (at, letter) in self.text[..self.cursor].grapheme_indices(true).rev() {
            let wide = width_of(letter);
            if column + wide >= columns {
                break;
            }
            (start, column) = (at, column + wide);
        }
        let (mut end, mut taken) = (start, 0);
        for (at, letter) in self.text[start..].grapheme_indices(true) {
            taken += width_of(letter);
            if taken > columns {
                break;
            }
            end = start + at + letter.len();
        }
        (
            &self.text[start..end],
            u16::try_from(column).unwrap_or(u16::MAX),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn press(line: &mut OneLine, code: KeyCode, modifiers: KeyModifiers) -> Typed {
        line.key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn letters_words_and_the_rest_are_removed() {
        let mut line = OneLine::new("one two e\u{301}");
        press(&mut line, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(line.text(), "one two ");
        press(&mut line, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(line.text(), "one ");
        press(&mut line, KeyCode::Home, KeyModifiers::NONE);
        press(&mut line, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!(line.text(), "ne ");
        press(&mut line, KeyCode::Char('k'), KeyModifiers::CONTROL);
        assert!(line.is_empty());
        assert_eq!(
            press(&mut line, KeyCode::Backspace, KeyModifiers::NONE),
            Typed::Moved
        );
        assert_eq!(
            press(&mut line, KeyCode::Up, KeyModifiers::NONE),
            Typed::Nothing
        );
    }

    #[test]
    fn what_is_pasted_becomes_one_short_line() {
        let mut line = OneLine::default();
        line.insert("a\nb\u{1b}c");
        assert_eq!(line.text(), "a b\u{fffd}c");
        line.insert(&"x".repeat(500_000));
        assert_eq!(line.text().len(), MOST_BYTES);
        assert_eq!(line.insert("y"), Typed::Nothing);
    }

    #[test]
    fn the_cursor_is_always_seen() {
        let line = OneLine::new("漢字漢字x");
        assert_eq!(line.seen(20), ("漢字漢字x", 9));
        assert_eq!(line.seen(4), ("字x", 3));
        assert_eq!(line.seen(0), ("", 0));
        let mut line = line;
        press(&mut line, KeyCode::Home, KeyModifiers::NONE);
        assert_eq!(line.seen(4), ("漢字", 0));
    }

    proptest! {
        #[test]
        fn the_cursor_stays_between_letters(keys in proptest::collection::vec(0..14_u8, 0..60), columns in 0..9_u16) {
            let mut line = OneLine::default();
            for key in keys {
                let (code, modifiers) = match key {
                    0 => (KeyCode::Left, KeyModifiers::NONE),
                    1 => (KeyCode::Right, KeyModifiers::NONE),
                    2 => (KeyCode::Left, KeyModifiers::ALT),
                    3 => (KeyCode::Right, KeyModifiers::CONTROL),
                    4 => (KeyCode::Backspace, KeyModifiers::NONE),
                    5 => (KeyCode::Delete, KeyModifiers::NONE),
                    6 => (KeyCode::Char('w'), KeyModifiers::CONTROL),
                    7 => (KeyCode::Char('漢'), KeyModifiers::NONE),
                    8 => (KeyCode::Char('\u{301}'), KeyModifiers::NONE),
                    9 => (KeyCode::Char('\u{200d}'), KeyModifiers::NONE),
                    10 => (KeyCode::Char('👩'), KeyModifiers::NONE),
                    11 => (KeyCode::Char(' '), KeyModifiers::NONE),
                    12 => (KeyCode::Home, KeyModifiers::NONE),
                    _ => (KeyCode::Char('a'), KeyModifiers::NONE),
                };
                press(&mut line, code, modifiers);
                prop_assert_eq!(line.boundary_from(line.cursor), line.cursor);
                let (seen, column) = line.seen(columns);
                prop_assert!(column < columns.max(1) && line.text().contains(seen));
            }
        }
    }
}
