//! What the two remember: each its own thread, as the log has it.

use crate::context::{Context, ContextMessage, context, prompt_message, weight};
use crate::runner::{CONTEXT_BYTES, Written};
use crate::withdrawn::{Withdrawals, withdraw};
use tertulia_agents::{PromptMessage, ToolSide};
use tertulia_core::entry::{Entry, Role};
use tertulia_core::id::Seq;
use tertulia_core::pair::PairRole;

/// What one of the two remembers.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// What it remembers, as the log has it.
    pub(super) context: Context,
}

impl Thread {
    /// What was said last.
    pub(super) fn last(&self) -> Option<&PromptMessage> {
        self.context.messages.last().map(|said| &said.words)
    }

    /// How much of it came before what is to be answered.
    pub(super) fn past(&self) -> usize {
        let last = self
            .context
            .messages
            .iter()
            .rposition(|said| said.words.role == Role::User);
        last.unwrap_or(self.context.messages.len())
    }

    /// What all of it weighs, in bytes.
    pub(super) fn weight(&self) -> usize {
        let said = self.context.messages.iter().map(|said| &said.words);
        self.context.summary.iter().chain(said).map(weight).sum()
    }

    /// Lets go of what nobody will be given any more.
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
    /// Words of this turn as they were said; the log has them without secrets.
    typed: Vec<(Seq, String)>,
    thoughts: String,
    withdrawals: Withdrawals,
    /// Whether it is known only in the log so far.
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

    /// Takes in what was said.
    pub(super) fn take_in(&mut self, heard: Written) {
        self.thoughts = heard.thoughts;
        if !self.unread {
            self.remember(&heard.entries);
        }
    }

    /// Puts each message into its thread.
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
        // A person speaks to the instructor only.
        let mut said = self.instructor.context.messages.iter_mut().rev();
        if let Some(said) = said.find(|said| said.seq == Some(seq)) {
            withdraw(&mut said.words, agent);
        }
    }

    /// Whoever is asked in this turn gets the words as they were said.
    pub(super) fn as_typed(&mut self, at: Option<Seq>, words: String) {
        self.typed.extend(at.map(|at| (at, words)));
    }

    /// The turn is over, or another begins.
    pub(super) fn forget_typed(&mut self) {
        self.typed.clear();
    }

    /// What was thought before the last answer, if anything was.
    pub(super) fn take_thoughts(&mut self) -> Option<String> {
        let thoughts = std::mem::take(&mut self.thoughts);
        Some(thoughts.trim().to_owned()).filter(|thoughts| !thoughts.is_empty())
    }

    /// What somebody is given who is asked. Who has no place of its own for what it is told about its part
    /// gets that as the first of the messages.
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
