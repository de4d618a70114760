//! Counts the tokens of a text for which no agent reported usage, with a real vocabulary. Other
//! models tokenise differently, so that the count is an estimate for them.

/// Maximum number of bytes tokenised at once: a word of a megabyte would take minutes.
const PIECE: usize = 8 * 1024;

/// Counts the tokens of a text.
pub fn count(text: &str) -> u64 {
    let vocabulary = tiktoken_rs::o200k_base_singleton();
    pieces(text)
        .map(|piece| vocabulary.encode_ordinary(piece).len() as u64)
        .sum()
}

fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let mut end = PIECE.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, rest) = text.split_at(end);
        text = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_as_a_model_reads_them() {
        let check = |text: &str, expected: u64| assert_eq!(count(text), expected, "{text}");
        check("", 0);
        check("hello world", 2);
        check("tertulia", 2);
        check("你好，世界", 3);
    }

    #[test]
    fn a_word_of_a_megabyte_is_no_trouble() {
        let text = "漢".repeat(400_000);
        let tokens = count(&text);
        assert!(tokens > 100_000 && tokens <= text.len() as u64, "{tokens}");
    }
}
