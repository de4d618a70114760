//! Finds addresses in a text.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// Maximum length; terminals do not accept longer addresses.
const LONGEST: usize = 2000;
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// What is known about the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The text ends there.
    Known,
    /// The text may continue.
    Unknown,
}

/// Ranges of the addresses in a text. All of them are ASCII.
pub fn find(text: &str, tail: Tail) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = next(text, from) {
        let end = start + length(&text[start..]);
        from = end;
        let before = text[..start].chars().next_back();
        if before.is_some_and(char::is_alphanumeric) {
            continue;
        }
        let is_whole = match text[end..].chars().next() {
            Some(after) => ends_before(after),
            None => tail == Tail::Known,
        };
        let range = start..start + trimmed(&text[start..end]).len();
        if is_whole && has_host(&text[range.clone()]) && range.len() <= LONGEST {
            found.push(range);
        }
    }
    found
}

/// Start of the next possible address.
fn next(text: &str, from: usize) -> Option<usize> {
    let mut from = from;
    // Every scheme ends like this; the text before it decides whether it is a known one.
    while let Some(at) = text[from..].find("://") {
        let colon = from + at;
        let begins = |scheme: &&str| {
            let start = (colon + 3).checked_sub(scheme.len())?;
            let written = text.get(start..colon + 3)?;
            written.eq_ignore_ascii_case(scheme).then_some(start)
        };
        if let Some(start) = SCHEMES.iter().find_map(begins) {
            return Some(start);
        }
        from = colon + 3;
    }
    None
}

/// Number of bytes at the start of a text that can belong to an address.
fn length(text: &str) -> usize {
    let end = text.find(|letter: char| !is_letter(letter));
    end.unwrap_or(text.len())
}

/// Characters allowed in an address (RFC 3986).
fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(letter)
}

/// Returns true if an address before this character is complete. A letter of another script may
/// belong to the address or to the following text, and a truncation mark shows that it is
/// incomplete.
fn ends_before(letter: char) -> bool {
    !(letter == '…' || letter == '\u{fffd}' || letter.is_alphanumeric() || is_mark(letter))
}

/// Combining and invisible characters.
fn is_mark(letter: char) -> bool {
    letter.width() == Some(0)
}

/// Removes trailing punctuation that belongs to the sentence around an address.
fn trimmed(address: &str) -> &str {
    let mut rest = address;
    let mut opened = Depths::of(address);
    while let Some(last) = rest.chars().next_back() {
        let goes = match last {
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | '~' => true,
            ')' => opened.round < 0,
            ']' => opened.square < 0,
            '(' | '[' => true,
            _ => false,
        };
        if !goes {
            break;
        }
        opened.count(last, -1);
        rest = &rest[..rest.len() - 1];
    }
    rest
}

/// Number of open brackets at the end of a text; negative if more are closed.
#[derive(Clone, Copy, Debug, Default)]
struct Depths {
    round: i32,
    square: i32,
}

impl Depths {
    fn of(text: &str) -> Depths {
        let mut depths = Depths::default();
        text.chars().for_each(|letter| depths.count(letter, 1));
        depths
    }

    fn count(&mut self, letter: char, by: i32) {
        match letter {
            '(' => self.round += by,
            ')' => self.round -= by,
            '[' => self.square += by,
            ']' => self.square -= by,
            _ => {}
        }
    }
}

/// Returns true if something that can be a host name follows the scheme.
fn has_host(address: &str) -> bool {
    let rest = address.split_once("://").map_or("", |(_, rest)| rest);
    rest.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '[')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str, tail: Tail) -> Vec<&str> {
        let found = find(text, tail).into_iter();
        found.map(|range| &text[range]).collect()
    }

    #[test]
    fn addresses_are_found_as_people_write_them() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(all(text, Tail::Known), expected, "{text:?}");
        };
        check(
            "see https://example.org/a?b=c#d.",
            &["https://example.org/a?b=c#d"],
        );
        check("(http://a.b/c_(d))", &["http://a.b/c_(d)"]);
        check(
            "[x](https://a.b/c), <HTTPS://D.E>",
            &["https://a.b/c", "HTTPS://D.E"],
        );
        check("**https://a.b**", &["https://a.b"]);
        check("\"https://a.b/%C3%BC\"", &["https://a.b/%C3%BC"]);
        check("http://[::1]:8080/x", &["http://[::1]:8080/x"]);
        check("请看 https://a.b/c。", &["https://a.b/c"]);
        check(
            "https://web.org/https://a.b",
            &["https://web.org/https://a.b"],
        );
        check("https:// http://. nothttp://a.b", &[]);
        check("file:///etc/passwd ftp://a.b javascript://a", &[]);
        check("://", &[]);
    }

    #[test]
    fn what_may_be_cut_is_no_link() {
        for text in [
            "https://a.b/lon…",
            "https://a.b/Größe",
            "https://a.b/路径",
            "https://a.b/e\u{301}",
            "https://a.b/\u{fffd}[31m",
            "https://a.b/x\u{202e}gpj",
        ] {
            assert_eq!(all(text, Tail::Known), [""; 0], "{text:?}");
        }
        assert_eq!(all("https://a.b/c", Tail::Unknown), [""; 0]);
        assert_eq!(all("https://a.b/c ", Tail::Unknown), ["https://a.b/c"]);
        let longest = format!("https://a.b/{}", "x".repeat(LONGEST - 12));
        assert_eq!(all(&longest, Tail::Known), [&longest]);
        assert_eq!(all(&format!("{longest}x"), Tail::Known), [""; 0]);
    }

    proptest! {
        #[test]
        fn addresses_have_no_power(text in "(https?://|[a-z./:()\u{1b}\u{7}\\\\;漢 ]){0,40}") {
            for found in all(&text, Tail::Known) {
                prop_assert!(found.chars().all(is_letter), "{found:?}");
                prop_assert!(found.starts_with("http"));
            }
        }
    }
}
