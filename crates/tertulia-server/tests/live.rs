//! Live sessions of a server whose agent panics or waits, over a connection in memory.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, Outcome, Readiness, ToolSide,
};
use tertulia_core::clock::Clock;
use tertulia_core::entry::Kind;
use tertulia_core::id::SessionId;
use tertulia_core::query::Row;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::event::SessionEnd;
use tertulia_engine::live::Closing;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::notification::Occasion;
use tertulia_engine::setup::{ChatAgent, Participants, RunOptions, Setup, Target};
use tertulia_engine::spec::SessionSpec;
use tertulia_server::connection;
use tertulia_server::host::{
    Catalog, Found, Host, HostResult, Listed, Search, StoreChanges, Which,
};
use tertulia_server::hub::{Hub, Limits};
use tertulia_server::protocol::{Answer, ErrorBody, ErrorKind, ProjectInfo, Selection};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

/// Answers "hello"; panics or waits when it is asked to.
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
        if last.content.contains("wait") {
            sink.cancel().cancelled().await;
        }
        sink.check().map(|()| Outcome::Done)
    }
}

struct Quiet;

#[async_trait]
impl Closing for Quiet {
    async fn close(&self, _: &mut Conversation) -> SessionEnd {
        SessionEnd::default()
    }
}

/// A host with one agent, that finds sessions only by their ids.
struct Small {
    sessions: Sessions,
    /// Whether the store has no session yet, as if nothing could be saved.
    saves_nothing: bool,
}

fn absent<T>() -> HostResult<T> {
    Err(ErrorBody::new(ErrorKind::NotFound, "absent"))
}

#[async_trait]
impl Host for Small {
    fn version(&self) -> String {
        "0".to_owned()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn zone(&self) -> TimeZone {
        TimeZone::UTC
    }

    fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    fn changes(&self) -> Option<StoreChanges> {
        None
    }

    fn notify(&self, _: SessionId, _: Occasion, _: &str, _: &str) {}

    fn new_id(&self) -> SessionId {
        self.sessions.clock().session_id()
    }

    fn complete_hints(&self, text: &str) -> String {
        text.to_owned()
    }

    async fn agent(&self, _: Option<&str>) -> HostResult<String> {
        Ok("fragile".to_owned())
    }

    async fn prepare(&self, which: Which, _: &SessionSpec) -> HostResult<Setup> {
        let target = match self.sessions.row(which.id()).await {
            Ok(row) => Target::Resume(Box::new(row), None),
            Err(_) => Target::New(Start {
                id: which.id(),
                kind: Kind::Chat,
                title: None,
                team: None,
                project: None,
                project_ids: Vec::new(),
                cwd: None,
                terms: None,
            }),
        };
        Ok(Setup {
            sessions: self.sessions.clone(),
            target,
            on_conflict: OnConflict::Fork,
            participants: Participants::Chat(Arc::new(Fragile)),
            options: RunOptions::default(),
            introduction: String::new(),
            notices: Vec::new(),
            closing: Arc::new(Quiet),
        })
    }

    async fn chat_agent(&self, _: Which, _: &SessionSpec) -> HostResult<ChatAgent> {
        absent()
    }

    async fn check(&self, _: Which, _: &SessionSpec) -> HostResult<()> {
        Ok(())
    }

    async fn find(&self, name: &str) -> HostResult<Row> {
        let Ok(id) = name.parse::<SessionId>() else {
            return absent();
        };
        match self.sessions.row(id).await {
            Ok(row) if !self.saves_nothing => Ok(row),
            _ => absent(),
        }
    }

    async fn find_place(&self, name: &str) -> HostResult<(Row, Option<u64>)> {
        Ok((self.find(name).await?, None))
    }

    async fn create(&self, _: Option<String>, _: &SessionSpec) -> HostResult<SessionId> {
        absent()
    }

    async fn last(&self, _: &Row, _: usize) -> HostResult<Vec<Value>> {
        Ok(Vec::new())
    }

    async fn list(&self, _: &Selection, _: usize, _: Option<&str>) -> HostResult<Listed> {
        absent()
    }

    async fn facets(&self) -> HostResult<(Vec<ProjectInfo>, Vec<String>)> {
        absent()
    }

    async fn search(&self, _: &Search) -> HostResult<Found> {
        absent()
    }

    async fn rename(&self, _: &Row, _: &str) -> HostResult<Row> {
        absent()
    }

    async fn tag(&self, _: &Row, _: Vec<String>, _: Vec<String>) -> HostResult<Row> {
        absent()
    }

    async fn restore(&self, _: &str) -> HostResult<Row> {
        absent()
    }

    async fn undo(&self) -> HostResult<Vec<(SessionId, String)>> {
        absent()
    }

    async fn family(&self, _: &Row) -> HostResult<Vec<Value>> {
        absent()
    }

    /// Takes as long as there is no file of the name that `since` gives.
    async fn stats(&self, since: Option<String>, _: Option<String>) -> HostResult<Value> {
        let file = std::path::PathBuf::from(since.unwrap());
        while !file.exists() {
            tokio::task::yield_now().await;
        }
        Ok(json!({}))
    }

    async fn catalog(&self) -> HostResult<Catalog> {
        absent()
    }

    async fn models(&self, _: &str) -> HostResult<Vec<String>> {
        absent()
    }

    async fn fork(&self, _: &Row, _: Option<u64>) -> HostResult<SessionId> {
        absent()
    }

    async fn trash(&self, _: &Row) -> HostResult<()> {
        Ok(())
    }

    async fn export(&self, _: &Row, _: &str) -> HostResult<String> {
        absent()
    }
}

/// Time after which a reply that is missing is a failure.
const LONGEST_WAIT: std::time::Duration = std::time::Duration::from_secs(60);

/// A connected client.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Client {
    fn connect(hub: &Arc<Hub>) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(connection::serve(hub.clone(), reader, writer));
        let (reader, writer) = tokio::io::split(ours);
        Client {
            lines: BufReader::new(reader).lines(),
            writer,
        }
    }

    async fn send(&mut self, request: Value) {
        let line = format!("{request}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    async fn reply(&mut self) -> Value {
        let line = tokio::time::timeout(LONGEST_WAIT, self.lines.next_line()).await;
        let line = line.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Reads replies until one has this type.
    async fn until(&mut self, kind: &str) -> Value {
        loop {
            let reply = self.reply().await;
            if reply["type"] == kind {
                return reply;
            }
        }
    }

    async fn query(&mut self, words: &str) {
        self.send(json!({ "type": "query", "query": words })).await;
    }

    /// Runs a whole turn. Returns its session.
    async fn turn(&mut self, words: &str) -> SessionId {
        self.query(words).await;
        let complete = self.until("complete").await;
        assert_eq!(complete["status"], "completed", "{complete}");
        complete["session_id"].as_str().unwrap().parse().unwrap()
    }
}

pub fn server(folder: &std::path::Path, saves_nothing: bool) -> (Arc<Hub>, Sessions) {
    let store = SqliteStore::open(&folder.join("store.db")).unwrap();
    let clock = Clock::new(Timestamp::now, uuid::Uuid::now_v7);
    let sessions = Sessions::new(Arc::new(store), clock, Redaction::On);
    let host = Small {
        sessions: sessions.clone(),
        saves_nothing,
    };
    let runtime = tokio::runtime::Handle::current();
    (
        Hub::new(Arc::new(host), Limits::default(), runtime),
        sessions,
    )
}

#[tokio::test]
async fn a_long_read_holds_up_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (hub, _) = server(home.path(), false);
    let mut client = Client::connect(&hub);
    let stats = |file: &std::path::Path| json!({ "type": "stats", "since": file });
    let with_id = |mut request: Value, id: u64| {
        request["id"] = json!(id);
        request
    };
    let file = home.path().join("one");
    client.send(with_id(stats(&file), 1)).await;
    client.send(json!({ "type": "ps", "id": 2 })).await;
    let reply = client.reply().await;
    assert_eq!(
        (&reply["id"], &reply["type"]),
        (&json!(2), &json!("ps_result"))
    );
    assert_eq!(reply["access"], "full");
    std::fs::write(file, "").unwrap();
    assert_eq!(client.reply().await["id"], 1);
    // Without an id, only the order tells which reply is whose.
    let file = home.path().join("two");
    client.send(stats(&file)).await;
    client.send(json!({ "type": "ps", "id": 3 })).await;
    tokio::task::yield_now().await;
    std::fs::write(file, "").unwrap();
    assert_eq!(client.reply().await["type"], "stats_result");
    assert_eq!(client.reply().await["id"], 3);
    // A client that only listens still gets its reply.
    let file = home.path().join("three");
    client.send(with_id(stats(&file), 4)).await;
    client.writer.shutdown().await.unwrap();
    tokio::task::yield_now().await;
    std::fs::write(file, "").unwrap();
    assert_eq!(client.reply().await["id"], 4);
}

