//! The policy of a team: prompts the members that [`Router`] names, one at a time. `ask` builds their
//! prompts, and has what no prompt contains any more summarised before.

mod ask;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::events::{Ending, Event as Routed, Next, Output, TeamError, Turn, Voice, Why};
use super::memory::{Memory, Spoken};
use super::names::{self, Member};
use super::prompt::Layout;
use super::queue::Item;
use super::resume::{Resumed, ran, shown_names};
use super::routing::Router;
use super::summary::Summaries;
use crate::answer::TurnEnd;
use crate::conversation::TurnResult;
use crate::event::SessionEvent;
use crate::policy::{Answered, Effect, Event, LoggedMessage, View};
use crate::prompt::Prompt;
use tertulia_agents::{Agent, AgentError};
use tertulia_core::entry::plain;
use tertulia_core::entry::{Body, Role, Seated, ShellOutput, Speaker, SpeakerKind, Tasked};
use tertulia_core::id::{EntryId, Seq};
use tertulia_core::team::markers;

/// The participants of a team conversation, and its limits.
#[derive(Debug)]
pub struct TeamRoster {
    /// Id of the team.
    pub team: String,
    /// Path of the team file.
    pub file: Option<String>,
    /// All members, in the team's order.
    pub members: Vec<Member>,
    /// Agents by member id.
    pub agents: BTreeMap<String, TeamAgent>,
    /// Maximum number of agents' turns without a human; 0 for no limit.
    pub max_rounds: u32,
    /// Maximum number of earlier messages in a prompt.
    pub window: usize,
    /// Maximum size of a prompt in bytes.
    pub max_bytes: usize,
    /// Whether the messages that fall out of the context are summarised.
    pub summarise: bool,
}

impl TeamRoster {
    /// Returns the entry that a session of the team begins with.
    pub fn opening(&self) -> Seated {
        Seated {
            file: self.file.clone(),
            ..Seated::default()
        }
    }
}

/// A member that is an agent.
#[derive(Clone, Debug)]
pub struct TeamAgent {
    /// The agent, or why there is none: then its turns fail, and the conversation continues.
    pub agent: Result<Arc<dyn Agent>, AgentError>,
    /// Layout of its prompts.
    pub layout: Layout,
    /// System prompt: the member's role, and the team.
    pub system: String,
}

/// How a turn of a team ended.
#[derive(Debug)]
pub struct TeamTurn {
    /// Whose turn is next; `None` if the message was refused.
    pub next: Option<Next>,
    /// Failure of the last prompted agent, if it failed.
    pub failed: Option<AgentError>,
    /// Number of prompts to agents.
    pub asked: usize,
}

impl TeamTurn {
    /// Returns true if the turn ended with a failure, because the queue was empty after it.
    pub fn ended_by_failure(&self) -> bool {
        matches!(
            &self.next,
            Some(Next::WaitFor {
                why: Why::Failed,
                ..
            })
        )
    }

    /// Returns true if no agent was prompted, and no person either: the message addressed no member.
    pub fn asked_no_member(&self) -> bool {
        let why = match &self.next {
            Some(Next::WaitFor { why, .. }) => Some(why),
            _ => None,
        };
        self.asked == 0 && matches!(why, Some(Why::QueueEmpty | Why::Unresolved))
    }

    /// Returns true if the message addressed no member, and no agent was prompted.
    pub fn had_no_addressee(&self) -> bool {
        let idle = matches!(
            &self.next,
            Some(Next::WaitFor {
                why: Why::QueueEmpty,
                ..
            })
        );
        idle && self.asked == 0
    }
}

/// A team, whose members are prompted as their messages address each other.
#[derive(Debug)]
pub struct Team {
    router: Router,
    agents: BTreeMap<String, TeamAgent>,
    memory: Memory,
    summaries: Summaries,
    task: Option<String>,
    max_bytes: usize,
    /// Entry that links a replay to its original, to save with the first message.
    link: Option<Body>,
    /// Roster entry to save with the next message.
    seated: Option<Seated>,
    /// The last message of a person, until an agent answers it.
    unanswered: Option<EntryId>,
    /// The same message, if the user stopped the turn before an answer.
    withdrawn: Option<EntryId>,
    stage: Stage,
    /// Failure of the last prompted agent of this turn, if it failed.
    failed: Option<AgentError>,
    /// Number of prompts in this turn.
    asked: usize,
}

/// What the policy waits for.
#[derive(Debug, Default)]
enum Stage {
    /// A person's message.
    #[default]
    Idle,
    /// The message of this member to be saved.
    Hearing(String),
    /// A summary by the member that is to be prompted next.
    Summarising(Turn, Item),
    /// The answer of a prompted agent.
    Asking {
        turn: Turn,
        parent: EntryId,
        speaker: Speaker,
    },
}

impl Team {
    /// Creates the policy of a new session.
    pub fn begin(roster: TeamRoster) -> Result<Team, TeamError> {
        let seated = roster.opening();
        Team::new(roster, seated)
    }

