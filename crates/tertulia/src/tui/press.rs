//! Keys as the lists and dialogs of the screen know them.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Whether a key went down. Some terminals also tell when it comes up again.
pub fn is_down(key: KeyEvent) -> bool {
    key.kind != KeyEventKind::Release
}

/// The letter that was pressed together with Control, in lower case.
pub fn with_control(key: KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter)
            if key.modifiers.contains(KeyModifiers::CONTROL)
                && !key.modifiers.contains(KeyModifiers::ALT) =>
        {
            Some(letter.to_ascii_lowercase())
        }
        _ => None,
    }
}

/// The character that was typed.
pub fn typed(key: KeyEvent) -> Option<char> {
    let held = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER;
    match key.code {
        // Both at once is AltGr, by which some keyboards type what others have on a key.
        KeyCode::Char(letter)
            if !key.modifiers.intersects(held)
                || key
                    .modifiers
                    .contains(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
        {
            Some(letter)
        }
        _ => None,
    }
}

/// The answer that was typed, be it in capitals or not.
pub fn answer(key: KeyEvent) -> Option<char> {
    typed(key).map(|letter| letter.to_ascii_lowercase())
}

/// Whether somebody wants to leave: Esc, or Control and C.
pub fn leaves(key: KeyEvent) -> bool {
    key.code == KeyCode::Esc || with_control(key) == Some('c')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_decide_what_a_letter_is() {
        let key = |modifiers| KeyEvent::new(KeyCode::Char('C'), modifiers);
        assert_eq!(with_control(key(KeyModifiers::CONTROL)), Some('c'));
        assert_eq!(typed(key(KeyModifiers::CONTROL)), None);
        assert_eq!(typed(key(KeyModifiers::ALT)), None);
        assert_eq!(typed(key(KeyModifiers::SHIFT)), Some('C'));
        assert_eq!(answer(key(KeyModifiers::SHIFT)), Some('c'));
        let alt_gr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        assert_eq!(typed(key(alt_gr)), Some('C'));
        assert_eq!(with_control(key(alt_gr)), None);
    }

    #[test]
    fn a_key_that_comes_up_is_none() {
        let mut key = KeyEvent::from(KeyCode::Enter);
        assert!(is_down(key));
        key.kind = KeyEventKind::Release;
        assert!(!is_down(key));
    }
}
