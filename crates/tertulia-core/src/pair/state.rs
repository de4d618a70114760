//! The fold: what an instructor and a worker have come to, from their log alone. It stays small however
//! long the log is; texts are here by their beginning, and by where they stand.

use serde::{Deserialize, Serialize};

use super::PairRole;
use super::budget::Budget;
use super::reply::{self, Reply};
use crate::entry::{Body, Entry, Failed, Message, PairedAgent, Role, SpeakerKind};
use crate::id::Seq;

/// How often the instructor is asked to correct itself, one time after the other.
pub const CORRECTIONS: u32 = 3;
/// How much of a text the fold carries along, in characters.
const KEPT: usize = 2000;
/// How a failure is called that is none: somebody stopped it.
const CANCELLED: &str = "cancelled";

/// How far an instructor and a worker are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Who instructs.
    pub instructor: PairedAgent,
    /// Who works.
    pub worker: PairedAgent,
    /// Whether the instructor thinks before it speaks.
    pub thinking: bool,
    /// The folder that they work in.
    pub work_dir: String,
    /// The entry that says so, with what the instructor is told.
    pub paired_at: Option<Seq>,
    /// How often the instructor has replied.
    pub round: u64,
    /// How often the worker was given an instruction.
    pub worker_calls: u64,
    /// How often it may still be.
    pub remaining: Budget,
    /// The beginning of the last instruction.
    pub last_instruction: String,
    /// The last reply, read; texts by their beginning.
    pub last_reply: Option<Reply>,
    /// The entry of that reply.
    pub reply_at: Option<Seq>,
    /// The entry with which the worker ended last: its answer, or why there is none.
    pub report_at: Option<Seq>,
    /// How often the instructor was asked to correct itself since it last was right.
    pub corrections: u32,
    /// What is to be done next.
    pub next: Next,
    /// Whether somebody or something stopped it before that was done.
    pub stopped: bool,
    /// The newest summary of each thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summed_up: Vec<SummedUp>,
}

/// Where a thread's newest summary is, and up to which entry it stands for the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SummedUp {
    /// The thread.
    pub thread: String,
    /// The entry that has the summary.
    pub at: Seq,
    /// The last entry that it stands for.
    pub upto: Seq,
}

/// What is to be done next, as the log has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// The human is to say something.
    #[default]
    Human,
    /// The instructor is to reply.
    Instructor,
    /// The instructor is to be asked to correct itself.
    Correction,
    /// The worker is to be given the instruction.
    Handover,
    /// The worker was given the instruction and has not finished.
    Worker,
    /// The instructor is to be told what the worker said.
    Report,
}

impl Next {
    /// Its name as it is written.
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

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Have somebody answer.
    Ask(PairRole),
    /// Ask the instructor to correct itself, for the how many-eth time.
    Correct(u32),
    /// Give the worker its instruction.
    HandOver,
    /// Tell the instructor what the worker said.
    Report,
    /// Wait for the human.
    Wait(Wait),
}

/// Why the human is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing has been asked for.
    Idle,
    /// The instructor says that everything is done.
    Done,
    /// The instructor could not say what the worker is to do.
    Corrections,
    /// The worker may not be called any more.
    Budget,
}

impl Pair {
    /// What is to be done now.
    pub fn todo(&self) -> Todo {
        match self.next {
            Next::Human => Todo::Wait(match &self.last_reply {
                None => Wait::Idle,
                Some(reply) if reply.needs_correction => Wait::Corrections,
                Some(_) => Wait::Done,
            }),
            Next::Instructor => Todo::Ask(PairRole::Instructor),
            Next::Correction => Todo::Correct(self.corrections + 1),
            Next::Handover if self.remaining.is_spent() => Todo::Wait(Wait::Budget),
            Next::Handover => Todo::HandOver,
            Next::Worker => Todo::Ask(PairRole::Worker),
            Next::Report => Todo::Report,
        }
    }

    /// Whether the human has the floor.
    pub fn is_waiting(&self) -> bool {
        self.stopped || matches!(self.todo(), Todo::Wait(_))
    }

    /// The newest summary of a thread.
    pub fn summary_of(&self, seat: PairRole) -> Option<&SummedUp> {
        self.summed_up
            .iter()
            .find(|summed| summed.thread == seat.name())
    }

    /// The same pair with one more entry.
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
            // The worker's words.
            (Role::User, SpeakerKind::Ai) => self.go_on(Next::Instructor),
            (Role::User, _) if self.next == Next::Correction => {
                self.corrections += 1;
                self.go_on(Next::Instructor);
            }
            (Role::User, _) if self.next == Next::Instructor => self.stopped = false,
            (Role::Assistant, _) if message.interrupted => self.stopped = true,
            // Whoever has called for tools is not done.
            (Role::Assistant, _) if message.tool_calls.is_empty() => {
                self.read(seq, &message.content);
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
                self.remaining = self.remaining.spend();
                self.worker_calls += 1;
                self.go_on(Next::Worker);
            }
            // It is asked again for the same.
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
