//! Selection and scroll position of a list.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::key_event;

/// Index of the chosen row, and of the first visible row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    chosen: usize,
    top: usize,
}

impl Choice {
    /// Index of the chosen row.
    pub fn chosen(self) -> usize {
        self.chosen
    }

    /// Chooses a row, given the number of rows and the viewport height.
    pub fn choose(&mut self, row: usize, count: usize, seen: usize) {
        self.chosen = row.min(count.saturating_sub(1));
        self.top = self.top(count, seen);
    }

    /// Index of the first visible row, given the number of rows and the viewport height.
    pub fn top(self, count: usize, seen: usize) -> usize {
        let seen = seen.max(1);
        let top = self.top.min(count.saturating_sub(seen));
        top.clamp((self.chosen + 1).saturating_sub(seen), self.chosen)
    }

    /// Moves by a key; returns false for a key that does not move.
    pub fn moves(&mut self, key: KeyEvent, count: usize, seen: usize) -> bool {
        let page = seen.max(1);
        let control = key_event::with_control(key);
        // With these modifiers the keys have other meanings.
        let held = KeyModifiers::CONTROL | KeyModifiers::ALT;
        let to = match key.code {
            _ if control == Some('p') => self.chosen.saturating_sub(1),
            _ if control == Some('n') => self.chosen + 1,
            _ if key.modifiers.intersects(held) => return false,
            KeyCode::Up => self.chosen.saturating_sub(1),
            KeyCode::Down => self.chosen.saturating_add(1),
            KeyCode::PageUp => self.chosen.saturating_sub(page),
            KeyCode::PageDown => self.chosen.saturating_add(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return false,
        };
        self.choose(to, count, seen);
        true
    }
}

/// Scroll position of read-only text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    top: usize,
}

impl Scroll {
    /// Index of the first visible line, given the total and the viewport height.
    pub fn top(self, count: usize, seen: usize) -> usize {
        self.top.min(count.saturating_sub(seen))
    }

    /// Scrolls by a key; returns false for a key that does not scroll.
    pub fn moves(&mut self, key: KeyEvent, count: usize, seen: usize) -> bool {
        let page = seen.max(1);
        let top = self.top(count, seen);
        let to = match key.code {
            KeyCode::Up => top.saturating_sub(1),
            KeyCode::Down => top.saturating_add(1),
            KeyCode::PageUp => top.saturating_sub(page),
            KeyCode::PageDown => top.saturating_add(page),
            KeyCode::Home => 0,
            KeyCode::End => usize::MAX,
            _ => return false,
        };
        self.top = to.min(count.saturating_sub(seen));
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_choose_and_the_list_follows() {
        let mut choice = Choice::default();
        let mut press = |code: KeyCode| {
            assert!(choice.moves(code.into(), 10, 3));
            (choice.chosen(), choice.top(10, 3))
        };
        assert_eq!(press(KeyCode::Up), (0, 0));
        assert_eq!(press(KeyCode::PageDown), (3, 1));
        assert_eq!(press(KeyCode::End), (9, 7));
        assert_eq!(press(KeyCode::Down), (9, 7));
        assert_eq!(press(KeyCode::Up), (8, 7));
        assert_eq!(press(KeyCode::PageUp), (5, 5));
        assert_eq!(press(KeyCode::Home), (0, 0));
        assert!(!choice.moves(KeyCode::Left.into(), 10, 3));
    }

    #[test]
    fn an_empty_list_has_a_choice_too() {
        let mut choice = Choice::default();
        choice.moves(KeyCode::End.into(), 0, 0);
        assert_eq!((choice.chosen(), choice.top(0, 0)), (0, 0));
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_seen(chosen in 0..50_usize, count in 1..50_usize, seen in 1..20_usize, later in 1..20_usize) {
            let mut choice = Choice::default();
            choice.choose(chosen, count, seen);
            for seen in [seen, later] {
                let top = choice.top(count, seen);
                prop_assert!((top..top + seen).contains(&choice.chosen()));
            }
        }
    }
}
