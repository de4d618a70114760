//! Messages that wait for the running turn, with a real store.

use std::sync::{Arc, Mutex};

use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind, Role, human, plain};
use tertulia_core::id::SessionId;
use tertulia_engine::event::SessionEvent;
use tertulia_engine::message_queue::{MessageQueue, Put, WithdrawReason};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start, UnsentMessage};

struct Stage {
    folder: tempfile::TempDir,
    id: SessionId,
}

impl Stage {
    fn new() -> Stage {
        let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
        Stage {
            folder: tempfile::tempdir().unwrap(),
            id: clock.session_id(),
        }
    }

    /// Opens the store as another process does.
    fn sessions(&self) -> Sessions {
        let store = SqliteStore::open(&self.folder.path().join("store.db")).unwrap();
        let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
        Sessions::new(Arc::new(store), clock, Redaction::On)
    }

    async fn queue(&self) -> (MessageQueue, Arc<Mutex<Vec<SessionEvent>>>) {
        let sessions = self.sessions();
        let row = sessions.row(self.id).await.ok();
        let meta = row.as_ref().map(|row| &row.meta);
        let project = Some("dir:/work".to_owned());
        let queue = MessageQueue::open(sessions, self.id, meta, project);
        let queue = queue.await.unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let to = events.clone();
        queue.publish_to(move |event| to.lock().unwrap().push(event));
        (queue, events)
    }

    /// Returns texts and states at rest.
    async fn at_rest(&self) -> Vec<(String, bool)> {
        let unsent = self.sessions().unsent(self.id, None).await.unwrap();
        let state = |message: UnsentMessage| (message.text, message.is_queued);
        unsent.into_iter().map(state).collect()
    }
}

fn message(id: &str, text: &str) -> UnsentMessage {
    UnsentMessage::typed(id.to_owned(), jiff::Timestamp::now(), text.to_owned())
}

fn drafts(queue: &MessageQueue) -> Vec<String> {
    let SessionEvent::Unsent { messages, .. } = queue.event() else {
        panic!("another event");
    };
    let drafts = messages.into_iter().filter(|message| !message.is_queued);
    drafts.map(|message| message.text).collect()
}

#[tokio::test]
async fn a_queued_message_is_on_disk_and_is_sent_once() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    assert_eq!(queue.put(message("a", "one")).await, Ok(Put::Queued));
    assert_eq!(stage.at_rest().await, [("one".to_owned(), true)]);
    assert_eq!(queue.put(message("a", "one")).await, Ok(Put::Duplicate));
    assert_eq!(queue.put(message("b", "two")).await, Ok(Put::Queued));
    assert_eq!(queue.next().await.unwrap().text, "one");
    // Until its turn has ended it may not be in the log.
    assert_eq!(stage.at_rest().await.len(), 2);
    assert_eq!(queue.put(message("a", "one")).await, Ok(Put::Duplicate));
    queue.finish(false).await;
    assert_eq!(stage.at_rest().await, [("two".to_owned(), true)]);
    assert_eq!(queue.next().await.unwrap().text, "two");
    queue.finish(false).await;
    assert_eq!(queue.next().await, None);
    assert_eq!(stage.at_rest().await, []);
}

#[tokio::test]
async fn after_a_crash_nothing_is_sent_by_itself() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    queue.put(message("a", "one")).await.unwrap();
    queue.set_typed("input", "half a thou".to_owned());
    queue.save_typed().await;
    drop(queue);
    let (queue, events) = stage.queue().await;
    assert_eq!(queue.next().await, None);
    assert_eq!(drafts(&queue), ["one", "half a thou"]);
    assert_eq!(events.lock().unwrap().len(), 1, "the frontends are told");
    // A frontend that does not know what became of it asks again.
    let put = queue.put(message("a", "one")).await;
    assert_eq!(put, Ok(Put::Withdrawn(WithdrawReason::Restarted)));
    assert!(queue.remove("a").await);
    assert!(!queue.remove("a").await);
    drop(queue);
    let (queue, _) = stage.queue().await;
    assert_eq!(drafts(&queue), ["half a thou"]);
}

#[tokio::test]
async fn what_is_in_the_log_is_no_draft_after_a_crash() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    queue.put(message("a", "one")).await.unwrap();
    let sent = queue.next().await.unwrap();
    let start = Start {
        id: stage.id,
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    let mut said = plain(&human(), Role::User, sent.text);
    said.client_id = Some(sent.client_id);
    let sessions = stage.sessions();
    sessions
        .create(&start, vec![Body::Message(said)])
        .await
        .unwrap();
    // The process is killed before the turn ends.
    drop(queue);
    let (queue, _) = stage.queue().await;
    assert_eq!(drafts(&queue), [""; 0]);
}

