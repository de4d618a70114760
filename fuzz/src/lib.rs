//! Fuzz targets: everything that reads bytes of other programs. A target panics if a promise is
//! broken. `cargo fuzz` feeds them at length; `crates/tertulia/tests/fuzz.rs` includes this file and
//! feeds them the seeds and a few thousand mutations of them in every test run.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;

use tertulia_core::entry::Entry;
use tertulia_core::jsonl;
use tertulia_core::team::code::code;
use tertulia_core::team::{Registry, TeamFile, markers};
use tertulia_formats::claude_master::{self, Kept};
use tertulia_formats::importer::{Importer, Input, importer};
use tertulia_formats::openagent_terminal::{self, SessionFile};
use tertulia_formats::snapshot::Snapshot;
use tertulia_server::lines::{Framed, Framer};
use tertulia_server::read;

/// A function that takes any bytes.
pub type Target = fn(&[u8]);

/// All targets, with the names of their binaries and folders of seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("entry", entry),
    ("log", log),
    ("aider", aider),
    ("claude_code", claude_code),
    ("claude_master", claude_master),
    ("codex", codex),
    ("copilot", copilot),
    ("crush", crush),
    ("gemini_cli", gemini_cli),
    ("goose", goose),
    ("llm", llm),
    ("openagent_terminal", openagent_terminal),
    ("opencode", opencode),
    ("snapshot", snapshot),
    ("team", team),
    ("markers", markers),
    ("protocol", protocol),
];

/// A line of a log: what is decoded keeps its bytes.
pub fn entry(data: &[u8]) {
    if let Ok(entry) = Entry::decode(data) {
        let again = Entry::decode(entry.line().as_bytes());
        assert_eq!(again.ok(), Some(entry));
    }
}

/// A whole log, with and without redaction, which must yield a valid log again.
pub fn log(data: &[u8]) {
    let _ = jsonl::is_ours(data);
    if let Ok(mut imported) = jsonl::read(data) {
        let found = imported.secrets();
        if let Ok(redacted) = imported.redact() {
            assert_eq!(redacted, found);
        }
        for pair in imported.entries.windows(2) {
            assert!(pair[1].follows(&pair[0].head()));
        }
    }
}

/// A file of another program's history: the same file gives the same sessions, and no message is
/// there twice.
fn history(program: &str, data: &[u8]) {
    let Some(importer) = importer(program) else {
        panic!("there is no importer of {program}");
    };
    let _ = importer.begun(data);
    let input = Input {
        path: Path::new("fuzz"),
        content: Some(data),
    };
    read_twice(importer, &input, data);
}

/// The same for a program that keeps its history in a database: SQLite reads files.
fn database(program: &str, name: &str, data: &[u8]) {
    let Some(importer) = importer(program) else {
        panic!("there is no importer of {program}");
    };
    let Ok(folder) = tempfile::tempdir() else {
        panic!("there is no room for a temporary file");
    };
    let path = folder.path().join(name);
    assert!(std::fs::write(&path, data).is_ok());
    read_twice(importer, &Input::of(&path), data);
    // What other programs keep is never changed.
    assert!(std::fs::read(&path).is_ok_and(|now| now == data));
}

fn read_twice(importer: &dyn Importer, input: &Input<'_>, data: &[u8]) {
    let _ = importer.recognises(input.path, data);
    let read = || {
        let mut sessions = Vec::new();
        let result = importer.read(input, &mut |session| {
            sessions.push(session);
            ControlFlow::Continue(())
        });
        (result.map_err(|error| error.to_string()), sessions)
    };
    let (result, sessions) = read();
    assert_eq!(read(), (result, sessions.clone()));
    for session in sessions {
        let ids: HashSet<_> = session.said.iter().map(|said| said.id).collect();
        assert_eq!(ids.len(), session.said.len());
    }
}

/// A chat history of aider.
pub fn aider(data: &[u8]) {
    history("aider", data);
}

/// A session file of Copilot CLI.
pub fn copilot(data: &[u8]) {
    history("copilot", data);
}

/// The database of Crush.
pub fn crush(data: &[u8]) {
    database("crush", "crush.db", data);
}

/// A session file of goose, or its database.
pub fn goose(data: &[u8]) {
    history("goose", data);
    database("goose", "sessions.db", data);
}

/// The database of LLM.
pub fn llm(data: &[u8]) {
    database("llm", "logs.db", data);
}

/// A session file of Claude Code.
pub fn claude_code(data: &[u8]) {
    history("claude-code", data);
}

/// A session file of Codex.
pub fn codex(data: &[u8]) {
    history("codex", data);
}

/// A session file of Gemini CLI.
pub fn gemini_cli(data: &[u8]) {
    history("gemini-cli", data);
}

/// An exported session of opencode.
pub fn opencode(data: &[u8]) {
    history("opencode", data);
}

/// A session of claude-master.
pub fn claude_master(data: &[u8]) {
    let _ = claude_master::is_one(data);
    if let Ok(kept) = Kept::read(data) {
        let (once, twice) = (kept.talk(), kept.talk());
        assert_eq!(format!("{once:?}"), format!("{twice:?}"));
    }
}

/// A session of openagent-terminal, or its index.
pub fn openagent_terminal(data: &[u8]) {
    let _ = openagent_terminal::is_one(data);
    let _ = openagent_terminal::listed(data);
    if let Ok(file) = SessionFile::read(data) {
        let (once, twice) = (file.talk(), file.talk());
        assert_eq!(format!("{once:?}"), format!("{twice:?}"));
    }
}

/// A snapshot of agent-chatter: what is read can be written and read again.
pub fn snapshot(data: &[u8]) {
    let _ = Snapshot::is_one(data);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(snapshot) = Snapshot::read(text, "fuzz") {
        let _ = snapshot.talk();
        if let Ok(written) = snapshot.write() {
            assert!(Snapshot::read(&written, "fuzz").is_ok(), "{written}");
        }
    }
}

/// A team file, or an agent registry.
pub fn team(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = TeamFile::read(text, "fuzz");
        let _ = Registry::read(text, "fuzz");
    }
}

/// The markers of a message: nothing is shown that was not written.
pub fn markers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut end = 0;
    for part in code(text) {
        assert!(end <= part.range.start && part.range.start < part.range.end);
        assert!(text.get(part.range.clone()).is_some());
        end = part.range.end;
    }
    let _ = markers::parse(text);
    let shown = markers::shown(text);
    assert!(shown.len() <= text.len());
    let mut rest = text.chars();
    assert!(shown.chars().all(|c| rest.any(|other| other == c)));
}

/// The lines of a client: they do not depend on how the bytes arrive.
pub fn protocol(data: &[u8]) {
    const LIMIT: usize = 64;
    let lines = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut framer = Framer::new(LIMIT);
        let mut lines = Vec::new();
        for piece in pieces {
            framer.push(piece);
            while let Some(line) = framer.next_line() {
                lines.push(line);
            }
        }
        framer.end();
        lines.extend(framer.next_line());
        lines
    };
    let whole = lines(&mut std::iter::once(data));
    assert_eq!(lines(&mut data.chunks(3)), whole);
    for line in &whole {
        assert!(matches!(line, Framed::TooLong) || !is_longer(line, LIMIT));
    }
    for line in data.split(|byte| *byte == b'\n') {
        let _ = read::request(line);
    }
}

fn is_longer(line: &Framed, limit: usize) -> bool {
    matches!(line, Framed::Line(bytes) if bytes.len() > limit)
}
