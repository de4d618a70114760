//! What a talk shows, and whom it asks: the side of a talk that every door has.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::pair::PairEvent;
use super::team::events::Output;
use tertulia_agents::approval::{PermissionState, ToolRequest, Verdict};
use tertulia_agents::{AgentError, AgentEvent};
use tertulia_core::entry::{Entry, Message, Speaker};
use tertulia_core::id::SessionId;
use tertulia_core::session::Damage;
use tertulia_store::{HeldLock, StoreError};

/// Something that shows a talk: a terminal, a stream of JSON, a screen.
#[async_trait]
pub trait Frontend: Send {
    /// Shows what happened.
    fn show(&mut self, event: TalkEvent<'_>);

    /// Asks the person whether a tool may be used. Only what is to be asked about gets here.
    async fn approve(&mut self, request: &ToolRequest) -> Verdict;
}

/// What a door shows of a talk.
#[derive(Debug)]
pub enum TalkEvent<'a> {
    /// The agent said or did something, or a tool was used for it.
    Heard(&'a AgentEvent),
    /// An entry is durable now.
    Durable(&'a Entry),
    /// A message is said and cannot be saved now: it is held in memory.
    Held(&'a Message),
    /// Somebody of several is asked now: what is heard from here on is theirs.
    Asked(&'a Speaker),
    /// Somebody of several could not answer, and the talk goes on.
    Failed(&'a Speaker, &'a AgentError),
    /// What followed from what was said among several: the queue, who is next, names that are nobody's.
    Routed(&'a Output),
    /// What followed from what was said between an instructor and a worker.
    Pair(&'a PairEvent),
    /// The tool permissions changed: this is what is in force now.
    Permissions(&'a PermissionState),
    /// Something that the human should know.
    Notice(Notice),
}

/// Something that the human should know.
#[derive(Debug)]
pub enum Notice {
    /// Another program writes to the session: the talk goes on in a fork.
    SteppedAside {
        /// The session that was left.
        from: SessionId,
        /// The fork.
        to: SessionId,
    },
    /// A half-written answer was read back.
    Recovered {
        /// Who was speaking.
        speaker: String,
    },
    /// Nobody answered the last words: the program ended before.
    Unanswered,
    /// Tools had been called for and never came back: so many calls were closed.
    ClosedCalls(usize),
    /// So many processes still ran for this session, left by a program that was killed, and were ended.
    EndedOrphans(usize),
    /// The session's answers came from another model.
    OtherModel {
        /// The model of the last answer.
        recorded: String,
        /// The model that answers now.
        now: String,
    },
    /// The older part is being summed up.
    Compacting {
        /// How many messages.
        messages: usize,
    },
    /// The older part was summed up.
    Compacted,
    /// Messages that are too long for the agent are given without their middles.
    Shortened,
    /// The older part could not be summed up; the talk goes on as it was.
    NotCompacted(AgentError),
    /// Speakers of this session are not in the team any more; what they said keeps their names.
    Missing(Vec<String>),
    /// A member answered with another model before.
    OtherModelOf {
        /// The member.
        member: String,
        /// The model of their last answer.
        recorded: String,
        /// The model that answers now.
        now: String,
    },
    /// These had been asked and did not get to answer before the program ended.
    NotHeard(Vec<String>),
    /// Another program keeps everybody else from writing: saving waits for it.
    Waiting(HeldLock),
    /// Nothing can be saved; the talk goes on in memory.
    Unsaved(StoreError),
    /// What could not be saved is saved now.
    SavedAgain,
    /// Secrets were replaced, so many of each kind.
    Redacted(BTreeMap<String, u32>),
    /// The log nears its limit.
    NearLimit {
        /// Its size.
        bytes: u64,
    },
    /// The words may not be in the log.
    Refused(StoreError),
    /// Some entries cannot be read.
    Damaged(Vec<Damage>),
}
