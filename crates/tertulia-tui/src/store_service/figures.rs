//! Statistics of a session: by day, by agent, by model.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use tertulia_core::entry::{Body, Entry, SpeakerKind, Usage};
use tertulia_core::id::{Seq, SessionId};

use super::StoreService;
use super::reading::Reader;
use crate::error::TuiResult;
use crate::stats::{Amount, Figures};

/// Entries read at a time, so that other requests can access the store in between.
const STRIDE: u64 = 500;

impl StoreService {
    /// Reads the whole log without ever holding all of it in memory.
    pub(super) async fn figures(&self, session: SessionId) -> TuiResult<Figures> {
        let row = self.row(session).await?;
        let reader = Reader::of(self.workspace(), &row);
        let mut tally = Tally::new(self.zone());
        let mut at = Seq::START;
        while at < reader.head {
            let upto = Seq(at.0 + STRIDE).min(reader.head);
            let log = reader.read(at, upto).await?;
            log.entries.iter().for_each(|entry| tally.count(entry));
            at = upto;
        }
        let title = row.meta.title_or_untitled();
        Ok(tally.figures(format!("{} \"{title}\"", session.short())))
    }
}

/// Counts so far.
struct Tally {
    zone: TimeZone,
    days: BTreeMap<Date, Amount>,
    agents: BTreeMap<String, Amount>,
    models: BTreeMap<String, Amount>,
}

impl Tally {
    fn new(zone: TimeZone) -> Tally {
        Tally {
            zone,
            days: BTreeMap::new(),
            agents: BTreeMap::new(),
            models: BTreeMap::new(),
        }
    }

    fn count(&mut self, entry: &Entry) {
        let (amount, agent, model) = match &entry.body {
            Body::Message(message) => {
                let speaker = &message.speaker;
                let agent = (speaker.kind == SpeakerKind::Ai).then_some(&speaker.display_name);
                let amount = amount(1, message.usage);
                (amount, agent, message.model.as_ref())
            }
            // A compaction is no message, but its tokens count.
            Body::Compacted(compacted) => {
                let amount = amount(0, compacted.usage);
                (amount, Some(&compacted.agent), compacted.model.as_ref())
            }
            _ => return,
        };
        let day = self.zone.to_datetime(entry.at).date();
        add(self.days.entry(day).or_default(), amount);
        if let Some(agent) = agent {
            add(self.agents.entry(agent.clone()).or_default(), amount);
        }
        if let Some(model) = model {
            add(self.models.entry(model.clone()).or_default(), amount);
        }
    }

    fn figures(self, of: String) -> Figures {
        Figures {
            of,
            sessions: 1,
            days: self.days.into_iter().collect(),
            agents: self.agents.into_iter().collect(),
            models: self.models.into_iter().collect(),
        }
    }
}

fn amount(messages: u64, usage: Option<Usage>) -> Amount {
    Amount {
        messages,
        tokens: usage.unwrap_or_default(),
    }
}

fn add(total: &mut Amount, amount: Amount) {
    *total = total.plus(amount);
}
