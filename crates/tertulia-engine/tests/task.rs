//! The task of a live session, with a real store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tertulia_agents::approval::{Permissions, ToolRequest, Verdict};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, Outcome, Readiness, ToolSide,
};
use tertulia_core::clock::Clock;
use tertulia_core::entry::Kind;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::error::ErrorBody;
use tertulia_engine::event::{SessionEnd, SessionEvent, SessionState, TurnStatus};
use tertulia_engine::live::{Closing, CommandOutcome, SessionCommand};
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::message_queue::MessageQueue;
use tertulia_engine::setup::{Participants, RunOptions, Setup, Target};
use tertulia_engine::task::{self, Controls, Limits, Observer, Step, TaskEnd};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start, UnsentMessage};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Answers "hello", and panics when it is asked to.
#[derive(Debug)]
struct Fragile;

#[async_trait]
impl Agent for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn model(&self) -> Option<&str> {
        None
    }

    fn tools(&self) -> ToolSide {
        ToolSide::None
    }

    async fn readiness(&self) -> Readiness {
        Readiness::Ready(None)
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        Ok(Vec::new())
    }

    async fn answer(&self, asked: &AgentRequest, sink: &AgentSink) -> Result<Outcome, AgentError> {
        let last = asked.messages.last().unwrap();
        assert!(!last.content.contains("break"), "asked to break");
        sink.say(AgentEvent::Text("hello".to_owned())).await?;
        Ok(Outcome::Done)
    }
}

struct Quiet;

#[async_trait]
impl Closing for Quiet {
    async fn close(&self, _: &mut Conversation) -> SessionEnd {
        SessionEnd::default()
    }
}

/// Keeps what happens.
#[derive(Clone, Default)]
struct Record {
    events: Arc<Mutex<Vec<SessionEvent>>>,
    outcomes: Arc<Mutex<Vec<TurnStatus>>>,
    crashed: Arc<Mutex<Option<ErrorBody>>>,
}

impl Observer for Record {
    type Request = SessionCommand;

    fn publish(&mut self, event: SessionEvent) {
        self.events.lock().unwrap().push(event);
    }

    fn ask(&mut self, _: &ToolRequest) -> Option<oneshot::Receiver<Verdict>> {
        None
    }

    fn withdraw(&mut self) {}

    fn opened(&mut self, _: Permissions, queue: &MessageQueue) {
        let events = self.events.clone();
        queue.publish_to(move |event| events.lock().unwrap().push(event));
    }

    fn begins(&mut self, _: &UnsentMessage) -> CancellationToken {
        CancellationToken::new()
    }

    fn take(&mut self, command: SessionCommand) -> Step {
        Step::Execute(command, CancellationToken::new())
    }

    fn finish(&mut self, outcome: CommandOutcome, _: SessionState) {
        self.outcomes.lock().unwrap().push(outcome.status);
    }

    fn is_needed(&self) -> bool {
        false
    }

    fn leaving(&mut self, _: SessionState) {}

    fn closed(&mut self, _: &SessionEnd) {}

    fn crashed(&mut self, error: &ErrorBody) {
        *self.crashed.lock().unwrap() = Some(error.clone());
    }
}

fn sessions(folder: &std::path::Path) -> Sessions {
    let store = SqliteStore::open(&folder.join("store.db")).unwrap();
    let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
    Sessions::new(Arc::new(store), clock, Redaction::On)
}

fn setup(sessions: &Sessions) -> Setup {
    let start = Start {
        id: sessions.clock().session_id(),
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    Setup {
        sessions: sessions.clone(),
        target: Target::New(start),
        on_conflict: OnConflict::Fork,
        participants: Participants::Chat(Arc::new(Fragile)),
        options: RunOptions::default(),
        introduction: String::new(),
        notices: Vec::new(),
        closing: Arc::new(Quiet),
    }
}

/// Runs a session that is told these messages and then left.
async fn run(setup: Setup, messages: &[&str]) -> (TaskEnd, Record) {
    let (send, mut requests) = mpsc::unbounded_channel();
    for message in messages {
        send.send(SessionCommand::Say((*message).into())).unwrap();
    }
    drop(send);
    let record = Record::default();
    let (controls, limits) = (Controls::default(), Limits::default());
    let ready = async { Ok(setup) };
    let end = task::run(ready, &mut requests, &mut record.clone(), &controls, limits).await;
    (end, record)
}

#[tokio::test]
async fn messages_are_answered_in_order_until_the_session_is_left() {
    let home = tempfile::tempdir().unwrap();
    let sessions = sessions(home.path());
    let (end, record) = run(setup(&sessions), &["one", "two"]).await;
    assert_eq!(end, TaskEnd::Closed);
    let completed = TurnStatus::Completed;
    assert_eq!(*record.outcomes.lock().unwrap(), [completed, completed]);
    let events = record.events.lock().unwrap();
    assert!(matches!(
        events[0],
        SessionEvent::Started { resumed: None, .. }
    ));
    assert!(matches!(events.last(), Some(SessionEvent::Gone { .. })));
    let said: Vec<String> = events
        .iter()
        .filter_map(|event| Some(event.entry()?.message()?.content.clone()))
        .collect();
    assert_eq!(said, ["one", "hello", "two", "hello"]);
}

#[tokio::test]
async fn a_panic_ends_the_session_keeps_its_words_and_frees_its_lock() {
    let home = tempfile::tempdir().unwrap();
    let sessions = sessions(home.path());
    let setup = setup(&sessions);
    let id = setup.target.id();
    let (end, record) = run(setup, &["one", "break", "two"]).await;
    assert!(matches!(end, TaskEnd::Failed(_)), "{end:?}");
    let crashed = record.crashed.lock().unwrap().clone().unwrap();
    assert_eq!(crashed.message, "internal error: the session task crashed");
    let row = sessions.row(id).await.unwrap();
    assert!(!row.open);
    assert_eq!(row.meta.messages, 3);
    assert!(sessions.store().claim(id).await.unwrap().is_some());
}
