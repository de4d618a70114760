//! A session whose log is replaced by its sealed or plain form while a writer opens it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tertulia_core::clock::Clock;
use tertulia_core::entry::{
    Body, Entry, Head, Kind, Message, Role, Speaker, SpeakerKind, human as speaker, plain,
};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl;
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients};
use tertulia_core::session::{Line, SessionMeta};
use tertulia_core::sizes::LogSize;
use tertulia_engine::log_writer::{LogWriter, OnConflict};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{
    CheckMode, Compressed, Draft, Info, KeyError, KeySource, LockHolder, Maintenance, NewSession,
    Patience, Progress, Rebuilt, Redaction, Report, SessionLock, Sessions, Start, Store,
    StoreError, StoreResult, Unlocking, Unsent,
};

/// What happens when a writer asks for a session's lock.
type OnClaim = Box<dyn FnMut() -> StoreResult<()> + Send>;

/// A store in which something else happens between asking for a lock and the answer.
struct Interleaved {
    store: Arc<dyn Store>,
    on_claim: Mutex<Option<OnClaim>>,
}

impl std::fmt::Debug for Interleaved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interleaved")
    }
}

#[async_trait]
impl Store for Interleaved {
    async fn create(&self, new: &NewSession) -> StoreResult<Head> {
        self.store.create(new).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        self.store.append(id, after, entries).await
    }

    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.store.read(id, after, limit).await
    }

    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing> {
        self.store.list(filter, page).await
    }

    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>> {
        self.store.find(lookup, limit).await
    }

    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits> {
        self.store.search(query, progress).await
    }

    async fn index(&self, progress: &Progress) -> StoreResult<u64> {
        self.store.index(progress).await
    }

    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()> {
        self.store.keep_draft(id, draft).await
    }

    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>> {
        self.store.draft(id).await
    }

    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        self.store.keep_unsent(id, unsent).await
    }

    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>> {
        self.store.unsent(id).await
    }

    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>> {
        let lock = self.store.claim(id).await?;
        let on_claim = self.on_claim.lock().unwrap().take();
        if let Some(mut on_claim) = on_claim {
            on_claim()?;
        }
        Ok(lock)
    }

    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>> {
        self.store.holder(id).await
    }

    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock> {
        self.store.take_over(id).await
    }

    async fn purge(&self, id: SessionId) -> StoreResult<()> {
        self.store.purge(id).await
    }

    async fn replace(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<()> {
        self.store.replace(id, after, entries).await
    }

    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()> {
        self.store.replace_end(id, after, keep, entries).await
    }

    fn patience(&self) -> &Patience {
        self.store.patience()
    }
}

#[async_trait]
impl Maintenance for Interleaved {
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report> {
        self.store.check(mode, progress).await
    }

    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt> {
        self.store.rebuild(progress).await
    }

    async fn info(&self) -> StoreResult<Info> {
        self.store.info().await
    }

    async fn sizes(&self) -> StoreResult<Vec<LogSize>> {
        self.store.sizes().await
    }

    async fn compress(&self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed> {
        self.store.compress(ids, progress).await
    }
}

/// Wraps its only key as it is.
#[derive(Debug)]
struct OneKey;

impl KeySource for OneKey {
    fn make(&self) -> Result<(KeyBytes, String), KeyError> {
        Ok((KeyBytes::new([7; KEY_BYTES]), "seven".to_owned()))
    }

    fn renew(&self, _: &Recipients, _: &[String]) -> Result<NewKey, KeyError> {
        Err(KeyError("there is only one key".to_owned()))
    }

    fn wrap(&self, _: &KeyBytes, _: &str) -> Result<String, KeyError> {
        Err(KeyError("there is only one key".to_owned()))
    }

    fn unwrap_key(&self, _: &str, _: Unlocking) -> Result<KeyBytes, KeyError> {
        Ok(KeyBytes::new([7; KEY_BYTES]))
    }
}

/// A chat, and the program that seals it: another handle on the same store.
struct World {
    chat: Sessions,
    sealer: Sessions,
    gate: Arc<Interleaved>,
    meta: SessionMeta,
    _home: tempfile::TempDir,
}

impl World {
    async fn new(has_key: bool) -> World {
        let home = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&home.path().join("tertulia.db")).unwrap());
        let gate = Arc::new(Interleaved {
            store: store.clone(),
            on_claim: Mutex::new(None),
        });
        let chat = Sessions::new(gate.clone(), clock(), Redaction::On);
        let chat = match has_key {
            true => chat.with_keys(Arc::new(OneKey)),
            false => chat,
        };
        let sealer = Sessions::new(store, clock(), Redaction::On);
        let sealer = sealer.with_keys(Arc::new(OneKey));
        let start = Start {
            id: chat.clock().session_id(),
            kind: Kind::Chat,
            title: None,
            team: None,
            project: None,
            project_ids: Vec::new(),
            cwd: None,
            terms: None,
        };
        // Answered, so that a fork need not leave out a running turn.
        let bodies = vec![human("one"), answer("yes")];
        let (meta, _) = chat.create(&start, bodies).await.unwrap();
        World {
            chat,
            sealer,
            gate,
            meta,
            _home: home,
        }
    }

    fn on_claim(&self, on_claim: impl FnMut() -> StoreResult<()> + Send + 'static) {
        *self.gate.on_claim.lock().unwrap() = Some(Box::new(on_claim));
    }

    async fn said(&self, id: SessionId) -> Vec<String> {
        let log = self.sealer.load(id).await.unwrap();
        assert!(log.damage.is_empty(), "{:?}", log.damage);
        let typed = |(_, message): &(&Entry, &Message)| message.role == Role::User;
        let messages = log.messages().filter(typed);
        messages
            .map(|(_, message)| message.content.clone())
            .collect()
    }
}

