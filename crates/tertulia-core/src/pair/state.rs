//! The fold of a pair session. It stays small for any length of log: long texts are truncated and
//! referred to by sequence number.

use serde::{Deserialize, Serialize};

use super::PairRole;
use super::budget::Budget;
use super::reply::{self, Reply};
use crate::entry::{Body, Entry, Failed, Message, PairedAgent, Role, SpeakerKind};
use crate::id::Seq;

/// Maximum number of corrections in a row that the instructor is asked for.
pub const CORRECTIONS: u32 = 3;
/// Maximum length of a text in the fold, in characters.
const KEPT: usize = 2000;
/// Failure kind for a turn that the user cancelled.
const CANCELLED: &str = "cancelled";

/// State of a pair session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The instructor.
    pub instructor: PairedAgent,
    /// The worker.
    pub worker: PairedAgent,
    /// Whether the instructor thinks before it answers.
    pub thinking: bool,
    /// Working directory.
    pub work_dir: String,
    /// The entry with these settings and the instructor's system prompt.
    pub paired_at: Option<Seq>,
    /// Number of replies of the instructor.
    pub round: u64,
    /// Number of instructions given to the worker.
    pub worker_calls: u64,
    /// Remaining worker calls.
    pub remaining: Budget,
    /// The last instruction, truncated.
    pub last_instruction: String,
    /// The last reply, with its texts truncated.
    pub last_reply: Option<Reply>,
    /// The entry of that reply.
    pub reply_at: Option<Seq>,
    /// The entry that ended the worker's last turn: its answer or its failure.
    pub report_at: Option<Seq>,
    /// Number of corrections asked for since the last valid reply or human message.
    pub corrections: u32,
    /// The next step.
    pub next: Next,
    /// True if the session was interrupted before the next step.
    pub stopped: bool,
    /// Newest compaction summary of each thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summed_up: Vec<SummedUp>,
}

/// Reference to the newest compaction summary of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummedUp {
    /// The thread.
    pub thread: String,
    /// The entry with the summary.
    pub at: Seq,
    /// The last entry that the summary covers.
    pub upto: Seq,
}

/// The next step, according to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The user writes a message.
    #[default]
    Human,
    /// The instructor replies.
    Instructor,
    /// The instructor is asked for a correction.
    Correction,
    /// The instruction is given to the worker.
    Handover,
    /// The worker works on the instruction.
    Worker,
    /// The worker's answer is given to the instructor.
    Report,
}

impl Next {
    /// Returns the serialised name.
    pub const fn name(self) -> &'static str {
        match self {
            Next::Human => "human",
            Next::Instructor => "instructor",
            Next::Correction => "correction",
            Next::Handover => "handover",
            Next::Worker => "worker",
            Next::Report => "report",
        }
    }
}

/// The action to take now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Prompt this agent.
    Ask(PairRole),
    /// Ask the instructor for a correction; the number counts from 1.
    Correct(u32),
    /// Give the instruction to the worker.
    HandOver,
    /// Give the worker's answer to the instructor.
    Report,
    /// Wait for the user.
    Wait(Wait),
}

/// Reasons to wait for the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// No reply yet: no task was given.
    Idle,
    /// The instructor says DONE.
    Done,
    /// The instructor did not give a valid reply after all corrections.
    Corrections,
    /// The budget of worker calls is spent.
    Budget,
}

impl Pair {
    /// Decides whether the budget of worker calls is spent: an instruction is ready for the worker,
    /// and no call remains.
    pub fn is_out_of_calls(&self, remaining: Budget) -> bool {
        self.next == Next::Handover && remaining.is_spent()
    }

    /// Returns the action to take now.
    pub fn todo(&self) -> Todo {
        match self.next {
            Next::Human => Todo::Wait(match &self.last_reply {
                None => Wait::Idle,
                Some(reply) if reply.needs_correction => Wait::Corrections,
                Some(_) => Wait::Done,
            }),
            Next::Instructor => Todo::Ask(PairRole::Instructor),
            Next::Correction => Todo::Correct(self.corrections + 1),
            _ if self.is_out_of_calls(self.remaining) => Todo::Wait(Wait::Budget),
            Next::Handover => Todo::HandOver,
            Next::Worker => Todo::Ask(PairRole::Worker),
            Next::Report => Todo::Report,
        }
    }

