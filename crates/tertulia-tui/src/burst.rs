//! Pastes that a terminal sends without brackets: more keys at once than a person types.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::effect::Event;
use super::key_event;

/// Fewest keys of a paste of several lines: a few may be typed ahead while a connection is slow.
const LEAST_KEYS: usize = 8;
/// The same for two lines: two prompts or commands may come at once, typed or from a script.
const LEAST_OF_TWO: usize = 60;
/// A paste goes on if its next keys come within this time.
const GAP: Duration = Duration::from_millis(50);

/// Recognises pastes in the keys that come at once.
#[derive(Debug, Default)]
pub struct Bursts {
    /// Time of the last part of a paste.
    last: Option<Instant>,
}

impl Bursts {
    /// Joins the keys of a paste: text that follows an Enter in the same moment was not typed, so
    /// that this Enter does not send what is before it.
    pub fn join(&mut self, events: Vec<Event>, now: Instant) -> Vec<Event> {
        let goes_on = self.last.is_some_and(|last| now - last < GAP);
        let text: Option<String> = events.iter().map(text_of).collect();
        let Some(text) = text else {
            return events;
        };
        let is_paste = match text.trim_end_matches('\n').matches('\n').count() {
            0 => false,
            1 => events.len() >= LEAST_OF_TWO,
            _ => events.len() >= LEAST_KEYS,
        };
        if !goes_on && !is_paste {
            return events;
        }
        self.last = Some(now);
        vec![Event::Paste(text)]
    }
}

/// Text that a key writes.
fn text_of(event: &Event) -> Option<char> {
    let Event::Key(key) = event else {
        return None;
    };
    let is_plain = |key: &KeyEvent| key.modifiers == KeyModifiers::NONE && key_event::is_down(*key);
    match key.code {
        KeyCode::Enter if is_plain(key) => Some('\n'),
        // The line feed of a paste, without an end of line before it.
        KeyCode::Char('j') if key.modifiers == KeyModifiers::CONTROL => Some('\n'),
        KeyCode::Tab if is_plain(key) => Some('\t'),
        _ => key_event::typed(*key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{key, tick};

    fn keys(text: &str) -> Vec<Event> {
        let name = |letter: char| match letter {
            '\n' => "enter".to_owned(),
            letter => letter.to_string(),
        };
        text.chars()
            .map(|letter| Event::Key(key(&name(letter))))
            .collect()
    }

    fn is_paste(events: &[Event], expected: &str) -> bool {
        matches!(events, [Event::Paste(text)] if text == expected)
    }

    #[test]
    fn lines_that_come_at_once_are_a_paste() {
        let mut bursts = Bursts::default();
        let joined = bursts.join(keys("one\ntwo\nthree\n"), tick());
        assert!(is_paste(&joined, "one\ntwo\nthree\n"), "{joined:?}");
        // The rest of a long one comes at once.
        let soon = tick() + Duration::from_millis(10);
        assert!(is_paste(&bursts.join(keys("four\n"), soon), "four\n"));
        let later = soon + GAP;
        assert_eq!(bursts.join(keys("five\n"), later).len(), 5);
    }

    #[test]
    fn what_may_have_been_typed_is_typed() {
        // One line, a few keys, and keys that are no text.
        for text in [
            "a whole line\n",
            "y\nn\ny\n",
            "no line end",
            "/as ann\n/members\n",
        ] {
            let joined = Bursts::default().join(keys(text), tick());
            assert_eq!(joined.len(), text.chars().count(), "{text}");
        }
        let mut mixed = keys("one\ntwo\nthree\n");
        mixed.push(Event::Key(key("up")));
        assert_eq!(Bursts::default().join(mixed, tick()).len(), 15);
    }
}
