//! The visible screen: output of the program, interpreted by a terminal emulator.

use vt100::{Callbacks, Parser};

use super::Size;

/// The emulator.
pub struct Emulator {
    parser: Parser<Listener>,
}

/// Output that does not appear on the screen.
#[derive(Default)]
struct Listener {
    replies: Vec<u8>,
    updating: bool,
    keyboard: usize,
    clipboard: Vec<Vec<u8>>,
    bells: usize,
}

impl Callbacks for Listener {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.bells += 1;
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.clipboard.push(data.to_owned());
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        letter: char,
    ) {
        let number = parameters.first().and_then(|numbers| numbers.first());
        match (first, letter, number.copied().unwrap_or_default()) {
            (Some(b'?'), 'h', 2026) => self.updating = true,
            (Some(b'?'), 'l', 2026) => self.updating = false,
            (Some(b'>'), 'u', _) => self.keyboard += 1,
            (Some(b'<'), 'u', _) => self.keyboard = self.keyboard.saturating_sub(1),
            (None, 'c', 0) => self.replies.extend(b"\x1b[?62;22c"),
            (None, 'n', 5) => self.replies.extend(b"\x1b[0n"),
            (None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                let place = format!("\x1b[{};{}R", row + 1, column + 1);
                self.replies.extend(place.into_bytes());
            }
            _ => {}
        }
    }
}

impl Emulator {
    /// Creates an empty screen.
    pub fn new(size: Size) -> Emulator {
        let (rows, columns) = size.nonzero();
        Emulator {
            parser: Parser::new_with_callbacks(rows, columns, 0, Listener::default()),
        }
    }

    /// Processes output of the program and returns the terminal's replies.
    pub fn process(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().replies)
    }

    /// Changes the size.
    pub fn resize(&mut self, size: Size) {
        let (rows, columns) = size.nonzero();
        self.parser.set_size(rows, columns);
    }

    /// Returns true within a synchronized update.
    pub fn is_updating(&self) -> bool {
        self.parser.callbacks().updating
    }

    /// Returns true if the program has enabled the kitty keyboard protocol.
    pub fn wants_clear_keys(&self) -> bool {
        self.parser.callbacks().keyboard > 0
    }

    /// Returns all clipboard writes, in base64.
    pub fn clipboard(&self) -> &[Vec<u8>] {
        &self.parser.callbacks().clipboard
    }

    /// Returns the number of bells.
    pub fn bells(&self) -> usize {
        self.parser.callbacks().bells
    }

    /// Returns the visible screen.
    pub fn screen(&self) -> Screen<'_> {
        Screen(self.parser.screen())
    }
}

/// The visible screen. Rows and columns count from 0.
#[derive(Clone, Copy)]
pub struct Screen<'a>(&'a vt100::Screen);

