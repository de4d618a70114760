use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::query::Row;
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::{ago, span};
use crate::open::{self, Workspace};
use crate::retention::{self, Done, Plan, Rules};
use crate::settings::Retention;
use crate::show;
use crate::ui::{Ui, fit};

/// Move old sessions to the trash, and delete those trashed long ago
///
/// Sessions of all projects count. Those that a running program has open, and those with the tag `pinned`, are left alone. What goes to
/// the trash can be taken back with `undo`; what has been in the trash for 30 days is removed for good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia prune --older-than 30d --dry-run   what would happen\n  \
    tertulia prune --older-than 90d --keep 50   but keep the newest 50\n  \
    tertulia prune -y                           what [retention] says, and empty the trash")]
pub struct PruneArgs {
    /// Sessions without a new message for this long: 12h, 30d, 8w
    #[arg(long, value_name = "SPAN")]
    older_than: Option<String>,
    /// Keep the newest N, however old
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Only show what would happen
    #[arg(long)]
    dry_run: bool,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

pub fn run(args: &PruneArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let plan = retention::plan(&rules(args, &workspace)?, &workspace)?;
    if !ui.json {
        tell(&workspace, &plan, ui);
    }
    let idle = plan.is_empty();
    let mut done = Done::default();
    if !idle && !args.dry_run {
        if !args.yes {
            if !ui.is_interactive() {
                return Err(CommandError::new(
                    ErrorKind::Usage,
                    "not interactive: cannot ask for confirmation",
                )
                .hint("add -y, or look first with --dry-run"));
            }
            if !ui.confirm("Go on?") {
                ui.note("Nothing was changed.");
                return Ok(ExitCode::from(1));
            }
        }
        plan.carry_out(&workspace, &mut done)?;
    }
    if ui.json {
        let ids = |rows: &[Row]| {
            rows.iter()
                .map(|row| Value::Object(json::session(row)))
                .collect::<Vec<_>>()
        };
        ui.document(&json!({
            "trashed": ids(&plan.trash),
            "purged": ids(&plan.purge),
            "skipped_open": ids(&plan.open),
            "skipped_pinned": ids(&plan.pinned),
            "skipped_restored": ids(&plan.restored),
            "dry_run": args.dry_run,
        }));
    } else if idle {
        ui.note("Nothing to prune.");
    } else if !args.dry_run {
        let mut words = format!(
            "Moved {} to the trash, removed {} for good.",
            show::count(done.trashed.len() as u64, "session"),
            done.purged.len()
        );
        if !done.trashed.is_empty() {
            words.push_str(" `tertulia undo` brings back what was moved to the trash.");
        }
        ui.advise(&words);
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the rules from the flags or, without flags, from the settings.
fn rules(args: &PruneArgs, workspace: &Workspace) -> CommandResult<Rules> {
    if args.older_than.is_none() && args.keep.is_none() {
        return Ok(retention::rules(workspace));
    }
    let max_age = args.older_than.as_deref().map(span).transpose()?;
    let (max_count, keep) = match (max_age, args.keep) {
        (None, count) => (count, 0),
        (Some(_), keep) => (None, keep.unwrap_or(0)),
    };
    let min_age = jiff::SignedDuration::ZERO;
    Ok(Rules {
        retention: Retention {
            max_age,
            max_count,
            max_count_per_team: None,
            min_age,
            trash: workspace.settings.retention.trash,
            compress_after: None,
        },
        keep,
        // The user names the rules, and sees what they reach.
        spared: BTreeMap::new(),
    })
}

fn tell(workspace: &Workspace, plan: &Plan, ui: &mut Ui) {
    let now = workspace.sessions.clock().now();
    let parts = [
        (&plan.trash, "to the trash"),
        (&plan.purge, "removed for good (in the trash for too long)"),
        (&plan.open, "left alone: open in a running program"),
        (&plan.pinned, "left alone: pinned"),
        (&plan.restored, "left alone: taken out of the trash"),
    ];
    for (rows, what) in parts {
        for row in rows {
            let meta = &row.meta;
            ui.line(&format!(
                "{}  {}  {}  {what}",
                meta.id.short(),
                fit(meta.title_or_untitled(), 44),
                ago(meta.updated_at, now)
            ));
        }
    }
}
