use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::query::{DamagedSession, Filter, Page, Row, Trash};
use tertulia_formats::json;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::{ago, span};
use crate::open::{self, Workspace};
use crate::settings::Retention;
use crate::show;
use crate::ui::{Ui, fit};

/// Move old sessions to the trash, and empty the trash of what has been there for long
///
/// Sessions of all projects count. Those that a running program has open are left alone. What goes to
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
pub struct Plan {
    /// Sessions to move to the trash.
    pub trash: Vec<Row>,
    /// Sessions in the trash to remove for good.
    pub purge: Vec<Row>,
    /// Sessions left alone because a running program has them open.
    pub open: Vec<Row>,
}

pub fn run(args: &PruneArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let plan = plan(&rules(args, &workspace)?, &workspace)?;
    if !ui.json {
        tell(&workspace, &plan, ui);
    }
    let idle = plan.trash.is_empty() && plan.purge.is_empty();
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
        carry_out(&workspace, &plan)?;
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
        ui.advise(&format!(
            "Moved {} to the trash, removed {} for good. `tertulia undo` brings back what was moved to the trash.",
            show::count(plan.trash.len() as u64, "session"),
            plan.purge.len()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the rules from the flags or, without flags, from the settings.
fn rules(args: &PruneArgs, workspace: &Workspace) -> CommandResult<Rules> {
    let retention = &workspace.settings.retention;
    if args.older_than.is_none() && args.keep.is_none() {
        return Ok(Rules {
            retention: retention.clone(),
            keep: 0,
        });
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
            min_age,
            trash: retention.trash,
        },
        keep,
    })
}

/// Rules that select the sessions to prune.
pub struct Rules {
    retention: Retention,
    /// Number of newest sessions that stay, however old they are.
    keep: usize,
}

impl From<&Retention> for Rules {
    fn from(retention: &Retention) -> Rules {
        Rules {
            retention: retention.clone(),
            keep: 0,
        }
    }
}

impl Rules {
    /// Returns true if a session is to be pruned, given its position among the newest and the time
    /// since its last message.
    fn reach(&self, place: usize, silence: jiff::SignedDuration) -> bool {
        let Retention {
            max_age,
            max_count,
            min_age,
            ..
        } = &self.retention;
        let over = max_age.is_some_and(|limit| silence > limit)
            || max_count.is_some_and(|limit| place >= limit);
        over && place >= self.keep && silence >= *min_age
    }
}

/// Applies the rules to the current sessions.
pub fn plan(rules: &Rules, workspace: &Workspace) -> CommandResult<Plan> {
    let now = workspace.sessions.clock().now();
    let mut plan = Plan {
        trash: Vec::new(),
        purge: Vec::new(),
        open: Vec::new(),
    };
    if rules.retention.is_on() {
        for (place, row) in sound(workspace, &Filter::default())?
            .into_iter()
            .enumerate()
        {
            if rules.reach(place, now.duration_since(row.meta.updated_at)) {
                if row.open {
                    plan.open.push(row)
                } else {
                    plan.trash.push(row)
                }
            }
        }
    }
    for row in sound(
        workspace,
        &Filter {
            trash: Trash::Only,
            ..Filter::default()
        },
    )? {
        let long = row
            .meta
            .trashed_at
            .is_some_and(|since| now.duration_since(since) > rules.retention.trash);
        if long {
            if row.open {
                plan.open.push(row)
            } else {
                plan.purge.push(row)
            }
        }
    }
    Ok(plan)
}

/// Returns all rows that match the filter.
pub fn everything(workspace: &Workspace, filter: &Filter) -> CommandResult<Vec<Row>> {
    Ok(with_damaged(workspace, filter)?.0)
}

/// Returns all rows that match the filter, except damaged sessions: those are for `doctor`, not for
/// the trash.
fn sound(workspace: &Workspace, filter: &Filter) -> CommandResult<Vec<Row>> {
    let (mut rows, damaged) = with_damaged(workspace, filter)?;
    rows.retain(|row| {
        let is_it = |damaged: &DamagedSession| damaged.id == Some(row.meta.id);
        !damaged.iter().any(is_it)
    });
    Ok(rows)
}

/// Returns all rows that match the filter, and the damaged sessions of the store.
fn with_damaged(
    workspace: &Workspace,
    filter: &Filter,
) -> CommandResult<(Vec<Row>, Vec<DamagedSession>)> {
    let mut rows = Vec::new();
    let mut damaged = Vec::new();
    let mut page = Page::first(1000);
    loop {
        let listing = workspace.wait(workspace.sessions.store().list(filter, &page))?;
        rows.extend(listing.rows);
        for session in listing.damaged {
            if !damaged.contains(&session) {
                damaged.push(session);
            }
        }
        match listing.next {
            Some(next) => page.cursor = Some(next),
            None => return Ok((rows, damaged)),
        }
    }
}

fn tell(workspace: &Workspace, plan: &Plan, ui: &mut Ui) {
    let now = workspace.sessions.clock().now();
    let parts = [
        (&plan.trash, "to the trash"),
        (&plan.purge, "removed for good (in the trash for long)"),
        (&plan.open, "left alone: open in a running program"),
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

/// Carries out the plan for the sessions that have not changed since it was made.
pub fn carry_out(workspace: &Workspace, plan: &Plan) -> CommandResult<()> {
    let operation = workspace.sessions.clock().entry_id();
    let unchanged = |row: &Row| {
        let now = workspace.wait(workspace.sessions.row(row.meta.id));
        now.is_ok_and(|now| {
            !now.open
                && now.meta.updated_at == row.meta.updated_at
                && now.meta.trashed_at == row.meta.trashed_at
        })
    };
    for row in plan.trash.iter().filter(|row| unchanged(row)) {
        workspace.wait(workspace.sessions.trash(row.meta.id, operation))?;
    }
    for row in plan.purge.iter().filter(|row| unchanged(row)) {
        workspace.wait(workspace.sessions.store().purge(row.meta.id))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn rules_reach_the_old_and_the_many() {
        let day = SignedDuration::from_hours(24);
        let check = |max_age: Option<i32>, max_count, keep, place, silence: i32, expected| {
            let rules = Rules {
                retention: Retention {
                    max_age: max_age.map(|days| day * days),
                    max_count,
                    min_age: day,
                    trash: day,
                },
                keep,
            };
            assert_eq!(
                rules.reach(place, day * silence),
                expected,
                "{max_age:?} {max_count:?} {keep} {place} {silence}"
            );
        };
        check(Some(30), None, 0, 5, 31, true);
        check(Some(30), None, 0, 5, 29, false);
        check(Some(30), None, 6, 5, 31, false);
        check(None, Some(5), 0, 5, 2, true);
        check(None, Some(5), 0, 4, 2, false);
        // However many there are: sessions with messages from today stay.
        check(None, Some(0), 0, 9, 0, false);
    }
}
