//! Markers that people and agents write into messages: `[NEXT: a, b!P1]`, `[FROM: name]`,
//! `[TEAM_TASK: text]`, `[DROP: ALL]`. They are parsed and hidden when a message is read; the
//! stored text never changes.

#[cfg(test)]
mod tests;
mod unmarked;

use std::ops::Range;

pub use crate::entry::Intent;
pub use unmarked::Unmarked;

use super::code::{Code, code};

/// Maximum number of addressees read from a text, and of names to drop: far more than the queue
/// accepts.
const MOST_NAMES: usize = 200;
/// Maximum length of a name in bytes: far longer than any member's.
const LONGEST_NAME: usize = 200;

/// Maximum length of a team task, in bytes.
pub const TASK_LIMIT: usize = 5 * 1024;

/// Characters that agents often put around names.
const DECORATION: [char; 8] = ['`', '*', '@', '＠', '"', '\'', '“', '”'];

/// Markers of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markers {
    /// Addressees, in the order written.
    pub next: Vec<Addressee>,
    /// Claimed speaker: the first such marker counts.
    pub from: Option<String>,
    /// New team task, in full: the last such marker counts. [`cut_task`] limits its length.
    pub task: Option<String>,
    /// Addressees to remove from the queue.
    pub drop: Option<Drop>,
}

/// An addressee as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressee {
    /// The name, which need not be a member's.
    pub name: String,
    /// Priority.
    pub intent: Intent,
}

/// Addressees to remove from the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drop {
    /// All of them.
    All,
    /// These names, as written.
    Names(Vec<String>),
}

/// A team task within the length limit.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TeamTask {
    /// The task, at most [`TASK_LIMIT`] bytes.
    pub text: String,
    /// Number of bytes cut off at the end.
    pub left_out: usize,
}

/// Parses the markers of a text.
pub fn parse(text: &str) -> Markers {
    let mut read = Markers::default();
    for marker in find(text) {
        match marker.keyword {
            Keyword::Next => {
                let room = MOST_NAMES - read.next.len();
                let named = names(marker.content).take(room);
                read.next.extend(named.map(addressee));
            }
            Keyword::From => {
                read.from
                    .get_or_insert_with(|| marker.content.trim().to_owned());
            }
            Keyword::Task => read.task = Some(marker.content.trim().to_owned()),
            Keyword::Drop => {
                let names = names(marker.content).map(|name| addressee(name).name);
                read.drop = Some(dropped(read.drop.take(), names));
            }
        }
    }
    read
}

/// Returns a text as shown to people and agents: without markers, without lines that contained only
/// markers, and without one of the two spaces around a marker. All other bytes stay.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut markers = find(text).into_iter().map(|marker| marker.range).peekable();
    let mut at = 0;
    while at < text.len() {
        // A marker may span lines, which joins the text before and after it into one line. The end
        // of the line is searched again only in that case, so that a long line with many markers
        // stays linear.
        let mut kept = Vec::new();
        let mut end = line_end(text, at);
        let mut from = at;
        while let Some(marker) = markers.next_if(|marker| marker.start < end) {
            kept.push(&text[from..marker.start]);
            from = marker.end;
            let before = text[at..marker.start].chars().next_back();
            if before.is_none_or(char::is_whitespace) && text[from..].starts_with(' ') {
                from += 1;
            }
            if from > end {
                end = line_end(text, from);
            }
        }
        let had_markers = !kept.is_empty();
        kept.push(&text[from..end]);
        if !had_markers || kept.iter().any(|part| !part.trim().is_empty()) {
            shown.extend(kept);
        }
        at = end;
    }
    shown
}

/// Cuts a team task to [`TASK_LIMIT`] at a character boundary.
pub fn cut_task(task: &str) -> TeamTask {
    let end = task.floor_char_boundary(TASK_LIMIT);
    TeamTask {
        text: task[..end].to_owned(),
        left_out: task.len() - end,
    }
}

/// Removes backticks, asterisks, quotes and `@` around a name.
pub fn undecorated(name: &str) -> &str {
    name.trim_matches(|sign: char| sign.is_whitespace() || DECORATION.contains(&sign))
}

