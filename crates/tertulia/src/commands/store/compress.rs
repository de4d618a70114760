//! `store compress`.

use std::process::ExitCode;

use clap::Args;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::error::CommandResult;
use crate::moment::{ago, span};
use crate::open;
use crate::retention::compress::{Candidate, candidates, compress, words};
use crate::show;
use crate::ui::{Ui, fit};

/// Age of sessions to compress, if neither flag nor settings name one.
const OLD: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Store old sessions compressed
///
/// They can be read, searched, forked and exported as before. A session that goes on is stored plainly again.
/// Versions of tertulia before this one refuse a store with compressed sessions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia store compress --dry-run          which, and how large they are\n  \
    tertulia store compress --older-than 30d")]
pub struct CompressArgs {
    /// Sessions without a new message for this long: 30d, 8w [default: compress_after in the settings, or 90d]
    #[arg(long, value_name = "SPAN")]
    older_than: Option<String>,
    /// Only show what would happen
    #[arg(long)]
    dry_run: bool,
}

pub fn run(args: &CompressArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let setting = workspace.settings.retention.compress_after;
    let older_than = match &args.older_than {
        Some(text) => span(text)?,
        None => setting.unwrap_or(OLD),
    };
    let candidates = candidates(&workspace, older_than)?;
    if args.dry_run {
        preview(&candidates, workspace.sessions.clock().now(), ui);
        return Ok(ExitCode::SUCCESS);
    }
    let done = compress(&workspace, &candidates, &ui.progress())?;
    for (id, reason) in &done.skipped {
        ui.warn(&format!(
            "session {} is not compressed: {reason}",
            id.short()
        ));
    }
    if ui.json {
        let skipped: Vec<Value> = done
            .skipped
            .iter()
            .map(|(id, reason)| json!({ "id": id, "reason": reason }))
            .collect();
        ui.document(&json!({
            "sessions": done.sessions, "before": done.before, "after": done.after,
            "skipped": skipped, "dry_run": false,
        }));
    } else if done.sessions == 0 {
        ui.note("Nothing to compress.");
    } else {
        let mut words = words(&done);
        words[..1].make_ascii_uppercase();
        ui.note(&format!("{words}."));
    }
    Ok(ExitCode::SUCCESS)
}

fn preview(candidates: &[Candidate], now: jiff::Timestamp, ui: &mut Ui) {
    let bytes = candidates.iter().map(|it| it.bytes).sum();
    if ui.json {
        let ids: Vec<_> = candidates.iter().map(|it| it.row.meta.id).collect();
        ui.document(&json!({
            "sessions": candidates.len(), "before": bytes, "ids": ids, "dry_run": true,
        }));
        return;
    }
    for candidate in candidates {
        let meta = &candidate.row.meta;
        ui.line(&format!(
            "{}  {}  {}  {}",
            meta.id.short(),
            fit(meta.title_or_untitled(), 44),
            ago(meta.updated_at, now),
            show::bytes(candidate.bytes)
        ));
    }
    ui.note(&match candidates.len() {
        0 => "Nothing to compress.".to_owned(),
        count => format!(
            "{} would be compressed, {} in all.",
            show::count(count as u64, "session"),
            show::bytes(bytes)
        ),
    });
}
