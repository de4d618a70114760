use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia::formats::json;
use tertulia::query::{Filter, Page, Row, Trash};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::{ago, span};
use crate::open::{self, House};
use crate::ui::{Ui, fit};

/// Move old sessions to the trash, and empty the trash of what has been there for long
///
/// Sessions of all projects count. Those that a running program has open are left alone. What goes to
/// the trash can be taken back with `undo`; what has been in the trash for 30 days is removed for good.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia prune --older-than 30d --dry-run   what would happen\n  \
    tertulia prune --older-than 90d --keep 50   but keep the newest 50\n  \
    tertulia prune -y                           only empty the trash")]
pub struct PruneArgs {
    /// Sessions in which nobody has spoken for so long: 12h, 30d, 8w
    #[arg(long, value_name = "SPAN")]
    older_than: Option<String>,
    /// Keep the newest, however old
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Only show what would happen
    #[arg(long)]
    dry_run: bool,
    /// Don't ask
    #[arg(short, long)]
    yes: bool,
}

/// What pruning would do.
struct Plan {
    trash: Vec<Row>,
    purge: Vec<Row>,
    open: Vec<Row>,
}

pub fn run(args: &PruneArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let house = open::house(global, ui)?;
    let plan = plan(args, &house)?;
    if !ui.json {
        tell(&house, &plan, ui);
    }
    let idle = plan.trash.is_empty() && plan.purge.is_empty();
    if !idle && !args.dry_run {
        if !args.yes {
            if !ui.is_interactive() {
                return Err(CommandError::new(
                    ErrorKind::Usage,
                    "nobody is there to ask whether to go on",
                )
                .hint("add -y, or look first with --dry-run"));
            }
            if !ui.confirm("Go on?") {
                ui.note("Nothing was changed.");
                return Ok(ExitCode::from(1));
            }
        }
        carry_out(&house, &plan)?;
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
            "dry_run": args.dry_run,
        }));
    } else if idle {
        ui.note("Nothing to prune.");
    } else if !args.dry_run {
        ui.note(&format!(
            "Moved {} to the trash, removed {} for good. `tertulia undo` takes the first back.",
            plan.trash.len(),
            plan.purge.len()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &PruneArgs, house: &House) -> CommandResult<Plan> {
    let now = house.sessions.stamp().now();
    let before = |span: jiff::SignedDuration| {
        now.checked_sub(span).map_err(|_| {
            CommandError::new(ErrorKind::Usage, "that is longer ago than time goes back")
        })
    };
    let mut plan = Plan {
        trash: Vec::new(),
        purge: Vec::new(),
        open: Vec::new(),
    };
    if args.older_than.is_some() || args.keep.is_some() {
        let limit = args
            .older_than
            .as_deref()
            .map(span)
            .transpose()?
            .map(before)
            .transpose()?;
        let rows = everything(house, &Filter::default())?;
        for row in rows.into_iter().skip(args.keep.unwrap_or(0)) {
            if limit.is_none_or(|limit| row.summary.updated_at < limit) {
                if row.open {
                    plan.open.push(row)
                } else {
                    plan.trash.push(row)
                }
            }
        }
    }
    let keeps = before(house.settings.trash_keeps)?;
    for row in everything(
        house,
        &Filter {
            trash: Trash::Only,
            ..Filter::default()
        },
    )? {
        if row.summary.trashed_at.is_some_and(|since| since < keeps) {
            if row.open {
                plan.open.push(row)
            } else {
                plan.purge.push(row)
            }
        }
    }
    Ok(plan)
}

/// All the rows that a filter admits, page by page.
pub fn everything(house: &House, filter: &Filter) -> CommandResult<Vec<Row>> {
    let mut rows = Vec::new();
    let mut page = Page::first(1000);
    loop {
        let listing = house.wait(house.sessions.store().list(filter, &page))?;
        rows.extend(listing.rows);
        match listing.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok(rows),
        }
    }
}

fn tell(house: &House, plan: &Plan, ui: &mut Ui) {
    let now = house.sessions.stamp().now();
    let parts = [
        (&plan.trash, "to the trash"),
        (&plan.purge, "removed for good (in the trash for long)"),
        (&plan.open, "left alone: open in a running program"),
    ];
    for (rows, what) in parts {
        for row in rows {
            let summary = &row.summary;
            ui.line(&format!(
                "{}  {}  {}  {what}",
                summary.id.short(),
                fit(summary.title_or_untitled(), 44),
                ago(summary.updated_at, now)
            ));
        }
    }
}

fn carry_out(house: &House, plan: &Plan) -> CommandResult<()> {
    let operation = house.sessions.stamp().entry_id();
    for row in &plan.trash {
        house.wait(house.sessions.trash(row.summary.id, operation))?;
    }
    for row in &plan.purge {
        house.wait(house.sessions.store().purge(row.summary.id))?;
    }
    Ok(())
}
