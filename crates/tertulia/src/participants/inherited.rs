//! Continues an imported session in the program that it was imported from: if nothing was added to
//! either since, the program goes on with its own session, in a copy where it can make one.

use std::path::PathBuf;

use tertulia_agents::Agent;
use tertulia_core::entry::SpeakerKind;
use tertulia_core::foreign::Growth;
use tertulia_core::query::Row;
use tertulia_engine::setup::InheritedSession;

use crate::error::CommandResult;
use crate::native_files::NativeFiles;
use crate::open::Workspace;
use crate::ui::Ui;

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
    let files = NativeFiles::of(&source.program, &[]);
    let Some(files) = files.filter(|_| is_fork || !known) else {
        return Ok(None);
    };
    let name = agent.name();
    let Some((path, session)) = files.find(&source.id) else {
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
