//! Common topics: the words that titles and tags of sessions share.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

/// Maximum number of topics.
const MOST: usize = 20;
/// Number of sessions that a topic has at least.
const COMMON: u64 = 2;

/// English words that say nothing about a topic, and words that people address agents with.
const STOP_WORDS: &[&str] = &[
    "about", "add", "after", "all", "also", "and", "any", "are", "back", "been", "before", "but",
    "can", "could", "did", "does", "don", "for", "from", "get", "give", "had", "has", "have",
    "hello", "help", "here", "hey", "how", "into", "its", "just", "let", "like", "list", "make",
    "more", "need", "new", "not", "now", "one", "only", "our", "out", "over", "please", "replay",
    "say", "see", "should", "show", "some", "tell", "than", "that", "the", "their", "them", "then",
    "there", "they", "this", "try", "two", "use", "using", "want", "was", "well", "were", "what",
    "when", "where", "which", "who", "why", "will", "with", "would", "write", "you", "your",
];

/// A topic, and how many sessions are about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopicUse {
    /// Word of titles, or tag.
    pub name: String,
    /// Number of sessions with it.
    pub sessions: u64,
}

/// Returns the words that titles and tags of several sessions have, most frequent first. A session
/// counts once for each.
pub fn topics<'a>(
    sessions: impl IntoIterator<Item = (Option<&'a str>, &'a [String])>,
) -> Vec<TopicUse> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    for (title, tags) in sessions {
        let words = title.into_iter().flat_map(words);
        let tags = tags.iter().map(|tag| tag.to_lowercase());
        for topic in words.chain(tags).collect::<BTreeSet<String>>() {
            *counts.entry(topic).or_default() += 1;
        }
    }
    let common = counts.into_iter().filter(|(_, count)| *count >= COMMON);
    let mut topics: Vec<TopicUse> = common
        .map(|(name, sessions)| TopicUse { name, sessions })
        .collect();
    topics.sort_by(|a, b| (b.sessions.cmp(&a.sessions)).then_with(|| a.name.cmp(&b.name)));
    topics.truncate(MOST);
    topics
}

/// Returns the words of a title that can be a topic, in lower case. Text without spaces, such as
/// Chinese, is cut into pairs of characters.
fn words(title: &str) -> Vec<String> {
    let mut words = Vec::new();
    let split = title.split(|c: char| !c.is_alphanumeric());
    for word in split.map(str::to_lowercase) {
        let is_known = STOP_WORDS.binary_search(&word.as_str()).is_ok();
        let has_letter = word.chars().any(char::is_alphabetic) && !word.chars().any(is_han);
        if has_letter && !is_known && word.chars().count() >= 3 {
            words.push(word);
        }
    }
    let signs: Vec<char> = title.chars().collect();
    let pairs = signs
        .windows(2)
        .filter(|pair| pair.iter().all(|c| is_han(*c)));
    words.extend(pairs.map(|pair| pair.iter().collect::<String>()));
    words
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_tags_of_several_sessions() {
        let tags = ["Release".to_owned()];
        let found = topics([
            (Some("Fix the parser"), &tags[..]),
            (Some("the Parser drops lines; parser again"), &[]),
            (Some("how does the release work?"), &[]),
            (Some("会话恢复"), &[]),
            (Some("关于会话"), &[]),
            (None, &[]),
        ]);
        let found: Vec<_> = found
            .iter()
            .map(|topic| (topic.name.as_str(), topic.sessions))
            .collect();
        assert_eq!(found, [("parser", 2), ("release", 2), ("会话", 2)]);
    }

    #[test]
    fn the_stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }
}
