//! Halves of characters. Programs that count text in 16-bit units cut an emoji in two where a text is
//! shortened, and write the half as an escape that is not Unicode; no word of the document should be lost to that.

use std::borrow::Cow;

/// What stands in the place of half a character, as long as the escape that it replaces.
const REPLACEMENT: &str = "\\ufffd";

/// The text with the replacement character for every escape that is half a character.
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
            // The escaped character may be a backslash, which then escapes nothing itself.
            None => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if out.is_empty() && copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether a text has halves of characters, which reading it replaces.
pub fn has_halves(text: &str) -> bool {
    matches!(replaced(text), Cow::Owned(_))
}

/// The 16-bit unit that an escape at the beginning of a text stands for.
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
