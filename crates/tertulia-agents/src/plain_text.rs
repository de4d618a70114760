//! Text without the escape sequences of terminals, as it arrives: colours, cursor movements, titles.

/// Drops escape sequences from text that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct PlainText {
    place: Place,
}

/// Where a piece of text ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Outside of sequences.
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In the parameters of a sequence, which a letter ends.
    Parameters,
    /// In a text such as a title, which a bell or a string terminator ends.
    Title,
    /// After an escape character in such a text.
    TitleEscape,
    /// Before the name of a character set.
    CharacterSet,
}

impl PlainText {
    /// Returns a piece of text without sequences.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let is_shown = |letter: &char| self.place.take(*letter);
        text.chars().filter(is_shown).collect()
    }
}

impl Place {
    /// Goes on to the next character. Returns true if it is text.
    fn take(&mut self, letter: char) -> bool {
        const ESCAPE: char = '\u{1b}';
        *self = match (*self, letter) {
            (Place::Title, ESCAPE) => Place::TitleEscape,
            (Place::Title, '\u{7}') | (Place::TitleEscape, '\\') => Place::Text,
            (Place::Title | Place::TitleEscape, _) => Place::Title,
            (_, ESCAPE) => Place::Escape,
            (Place::Text, _) => return true,
            (Place::Escape, '[') => Place::Parameters,
            (Place::Escape, ']') => Place::Title,
            (Place::Escape, '(' | ')') => Place::CharacterSet,
            (Place::Parameters, ' '..='?') => Place::Parameters,
            // A line end is never part of a sequence.
            (Place::Escape | Place::Parameters | Place::CharacterSet, '\n') => {
                *self = Place::Text;
                return true;
            }
            (Place::Escape | Place::Parameters | Place::CharacterSet, _) => Place::Text,
        };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_dropped_wherever_they_are_cut() {
        let text = "\u{1b}[1;36mcyan\u{1b}[0m \u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b\u{1b}(Bc\u{1b}7\n[d]";
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let mut plain = PlainText::default();
            let shown = plain.push(&text[..cut]) + &plain.push(&text[cut..]);
            assert_eq!(shown, "cyan abc\n[d]", "cut at {cut}");
        }
        assert_eq!(
            PlainText::default().push("a\u{1b}\nb\u{1b}[3\nc"),
            "a\nb\nc"
        );
    }
}
