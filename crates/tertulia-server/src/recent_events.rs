//! Recent events, numbered: a client that reconnects asks for those that it missed.

use std::collections::VecDeque;

use tertulia_engine::event::SessionEvent;

/// Maximum number of kept events.
const LONGEST: usize = 4096;
/// Maximum bytes of kept events.
const HEAVIEST: usize = 2_000_000;

/// The last events of a live session.
#[derive(Debug)]
pub struct RecentEvents {
    /// Number of the last event.
    n: u64,
    kept: VecDeque<SessionEvent>,
    weight: usize,
}

impl RecentEvents {
    /// Creates a window that counts on from `n`. For a later window of the same session, `n` must
    /// be above all earlier numbers: none is used twice.
    pub fn new(n: u64) -> RecentEvents {
        RecentEvents {
            n,
            kept: VecDeque::new(),
            weight: 0,
        }
    }

    /// Returns the number of the last event.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Adds an event and returns its number.
    pub fn push(&mut self, event: SessionEvent) -> u64 {
        self.n += 1;
        self.weight += event.weight();
        self.kept.push_back(event);
        while self.kept.len() > LONGEST || self.weight > HEAVIEST {
            match self.kept.pop_front() {
                Some(old) => self.weight -= old.weight(),
                None => break,
            }
        }
        self.n
    }

    /// Returns the events after number `n`, with their numbers, or `None` if some are no longer
    /// kept.
    pub fn since(&self, n: u64) -> Option<Vec<(u64, SessionEvent)>> {
        let missed = usize::try_from(self.n.checked_sub(n)?).ok()?;
        let begin = self.kept.len().checked_sub(missed)?;
        let kept = self.kept.iter().skip(begin).cloned();
        Some((n + 1..).zip(kept).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SessionEvent {
        SessionEvent::Text { text: text.into() }
    }

    #[test]
    fn who_comes_back_misses_nothing_or_is_told_so() {
        let mut window = RecentEvents::new(100);
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
        let mut window = RecentEvents::new(0);
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
