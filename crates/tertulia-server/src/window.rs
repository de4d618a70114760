//! What happened lately, numbered: who comes back asks for what they missed.

use std::collections::VecDeque;

use crate::happening::Happening;

/// So many happenings are kept at most.
const LONGEST: usize = 4096;
/// So many bytes of them.
const HEAVIEST: usize = 2_000_000;

/// The last happenings of a talk.
#[derive(Debug)]
pub struct Window {
    /// The number of the last one.
    n: u64,
    kept: VecDeque<Happening>,
    weight: usize,
}

impl Window {
    /// Counts on from `n`. Whoever makes another for the same talk gives it a number that is beyond all of the
    /// first: numbers are never used twice.
    pub fn new(n: u64) -> Window {
        Window {
            n,
            kept: VecDeque::new(),
            weight: 0,
        }
    }

    /// The number of the last happening.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Takes in what happened. Its number.
    pub fn push(&mut self, happening: Happening) -> u64 {
        self.n += 1;
        self.weight += happening.weight();
        self.kept.push_back(happening);
        while self.kept.len() > LONGEST || self.weight > HEAVIEST {
            match self.kept.pop_front() {
                Some(old) => self.weight -= old.weight(),
                None => break,
            }
        }
        self.n
    }

    /// What happened after number `n`, each with its number; nothing if that is not known any more.
    pub fn since(&self, n: u64) -> Option<Vec<(u64, Happening)>> {
        let missed = usize::try_from(self.n.checked_sub(n)?).ok()?;
        let begin = self.kept.len().checked_sub(missed)?;
        let kept = self.kept.iter().skip(begin).cloned();
        Some((n + 1..).zip(kept).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Happening {
        Happening::Text { text: text.into() }
    }

    #[test]
    fn who_comes_back_misses_nothing_or_is_told_so() {
        let mut window = Window::new(100);
        assert_eq!(window.since(100), Some(vec![]));
        assert_eq!((window.since(99), window.since(101)), (None, None));
        assert_eq!(window.push(text("a")), 101);
        assert_eq!(window.push(text("b")), 102);
        assert_eq!(window.since(101), Some(vec![(102, text("b"))]));
        assert_eq!(window.since(100).map(|missed| missed.len()), Some(2));
        assert_eq!(window.since(99), None);
    }

    #[test]
    fn it_stays_small() {
        let mut window = Window::new(0);
        for _ in 0..LONGEST + 10 {
            window.push(text("a"));
        }
        assert_eq!(window.since(9), None);
        assert_eq!(window.since(10).map(|missed| missed.len()), Some(LONGEST));
        window.push(text(&"x".repeat(HEAVIEST)));
        assert_eq!((window.kept.len(), window.weight), (0, 0));
        assert_eq!(window.since(window.n()), Some(vec![]));
    }
}
