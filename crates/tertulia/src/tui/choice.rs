//! Which row of a list is chosen, and which part of the list is seen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::press;

/// A chosen row, and the first row that is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    chosen: usize,
    top: usize,
}

impl Choice {
    /// The chosen row.
    pub fn chosen(self) -> usize {
        self.chosen
    }

    /// Chooses a row of a list of so many, of which so many are seen at once.
    pub fn choose(&mut self, row: usize, count: usize, seen: usize) {
        self.chosen = row.min(count.saturating_sub(1));
        self.top = self.top(count, seen);
    }

    /// The first row that is seen where so many fit.
    pub fn top(self, count: usize, seen: usize) -> usize {
        let seen = seen.max(1);
        let top = self.top.min(count.saturating_sub(seen));
        top.clamp((self.chosen + 1).saturating_sub(seen), self.chosen)
    }

    /// Moves by a key. Whether the key is one that moves.
    pub fn moves(&mut self, key: KeyEvent, count: usize, seen: usize) -> bool {
        let page = seen.max(1);
        let control = press::with_control(key);
        // Held together with these, the keys belong to somebody else.
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

/// Where a text that is only read is scrolled to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scroll {
    top: usize,
}

impl Scroll {
    /// The first line that is seen of so many, where so many fit.
    pub fn top(self, count: usize, seen: usize) -> usize {
        self.top.min(count.saturating_sub(seen))
    }

    /// Moves by a key. Whether the key is one that moves.
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
