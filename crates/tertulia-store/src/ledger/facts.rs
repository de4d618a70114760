//! Rows of the ledger for one entry.

use tertulia_core::entry::{
    Body, Compacted, Entry, Hash, Linked, Message, Role, Sealed, SpeakerKind, ToolOutcome, Usage,
};
use tertulia_core::id::Seq;
use tertulia_core::tool_files::{FileTouch, files_of, resolved};

/// Bytes of an event's key.
const KEY: usize = 16;
/// Highest figure that is kept: sums of implausible figures must not overflow.
const HIGHEST: u64 = 1_000_000_000_000;

/// Identity of a usage event.
pub(super) type Event = [u8; KEY];

/// What the ledger keeps of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EntryFacts {
    pub(super) seq: Seq,
    /// Microseconds since 1970.
    pub(super) at: i64,
    pub(super) event: Event,
    /// True if the event is known by the entry's own id: it is no copy.
    pub(super) own: bool,
    /// Events of a program's file that the entry's usage is of.
    pub(super) requests: Vec<Event>,
    /// True for a message that is not an agent's or a tool's.
    pub(super) prompt: bool,
    /// True for a message, false for a compaction.
    pub(super) is_message: bool,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) calls: Vec<CallFacts>,
    /// The call that the entry answers.
    pub(super) answers: Option<(String, ToolOutcome)>,
}

/// A program's own session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkFacts {
    pub(super) seq: Seq,
    pub(super) agent: String,
    pub(super) native: String,
}

/// Returns the program's own session that an entry names.
pub(super) fn link_of(entry: &Entry) -> Option<LinkFacts> {
    let Body::Linked(Linked { agent, native, .. }) = &entry.body else {
        return None;
    };
    Some(LinkFacts {
        seq: entry.seq,
        agent: agent.clone(),
        native: native.clone(),
    })
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallFacts {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) files: Vec<FileTouch>,
}

/// Returns the facts of an entry, if the ledger keeps any. Relative paths begin in `cwd`.
pub(super) fn of(entry: &Entry, cwd: Option<&str>) -> Option<EntryFacts> {
    match &entry.body {
        Body::Message(message) => Some(of_message(entry, message, cwd)),
        Body::Compacted(compacted) => of_compaction(entry, compacted),
        Body::Sealed(sealed) => of_sealed(entry, sealed),
        _ => None,
    }
}

fn of_message(entry: &Entry, message: &Message, cwd: Option<&str>) -> EntryFacts {
    let call_id = message.tool_call_id.clone();
    EntryFacts {
        seq: entry.seq,
        at: entry.at.as_microsecond(),
        event: key_of(entry, message.usage_id.as_deref()),
        own: message.usage_id.is_none(),
        requests: message.requests.iter().map(|id| key(id)).collect(),
        prompt: message.speaker.kind != SpeakerKind::Ai && message.role != Role::Tool,
        is_message: true,
        agent: (message.speaker.kind == SpeakerKind::Ai).then(|| message.speaker.name.clone()),
        model: message.model.clone(),
        usage: message.usage.map(plausible),
        calls: message
            .tool_calls
            .iter()
            .map(|call| CallFacts {
                id: call.id.clone(),
                name: call.name.clone(),
                files: files_of(call)
                    .into_iter()
                    .map(|touch| FileTouch {
                        path: resolved(&touch.path, cwd),
                        ..touch
                    })
                    .collect(),
            })
            .collect(),
        answers: call_id.zip(message.tool_outcome()),
    }
}

fn of_compaction(entry: &Entry, compacted: &Compacted) -> Option<EntryFacts> {
    Some(EntryFacts {
        seq: entry.seq,
        at: entry.at.as_microsecond(),
        event: key_of(entry, None),
        own: true,
        requests: Vec::new(),
        prompt: false,
        is_message: false,
        agent: Some(compacted.agent.clone()),
        model: compacted.model.clone(),
        usage: Some(plausible(compacted.usage?)),
        calls: Vec::new(),
        answers: None,
    })
}

/// Returns the tokens of a sealed entry: who used them is not visible.
fn of_sealed(entry: &Entry, sealed: &Sealed) -> Option<EntryFacts> {
    let is_message = sealed.of == "message";
    (is_message || sealed.usage.is_some()).then(|| EntryFacts {
        seq: entry.seq,
        at: entry.at.as_microsecond(),
        event: key_of(entry, None),
        own: true,
        requests: Vec::new(),
        prompt: false,
        is_message,
        agent: None,
        model: None,
        usage: sealed.usage.map(plausible),
        calls: Vec::new(),
        answers: None,
    })
}

/// Returns the key of an entry's usage. A copy names the original by `usage_id`; an original is
/// known by its own id.
fn key_of(entry: &Entry, usage_id: Option<&str>) -> Event {
    match usage_id {
        Some(id) => key(id),
        None => key(&entry.id.to_string()),
    }
}

fn key(id: &str) -> Event {
    let hash = Hash::of_text(id);
    let mut key = [0; KEY];
    key.copy_from_slice(&hash.bytes()[..KEY]);
    key
}

fn plausible(usage: Usage) -> Usage {
    Usage {
        input: usage.input.min(HIGHEST),
        output: usage.output.min(HIGHEST),
        cache_read: usage.cache_read.min(HIGHEST),
        cache_written: usage.cache_written.min(HIGHEST),
        estimated: usage.estimated,
    }
}
