//! Parses every recorded stream: its events, abridged, and how it ended.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tertulia_agents::AgentEvent;
use tertulia_agents::vendor::{Ending, Exit, Reader, Vendor};
use tertulia_core::entry::Usage;

/// Folder with the recordings of `vendor`.
pub fn folder(vendor: Vendor) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/agents/recorded")
        .join(vendor.program())
}

/// Folder with the recordings of OpenCode 2, made with a preview of it, 0.0.0-next-16350.
pub fn folder_of_opencode_2() -> PathBuf {
    folder(Vendor::OpenCode).with_file_name("opencode2")
}

fn cases(folder: &Path) -> Vec<(String, String, Exit)> {
    let exits = std::fs::read_to_string(folder.join("exits.json")).unwrap();
    let exits: Value = serde_json::from_str(&exits).unwrap();
    let exits = exits.as_object().unwrap();
    assert!(exits.len() > 10, "few recordings in {}", folder.display());
    let files = std::fs::read_dir(folder).unwrap().count();
    assert_eq!(files, exits.len() + 1, "each recording has its exit");
    exits
        .iter()
        .map(|(name, exit)| {
            let stream = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
            let exit = Exit {
                code: exit["code"].as_i64().map(|code| code as i32),
                stderr: exit["stderr"].as_str().unwrap().to_owned(),
            };
            (name.clone(), stream, exit)
        })
        .collect()
}

/// Formats events in brief; consecutive text chunks are one line.
fn brief(events: &[AgentEvent]) -> String {
    let mut out = String::new();
    for run in events.chunk_by(|a, b| {
        matches!(
            (a, b),
            (AgentEvent::Text(_), AgentEvent::Text(_))
                | (AgentEvent::Reasoning(_), AgentEvent::Reasoning(_))
        )
    }) {
        let pieces: String = run
            .iter()
            .map(|event| match event {
                AgentEvent::Text(words) | AgentEvent::Reasoning(words) => words.as_str(),
                _ => "",
            })
            .collect();
        let line = match &run[0] {
            AgentEvent::Text(_) => format!("text in {}: {pieces:?}", run.len()),
            AgentEvent::Reasoning(_) => format!("reasoning in {}: {pieces:?}", run.len()),
            AgentEvent::ToolStarted(call) => {
                format!("tool {} {} {}", call.id, call.name, call.arguments)
            }
            AgentEvent::ToolCompleted { id, output, ok } => {
                let ok = if *ok { "ok" } else { "not ok" };
                format!("  {id} {ok}: {output:?}")
            }
            AgentEvent::Usage(usage) => format!("usage {} + {}", usage.input, usage.output),
            AgentEvent::Retrying(retry) => format!(
                "retrying {}/{} in {} ms: {}",
                retry.attempt,
                retry.of,
                retry.wait.as_millis(),
                retry.reason
            ),
            other => format!("{other:?}"),
        };
        writeln!(out, "  {line}").unwrap();
    }
    out
}

fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Failed(error) => format!("failed, {}: {}", error.kind.name(), error.message),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn read(vendor: Vendor) -> String {
    read_all(&folder(vendor), || Reader::new(vendor, Usage::default()))
}

fn read_all(folder: &Path, reader: impl Fn() -> Reader) -> String {
    let mut out = String::new();
    for (name, stream, exit) in cases(folder) {
        let mut reader = reader();
        let events: Vec<AgentEvent> = stream.lines().flat_map(|line| reader.line(line)).collect();
        let over = match reader.over() {
            Some(_) => "over",
            None => "open",
        };
        writeln!(out, "== {name}").unwrap();
        out += &brief(&events);
        let end = reader.finish(Some(&exit));
        writeln!(out, "  {over}, {:?}: {}\n", exit.code, ending(&end)).unwrap();
    }
    out
}

#[test]
fn claude() {
    insta::assert_snapshot!(read(Vendor::Claude));
}

#[test]
fn codex() {
    insta::assert_snapshot!(read(Vendor::Codex));
}

#[test]
fn gemini() {
    insta::assert_snapshot!(read(Vendor::GeminiCli));
}

#[test]
fn opencode() {
    insta::assert_snapshot!(read(Vendor::OpenCode));
}

/// Invariants of all recordings, whatever the snapshots say.
#[test]
fn every_recording_keeps_the_rules() {
    for vendor in Vendor::ALL {
        for (name, stream, exit) in cases(&folder(vendor)) {
            let mut reader = Reader::new(vendor, Usage::default());
            let events: Vec<AgentEvent> =
                stream.lines().flat_map(|line| reader.line(line)).collect();
            let sessions = events
                .iter()
                .filter(|event| matches!(event, AgentEvent::Session(_)))
                .count();
            assert!(sessions <= 1, "{vendor:?} {name}: {sessions} sessions");
            let unknown = events
                .iter()
                .find(|event| matches!(event, AgentEvent::Unknown(_)));
            assert_eq!(unknown, None, "{vendor:?} {name}");
            if let Some(linger) = reader.over() {
                assert!(linger <= Duration::from_secs(10));
            }
            if let Ending::Failed(error) = reader.finish(Some(&exit)) {
                assert!(!error.message.is_empty(), "{vendor:?} {name}");
                assert!(!error.message.contains('\n'), "{vendor:?} {name}");
                assert!(error.message.chars().count() <= 500, "{vendor:?} {name}");
            }
        }
    }
}

#[test]
fn opencode_2() {
    insta::assert_snapshot!(read_all(&folder_of_opencode_2(), Reader::of_opencode_2));
}
