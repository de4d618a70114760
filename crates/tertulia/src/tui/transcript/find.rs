//! Finding words in what is loaded.

use regex::{Regex, RegexBuilder};

use super::layout::{self, Mark};
use super::{Did, Spot, Transcript};
use crate::tui::item::What;

/// What is looked for, and where it was found last.
#[derive(Debug)]
pub(super) struct Find {
    words: String,
    pattern: Regex,
    /// The thing, and the byte of its text.
    pub(super) at: Option<(u64, usize)>,
}

impl Find {
    /// Capital letters count if there are any.
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
    /// Looks for words, upwards from what is seen: what one looks for was said before.
    pub fn find(&mut self, words: &str) -> Did {
        self.find = Find::new(words);
        match self.find {
            Some(_) => self.find_next(false),
            None => Did::Changed,
        }
    }

    /// Looks for nothing any more.
    pub fn end_find(&mut self) {
        self.find = None;
    }

    /// What is looked for, for marking it on the screen.
    pub fn pattern(&self) -> Option<&Regex> {
        self.find.as_ref().map(|find| &find.pattern)
    }

    /// Goes to the next place below, or above, and from the end of what is loaded to its beginning.
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
        // The first thing is looked at twice: from where we are, and at last up to there.
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