#[tokio::test]
async fn a_panic_ends_one_session_and_the_server_lives_on() {
    let home = tempfile::tempdir().unwrap();
    let (hub, sessions) = server(home.path(), false);
    let (mut other, mut client) = (Client::connect(&hub), Client::connect(&hub));
    let undisturbed = other.turn("one").await;
    let id = client.turn("one").await;
    let follow = json!({ "type": "subscribe", "session_id": id.to_string() });
    client.send(follow).await;
    client.until("subscribed").await;
    client.query("break").await;
    let error = client.until("error").await;
    assert_eq!(error["message"], "internal error: the session task crashed");
    let complete = client.until("complete").await;
    assert_eq!(complete["status"], "failed");
    while hub.hosted(id).is_some_and(|hosted| hosted.task().is_some()) {
        tokio::task::yield_now().await;
    }
    assert!(sessions.store().claim(id).await.unwrap().is_some());
    assert_eq!(other.turn("two").await, undisturbed);
    assert_eq!(client.turn("two").await, id);
}

#[tokio::test]
async fn a_client_that_is_gone_is_sent_nothing_more() {
    let home = tempfile::tempdir().unwrap();
    let (hub, _) = server(home.path(), false);
    let guest = hub.admit().unwrap();
    // A queued request of the client still has its outbox.
    let outbox = guest.outbox.clone();
    hub.dismiss(&guest);
    outbox.post(None, Answer::SessionDeleted { success: true });
    assert_eq!(outbox.take(1).await, None);
}

#[tokio::test]
async fn a_session_that_is_not_saved_yet_is_deleted_only_if_it_is_idle() {
    let home = tempfile::tempdir().unwrap();
    let (hub, _) = server(home.path(), true);
    let mut client = Client::connect(&hub);
    let id = client.turn("one").await;
    client.query("wait").await;
    client.until("token").await;
    let delete = json!({ "type": "session_delete", "session_id": id.to_string() });
    client.send(delete.clone()).await;
    let error = client.reply().await;
    assert_eq!(error["kind"], "conflict", "{error}");
    client.send(json!({ "type": "cancel" })).await;
    client.until("complete").await;
    client.send(delete).await;
    let deleted = client.until("session_deleted").await;
    assert_eq!(deleted["success"], true);
    assert!(hub.hosted(id).is_none_or(|hosted| hosted.task().is_none()));
    // The next query begins another session.
    assert_ne!(client.turn("two").await, id);
}
