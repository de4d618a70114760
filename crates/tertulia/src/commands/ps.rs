use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_server::call::{Call, CallError, unexpected};
use tertulia_server::protocol::{Answer, Ask, LiveSessionInfo, ServerInfo};

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::moment::ago;
use crate::open;
use crate::serve::place;
use crate::show;
use crate::ui::{Ui, fit};

/// List the sessions that a server runs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia ps\n  \
    tertulia ps --json | jq '.sessions[].session_id'")]
pub struct PsArgs {
    /// The server's socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &PsArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::reading_settings(global, ui)?;
    let path = place::socket(args.socket.as_deref(), global, &settings);
    ui.invocation.socket = place::flag(args.socket.as_deref(), &path);
    let mut call = match Call::connect(&path) {
        Ok(call) => call,
        Err(CallError::NotRunning) => {
            if ui.json {
                ui.document(&json!({ "server": Value::Null, "sessions": [] }));
            } else {
                ui.note(&format!("No server is running at {}.", path.display()));
            }
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(error.into()),
    };
    let (server, talks) = match call.ask(Ask::Ps)? {
        Answer::PsResult { server, talks, .. } => (server, talks),
        other => return Err(unexpected(other).into()),
    };
    if ui.json {
        ui.document(&json!({ "server": server, "sessions": talks }));
        return Ok(ExitCode::SUCCESS);
    }
    let now = open::clock().now();
    if !talks.is_empty() {
        let rows: Vec<Vec<String>> = talks.iter().map(|talk| columns(talk, now)).collect();
        ui.table(
            &[
                "ID",
                "TITLE",
                "STATE",
                "SINCE",
                "KIND",
                "WITH",
                "FOLLOWED BY",
            ],
            &rows,
        );
    }
    ui.note(&meta(&server, talks.len(), now));
    Ok(ExitCode::SUCCESS)
}

fn since(text: &str, now: jiff::Timestamp) -> String {
    match text.parse() {
        Ok(since) => ago(since, now),
        Err(_) => text.to_owned(),
    }
}

fn columns(talk: &LiveSessionInfo, now: jiff::Timestamp) -> Vec<String> {
    let id = &talk.session_id;
    let short = id.get(id.len().saturating_sub(8)..).unwrap_or(id);
    let state = match talk.queued {
        0 => talk.state.name().to_owned(),
        queued => format!("{} (+{queued})", talk.state.name()),
    };
    vec![
        short.to_owned(),
        fit(talk.title.as_deref().unwrap_or("(untitled)"), 44),
        state,
        since(&talk.since, now),
        talk.kind.clone().unwrap_or_default(),
        fit(&talk.agents.join(", "), 20),
        talk.followers.to_string(),
    ]
}

fn meta(server: &ServerInfo, talks: usize, now: jiff::Timestamp) -> String {
    let talks = match talks {
        0 => "No sessions".to_owned(),
        talks => show::count(talks as u64, "session"),
    };
    // Do not count this command's own connection.
    let clients = show::count(server.clients.saturating_sub(1) as u64, "client");
    format!(
        "{talks}, {clients}. Process {}, version {}, started {}.",
        server.pid,
        server.version,
        since(&server.since, now)
    )
}
