//! A file store in a temporary folder, and helpers to write to it.

#![allow(unused_imports, reason = "one list of names for the whole suite")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tertulia_core::entry::{
    Body, Created, Entry, Forked, Head, Kind, Message, NewEntry, Origin, Relation, Role, Speaker,
    SpeakerKind,
};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Filter, HitFilter, Lookup, Page, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_core::session::{Line, Log};
use tertulia_store::files::FilesStore;
use tertulia_store::{
    CheckMode, Draft, Maintenance, NewSession, Progress, Report, Store, StoreError,
};
use tertulia_testkit::ask::now as block_on;
use uuid::Uuid;

pub(crate) fn id(n: u128) -> SessionId {
    SessionId::new(Uuid::from_u128(n))
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(crate) fn new_entry(body: Body) -> NewEntry {
    NewEntry {
        id: EntryId::new(Uuid::new_v4()),
        at: at(0),
        body,
        redacted: BTreeMap::new(),
        author: None,
    }
}

pub(crate) fn said(content: &str) -> NewEntry {
    new_entry(Body::Message(Message {
        speaker: Speaker::plain("ana", SpeakerKind::Human),
        role: Role::User,
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
    }))
}

pub(crate) fn opening(session: SessionId) -> NewEntry {
    new_entry(Body::Created(Created {
        session,
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
        seal: None,
    }))
}

pub(crate) struct Home {
    pub(crate) home: tempfile::TempDir,
    pub(crate) store: FilesStore,
}

impl Home {
    pub(crate) fn new() -> Home {
        let home = tempfile::tempdir().unwrap();
        let store = FilesStore::open(&home.path().join("s")).unwrap();
        Home { home, store }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.home.path().join("s")
    }

    pub(crate) fn again(&self) -> FilesStore {
        FilesStore::open(&self.dir()).unwrap()
    }

    pub(crate) fn create(&self, session: SessionId) -> Head {
        let entries = Entry::chain(&Head::START, vec![opening(session)]).unwrap();
        self.make(session, None, entries).unwrap()
    }

    pub(crate) fn make(
        &self,
        session: SessionId,
        base: Option<Origin>,
        entries: Vec<Entry>,
    ) -> Result<Head, StoreError> {
        block_on(self.store.create(&NewSession {
            id: session,
            base,
            entries,
        }))
    }

    pub(crate) fn say(&self, session: SessionId, after: Head, words: &[&str]) -> Head {
        say(&self.store, session, after, words).unwrap()
    }

    pub(crate) fn fork(&self, session: SessionId, from: SessionId, head: Head) -> Head {
        let origin = Origin {
            id: from,
            seq: head.seq,
            hash: head.hash,
        };
        let forked = new_entry(Body::Forked(Forked {
            session,
            from: origin.clone(),
            relation: Relation::Fork,
            title: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
            seal: None,
        }));
        let entries = Entry::chain(&head, vec![forked, said("in the fork")]).unwrap();
        self.make(session, Some(origin), entries).unwrap()
    }

    pub(crate) fn read(&self, session: SessionId) -> Vec<Line> {
        block_on(self.store.read(session, Seq::START, usize::MAX)).unwrap()
    }

    pub(crate) fn log(&self, session: SessionId) -> PathBuf {
        files_under(&self.dir())
            .into_iter()
            .find(|path| {
                path.to_string_lossy()
                    .ends_with(&format!("{session}.jsonl"))
            })
            .unwrap()
    }

    pub(crate) fn check(&self) -> Report {
        block_on(self.store.check(CheckMode::Look, &Progress::unseen())).unwrap()
    }

    pub(crate) fn repair(&self) -> Report {
        block_on(
            self.store
                .check(CheckMode::Repair(at(5000)), &Progress::unseen()),
        )
        .unwrap()
    }

    pub(crate) fn listed(&self) -> Vec<SessionId> {
        let listing = block_on(self.store.list(&Filter::default(), &Page::first(100))).unwrap();
        listing.rows.iter().map(|row| row.meta.id).collect()
    }

    pub(crate) fn hits(&self, words: &str) -> Vec<SessionId> {
        let query = SearchQuery {
            words: SearchTerms::parse(words).unwrap(),
            filter: Filter::default(),
            said: HitFilter::default(),
            limit: 50,
        };
        let hits = block_on(self.store.search(&query, &Progress::unseen())).unwrap();
        hits.hits.iter().map(|hit| hit.session).collect()
    }
}

pub(crate) fn say(
    store: &FilesStore,
    session: SessionId,
    after: Head,
    words: &[&str],
) -> Result<Head, StoreError> {
    let new = words.iter().map(|words| said(words)).collect();
    let entries = Entry::chain(&after, new).unwrap();
    block_on(store.append(session, after, &entries))
}

pub(crate) fn files_under(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.push(path);
        }
    }
    found
}

pub(crate) fn seqs(lines: &[Line]) -> Vec<u64> {
    lines.iter().map(|line| line.seq.0).collect()
}

pub(crate) fn is_sound(session: SessionId, lines: &[Line]) -> bool {
    Log::read(session, Some(Head::START), Seq::START, lines)
        .damage
        .is_empty()
}

/// Replaces the first `from` in a log by as many other bytes.
pub(crate) fn spoil(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
