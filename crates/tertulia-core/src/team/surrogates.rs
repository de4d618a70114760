//! Replaces lone UTF-16 surrogates in JSON escapes. Programs that count text in 16-bit units may
//! cut an emoji in half when they shorten a text; the document should still be readable.

use std::borrow::Cow;

/// Replacement for a lone surrogate, of the same length as its escape.
const REPLACEMENT: &str = "\\ufffd";

/// Returns the text with every escaped lone surrogate replaced.
pub(super) fn replaced(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match unit(&text[at..]) {
            Some(0xd800..=0xdbff) if matches!(unit(&text[at + 6..]), Some(0xdc00..=0xdfff)) => {
                at += 12;
            }
            Some(0xd800..=0xdfff) => {
                out.push_str(&text[copied..at]);
                out.push_str(REPLACEMENT);
                at += 6;
                copied = at;
            }
            Some(_) => at += 6,
            // Skips the escaped character: it may be a backslash, which then escapes nothing.
            None => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if out.is_empty() && copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns true if a text has lone surrogates, which parsing replaces.
pub fn has_halves(text: &str) -> bool {
    matches!(replaced(text), Cow::Owned(_))
}

/// Returns the 16-bit unit of an escape at the beginning of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_are_replaced() {
        let check = |text: &str, expected: &str| assert_eq!(replaced(text), expected, "{text}");
        for whole in [
            "",
            "plain ü 😀",
            r"\ud83d\ude00",
            r"\\ud83d",
            r"\u00e9",
            r"\u12",
            "\\",
            "\\ü",
        ] {
            check(whole, whole);
            assert!(matches!(replaced(whole), Cow::Borrowed(_)));
        }
        check(r"\ud83d", r"\ufffd");
        check(r"a\ude00b", r"a\ufffdb");
        check(r"\uD83D\uD83D\uDE00", r"\ufffd\uD83D\uDE00");
        check(r"\\\ud83d…", r"\\\ufffd…");
    }
}
