//! Cost of a session, summed up entry by entry.

use std::collections::BTreeSet;

use tertulia_core::entry::{Body, Entry};
use tertulia_core::price::{Cost, PriceTable};

/// Cost of the entries counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    cost: Cost,
    /// Models that were used and have no known price.
    unpriced: BTreeSet<String>,
    /// Whether earlier entries are still to be counted.
    is_unread: bool,
}

impl Bill {
    /// Creates the bill of a session whose earlier entries are still to be counted.
    pub fn unread() -> Bill {
        Bill {
            is_unread: true,
            ..Bill::default()
        }
    }

    /// Counts an entry.
    pub fn count(&mut self, entry: &Entry, prices: &PriceTable) {
        let (usage, model) = match &entry.body {
            Body::Message(message) => (message.usage, message.model.as_ref()),
            Body::Compacted(compacted) => (compacted.usage, compacted.model.as_ref()),
            _ => return,
        };
        let Some(usage) = usage.filter(|usage| !usage.is_empty()) else {
            return;
        };
        let schedule = model.map(|model| prices.schedule(model));
        match schedule.and_then(|schedule| schedule.at(entry.at)) {
            Some(price) => self.cost += price.cost(&usage),
            None => {
                let unknown = "an unknown model";
                let model = model.map_or(unknown, String::as_str);
                self.unpriced.insert(model.to_owned());
            }
        }
    }

    /// Adds the earlier entries.
    pub fn add_earlier(&mut self, earlier: Bill) {
        if std::mem::take(&mut self.is_unread) {
            self.cost += earlier.cost;
            self.unpriced.extend(earlier.unpriced);
        }
    }

    /// Returns true if earlier entries are still to be counted.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Returns the cost in dollars, if all of it is counted and any of it is known.
    pub fn dollars(&self) -> Option<f64> {
        (!self.is_unread && !self.cost.is_zero()).then(|| self.cost.dollars())
    }

    /// Returns the models that were used and have no known price.
    pub fn unpriced(&self) -> impl Iterator<Item = &str> {
        self.unpriced.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use tertulia_core::entry::{Head, Message, NewEntry, Role, Speaker, SpeakerKind, Usage, plain};

    use super::*;
    use crate::test_support::noon;

    fn answer(model: &str, usage: Option<Usage>) -> Entry {
        let agent = Speaker::plain("sage", SpeakerKind::Ai);
        let message = Message {
            model: Some(model.to_owned()),
            usage,
            ..plain(&agent, Role::Assistant, "hello".to_owned())
        };
        let id = "01936f5e-6c5a-7b3a-9d2f-000000000001".parse().unwrap();
        let new = NewEntry {
            id,
            at: noon(),
            body: Body::Message(message),
            redacted: Default::default(),
            author: None,
        };
        Entry::chain(&Head::START, vec![new]).unwrap().remove(0)
    }

    #[test]
    fn only_what_has_a_price_costs_something() {
        let (prices, mut bill) = (PriceTable::default(), Bill::default());
        assert_eq!(bill.dollars(), None);
        bill.count(&answer("demo-1", Some(Usage::told(10, 10))), &prices);
        bill.count(&answer("free-1", None), &prices);
        assert_eq!(bill.dollars(), None);
        let usage = Some(Usage::told(1_000_000, 100_000));
        bill.count(&answer("claude-sonnet-4-5", usage), &prices);
        assert_eq!(bill.dollars(), Some(4.5));
        assert_eq!(bill.unpriced().collect::<Vec<_>>(), ["demo-1"]);
    }

    #[test]
    fn a_resumed_session_has_no_cost_until_its_past_is_counted() {
        let prices = PriceTable::default();
        let usage = Some(Usage::told(1_000_000, 0));
        let entry = answer("claude-sonnet-4-5", usage);
        let (mut earlier, mut bill) = (Bill::default(), Bill::unread());
        earlier.count(&entry, &prices);
        bill.count(&entry, &prices);
        assert_eq!(bill.dollars(), None);
        bill.add_earlier(earlier.clone());
        assert_eq!(bill.dollars(), Some(6.0));
        bill.add_earlier(earlier);
        assert_eq!(bill.dollars(), Some(6.0));
    }
}
