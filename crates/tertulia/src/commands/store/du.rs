//! `store du`: what each session takes.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tertulia_core::sizes::{SessionSize, Sizes};

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::open;
use crate::show;
use crate::ui::{Ui, fit};

/// Show how many bytes each session takes, largest first
///
/// OWN are the bytes that removing the session for good would free. SHARED are those that it has in common
/// with the session that it was forked from, or with its forks; the total counts them once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia store du\n  \
    tertulia store du --limit 5\n  \
    tertulia store du --json")]
pub struct DuArgs {
    /// Maximum number of sessions
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    limit: usize,
}

pub fn run(args: &DuArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let store = workspace.sessions.store();
    let mut sizes = Sizes::of(&workspace.wait(store.sizes())?);
    let index = workspace.wait(store.info())?.index_bytes;
    let smaller = sizes.sessions.len().saturating_sub(args.limit);
    sizes.sessions.truncate(args.limit);
    let total = sizes.total;
    if ui.json {
        ui.document(&json!({
            "total": {
                "own": total.own, "shared": total.shared, "index": index, "trash": total.trash,
            },
            "sessions": sizes.sessions,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if !sizes.sessions.is_empty() {
        let rows: Vec<Vec<String>> = sizes.sessions.iter().map(cells).collect();
        ui.table(&["ID", "TITLE", "OWN", "SHARED", "FORKS"], &rows);
    }
    for (what, bytes) in [
        ("own", total.own),
        ("shared", total.shared),
        ("search index", index),
        ("trash", total.trash),
    ] {
        ui.line(&format!("total {what:12} {}", show::bytes(bytes)));
    }
    if smaller > 0 {
        ui.note(&format!(
            "Not shown: {} (--limit)",
            show::count(smaller as u64, "smaller session")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn cells(session: &SessionSize) -> Vec<String> {
    vec![
        session.id.short(),
        fit(session.title.as_deref().unwrap_or("(untitled)"), 44),
        show::bytes(session.own),
        show::bytes(session.shared),
        session.forks.to_string(),
    ]
}
