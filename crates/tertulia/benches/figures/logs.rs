//! Creates stores with content.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tertulia_core::entry::{
    Body, Created, Entry, Head, Kind, NewEntry, Role, Speaker, SpeakerKind,
};
use tertulia_core::entry::{human, plain};
use tertulia_core::id::{EntryId, SessionId};
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{NewSession, Store};
use tertulia_testkit::ask::now;
use uuid::Uuid;

/// Bytes per message; a turn of two messages has 4.6 kB.
pub const MESSAGE: usize = 2300;

/// The two backends, by their URL scheme.
pub const BACKENDS: [&str; 2] = ["sqlite", "files"];

/// Opens a store of a backend in a folder.
pub fn open(backend: &str, folder: &Path) -> Arc<dyn Store> {
    match backend {
        "sqlite" => Arc::new(SqliteStore::open(&place(backend, folder)).unwrap()),
        _ => Arc::new(FilesStore::open(&place(backend, folder)).unwrap()),
    }
}

/// Returns the path of the store.
pub fn place(backend: &str, folder: &Path) -> PathBuf {
    folder.join(if backend == "sqlite" {
        "bench.db"
    } else {
        "bench-files"
    })
}

/// Generates pseudo-random text of about `bytes` bytes from a list of words.
pub fn text(seed: u64, bytes: usize) -> String {
    const WORDS: [&str; 16] = [
        "the", "store", "keeps", "every", "word", "before", "anybody", "acts", "on", "it",
        "session", "agent", "answer", "durable", "common", "again",
    ];
    let mut text = String::with_capacity(bytes + 10);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(WORDS[(state % 16) as usize]);
        text.push(' ');
    }
    text
}

/// Builds an new_entry message entry.
pub fn said(number: u64, content: String) -> NewEntry {
    let agent = Speaker::plain("demo", SpeakerKind::Ai);
    let message = if number.is_multiple_of(2) {
        plain(&human(), Role::User, content)
    } else {
        plain(&agent, Role::Assistant, content)
    };
    new_entry(number, Body::Message(message))
}

fn new_entry(number: u64, body: Body) -> NewEntry {
    NewEntry {
        id: EntryId::new(Uuid::now_v7()),
        at: Timestamp::from_microsecond(
            1_700_000_000_000_000 + i64::try_from(number).unwrap() * 1000,
        )
        .unwrap(),
        body,
        redacted: BTreeMap::new(),
        author: None,
    }
}

/// Builds the entry that opens a session.
pub fn opening(id: SessionId, number: u64, project: &str) -> NewEntry {
    new_entry(
        number,
        Body::Created(Created {
            session: id,
            kind: Kind::Chat,
            title: None,
            team: None,
            project: Some(project.to_owned()),
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }),
    )
}

/// Creates a session of `messages` messages, in large batches, and returns its head.
pub fn session(
    store: &dyn Store,
    messages: u64,
    bytes: usize,
    seed: u64,
    project: &str,
) -> (SessionId, Head) {
    let id = SessionId::new(Uuid::now_v7());
    let first = Entry::chain(&Head::START, vec![opening(id, seed, project)]).unwrap();
    let mut head = now(store.create(&NewSession {
        id,
        base: None,
        entries: first,
    }))
    .unwrap();
    let mut number = 0;
    while number < messages {
        let upto = (number + 2000).min(messages);
        let new = (number..upto)
            .map(|n| said(n, text(seed.wrapping_add(n), bytes)))
            .collect();
        let entries = Entry::chain(&head, new).unwrap();
        head = now(store.append(id, head, &entries)).unwrap();
        number = upto;
    }
    (id, head)
}
