//! Turn-taking in a team as a pure state machine: messages and ends of turns in, outputs as data.
//!
//! ```text
//! human's message → markers → queue → Ask ── Said … Ended ──→ queue → Ask …
//!                                      └→ WaitFor a human ←── the queue is empty, or a human is next
//! ```
//!
//! Invariant: after every event either an agent is prompted or a human has the turn. Each prompt is
//! a [`Turn`]: messages of a turn that is over have no effect.

#[cfg(test)]
mod tests;

use super::events::{
    Ending, Event, Missed, Next, Output, QueueUpdate, SenderError, TeamError, Turn, Unresolved,
    Voice, Why,
};
use super::mentions;
use super::names::{self, Member};
use super::queue::{Change, Item, Queue, Request};
use tertulia_core::entry::Addressee;
use tertulia_core::id::EntryId;
use tertulia_core::team::markers::{self, Drop, Markers};

/// The state machine.
#[derive(Clone, Debug)]
pub struct Router {
    /// In the team's order.
    members: Vec<Member>,
    first_human: String,
    /// No limit if 0.
    max_rounds: u32,
    /// Turns of agents since the last message of a human.
    rounds: u32,
    turns: u64,
    queue: Queue,
    whose_turn: WhoseTurn,
}

#[derive(Clone, Debug)]
enum WhoseTurn {
    /// No message yet.
    NotBegun,
    Human(String),
    Ai(Asked),
}

#[derive(Clone, Debug)]
struct Asked {
    turn: Turn,
    item: Item,
    has_spoken: bool,
    /// Result of the names that the agent has addressed.
    reached: Reached,
}

/// Result of resolving the addressed names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    NoneAddressed,
    NoMember,
    Members,
}

impl Router {
    /// Creates a router for a new session. `max_rounds` is the maximum number of agents' turns
    /// without a human, 0 for no limit.
    pub fn new(mut members: Vec<Member>, max_rounds: u32) -> Result<Router, TeamError> {
        members.sort_by_key(|member| member.order);
        for (place, member) in members.iter().enumerate() {
            if members[..place].iter().any(|other| other.id == member.id) {
                return Err(TeamError::SameId(member.id.clone()));
            }
        }
        let first_human = members.iter().find(|member| member.is_human());
        let first_human = first_human.ok_or(TeamError::NoHuman)?.id.clone();
        Ok(Router {
            members,
            first_human,
            max_rounds,
            rounds: 0,
            turns: 0,
            queue: Queue::default(),
            whose_turn: WhoseTurn::NotBegun,
        })
    }

    /// Determines the sender of a person's message: the explicit name, else the `[FROM]` marker,
    /// else the human who has the turn, else the only human.
    pub fn sender(&self, explicit: Option<&str>, text: &str) -> Result<&Member, SenderError> {
        let from = || markers::parse(text).from;
        if let Some(name) = explicit.map(str::to_owned).or_else(from) {
            return self.human(name);
        }
        let mut humans = self.members.iter().filter(|member| member.is_human());
        if let WhoseTurn::Human(waiting) = &self.whose_turn
            && let Some(human) = humans.clone().find(|human| human.id == *waiting)
        {
            return Ok(human);
        }
        match (humans.next(), humans.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(SenderError::Ambiguous {
                humans: self.humans(),
            }),
        }
    }

    /// Returns the addressees of a person's message, for the log.
    pub fn addressees(&self, by: &str, text: &str) -> Vec<Addressee> {
        names::resolve(&self.members, &self.markers(by, text).next)
    }

    /// Returns the markers of a person's message, with the members mentioned at its beginning.
    /// Without either and with an idle queue, uses the speaker's default addressees.
    fn markers(&self, by: &str, text: &str) -> Markers {
        let mut markers = markers::parse(text);
        let mut next = mentions::leading(&self.members, text);
        next.append(&mut markers.next);
        markers.next = next;
        let idle = self.queue.items().is_empty() && self.asked().is_none();
        let speaker = self.members.iter().find(|member| member.id == by);
        if let Some(speaker) = speaker.filter(|_| idle && markers.next.is_empty()) {
            markers.next.clone_from(&speaker.usual);
        }
        markers
    }

    /// Processes an event. [`Output::Next`] comes last, and only if the turn changes.
    pub fn step(&mut self, event: Event) -> Vec<Output> {
        match event {
            Event::Said { by, id, text } => match by {
                Voice::Human(member) => self.human_said(&member, id, &text),
                Voice::Ai(turn) => self.ai_said(turn, id, &text),
            },
            Event::Ended { turn, how } => self.ended(turn, how),
            Event::CancelledAll => self.stop(),
            Event::Restored { last, task } => self.restore(last, task.as_deref()),
        }
    }

