//! Who has the floor, as a pure machine: what is said and done comes in, what follows goes out as data.
//!
//! ```text
//! a human says → markers → queue → Ask ── said … ended ──→ queue → Ask …
//!                                   └→ WaitFor a human ←── nobody is next, or a human is
//! ```
//!
//! Whatever happens, somebody is being asked or a human is waited for. Each asking is a [`Turn`]: what
//! comes from one that is over moves nobody.

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

/// The machine.
#[derive(Clone, Debug)]
pub struct Router {
    /// In the team's order.
    members: Vec<Member>,
    first_human: String,
    /// No limit if 0.
    max_rounds: u32,
    /// Turns of agents since a human spoke.
    rounds: u32,
    turns: u64,
    queue: Queue,
    floor: Floor,
}

#[derive(Clone, Debug)]
enum Floor {
    /// Nobody has spoken yet.
    Open,
    Human(String),
    Ai(Asked),
}

#[derive(Clone, Debug)]
struct Asked {
    turn: Turn,
    item: Item,
    has_spoken: bool,
    /// What came of the names it has addressed.
    reached: Reached,
}

/// What came of the names that were addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    NoneAddressed,
    Nobody,
    Somebody,
}

impl Router {
    /// A team whose first message is still to come. `max_rounds` is how many turns agents may have
    /// without a human, 0 for any number.
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
            floor: Floor::Open,
        })
    }

    /// Who speaks, when a person gives words to say: whom the seat or the flag names, else whom the
    /// words name, else who is waited for, else the only human.
    pub fn sender(&self, explicit: Option<&str>, text: &str) -> Result<&Member, SenderError> {
        let from = || markers::parse(text).from;
        if let Some(name) = explicit.map(str::to_owned).or_else(from) {
            return self.human(name);
        }
        let mut humans = self.members.iter().filter(|member| member.is_human());
        if let Floor::Human(waiting) = &self.floor
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

    /// Whom a person's words address, as the log has it.
    pub fn addressees(&self, by: &str, text: &str) -> Vec<Addressee> {
        names::resolve(&self.members, &self.markers(by, text).next)
    }

    /// The markers of a person's words, with the members whom they mention at their beginning. Without either and
    /// with an idle queue, the speaker's default addressees.
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

    /// What follows from an event. [`Output::Next`] comes last, and only if the floor changes hands.
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

    /// The members, in the team's order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Who waits.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Who is waited for; nobody, if an agent is being asked or nobody has spoken yet.
    pub fn waiting(&self) -> Option<&str> {
        match &self.floor {
            Floor::Human(human) => Some(human),
            Floor::Open | Floor::Ai(_) => None,
        }
    }

    /// Who is being asked, and in which turn.
    pub fn asked(&self) -> Option<(Turn, &Item)> {
        match &self.floor {
            Floor::Ai(asked) => Some((asked.turn, &asked.item)),
            Floor::Open | Floor::Human(_) => None,
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
            // Somebody spoke while an agent answers: it goes on, and they who were addressed wait.
            return outputs;
        }
        outputs.extend(match reached {
            Reached::Nobody => self.wait_for(by.to_owned(), Why::Unresolved),
            Reached::Somebody | Reached::NoneAddressed => self.advance(Why::NobodyNext),
        });
        outputs
    }

    fn ai_said(&mut self, turn: Turn, id: EntryId, text: &str) -> Vec<Output> {
        if !self.is_on(turn) {
            return vec![Output::NotRouted(id)];
        }
        let (outputs, reached) = self.route(id, markers::parse(text));
        if let Floor::Ai(asked) = &mut self.floor {
            // An answer may be several messages: the one that addressed somebody is replied to.
            if reached != Reached::NoneAddressed || !asked.has_spoken {
                self.queue.said(id);
            }
            asked.has_spoken = true;
            asked.reached = asked.reached.max(reached);
        }
        outputs
    }

    fn ended(&mut self, turn: Turn, how: Ending) -> Vec<Output> {
        match &self.floor {
            Floor::Ai(asked) if asked.turn == turn => match asked.reached {
                Reached::Nobody => self.wait_for(self.first_human.clone(), Why::Unresolved),
                Reached::Somebody | Reached::NoneAddressed => self.advance(match how {
                    Ending::Finished => Why::NobodyNext,
                    Ending::Failed => Why::Failed,
                    Ending::Cancelled => Why::Stopped,
                }),
            },
            // It was stopped, and the floor has been given away already.
            Floor::Open | Floor::Human(_) | Floor::Ai(_) => Vec::new(),
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
        self.floor = Floor::Human(self.first_human.clone());
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

    /// Does what the markers of a message say, but leaves the floor where it is.
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
                    reached = Reached::Somebody;
                    changes.push(self.queue.put(Request {
                        target: member.id.clone(),
                        parent: id,
                        trigger: id,
                        intent: addressee.intent,
                    }));
                }
                None => {
                    reached = reached.max(Reached::Nobody);
                    missed.push(addressee.name);
                }
            }
        }
        let what = match reached {
            Reached::Somebody => Missed::Some,
            Reached::Nobody | Reached::NoneAddressed => Missed::All,
        };
        outputs.extend(self.unresolved(missed, what));
        if !changes.is_empty() {
            outputs.push(self.queue_update(changes));
        }
        (outputs, reached)
    }

    /// Takes people out of the queue; also returns the names that are nobody's.
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

    /// Gives the floor to who is next, or to the first human, who is told why.
    fn advance(&mut self, idle: Why) -> Vec<Output> {
        // The queue is looked at in a copy: whoever may not speak now goes on waiting.
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
        self.floor = Floor::Ai(Asked {
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
        self.floor = Floor::Human(human);
        vec![self.queue_update(Vec::new()), next]
    }

    fn pause(&mut self) -> Vec<Output> {
        let human = self.first_human.clone();
        self.floor = Floor::Human(human.clone());
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
        // An id means its member, even if a looser reading of it means another.
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
