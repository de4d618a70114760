//! Text search in the loaded items.

use regex::{Regex, RegexBuilder};

use super::layout::{self, Mark};
use super::{Did, Spot, Transcript};
use crate::item::What;

/// Search pattern and the last hit.
#[derive(Debug)]
pub(super) struct Find {
    words: String,
    pattern: Regex,
    /// Item number and byte offset in its text.
    pub(super) at: Option<(u64, usize)>,
}

impl Find {
    /// Smart case: case-sensitive only if the text contains an uppercase letter.
    fn new(words: &str) -> Option<Find> {
        let pattern = RegexBuilder::new(&regex::escape(words))
            .case_insensitive(!words.chars().any(char::is_uppercase))
            .build()
            .ok()?;
        (!words.is_empty()).then(|| Find {
            words: words.to_owned(),
            pattern,
            at: None,
        })
    }
}

impl Transcript {
    /// Starts a search upwards from the visible rows, since the text was most likely written
    /// before.
    pub fn find(&mut self, words: &str) -> Did {
        self.find = Find::new(words);
        match self.find {
            Some(_) => self.find_next(false),
            None => Did::Changed,
        }
    }

    /// Ends the search.
    pub fn end_find(&mut self) {
        self.find = None;
    }

    /// Pattern to highlight.
    pub fn pattern(&self) -> Option<&Regex> {
        self.find.as_ref().map(|find| &find.pattern)
    }

    /// Goes to the next hit below or above, wrapping around within the loaded items.
    pub fn find_next(&mut self, below: bool) -> Did {
        let Some(find) = &self.find else {
            return Did::Nothing;
        };
        let Some((index, byte)) = self.next_hit(find, below) else {
            return Did::NotFound(find.words.clone());
        };
        let id = self.id(index);
        if let Some(find) = &mut self.find {
            find.at = Some((id, byte));
        }
        if let What::Used(used) = &self.items[index].item.what
            && used.folded
        {
            self.toggle(index);
        }
        let row = self.lay(index).row_of(Mark::Text(byte));
        self.reveal(Spot { id, row });
        Did::Changed
    }

    fn next_hit(&self, find: &Find, below: bool) -> Option<(usize, usize)> {
        let count = self.items.len();
        let seen = match below {
            true => self.visible.first(),
            false => self.visible.last(),
        };
        let known = find.at.and_then(|(id, byte)| Some((self.index(id)?, byte)));
        let (start, byte) = match (known, below) {
            (Some(known), _) => known,
            (None, true) => (self.index(seen?.id)?, 0),
            (None, false) => (self.index(seen?.id)?, usize::MAX),
        };
        // The first item is searched twice: from the current position, and completely at the end.
        for step in 0..=count {
            let index = match below {
                true => (start + step) % count,
                false => (start + count - step % count) % count,
            };
            let text = layout::text(&self.items[index].item);
            let mut hits = find.pattern.find_iter(&text).map(|hit| hit.start());
            let fresh = known.is_none();
            let hit = match (below, step) {
                (true, 0) => hits.find(|at| *at > byte || fresh && *at == byte),
                (false, 0) => hits.take_while(|at| *at < byte).last(),
                (true, _) => hits.next(),
                (false, _) => hits.last(),
            };
            if let Some(hit) = hit {
                return Some((index, hit));
            }
        }
        None
    }
}
