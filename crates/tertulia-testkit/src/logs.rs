//! Bodies, chained entries, and a writer that records the expected log.

use std::collections::BTreeMap;

use serde_json::Value;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{
    Body, Created, Entry, Failed, Forked, Head, Imported, Kind, Message, NewEntry, Origin,
    Relation, Renamed, Role, Speaker, SpeakerKind, Tagged, ToolCall, Touched, Undone, Usage,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::session::SessionMeta;
use tertulia_store::{Draft, NewSession, Store, StoreResult};
use uuid::Uuid;

use crate::ask::now;

/// Returns an operation id, for tests in which its value does not matter.
pub fn operation() -> EntryId {
    EntryId::new(Uuid::from_u128(0x0bee))
}

/// Returns the creation of a chat without further data.
pub fn created(session: SessionId) -> Created {
    Created {
        session,
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    }
}

/// Returns a message.
pub fn message(name: &str, kind: SpeakerKind, role: Role, content: &str) -> Message {
    Message {
        speaker: Speaker::plain(name, kind),
        role,
        content: content.to_owned(),
        reasoning: None,
        thread: None,
        tool_calls: Vec::new(),
        tool_call_id: None,
        usage: None,
        usage_id: None,
        requests: Vec::new(),
        model: None,
        addressees: Vec::new(),
        asked: None,
        interrupted: false,
        outcome: None,
        attachments: Vec::new(),
        client_id: None,
        metadata: None,
    }
}

/// Returns a human message.
pub fn human(content: &str) -> Body {
    Body::Message(message("you", SpeakerKind::Human, Role::User, content))
}

/// Returns an agent's message with usage and model.
pub fn ai(name: &str, content: &str) -> Body {
    Body::Message(Message {
        usage: Some(Usage::told(7, 5)),
        model: Some(format!("{name}-1")),
        ..message(name, SpeakerKind::Ai, Role::Assistant, content)
    })
}

/// Returns an agent's tool call.
pub fn calling(name: &str, tool: &str, arguments: Value) -> Body {
    Body::Message(Message {
        tool_calls: vec![ToolCall {
            id: "call-1".into(),
            name: tool.into(),
            arguments,
        }],
        ..message(name, SpeakerKind::Ai, Role::Assistant, "")
    })
}

/// Returns a tool result.
pub fn tool_result(tool: &str, content: &str) -> Body {
    Body::Message(Message {
        tool_call_id: Some("call-1".into()),
        ..message(tool, SpeakerKind::Tool, Role::Tool, content)
    })
}

/// Returns a rename.
pub fn renamed(title: &str) -> Body {
    Body::Renamed(Renamed {
        title: title.to_owned(),
        operation: operation(),
    })
}

/// Returns a change of tags.
pub fn tagged(add: &[&str], remove: &[&str]) -> Body {
    let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect();
    Body::Tagged(Tagged {
        add: owned(add),
        remove: owned(remove),
        operation: operation(),
    })
}

/// Returns the import of another program's session.
pub fn imported(original: &str) -> Body {
    Body::Imported(Imported {
        project: Some("dir:/work".to_owned()),
        cwd: Some("/work".to_owned()),
        ..Imported::new("agent-chatter", original)
    })
}

/// Returns a move to the trash.
pub fn trashed() -> Body {
    Body::Trashed(Touched {
        operation: operation(),
    })
}

/// Returns a restore from the trash.
pub fn restored() -> Body {
    Body::Restored(Touched {
        operation: operation(),
    })
}

/// Returns the undo of a change.
pub fn undone(change: u64) -> Body {
    Body::Undone(Undone {
        change: Seq(change),
        operation: operation(),
    })
}

/// Returns an agent's failure.
pub fn failed(agent: &str, message: &str) -> Body {
    Body::Failed(Failed {
        agent: agent.to_owned(),
        kind: "other".into(),
        message: message.to_owned(),
        retry_at: None,
        withdrawn: false,
    })
}

/// Returns an entry of an unknown type with unknown fields, as a later version may write it.
pub fn unknown(parent: &Head, clock: &Clock, kind: &str, fields: &str) -> Entry {
    let content = format!(
        r#"{{"v":1,"seq":{},"id":"{}","at":"{}","type":"{kind}",{fields}"#,
        parent.seq.next(),
        clock.entry_id(),
        clock.now(),
    );
    let mut hasher = blake3::Hasher::new();
    hasher.update(parent.hash.bytes());
    hasher.update(content.as_bytes());
    let line = format!("{content},\"hash\":\"{}\"}}", hasher.finalize().to_hex());
    let entry = Entry::decode(line.as_bytes()).unwrap();
    assert!(entry.follows(parent), "the entry continues its log");
    entry
}

/// Writes to one session and records its expected log.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Id of the session.
    pub id: SessionId,
    /// The expected log, including the part shared with a fork's parent.
    pub log: Vec<Entry>,
    clock: Clock,
}

impl Writer {
    /// Creates a chat.
    pub fn begin(store: &dyn Store, clock: &Clock) -> Writer {
        Writer::begin_with(store, clock, |_| {}, vec![])
    }

    /// Creates a session with an edited first entry and more entries in the same append.
    pub fn begin_with(
        store: &dyn Store,
        clock: &Clock,
        edit: impl FnOnce(&mut Created),
        more: Vec<Body>,
    ) -> Writer {
        let mut writer = Writer::named(clock.session_id(), clock);
        writer.open(store, edit, more).unwrap();
        writer
    }

