use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use tertulia_core::entry::Relation;
use tertulia_core::id::Seq;
use tertulia_core::pair::Pair;
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;
use tertulia_formats::json;
use tertulia_store::Fork;

use super::rename;
use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::retention;
use crate::ui::Ui;

/// Make a new session that shares another's beginning
///
/// It costs the same for 10 and for 100 000 messages: what is shared is stored once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia fork @                    from its end\n  \
    tertulia fork 5f3a9c1e:12          from entry 12\n  \
    tertulia fork @ --at-round 3       from an instructor's third reply\n  \
    tertulia --resume $(tertulia fork @ -q)   and continue there")]
pub struct ForkArgs {
    /// The session, or an entry of it: REF or REF:N
    #[arg(value_name = "REF[:N]")]
    reference: String,
    /// From an instructor's N-th reply, in a pair's session
    #[arg(long, value_name = "N")]
    at_round: Option<u64>,
    /// The fork's title
    #[arg(short, long, value_name = "TITLE")]
    name: Option<String>,
}

pub fn run(args: &ForkArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let (row, mut at) = workspace.find_place(&args.reference)?;
    if let Some(round) = args.at_round {
        if at.is_some() {
            let words = "an entry and a round are two places to fork at";
            return Err(CommandError::new(ErrorKind::Usage, words).hint("name one of them"));
        }
        at = Some(entry_of_round(&workspace, &row, round)?);
    }
    let at = workspace.fork_at(&row, at)?;
    let fork = Fork {
        id: workspace.sessions.clock().session_id(),
        at,
        title: args.name.as_deref().map(rename::title).transpose()?,
        relation: Relation::Fork,
    };
    let (meta, _) = workspace.wait(workspace.sessions.fork(&row.meta, &fork, Vec::new()))?;
    report(&workspace, &row, meta, ui);
    retention::keep_workspace(&workspace, ui);
    Ok(ExitCode::SUCCESS)
}

fn report(workspace: &Workspace, row: &Row, meta: SessionMeta, ui: &mut Ui) {
    if ui.json {
        ui.document(&Value::Object(json::session(&Row { meta, open: false })));
        return;
    }
    ui.line(&meta.id.to_string());
    let at = meta
        .parent
        .as_ref()
        .map_or(row.meta.head.seq, |parent| parent.seq);
    ui.note(&format!(
        "Forked {} at entry {at}. Resume: {} --resume {}",
        row.meta.id.short(),
        workspace.settings.program,
        meta.id.short()
    ));
}

/// Returns the entry of the instructor's reply in the given round.
fn entry_of_round(workspace: &Workspace, row: &Row, round: u64) -> CommandResult<Seq> {
    let short = row.meta.id.short();
    let Some(known) = &row.meta.pair else {
        let kind = row.meta.kind.name();
        let words = format!("session {short} is a {kind}, and only a pair has rounds");
        return Err(CommandError::new(ErrorKind::Usage, words)
            .hint(format!("name an entry: tertulia fork {short}:N")));
    };
    let log = workspace.wait(workspace.sessions.load(row.meta.id))?;
    let mut pair = Pair::default();
    for entry in &log.entries {
        pair.apply(entry);
        if pair.round == round && pair.reply_at == Some(entry.seq) {
            return Ok(entry.seq);
        }
    }
    let words = format!("session {short} has no round {round}");
    let error = CommandError::new(ErrorKind::NotFound, words);
    Err(match known.round {
        0 => error.hint("its instructor has not replied yet"),
        rounds => error.hint(format!("it has rounds 1 to {rounds}")),
    })
}
