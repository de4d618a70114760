//! Determines what is being written at the cursor, and so what can complete it.

use std::ops::Range;

use super::super::slash::{self, Argument};

/// Maximum length of a word that is completed.
const LONGEST: usize = 256;

/// A word that can be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Range to replace.
    pub range: Range<usize>,
    /// Text up to the cursor.
    pub written: String,
    /// Kind of candidates.
    pub kind: Kind,
}

/// Kind of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Command, including the slash.
    Command,
    /// Member in `[NEXT: …]`, `[FROM: …]` or `[DROP: …]`.
    Marker,
    /// Member or file after `@`.
    At,
    /// Member alone.
    Member,
    /// Session.
    Session,
    /// Agent.
    Agent,
    /// Model.
    Model,
    /// Export format.
    Format,
    /// File.
    File,
    /// Subcommand of `/team`.
    TeamVerb,
    /// Team file.
    Team,
    /// Tool policy.
    Approve,
}

/// Returns the word before the cursor if it can be completed. Examines only the text near the
/// cursor, however long the text is.
pub fn place(text: &str, cursor: usize) -> Option<Place> {
    let near = text.floor_char_boundary(cursor.saturating_sub(2 * LONGEST));
    let line = text[near..cursor]
        .rfind('\n')
        .map_or(near, |feed| near + feed + 1);
    let written = &text[line..cursor];
    if line == 0 && written.starts_with('/') {
        return command(text, cursor);
    }
    marker(text, line, cursor).or_else(|| at_sign(text, line, cursor))
}

fn word(text: &str, start: usize, cursor: usize, kind: Kind) -> Option<Place> {
    let rest = &text[cursor..];
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    made(text, start, cursor, cursor + end, kind)
}

fn made(text: &str, start: usize, cursor: usize, end: usize, kind: Kind) -> Option<Place> {
    (cursor - start <= LONGEST).then(|| Place {
        range: start..end,
        written: text[start..cursor].to_owned(),
        kind,
    })
}

fn command(text: &str, cursor: usize) -> Option<Place> {
    let Some(blank) = text[..cursor].find(char::is_whitespace) else {
        let is_name = text[1..cursor].bytes().all(|b| b.is_ascii_alphabetic());
        return is_name.then(|| word(text, 0, cursor, Kind::Command))?;
    };
    let command = slash::find(&text[..blank])?;
    let given = &text[blank..cursor];
    let start = cursor - given.trim_start().len();
    let last = start + text[start..cursor].rfind(' ').map_or(0, |blank| blank + 1);
    let line_end = super::super::input::text::line_end(text, cursor);
    match command.argument {
        Argument::Free => None,
        // A title may contain blanks.
        Argument::Session => made(text, start, cursor, line_end, Kind::Session),
        Argument::Agent => made(text, start, cursor, line_end, Kind::Agent),
        Argument::Model => made(text, start, cursor, line_end, Kind::Model),
        Argument::Member => made(text, start, cursor, line_end, Kind::Member),
        Argument::Export if last == start => word(text, start, cursor, Kind::Format),
        Argument::Export => word(text, last, cursor, Kind::File),
        Argument::Team if last == start => word(text, start, cursor, Kind::TeamVerb),
        Argument::Team if text[start..last].trim_end() == "deploy" => {
            word(text, last, cursor, Kind::Team)
        }
        Argument::Team => None,
        Argument::Approve => word(text, start, cursor, Kind::Approve),
    }
}

/// The name being written in an unclosed marker.
fn marker(text: &str, line: usize, cursor: usize) -> Option<Place> {
    let open = line + text[line..cursor].rfind('[')?;
    let inside = &text[open + 1..cursor];
    let (keyword, names) = inside.split_once(':')?;
    let is_marker = ["NEXT", "FROM", "DROP"]
        .iter()
        .any(|marker| keyword.trim().eq_ignore_ascii_case(marker));
    if !is_marker || inside.contains(']') {
        return None;
    }
    let last = names.rsplit(',').next().unwrap_or(names).trim_start();
    if last.contains('!') {
        return None;
    }
    made(text, cursor - last.len(), cursor, cursor, Kind::Marker)
}

/// The name being written after an `@` at the start of a word.
fn at_sign(text: &str, line: usize, cursor: usize) -> Option<Place> {
    let start = line
        + text[line..cursor]
            .rfind(|c: char| c.is_whitespace() || c == '(')
            .map_or(0, |blank| {
                blank
                    + text[line + blank..]
                        .chars()
                        .next()
                        .map_or(0, char::len_utf8)
            });
    let at = text[start..cursor].strip_prefix('@')?;
    made(text, cursor - at.len(), cursor, cursor, Kind::At)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` marks the cursor.
    fn at(marked: &str) -> Option<(Kind, String, String)> {
        let cursor = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let place = place(&text, cursor)?;
        Some((place.kind, place.written, text[place.range].to_owned()))
    }

    fn check(marked: &str, kind: Kind, written: &str) {
        let (found, word, _) = at(marked).unwrap_or_else(|| panic!("nothing at {marked}"));
        assert_eq!((found, word.as_str()), (kind, written), "{marked}");
    }

    #[test]
    fn what_is_written_is_told_from_where_it_stands() {
        check("/|", Kind::Command, "/");
        check("/he|", Kind::Command, "/he");
        check("/resume |", Kind::Session, "");
        check("/resume my ta|", Kind::Session, "my ta");
        check("/compare 5f|", Kind::Session, "5f");
        check("/model  son|", Kind::Model, "son");
        check("/as An|", Kind::Member, "An");
        check("/export m|", Kind::Format, "m");
        check("/export md ./do|", Kind::File, "./do");
        check("/team |", Kind::TeamVerb, "");
        check("/team deploy re|", Kind::Team, "re");
        check("hi [NEXT: |", Kind::Marker, "");
        check("hi [next:al|", Kind::Marker, "al");
        check("[NEXT: ana, Bob the|", Kind::Marker, "Bob the");
        check("[DROP: a|]", Kind::Marker, "a");
        check("see @src/ma|", Kind::At, "src/ma");
        check("@|", Kind::At, "");
        check("a\n(@漢|", Kind::At, "漢");
        check("a\n\u{3000}@漢|", Kind::At, "漢");
    }

    #[test]
    fn elsewhere_nothing_is_completed() {
        for marked in [
            "|",
            "word|",
            "mail a@b|",
            "/etc/pa|",
            "/tmp is|",
            "/team list |",
            "/rename x|",
            "[NEXT: a] b|",
            "[NEXT: a!P|",
            "[OTHER: a|",
            "[NEXT|",
            "a\n/he|",
            "[NEXT: a\nb|",
        ] {
            assert_eq!(at(marked), None, "{marked}");
        }
        let long = format!("@{}|", "x".repeat(LONGEST + 1));
        assert_eq!(at(&long), None);
    }

    #[test]
    fn the_rest_of_the_word_is_replaced_too() {
        assert_eq!(at("/h|elp me").unwrap().2, "/help");
        assert_eq!(at("/resume 5|f3a").unwrap().2, "5f3a");
    }
}
