//! Conversation of a team: carries out the decisions of [`Router`], one answer at a time.

mod restore;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::chat::TurnEnd;
use super::event::SessionEvent;
use super::frontend::Frontend;
use super::log_writer::LogWriter;
use super::runner::{Answered, LoggedMessage, Participant, PromptOverride, RunOptions, Runner};
use super::team::events::{Ending, Event, Next, Output, SenderError, TeamError, Turn, Voice, Why};
use super::team::memory::{Memory, Spoken};
use super::team::names::Member;
use super::team::prompt::{Layout, Material, prompt};
use super::team::queue::Item;
use super::team::routing::Router;
use tertulia_agents::demo::Demo;
use tertulia_agents::{Agent, AgentError, Part, PromptMessage, ToolSide};
use tertulia_core::entry::plain;
use tertulia_core::entry::{Body, Role, Seated};
use tertulia_core::id::EntryId;
use tertulia_core::team::markers;

pub use restore::{MemberMap, ResumeError, ResumePlan, resume_plan};

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
    pub places: BTreeMap<String, TeamAgent>,
    /// Maximum number of agents' turns without a human; 0 for no limit.
    pub max_rounds: u32,
    /// Maximum number of earlier messages in a prompt.
    pub window: usize,
    /// Maximum size of a prompt in bytes.
    pub max_bytes: usize,
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
    pub floor: Option<Next>,
    /// Failure of the last prompted agent, if it failed.
    pub failed: Option<AgentError>,
    /// Number of prompts to agents.
    pub asked: usize,
}

impl TeamTurn {
    /// Returns true if the turn ended with a failure, because the queue was empty after it.
    pub fn ended_by_failure(&self) -> bool {
        matches!(
            &self.floor,
            Some(Next::WaitFor {
                why: Why::Failed,
                ..
            })
        )
    }

    /// Returns true if the message addressed no member, and no agent was prompted.
    pub fn went_to_nobody(&self) -> bool {
        let idle = matches!(
            &self.floor,
            Some(Next::WaitFor {
                why: Why::NobodyNext,
                ..
            })
        );
        idle && self.asked == 0
    }
}

/// A running team conversation.
#[derive(Debug)]
pub struct TeamConversation {
    runner: Runner,
    router: Router,
    places: BTreeMap<String, TeamAgent>,
    memory: Memory,
    task: Option<String>,
    max_bytes: usize,
    /// Roster entry to save with the next message.
    seated: Option<Seated>,
    /// Redacted texts of this turn's messages with secrets: later turns get these.
    cleaned: Vec<(EntryId, String)>,
    /// The last message of a person, until an agent answers it.
    unanswered: Option<EntryId>,
    /// The same message, if the user stopped the turn before an answer.
    withdrawn: Option<EntryId>,
}

impl TeamConversation {
    /// Creates the conversation of a new session.
    pub fn begin(
        writer: LogWriter,
        seating: TeamRoster,
        options: RunOptions,
    ) -> Result<TeamConversation, TeamError> {
        let seated = seating.opening();
        let runner = Runner::begin(writer, nobody(), options);
        TeamConversation::around(runner, seating, Some(seated))
    }

    fn around(
        mut runner: Runner,
        seating: TeamRoster,
        seated: Option<Seated>,
    ) -> Result<TeamConversation, TeamError> {
        runner.seat_members(seating.members.clone());
        Ok(TeamConversation {
            runner,
            router: Router::new(seating.members, seating.max_rounds)?,
            places: seating.places,
            memory: Memory::new(seating.window, seating.max_bytes),
            task: None,
            max_bytes: seating.max_bytes,
            seated,
            cleaned: Vec::new(),
            unanswered: None,
            withdrawn: None,
        })
    }

    /// Returns the runner.
    pub fn runner(&self) -> &Runner {
        &self.runner
    }

    /// Returns the runner for changes.
    pub fn runner_mut(&mut self) -> &mut Runner {
        &mut self.runner
    }

    /// Returns the router: members, queue, and whose turn it is.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// Returns the team's task.
    pub fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// Lets the agents end their processes.
    pub async fn leave(&self) {
        for place in self.places.values() {
            if let Ok(agent) = &place.agent {
                agent.leave().await;
            }
        }
    }

