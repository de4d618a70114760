//! Words that a person stopped before an agent answered. They stay in the log and in the context, where they
//! are marked: the person may refer to them, but no agent is to act on them.

use std::collections::BTreeMap;

use tertulia_agents::{FailureKind, PromptMessage};
use tertulia_core::entry::{Body, Entry, Role, SpeakerKind};
use tertulia_core::id::Seq;

/// What stands before withdrawn words.
const MARK: &str = "[Withdrawn: stopped before an answer. Do not act on it unless asked to again.]";
/// Longer than this, withdrawn words are cut: they are told to be referred to, not to be carried out.
const LONGEST: usize = 2000;

/// Withdrawn words as agents read them: marked, quoted line by line, the beginning of long ones.
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

/// Marks words as withdrawn when they were asked of `agent`. Once is enough.
pub fn withdraw(words: &mut PromptMessage, agent: &str) {
    if words.withdrawn.is_none() {
        words.content = marked(&words.content);
        words.withdrawn = Some(agent.to_owned());
    }
}

/// Finds withdrawn words in a log, entry by entry.
#[derive(Clone, Debug, Default)]
pub struct Withdrawals {
    /// The last human message, until somebody answers it.
    open: Option<Seq>,
    /// The same once it was stopped, with the agent that was asked. A pair may still go on with it.
    stopped: Option<(Seq, String)>,
}

impl Withdrawals {
    /// Takes in one entry. Returns the human message that it shows to be withdrawn, and the agent that was
    /// asked for it: one that was stopped, and that another human message follows.
    pub fn apply(&mut self, entry: &Entry) -> Option<(Seq, String)> {
        match &entry.body {
            Body::Message(message) if message.speaker.kind == SpeakerKind::Human => {
                self.open = Some(entry.seq);
                self.stopped.take()
            }
            Body::Message(message) if message.role == Role::Assistant => {
                *self = Withdrawals::default();
                None
            }
            Body::Failed(failed) => {
                let stopped = failed.kind == FailureKind::Cancelled.name();
                let open = self.open.take().filter(|_| stopped);
                self.stopped = open.map(|seq| (seq, failed.agent.clone()));
                None
            }
            _ => None,
        }
    }

    /// All withdrawn words of a log in which nothing that was stopped goes on, with the agents that were asked.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeMap<Seq, String> {
        let mut withdrawals = Withdrawals::default();
        let mut found: BTreeMap<Seq, String> = BTreeMap::new();
        for entry in entries {
            found.extend(withdrawals.apply(entry));
        }
        found.extend(withdrawals.stopped);
        found
    }
}
