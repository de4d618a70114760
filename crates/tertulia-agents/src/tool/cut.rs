//! Limits the text that an agent reads, with a mark that says how much is missing.

use std::collections::VecDeque;

/// Number of bytes reserved for a mark.
const MARK: usize = 64;

/// Returns the longest prefix of a text that fits into `most` bytes, at a character boundary.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Limits the text to `most` bytes: its beginning and a mark, if it is longer.
pub(super) fn within(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let kept = beginning(&text, most.saturating_sub(MARK));
    let mark = format!("\n[cut: {} more bytes]", text.len() - kept.len());
    if kept.len() + mark.len() > most {
        return beginning(&text, most).to_owned();
    }
    format!("{kept}{mark}")
}

/// Keeps the beginning and the end of a text that arrives in chunks, in bounded memory.
#[derive(Debug)]
pub(super) struct Ends {
    /// Maximum number of bytes of each end.
    room: usize,
    head: String,
    /// Set by the first character that did not fit: later ones must not be added to the head.
    full: bool,
    tail: VecDeque<u8>,
    missing: u64,
}

impl Ends {
    /// Creates a buffer for at most `most` bytes, including the mark.
    pub(super) fn new(most: usize) -> Ends {
        Ends {
            room: most.saturating_sub(MARK) / 2,
            head: String::new(),
            full: false,
            tail: VecDeque::new(),
            missing: 0,
        }
    }

    /// Adds the next chunk.
    pub(super) fn push(&mut self, text: &str) {
        let mut rest = text;
        if !self.full {
            let kept = beginning(rest, self.room - self.head.len());
            self.head.push_str(kept);
            rest = &rest[kept.len()..];
            self.full = !rest.is_empty();
        }
        // A chunk that is longer than the room replaces the whole tail, and loses its own
        // beginning.
        let skipped = rest.len().saturating_sub(self.room);
        self.missing += skipped as u64;
        self.tail.extend(&rest.as_bytes()[skipped..]);
        let excess = self.tail.len().saturating_sub(self.room);
        self.missing += excess as u64;
        self.tail.drain(..excess);
    }

    /// Returns the kept text, with a mark in between if something is missing.
    pub(super) fn finish(mut self) -> String {
        let torn = |byte: &&u8| **byte & 0xc0 == 0x80;
        let skipped = match self.missing {
            0 => 0,
            // The cut may split a character: its remaining bytes are dropped.
            _ => self.tail.iter().take_while(torn).count(),
        };
        self.missing += skipped as u64;
        let tail = &self.tail.make_contiguous()[skipped..];
        let mut text = self.head;
        if self.missing > 0 {
            text.push_str(&format!(
                "\n[… {} bytes are missing here …]\n",
                self.missing
            ));
        }
        text.push_str(&String::from_utf8_lossy(tail));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_text_stays_whole() {
        assert_eq!(within("añ€".into(), 6), "añ€");
        let mut ends = Ends::new(200);
        ends.push("one\n");
        ends.push("two\n");
        assert_eq!(ends.finish(), "one\ntwo\n");
    }

    #[test]
    fn a_long_text_says_how_much_is_missing() {
        let text = "€".repeat(100);
        let cut = within(text, 100);
        assert_eq!(cut, format!("{}\n[cut: 264 more bytes]", "€".repeat(12)));
        assert_eq!(within("abcdef".into(), 3), "abc");
    }

    #[test]
    fn the_first_and_the_last_part_are_kept() {
        let mut ends = Ends::new(MARK + 8);
        for piece in ["ab", "cdefgh", "ijklmnopqrstuv", "w", "xyz"] {
            ends.push(piece);
        }
        assert_eq!(ends.finish(), "abcd\n[… 18 bytes are missing here …]\nwxyz");
    }

    proptest! {
        #[test]
        fn never_more_than_the_limit_and_nothing_unaccounted(
            pieces in prop::collection::vec("[a-zñ€😀\\n]{0,40}", 0..20), most in 0usize..400,
        ) {
            let whole: String = pieces.concat();
            let mut ends = Ends::new(most);
            for piece in &pieces {
                ends.push(piece);
                prop_assert!(ends.head.len() + ends.tail.len() <= most);
            }
            let (head, missing) = (ends.head.clone(), ends.missing);
            let text = ends.finish();
            prop_assert!(text.len() <= most.max(MARK));
            prop_assert!(whole.starts_with(&head));
            prop_assert_eq!(missing == 0, text == whole);
            prop_assert!(!text.contains(char::REPLACEMENT_CHARACTER));
            prop_assert!(within(whole, most).len() <= most);
        }
    }
}
