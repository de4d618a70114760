//! Fuzzy filter: which sessions match the query, and how well.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::session_item::SessionItem;

/// Minimum length of a part of an id; shorter ones match too many ids.
pub const SHORTEST_ID: usize = 4;
/// Maximum number of words compared, since each costs time for every session.
const MOST_WORDS: usize = 8;
/// Maximum number of characters of a word, for the same reason.
const MOST_LETTERS: usize = 100;

/// A parsed query to compare with many sessions.
pub struct FuzzyFilter {
    words: Vec<Word>,
    with_project: bool,
    matcher: Matcher,
    letters: Vec<char>,
}

struct Word {
    atom: Atom,
    /// The word as a part of an id, if it can be one.
    id: Option<String>,
}

impl FuzzyFilter {
    /// Parses a query. Each word must match the title, a tag, the id, or the project if the list
    /// shows several.
    pub fn new(typed: &str, with_project: bool) -> FuzzyFilter {
        let word = |text: &str| Word {
            atom: Atom::new(
                &text.chars().take(MOST_LETTERS).collect::<String>(),
                CaseMatching::Smart,
                Normalization::Smart,
                AtomKind::Fuzzy,
                false,
            ),
            id: is_id(text).then(|| text.to_ascii_lowercase()),
        };
        FuzzyFilter {
            words: typed
                .split_whitespace()
                .take(MOST_WORDS)
                .map(word)
                .collect(),
            with_project,
            matcher: Matcher::new(Config::DEFAULT),
            letters: Vec::new(),
        }
    }

    /// Score of a session, higher is better; `None` if it does not match.
    pub fn weigh(&mut self, item: &SessionItem) -> Option<u32> {
        let FuzzyFilter {
            words,
            with_project,
            matcher,
            letters,
        } = self;
        let mut score = |atom: &Atom, text: &str| {
            let found = atom.score(Utf32Str::new(text, letters), matcher);
            found.map_or(0, u32::from)
        };
        let mut total = 0;
        for word in words {
            let id = word.id.as_deref();
            // The title counts double: it is what people remember.
            let mut best = 2 * score(&word.atom, item.title_or_untitled());
            if *with_project {
                best = best.max(score(&word.atom, &item.project));
            }
            for tag in &item.tags {
                best = best.max(score(&word.atom, &format!("#{tag}")));
            }
            // A part of an id was copied by the user: nothing matches better.
            if id.is_some_and(|id| item.id.to_string().contains(id)) {
                best = 2 * u32::from(u16::MAX);
            }
            if best == 0 {
                return None;
            }
            total += best;
        }
        Some(total)
    }

    /// Indices of the matching graphemes of a title.
    pub fn marks(&mut self, title: &str) -> Vec<u32> {
        let mut marks = Vec::new();
        for word in &self.words {
            let text = Utf32Str::new(title, &mut self.letters);
            let _ = word.atom.indices(text, &mut self.matcher, &mut marks);
        }
        marks.sort_unstable();
        marks.dedup();
        marks
    }
}

/// Returns true if the new query can only narrow the previous result.
pub fn narrows(before: &str, now: &str) -> bool {
    // A shorter word may start to match ids when it grows.
    let grown = |text: &str| {
        let last = text.split_whitespace().last().unwrap_or_default();
        last.chars().count() >= SHORTEST_ID || text.ends_with(char::is_whitespace)
    };
    let words = now.split_whitespace().count();
    !before.is_empty() && now.starts_with(before) && grown(before) && words <= MOST_WORDS
}

fn is_id(text: &str) -> bool {
    text.len() >= SHORTEST_ID && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tertulia_core::query::Row;
    use tertulia_core::session::SessionMeta;

    use super::*;

    fn item(title: &str, project: &str) -> SessionItem {
        let id = "01936f5e-6c5a-7b3a-9d2f-5f3a9c1e0b7d".parse().unwrap();
        let mut meta = SessionMeta::blank(id);
        meta.title = Some(title.to_owned());
        meta.project = Some(project.to_owned());
        meta.tags = vec!["release".to_owned()];
        SessionItem::of(&Row { meta, open: false })
    }

    #[test]
    fn every_word_has_to_fit_somewhere() {
        let item = item("Fix the parser", "git:github.com/ann/tools");
        let fits = |typed: &str| FuzzyFilter::new(typed, true).weigh(&item).is_some();
        assert!(fits("") && fits("parser") && fits("fxprs") && fits("FIX") == fits("Fix the FIX"));
        assert!(fits("parser tools") && fits("#rel") && fits("5f3a") && fits("0B7D"));
        assert!(!fits("parser zebra") && !fits("0000") && !fits("github"));
        let weight = |typed: &str| FuzzyFilter::new(typed, true).weigh(&item).unwrap();
        assert!(weight("parser") > weight("fxpr"));
        assert!(weight("9c1e0b7d") > weight("parser"));
        assert!(FuzzyFilter::new("tools", false).weigh(&item).is_none());
    }

    #[test]
    fn fitting_letters_of_a_title_are_marked() {
        assert_eq!(FuzzyFilter::new("漢b", true).marks("a漢e\u{301}b"), [1, 3]);
        assert!(FuzzyFilter::new("zzz", true).marks("abc").is_empty());
    }

    proptest! {
        #[test]
        fn a_longer_query_finds_no_more(
            title in "[a-cA-C é#漢-]{0,12}", before in "[a-cA-Cé0-9 #漢-]{0,8}", more in "[a-cA-C 0-9-]{0,4}",
        ) {
            let now = format!("{before}{more}");
            let item = item(&title, "dir:/abc");
            if narrows(&before, &now) && FuzzyFilter::new(&now, true).weigh(&item).is_some() {
                prop_assert!(FuzzyFilter::new(&before, true).weigh(&item).is_some());
            }
        }
    }
}
