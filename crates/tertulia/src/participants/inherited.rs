//! Continues an imported session in the program that it was imported from: if nothing was added to
//! either since, the program goes on with its own session, in a copy where it can make one.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tertulia_agents::Agent;
use tertulia_core::entry::SpeakerKind;
use tertulia_core::foreign::{Foreign, Growth};
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;
use tertulia_engine::setup::InheritedSession;
use tertulia_formats::importer::{Importer, Input, importer};

use crate::env;
use crate::error::CommandResult;
use crate::open::Workspace;
use crate::ui::Ui;

/// Depth to which a program's folder is searched.
const DEPTH: usize = 6;
/// Number of characters of a session's id that the name of its file contains at least.
const NAMED: usize = 8;

/// Returns the program's own session of an imported one, if the agent can continue it. Says why if
/// the agent is told the conversation as text instead.
pub fn find(
    row: &Row,
    is_fork: bool,
    agent: &dyn Agent,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Option<InheritedSession>> {
    let meta = &row.meta;
    let known = meta
        .natives
        .iter()
        .any(|native| native.agent == agent.name());
    let source = match &meta.source {
        Some(source) if agent.history() == Some(source.program.as_str()) => source,
        _ => return Ok(None),
    };
    let Some(importer) = importer(&source.program).filter(|_| is_fork || !known) else {
        return Ok(None);
    };
    let name = agent.name();
    let Some((path, session)) = session_of(importer, meta) else {
        ui.note(&format!(
            "{name} does not have its own session of this conversation any more: it is told the conversation as text"
        ));
        return Ok(None);
    };
    let log = workspace.wait(workspace.sessions.load(meta.id))?;
    match session.grown(&log) {
        Growth::Neither => {}
        Growth::Log => {
            ui.note(&format!(
                "this session went on since its import: {name} is told the conversation as text"
            ));
            return Ok(None);
        }
        Growth::Source => {
            ui.note(&format!(
                "{name}'s own session of this conversation has changed since its import: {name} is told what was \
                 imported, as text. To import the rest: `{} import {}`",
                workspace.settings.program,
                path.display()
            ));
            return Ok(None);
        }
    }
    let answers = session.said.iter().rev();
    let mut speakers = answers.map(|said| &said.message.speaker);
    let speaker = speakers.find(|speaker| speaker.kind == SpeakerKind::Ai);
    Ok(speaker.map(|speaker| InheritedSession {
        agent: name.to_owned(),
        speaker: speaker.name.clone(),
        id: source.id.clone(),
        cwd: session.source.cwd.as_ref().map(PathBuf::from),
    }))
}

/// Reads a session where its program keeps it now. A fork or a subagent in the file of another
/// session has no id by which the program could continue it.
fn session_of(importer: &dyn Importer, meta: &SessionMeta) -> Option<(PathBuf, Foreign)> {
    let id = meta.source.as_ref()?.id.as_str();
    if id.contains(['#', '/']) {
        return None;
    }
    let home = env::path("HOME")?;
    let mut files = Vec::new();
    for place in importer.places(&home, &|name| env::text(name)) {
        match place.is_file() {
            true => files.push(place),
            false => files_named(&place, id.get(..NAMED).unwrap_or(id), DEPTH, &mut files),
        }
    }
    files.into_iter().find_map(|path| {
        let input = Input {
            path: &path,
            content: None,
        };
        let mut found = None;
        let read = importer.read(&input, &mut |session: Foreign| {
            if session.id != meta.id {
                return ControlFlow::Continue(());
            }
            found = Some(session);
            ControlFlow::Break(())
        });
        read.ok()?;
        Some((path, found?))
    })
}

/// Collects the files below a folder whose names contain a text.
fn files_named(folder: &Path, text: &str, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => {
                files_named(&entry.path(), text, depth - 1, found);
            }
            Ok(kind) if kind.is_file() && name.to_string_lossy().contains(text) => {
                found.push(entry.path());
            }
            _ => {}
        }
    }
}
