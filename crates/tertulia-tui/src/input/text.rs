//! Text of the input: plain text, and long passages shown as a short label.

use std::ops::Range;
use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;

/// Placeholder of a folded passage in the text. A literal character of this kind is folded too, so
/// that the two cannot be confused.
pub const FOLD: char = '\u{fffc}';

/// A passage shown as its label and sent in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Full text.
    pub whole: Arc<str>,
    /// Label.
    pub label: String,
}

/// Text with folded passages: one for each [`FOLD`], in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    text: String,
    folds: Vec<Fold>,
}

impl Piece {
    /// Creates unfolded text.
    pub fn plain(text: &str) -> Piece {
        let folds = text.matches(FOLD).map(|sign| Fold {
            whole: sign.into(),
            label: '\u{fffd}'.to_string(),
        });
        Piece {
            folds: folds.collect(),
            text: text.to_owned(),
        }
    }

    /// Creates a folded passage.
    pub fn folded(whole: &str, label: String) -> Piece {
        Piece {
            text: FOLD.to_string(),
            folds: vec![Fold {
                whole: whole.into(),
                label,
            }],
        }
    }

    /// Full text, byte for byte.
    pub fn whole(&self) -> String {
        let mut folds = self.folds.iter();
        let mut whole = String::with_capacity(self.weight());
        for (place, words) in self.text.split(FOLD).enumerate() {
            if place > 0 {
                whole.extend(folds.next().map(|fold| &*fold.whole));
            }
            whole.push_str(words);
        }
        whole
    }

    /// Approximate size in bytes.
    pub fn weight(&self) -> usize {
        let folded: usize = self.folds.iter().map(|fold| fold.whole.len()).sum();
        self.text.len() + folded
    }

    /// The text, with a [`FOLD`] for each folded passage.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folded passages.
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends a piece.
    pub fn push(&mut self, more: &Piece) {
        self.text.push_str(&more.text);
        self.folds.extend(more.folds.iter().cloned());
    }

    /// Returns a part.
    pub fn part(&self, range: Range<usize>) -> Piece {
        let folds = self.folds_in(&range);
        Piece {
            text: self.text[range].to_owned(),
            folds: self.folds[folds].to_vec(),
        }
    }

    /// Replaces a part and returns the old one.
    pub fn replace(&mut self, range: Range<usize>, new: &Piece) -> Piece {
        let old = self.part(range.clone());
        let folds = self.folds_in(&range);
        self.folds.splice(folds, new.folds.iter().cloned());
        self.text.replace_range(range, &new.text);
        old
    }

    fn folds_in(&self, range: &Range<usize>) -> Range<usize> {
        if self.folds.is_empty() {
            return 0..0;
        }
        let before = self.text[..range.start].matches(FOLD).count();
        let inside = self.text[range.clone()].matches(FOLD).count();
        before..before + inside
    }

    /// Index in [`Piece::folds`] of the fold that ends at `at`.
    pub fn fold_before(&self, at: usize) -> Option<usize> {
        let before = &self.text[..at];
        before
            .ends_with(FOLD)
            .then(|| before.matches(FOLD).count() - 1)
    }
}

/// Graphemes of a text; a folded passage counts as one.
pub fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let to = cluster_after(text, at);
        (to > at).then(|| {
            let from = std::mem::replace(&mut at, to);
            (from, &text[from..to])
        })
    })
}

/// End of the grapheme that begins at `at`.
pub fn cluster_after(text: &str, at: usize) -> usize {
    let cluster = text[at..].graphemes(true).next().unwrap_or_default();
    // A combining mark after a fold must not become a part of it.
    let length = match cluster.find(FOLD) {
        Some(0) => FOLD.len_utf8(),
        Some(sign) => sign,
        None => cluster.len(),
    };
    at + length
}

/// Start of the grapheme that ends at `at`.
pub fn cluster_before(text: &str, at: usize) -> usize {
    let cluster = text[..at].graphemes(true).next_back().unwrap_or_default();
    let length = match cluster.rfind(FOLD) {
        Some(sign) if sign + FOLD.len_utf8() == cluster.len() => FOLD.len_utf8(),
        Some(sign) => cluster.len() - sign - FOLD.len_utf8(),
        None => cluster.len(),
    };
    at - length
}

