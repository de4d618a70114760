//! Sessions that another program has open: the question what to do with one, and reading it as it
//! grows.

use std::process::ExitCode;
use std::time::Duration;

use tertulia_core::entry::{Entry, Kind};
use tertulia_core::query::Row;
use tertulia_engine::event::SessionEvent;
use tertulia_engine::following::Following;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::setup::Target;
use tertulia_formats::json;

use super::opening::Opening;
use super::{exit_code, runtime};
use crate::args::OutputFormat;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::show;
use crate::signals::Signals;
use crate::ui::{DIM, Ui, harmless};

/// Messages that are shown first.
const LAST: usize = 10;
/// Pause between looks at the session.
const LOOK: Duration = Duration::from_millis(300);

/// Asks what to do with a session that another program has open. Returns the session if it is to be
/// read only.
pub fn ask(opening: &mut Opening, ui: &mut Ui) -> CommandResult<Option<Row>> {
    let row = match &opening.setup.target {
        Target::Resume(row, _) if row.open && opening.args.asks_about_holder() => row.clone(),
        _ => return Ok(None),
    };
    let workspace = &opening.workspace;
    let holder = workspace.wait(workspace.sessions.store().holder(row.meta.id))?;
    let Some(holder) = holder else {
        return Ok(None);
    };
    ui.ask(&harmless(&format!("The session is open in {holder}.")));
    match ui.choose("Read only, fork, or take over?", &['r', 'f', 't']) {
        Some('r') => return Ok(Some(*row)),
        Some('t') => opening.setup.on_conflict = OnConflict::TakeOver,
        _ => {}
    }
    Ok(None)
}

/// Shows the last messages of a session, and new ones as they are written, until a signal arrives.
pub fn follow(
    row: Row,
    workspace: &Workspace,
    format: OutputFormat,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    if format == OutputFormat::Json {
        let words = "a session that is followed has no end, and so no document";
        let hint = "use --output-format stream-json";
        return Err(CommandError::new(ErrorKind::Usage, words).hint(hint));
    }
    let row = workspace.unlocked(row)?;
    let kind = row.meta.kind;
    let log = workspace.wait(workspace.sessions.last_messages(&row.meta, LAST))?;
    for entry in &log.entries {
        tell(entry, kind, format, workspace, ui);
    }
    ui.note(&format!(
        "following session {}; stop with Ctrl-C",
        row.meta.id.short()
    ));
    let following = Following::new(workspace.sessions.clone(), row.meta);
    runtime()?.block_on(read_on(following, format, workspace, ui))
}

async fn read_on(
    mut following: Following,
    format: OutputFormat,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let mut signals = Signals::listen()?;
    loop {
        for event in following.changes().await?.events {
            match &event {
                SessionEvent::Durable { .. } => {
                    if let Some(entry) = event.entry() {
                        tell(&entry, following.meta().kind, format, workspace, ui);
                    }
                }
                SessionEvent::Notice { text, .. } => ui.warn(&harmless(text)),
                _ => {}
            }
        }
        if !ui.has_reader() {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = signals.next() => return Ok(exit_code(signals.caught(), None)),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

fn tell(entry: &Entry, kind: Kind, format: OutputFormat, workspace: &Workspace, ui: &mut Ui) {
    if format == OutputFormat::StreamJson {
        return ui.line(&json::entry(entry).to_string());
    }
    let now = workspace.sessions.clock().now();
    let text = match entry.message() {
        Some(message) => show::message(ui, entry, message, kind, now),
        None if entry.body.kind() == "failed" => {
            format!("{}\n", ui.styled(DIM, &show::entry_line(entry)))
        }
        None => match show::command(ui, entry, now) {
            Some(text) => return ui.data(&text),
            None => return,
        },
    };
    ui.data(&format!("{text}\n"));
}
