//! Replaces one text by another in the text of a file.

use std::borrow::Cow;

/// Maximum number of line numbers named when a text is found too often.
const MOST_NAMED: usize = 10;

/// A text in which something was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// The whole new text.
    pub(super) text: String,
    /// Numbers of the lines in which the replaced texts began.
    pub(super) lines: Vec<usize>,
}

/// Replaces `old` by `new`, once or everywhere. Line ends follow the file's own, because an agent
/// that writes `\n` means the end of a line.
pub(super) fn edited(text: &str, old: &str, new: &str, all: bool) -> Result<Edited, String> {
    if old.is_empty() {
        return Err(
            "`old_text` is empty: give the text to be replaced, or write a file with file_write"
                .to_owned(),
        );
    }
    let (old, new) = match ends_in_cr(text) {
        true => (with_cr(old), with_cr(new)),
        false => (Cow::Borrowed(old), Cow::Borrowed(new)),
    };
    if old == new {
        return Err("`old_text` and `new_text` are the same: nothing would change".to_owned());
    }
    let lines = lines_of(text, &old);
    match lines.len() {
        0 => Err(not_found(text, &old)),
        1 => Ok(Edited {
            text: text.replacen(&*old, &new, 1),
            lines,
        }),
        _ if all => Ok(Edited {
            text: text.replace(&*old, &new),
            lines,
        }),
        count => Err(format!(
            "`old_text` is found {count} times (lines {}): give more of the text around the one \
             that is meant, or set `replace_all`",
            named(&lines)
        )),
    }
}

/// Returns whether every line ends in CR LF.
fn ends_in_cr(text: &str) -> bool {
    let ends = text.matches('\n').count();
    ends > 0 && text.matches("\r\n").count() == ends
}

fn with_cr(text: &str) -> Cow<'_, str> {
    Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
}

/// Returns the lines in which `wanted` begins, in one pass.
fn lines_of(text: &str, wanted: &str) -> Vec<usize> {
    let (mut line, mut counted) = (1, 0);
    text.match_indices(wanted)
        .map(|(at, _)| {
            line += text[counted..at].matches('\n').count();
            counted = at;
            line
        })
        .collect()
}

fn not_found(text: &str, old: &str) -> String {
    let mut told = "`old_text` was not found: it must be exactly the text of the file, spaces and \
                    line ends included"
        .to_owned();
    // The most common mistake is wrong indentation, which can be located.
    let first = old.trim().lines().next().unwrap_or_default().trim();
    let similar: Vec<usize> = match first.is_empty() {
        true => Vec::new(),
        false => lines_of(text, first),
    };
    match similar.is_empty() {
        true => told.push_str("; read the file again"),
        false => told.push_str(&format!(
            "; its first line, without the spaces around it, is in lines {}: read them again",
            named(&similar)
        )),
    }
    told
}

fn named(lines: &[usize]) -> String {
    let mut names: Vec<String> = lines
        .iter()
        .take(MOST_NAMED)
        .map(usize::to_string)
        .collect();
    if lines.len() > MOST_NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_or_all() {
        let check = |text: &str, old: &str, new: &str, all, expected: &str, lines: &[usize]| {
            let done = edited(text, old, new, all).unwrap();
            assert_eq!(
                (done.text.as_str(), done.lines.as_slice()),
                (expected, lines)
            );
        };
        check("a\nb\nc", "b", "x\ny", false, "a\nx\ny\nc", &[2]);
        check("a\nb\na", "a", "ñ€", true, "ñ€\nb\nñ€", &[1, 3]);
        check("caña\n", "ñ", "", false, "caa\n", &[1]);
        check("no end", "end", "newline", false, "no newline", &[1]);
    }

    #[test]
    fn the_files_line_ends_stay() {
        let text = "a\r\nb\r\nc\r\n";
        let done = |old, new| edited(text, old, new, false).unwrap().text;
        assert_eq!(done("a\nb\n", "x\n"), "x\r\nc\r\n");
        assert_eq!(done("a\r\nb\r\n", "x\r\ny\r\n"), "x\r\ny\r\nc\r\n");
        assert_eq!(done("b", "1\n2"), "a\r\n1\r\n2\r\nc\r\n");
        // Mixed line ends are left as they are.
        let mixed = edited("a\r\nb\n", "b\n", "c\n", false).unwrap();
        assert_eq!(mixed.text, "a\r\nc\n");
    }

    #[test]
    fn what_cannot_be_replaced_says_why() {
        let check = |text: &str, old: &str, new: &str, words: &[&str]| {
            let error = edited(text, old, new, false).unwrap_err();
            for word in words {
                assert!(error.contains(word), "{error}");
            }
        };
        check("a", "", "b", &["`old_text` is empty"]);
        check("a", "a", "a", &["the same"]);
        check(
            "a\na\na",
            "a",
            "b",
            &["3 times", "lines 1, 2, 3", "`replace_all`"],
        );
        check("a", "zz", "b", &["not found", "read the file again"]);
        check(
            "if x {\n\tgo()\n}\n",
            "    go()\n",
            "b",
            &["not found", "lines 2"],
        );
    }
}
