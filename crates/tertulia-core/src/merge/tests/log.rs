//! Random logs, for tests of merges and differences.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use crate::entry::{
    Body, Created, Entry, Failed, Head, Kind, Message, NewEntry, Role, Speaker, SpeakerKind,
    ToolCall, Usage, human, plain,
};
use crate::id::{EntryId, SessionId};

/// A part of a session.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Human(String),
    Answer(String),
    /// A message with this many tool calls, of which as many have results, and a human message
    /// between calls and results.
    Tools(usize, usize, bool),
    /// A prompt that failed.
    Failure,
    /// An entry that is no message.
    Compaction,
}

/// Builds a log, second by second.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) entries: Vec<Entry>,
    pub(crate) session: u128,
    pub(crate) second: i64,
}

impl Writer {
    pub(crate) fn new(session: u128) -> Writer {
        Writer {
            entries: Vec::new(),
            session,
            second: 1000,
        }
    }

    /// Continues the log in another session, from a later second on.
    pub(crate) fn fork(&self, session: u128, second: i64) -> Writer {
        Writer {
            entries: self.entries.clone(),
            session,
            second,
        }
    }

    pub(crate) fn head(&self) -> Head {
        self.entries.last().map_or(Head::START, Entry::head)
    }

    pub(crate) fn write(&mut self, body: Body) {
        let number = self.entries.len() as u128;
        let new = NewEntry {
            id: EntryId::new(Uuid::from_u128(self.session << 64 | number)),
            at: Timestamp::from_second(self.second).unwrap(),
            body,
            redacted: BTreeMap::new(),
            author: None,
        };
        self.second += 1;
        let entry = Entry::chain(&self.head(), vec![new]).unwrap().remove(0);
        self.entries.push(entry);
    }

    pub(crate) fn copy(&mut self, new: NewEntry) {
        let entry = Entry::chain(&self.head(), vec![new]).unwrap().remove(0);
        self.entries.push(entry);
    }

    pub(crate) fn create(&mut self, kind: Kind) {
        self.write(Body::Created(Created {
            session: SessionId::new(Uuid::from_u128(self.session)),
            kind,
            title: None,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }));
    }

    pub(crate) fn human(&mut self, content: &str) {
        self.write(Body::Message(plain(&human(), Role::User, content.into())));
    }

    pub(crate) fn answer(&mut self, content: &str, calls: &[&str]) {
        let agent = Speaker::plain("demo", SpeakerKind::Ai);
        let call = |id: &&str| ToolCall {
            id: (*id).to_owned(),
            name: "look".into(),
            arguments: json!({ "at": content }),
        };
        self.write(Body::Message(Message {
            usage: Some(Usage::told(3, 4)),
            tool_calls: calls.iter().map(call).collect(),
            ..plain(&agent, Role::Assistant, content.into())
        }));
    }

    pub(crate) fn result(&mut self, call: &str, content: &str) {
        let tool = Speaker::plain("look", SpeakerKind::Tool);
        self.write(Body::Message(Message {
            tool_call_id: Some(call.into()),
            ..plain(&tool, Role::Tool, content.into())
        }));
    }

    pub(crate) fn fail(&mut self) {
        self.write(Body::Failed(Failed {
            agent: "demo".into(),
            kind: "cancelled".into(),
            message: "stopped".into(),
            retry_at: None,
            withdrawn: true,
        }));
    }

    pub(crate) fn part(&mut self, part: &Part) {
        match part {
            Part::Human(content) => self.human(content),
            Part::Answer(content) => self.answer(content, &[]),
            Part::Tools(calls, results, between) => {
                // The same ids occur again and again, as some programs give them.
                let ids: Vec<String> = (0..*calls).map(|call| format!("call-{call}")).collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                self.answer("", &ids);
                if *between {
                    self.human("meanwhile");
                }
                for call in ids.iter().take(*results) {
                    self.result(call, "found");
                }
            }
            Part::Failure => {
                self.human("never mind");
                self.fail();
            }
            Part::Compaction => self.write(Body::Compacted(crate::entry::Compacted {
                upto: self.head().seq,
                summary: "short".into(),
                agent: "demo".into(),
                model: None,
                usage: None,
                thread: None,
            })),
        }
    }
}

pub(crate) fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        "[a-d]{1,2}( [a-d]{1,2}){0,6}".prop_map(Part::Human),
        "[a-d]{1,2}( [a-d]{1,2}){0,6}".prop_map(Part::Answer),
        (1..3_usize, 0..3_usize, any::<bool>())
            .prop_map(|(calls, results, between)| Part::Tools(calls, results, between)),
        Just(Part::Failure),
        Just(Part::Compaction),
    ]
}

pub(crate) fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop::collection::vec(part(), 0..8)
}