/// Characters that join words in prose but separate them in code: `main.rs`.
const JOINTS: [char; 2] = ['.', ':'];

/// End of the next word.
pub fn word_after(text: &str, at: usize) -> usize {
    let mut to = at;
    for chunk in text[at..].split_word_bounds() {
        if is_word(chunk) {
            return to + chunk.split(JOINTS).next().map_or(0, str::len);
        }
        to += chunk.len();
    }
    to
}

/// Start of the previous word.
pub fn word_before(text: &str, at: usize) -> usize {
    let mut from = at;
    for chunk in text[..at].split_word_bounds().rev() {
        if is_word(chunk) {
            return from - chunk.rsplit(JOINTS).next().map_or(0, str::len);
        }
        from -= chunk.len();
    }
    from
}

fn is_word(chunk: &str) -> bool {
    chunk.contains(|c: char| c == FOLD || c.is_alphanumeric())
}

/// Start of the text between the last blank and `at`.
pub fn blank_before(text: &str, at: usize) -> usize {
    let words = text[..at].trim_end();
    if words.ends_with(FOLD) {
        return words.len() - FOLD.len_utf8();
    }
    words
        .rfind(|c: char| c == FOLD || c.is_whitespace())
        .map_or(0, |blank| {
            blank + words[blank..].chars().next().map_or(0, char::len_utf8)
        })
}

/// Start of the line.
pub fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |feed| feed + 1)
}

/// End of the line.
pub fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..].find('\n').map_or(text.len(), |feed| at + feed);
    // `\r\n` is one grapheme: the cursor must not go between the two bytes.
    if end > at && text[..end].ends_with('\r') && end < text.len() {
        end - 1
    } else {
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_sent_whole() {
        let mut piece = Piece::plain("see ");
        piece.push(&Piece::folded("a\r\nb\n", "[pasted 2 lines]".to_owned()));
        piece.push(&Piece::plain(" and \u{fffc}"));
        assert_eq!(piece.whole(), "see a\r\nb\n and \u{fffc}");
        let old = piece.replace(2..8, &Piece::plain("x"));
        assert_eq!(old.whole(), "e a\r\nb\n ");
        assert_eq!(piece.whole(), "sexand \u{fffc}");
    }

    #[test]
    fn a_fold_is_one_character_whatever_follows() {
        let text = "a\u{fffc}\u{301}e\u{301}";
        let found: Vec<&str> = clusters(text).map(|(_, cluster)| cluster).collect();
        assert_eq!(found, ["a", "\u{fffc}", "\u{301}", "e\u{301}"]);
        assert_eq!(cluster_before(text, 6), 4);
        assert_eq!(cluster_before(text, 4), 1);
    }

    #[test]
    fn words_are_found_in_both_directions() {
        let text = "let größe = 漢字; x";
        assert_eq!(&text[..word_after(text, 3)], "let größe");
        assert_eq!(&text[word_before(text, text.len() - 1)..], "字; x");
        assert_eq!(&text[blank_before(text, text.len() - 1)..], "漢字; x");
        assert_eq!(word_before("src/main.rs", 11), 9);
        assert_eq!(word_after("main.rs", 0), 4);
        assert_eq!(word_before("don't", 5), 0);
        assert_eq!(word_before("  ", 2), 0);
        assert_eq!(blank_before("a\u{fffc}b", 5), 4);
        assert_eq!(blank_before("a\u{fffc}", 4), 1);
    }

    #[test]
    fn nobody_stands_inside_a_line_end() {
        let text = "ab\r\ncd\n";
        assert_eq!(line_end(text, 0), 2);
        assert_eq!(line_start(text, 5), 4);
        assert_eq!(line_end(text, 4), 6);
        assert_eq!(cluster_after(text, 2), 4);
        assert_eq!(line_end("x\r", 0), 2);
    }
}
