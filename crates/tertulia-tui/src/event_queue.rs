//! A queue from the running session to the TUI. Adjacent events are merged where possible, so that
//! a TUI that is delayed by its terminal finds one long text instead of a million short ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// An event that may be merged with the previous one.
pub trait Merge: Sized {
    /// Merges `later` into `self`, or gives it back.
    fn merge(&mut self, later: Self) -> Option<Self>;
}

/// A queue of events. Clones share one queue.
#[derive(Debug)]
pub struct EventQueue<T> {
    inside: Arc<Inside<T>>,
}

#[derive(Debug)]
struct Inside<T> {
    events: Mutex<VecDeque<T>>,
    more: Notify,
}

impl<T> Clone for EventQueue<T> {
    fn clone(&self) -> EventQueue<T> {
        EventQueue {
            inside: self.inside.clone(),
        }
    }
}

impl<T> Default for EventQueue<T> {
    fn default() -> EventQueue<T> {
        EventQueue {
            inside: Arc::new(Inside {
                events: Mutex::new(VecDeque::new()),
                more: Notify::new(),
            }),
        }
    }
}

impl<T: Merge> EventQueue<T> {
    /// Adds an event, merging it with the last one if possible.
    pub fn push(&self, event: T) {
        {
            let mut events = self.events();
            let rest = match events.back_mut() {
                Some(last) => last.merge(event),
                None => Some(event),
            };
            events.extend(rest);
        }
        self.inside.more.notify_one();
    }

    /// Waits for events and takes all of them.
    pub async fn take(&self) -> VecDeque<T> {
        loop {
            let events = std::mem::take(&mut *self.events());
            if !events.is_empty() {
                return events;
            }
            // `notify_one` stores a permit if an event arrived in between.
            self.inside.more.notified().await;
        }
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<T>> {
        let events = self.inside.events.lock();
        events.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Words(String);

    impl Merge for Words {
        fn merge(&mut self, later: Words) -> Option<Words> {
            if later.0 == "." {
                return Some(later);
            }
            self.0.push_str(&later.0);
            None
        }
    }

    #[tokio::test]
    async fn pieces_are_joined_and_nothing_is_lost() {
        let mailbox = EventQueue::default();
        let ours = mailbox.clone();
        for word in ["a", "b", ".", "c"] {
            ours.push(Words(word.to_owned()));
        }
        let taken: Vec<String> = mailbox
            .take()
            .await
            .into_iter()
            .map(|word| word.0)
            .collect();
        assert_eq!(taken, ["ab", ".c"]);
    }

    #[tokio::test]
    async fn who_waits_is_woken() {
        let mailbox = EventQueue::default();
        let ours = mailbox.clone();
        let waits = tokio::spawn(async move { mailbox.take().await });
        tokio::task::yield_now().await;
        ours.push(Words("late".to_owned()));
        assert_eq!(waits.await.unwrap(), [Words("late".to_owned())]);
    }
}
