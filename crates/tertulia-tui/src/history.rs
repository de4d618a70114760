//! Input history and incremental search.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of entries.
const MOST: usize = 1000;
/// Maximum size in bytes; the newest entry is always kept.
const MOST_BYTES: usize = 8 << 20;
/// Only the beginning of a long entry is searched, so that each key costs little.
const SEARCHED: usize = 4096;

/// Earlier prompts, newest last.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: VecDeque<Arc<str>>,
    bytes: usize,
}

impl History {
    /// Creates a history from entries, newest last.
    pub fn new(entries: impl IntoIterator<Item = String>) -> History {
        let mut history = History::default();
        for entry in entries {
            history.push(&entry);
        }
        history
    }

    /// Appends a prompt, unless it equals the last one.
    pub fn push(&mut self, words: &str) {
        if words.trim().is_empty() || self.entries.back().is_some_and(|last| **last == *words) {
            return;
        }
        self.entries.push_back(words.into());
        self.bytes += words.len();
        while self.entries.len() > 1
            && (self.entries.len() > MOST || self.bytes > MOST_BYTES)
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no earlier prompts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an entry; the oldest has index 0.
    pub fn get(&self, place: usize) -> Option<&Arc<str>> {
        self.entries.get(place)
    }

    /// Newest entry before an index that contains the text, and where. Case-sensitive only if the
    /// text contains an uppercase letter.
    fn find(&self, words: &str, before: usize, not: &str) -> Option<Found> {
        let exactly = words.contains(char::is_uppercase);
        let before = before.min(self.entries.len());
        let older = self.entries.range(..before).enumerate().rev();
        older
            .filter(|(_, entry)| ***entry != *not)
            .find_map(|(place, entry)| {
                let at = position(beginning(entry), words, exactly)?;
                Some(Found { place, at })
            })
    }
}

fn beginning(entry: &str) -> &str {
    &entry[..entry.floor_char_boundary(SEARCHED)]
}

/// Range of the search text in a text.
fn position(text: &str, words: &str, exactly: bool) -> Option<Range<usize>> {
    if exactly {
        let start = text.find(words)?;
        return Some(start..start + words.len());
    }
    text.char_indices().find_map(|(start, _)| {
        let mut wanted = words.chars().flat_map(char::to_lowercase);
        let mut letters = text[start..].char_indices();
        let mut end = start;
        while let Some(first) = wanted.next() {
            let (at, letter) = letters.next()?;
            let mut small = letter.to_lowercase();
            if small.next() != Some(first) {
                return None;
            }
            for more in small {
                if wanted.next() != Some(more) {
                    return None;
                }
            }
            end = start + at + letter.len_utf8();
        }
        Some(start..end)
    })
}

/// A hit.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    place: usize,
    at: Range<usize>,
}

/// Incremental search.
#[derive(Clone, Debug, Default)]
pub struct Search {
    words: String,
    found: Option<Found>,
    failed: bool,
}

impl Search {
    /// Search text.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Returns true if no entry, or no older one, matches.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// The matching entry.
    pub fn found<'a>(&self, history: &'a History) -> Option<&'a str> {
        let found = self.found.as_ref()?;
        history.get(found.place).map(|entry| &**entry)
    }

    /// Range of the hit in the entry.
    pub fn at(&self) -> Option<Range<usize>> {
        self.found.as_ref().map(|found| found.at.clone())
    }

    /// Extends the search text; keeps the hit if it still matches.
    pub fn write(&mut self, letters: &str, history: &History) {
        self.words.push_str(letters);
        let from = self.found.as_ref().map_or(history.len(), |at| at.place + 1);
        self.look(history, from, "");
    }

    /// Shortens the search text by a character and starts again.
    pub fn delete(&mut self, history: &History) {
        self.words.pop();
        self.found = None;
        self.failed = false;
        if !self.words.is_empty() {
            self.look(history, history.len(), "");
        }
    }

    /// Goes to an older entry that differs from the current one.
    pub fn older(&mut self, history: &History) {
        let shown = self.found(history).unwrap_or_default().to_owned();
        let from = self.found.as_ref().map_or(history.len(), |at| at.place);
        self.look(history, from, &shown);
    }

    fn look(&mut self, history: &History, before: usize, not: &str) {
        match history.find(&self.words, before, not) {
            Some(found) => {
                self.found = Some(found);
                self.failed = false;
            }
            None => self.failed = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[&str]) -> History {
        History::new(entries.iter().map(|entry| (*entry).to_owned()))
    }

    fn write(search: &mut Search, words: &str, history: &History) {
        for letter in words.chars() {
            search.write(&letter.to_string(), history);
        }
    }

    #[test]
    fn each_letter_narrows_and_again_is_older() {
        let history = history(&["cargo test", "git push", "Cargo build", "cargo test", "ls"]);
        let mut search = Search::default();
        write(&mut search, "car", &history);
        assert_eq!(search.found(&history), Some("cargo test"));
        search.older(&history);
        assert_eq!(search.found(&history), Some("Cargo build"));
        assert_eq!(search.at(), Some(0..3));
        search.older(&history);
        assert_eq!(search.found(&history), Some("cargo test"));
        search.older(&history);
        assert_eq!(search.found(&history), Some("cargo test"));
        assert!(search.failed());
        search.delete(&history);
        assert!(!search.failed());
        write(&mut search, "x", &history);
        assert!(search.failed());
    }

    #[test]
    fn capitals_matter_if_they_are_asked_for() {
        let history = history(&["Größe", "größe 漢字"]);
        let mut search = Search::default();
        write(&mut search, "Grö", &history);
        assert_eq!(search.found(&history), Some("Größe"));
        assert_eq!(position("xİstanbul", "i\u{307}st", false), Some(1..5));
        assert_eq!(position("x", "xy", false), None);
    }

    #[test]
    fn it_stays_small() {
        let mut history = history(&["", "  ", "a", "a"]);
        assert_eq!(history.len(), 1);
        for round in 0..2000 {
            history.push(&format!("{round}"));
        }
        assert_eq!(history.len(), MOST);
        for round in 0..40 {
            history.push(&format!("{round} {}", "x".repeat(500_000)));
        }
        assert!(history.bytes <= MOST_BYTES);
        history.push(&"y".repeat(MOST_BYTES + 1));
        assert_eq!(history.len(), 1, "the newest is kept, however long");
    }
}
