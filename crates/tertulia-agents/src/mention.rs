//! Prompts for programs that read a file where a prompt names it as `@path`, and send it to their
//! provider: file mentions are escaped so that they stay text. The log keeps the original text.

use std::path::Path;

use crate::program_name;

/// Invisible, and not a space: a word that begins with it does not begin with `@`.
const JOINER: char = '\u{2060}';
/// Maximum length of a word that is looked up as a path; no system knows longer ones.
const LONGEST: usize = 4096;
/// Signs that names of files often contain.
const IN_NAMES: &str = "._-/\\@+~#%=";
/// Maximum number of files below a folder whose names are compared with a mention.
const MOST_NAMES: usize = 20_000;
/// Maximum number of prefixes of a word that are looked up as paths.
const MOST_LOOKUPS: usize = 32;

/// How a program finds mentions, which decides what keeps them text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mentions {
    /// Where a word begins with `@`.
    Words,
    /// At every `@`, unless a backslash precedes it.
    Everywhere,
    /// At every `@` before a path, an address or a few fixed words.
    Paths,
}

/// Programs known to read mentioned files.
const TABLE: &[(&str, Mentions)] = &[
    ("claude", Mentions::Words),
    ("claude-code", Mentions::Words),
    ("gemini", Mentions::Everywhere),
    ("gemini-cli", Mentions::Everywhere),
    ("qwen", Mentions::Everywhere),
    ("qwen-code", Mentions::Everywhere),
    ("cline", Mentions::Paths),
];
/// Words that Cline replaces by something of its surroundings.
const FIXED: &[&str] = &["problems", "terminal", "git-changes"];

/// Returns how the program of a command line finds mentions, if it is known to.
pub(super) fn mentions(command: &Path, args: &[String]) -> Option<Mentions> {
    let mut names = program_name::names(command, args);
    names.find_map(|name| {
        let (_, mentions) = TABLE.iter().find(|(known, _)| *known == name)?;
        Some(*mentions)
    })
}

/// Escapes text for a program that finds mentions like this; other programs get it as typed.
pub(super) fn as_text(mentions: Option<Mentions>, words: String, folder: Option<&Path>) -> String {
    match mentions {
        Some(Mentions::Words) => unread(&words, folder),
        Some(Mentions::Everywhere) => escaped(&words, folder),
        Some(Mentions::Paths) => split(&words),
        None => words,
    }
}

/// Escapes text for programs that read a file at every `@` before a path (Cline): the `@` is
/// separated from what follows it.
pub(super) fn split(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for (at, c) in words.char_indices() {
        out.push(c);
        if c == '@' && is_path(&words[at + 1..]) {
            out.push(JOINER);
        }
    }
    out
}

fn is_path(text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let rest = text.trim_start_matches(word);
    let begin = &text[..text.len() - rest.len()];
    let is_commit = begin.len() >= 7 && begin.chars().all(|c| c.is_ascii_hexdigit());
    text.starts_with(['/', '"', '\'', '~', '.', '\\'])
        || rest.starts_with("://")
        || is_commit
        || FIXED.iter().any(|fixed| text.starts_with(fixed))
}

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
/// (Gemini CLI). The backslash is Gemini CLI's documented escape, but the model gets it, too: so only
/// mentions under which the program could find something have one.
pub(super) fn escaped(words: &str, folder: Option<&Path>) -> String {
    if !words.contains('@') {
        return words.to_owned();
    }
    let names = folder.and_then(names_below);
    let there = |name: &str| folder.is_none_or(|folder| folder.join(name).exists());
    let is_name = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let word = word.to_lowercase();
        let mut names = names.iter().flatten();
        names.any(|name| !word.is_empty() && name.contains(&word))
    };
    let is_found = |text: &str| {
        let word = text.split(char::is_whitespace).next().unwrap_or_default();
        // A name ends at a punctuation mark, too, and may be a pattern.
        let mut parts = word.split(|c: char| !c.is_alphanumeric() && !IN_NAMES.contains(c));
        let begin = parts.next().unwrap_or_default();
        word.contains(['*', '?', '[', '{']) || is_name(word) || is_name(begin)
    };
    let is_open = folder.is_some() && names.is_none();
    let mut out = String::with_capacity(words.len());
    let mut before = None;
    for (at, c) in words.char_indices() {
        let text = &words[at + c.len_utf8()..];
        let follows = text.starts_with(|next: char| !next.is_whitespace());
        if c == '@'
            && before != Some('\\')
            && follows
            && (is_open || names_something(text, &there) || is_found(text))
        {
            out.push('\\');
        }
        out.push(c);
        before = Some(c);
    }
    out
}