fn clock() -> Clock {
    Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7)
}

fn human(words: &str) -> Body {
    Body::Message(plain(&speaker(), Role::User, words.to_owned()))
}

fn answer(words: &str) -> Body {
    let speaker = Speaker::plain("demo", SpeakerKind::Ai);
    Body::Message(plain(&speaker, Role::Assistant, words.to_owned()))
}

async fn resume(
    world: &World,
    meta: &SessionMeta,
    on: OnConflict,
) -> (LogWriter, Option<SessionId>) {
    let resumed = LogWriter::resume(world.chat.clone(), meta.clone(), on).await;
    resumed.unwrap()
}

#[tokio::test]
async fn a_session_sealed_before_its_lock_is_taken_is_read_again() {
    let world = World::new(true).await;
    let read_before = world.meta.clone();
    world.sealer.seal(world.meta.id).await.unwrap();
    for words in ["two", "three"] {
        // The second time, the metadata is that of the sealed log, which is plain by now.
        let (mut writer, left) = resume(&world, &read_before, OnConflict::Fork).await;
        assert_eq!(left, None);
        let recorded = writer.record(vec![human(words)]).await.unwrap();
        assert_eq!(recorded.entries.len(), 1, "{recorded:?}");
        assert_eq!(writer.id(), world.meta.id);
        drop(writer);
        if words == "two" {
            world.sealer.unseal(world.meta.id).await.unwrap();
        }
    }
    assert_eq!(world.said(world.meta.id).await, ["one", "two", "three"]);
}

#[tokio::test]
async fn a_session_that_is_being_sealed_is_opened_when_that_is_done() {
    let world = World::new(true).await;
    // The lock is refused, and before a fork is made, the other program is done.
    let mut held = world.sealer.stored().claim(world.meta.id).await.unwrap();
    let (sealer, id) = (world.sealer.clone(), world.meta.id);
    world.on_claim(move || {
        held.take();
        let sealer = sealer.clone();
        let sealing = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build();
            runtime.unwrap().block_on(sealer.seal(id)).map(|_| ())
        });
        sealing.join().unwrap()
    });
    let (mut writer, left) = resume(&world, &world.meta, OnConflict::Fork).await;
    let recorded = writer.record(vec![human("two")]).await.unwrap();
    assert_eq!(recorded.entries.len(), 1, "{recorded:?}");
    assert_eq!(world.said(writer.id()).await, ["one", "two"]);
    assert_eq!(left.is_some(), writer.id() != world.meta.id);
}

#[tokio::test]
async fn words_for_a_log_that_was_replaced_go_to_a_fork() {
    let world = World::new(true).await;
    // Without a lock, which such a store does not give.
    world.on_claim(|| {
        Err(StoreError::Full {
            place: "the disk".to_owned(),
        })
    });
    let (mut writer, _) = resume(&world, &world.meta, OnConflict::Fork).await;
    world.sealer.seal(world.meta.id).await.unwrap();
    let recorded = writer.record(vec![human("two")]).await.unwrap();
    assert_eq!(recorded.left, Some(world.meta.id), "{recorded:?}");
    assert_eq!(world.said(writer.id()).await, ["one", "two"]);
    assert_eq!(world.said(world.meta.id).await, ["one"]);
}

#[tokio::test]
async fn words_that_cannot_be_sealed_end_in_a_file_that_can_be_imported() {
    let world = World::new(false).await;
    world.on_claim(|| {
        Err(StoreError::Full {
            place: "the disk".to_owned(),
        })
    });
    let (mut writer, _) = resume(&world, &world.meta, OnConflict::Fork).await;
    world.sealer.seal(world.meta.id).await.unwrap();
    let recorded = writer.record(vec![human("two")]).await.unwrap();
    assert!(recorded.trouble.is_some() && writer.has_unsaved());
    let lines = writer.unsaved_log().await.unwrap().join("\n");
    let log = jsonl::read(lines.as_bytes()).unwrap();
    let adopted = world.sealer.adopt(&log).await.unwrap();
    assert_eq!(world.said(adopted.id()).await, ["two"]);
    assert_eq!(world.said(world.meta.id).await, ["one"]);
}

#[tokio::test]
async fn who_wants_no_fork_is_told_who_has_the_session_open() {
    let world = World::new(true).await;
    let _held = world.sealer.stored().claim(world.meta.id).await.unwrap();
    let chat = world.chat.clone();
    let refused = LogWriter::resume(chat, world.meta.clone(), OnConflict::Refuse).await;
    let error = refused.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Opened { .. }), "{error}");
    let words = error.to_string();
    let process = format!("process {}", std::process::id());
    assert!(
        words.contains(" is open in ") && words.contains(&process),
        "{words}"
    );
}
