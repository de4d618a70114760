//! Messages typed while an agent answers: each is sent when the turn before it ends. One of them at
//! a time may be edited in the input; it keeps its place meanwhile.

use std::collections::VecDeque;

/// Queued messages of the user, next one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeAhead {
    waiting: VecDeque<String>,
    /// Place of the message in the input among those that wait, if one is being edited.
    editing: Option<usize>,
}

impl TypeAhead {
    /// Returns true if no message waits, and none is edited.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.editing.is_none()
    }

    /// Messages that wait, without the edited one.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &str> {
        self.waiting.iter().map(String::as_str)
    }

    /// Returns the place of the edited message and the number of messages with it, both from 1.
    pub fn edited(&self) -> Option<(usize, usize)> {
        let place = self.editing?;
        Some((place + 1, self.waiting.len() + 1))
    }

    /// Appends a message, or puts the edited one back at its place.
    pub fn put(&mut self, words: String) {
        match self.editing.take() {
            Some(place) => self.waiting.insert(place.min(self.waiting.len()), words),
            None => self.waiting.push_back(words),
        }
    }

    /// Puts a message before all others.
    pub fn put_first(&mut self, words: String) {
        self.waiting.push_front(words);
        if let Some(place) = &mut self.editing {
            *place += 1;
        }
    }

    /// Takes the message to send next. Those after the edited one wait for it.
    pub fn send_next(&mut self) -> Option<String> {
        match &mut self.editing {
            Some(0) => return None,
            Some(place) => *place -= 1,
            None => {}
        }
        self.waiting.pop_front()
    }

    /// Takes the message before the edited one, or the last one, into the input. `written` is the
    /// text of the input, which goes back to its place.
    pub fn edit_previous(&mut self, written: String) -> Option<String> {
        let place = self.editing.unwrap_or(self.waiting.len()).checked_sub(1)?;
        if self.editing.is_some() {
            self.put(written);
        }
        self.editing = Some(place);
        self.waiting.remove(place)
    }

    /// Puts the edited message back, and takes the one after it into the input. Returns an empty
    /// text after the last one, and `None` if no message is edited.
    pub fn edit_next(&mut self, written: String) -> Option<String> {
        let place = self.editing? + 1;
        self.put(written);
        let next = self.waiting.remove(place);
        self.editing = next.as_ref().map(|_| place);
        Some(next.unwrap_or_default())
    }

    /// Drops the edited message; returns false if there is none.
    pub fn drop_edited(&mut self) -> bool {
        self.editing.take().is_some()
    }

    /// Takes all messages, with the text of the input at the place of the edited one or at the end.
    pub fn take_all(&mut self, written: String) -> Vec<String> {
        self.put(written);
        let all = self.waiting.drain(..);
        all.filter(|words| !words.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(words: &[&str]) -> TypeAhead {
        let mut ahead = TypeAhead::default();
        words
            .iter()
            .for_each(|words| ahead.put((*words).to_owned()));
        ahead
    }

    fn waiting(ahead: &TypeAhead) -> Vec<&str> {
        ahead.waiting().collect()
    }

    #[test]
    fn an_edited_message_goes_back_to_its_place() {
        let mut ahead = queue(&["one", "two", "three"]);
        assert_eq!(ahead.edit_previous(String::new()).unwrap(), "three");
        assert_eq!(ahead.edit_previous("3".to_owned()).unwrap(), "two");
        assert_eq!(
            (waiting(&ahead), ahead.edited()),
            (vec!["one", "3"], Some((2, 3)))
        );
        ahead.put("2".to_owned());
        assert_eq!(
            (waiting(&ahead), ahead.edited()),
            (vec!["one", "2", "3"], None)
        );
    }

    #[test]
    fn the_first_has_none_before_it_and_the_last_none_after_it() {
        let mut ahead = queue(&["one", "two"]);
        assert_eq!(ahead.edit_next("x".to_owned()), None);
        ahead.edit_previous(String::new());
        ahead.edit_previous("two".to_owned());
        assert_eq!(ahead.edit_previous("1".to_owned()), None);
        assert_eq!(ahead.edited(), Some((1, 2)));
        assert_eq!(ahead.edit_next("1".to_owned()).unwrap(), "two");
        assert_eq!(ahead.edit_next("2".to_owned()).unwrap(), "");
        assert_eq!((waiting(&ahead), ahead.edited()), (vec!["1", "2"], None));
    }

    #[test]
    fn those_after_the_edited_one_wait_for_it() {
        let mut ahead = queue(&["one", "two", "three"]);
        ahead.edit_previous(String::new());
        ahead.edit_previous("three".to_owned());
        assert_eq!(ahead.send_next().unwrap(), "one");
        assert_eq!(ahead.send_next(), None);
        ahead.put("2".to_owned());
        assert_eq!(ahead.send_next().unwrap(), "2");
        assert_eq!(ahead.send_next().unwrap(), "three");
        assert!(ahead.is_empty());
    }

    #[test]
    fn all_come_back_in_their_order() {
        let mut ahead = queue(&["one", "two"]);
        ahead.edit_previous(String::new());
        ahead.edit_previous("two".to_owned());
        assert!(!ahead.is_empty());
        assert_eq!(ahead.take_all("1".to_owned()), ["1", "two"]);
        assert!(ahead.is_empty());
        let mut ahead = queue(&["one"]);
        assert_eq!(ahead.take_all("draft".to_owned()), ["one", "draft"]);
        let mut ahead = queue(&["one"]);
        ahead.edit_previous(String::new());
        assert!(ahead.drop_edited() && !ahead.drop_edited());
        assert_eq!(ahead.take_all(String::new()), [""; 0]);
    }
}
