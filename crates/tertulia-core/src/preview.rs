//! Previews of tool calls for approval. No text can hide anything: characters that control a
//! terminal are escaped.

use std::time::Duration;

use crate::text_diff::{Change, TextDiff};

/// Maximum number of lines of a diff.
const MOST_LINES: usize = 200;
/// Maximum size of a diff, in bytes.
const MOST_BYTES: usize = 16 * 1024;
/// Maximum size of texts whose changed lines are counted, in bytes.
const MOST_COUNTED: usize = 200_000;
/// Number of lines shown of a file to delete.
const FIRST_LINES: usize = 10;
/// Time limit for the search for the smallest diff; after it, a larger one is used.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// Escapes all characters that a terminal would interpret or not show: control characters,
/// directional formatting, zero-width characters and letters that look like spaces. Keeps line feeds and tabs.
pub fn visible(text: &str) -> String {
    written_out(text, |char| matches!(char, '\n' | '\t'))
}

/// Like [`visible`], but also escapes line feeds and tabs.
pub fn one_line(text: &str) -> String {
    written_out(text, |_| false)
}

fn written_out(text: &str, plain: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if !plain(char) && (char.is_control() || is_unseen(char)) {
            out.extend(char.escape_default());
        } else {
            out.push(char);
        }
    }
    out
}

