//! Helpers to interpret keys in lists and dialogs.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Returns false for a key release, which some terminals report.
pub fn is_down(key: KeyEvent) -> bool {
    key.kind != KeyEventKind::Release
}

/// Letter pressed with Ctrl, in lower case.
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

/// Typed character.
pub fn typed(key: KeyEvent) -> Option<char> {
    let held = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER;
    match key.code {
        // Both together are AltGr, which some keyboards need to type certain characters.
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

/// Returns true for the space bar.
pub fn is_space(key: KeyEvent) -> bool {
    typed(key) == Some(' ')
}

/// Typed letter in lower case, as an answer.
pub fn answer(key: KeyEvent) -> Option<char> {
    typed(key).map(|letter| letter.to_ascii_lowercase())
}

/// Returns true for Esc and Ctrl+C.
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
