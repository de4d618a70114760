//! Messages typed while an agent answers: each is sent when the turn before it ends. They belong to the
//! session, which tells after each change what waits; this is what the screen shows of them. One of
//! them at a time may be edited in the input; it keeps its place meanwhile.

use std::collections::{HashSet, VecDeque};

use jiff::Timestamp;
use tertulia_store::UnsentMessage;

use super::live::LiveCommand;

/// Queued messages of the user, next one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeAhead {
    waiting: VecDeque<Waiting>,
    /// The message in the input, and its place among those that wait, if one is being edited.
    editing: Option<(usize, Waiting)>,
    /// Messages that were written and not sent, before this screen was opened or at another one.
    drafts: Vec<UnsentMessage>,
    /// Ids of the messages that were written here.
    own: HashSet<String>,
    /// Ids of the messages that were taken back here. The session may tell of them once more, because it
    /// is told later.
    taken: HashSet<String>,
    /// What the session is to be told.
    commands: Vec<LiveCommand>,
}

/// A message that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Waiting {
    words: String,
    /// Its id, once the session has been told of it.
    id: Option<String>,
    /// Whether the session has told that it waits.
    is_known: bool,
}

impl TypeAhead {
    /// Returns true if no message waits, and none is edited.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.editing.is_none()
    }

    /// Messages that wait, without the edited one.
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &str> {
        self.waiting.iter().map(|message| message.words.as_str())
    }

    /// Messages that were not sent.
    pub fn drafts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.drafts.iter().map(|draft| draft.text.as_str())
    }

    /// Returns the place of the edited message and the number of messages with it, both from 1.
    pub fn edited(&self) -> Option<(usize, usize)> {
        let (place, _) = self.editing.as_ref()?;
        Some((place + 1, self.waiting.len() + 1))
    }

    /// Takes what the session is to be told.
    pub fn take_commands(&mut self) -> Vec<LiveCommand> {
        std::mem::take(&mut self.commands)
    }

    /// Appends a message, or puts the edited one back at its place.
    pub fn put(&mut self, words: String) {
        let Some((place, edited)) = self.editing.take() else {
            self.waiting.push_back(Waiting {
                words,
                ..Waiting::default()
            });
            return;
        };
        if let Some(client_id) = &edited.id {
            self.commands.push(LiveCommand::EditQueued {
                client_id: client_id.clone(),
                text: Some(words.clone()),
            });
        }
        let place = place.min(self.waiting.len());
        self.waiting.insert(place, Waiting { words, ..edited });
    }

    /// Puts a message before all others.
    pub fn put_first(&mut self, words: String) {
        self.waiting.push_front(Waiting {
            words,
            ..Waiting::default()
        });
        if let Some((place, _)) = &mut self.editing {
            *place += 1;
        }
    }

    /// Takes the first message, to send it at once, unless the session has been told of it or it is edited.
    pub fn send_next(&mut self) -> Option<String> {
        let is_told = self.waiting.front()?.id.is_some();
        match &mut self.editing {
            _ if is_told => return None,
            Some((0, _)) => return None,
            Some((place, _)) => *place -= 1,
            None => {}
        }
        Some(self.waiting.pop_front()?.words)
    }

    /// Gives the session the messages that it has not been told of. Those after an edited one that it
    /// does not know wait for it.
    pub fn hand_over(&mut self, now: Timestamp) {
        let mut upto = self.waiting.len();
        if let Some((place, edited)) = &self.editing
            && edited.id.is_none()
        {
            upto = upto.min(*place);
        }
        for (place, message) in self.waiting.iter_mut().enumerate().take(upto) {
            if message.id.is_some() {
                continue;
            }
            let id = format!("{}-{}-{place}", now.as_microsecond(), self.own.len());
            self.own.insert(id.clone());
            message.id = Some(id.clone());
            self.commands.push(LiveCommand::Queue {
                client_id: id,
                text: message.words.clone(),
            });
        }
    }

    /// Shows what waits, as the session tells.
    pub fn sync(&mut self, mut messages: Vec<UnsentMessage>) {
        messages.retain(|message| !self.taken.contains(&message.client_id));
        let (queued, drafts): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| message.is_queued);
        self.drafts = drafts;
        let is_told = |id: &String| queued.iter().any(|message| message.client_id == *id);
        if let Some((_, edited)) = &mut self.editing
            && let Some(id) = &edited.id
        {
            match is_told(id) {
                true => edited.is_known = true,
                // It was sent or removed: what is in the input is a message of its own.
                false if edited.is_known => self.editing = None,
                false => {}
            }
        }
        let edited = self
            .editing
            .as_ref()
            .and_then(|(_, edited)| edited.id.clone());
        let place = queued
            .iter()
            .position(|one| Some(&one.client_id) == edited.as_ref());
        if let (Some(place), Some((known, _))) = (place, &mut self.editing) {
            *known = place;
        }
        let unknown: Vec<Waiting> = self
            .waiting
            .drain(..)
            .filter(|message| !message.is_known && !message.id.as_ref().is_some_and(is_told))
            .collect();
        let known = queued
            .iter()
            .filter(|one| Some(&one.client_id) != edited.as_ref());
        self.waiting = known
            .map(|message| Waiting {
                words: message.text.clone(),
                id: Some(message.client_id.clone()),
                is_known: true,
            })
            .chain(unknown)
            .collect();
    }

    /// Notes that a message is not sent. Returns true if it was written here and its words belong back into
    /// the input.
    pub fn withdrawn(&mut self, client_id: &str) -> bool {
        let is_it = |message: &Waiting| message.id.as_deref() == Some(client_id);
        let is_shown = self.waiting.iter().any(is_it);
        self.waiting.retain(|message| !is_it(message));
        self.editing.take_if(|(_, edited)| is_it(edited));
        let comes_back = is_shown && self.own.contains(client_id);
        if comes_back {
            self.withdraw(client_id.to_owned());
        }
        comes_back
    }

    fn withdraw(&mut self, client_id: String) {
        self.taken.insert(client_id.clone());
        self.commands.push(LiveCommand::Withdraw { client_id });
    }

    /// Takes the messages that were not sent, to put them into the input.
    pub fn take_drafts(&mut self) -> Vec<String> {
        let drafts = std::mem::take(&mut self.drafts);
        drafts
            .into_iter()
            .map(|draft| {
                self.withdraw(draft.client_id);
                draft.text
            })
            .collect()
    }

    /// Takes the message before the edited one, or the last one, into the input. `written` is the
    /// text of the input, which goes back to its place.
    pub fn edit_previous(&mut self, written: String) -> Option<String> {
        let at = self.editing.as_ref().map(|(place, _)| *place);
        let place = at.unwrap_or(self.waiting.len()).checked_sub(1)?;
        if self.editing.is_some() {
            self.put(written);
        }
        self.edit(place)
    }

    /// Puts the edited message back, and takes the one after it into the input. Returns an empty
    /// text after the last one, and `None` if no message is edited.
    pub fn edit_next(&mut self, written: String) -> Option<String> {
        let place = self.editing.as_ref()?.0 + 1;
        self.put(written);
        Some(self.edit(place).unwrap_or_default())
    }

    fn edit(&mut self, place: usize) -> Option<String> {
        let message = self.waiting.remove(place)?;
        let words = message.words.clone();
        if let Some(client_id) = &message.id {
            self.commands.push(LiveCommand::EditQueued {
                client_id: client_id.clone(),
                text: None,
            });
        }
        self.editing = Some((place, message));
        Some(words)
    }

    /// Drops the edited message; returns false if there is none.
    pub fn drop_edited(&mut self) -> bool {
        let Some((_, edited)) = self.editing.take() else {
            return false;
        };
        if let Some(id) = edited.id {
            self.withdraw(id);
        }
        true
    }

    /// Takes all messages, with the text of the input at the place of the edited one or at the end.
    pub fn take_all(&mut self, written: String) -> Vec<String> {
        let (place, edited) = self
            .editing
            .take()
            .unwrap_or((self.waiting.len(), Waiting::default()));
        let place = place.min(self.waiting.len());
        self.waiting.insert(
            place,
            Waiting {
                words: written,
                ..edited
            },
        );
        let all: Vec<Waiting> = self.waiting.drain(..).collect();
        let all = all.into_iter().map(|message| {
            if let Some(id) = message.id {
                self.withdraw(id);
            }
            message.words
        });
        all.filter(|words| !words.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests;
