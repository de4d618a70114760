//! Converts keys to the bytes that a terminal sends.

/// Keyboard protocol of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// xterm: `Esc` is the byte with which all other sequences begin.
    Xterm,
    /// kitty, if the program has enabled it: all keys are unambiguous.
    Kitty,
}

/// Returns the bytes of a key: `^r`, `Esc`, `Alt+Enter`, `PgUp`, `F1`, `x`.
pub fn bytes(key: &str, manner: Manner) -> Vec<u8> {
    let (name, modifiers) = parts(key);
    let text = match (manner, code(name)) {
        (Manner::Kitty, Some(code)) if modifiers > 0 || name == "Esc" => {
            format!("\x1b[{code}{}u", told(modifiers))
        }
        _ => plain(name, modifiers),
    };
    text.into_bytes()
}

const SHIFT: u8 = 1;
const ALT: u8 = 2;
const CTRL: u8 = 4;

/// Splits a key into name and modifiers.
fn parts(key: &str) -> (&str, u8) {
    if let Some(letter) = key.strip_prefix('^').filter(|rest| !rest.is_empty()) {
        return (letter, CTRL);
    }
    let mut name = key;
    let mut modifiers = 0;
    for (prefix, modifier) in [("Ctrl+", CTRL), ("Alt+", ALT), ("Shift+", SHIFT)] {
        if let Some(rest) = name.strip_prefix(prefix) {
            (name, modifiers) = (rest, modifiers | modifier);
        }
    }
    (name, modifiers)
}

/// Formats modifiers as a parameter of a sequence.
fn told(modifiers: u8) -> String {
    match modifiers {
        0 => String::new(),
        modifiers => format!(";{}", modifiers + 1),
    }
}

/// Returns the code of a key that sends a single byte or character.
fn code(name: &str) -> Option<u32> {
    Some(match name {
        "Esc" => 27,
        "Enter" => 13,
        "Tab" => 9,
        "Backspace" => 127,
        "Space" => 32,
        _ => {
            let mut letters = name.chars();
            let letter = letters.next().filter(|_| letters.next().is_none())?;
            u32::from(letter.to_ascii_lowercase())
        }
    })
}

/// Returns the bytes that xterm sends.
fn plain(name: &str, modifiers: u8) -> String {
    if let Some(code) = code(name) {
        return single(name, code, modifiers);
    }
    let letter = |letter| match modifiers {
        0 => format!("\x1b[{letter}"),
        modifiers => format!("\x1b[1{}{letter}", told(modifiers)),
    };
    let number = |number| format!("\x1b[{number}{}~", told(modifiers));
    match name {
        "Up" => letter('A'),
        "Down" => letter('B'),
        "Right" => letter('C'),
        "Left" => letter('D'),
        "Home" => letter('H'),
        "End" => letter('F'),
        "PgUp" => number(5),
        "PgDn" => number(6),
        "Delete" => number(3),
        "F1" => "\x1bOP".into(),
        other => panic!("there is no key {other:?}"),
    }
}

/// Returns the bytes of a key that sends a single byte or character.
fn single(name: &str, code: u32, modifiers: u8) -> String {
    if name == "Tab" && modifiers == SHIFT {
        return "\x1b[Z".into();
    }
    let letter = match name.chars().count() {
        1 => name.chars().next(),
        _ => char::from_u32(code),
    };
    let letter = letter.unwrap_or_default();
    let letter = match modifiers & CTRL {
        0 => letter,
        // Control clears the upper bits.
        _ => char::from(u8::try_from(code).unwrap_or_default() & 0x1f),
    };
    match modifiers & ALT {
        0 => letter.to_string(),
        _ => format!("\x1b{letter}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, xterm: &str, kitty: &str) {
        let told = |manner| String::from_utf8(bytes(key, manner)).unwrap();
        assert_eq!(told(Manner::Xterm), xterm, "{key} in xterm");
        assert_eq!(told(Manner::Kitty), kitty, "{key} in kitty");
    }

    #[test]
    fn keys_are_what_terminals_send() {
        check("x", "x", "x");
        check("G", "G", "G");
        check("^", "^", "^");
        check("^r", "\x12", "\x1b[114;5u");
        check("^c", "\x03", "\x1b[99;5u");
        check("Ctrl+J", "\n", "\x1b[106;5u");
        check("Esc", "\x1b", "\x1b[27u");
        check("Enter", "\r", "\r");
        check("Alt+Enter", "\x1b\r", "\x1b[13;3u");
        check("Alt+f", "\x1bf", "\x1b[102;3u");
        check("Tab", "\t", "\t");
        check("Backspace", "\x7f", "\x7f");
        check("Space", " ", " ");
        check("Shift+Tab", "\x1b[Z", "\x1b[9;2u");
        check("Up", "\x1b[A", "\x1b[A");
        check("Shift+Up", "\x1b[1;2A", "\x1b[1;2A");
        check("Ctrl+Home", "\x1b[1;5H", "\x1b[1;5H");
        check("PgUp", "\x1b[5~", "\x1b[5~");
        check("F1", "\x1bOP", "\x1bOP");
    }

    #[test]
    #[should_panic(expected = "there is no key \"Pause\"")]
    fn other_keys_are_a_mistake_of_the_test() {
        bytes("Pause", Manner::Xterm);
    }
}
