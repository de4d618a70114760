//! Withdrawn messages: the user stopped them before an agent answered. They stay in the log and in
//! the context, where they are marked: the user may refer to them, but no agent is to act on them.

use tertulia_agents::{FailureKind, PromptMessage};
use tertulia_core::entry::{Body, Role, SpeakerKind};

/// Mark before a withdrawn message.
const MARK: &str = "[Withdrawn: stopped before an answer. Do not act on it unless asked to again.]";
/// Maximum length of a withdrawn message in characters: it is kept for reference, not to be carried
/// out.
const LONGEST: usize = 2000;

/// Formats a withdrawn message for agents: marked, quoted line by line, cut to `LONGEST`
/// characters.
pub fn marked(words: &str) -> String {
    let mut text = MARK.to_owned();
    let shown: String = words.chars().take(LONGEST).collect();
    let rest = if shown.len() < words.len() { "…" } else { "" };
    for line in shown.trim().lines() {
        text.push_str("\n> ");
        text.push_str(line);
    }
    text.push_str(rest);
    text
}

/// Marks a message to `agent` as withdrawn, unless it is marked already.
pub fn withdraw(words: &mut PromptMessage, agent: &str) {
    if words.withdrawn.is_none() {
        words.content = marked(&words.content);
        words.attachments.clear();
        words.withdrawn = Some(agent.to_owned());
    }
}

/// Finds withdrawn messages in a log, entry by entry. Messages are identified by `K`.
#[derive(Clone, Debug)]
pub struct Withdrawals<K> {
    /// The last human message, until an agent answers it.
    open: Option<K>,
    /// The same once it was stopped, with the agent that was prompted. A pair may still resume it.
    stopped: Option<(K, String)>,
}

impl<K> Default for Withdrawals<K> {
    fn default() -> Withdrawals<K> {
        Withdrawals {
            open: None,
            stopped: None,
        }
    }
}

impl<K> Withdrawals<K> {
    /// Processes one entry. Returns the human message that it shows to be withdrawn, with the agent
    /// that was prompted: a stopped message that another human message follows.
    pub fn apply(&mut self, body: &Body, key: K) -> Option<(K, String)> {
        match body {
            Body::Message(message) if message.speaker.kind == SpeakerKind::Human => {
                self.open = Some(key);
                self.stopped.take()
            }
            Body::Message(message) if message.role == Role::Assistant => {
                *self = Withdrawals::default();
                None
            }
            Body::Failed(failed) => {
                let stopped = failed.kind == FailureKind::Cancelled.name();
                let open = self.open.take().filter(|_| stopped);
                self.stopped = open.map(|key| (key, failed.agent.clone()));
                None
            }
            _ => None,
        }
    }

    /// Takes a stopped message that nothing follows.
    pub fn take_stopped(&mut self) -> Option<(K, String)> {
        self.stopped.take()
    }
}
