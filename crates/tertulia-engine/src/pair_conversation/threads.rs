//! Contexts of the instructor and the worker, one per thread of the log.

use crate::context::{Context, ContextMessage, context, prompt_message, weight};
use crate::runner::{CONTEXT_BYTES, Written};
use crate::withdrawn::{Withdrawals, withdraw};
use tertulia_agents::{PromptMessage, ToolSide};
use tertulia_core::entry::{Entry, Role};
use tertulia_core::id::Seq;
use tertulia_core::pair::PairRole;

/// The thread of one agent.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Context of the agent, as it is in the log.
    pub(super) context: Context,
}

impl Thread {
    /// Returns the last message.
    pub(super) fn last(&self) -> Option<&PromptMessage> {
        self.context.messages.last().map(|said| &said.words)
    }

    /// Returns the number of messages before the last one to the agent, which is to be answered.
    pub(super) fn past(&self) -> usize {
        let last = self
            .context
            .messages
            .iter()
            .rposition(|said| said.words.role == Role::User);
        last.unwrap_or(self.context.messages.len())
    }

    /// Returns the size of the context in bytes.
    pub(super) fn weight(&self) -> usize {
        let said = self.context.messages.iter().map(|said| &said.words);
        self.context.summary.iter().chain(said).map(weight).sum()
    }

    /// Drops old messages that fit in no prompt any more.
    fn forget(&mut self) {
        let mut kept = 0;
        let surplus = self.context.messages.iter().rev().take_while(|said| {
            kept += weight(&said.words);
            kept <= 2 * CONTEXT_BYTES
        });
        let surplus = self.context.messages.len() - surplus.count();
        self.context.messages.drain(..surplus.min(self.past()));
    }
}

/// The two threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    instructor: Thread,
    worker: Thread,
    /// Messages of this turn before redaction, by sequence number.
    typed: Vec<(Seq, String)>,
    thoughts: String,
    withdrawals: Withdrawals,
    /// Whether the contexts are not loaded from the log yet.
    pub(super) unread: bool,
}

impl Threads {
    pub(super) fn of(&self, seat: PairRole) -> &Thread {
        match seat {
            PairRole::Instructor => &self.instructor,
            PairRole::Worker => &self.worker,
        }
    }

    pub(super) fn of_mut(&mut self, seat: PairRole) -> &mut Thread {
        match seat {
            PairRole::Instructor => &mut self.instructor,
            PairRole::Worker => &mut self.worker,
        }
    }

    /// Applies the output of a turn.
    pub(super) fn take_in(&mut self, heard: Written) {
        self.thoughts = heard.thoughts;
        self.take_entries(&heard.entries);
    }

    /// Adds entries to the contexts, unless these are still to be read from the log.
    pub(super) fn take_entries(&mut self, entries: &[Entry]) {
        if !self.unread {
            self.remember(entries);
        }
    }

    /// Adds each message to its thread, and marks withdrawn ones.
    pub(super) fn remember(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Some((seq, agent)) = self.withdrawals.apply(entry) {
                self.withdraw(seq, &agent);
            }
            let Some(message) = entry.message() else {
                continue;
            };
            if let Some(seat) = PairRole::of_thread(message.thread.as_deref()) {
                let thread = self.of_mut(seat);
                thread.context.messages.push(ContextMessage {
                    seq: Some(entry.seq),
                    words: prompt_message(message),
                });
            }
        }
        self.instructor.forget();
        self.worker.forget();
    }

    fn withdraw(&mut self, seq: Seq, agent: &str) {
        // The user writes only to the instructor.
        let mut said = self.instructor.context.messages.iter_mut().rev();
        if let Some(said) = said.find(|said| said.seq == Some(seq)) {
            withdraw(&mut said.words, agent);
        }
    }

    /// Sets the text of a message before redaction, for prompts of this turn.
    pub(super) fn as_typed(&mut self, at: Option<Seq>, words: String) {
        self.typed.extend(at.map(|at| (at, words)));
    }

    /// Drops the texts before redaction at the beginning of a turn.
    pub(super) fn forget_typed(&mut self) {
        self.typed.clear();
    }

    /// Takes the reasoning before the last answer, if there is any.
    pub(super) fn take_thoughts(&mut self) -> Option<String> {
        let thoughts = std::mem::take(&mut self.thoughts);
        Some(thoughts.trim().to_owned()).filter(|thoughts| !thoughts.is_empty())
    }

    /// Returns the messages for a prompt. An agent that takes no separate system prompt gets it as
    /// the first message.
    pub(super) fn given(
        &self,
        seat: PairRole,
        system: &str,
        tools: ToolSide,
    ) -> Vec<PromptMessage> {
        let thread = self.of(seat);
        let said: Vec<ContextMessage> = thread
            .context
            .messages
            .iter()
            .map(|said| self.typed_of(said))
            .collect();
        let (past, turn) = said.split_at(thread.past());
        let turn: Vec<PromptMessage> = turn.iter().map(|said| said.words.clone()).collect();
        let mut given = context(thread.context.summary.as_ref(), past, &turn, CONTEXT_BYTES);
        if tools != ToolSide::Ours {
            given.insert(0, PromptMessage::plain(Role::System, "your part", system));
        }
        given
    }

    fn typed_of(&self, said: &ContextMessage) -> ContextMessage {
        let mut said = said.clone();
        let typed = self.typed.iter().find(|(at, _)| Some(*at) == said.seq);
        if let Some((_, words)) = typed {
            said.words.content.clone_from(words);
        }
        said
    }
}
