//! Reasoning in the transcript: it grows, folds when the answer begins, and is replaced by what was saved.

use super::Transcript;
use crate::item::{Item, What};

impl Transcript {
    /// Appends reasoning to the last item if that is reasoning, or else adds an item.
    pub fn think(&mut self, text: &str) {
        let last = self.newest().back_mut().map(|entry| &mut entry.item.what);
        if let Some(What::Thought {
            text: thought,
            folded: false,
        }) = last
        {
            thought.push_str(text);
            self.bytes += text.len();
        } else {
            self.push(Item {
                seq: None,
                what: What::Thought {
                    text: text.to_owned(),
                    folded: false,
                },
            });
        }
    }

    /// Folds the reasoning that just ended, if it is the last item.
    pub(super) fn fold_thought(&mut self) {
        if let Some(entry) = self.newest().back_mut()
            && let What::Thought { folded: false, .. } = &entry.item.what
            && entry.item.seq.is_none()
        {
            entry.fold(true);
        }
    }

    /// Shows reasoning that has been saved: in place of what was shown of it while it grew, if there is
    /// any.
    pub fn thought(&mut self, item: Item) {
        // What precedes an entry that was saved belongs to it.
        let newest = self.newest().iter().enumerate().rev();
        let mut unsaved = newest.take_while(|(_, entry)| entry.item.seq.is_none());
        let live = unsaved.find(|(_, entry)| matches!(&entry.item.what, What::Thought { .. }));
        let live = live.map(|(at, _)| at);
        match live {
            Some(at) => {
                self.replace(at, item);
                self.fold_thought();
            }
            None if self.is_streaming() => {}
            None => self.push(item),
        }
    }
}