    /// Members, in the team's order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the human who has the turn; `None` if an agent is answering or there is no message
    /// yet.
    pub fn waiting(&self) -> Option<&str> {
        match &self.whose_turn {
            WhoseTurn::Human(human) => Some(human),
            WhoseTurn::NotBegun | WhoseTurn::Ai(_) => None,
        }
    }

    /// Returns the request that is being answered, and its turn.
    pub fn asked(&self) -> Option<(Turn, &Item)> {
        match &self.whose_turn {
            WhoseTurn::Ai(asked) => Some((asked.turn, &asked.item)),
            WhoseTurn::NotBegun | WhoseTurn::Human(_) => None,
        }
    }

    fn human_said(&mut self, by: &str, id: EntryId, text: &str) -> Vec<Output> {
        if !self.is_human(by) {
            return vec![Output::NotRouted(id)];
        }
        self.rounds = 0;
        self.queue.said(id);
        let markers = self.markers(by, text);
        let (mut outputs, reached) = self.route(id, markers);
        if self.asked().is_some() {
            // A human's message during an agent's answer: the agent continues, and the addressees
            // are queued.
            return outputs;
        }
        outputs.extend(match reached {
            Reached::NoMember => self.wait_for(by.to_owned(), Why::Unresolved),
            Reached::Members | Reached::NoneAddressed => self.advance(Why::QueueEmpty),
        });
        outputs
    }

    fn ai_said(&mut self, turn: Turn, id: EntryId, text: &str) -> Vec<Output> {
        if !self.is_on(turn) {
            return vec![Output::NotRouted(id)];
        }
        let (outputs, reached) = self.route(id, markers::parse(text));
        if let WhoseTurn::Ai(asked) = &mut self.whose_turn {
            // An answer may have several messages: replies are to the one that addressed a member.
            if reached != Reached::NoneAddressed || !asked.has_spoken {
                self.queue.said(id);
            }
            asked.has_spoken = true;
            asked.reached = asked.reached.max(reached);
        }
        outputs
    }

    fn ended(&mut self, turn: Turn, how: Ending) -> Vec<Output> {
        match &self.whose_turn {
            WhoseTurn::Ai(asked) if asked.turn == turn => match asked.reached {
                Reached::NoMember => self.wait_for(self.first_human.clone(), Why::Unresolved),
                Reached::Members | Reached::NoneAddressed => self.advance(match how {
                    Ending::Finished => Why::QueueEmpty,
                    Ending::Failed => Why::Failed,
                    Ending::Cancelled => Why::Stopped,
                }),
            },
            // The turn was stopped, and the next one has begun already.
            WhoseTurn::NotBegun | WhoseTurn::Human(_) | WhoseTurn::Ai(_) => Vec::new(),
        }
    }

    fn stop(&mut self) -> Vec<Output> {
        let cut_off = self.asked().map(|(_, item)| item.request.target.clone());
        let dropped = self.queue.clear();
        let mut unheard: Vec<String> = Vec::new();
        for item in &dropped {
            if !unheard.contains(&item.request.target) {
                unheard.push(item.request.target.clone());
            }
        }
        let changes: Vec<Change> = dropped.into_iter().map(Change::Dropped).collect();
        self.whose_turn = WhoseTurn::Human(self.first_human.clone());
        let mut outputs = vec![Output::Stopped { cut_off, unheard }];
        outputs.push(self.queue_update(changes));
        outputs.push(waiting(&self.first_human, Why::Stopped));
        outputs
    }

    fn restore(&mut self, last: Option<EntryId>, task: Option<&str>) -> Vec<Output> {
        self.queue = Queue::default();
        if let Some(last) = last {
            self.queue.said(last);
        }
        self.rounds = 0;
        let mut outputs = Vec::new();
        outputs.extend(task.map(|task| Output::TeamTask(markers::cut_task(task))));
        outputs.extend(self.wait_for(self.first_human.clone(), Why::Restored));
        outputs
    }

