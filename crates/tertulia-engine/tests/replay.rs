//! A replay: tools do not run, recorded results answer their calls.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use tertulia_agents::approval::{Approval, Permissions, Risk, ToolRequest, Verdict};
use tertulia_agents::tool::{ToolLimits, Toolbox};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, Outcome, Readiness, ToolSide,
};
use tertulia_core::clock::Clock;
use tertulia_core::entry::{Body, Kind, Origin, Relation, Replayed, Role, ToolCall, ToolOutcome};
use tertulia_core::id::SessionId;
use tertulia_core::replay::{Recording, TurnMatch, compare};
use tertulia_core::session::Log;
use tertulia_engine::conversation::Conversation;
use tertulia_engine::event::{SessionEnd, SessionEvent, TurnStatus};
use tertulia_engine::frontend::Frontend;
use tertulia_engine::live::{Closing, LiveSession, SessionCommand};
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::replay::Replay;
use tertulia_engine::setup::{Participants, RunOptions, Setup, Target};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{Redaction, Sessions, Start};
use tokio_util::sync::CancellationToken;

/// Calls the tools that the prompt names, `TOOL JSON` a line, and repeats their results.
#[derive(Debug)]
struct Caller {
    tools: ToolSide,
    /// Tool policies and answers to permission requests that it was given.
    given: Mutex<Vec<(Approval, Option<Verdict>)>>,
}

impl Caller {
    fn with(tools: ToolSide) -> Arc<Caller> {
        let given = Mutex::default();
        Arc::new(Caller { tools, given })
    }
}

/// Returns the calls that a prompt names.
fn calls_in(prompt: &str) -> Vec<ToolCall> {
    let lines = prompt.lines().filter_map(|line| line.split_once(' '));
    let calls = lines.enumerate().map(|(number, (name, arguments))| {
        let arguments = serde_json::from_str(arguments).unwrap();
        let (id, name) = (format!("call-{number}"), name.to_owned());
        ToolCall {
            id,
            name,
            arguments,
        }
    });
    calls.collect()
}

#[async_trait]
impl Agent for Caller {
    fn name(&self) -> &str {
        "caller"
    }

    fn model(&self) -> Option<&str> {
        Some("m")
    }

    fn tools(&self) -> ToolSide {
        self.tools
    }

    async fn readiness(&self) -> Readiness {
        Readiness::Ready(None)
    }

    async fn models(&self) -> Result<Vec<String>, AgentError> {
        Ok(Vec::new())
    }