    /// Returns true if the session waits for the user.
    pub fn is_waiting(&self) -> bool {
        self.stopped || matches!(self.todo(), Todo::Wait(_))
    }

    /// Returns the newest compaction summary of a thread.
    pub fn summary_of(&self, seat: PairRole) -> Option<&SummedUp> {
        self.summed_up
            .iter()
            .find(|summed| summed.thread == seat.name())
    }

    /// Updates the state with one more entry.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Paired(paired) => {
                self.instructor.clone_from(&paired.instructor);
                self.worker.clone_from(&paired.worker);
                self.thinking = paired.thinking;
                self.work_dir.clone_from(&paired.work_dir);
                self.paired_at = Some(entry.seq);
                self.round = paired.round.unwrap_or(self.round);
            }
            Body::Budgeted(budgeted) => self.remaining = budgeted.budget,
            // Earlier versions recorded it apart.
            Body::Thought(thought) => {
                if let Some(reply) = &mut self.last_reply
                    && thought.thread == PairRole::Instructor.name()
                {
                    reply.thinking = beginning(&thought.text);
                }
            }
            Body::Compacted(compacted) => {
                if let Some(thread) = &compacted.thread {
                    self.summed_up.retain(|summed| summed.thread != *thread);
                    self.summed_up.push(SummedUp {
                        thread: thread.clone(),
                        at: entry.seq,
                        upto: compacted.upto,
                    });
                }
            }
            Body::Failed(failed) => self.fail(entry.seq, failed),
            Body::Message(message) => match PairRole::of_thread(message.thread.as_deref()) {
                Some(PairRole::Instructor) => self.hear_instructor(entry.seq, message),
                Some(PairRole::Worker) => self.hear_worker(entry.seq, message),
                None => {}
            },
            _ => {}
        }
    }

    fn hear_instructor(&mut self, seq: Seq, message: &Message) {
        match (message.role, message.speaker.kind) {
            (Role::User, SpeakerKind::Human) => {
                self.corrections = 0;
                self.go_on(Next::Instructor);
            }
            // The worker's answer.
            (Role::User, SpeakerKind::Ai) => self.go_on(Next::Instructor),
            (Role::User, _) if self.next == Next::Correction => {
                self.corrections += 1;
                self.go_on(Next::Instructor);
            }
            (Role::User, _) if self.next == Next::Instructor => self.stopped = false,
            (Role::Assistant, _) if message.interrupted => self.stopped = true,
            // A reply with tool calls is not final.
            (Role::Assistant, _) if message.tool_calls.is_empty() => {
                self.read(seq, &message.content);
                if let (Some(reply), Some(text)) = (&mut self.last_reply, &message.reasoning) {
                    reply.thinking = beginning(text);
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, seq: Seq, words: &str) {
        let reply = reply::read(words);
        self.round += 1;
        self.reply_at = Some(seq);
        let next = if !reply.should_continue {
            Next::Human
        } else if !reply.needs_correction {
            Next::Handover
        } else if self.corrections < CORRECTIONS {
            Next::Correction
        } else {
            Next::Human
        };
        if !reply.needs_correction {
            self.corrections = 0;
        }
        if next == Next::Handover {
            self.last_instruction = beginning(&reply.instruction);
        }
        self.last_reply = Some(Reply {
            thinking: beginning(&reply.thinking),
            instruction: beginning(&reply.instruction),
            ..reply
        });
        self.go_on(next);
    }

    fn hear_worker(&mut self, seq: Seq, message: &Message) {
        match (message.role, message.speaker.kind) {
            (Role::User, SpeakerKind::Ai) => {
                // One worker call of the budget is used.
                self.remaining = self.remaining.spend();
                self.worker_calls += 1;
                self.go_on(Next::Worker);
            }
            // A retry of the same instruction.
            (Role::User, _) => self.go_on(Next::Worker),
            (Role::Assistant, _) if message.interrupted => self.stopped = true,
            (Role::Assistant, _) if message.tool_calls.is_empty() => {
                self.report_at = Some(seq);
                self.go_on(Next::Report);
            }
            _ => {}
        }
    }

    fn fail(&mut self, seq: Seq, failed: &Failed) {
        if self.next == Next::Worker && failed.kind != CANCELLED {
            self.report_at = Some(seq);
            self.go_on(Next::Report);
        } else {
            self.stopped = true;
        }
    }

    fn go_on(&mut self, next: Next) {
        self.next = next;
        self.stopped = false;
    }
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(KEPT) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
