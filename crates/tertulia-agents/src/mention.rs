//! Prompts for programs that read a file where a prompt names it as `@path`, and send it to their
//! provider: file mentions are escaped so that they stay text. The log keeps the original text.

use std::path::Path;

/// Invisible, and not a space: a word that begins with it does not begin with `@`.
const JOINER: char = '\u{2060}';
/// Maximum length of a word that is looked up as a path; no system knows longer ones.
const LONGEST: usize = 4096;
/// Maximum number of prefixes of a word that are looked up as paths.
const MOST_LOOKUPS: usize = 32;

/// Escapes text for programs that read a file where a word begins with `@` (Claude Code and its
/// adapters). Only mentions of something that exists are changed: text that an agent is to copy
/// (`@Override`) keeps its characters.
pub(super) fn unread(words: &str, folder: Option<&Path>) -> String {
    let there = |name: &str| folder.is_some_and(|folder| folder.join(name).exists());
    joined(words, &there)
}

fn joined(words: &str, there: &dyn Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(words.len());
    let mut before = None;
    for (at, c) in words.char_indices() {
        let begins = c == '@' && before.is_none_or(|before: char| !before.is_alphanumeric());
        if begins && names_something(&words[at + 1..], there) {
            out.push(JOINER);
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// Returns whether a program could find something under the name that follows an `@`: a file with
/// any punctuation after its name, a path below the home folder, or a server resource
/// (`name:path`).
fn names_something(text: &str, there: &dyn Fn(&str) -> bool) -> bool {
    let (name, quoted) = match text.strip_prefix('"') {
        Some(inside) => (inside.split('"').next().unwrap_or_default(), true),
        None => (
            text.split(char::is_whitespace).next().unwrap_or_default(),
            false,
        ),
    };
    if name.is_empty() || name.len() > LONGEST {
        return false;
    }
    if name.starts_with(['~', '[']) || name.contains(':') || there(name) {
        return true;
    }
    // `@file.txt,` and `@file.txt#L3` mean the file; a space may be written `\ `.
    let ends = name
        .char_indices()
        .rev()
        .filter(|(_, c)| !c.is_alphanumeric());
    let mut beginnings = ends.map(|(at, _)| &name[..at]).take(MOST_LOOKUPS);
    !quoted && (name.contains('\\') || beginnings.any(|name| !name.is_empty() && there(name)))
}

/// Escapes text for programs that read a file at every `@`, and look for its name in every folder
/// (Gemini CLI). The backslash is Gemini CLI's documented escape.
pub(super) fn escaped(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    let mut chars = words.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let followed = chars.peek().is_some_and(|next| !next.is_whitespace());
        if c == '@' && followed && before != Some('\\') {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_file_does_not_begin_with_its_sign() {
        let there = |name: &str| ["/etc/passwd", "src", "src/a b.rs", "Makefile"].contains(&name);
        let check = |words: &str, expected: &str| {
            assert_eq!(
                joined(words, &there),
                expected.replace('|', "\u{2060}"),
                "{words}"
            );
        };
        check("see @/etc/passwd", "see |@/etc/passwd");
        check(
            "@/etc/passwd, and (@Makefile).",
            "|@/etc/passwd, and (|@Makefile).",
        );
        check("@\"src/a b.rs\" x", "|@\"src/a b.rs\" x");
        check("@src\n@~/x", "|@src\n|@~/x");
        check("@/etc/passwd#L1-3", "|@/etc/passwd#L1-3");
        check("見て。@/etc/passwd", "見て。|@/etc/passwd");
        check("@server:file://x", "|@server:file://x");
        check("@src/a\\ b.rs", "|@src/a\\ b.rs");
        // Names of nothing that exists stay unchanged.
        check("@Override @ada @", "@Override @ada @");
        check("mail ana@Makefile", "mail ana@Makefile");
    }

    #[test]
    fn a_backslash_stands_before_every_sign() {
        let check = |words: &str, expected: &str| assert_eq!(escaped(words), expected);
        check("see @a.txt (@b)", "see \\@a.txt (\\@b)");
        check("a@b.c", "a\\@b.c");
        check("\\@a @ b @", "\\@a @ b @");
    }

    #[test]
    fn other_words_are_handed_over_byte_for_byte() {
        let words = "a\r\n\tb \u{2060} é 日本";
        assert_eq!(unread(words, Some(Path::new("/"))), words);
        assert_eq!(escaped(words), words);
    }
}