    /// Runs one turn: saves a person's message and prompts the addressed agents, until a person has
    /// the turn again. `seat` names the sender; without it, see [`Router::sender`].
    pub async fn turn(
        &mut self,
        seat: Option<&str>,
        words: String,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Result<TeamTurn, SenderError> {
        let sender = self.router.sender(seat, &words)?.clone();
        for (id, text) in self.cleaned.drain(..) {
            self.memory.reword(id, text);
        }
        if let Some(id) = self.withdrawn.take() {
            self.memory.withdraw(id);
        }
        self.task_as_logged();
        let mut message = plain(&sender.speaker(), Role::User, words);
        message.addressees = self.router.addressees(&sender.id, &message.content);
        let before = self.seated.clone().map(Body::Seated).into_iter().collect();
        let Some(kept) = self.runner.hear(before, message, frontend).await else {
            return Ok(TeamTurn {
                floor: None,
                failed: None,
                asked: 0,
            });
        };
        self.seated = None;
        self.remember(&kept, None);
        self.unanswered = Some(kept.id);
        let said = self.router.step(Event::Said {
            by: Voice::Human(sender.id),
            id: kept.id,
            text: kept.message.content,
        });
        Ok(self.follow(said, frontend, cancel).await)
    }

    /// Prompts the next agent until a person has the turn.
    async fn follow(
        &mut self,
        mut outputs: Vec<Output>,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> TeamTurn {
        let (mut failed, mut asked) = (None, 0);
        loop {
            let next = self.show(outputs, frontend);
            outputs = match next {
                Some(Next::Ask { .. }) if cancel.is_cancelled() => {
                    self.withdrawn = self.unanswered.take();
                    self.router.step(Event::CancelledAll)
                }
                Some(Next::Ask { turn, item }) => {
                    let (outputs, error) = self.ask(turn, &item, frontend, cancel).await;
                    failed = error;
                    asked += 1;
                    outputs
                }
                floor => {
                    return TeamTurn {
                        floor,
                        failed,
                        asked,
                    };
                }
            };
            self.forget();
        }
    }

    /// Shows and applies the router's outputs. Returns whose turn is next.
    fn show(&mut self, outputs: Vec<Output>, frontend: &mut dyn Frontend) -> Option<Next> {
        let mut next = None;
        for output in outputs {
            frontend.show(SessionEvent::Routed {
                output: output.clone(),
            });
            match output {
                Output::TeamTask(task) => self.task = Some(task.text),
                Output::Next(floor) => next = Some(floor),
                Output::Unresolved(_)
                | Output::Queue(_)
                | Output::Stopped { .. }
                | Output::NotRouted(_) => {}
            }
        }
        next
    }

    async fn ask(
        &mut self,
        turn: Turn,
        item: &Item,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> (Vec<Output>, Option<AgentError>) {
        let answered = self.answer(item, frontend, cancel).await;
        for kept in &answered.said {
            self.remember(kept, Some(item.request.parent));
        }
        if !answered.said.is_empty() {
            self.unanswered = None;
        }
        let mut outputs = Vec::new();
        let how = match &answered.end {
            TurnEnd::Cancelled => {
                self.withdrawn = self.unanswered.take();
                self.keep_task(&answered.said);
                return (self.router.step(Event::CancelledAll), None);
            }
            TurnEnd::Failed(_) | TurnEnd::Refused => {
                self.keep_task(&answered.said);
                Ending::Failed
            }
            TurnEnd::Answered => {
                for kept in answered.said {
                    outputs.extend(self.router.step(Event::Said {
                        by: Voice::Ai(turn),
                        id: kept.id,
                        text: kept.message.content,
                    }));
                }
                Ending::Finished
            }
        };
        outputs.extend(self.router.step(Event::Ended { turn, how }));
        let failed = match answered.end {
            TurnEnd::Failed(error) => Some(error),
            _ => None,
        };
        (outputs, failed)
    }

    /// Applies the task of an answer that did not finish: its addressees are not prompted, but the
    /// log has its task.
    fn keep_task(&mut self, said: &[LoggedMessage]) {
        let mut whole = said.iter().rev().filter(|kept| !kept.message.interrupted);
        if let Some(task) = whole.find_map(|kept| markers::parse(&kept.message.content).task) {
            self.task = Some(markers::cut_task(&task).text);
        }
    }

    /// Takes the task from the log, which has it without secrets.
    fn task_as_logged(&mut self) {
        let writer = self.runner.writer();
        if let Some(meta) = writer.meta().filter(|_| !writer.has_unsaved()) {
            self.task.clone_from(&meta.task);
        }
    }

    async fn answer(
        &mut self,
        item: &Item,
        frontend: &mut dyn Frontend,
        cancel: &CancellationToken,
    ) -> Answered {
        let members = self.router.members();
        let asked = members
            .iter()
            .find(|member| member.id == item.request.target);
        let place = self.places.get(&item.request.target);
        let (Some(asked), Some(place)) = (asked, place) else {
            // Unreachable: the queue holds only members, and the router does not prompt people.
            return Answered {
                end: TurnEnd::Refused,
                said: Vec::new(),
            };
        };
        let speaker = asked.speaker();
        frontend.show(SessionEvent::Asked {
            speaker: speaker.clone(),
        });
        let answered = match place.agent.clone() {
            Ok(agent) => {
                let prompt_override = self.prompt_override(place, agent.tools(), item);
                let seat = Participant { agent, speaker };
                let answered = self
                    .runner
                    .answer(&seat, prompt_override, frontend, cancel)
                    .await;
                (answered, seat.speaker)
            }
            Err(error) => {
                self.runner.fail(&speaker, &error, frontend).await;
                let answered = Answered {
                    end: TurnEnd::Failed(error),
                    said: Vec::new(),
                };
                (answered, speaker)
            }
        };
        if let (
            Answered {
                end: TurnEnd::Failed(error),
                ..
            },
            speaker,
        ) = &answered
        {
            frontend.show(SessionEvent::Failed {
                speaker: speaker.clone(),
                error: error.clone(),
            });
        }
        answered.0
    }

    /// Builds the prompt for a queued request.
    fn prompt_override(&self, place: &TeamAgent, tools: ToolSide, item: &Item) -> PromptOverride {
        let Some(recalled) = self.memory.recall(item.request.parent) else {
            return PromptOverride::default();
        };
        let material = Material {
            system: &place.system,
            system_apart: tools == ToolSide::Ours,
            task: self.task.as_deref(),
            recalled: &recalled,
            intent: item.request.intent,
        };
        let words = prompt(place.layout, &material, self.max_bytes);
        let newest = recalled.message;
        PromptOverride {
            messages: vec![PromptMessage::plain(Role::User, &newest.from, words)],
            part: Part {
                system: place.system.clone(),
                from: newest.from.clone(),
                words: newest.text.clone(),
                next: hand_over(&place.system),
                ..Part::default()
            },
            thread: None,
            shorten: false,
        }
    }

    fn remember(&mut self, kept: &LoggedMessage, replies_to: Option<EntryId>) {
        if let Some(logged) = &kept.logged {
            self.cleaned.push((kept.id, markers::shown(logged)));
        }
        let message = &kept.message;
        self.memory.hear(Spoken {
            id: kept.id,
            by: message.speaker.id.clone(),
            from: message.speaker.display_name.clone(),
            to: restore::shown_names(self.router.members(), &message.addressees),
            replies_to,
            text: markers::shown(&message.content),
        });
    }

    fn forget(&mut self) {
        let waiting = self.router.queue().items().iter();
        let mut awaited: Vec<EntryId> = waiting.map(|item| item.request.parent).collect();
        awaited.extend(self.router.asked().map(|(_, item)| item.request.parent));
        self.memory.forget(&awaited);
    }
}

/// Returns a placeholder agent for the runner, until the first member is prompted.
fn nobody() -> Arc<dyn Agent> {
    Arc::new(Demo::new("nobody", std::time::Duration::ZERO))
}

/// Returns the names in the `[NEXT]` markers of a member's instructions.
fn hand_over(system: &str) -> Vec<String> {
    let next = markers::parse(system).next.into_iter();
    next.map(|addressee| addressee.name).collect()
}
