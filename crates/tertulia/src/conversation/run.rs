//! Carries a chat's effects out: the only room where an agent meets a store, and tools meet a person.

mod act;
mod ask;
mod compact;
mod resume;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::chat::{Chat, Effect, Event, TurnEnd, human};
use super::context::{Said, utterance};
use super::record::{Recorded, Recorder};
use crate::agent::{Agent, Utterance};
use crate::approval::Rules;
use crate::entry::{Body, Entry, Speaker, SpeakerKind};
use crate::store::Draft;
use crate::tool::Toolbox;

pub use super::door::{Door, Notice, TalkEvent};
pub use compact::Compaction;

/// How much of the talk an agent is given at most, in bytes, cut at whole messages.
const CONTEXT_BYTES: usize = 768 * 1024;

/// What a talk is led by.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// Which tools may be used unasked.
    pub rules: Rules,
    /// The tools for agents that bring none; without it they have none.
    pub tools: Option<Toolbox>,
    /// Whether nothing of it is to be kept, by agents neither.
    pub ephemeral: bool,
    /// How many tokens an agent may be given before the older part is summed up.
    pub compact_at: Option<u64>,
}

/// A talk between a human and an agent.
#[derive(Debug)]
pub struct Talk {
    chat: Chat,
    recorder: Recorder,
    agent: Arc<dyn Agent>,
    terms: Terms,
    /// What stands for the part of the talk that `past` no longer has.
    summary: Option<Utterance>,
    /// The talk as the log has it.
    past: Vec<Said>,
    /// What the agent was last given and said, in tokens as it told them, and in bytes as they were then.
    told: Option<(u64, u64)>,
    /// Where this turn begins in it.
    turn_start: usize,
    /// This turn as it was said: the log has it without secrets, its agent gets it whole.
    turn: Vec<Utterance>,
    unsaved: bool,
    /// Whether no other program is in the session that this talk continues.
    alone: bool,
}

impl Talk {
    /// A talk that begins.
    pub fn begin(recorder: Recorder, agent: Arc<dyn Agent>, terms: Terms) -> Talk {
        let speaker = Speaker::plain(agent.name(), SpeakerKind::Ai);
        let model = agent.model().map(str::to_owned);
        Talk {
            chat: Chat::new(human(), speaker, model),
            recorder,
            agent,
            terms,
            summary: None,
            past: Vec::new(),
            told: None,
            turn_start: 0,
            turn: Vec::new(),
            unsaved: false,
            alone: true,
        }
    }

    /// The pen.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Lets the agent end what it has running, in its own way.
    pub async fn leave(&self) {
        self.agent.leave().await;
    }

    /// Who answers.
    pub fn agent_name(&self) -> &str {
        self.agent.name()
    }

    /// One turn: from the human's words until the human has the floor again.
    pub async fn turn(
        &mut self,
        words: String,
        door: &mut dyn Door,
        cancel: &CancellationToken,
    ) -> TurnEnd {
        self.turn_start = self.past.len();
        self.turn.clear();
        let mut effects = VecDeque::from(self.chat.step(Event::Said(words)));
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Save(bodies) => effects.extend(self.save(bodies, door).await),
                Effect::Ask => effects.extend(self.ask(door, cancel).await),
                Effect::Use(call) => effects.extend(self.act(call, door, cancel).await),
                Effect::KeepDraft(content) => self.keep_draft(content).await,
                Effect::TurnOver(end) => {
                    // Nothing of it is more recent than the rest any more.
                    self.turn_start = self.past.len();
                    self.turn.clear();
                    return end;
                }
            }
        }
        TurnEnd::Refused
    }

    /// Makes entries durable and tells the machine. What follows from that.
    async fn save(&mut self, bodies: Vec<Body>, door: &mut dyn Door) -> Vec<Effect> {
        let said: Vec<Utterance> = bodies.iter().filter_map(utterance_of).collect();
        let held_back = bodies.clone();
        match self.recorder.record(bodies).await {
            Err(error) => {
                door.show(TalkEvent::Notice(Notice::Refused(error)));
                self.chat.step(Event::Refused)
            }
            Ok(recorded) => {
                self.turn.extend(said.iter().cloned());
                self.show_recorded(&recorded, door);
                match recorded.trouble {
                    Some(error) => {
                        self.unsaved = true;
                        for body in &held_back {
                            if let Body::Message(message) = body {
                                door.show(TalkEvent::Held(message));
                            }
                        }
                        let held = said.into_iter().map(|words| Said { seq: None, words });
                        self.past.extend(held);
                        door.show(TalkEvent::Notice(Notice::Unsaved(error)));
                    }
                    None => self.remember(&recorded.entries, said.len()),
                }
                self.chat.step(Event::Saved)
            }
        }
    }

    fn show_recorded(&mut self, recorded: &Recorded, door: &mut dyn Door) {
        if let Some(from) = recorded.left {
            let to = self.recorder.id();
            door.show(TalkEvent::Notice(Notice::SteppedAside { from, to }));
        }
        if recorded.trouble.is_none() && self.unsaved {
            self.unsaved = false;
            door.show(TalkEvent::Notice(Notice::SavedAgain));
        }
        let mut redacted = BTreeMap::new();
        for entry in &recorded.entries {
            door.show(TalkEvent::Durable(entry));
            for (kind, count) in &entry.redacted {
                *redacted.entry(kind.clone()).or_insert(0) += count;
            }
        }
        if !redacted.is_empty() {
            door.show(TalkEvent::Notice(Notice::Redacted(redacted)));
        }
        if let Some(bytes) = recorded.near_limit {
            door.show(TalkEvent::Notice(Notice::NearLimit { bytes }));
        }
    }

    /// Later turns see what is in the log, not what was typed. Words that were held back before are
    /// remembered already.
    fn remember(&mut self, entries: &[Entry], new: usize) {
        let said: Vec<Said> = entries.iter().filter_map(said_in).collect();
        let known = said.len().saturating_sub(new);
        self.past.extend(said.into_iter().skip(known));
    }

    async fn keep_draft(&mut self, content: String) {
        let Some(summary) = self.recorder.summary() else {
            return;
        };
        let draft = Draft {
            after: summary.head,
            id: self.recorder.sessions().stamp().entry_id(),
            at: self.recorder.sessions().stamp().now(),
            speaker: self.chat.agent().clone(),
            model: self.agent.model().map(str::to_owned),
            thread: None,
            content,
        };
        // The answer itself is saved when it is finished; a draft that cannot be kept costs only what
        // a crash would take, and the save that follows reports the trouble.
        let _ = self.recorder.keep_draft(draft).await;
    }
}

fn utterance_of(body: &Body) -> Option<Utterance> {
    match body {
        Body::Message(message) => Some(utterance(message)),
        _ => None,
    }
}

fn said_in(entry: &Entry) -> Option<Said> {
    Some(Said {
        seq: Some(entry.seq),
        words: utterance(entry.message()?),
    })
}