/// Returns the longest prefix of at most `most` bytes that ends at a character boundary.
fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn is_unseen(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the change of the file `name` as a unified diff. `old` is `None` if the file does not
/// exist yet.
pub fn diff(name: &str, old: Option<&str>, new: &str) -> String {
    let before = match old {
        Some(_) => name,
        None => "/dev/null",
    };
    let diff = TextDiff::of_lines(old.unwrap_or_default(), new, Some(DIFF_TIME));
    let hunks = diff.unified(Some("\\ No newline at end of file"));
    match (hunks.is_empty(), old) {
        (true, Some(_)) => format!("{name} stays as it is"),
        (true, None) => format!("{name} becomes an empty file"),
        (false, _) => {
            let text = format!("--- {before}\n+++ {name}\n{hunks}");
            shortened(&with_plain_line_ends(&text))
        }
    }
}

/// Counts the lines that a change adds and removes. Of large texts all lines count as changed,
/// because comparing them takes too long.
pub fn changed_lines(old: &str, new: &str) -> (usize, usize) {
    if old.len() + new.len() > MOST_COUNTED {
        return (new.lines().count(), old.lines().count());
    }
    let (old, new) = (old.lines().collect(), new.lines().collect());
    let diff = TextDiff::new(old, new, Some(DIFF_TIME));
    let count = |wanted| {
        diff.changes()
            .filter(|(change, _)| *change == wanted)
            .count()
    };
    (count(Change::Insert), count(Change::Delete))
}

/// Describes a file to delete: name, size and first lines.
pub fn removal(name: &str, size: u64, start: Option<&str>) -> String {
    let first = format!("delete {name} ({size} bytes)");
    match start {
        None => format!("{first}, which is no text"),
        Some("") => first,
        Some(text) => {
            let lines: Vec<String> = text
                .lines()
                .take(FIRST_LINES)
                .map(|line| format!("| {}", visible(beginning(line, 200))))
                .collect();
            format!("{first}, which begins:\n{}", lines.join("\n"))
        }
    }
}

/// Removes CR from a diff whose lines all end in CR LF, where escaping every CR would be noise.
fn with_plain_line_ends(diff: &str) -> String {
    // After the two lines of the header: a line `++x` of the file stands as `+++x` in the diff.
    let lines = diff.split_inclusive('\n').skip(2);
    let mut body = lines.filter(|line| line.starts_with([' ', '+', '-']));
    match body.all(|line| line.ends_with("\r\n")) {
        true => diff.replace("\r\n", "\n"),
        false => diff.to_owned(),
    }
}

/// Returns the beginning of a diff and the number of omitted lines.
fn shortened(diff: &str) -> String {
    let (mut out, mut shown) = (String::new(), 0);
    for line in diff.split_inclusive('\n').take(MOST_LINES) {
        let line = visible(line);
        if out.len() + line.len() > MOST_BYTES {
            out.push_str(beginning(&line, MOST_BYTES - out.len()));
            out.push_str("[…]\n");
            break;
        }
        out.push_str(&line);
        shown += 1;
    }
    let all = diff.split_inclusive('\n').count();
    if shown < all {
        out.push_str(&format!("[{} more lines of the diff]", all - shown));
    }
    out.trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_hide() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected);
        check("ls\n\techo ñ😀", "ls\n\techo ñ😀");
        check("rm x\u{1b}[2K\rls", "rm x\\u{1b}[2K\\rls");
        check(
            "a\u{202e}b\u{200b}c\u{9b}2J",
            "a\\u{202e}b\\u{200b}c\\u{9b}2J",
        );
        check("a\u{8}\u{7f}\0", "a\\u{8}\\u{7f}\\u{0}");
        assert_eq!(one_line("a\nb"), "a\\nb");
        // Letters and symbols that look like a space, or like nothing.
        for blank in [
            '\u{34f}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{17b5}',
            '\u{180e}',
            '\u{2800}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{1d159}',
            '\u{1d173}',
            '\u{e0100}',
        ] {
            let shown = format!("rm a{}b", blank.escape_default());
            check(&format!("rm a{blank}b"), &shown);
        }
    }

    #[test]
    fn a_change_is_a_diff() {
        let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 10\n", "line ten\n");
        assert_eq!(
            diff("a.txt", Some(&old), &new),
            "--- a.txt\n+++ a.txt\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n \
             line 11\n line 12\n line 13"
        );
        assert_eq!(
            diff("b", None, "one\ntwo"),
            "--- /dev/null\n+++ b\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file"
        );
        assert_eq!(diff("b", Some("x"), "x"), "b stays as it is");
        // The line `++` ends in LF alone, so the line ends are shown.
        assert_eq!(
            diff("b", Some("a\r\n"), "a\r\n++\n"),
            "--- b\n+++ b\n@@ -1 +1,2 @@\n a\\r\n+++"
        );
        assert_eq!(diff("b", None, ""), "b becomes an empty file");
    }

    #[test]
    fn changed_lines_are_counted() {
        assert_eq!(changed_lines("a\nb\n", "a\nc\nd\n"), (2, 1));
        assert_eq!(changed_lines("", "a\nb"), (2, 0));
        assert_eq!(changed_lines("same", "same"), (0, 0));
        let large = "x\n".repeat(MOST_COUNTED);
        assert_eq!(changed_lines(&large, "y").1, MOST_COUNTED);
    }

    #[test]
    fn line_ends_are_noise_unless_they_change() {
        let shown = diff("a", Some("1\r\n2\r\n"), "1\r\n3\r\n");
        assert!(!shown.contains("\\r"), "{shown}");
        let shown = diff("a", Some("1\r\n2\r\n"), "1\n2\n");
        assert!(shown.contains("-1\\r\n"), "{shown}");
        let shown = diff("a", Some("x\n"), "x\r\u{1b}[1Ay\n");
        assert!(shown.contains("+x\\r\\u{1b}[1Ay"), "{shown}");
    }

    #[test]
    fn a_long_diff_is_cut_with_a_mark() {
        let new: String = (0..1000).map(|n| format!("{n}\n")).collect();
        let shown = diff("a", None, &new);
        assert_eq!(shown.lines().count(), MOST_LINES + 1);
        assert!(shown.ends_with("[803 more lines of the diff]"), "{shown}");
        let shown = diff("a", None, &"x".repeat(1 << 20));
        assert!(shown.len() < MOST_BYTES + 64 && shown.contains("+xxx"));
        assert!(shown.ends_with("more lines of the diff]"));
    }

    #[test]
    fn a_diff_is_not_waited_for_long() {
        let text = |seed: u64| -> String {
            (0..200_000_u64)
                .map(|n| format!("{}\n", (n * seed) % 65_537))
                .collect()
        };
        let (old, new) = (text(7919), text(104_729));
        let began = std::time::Instant::now();
        assert!(diff("a", Some(&old), &new).len() < MOST_BYTES + 64);
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{:?}",
            began.elapsed()
        );
    }

    #[test]
    fn a_removal_shows_what_goes() {
        let text: String = (1..=20).map(|n| format!("{n}\n")).collect();
        let shown = removal("a", 51, Some(&text));
        assert!(shown.starts_with("delete a (51 bytes), which begins:\n| 1\n| 2\n"));
        assert_eq!(shown.lines().count(), 1 + FIRST_LINES);
        assert_eq!(
            removal("b", 3, None),
            "delete b (3 bytes), which is no text"
        );
    }
}