/// Returns the paths below a folder, in lower case; `None` if there are too many to look at, or they
/// cannot be read.
fn names_below(folder: &Path) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).ok()? {
            let entry = entry.ok()?;
            let path = entry.path();
            let inside = path.strip_prefix(folder).unwrap_or(&path);
            names.push(inside.to_string_lossy().to_lowercase());
            if names.len() > MOST_NAMES {
                return None;
            }
            if entry.file_type().ok()?.is_dir() {
                folders.push(path);
            }
        }
    }
    Some(names)
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
    fn a_backslash_stands_where_a_file_could_be_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/Garden.txt"), "").unwrap();
        let check = |words: &str, expected: &str| {
            assert_eq!(escaped(words, Some(folder.path())), expected);
        };
        check(
            "see @src/Garden.txt (@src)",
            "see \\@src/Garden.txt (\\@src)",
        );
        check("@/etc/passwd @~/x", "\\@/etc/passwd \\@~/x");
        // It looks for the name in every folder.
        check("@garden, a@txt", "\\@garden, a\\@txt");
        check("@garden.txt,x @*", "\\@garden.txt,x \\@*");
        check("\\@src @ b @", "\\@src @ b @");
        check(
            "add @Override for ana@example.org",
            "add @Override for ana@example.org",
        );
        // If the folder cannot be looked through, a file could be anywhere.
        assert_eq!(escaped("@Override", None), "\\@Override");
    }

    #[test]
    fn a_path_does_not_follow_its_sign() {
        let check = |words: &str, expected: &str| {
            assert_eq!(split(words), expected.replace('|', "\u{2060}"), "{words}");
        };
        check("see @/etc/passwd", "see @|/etc/passwd");
        check("a@/b @\"/c d\" x", "a@|/b @|\"/c d\" x");
        check(
            "@https://x @problems @0123abc",
            "@|https://x @|problems @|0123abc",
        );
        check("@Override ana@example.org @", "@Override ana@example.org @");
    }

    #[test]
    fn known_programs_get_mentions_as_text() {
        let check = |line: &str, expected: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let known = mentions(Path::new(&words[0]), &words[1..]);
            let told = as_text(known, "@/etc/passwd".to_owned(), Some(Path::new("/")));
            assert_eq!(told, expected.replace('|', "\u{2060}"), "{line}");
        };
        check("claude -p", "|@/etc/passwd");
        check("/opt/gemini", "\\@/etc/passwd");
        check("qwen -p", "\\@/etc/passwd");
        check("npx @qwen-code/qwen-code@1.0 -p", "\\@/etc/passwd");
        check("cline", "@|/etc/passwd");
        // Nothing is known of these.
        check("cat", "@/etc/passwd");
        check("sh -c cline", "@/etc/passwd");
    }

    #[test]
    fn other_words_are_handed_over_byte_for_byte() {
        let words = "a\r\n\tb \u{2060} é 日本";
        assert_eq!(unread(words, Some(Path::new("/"))), words);
        assert_eq!(escaped(words, Some(Path::new("/"))), words);
        assert_eq!(split(words), words);
    }
}