    /// Creates the policy of a resumed session: the queue is empty, and the first human has the
    /// turn.
    pub fn resume(
        roster: TeamRoster,
        resumed: Resumed,
        shown: &mut Vec<SessionEvent>,
    ) -> Result<Team, TeamError> {
        let mut team = Team::new(roster, resumed.seated)?;
        team.summaries.resume(resumed.summary, resumed.is_partial);
        for spoken in resumed.messages {
            team.memory.add(spoken, None);
        }
        team.forget();
        let restored = team.router.step(Routed::Restored {
            last: resumed.last,
            task: resumed.task,
        });
        team.show(restored, shown);
        Ok(team)
    }

    fn new(roster: TeamRoster, seated: Seated) -> Result<Team, TeamError> {
        Ok(Team {
            router: Router::new(roster.members, roster.max_rounds)?,
            agents: roster.agents,
            memory: Memory::new(roster.window, roster.max_bytes),
            summaries: Summaries::new(roster.summarise, roster.window, roster.max_bytes),
            task: None,
            max_bytes: roster.max_bytes,
            link: None,
            seated: Some(seated),
            unanswered: None,
            withdrawn: None,
            stage: Stage::Idle,
            failed: None,
            asked: 0,
        })
    }

    /// Adds the entry that links a replay to its original.
    #[must_use]
    pub fn with_link(mut self, link: Option<Body>) -> Team {
        self.link = link;
        self
    }

    /// Returns the router: members, queue, and whose turn it is.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Returns the team's task.
    pub fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// Returns the entries that are to be saved before the next message.
    pub fn opening(&self) -> Vec<Body> {
        let seated = self.seated.clone().map(Body::Seated);
        self.link.clone().into_iter().chain(seated).collect()
    }

    /// The opening is saved.
    pub fn opened(&mut self) {
        (self.link, self.seated) = (None, None);
    }

    /// Remembers a shell command of the user.
    pub fn ran(&mut self, seq: Option<Seq>, command: &str, output: &ShellOutput) {
        self.memory.end_turn();
        let spoken = ran(self.router.members(), (output.run, seq), command, output);
        self.memory.add(spoken, None);
    }

    /// Returns all agents.
    pub fn agents(&self) -> Vec<Arc<dyn Agent>> {
        let agents = self.agents.values();
        agents
            .filter_map(|agent| agent.agent.clone().ok())
            .collect()
    }

    /// Processes an event.
    pub fn step(&mut self, event: Event, view: &View<'_>, shown: &mut Vec<SessionEvent>) -> Effect {
        match (std::mem::take(&mut self.stage), event) {
            (_, Event::Said { by, prompt }) => self.take_message(by, prompt, view),
            (Stage::Hearing(by), Event::Saved(mut saved)) => {
                self.opened();
                let Some(message) = saved.pop() else {
                    return self.wait(None);
                };
                self.remember(&message, None);
                self.unanswered = Some(message.id);
                let outputs = self.router.step(Routed::Said {
                    by: Voice::Human(by),
                    id: message.id,
                    text: message.message.content,
                });
                self.follow(outputs, view, shown)
            }
            (
                Stage::Asking {
                    turn,
                    parent,
                    speaker,
                },
                Event::Answered(answered),
            ) => {
                let outputs = self.answered(turn, parent, &speaker, answered, shown);
                self.forget();
                self.follow(outputs, view, shown)
            }
            (Stage::Summarising(turn, item), Event::Summarised(result)) => {
                if !view.cancelled {
                    self.summaries.end(result);
                }
                self.go_on(Some(Next::Ask { turn, item }), true, view, shown)
            }
            _ => self.wait(None),
        }
    }

    /// Saves a person's message.
    fn take_message(&mut self, by: Option<String>, prompt: Prompt, view: &View<'_>) -> Effect {
        (self.failed, self.asked) = (None, 0);
        self.memory.end_turn();
        if let Some(id) = self.withdrawn.take() {
            self.memory.withdraw(id);
        }
        // The log has the task without secrets.
        if let Some(meta) = view.meta.filter(|_| !view.unsaved) {
            self.task.clone_from(&meta.task);
        }
        let mut members = self.router.members().iter();
        let Some(sender) = members.find(|member| Some(&member.id) == by.as_ref()) else {
            return self.wait(None);
        };
        let mut message = plain(&sender.speaker(), Role::User, prompt.text);
        message.attachments = prompt.attached;
        message.client_id = prompt.client_id;
        message.addressees = self.router.addressees(&sender.id, &message.content);
        self.stage = Stage::Hearing(sender.id.clone());
        let before = self.opening().into_iter();
        Effect::Append(before.chain([Body::Message(message)]).collect())
    }