    /// Applies the markers of a message, without changing the turn.
    fn route(&mut self, id: EntryId, markers: Markers) -> (Vec<Output>, Reached) {
        let mut outputs = Vec::new();
        outputs.extend(
            markers
                .task
                .map(|task| Output::TeamTask(markers::cut_task(&task))),
        );
        let mut changes = Vec::new();
        if let Some(drop) = markers.drop {
            let (dropped, missed) = self.drop(drop);
            changes.extend(dropped.into_iter().map(Change::Dropped));
            outputs.extend(self.unresolved(missed, Missed::Drop));
        }
        let mut missed = Vec::new();
        let mut reached = Reached::NoneAddressed;
        for addressee in markers.next {
            match names::find(&self.members, &addressee.name) {
                Some(member) => {
                    reached = Reached::Members;
                    changes.push(self.queue.put(Request {
                        target: member.id.clone(),
                        parent: id,
                        trigger: id,
                        intent: addressee.intent,
                    }));
                }
                None => {
                    reached = reached.max(Reached::NoMember);
                    missed.push(addressee.name);
                }
            }
        }
        let what = match reached {
            Reached::Members => Missed::Some,
            Reached::NoMember | Reached::NoneAddressed => Missed::All,
        };
        outputs.extend(self.unresolved(missed, what));
        if !changes.is_empty() {
            outputs.push(self.queue_update(changes));
        }
        (outputs, reached)
    }

    /// Removes members from the queue; also returns the names that no member has.
    fn drop(&mut self, drop: Drop) -> (Vec<Item>, Vec<String>) {
        let names = match drop {
            Drop::All => return (self.queue.clear(), Vec::new()),
            Drop::Names(names) => names,
        };
        let mut dropped = Vec::new();
        let mut missed = Vec::new();
        for name in names {
            match names::find(&self.members, &name) {
                Some(member) => dropped.extend(self.queue.drop_target(&member.id)),
                None => missed.push(name),
            }
        }
        (dropped, missed)
    }

    /// Gives the turn to the next request, or to the first human with the reason `idle`.
    fn advance(&mut self, idle: Why) -> Vec<Output> {
        // Works on a copy of the queue: a request that may not run now stays queued.
        let mut after = self.queue.clone();
        let Some(next) = after.take() else {
            return self.wait_for(self.first_human.clone(), idle);
        };
        if self.is_human(&next.request.target) {
            self.queue = after;
            return self.wait_for(next.request.target, Why::Addressed(next.request.trigger));
        }
        if self.max_rounds > 0 && self.rounds >= self.max_rounds {
            return self.pause();
        }
        self.queue = after;
        self.ask(next)
    }

    fn ask(&mut self, item: Item) -> Vec<Output> {
        self.rounds = self.rounds.saturating_add(1);
        self.turns += 1;
        let turn = Turn(self.turns);
        self.whose_turn = WhoseTurn::Ai(Asked {
            turn,
            item: item.clone(),
            has_spoken: false,
            reached: Reached::NoneAddressed,
        });
        vec![
            self.queue_update(Vec::new()),
            Output::Next(Next::Ask { turn, item }),
        ]
    }

    fn wait_for(&mut self, human: String, why: Why) -> Vec<Output> {
        let next = waiting(&human, why);
        self.whose_turn = WhoseTurn::Human(human);
        vec![self.queue_update(Vec::new()), next]
    }

    fn pause(&mut self) -> Vec<Output> {
        let human = self.first_human.clone();
        self.whose_turn = WhoseTurn::Human(human.clone());
        let rounds = self.rounds;
        vec![
            self.queue_update(Vec::new()),
            Output::Next(Next::Paused { human, rounds }),
        ]
    }

    fn queue_update(&self, changes: Vec<Change>) -> Output {
        Output::Queue(QueueUpdate {
            changes,
            pending: self.queue.items().to_vec(),
            asked: self.asked().map(|(_, item)| item.clone()),
            stats: self.queue.stats(),
        })
    }

    fn is_on(&self, turn: Turn) -> bool {
        self.asked().is_some_and(|(asked, _)| asked == turn)
    }

    fn is_human(&self, id: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.id == id && member.is_human())
    }

    fn unresolved(&self, names: Vec<String>, what: Missed) -> Option<Output> {
        let available = self.members.iter().map(|member| member.name.clone());
        (!names.is_empty()).then(|| {
            Output::Unresolved(Unresolved {
                names,
                available: available.collect(),
                what,
            })
        })
    }

    fn human(&self, name: String) -> Result<&Member, SenderError> {
        let humans = self.humans();
        // An exact id takes precedence over a normalised name.
        let exact = self.members.iter().find(|member| member.id == name);
        match exact.or_else(|| names::find(&self.members, &name)) {
            Some(member) if member.is_human() => Ok(member),
            Some(_) => Err(SenderError::NotHuman { name, humans }),
            None => Err(SenderError::Unknown { name, humans }),
        }
    }

    fn humans(&self) -> Vec<String> {
        let humans = self.members.iter().filter(|member| member.is_human());
        humans.map(|human| human.name.clone()).collect()
    }
}

fn waiting(human: &str, why: Why) -> Output {
    Output::Next(Next::WaitFor {
        human: human.to_owned(),
        why,
    })
}