#[tokio::test]
async fn a_withdrawn_message_is_a_draft_and_everyone_is_told() {
    let stage = Stage::new();
    let (queue, events) = stage.queue().await;
    queue.put(message("a", "one")).await.unwrap();
    queue.put(message("b", "two")).await.unwrap();
    events.lock().unwrap().clear();
    queue.withdraw(WithdrawReason::Cancelled);
    let told: Vec<String> = events
        .lock()
        .unwrap()
        .iter()
        .filter_map(|event| match event {
            SessionEvent::Withdrawn {
                client_id,
                reason: WithdrawReason::Cancelled,
                ..
            } => Some(client_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["a", "b"]);
    assert_eq!(queue.next().await, None);
    assert_eq!(drafts(&queue), ["one", "two"]);
    let put = queue.put(message("a", "one")).await;
    assert_eq!(put, Ok(Put::Withdrawn(WithdrawReason::Cancelled)));
    queue.close(WithdrawReason::HolderEnded).await;
    let at_rest = stage.at_rest().await;
    assert!(
        at_rest.iter().all(|(_, is_queued)| !is_queued),
        "{at_rest:?}"
    );
    assert!(queue.put(message("c", "three")).await.is_err());
    // The next process does not send it either.
    let (queue, _) = stage.queue().await;
    let put = queue.put(message("a", "one")).await;
    assert_eq!(put, Ok(Put::Withdrawn(WithdrawReason::Restarted)));
    assert_eq!(queue.next().await, None);
    assert_eq!(drafts(&queue), ["one", "two"]);
}

#[tokio::test]
async fn an_edited_message_waits_at_its_place() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    for (id, text) in [("a", "one"), ("b", "two")] {
        queue.put(message(id, text)).await.unwrap();
    }
    assert!(queue.begin_editing("a", 7));
    assert!(!queue.begin_editing("x", 7));
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await.unwrap().text }
    });
    // A frontend that is gone does not hold the others up.
    assert!(queue.edit("b", "second".to_owned()).await.unwrap());
    assert_eq!(waiting.await.unwrap(), "one");
    assert_eq!(queue.next().await.unwrap().text, "second");
    assert!(!queue.edit("b", "late".to_owned()).await.unwrap());
    queue.put(message("c", "three")).await.unwrap();
    assert!(queue.begin_editing("c", 7));
    queue.release(Some(8));
    let next = queue.next();
    tokio::pin!(next);
    assert!(
        futures::poll!(&mut next).is_pending(),
        "another frontend edits it"
    );
    queue.release(Some(7));
    assert_eq!(next.await.unwrap().text, "three");
}

#[tokio::test]
async fn refused_words_come_back() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    queue.put(message("a", "one")).await.unwrap();
    queue.next().await.unwrap();
    queue.finish(true).await;
    assert_eq!(drafts(&queue), ["one"]);
    assert_eq!(queue.end_of("a"), Some(WithdrawReason::Refused));
}

#[tokio::test]
async fn words_move_with_the_session() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    queue.put(message("a", "one")).await.unwrap();
    let fork = stage.sessions().clock().session_id();
    queue.move_to(fork).await;
    assert_eq!(stage.at_rest().await, []);
    assert_eq!(stage.sessions().unsent(fork, None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn words_of_a_session_without_entries_are_found_by_its_project() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    let lock = stage.sessions().store().claim(stage.id).await.unwrap();
    queue.set_typed("input", "a new idea".to_owned());
    queue.save_typed().await;
    let other = Stage {
        id: stage.sessions().clock().session_id(),
        folder: stage.folder,
    };
    let (next, _) = other.queue().await;
    // Another screen has it open.
    next.adopt_orphans().await;
    assert_eq!(drafts(&next), [""; 0]);
    drop(lock);
    next.adopt_orphans().await;
    assert_eq!(drafts(&next), ["a new idea"]);
    let (third, _) = other.queue().await;
    third.adopt_orphans().await;
    assert_eq!(drafts(&third), ["a new idea"], "it is this session's now");
}

#[tokio::test]
async fn secrets_are_not_written() {
    let stage = Stage::new();
    let (queue, _) = stage.queue().await;
    let secret = format!("use sk-ant-api03-{}", "a1B2".repeat(23));
    queue.put(message("a", &secret)).await.unwrap();
    assert!(stage.at_rest().await[0].0.contains("[redacted:"));
    // The agent of this session gets the words as typed.
    assert_eq!(queue.next().await.unwrap().text, secret);
}