    /// Prompts the next agent, or gives a person the turn.
    fn follow(
        &mut self,
        outputs: Vec<Output>,
        view: &View<'_>,
        shown: &mut Vec<SessionEvent>,
    ) -> Effect {
        let next = self.show(outputs, shown);
        self.go_on(next, false, view, shown)
    }

    /// The same, after the router's outputs were shown. `is_summarised` tells that a summary was tried
    /// for the next prompt.
    fn go_on(
        &mut self,
        next: Option<Next>,
        is_summarised: bool,
        view: &View<'_>,
        shown: &mut Vec<SessionEvent>,
    ) -> Effect {
        match next {
            Some(Next::Ask { .. }) if view.cancelled => {
                self.withdrawn = self.unanswered.take();
                let stopped = self.router.step(Routed::CancelledAll);
                let next = self.show(stopped, shown);
                self.forget();
                self.wait(next)
            }
            Some(Next::Ask { turn, item }) => self.ask(turn, item, is_summarised),
            next => self.wait(next),
        }
    }

    fn wait(&mut self, next: Option<Next>) -> Effect {
        Effect::WaitFor(TurnResult::Team(TeamTurn {
            next,
            failed: self.failed.take(),
            asked: self.asked,
        }))
    }

    /// Shows and applies the router's outputs. Returns whose turn is next.
    fn show(&mut self, outputs: Vec<Output>, shown: &mut Vec<SessionEvent>) -> Option<Next> {
        let mut next = None;
        for output in outputs {
            shown.push(SessionEvent::Routed {
                output: output.clone(),
            });
            match output {
                Output::TeamTask(task) => self.task = Some(task.text),
                Output::Next(turn) => next = Some(turn),
                Output::Unresolved(_)
                | Output::Queue(_)
                | Output::Stopped { .. }
                | Output::NotRouted(_) => {}
            }
        }
        next
    }

    fn answered(
        &mut self,
        turn: Turn,
        parent: EntryId,
        speaker: &Speaker,
        answered: Answered,
        shown: &mut Vec<SessionEvent>,
    ) -> Vec<Output> {
        for message in &answered.said {
            self.remember(message, Some(parent));
        }
        if !answered.said.is_empty() {
            self.unanswered = None;
        }
        self.failed = None;
        let mut outputs = Vec::new();
        let how = match answered.end {
            TurnEnd::Cancelled => {
                self.withdrawn = self.unanswered.take();
                self.keep_task(&answered.said);
                return self.router.step(Routed::CancelledAll);
            }
            TurnEnd::Failed(error) => {
                shown.push(SessionEvent::Failed {
                    speaker: speaker.clone(),
                    error: error.clone(),
                });
                self.failed = Some(error);
                self.keep_task(&answered.said);
                Ending::Failed
            }
            TurnEnd::Refused => {
                self.keep_task(&answered.said);
                Ending::Failed
            }
            TurnEnd::Answered => {
                for message in answered.said {
                    outputs.extend(self.router.step(Routed::Said {
                        by: Voice::Ai(turn),
                        id: message.id,
                        text: message.message.content,
                    }));
                }
                Ending::Finished
            }
        };
        outputs.extend(self.router.step(Routed::Ended { turn, how }));
        outputs
    }

    /// Applies the task of an answer that did not finish: its addressees are not prompted, but the
    /// log has its task.
    fn keep_task(&mut self, said: &[LoggedMessage]) {
        let mut whole = said.iter().rev().filter(|said| !said.message.interrupted);
        if let Some(task) = whole.find_map(|said| markers::parse(&said.message.content).task) {
            self.task = Some(markers::cut_task(&task).text);
        }
    }

    fn remember(&mut self, said: &LoggedMessage, replies_to: Option<EntryId>) {
        let message = &said.message;
        let spoken = Spoken {
            id: said.id,
            seq: said.seq,
            by: message.speaker.id.clone(),
            from: message.speaker.prompt_name().to_owned(),
            to: shown_names(self.router.members(), &message.addressees),
            replies_to,
            text: markers::shown(&message.content),
            attachments: message.attachments.clone(),
        };
        let redacted = said.logged.as_deref().map(markers::shown);
        self.memory.add(spoken, redacted);
    }

    /// Resolves the `[NEXT]` markers of messages to addressees and records `[TEAM_TASK]`, in the
    /// same append as the messages.
    pub fn addressed(&self, bodies: Vec<Body>) -> Vec<Body> {
        let mut all = Vec::with_capacity(bodies.len());
        for mut body in bodies {
            let mut task = None;
            if let Body::Message(message) = &mut body
                && matches!(message.speaker.kind, SpeakerKind::Human | SpeakerKind::Ai)
                && !message.interrupted
            {
                let read = markers::parse(&message.content);
                if message.addressees.is_empty() {
                    message.addressees = names::resolve(self.router.members(), &read.next);
                }
                task = read.task.map(|task| markers::cut_task(&task).text);
            }
            all.push(body);
            all.extend(task.map(|task| Body::Tasked(Tasked { task })));
        }
        all
    }
}
