//! Carries a chat's effects out: the only room where an agent meets a store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::chat::{Chat, Effect, Event, TurnEnd, human};
use super::record::Recorder;
use crate::agent::{Agent, AgentError, AgentEvent, Floor, Outcome, Question, Utterance};
use crate::entry::{Body, Entry, Speaker, SpeakerKind};
use crate::id::SessionId;
use crate::session::{Damage, Status};
use crate::store::{Draft, StoreError, StoreResult};

/// How much of the talk an agent is given at most, in bytes, cut at whole messages.
const CONTEXT_BYTES: usize = 768 * 1024;
/// How often a running answer is looked at for text that is worth keeping.
const TICK: Duration = Duration::from_millis(250);

/// What a door shows of a talk.
#[derive(Debug)]
pub enum TalkEvent<'a> {
    /// The agent said something.
    Heard(&'a AgentEvent),
    /// An entry is durable now.
    Durable(&'a Entry),
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
    /// The session's answers came from another model.
    OtherModel {
        /// The model of the last answer.
        recorded: String,
        /// The model that answers now.
        now: String,
    },
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

/// Something that shows a talk: a terminal, a stream of JSON, a screen.
pub trait Door: Send {
    /// Shows what happened.
    fn show(&mut self, event: TalkEvent<'_>);
}

/// A talk between a human and an agent.
#[derive(Debug)]
pub struct Talk {
    chat: Chat,
    recorder: Recorder,
    agent: Arc<dyn Agent>,
    history: Vec<Utterance>,
    unsaved: bool,
    /// Whether no other program is in the session that this talk continues.
    alone: bool,
}

impl Talk {
    /// A talk that begins.
    pub fn begin(recorder: Recorder, agent: Arc<dyn Agent>) -> Talk {
        let speaker = Speaker::plain(agent.name(), SpeakerKind::Ai);
        let model = agent.model().map(str::to_owned);
        Talk {
            chat: Chat::new(human(), speaker, model),
            recorder,
            agent,
            history: Vec::new(),
            unsaved: false,
            alone: true,
        }
    }

    /// A talk that goes on: reads back what was said, and repairs what a crash left behind.
    pub async fn resume(
        mut recorder: Recorder,
        left: Option<SessionId>,
        agent: Arc<dyn Agent>,
        door: &mut dyn Door,
    ) -> StoreResult<Talk> {
        if let Some(from) = left {
            door.show(TalkEvent::Notice(Notice::SteppedAside {
                from,
                to: recorder.id(),
            }));
        } else if let Some(entry) = recorder.recover_draft().await? {
            let speaker = entry
                .message()
                .map(|message| message.speaker.display_name.clone());
            door.show(TalkEvent::Notice(Notice::Recovered {
                speaker: speaker.unwrap_or_default(),
            }));
            door.show(TalkEvent::Durable(&entry));
        }
        let mut talk = Talk::begin(recorder, agent);
        talk.alone = left.is_none();
        talk.read_back(door).await?;
        Ok(talk)
    }

    async fn read_back(&mut self, door: &mut dyn Door) -> StoreResult<()> {
        let Some(summary) = self.recorder.summary().cloned() else {
            return Ok(());
        };
        let size = |log: &crate::session::Log| {
            log.messages()
                .map(|(_, message)| message.content.len())
                .sum::<usize>()
        };
        let log = self
            .recorder
            .sessions()
            .load_back(&summary, |log| size(log) > CONTEXT_BYTES)
            .await?;
        self.history = log
            .messages()
            .map(|(_, message)| utterance(message))
            .collect();
        if !log.damage.is_empty() {
            door.show(TalkEvent::Notice(Notice::Damaged(log.damage)));
        }
        if summary.status == Status::Active && self.alone {
            door.show(TalkEvent::Notice(Notice::Unanswered));
        }
        if let (Some(recorded), Some(now)) = (&summary.model, self.agent.model())
            && recorded != now
        {
            let (recorded, now) = (recorded.clone(), now.to_owned());
            door.show(TalkEvent::Notice(Notice::OtherModel { recorded, now }));
        }
        Ok(())
    }

    /// The pen.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
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
        // The agent of this turn gets the words as typed; the log gets them without secrets.
        let asked = Utterance::plain(
            crate::entry::Role::User,
            &human().display_name,
            words.clone(),
        );
        let mut effects = VecDeque::from(self.chat.step(Event::Said(words)));
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Save(bodies) => effects.extend(self.save(bodies, door).await),
                Effect::Ask => effects.extend(self.ask(asked.clone(), door, cancel).await),
                Effect::KeepDraft(content) => self.keep_draft(content).await,
                Effect::TurnOver(end) => return end,
            }
        }
        TurnEnd::Refused
    }

    async fn save(&mut self, bodies: Vec<Body>, door: &mut dyn Door) -> Vec<Effect> {
        let said: Vec<Utterance> = bodies.iter().filter_map(utterance_of).collect();
        match self.recorder.record(bodies).await {
            Err(error) => {
                door.show(TalkEvent::Notice(Notice::Refused(error)));
                self.chat.step(Event::Refused)
            }
            Ok(recorded) => {
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
                match recorded.trouble {
                    Some(error) => {
                        self.unsaved = true;
                        self.history.extend(said);
                        door.show(TalkEvent::Notice(Notice::Unsaved(error)));
                    }
                    None => self.remember(&recorded.entries, said.len()),
                }
                self.chat.step(Event::Saved)
            }
        }
    }

    /// Later turns see what is in the log, not what was typed. Words that were held back before are
    /// in the history already.
    fn remember(&mut self, entries: &[Entry], new: usize) {
        let said: Vec<Utterance> = entries
            .iter()
            .filter_map(|entry| entry.message())
            .map(utterance)
            .collect();
        let known = said.len().saturating_sub(new);
        self.history.extend(said.into_iter().skip(known));
    }

    async fn ask(
        &mut self,
        asked: Utterance,
        door: &mut dyn Door,
        cancel: &CancellationToken,
    ) -> Vec<Effect> {
        let question = self.question(asked);
        let agent = self.agent.clone();
        let (floor, mut listener) = Floor::open(cancel);
        let answer = async move {
            let answer = agent.answer(&question, &floor).await;
            drop(floor);
            answer
        };
        tokio::pin!(answer);
        let mut tick = tokio::time::interval(TICK);
        let mut ended: Option<Result<Outcome, AgentError>> = None;
        loop {
            let event = tokio::select! {
                biased;
                event = listener.events.recv() => match event {
                    Some(event) => {
                        door.show(TalkEvent::Heard(&event));
                        Event::Heard(event, self.recorder.sessions().stamp().now())
                    }
                    // Everything that was said has been heard.
                    None => {
                        let result = match ended.take() {
                            Some(result) => result,
                            None => answer.as_mut().await,
                        };
                        return self.chat.step(Event::Ended(result.map(|_| ())));
                    }
                },
                result = answer.as_mut(), if ended.is_none() => {
                    ended = Some(result);
                    continue;
                }
                _ = tick.tick() => Event::Tick(self.recorder.sessions().stamp().now()),
            };
            for effect in self.chat.step(event) {
                if let Effect::KeepDraft(content) = effect {
                    self.keep_draft(content).await;
                }
            }
        }
    }

    fn question(&self, asked: Utterance) -> Question {
        let mut messages: Vec<Utterance> = Vec::new();
        let mut room = CONTEXT_BYTES.saturating_sub(asked.content.len());
        // The last of the history is what was just asked, as the log has it.
        for message in self.history.iter().rev().skip(1) {
            if message.content.len() > room {
                break;
            }
            room -= message.content.len();
            messages.push(message.clone());
        }
        messages.reverse();
        messages.push(asked);
        let total = self
            .recorder
            .summary()
            .map_or(0, |summary| summary.messages);
        let marker = self.recorder.sessions().stamp().entry_id().to_string();
        Question {
            total: total.max(messages.len() as u64),
            messages,
            marker,
            ..Question::default()
        }
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

fn utterance(message: &crate::entry::Message) -> Utterance {
    Utterance {
        calls: message.tool_calls.clone(),
        answers: message.tool_call_id.clone(),
        ..Utterance::plain(
            message.role,
            &message.speaker.display_name,
            message.content.clone(),
        )
    }
}

fn utterance_of(body: &Body) -> Option<Utterance> {
    match body {
        Body::Message(message) => Some(utterance(message)),
        _ => None,
    }
}
