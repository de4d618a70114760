//! Output of programs as a terminal would show it, without colours: escape sequences are dropped, and
//! a carriage return or backspace overwrites.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';
const BACKSPACE: char = '\u{8}';
const BELL: char = '\u{7}';

/// Converts the output of a program to plain text.
pub fn program_output(text: &str) -> Cow<'_, str> {
    if !text.contains([ESCAPE, BACKSPACE, '\r']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        out.push_str(&overwritten(&without_sequences(line)));
        out.push_str(end);
    }
    Cow::Owned(out)
}

/// Drops colours, cursor movements, titles and the like. What is no complete sequence stays.
fn without_sequences(line: &str) -> Cow<'_, str> {
    if !line.contains(ESCAPE) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(ESCAPE) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = sequence(&rest[1..]).map_or(1, |length| length + 1);
        if length == 1 {
            out.push(ESCAPE);
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Length of the sequence that follows an escape character, if it is complete.
fn sequence(text: &str) -> Option<usize> {
    let mut letters = text.char_indices();
    match letters.next()?.1 {
        // Parameters, then a final letter.
        '[' => {
            let (at, last) = letters.find(|(_, letter)| !matches!(letter, ' '..='?'))?;
            matches!(last, '@'..='~').then_some(at + 1)
        }
        // A text up to a bell or a string terminator.
        ']' => {
            let end = text.find([BELL, ESCAPE])?;
            match text[end..].strip_prefix(ESCAPE) {
                None => Some(end + 1),
                Some(after) => after.starts_with('\\').then_some(end + 2),
            }
        }
        '(' | ')' => letters.next().map(|(at, letter)| at + letter.len_utf8()),
        '7' | '8' | '=' | '>' | 'M' | 'c' => Some(1),
        _ => None,
    }
}

/// Lets what follows a carriage return or a backspace take the place of what was before it.
fn overwritten(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    if !line.contains(['\r', BACKSPACE]) {
        return Cow::Borrowed(line);
    }
    let mut cells: Vec<char> = Vec::new();
    let mut column = 0_usize;
    for letter in line.chars() {
        match letter {
            '\r' => column = 0,
            BACKSPACE => column = column.saturating_sub(1),
            letter => {
                match cells.get_mut(column) {
                    Some(cell) => *cell = letter,
                    None => cells.push(letter),
                }
                column += 1;
            }
        }
    }
    Cow::Owned(cells.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_and_overwritten_text_are_dropped() {
        let check = |output: &str, expected: &str| assert_eq!(program_output(output), expected);
        check("plain\n漢字\n", "plain\n漢字\n");
        check("\u{1b}[01;34msrc\u{1b}[0m\n", "src\n");
        check("10%\r50%\r100%\n", "100%\n");
        check("longer\rshort\n", "shortr\n");
        check("one\r\ntwo\r\n", "one\ntwo\n");
        check("abc\u{8}\u{8}xy", "axy");
        check("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{7}!", "link!");
        check("\u{1b}(Bx\u{1b}[2K\u{1b}[?25ly", "xy");
        // What is no sequence stays visible.
        check("\u{1b}[31", "\u{1b}[31");
        check("\u{1b}]0;no end", "\u{1b}]0;no end");
        check("\u{1b}", "\u{1b}");
        check("\u{1b}é", "\u{1b}é");
    }

    proptest! {
        #[test]
        fn no_output_breaks_it(text in "[a-z0-9;\\[\\]()漢\u{1b}\u{7}\u{8}\r\n\\\\]{0,60}") {
            let lines = |text: &str| text.matches('\n').count();
            prop_assert_eq!(lines(&program_output(&text)), lines(&text));
        }
    }
}