    async fn answer(&self, asked: &AgentRequest, sink: &AgentSink) -> Result<Outcome, AgentError> {
        let last = asked.messages.last().unwrap();
        let calls = match last.role {
            Role::User => calls_in(&last.content),
            _ => Vec::new(),
        };
        let mut verdict = None;
        if self.tools == ToolSide::Ours && !calls.is_empty() {
            assert!(!asked.tools.is_empty(), "no tools are offered");
            return Ok(Outcome::Calls { calls, memo: None });
        } else if let Some(call) = calls.into_iter().next() {
            let request = ToolRequest {
                call,
                risk: Risk::Low,
                preview: String::new(),
                folder: String::new(),
                key: "x".to_owned(),
                is_edit: false,
            };
            verdict = Some(sink.ask(request).await);
        }
        self.given.lock().unwrap().push((asked.approval, verdict));
        let results = asked.messages.iter().rev();
        let results = results.take_while(|message| message.role == Role::Tool);
        let mut texts: Vec<&str> = results.map(|message| message.content.as_str()).collect();
        texts.reverse();
        let text = format!("done: {}", texts.join(" | "));
        sink.say(AgentEvent::Text(text)).await?;
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

/// Allows everything that it is asked.
struct Generous;

#[async_trait]
impl Frontend for Generous {
    fn show(&mut self, _: SessionEvent) {}

    async fn approve(&mut self, _: &ToolRequest) -> Verdict {
        Verdict::Yes
    }
}

fn sessions(folder: &Path) -> Sessions {
    let store = SqliteStore::open(&folder.join("store.db")).unwrap();
    let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
    Sessions::new(Arc::new(store), clock, Redaction::On)
}

/// Runs these prompts in a new session, with all tools allowed.
async fn run(
    sessions: &Sessions,
    work_dir: &Path,
    agent: Arc<Caller>,
    replay: Option<Replay>,
    prompts: &[&str],
) -> SessionId {
    let id = sessions.clock().session_id();
    let start = Start {
        id,
        kind: Kind::Chat,
        title: None,
        team: None,
        project: None,
        project_ids: Vec::new(),
        cwd: None,
        terms: None,
    };
    let tools = Toolbox::new(work_dir.to_owned(), ToolLimits::default(), Vec::new());
    let setup = Setup {
        sessions: sessions.clone(),
        target: Target::New(start),
        on_conflict: OnConflict::Fork,
        participants: Participants::Chat(agent),
        options: RunOptions {
            rules: Permissions::new(Approval::All),
            tools: Some(tools.unwrap()),
            replay,
            ..RunOptions::default()
        },
        introduction: String::new(),
        notices: Vec::new(),
        closing: Arc::new(Quiet),
    };
    let mut session = LiveSession::open(setup, &mut Generous).await.unwrap();
    for prompt in prompts {
        let command = SessionCommand::Say((*prompt).into());
        let cancel = CancellationToken::new();
        let outcome = session.execute(command, &mut Generous, &cancel).await;
        assert_eq!(outcome.status, TurnStatus::Completed);
    }
    session.close(true).await;
    id
}

/// Returns the replay of a session, and its log.
async fn replay_of(sessions: &Sessions, id: SessionId) -> (Replay, Log) {
    let head = sessions.row(id).await.unwrap().meta.head;
    let log = sessions.load(id).await.unwrap();
    let link = Replayed {
        of: Origin {
            id,
            seq: head.seq,
            hash: head.hash,
        },
        agent: "caller".to_owned(),
        model: None,
    };
    (Replay::new(link, &Recording::of(&log.entries)), log)
}

/// Returns the results of tools in a log.
fn results(log: &Log) -> Vec<(String, ToolOutcome)> {
    let results = log.messages().filter_map(|(_, message)| {
        let outcome = message.tool_outcome()?;
        Some((message.content.clone(), outcome))
    });
    results.collect()
}

#[tokio::test]
async fn recorded_results_answer_the_calls_and_no_file_is_touched() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sessions = sessions(home.path());
    std::fs::write(folder.path().join("kept"), "as it was\n").unwrap();
    let write = json!({ "path": "made", "content": "new" });
    let (read, ran) = (
        json!({ "path": "kept" }),
        json!({ "command": "touch ran; false" }),
    );
    let first = format!("file_read {read}\nfile_write {write}");
    let second = format!("shell {ran}");
    let prompts = [first.as_str(), second.as_str()];
    let agent = Caller::with(ToolSide::Ours);
    let original = run(&sessions, folder.path(), agent.clone(), None, &prompts).await;
    // Before the replay, the files change and disappear.
    std::fs::write(folder.path().join("kept"), "changed since\n").unwrap();
    for made in ["made", "ran"] {
        std::fs::remove_file(folder.path().join(made)).unwrap();
    }
    let (replay, log) = replay_of(&sessions, original).await;
    let again = run(&sessions, folder.path(), agent, Some(replay), &prompts).await;
    let played = sessions.load(again).await.unwrap();
    assert_eq!(results(&played), results(&log));
    assert!(results(&played)[0].0.contains("as it was"));
    assert_eq!(results(&played)[2].1, ToolOutcome::Failed);
    let names = std::fs::read_dir(folder.path()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["kept"]);
    let kinds: Vec<&str> = played
        .entries
        .iter()
        .map(|entry| entry.body.kind())
        .collect();
    assert_eq!(kinds[..3], ["created", "replayed", "message"]);
    let links = |entry: &&tertulia_core::entry::Entry| matches!(entry.body, Body::Replayed(_));
    assert_eq!(played.entries.iter().filter(links).count(), 1);
    let parent = sessions.row(again).await.unwrap().meta.parent.unwrap();
    assert_eq!((parent.id, parent.relation), (original, Relation::Replay));
    let compared = compare(
        &Recording::of(&log.entries).turns,
        &Recording::of(&played.entries).turns,
    );
    assert_eq!(compared.turns.len(), 2);
    assert_eq!(compared.first_divergence(), None);
}

#[tokio::test]
async fn a_call_that_was_not_recorded_is_refused_and_diverges() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sessions = sessions(home.path());
    let list = json!({});
    let once = format!("directory_list {list}");
    let agent = Caller::with(ToolSide::Ours);
    let original = run(&sessions, folder.path(), agent.clone(), None, &[&once]).await;
    let (replay, log) = replay_of(&sessions, original).await;
    let touch = json!({ "command": "touch made" });
    let more = format!("directory_list {list}\nshell {touch}\ndirectory_list {list}");
    let again = run(&sessions, folder.path(), agent, Some(replay), &[&more]).await;
    let played = sessions.load(again).await.unwrap();
    let refused = (
        "[not run: the recording has no such call]".to_owned(),
        ToolOutcome::Denied,
    );
    let results = results(&played);
    assert_eq!(results[0].1, ToolOutcome::Ok);
    assert_eq!(results[1..], [refused.clone(), refused]);
    assert!(!folder.path().join("made").exists());
    let compared = compare(
        &Recording::of(&log.entries).turns,
        &Recording::of(&played.entries).turns,
    );
    assert_eq!(compared.turns[0].result, TurnMatch::OtherTools);
}

#[tokio::test]
async fn an_agent_with_tools_of_its_own_gets_no_permission() {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sessions = sessions(home.path());
    let agent = Caller::with(ToolSide::Its);
    let prompt = "read {}";
    let original = run(&sessions, folder.path(), agent.clone(), None, &[prompt]).await;
    let (replay, _) = replay_of(&sessions, original).await;
    run(
        &sessions,
        folder.path(),
        agent.clone(),
        Some(replay),
        &[prompt],
    )
    .await;
    assert_eq!(
        *agent.given.lock().unwrap(),
        [
            (Approval::All, Some(Verdict::Yes)),
            (Approval::None, Some(Verdict::No))
        ]
    );
}