/// Splits a name from a `!P1` suffix. A lone `!P1` is a name.
pub fn split_intent(name: &str) -> (&str, Option<Intent>) {
    let Some((rest, suffix)) = name.trim().rsplit_once(['!', '！']) else {
        return (name.trim(), None);
    };
    let intent = match suffix {
        "P1" | "p1" => Intent::P1,
        "P2" | "p2" => Intent::P2,
        "P3" | "p3" => Intent::P3,
        _ => return (name.trim(), None),
    };
    match rest.trim_end() {
        "" => (name.trim(), None),
        rest => (rest, Some(intent)),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keyword {
    Next,
    From,
    Task,
    Drop,
}

/// Opening of a redaction placeholder.
const REDACTED: &str = "[redacted:";

/// How far around a marker parentheses and quotation marks are looked for, in bytes.
const NEARBY: usize = 500;

/// Signs that open and close a part of a sentence.
const PAIRS: [(char, char); 5] = [('(', ')'), ('（', '）'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// Openings of markers.
const OPENINGS: [(&str, Keyword); 4] = [
    ("[NEXT:", Keyword::Next),
    ("[FROM:", Keyword::From),
    ("[TEAM_TASK:", Keyword::Task),
    ("[DROP:", Keyword::Drop),
];

#[derive(Clone, Debug)]
struct Marker<'a> {
    keyword: Keyword,
    content: &'a str,
    range: Range<usize>,
}

/// Returns all markers of a text, in order. A marker ends at the first `]`. Ignored are empty
/// markers, markers in parentheses or quotation marks, markers in which another one opens, and lists of names that run into another paragraph:
/// those were never closed and must not swallow the following text.
fn find(text: &str) -> Vec<Marker<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(Keyword, usize, usize)> = None;
    let mut at = 0;
    let code = code(text);
    let mut code = code.iter().peekable();
    while at < text.len() {
        if let Some(Code { range, fenced }) = code.next_if(|code| code.range.start <= at) {
            open = open.filter(|(keyword, ..)| !fenced || *keyword == Keyword::Task);
            at = range.end;
            continue;
        }
        match text.as_bytes()[at] {
            // A redaction placeholder has brackets of its own.
            b'[' if open.is_some() && text[at..].starts_with(REDACTED) => {
                at += text[at..].find(']').unwrap_or(0);
            }
            b'[' => {
                if let Some((opening, keyword)) = opening(&text[at..]) {
                    open = Some((keyword, at, at + opening.len()));
                }
            }
            b']' => {
                if let Some((keyword, start, content)) = open.take() {
                    found.push(Marker {
                        keyword,
                        content: &text[content..at],
                        range: start..at + 1,
                    });
                }
            }
            b'\n' if text[at + 1..line_end(text, at + 1)].trim().is_empty() => {
                open = open.filter(|(keyword, ..)| *keyword == Keyword::Task);
            }
            _ => {}
        }
        at += 1;
    }
    found.retain(|marker| {
        names(marker.content).next().is_some() && !is_mentioned(text, &marker.range)
    });
    found
}

/// Returns true for a marker in parentheses or quotation marks on its line: the text is about it.
fn is_mentioned(text: &str, marker: &Range<usize>) -> bool {
    // No further: a long line may have many markers.
    let from = text.ceil_char_boundary(marker.start.saturating_sub(NEARBY));
    let upto = text.floor_char_boundary(marker.end.saturating_add(NEARBY));
    let before = text[from..marker.start].rsplit('\n').next();
    let before = before.unwrap_or_default();
    let after = text[marker.end..upto].split('\n').next();
    let after = after.unwrap_or_default();
    let is_within = |(open, close): (char, char)| {
        let opened = before.rfind(open);
        opened.is_some() && opened > before.rfind(close) && after.contains(close)
    };
    let is_quoted = |sign: char| {
        let is_open = before.matches(sign).count() % 2 == 1;
        is_open && after.contains(sign)
    };
    let is_around = |sign: char| before.ends_with(sign) && after.starts_with(sign);
    PAIRS.into_iter().any(is_within) || is_quoted('"') || is_around('\'')
}

fn opening(text: &str) -> Option<(&'static str, Keyword)> {
    OPENINGS.into_iter().find(|(opening, _)| {
        text.get(..opening.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(opening))
    })
}

/// Returns the position after the end of the line that contains `at`.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

fn addressee(name: &str) -> Addressee {
    let (name, intent) = match split_intent(name) {
        // Emphasis around name and priority: `**ben!P1**`.
        (_, None) if split_intent(undecorated(name)).1.is_some() => split_intent(undecorated(name)),
        split => split,
    };
    Addressee {
        name: name[..name.floor_char_boundary(LONGEST_NAME)].to_owned(),
        intent: intent.unwrap_or_default(),
    }
}

fn dropped(before: Option<Drop>, names: impl Iterator<Item = String>) -> Drop {
    let mut all = match before {
        Some(Drop::All) => return Drop::All,
        Some(Drop::Names(names)) => names,
        None => Vec::new(),
    };
    for name in names {
        if undecorated(&name).eq_ignore_ascii_case("all") {
            return Drop::All;
        }
        if all.len() < MOST_NAMES {
            all.push(name);
        }
    }
    Drop::Names(all)
}
