//! Logs and partners that no store of this program would make.

use async_trait::async_trait;
use tertulia_core::entry::{Entry, Head, MESSAGE_LIMIT, Origin};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl::Imported;
use tertulia_core::query::Cursor;
use tertulia_core::session::Line;
use tertulia_store::files::FilesStore;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::sync::{
    Branch, BranchPage, BranchSource, Branches, Heads, MergedEnd, NewBranch, Partner,
};
use tertulia_store::{Doing, NewSession, Redaction, Sessions, Store, StoreResult};
use tertulia_testkit::ask::now;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::{Writer, ai, human};
use tertulia_testkit::scratch::Scratch;

use super::{assert_sound, log, metas, move_all, push};

fn memory() -> SqliteStore {
    SqliteStore::in_memory().unwrap()
}

/// Writes the log of a session under the id of another one.
fn under_another_id(store: &dyn Store, id: SessionId, writer: &Writer) {
    let new = NewSession {
        id,
        base: None,
        entries: writer.log.clone(),
    };
    now(store.create(&new)).unwrap();
}

#[test]
fn a_log_that_says_it_is_another_session_is_not_taken() {
    let folder = Scratch::new();
    let targets: [Box<dyn Store>; 2] = [
        Box::new(memory()),
        Box::new(FilesStore::open(folder.path()).unwrap()),
    ];
    for target in targets {
        let (source, elsewhere) = (memory(), memory());
        let clock = still_clock(1);
        let mut own = Writer::begin(&*target, &clock);
        own.say(&*target, "the user's own");
        // Someone else's words, which claim to be the user's session.
        let mut foreign = Writer::named(own.id, &still_clock(2));
        foreign
            .open(&elsewhere, |_| {}, vec![human("not theirs")])
            .unwrap();
        let id = clock.session_id();
        under_another_id(&source, id, &foreign);
        let sound = Writer::begin(&source, &clock);
        let (from, to) = (Branches::of(&source), Branches::of(&*target));
        for doing in [Doing::Preview, Doing::Write] {
            let moved = move_all(&from, &to, doing).unwrap();
            assert_eq!(moved.created, 1, "{doing:?}");
            let [skipped] = &moved.skipped[..] else {
                panic!("{moved:?}");
            };
            assert_eq!(skipped.session, Some(id));
            let reason = skipped.error.to_string();
            assert!(reason.contains(&own.id.to_string()), "{reason}");
        }
        // Copying a store imports log after log.
        let sessions = Sessions::new(std::sync::Arc::from(target), clock, Redaction::On);
        let copied = now(sessions.adopt(&Imported {
            id,
            fork: None,
            after: Seq::START,
            parent: None,
            entries: foreign.log.clone(),
        }));
        assert!(copied.is_err(), "{copied:?}");
        let target = sessions.stored();
        let mut ids: Vec<SessionId> = metas(target).iter().map(|meta| meta.id).collect();
        ids.sort();
        assert_eq!(ids, [own.id, sound.id]);
        assert_eq!(log(target, own.id), own.log);
        assert_sound(target);
    }
}

#[test]
fn entries_that_open_another_session_are_not_appended() {
    let (source, target) = (memory(), memory());
    let clock = still_clock(1);
    let mut writer = Writer::begin(&source, &clock);
    push(&source, &target);
    let mut stranger = Writer::named(clock.session_id(), &clock);
    stranger.open(&memory(), |_| {}, Vec::new()).unwrap();
    let head = writer.head();
    writer.append(&source, vec![stranger.log[0].body.clone()]);
    // As the far end of a link would ask for it.
    let partner = Branches::of(&target);
    let appended = now(partner.append(writer.id, head, &writer.log[1..]));
    let error = appended.unwrap_err().to_string();
    assert!(error.contains(&stranger.id.to_string()), "{error}");
    assert_eq!(log(&target, writer.id).len(), 1);
}

#[test]
fn a_message_over_the_limit_is_refused_and_named() {
    let (source, target) = (memory(), memory());
    let clock = still_clock(1);
    let mut writer = Writer::begin(&source, &clock);
    writer.append(&source, vec![human("short")]);
    writer.append(&source, vec![ai("demo", &"x".repeat(MESSAGE_LIMIT + 1))]);
    let mut sound = Writer::begin(&source, &clock);
    sound.append(&source, vec![ai("demo", &"x".repeat(MESSAGE_LIMIT))]);
    let moved = push(&source, &target);
    let [skipped] = &moved.skipped[..] else {
        panic!("{moved:?}");
    };
    assert_eq!(skipped.session, Some(writer.id));
    let reason = skipped.error.to_string();
    let words = "entry 3: the message is 1000001 bytes long, 1000000 are allowed";
    assert_eq!(reason, words);
    assert_eq!(log(&target, sound.id), sound.log);
}

#[test]
fn long_sessions_move_in_pieces() {
    let (source, target) = (memory(), memory());
    let mut writer = Writer::begin(&source, &still_clock(1));
    for number in 0..7 {
        let said = ai("demo", &format!("{number}").repeat(900_000));
        writer.append(&source, vec![human("more"), said]);
    }
    let most = Most {
        branches: Branches::of(&target),
    };
    let moved = move_all(&Branches::of(&source), &most, Doing::Write).unwrap();
    assert_eq!((moved.created, moved.entries), (1, 15));
    assert_eq!(log(&target, writer.id), writer.log);
}

/// A partner that takes no more than a link does at once.
struct Most<'a> {
    branches: Branches<'a>,
}

fn check(entries: &[Entry]) {
    let bytes: usize = entries.iter().map(|entry| entry.line().len()).sum();
    assert!(bytes < 3_000_000, "{bytes}");
}

#[async_trait]
impl BranchSource for Most<'_> {
    async fn head_at(&self, id: SessionId, seq: Seq) -> StoreResult<Option<Head>> {
        self.branches.head_at(id, seq).await
    }

    async fn lines(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>> {
        self.branches.lines(id, after, limit).await
    }

    async fn origins(&self, id: SessionId) -> StoreResult<Vec<Origin>> {
        self.branches.origins(id).await
    }

    async fn fixed(&self, id: SessionId) -> StoreResult<Seq> {
        self.branches.fixed(id).await
    }
}

#[async_trait]
impl Partner for Most<'_> {
    /// Repeats its first page.
    async fn page(&self, _: Option<Cursor>, limit: usize) -> StoreResult<BranchPage> {
        let mut page = self.branches.page(None, limit).await?;
        if let Some(branch) = page.branches.first() {
            let at = "2026-11-17T06:00:00Z".parse().unwrap();
            page.next = Some(Cursor { at, id: branch.id });
        }
        Ok(page)
    }

    async fn family(&self, root: SessionId) -> StoreResult<Vec<Branch>> {
        self.branches.family(root).await
    }

    async fn has(&self, origin: &Origin) -> StoreResult<bool> {
        self.branches.has(origin).await
    }

    async fn create(&self, new: &NewBranch) -> StoreResult<Branch> {
        check(&new.entries);
        self.branches.create(new).await
    }

    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head> {
        check(entries);
        self.branches.append(id, after, entries).await
    }

    async fn merge_end(&self, id: SessionId, end: &MergedEnd) -> StoreResult<Head> {
        self.branches.merge_end(id, end).await
    }
}

#[test]
fn a_list_without_end_is_not_read_for_ever() {
    let store = memory();
    Writer::begin(&store, &still_clock(1));
    let endless = Most {
        branches: Branches::of(&store),
    };
    let error = now(Heads::of(&endless)).unwrap_err().to_string();
    assert!(error.contains("does not end"), "{error}");
}
