//! Scripts in place of the vendors' programs, and a consumer of their events.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tertulia_agents::opencode::KnownGeneration;
use tertulia_agents::process::MARKER_VAR;
use tertulia_agents::vendor::{Vendor, VendorProgram};
use tertulia_agents::{
    Agent, AgentError, AgentEvent, AgentRequest, AgentSink, NativeSession, Outcome, Patience,
    PromptMessage, Whence,
};
use tertulia_core::entry::{Role, Usage};
use tertulia_testkit::waiting::DEADLINE;
use tokio_util::sync::CancellationToken;

/// A folder with a program in it.
pub struct Stage {
    dir: TempDir,
}

impl Stage {
    pub fn new() -> Stage {
        Stage {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a file that the script wrote in its folder.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Creates `vendor`'s program from `script`, which runs in the folder. `show CASE` in it prints
    /// recorded output of the vendor's program.
    pub fn program(&self, vendor: Vendor, script: &str) -> VendorProgram {
        let path = self.path("program");
        let recorded = super::recorded::folder(vendor);
        // OpenCode is asked for its version first.
        let version = match vendor {
            Vendor::OpenCode => {
                "[ \"$*\" = --version ] && { cat \"${0%/*}/version\" || echo 1.18.33; exit; } 2> /dev/null\n"
            }
            _ => "",
        };
        let text = format!(
            "#!/bin/sh\n{version}show() {{ cat '{}'/\"$1\".jsonl; }}\n{script}\n",
            recorded.display()
        );
        write_program(&path, &text);
        VendorProgram {
            name: vendor.name().into(),
            vendor,
            model: None,
            command: path.clone(),
            args: Vec::new(),
            env: Vec::new(),
            without: Vec::new(),
            work_dir: Some(self.dir.path().to_owned()),
            system: None,
            patience: Patience {
                // No test may hang, whatever breaks.
                total: DEADLINE,
                idle: DEADLINE / 2,
            },
            whence: Whence::settings(vendor.name()),
            retries: 1,
            homes: None,
            session_files: None,
            found: Some(path),
            generation: KnownGeneration::default(),
        }
    }
}

/// Writes through another process: a copy of this process's open file, in a child that another test
/// is just starting, would make it "busy".
fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"printf "%s" "$1" > "$0"; chmod 755 "$0""#]);
    assert!(shell.arg(path).arg(text).status().unwrap().success());
}

/// Result of a turn.
#[derive(Debug)]
pub struct Played {
    pub outcome: Result<Outcome, AgentError>,
    pub events: Vec<AgentEvent>,
}

impl Played {
    pub fn text(&self) -> String {
        let words = |event: &AgentEvent| match event {
            AgentEvent::Text(words) => Some(words.clone()),
            _ => None,
        };
        self.events.iter().filter_map(words).collect()
    }

    pub fn error(&self) -> &AgentError {
        self.outcome.as_ref().unwrap_err()
    }
}

/// A conversation of three messages, the first two of which `native` has seen, if given.
pub fn question(native: Option<&str>) -> AgentRequest {
    AgentRequest {
        messages: vec![
            PromptMessage::plain(Role::User, "ana", "one"),
            PromptMessage::plain(Role::Assistant, "bot", "two"),
            PromptMessage::plain(Role::User, "ana", "three"),
        ],
        marker: format!("test-{}", uuid::Uuid::new_v4()),
        native: native.map(|id| NativeSession {
            id: id.to_owned(),
            cwd: None,
            known: 2,
            fork: false,
            spent: Usage {
                estimated: false,
                input: 4000,
                output: 5,
                ..Usage::default()
            },
        }),
        ..AgentRequest::default()
    }
}

/// Returns the processes that carry the marker.
pub fn left(marker: &str) -> Vec<i32> {
    let wanted = format!("{MARKER_VAR}={marker}");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            bytes
                .split(|b| *b == 0)
                .any(|part| part == wanted.as_bytes())
        })
        .collect()
}

/// Prompts `program`, and asserts that no process is left. Cancels after the first event for which
/// `stop` is true.
pub async fn play_until(
    program: &VendorProgram,
    question: &AgentRequest,
    stop: impl Fn(&AgentEvent) -> bool,
) -> Played {
    let cancel = CancellationToken::new();
    let (sink, mut listener) = AgentSink::open(&cancel);
    let answer = async {
        let outcome = program.answer(question, &sink).await;
        drop(sink);
        outcome
    };
    let hear = async {
        let mut events = Vec::new();
        while let Some(event) = listener.events.recv().await {
            if stop(&event) {
                cancel.cancel();
            }
            events.push(event);
        }
        events
    };
    let (outcome, events) = tokio::join!(answer, hear);
    assert_eq!(left(&question.marker), Vec::<i32>::new(), "left behind");
    Played { outcome, events }
}

pub async fn play(program: &VendorProgram, question: &AgentRequest) -> Played {
    play_until(program, question, |_| false).await
}
