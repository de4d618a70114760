//! Where the agents perform: their folder, their processes, and what was heard of them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tertulia_agents::acp::{Acp, Connection};
use tertulia_agents::approval::{Rules, Ruling, ToolRequest, Verdict};
use tertulia_agents::process::MARKER_VAR;
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, NativeSession, Outcome, Patience,
    PromptMessage, Whence,
};
use tertulia_core::entry::{Role, Usage};
use tertulia_testkit::waiting::{DEADLINE, wait_until_async};
use tokio_util::sync::CancellationToken;

pub const AGENT: &str = env!("CARGO_BIN_EXE_acp_agent");

/// A folder for the agent's sessions, and the name that marks its processes.
pub struct Stage {
    folder: tempfile::TempDir,
    marker: String,
    asked: AtomicU32,
}

impl Stage {
    pub fn set() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let marker = format!("acp-{}", folder.path().display());
        Stage {
            folder,
            marker,
            asked: AtomicU32::new(0),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn agent(&self, words: &[&str]) -> Acp {
        let mut args = vec![self.path().display().to_string()];
        args.extend(words.iter().map(|word| (*word).to_owned()));
        self.program(AGENT, args)
    }

    /// The agent behind a shell script, in which it is `"$@"`.
    pub fn behind(&self, script: &str) -> Acp {
        let args = ["-c", script, "sh", AGENT].map(str::to_owned);
        let folder = self.path().display().to_string();
        self.program("sh", args.into_iter().chain([folder]).collect())
    }

    pub fn program(&self, command: &str, args: Vec<String>) -> Acp {
        Acp {
            name: "fake".into(),
            model: None,
            command: command.into(),
            args,
            env: vec![("FAKE_KEY".into(), "secret".into())],
            without: Vec::new(),
            work_dir: self.path().to_owned(),
            asks: false,
            homes: None,
            session_files: None,
            system: None,
            patience: Patience {
                total: Duration::from_secs(60),
                idle: Duration::from_secs(60),
            },
            grace: tertulia_agents::acp::GRACE,
            whence: Whence::settings("fake"),
            found: Some(command.into()),
            connection: Connection::default(),
        }
    }

    pub fn question(&self, words: &[&str]) -> AgentRequest {
        let said = words
            .iter()
            .map(|words| PromptMessage::plain(Role::User, "You", *words));
        AgentRequest {
            messages: said.collect(),
            // No two questions have the same.
            marker: format!(
                "{}#{}",
                self.marker,
                self.asked.fetch_add(1, Ordering::Relaxed)
            ),
            ..AgentRequest::default()
        }
    }

    pub fn noted(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn starts(&self) -> usize {
        self.noted("starts").len()
    }

    /// The processes that belong to the agent.
    pub fn left(&self) -> Vec<i32> {
        let wanted = format!("{MARKER_VAR}={}#", self.marker).into_bytes();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid: &i32| {
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ
                    .split(|byte| *byte == 0)
                    .any(|part| part.starts_with(&wanted))
            })
            .collect()
    }

    /// A process that was replaced has ended.
    pub async fn all_gone_but_one(&self) {
        wait_until_async("one process left", || self.left().len() == 1).await;
    }

    pub async fn all_gone(&self) {
        wait_until_async("all processes gone", || self.left().is_empty()).await;
    }
}

pub fn native(id: &str, known: usize) -> Option<NativeSession> {
    Some(NativeSession {
        id: id.to_owned(),
        cwd: None,
        known,
        spent: Usage::default(),
        fork: false,
    })
}

/// What came of one question.
pub struct Heard {
    pub ended: Result<Outcome, AgentError>,
    pub events: Vec<AgentEvent>,
    pub asked: Vec<ToolRequest>,
}

impl Heard {
    pub fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            AgentEvent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub fn session(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            AgentEvent::Session(id) => Some(id.as_str()),
            _ => None,
        })
    }

    pub fn remarks(&self) -> Vec<&str> {
        let remarks = self.events.iter().filter_map(|event| match event {
            AgentEvent::Remark(text) => Some(text.as_str()),
            _ => None,
        });
        remarks.collect()
    }

    pub fn failure(&self) -> &AgentError {
        self.ended.as_ref().unwrap_err()
    }
}

/// Asks, answers requests for leave with `verdict` (or never), and cancels when `cancel_when` says so.
pub async fn ask_with(
    agent: &Acp,
    question: &AgentRequest,
    verdict: Option<Verdict>,
    mut cancel_when: impl FnMut(&AgentEvent, usize) -> bool,
) -> Heard {
    let cancel = CancellationToken::new();
    let (sink, mut listener) = AgentSink::open(&cancel);
    let answer = async {
        let ended = agent.answer(question, &sink).await;
        drop(sink);
        ended
    };
    let listen = async {
        let (mut events, mut asked, mut unanswered) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            tokio::select! {
                biased;
                Some(permission) = listener.permissions.recv() => {
                    // As a session does: the mode decides first.
                    match Rules::new(question.approval).ruling(&permission.request) {
                        Ruling::Run => {
                            permission.settle(Verdict::Yes);
                            continue;
                        }
                        Ruling::Refuse => {
                            permission.settle(Verdict::No);
                            continue;
                        }
                        Ruling::Ask => {}
                    }
                    asked.push(permission.request.clone());
                    match &verdict {
                        Some(verdict) => permission.settle(verdict.clone()),
                        None => unanswered.push(permission),
                    }
                    if cancel_when(&AgentEvent::Remark(String::new()), asked.len()) {
                        cancel.cancel();
                    }
                }
                event = listener.events.recv() => match event {
                    Some(event) => {
                        if cancel_when(&event, asked.len()) {
                            cancel.cancel();
                        }
                        events.push(event);
                    }
                    None => return (events, asked),
                },
            }
        }
    };
    let answered = async { tokio::join!(answer, listen) };
    let (ended, (events, asked)) = tokio::time::timeout(DEADLINE, answered).await.unwrap();
    Heard {
        ended,
        events,
        asked,
    }
}

pub async fn ask(agent: &Acp, question: &AgentRequest) -> Heard {
    ask_with(agent, question, None, |_, _| false).await
}
