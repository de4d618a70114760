//! Identity of messages. A file that counts its lines gives each message the number of its line, by
//! which forks refer to it. Older files have no ids: there, the identity of a message is made from
//! its content and the message before it, so that the copy in a fork has the same.

use tertulia_core::id::derived;

/// Returns the identity of a message on a numbered line.
pub(super) fn ordinal_id(file: &str, ordinal: u64) -> String {
    format!("{file}:{ordinal}")
}

/// Identities of messages on lines without numbers.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Id of the thread with which the history begins.
    root: String,
    messages: Vec<String>,
}

impl Chain {
    /// Begins with a thread. A fork that copied its beginning begins with the thread that wrote it.
    pub(super) fn begin_with(&mut self, thread: &str) {
        if self.messages.is_empty() {
            thread.clone_into(&mut self.root);
        }
    }

    /// Returns the thread with which the history begins.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Returns the identity of the next message.
    pub(super) fn next(&self, content: &[&str]) -> String {
        let before = self.messages.last().unwrap_or(&self.root);
        let parts = [&["codex", before], content].concat();
        derived(&parts).to_string()
    }

    /// Sets the messages up to now to the first `count`, and the one after them.
    pub(super) fn push(&mut self, count: usize, identity: &str) {
        self.messages.truncate(count);
        self.messages.push(identity.to_owned());
    }

    /// Goes back to the first `count` messages.
    pub(super) fn go_back(&mut self, count: usize) {
        self.messages.truncate(count);
    }
}
