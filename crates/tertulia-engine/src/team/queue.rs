//! The queue of requests to speak. Reports every request that it does not accept or that it
//! demotes.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use tertulia_core::id::EntryId;
use tertulia_core::team::markers::Intent;

/// Maximum number of queued requests.
pub const LONGEST: usize = 50;
/// Maximum number of queued replies to one message; further ones are demoted.
pub const PER_PARENT: usize = 10;
/// Maximum number of consecutive replies to the last message that precede older requests.
pub const LOCAL_PICKS: usize = 5;

/// A request that a member speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Id of the member.
    pub target: String,
    /// Id in the log of the message to reply to.
    pub parent: EntryId,
    /// Id of the message that made the request.
    pub trigger: EntryId,
    /// Urgency.
    pub intent: Intent,
}

/// A queued request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The request.
    pub request: Request,
    /// Order of arrival: lower came first.
    pub order: u64,
}

/// A change of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A request was queued.
    Queued(Item),
    /// A request was queued with a lower urgency: there are too many replies to one message.
    Demoted {
        /// The item as queued.
        item: Item,
        /// Requested urgency.
        asked: Intent,
    },
    /// A request was not accepted.
    Skipped(Request, Skip),
    /// A request was removed by a `[DROP: …]`, or because the user stopped the queue.
    Dropped(Item),
}

/// Why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// The queue holds [`LONGEST`] requests already.
    Full,
    /// The same reply is queued already, with the same urgency.
    Duplicate,
    /// The last request in the queue is for the same member.
    Adjacent,
}

/// Size of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Number of queued requests.
    pub pending: usize,
    /// Those with [`Intent::P1`].
    pub p1: usize,
    /// Those with [`Intent::P2`].
    pub p2: usize,
    /// Those with [`Intent::P3`].
    pub p3: usize,
    /// Those that reply to the last message.
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
    /// Adds a request, unless the queue is full or the request superfluous.
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

    /// Removes and returns the next request: urgent ones first, then replies to the last message up
    /// to a limit, then the rest.
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

    /// Records a complete message: replies to it come first now.
    pub fn said(&mut self, message: EntryId) {
        self.last_said = Some(message);
    }

    /// Removes all requests. The last message stays known.
    pub fn clear(&mut self) -> Vec<Item> {
        self.local_picks = 0;
        std::mem::take(&mut self.items)
    }

    /// Removes the requests for one member.
    pub fn drop_target(&mut self, member: &str) -> Vec<Item> {
        let (dropped, kept) = std::mem::take(&mut self.items)
            .into_iter()
            .partition(|item| item.request.target == member);
        self.items = kept;
        dropped
    }

    /// Queued requests, in the order of arrival.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the size of the queue.
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

    /// Returns the index of the most urgent matching request, the earliest among equals.
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
    /// Returns whether two requests are for the same reply with the same urgency, whatever
    /// triggered them.
    fn is_same(&self, other: &Request) -> bool {
        (&self.target, self.parent, self.intent) == (&other.target, other.parent, other.intent)
    }
}