impl<'a> Screen<'a> {
    /// Returns the emulator's own screen.
    pub fn inner(self) -> &'a vt100::Screen {
        self.0
    }

    /// Returns the size.
    pub fn size(self) -> Size {
        let (rows, columns) = self.0.size();
        Size {
            columns: columns.get(),
            rows: rows.get(),
        }
    }

    /// Returns one row, without trailing blanks.
    pub fn row(self, row: u16) -> String {
        let columns = self.size().columns;
        let mut text = String::new();
        for column in 0..columns {
            match self.0.cell(row, column) {
                Some(cell) if cell.is_wide_continuation() => {}
                Some(cell) if cell.has_contents() => text.push_str(cell.contents()),
                _ => text.push(' '),
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Returns all rows.
    pub fn rows(self) -> Vec<String> {
        (0..self.size().rows).map(|row| self.row(row)).collect()
    }

    /// Returns all rows as one text.
    pub fn text(self) -> String {
        self.rows().join("\n")
    }

    /// Returns true if a text is visible in one row.
    pub fn has(self, words: &str) -> bool {
        self.place_of(words).is_some()
    }

    /// Returns the number of rows that contain a text.
    pub fn rows_with(self, words: &str) -> usize {
        self.rows().iter().filter(|row| row.contains(words)).count()
    }

    /// Returns row and column of the topmost occurrence of a text.
    pub fn place_of(self, words: &str) -> Option<(u16, u16)> {
        (0..self.size().rows).find_map(|row| Some((row, self.column_in(row, words)?)))
    }

    /// Returns the column of a text in a row.
    fn column_in(self, row: u16, words: &str) -> Option<u16> {
        let at = self.row(row).find(words)?;
        let mut length = 0;
        for column in 0..self.size().columns {
            let cell = self.0.cell(row, column)?;
            if cell.is_wide_continuation() {
                continue;
            }
            if length == at {
                return Some(column);
            }
            length += cell.contents().len().max(1);
        }
        None
    }

    /// Returns row and column of the cursor, if it is visible.
    pub fn cursor(self) -> Option<(u16, u16)> {
        (!self.0.hide_cursor()).then(|| self.0.cursor_position())
    }

    /// Returns true if the alternate screen is active.
    pub fn is_alternate(self) -> bool {
        self.0.alternate_screen()
    }

    /// Returns true if the program has enabled mouse reporting.
    pub fn hears_the_mouse(self) -> bool {
        self.0.mouse_protocol_mode() != vt100::MouseProtocolMode::None
    }

    /// Returns true if the program has enabled bracketed paste.
    pub fn marks_pastes(self) -> bool {
        self.0.bracketed_paste()
    }

    /// Returns the screen in a frame, for failure messages.
    pub fn framed(self) -> String {
        let size = self.size();
        let edge = "─".repeat(usize::from(size.columns));
        let mut text = format!("┌{edge}┐\n");
        for row in 0..size.rows {
            let shown = self.row(row);
            let used = (0..size.columns)
                .rev()
                .find(|column| {
                    let cell = self.0.cell(row, *column);
                    cell.is_some_and(|cell| {
                        cell.is_wide_continuation() || !cell.contents().trim().is_empty()
                    })
                })
                .map_or(0, |column| column + 1);
            let blanks = " ".repeat(usize::from(size.columns - used));
            text.push_str(&format!("│{shown}{blanks}│\n"));
        }
        text.push_str(&format!("└{edge}┘"));
        let cursor = match self.cursor() {
            Some((row, column)) => format!("row {row}, column {column}"),
            None => "hidden".into(),
        };
        let kind = if self.is_alternate() {
            "alternate"
        } else {
            "normal"
        };
        format!(
            "{text}\n{}×{}, cursor {cursor}, {kind} screen",
            size.columns, size.rows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emulator(text: &str) -> Emulator {
        let mut emulator = Emulator::new(Size::new(10, 3));
        emulator.process(text.as_bytes());
        emulator
    }

    #[test]
    fn words_are_found_by_their_columns() {
        let emulator = emulator("a世b\x1b[2;5H界c");
        let screen = emulator.screen();
        assert_eq!(screen.row(0), "a世b");
        assert_eq!(screen.rows(), ["a世b", "    界c", ""]);
        assert_eq!(screen.place_of("b"), Some((0, 3)));
        assert_eq!(screen.place_of("c"), Some((1, 6)));
        assert_eq!(screen.place_of("d"), None);
        assert!(screen.framed().contains("│a世b      │"));
        assert!(
            screen
                .framed()
                .ends_with("cursor row 1, column 7, normal screen")
        );
    }

    #[test]
    fn what_is_not_on_the_screen_is_heard() {
        let mut emulator = emulator("\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000h\x07");
        let screen = emulator.screen();
        assert!(screen.is_alternate() && screen.marks_pastes() && screen.hears_the_mouse());
        assert_eq!((screen.cursor(), emulator.bells()), (None, 1));
        assert_eq!(
            emulator.process(b"ab\x1b[6n\x1b[c"),
            b"\x1b[1;3R\x1b[?62;22c"
        );
        assert_eq!(emulator.process(b"\x1b]52;c;YWI=\x07"), b"");
        assert_eq!(emulator.clipboard(), [b"YWI=".to_vec()]);
        assert!(!emulator.is_updating() && !emulator.wants_clear_keys());
        emulator.process(b"\x1b[?2026h\x1b[>1u");
        assert!(emulator.is_updating() && emulator.wants_clear_keys());
        emulator.process(b"\x1b[?2026l\x1b[<1u");
        assert!(!emulator.is_updating() && !emulator.wants_clear_keys());
    }
}
