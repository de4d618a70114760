//! A queue from the running session to the TUI. Adjacent events are merged where possible, so that
//! a TUI that is delayed by its terminal finds one long text instead of a million short ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// An event that may be merged with the previous one.
pub trait Joins: Sized {
    /// Merges `later` into `self`, or gives it back.
    fn join(&mut self, later: Self) -> Option<Self>;
}

/// A mailbox. Clones share one queue.
#[derive(Debug)]
pub struct Mailbox<T> {
    inside: Arc<Inside<T>>,
}

#[derive(Debug)]
struct Inside<T> {
    letters: Mutex<VecDeque<T>>,
    more: Notify,
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        Mailbox {
            inside: self.inside.clone(),
        }
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        Mailbox {
            inside: Arc::new(Inside {
                letters: Mutex::new(VecDeque::new()),
                more: Notify::new(),
            }),
        }
    }
}

impl<T: Joins> Mailbox<T> {
    /// Adds an event, merging it with the last one if possible.
    pub fn post(&self, letter: T) {
        {
            let mut letters = self.letters();
            let rest = match letters.back_mut() {
                Some(last) => last.join(letter),
                None => Some(letter),
            };
            letters.extend(rest);
        }
        self.inside.more.notify_one();
    }

    /// Waits for events and takes all of them.
    pub async fn take(&self) -> VecDeque<T> {
        loop {
            let letters = std::mem::take(&mut *self.letters());
            if !letters.is_empty() {
                return letters;
            }
            // `notify_one` stores a permit if an event arrived in between.
            self.inside.more.notified().await;
        }
    }

    fn letters(&self) -> MutexGuard<'_, VecDeque<T>> {
        let letters = self.inside.letters.lock();
        letters.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Words(String);

    impl Joins for Words {
        fn join(&mut self, later: Words) -> Option<Words> {
            if later.0 == "." {
                return Some(later);
            }
            self.0.push_str(&later.0);
            None
        }
    }

    #[tokio::test]
    async fn pieces_are_joined_and_nothing_is_lost() {
        let mailbox = Mailbox::default();
        let ours = mailbox.clone();
        for word in ["a", "b", ".", "c"] {
            ours.post(Words(word.to_owned()));
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
        let mailbox = Mailbox::default();
        let ours = mailbox.clone();
        let waits = tokio::spawn(async move { mailbox.take().await });
        tokio::task::yield_now().await;
        ours.post(Words("late".to_owned()));
        assert_eq!(waits.await.unwrap(), [Words("late".to_owned())]);
    }
}