    /// Returns a writer for a session that does not exist yet.
    pub fn named(id: SessionId, clock: &Clock) -> Writer {
        Writer {
            id,
            log: Vec::new(),
            clock: clock.clone(),
        }
    }

    /// Creates the session of a writer that has written nothing.
    pub fn open(
        &mut self,
        store: &dyn Store,
        edit: impl FnOnce(&mut Created),
        more: Vec<Body>,
    ) -> StoreResult<()> {
        let mut opening = created(self.id);
        edit(&mut opening);
        let mut bodies = vec![Body::Created(opening)];
        bodies.extend(more);
        let entries = self.chain(bodies);
        let head = now(store.create(&NewSession {
            id: self.id,
            base: None,
            entries: entries.clone(),
        }))?;
        self.log = entries;
        assert_eq!(head, self.head(), "create gives the end of the log");
        Ok(())
    }

    /// Returns the head of the log.
    pub fn head(&self) -> Head {
        self.log.last().map_or(Head::START, Entry::head)
    }

    /// Chains bodies after the current head.
    pub fn chain(&self, bodies: Vec<Body>) -> Vec<Entry> {
        let new_entry = bodies.into_iter().map(|body| NewEntry {
            id: self.clock.entry_id(),
            at: self.clock.now(),
            body,
            redacted: BTreeMap::new(),
            author: None,
        });
        Entry::chain(&self.head(), new_entry.collect()).unwrap()
    }

    /// Appends bodies in one append, or returns the error.
    pub fn try_append(&mut self, store: &dyn Store, bodies: Vec<Body>) -> StoreResult<Head> {
        self.append_chained(store, self.chain(bodies))
    }

    /// Appends chained entries, or returns the error.
    pub fn append_chained(&mut self, store: &dyn Store, entries: Vec<Entry>) -> StoreResult<Head> {
        let head = now(store.append(self.id, self.head(), &entries))?;
        self.log.extend(entries);
        assert_eq!(head, self.head(), "append gives the end of the log");
        Ok(head)
    }

    /// Appends bodies in one append.
    #[track_caller]
    pub fn append(&mut self, store: &dyn Store, bodies: Vec<Body>) {
        self.try_append(store, bodies).unwrap();
    }

    /// Appends a human message.
    #[track_caller]
    pub fn say(&mut self, store: &dyn Store, content: &str) {
        self.append(store, vec![human(content)]);
    }

    /// Replaces what follows the first `keep` entries by bodies, at once, or returns the error.
    pub fn replace_end(
        &mut self,
        store: &dyn Store,
        keep: usize,
        bodies: Vec<Body>,
    ) -> StoreResult<()> {
        let mut replaced = self.clone();
        replaced.log.truncate(keep);
        let entries = replaced.chain(bodies);
        now(store.replace_end(self.id, self.head(), replaced.head(), &entries))?;
        replaced.log.extend(entries);
        *self = replaced;
        Ok(())
    }

    /// Returns the origin for a fork after an entry.
    pub fn origin(&self, at: u64) -> Origin {
        let entry = &self.log[usize::try_from(at).unwrap() - 1];
        Origin {
            id: self.id,
            seq: entry.seq,
            hash: entry.hash,
        }
    }

    /// Forks the session after an entry.
    pub fn fork(&self, store: &dyn Store, at: u64) -> Writer {
        self.fork_with(store, at, |_| {}, vec![])
    }

    /// Forks the session with an edited first entry and more entries in the same append.
    pub fn fork_with(
        &self,
        store: &dyn Store,
        at: u64,
        edit: impl FnOnce(&mut Forked),
        more: Vec<Body>,
    ) -> Writer {
        self.try_fork(store, self.origin(at), edit, more).unwrap()
    }

    /// Forks the session from an origin that may be wrong.
    pub fn try_fork(
        &self,
        store: &dyn Store,
        from: Origin,
        edit: impl FnOnce(&mut Forked),
        more: Vec<Body>,
    ) -> StoreResult<Writer> {
        let shared = usize::try_from(from.seq.0).unwrap().min(self.log.len());
        let mut fork = Writer {
            id: self.clock.session_id(),
            log: self.log[..shared].to_vec(),
            clock: self.clock.clone(),
        };
        let mut opening = Forked {
            session: fork.id,
            from: from.clone(),
            relation: Relation::Fork,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        };
        edit(&mut opening);
        let mut bodies = vec![Body::Forked(opening)];
        bodies.extend(more);
        let entries = fork.chain(bodies);
        let head = now(store.create(&NewSession {
            id: fork.id,
            base: Some(from),
            entries: entries.clone(),
        }))?;
        fork.log.extend(entries);
        assert_eq!(head, fork.head(), "create gives the end of the log");
        Ok(fork)
    }

    /// Returns a draft that answers the last entry.
    pub fn draft(&self, content: &str) -> Draft {
        Draft {
            after: self.head(),
            id: self.clock.entry_id(),
            at: self.clock.now(),
            speaker: Speaker::plain("claude", SpeakerKind::Ai),
            model: Some("claude-1".into()),
            thread: None,
            content: content.to_owned(),
            reasoning: None,
            sealed: false,
        }
    }

    /// Returns the expected metadata.
    pub fn meta(&self) -> SessionMeta {
        SessionMeta::of(self.id, &self.log)
    }
}
