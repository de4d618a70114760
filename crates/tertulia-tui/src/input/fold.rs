//! Folds long passages and creates their labels.

use tertulia_engine::text::grouped;

use super::text::{FOLD, Piece};

/// A paste of more lines than this is folded.
const MOST_LINES: usize = 8;
/// A paste of more bytes than this is folded, however few its lines.
const MOST_BYTES: usize = 1000;
/// A prompt of more lines or bytes than these is folded when it comes back.
const MOST_RECALLED: usize = 20;
const MOST_RECALLED_BYTES: usize = 3000;
/// Maximum number of bytes shown unfolded, which bounds the cost of a key.
pub const MOST_SHOWN: usize = 16 * 1024;

/// Converts pasted text, folding it if it is long.
pub fn pasted(text: &str) -> Piece {
    let text = with_line_feeds(text);
    let long = text.len() > MOST_BYTES || lines(&text) > MOST_LINES;
    if long || text.contains(FOLD) {
        Piece::folded(&text, label("pasted ", &text))
    } else {
        Piece::plain(&text)
    }
}

/// Converts text for further editing, folding it only if it is too long to show.
pub fn written(text: &str) -> Piece {
    if text.len() > MOST_SHOWN {
        Piece::folded(text, label("", text))
    } else {
        Piece::plain(text)
    }
}

/// Converts a prompt that comes back to the input, folding it if it is much longer than what is
/// written by hand.
pub fn recalled(text: &str) -> Piece {
    if lines(text) > MOST_RECALLED || text.len() > MOST_RECALLED_BYTES {
        Piece::folded(text, label("", text))
    } else {
        written(text)
    }
}

/// Replaces carriage returns by line feeds: many terminals paste line ends as Enter sends them.
/// Text that contains a line feed is kept unchanged.
fn with_line_feeds(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\r') && !text.contains('\n') {
        text.replace('\r', "\n").into()
    } else {
        text.into()
    }
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

fn label(how: &str, text: &str) -> String {
    match lines(text) {
        0 | 1 => match text.chars().count() {
            1 => format!("[{how}1 character]"),
            count => format!("[{how}{} characters]", grouped(count as u64)),
        },
        count => format!("[{how}{} lines]", grouped(count as u64)),
    }
}

/// Range to fold when too much is shown: the longer run of unfolded text that ends or begins at the
/// cursor.
pub fn surplus(piece: &Piece, cursor: usize) -> Option<std::ops::Range<usize>> {
    let text = piece.text();
    if text.len() <= MOST_SHOWN {
        return None;
    }
    let sign = FOLD.len_utf8();
    let from = text[..cursor].rfind(FOLD).map_or(0, |at| at + sign);
    let to = text[cursor..]
        .find(FOLD)
        .map_or(text.len(), |at| cursor + at);
    let longest = if cursor - from >= to - cursor {
        from..cursor
    } else {
        cursor..to
    };
    (longest.len() > MOST_BYTES).then_some(longest)
}

/// Folds a run of unfolded text.
pub fn folded(piece: &Piece) -> Piece {
    let whole = piece.whole();
    Piece::folded(&whole, label("", &whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pastes_are_folded_and_short_ones_are_not() {
        let shown = |text: &str| {
            let piece = pasted(text);
            assert_eq!(piece.whole(), text);
            piece.folds().first().map(|fold| fold.label.clone())
        };
        assert_eq!(shown("one line"), None);
        assert_eq!(shown(&"line\n".repeat(8)), None);
        assert_eq!(shown(&"line\n".repeat(9)).unwrap(), "[pasted 9 lines]");
        assert_eq!(
            shown(&"line\r\n".repeat(1234)).unwrap(),
            "[pasted 1 234 lines]"
        );
        assert_eq!(
            shown(&"x".repeat(500_000)).unwrap(),
            "[pasted 500 000 characters]"
        );
        assert_eq!(shown("\u{fffc}").unwrap(), "[pasted 1 character]");
    }

    #[test]
    fn a_long_prompt_comes_back_folded() {
        let folds = |text: &str| {
            let piece = recalled(text);
            assert_eq!(piece.whole(), text);
            piece.folds().first().map(|fold| fold.label.clone())
        };
        assert_eq!(folds(&"line\n".repeat(20)), None);
        assert_eq!(folds(&"line\n".repeat(300)).unwrap(), "[300 lines]");
        assert_eq!(folds(&"x".repeat(3000)), None);
        assert_eq!(folds(&"x".repeat(13_000)).unwrap(), "[13 000 characters]");
    }

    #[test]
    fn a_terminals_line_ends_become_line_feeds() {
        assert_eq!(pasted("a\rb").whole(), "a\nb");
        assert_eq!(pasted("a\r\nb\rc").whole(), "a\r\nb\rc");
    }
}
