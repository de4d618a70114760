//! Who is still to speak, and who of them is next. Whatever the queue does not take, or takes as less
//! urgent, it says.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use tertulia_core::id::EntryId;
use tertulia_core::team::markers::Intent;

/// So many may wait.
pub const LONGEST: usize = 50;
/// So many may wait to reply to one message; more of them are less urgent.
pub const PER_PARENT: usize = 10;
/// So often in a row those who reply to the last message come before those who wait longer.
pub const LOCAL_PICKS: usize = 5;

/// Somebody is to speak.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The id of the member.
    pub target: String,
    /// The message that they are to reply to, by its id in the log.
    pub parent: EntryId,
    /// The message that asked for it.
    pub trigger: EntryId,
    /// How urgently.
    pub intent: Intent,
}

/// A request that waits its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Who, and why.
    pub request: Request,
    /// Its place in the order of arrival: lower came first.
    pub order: u64,
}

/// What happened to the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Somebody waits.
    Queued(Item),
    /// Somebody waits, less urgently than was asked: there are too many replies to one message.
    Demoted {
        /// As it waits.
        item: Item,
        /// As it was asked for.
        asked: Intent,
    },
    /// The request was not taken.
    Skipped(Request, Skip),
    /// Somebody does not wait any more, because of a `[DROP: …]`, or because a person stopped the queue.
    Dropped(Item),
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// [`LONGEST`] wait already.
    Full,
    /// The same reply waits already, as urgently.
    Duplicate,
    /// The last in the queue is the same member.
    Adjacent,
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// How many wait.
    pub pending: usize,
    /// How many of them as [`Intent::P1`].
    pub p1: usize,
    /// How many of them as [`Intent::P2`].
    pub p2: usize,
    /// How many of them as [`Intent::P3`].
    pub p3: usize,
    /// How many reply to the last message.
    pub local: usize,
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// In the order of arrival.
    items: Vec<Item>,
    arrived: u64,
    last_said: Option<EntryId>,
    local_picks: usize,
}

impl Queue {
    /// Puts somebody into the queue, if there is room and reason.
    pub fn put(&mut self, mut request: Request) -> Change {
        if self.items.len() >= LONGEST {
            return Change::Skipped(request, Skip::Full);
        }
        let asked = request.intent;
        if self.replies_to(request.parent) >= PER_PARENT {
            request.intent = Intent::P3;
        }
        if self.items.iter().any(|item| item.request.is_same(&request)) {
            return Change::Skipped(request, Skip::Duplicate);
        }
        if self
            .items
            .last()
            .is_some_and(|last| last.request.target == request.target)
        {
            return Change::Skipped(request, Skip::Adjacent);
        }
        self.arrived += 1;
        let item = Item {
            request,
            order: self.arrived,
        };
        self.items.push(item.clone());
        if item.request.intent == asked {
            Change::Queued(item)
        } else {
            Change::Demoted { item, asked }
        }
    }

    /// Takes out who is next: the urgent, then replies to the last message, for a while, then the rest.
    pub fn take(&mut self) -> Option<Item> {
        if let Some(urgent) = self.earliest(|item| item.request.intent == Intent::P1) {
            self.local_picks = 0;
            return Some(self.items.remove(urgent));
        }
        if self.local_picks < LOCAL_PICKS
            && let Some(local) = self.earliest(|item| self.is_local(item))
        {
            self.local_picks += 1;
            return Some(self.items.remove(local));
        }
        self.local_picks = 0;
        self.earliest(|_| true).map(|next| self.items.remove(next))
    }

    /// A message is complete: replies to it come first now.
    pub fn said(&mut self, message: EntryId) {
        self.last_said = Some(message);
    }

    /// Takes out everybody. What was said last stays known.
    pub fn clear(&mut self) -> Vec<Item> {
        self.local_picks = 0;
        std::mem::take(&mut self.items)
    }

    /// Takes out one member.
    pub fn drop_target(&mut self, member: &str) -> Vec<Item> {
        let (dropped, kept) = std::mem::take(&mut self.items)
            .into_iter()
            .partition(|item| item.request.target == member);
        self.items = kept;
        dropped
    }

    /// Who waits, in the order of arrival.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How full it is.
    pub fn stats(&self) -> Stats {
        let count = |intent| {
            let wanted = |item: &&Item| item.request.intent == intent;
            self.items.iter().filter(wanted).count()
        };
        Stats {
            pending: self.items.len(),
            p1: count(Intent::P1),
            p2: count(Intent::P2),
            p3: count(Intent::P3),
            local: self.items.iter().filter(|item| self.is_local(item)).count(),
        }
    }

    /// The most urgent of some, and of those the one that came first.
    fn earliest(&self, wanted: impl Fn(&Item) -> bool) -> Option<usize> {
        let wanted = self
            .items
            .iter()
            .enumerate()
            .filter(|(_, item)| wanted(item));
        wanted
            .min_by_key(|(_, item)| (item.request.intent, item.order))
            .map(|(place, _)| place)
    }

    fn is_local(&self, item: &Item) -> bool {
        self.last_said == Some(item.request.parent)
    }

    fn replies_to(&self, parent: EntryId) -> usize {
        let replies = self
            .items
            .iter()
            .filter(|item| item.request.parent == parent);
        replies.count()
    }
}

impl Request {
    /// Whether two requests ask for the same thing, whoever asked.
    fn is_same(&self, other: &Request) -> bool {
        (&self.target, self.parent, self.intent) == (&other.target, other.parent, other.intent)
    }
}
