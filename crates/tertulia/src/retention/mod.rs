//! Applies the `[retention]` rules at the end of a conversation, a server or a fork, at most once a day.
//! The first run only announces what they would remove, so that a forgotten line in the settings
//! removes no session without warning.
//!
//! They are not applied after `rename`, `tag`, `rm` and the like, for `undo` would then take back the
//! wrong change, nor after an import, whose old sessions would go at once.

pub mod compress;
mod plan;
mod state;
#[cfg(test)]
mod tests;

use jiff::SignedDuration;
use tertulia_core::query::Row;

use crate::error::CommandResult;
use crate::moment::dated;
use crate::open::Workspace;
use crate::settings::{Retention, StoreUrl};
use crate::show;
use crate::ui::{Ui, fit};
pub use plan::{Done, Plan, Rules, plan};
use state::{RetentionState, States, Step};

/// Number of sessions that a message names.
const NAMED: usize = 3;

/// Announces the rules or applies them, if a day has passed since the last run. Failures are shown as
/// warnings and change nothing else.
pub fn keep_workspace(workspace: &Workspace, ui: &mut Ui) {
    let settings = &workspace.settings;
    let retention = &settings.retention;
    let is_on = retention.is_on() || retention.compress_after.is_some();
    if !is_on || settings.store == StoreUrl::Memory {
        return;
    }
    let now = workspace.sessions.clock().now();
    if !States::of(settings).read().is_due(retention, now) {
        return;
    }
    if let Err(error) = follow(workspace, ui).and_then(|()| compress_old(workspace, ui)) {
        ui.warn(&format!("[retention] cannot be followed: {error}"));
    }
}

/// Compresses old sessions, if the settings say so.
fn compress_old(workspace: &Workspace, ui: &mut Ui) -> CommandResult<()> {
    let Some(older_than) = workspace.settings.retention.compress_after else {
        return Ok(());
    };
    let candidates = compress::candidates(workspace, older_than)?;
    if candidates.is_empty() {
        return Ok(());
    }
    let done = compress::compress(workspace, &candidates, &ui.progress())?;
    if done.sessions > 0 {
        ui.note(&format!("[retention] {}", compress::words(&done)));
    }
    Ok(())
}

/// Returns the rules of the settings: sessions that the user took out of the trash again are spared.
pub fn rules(workspace: &Workspace) -> Rules {
    let states = States::of(&workspace.settings);
    Rules {
        retention: workspace.settings.retention.clone(),
        keep: 0,
        spared: states.read().moved,
    }
}

fn follow(workspace: &Workspace, ui: &mut Ui) -> CommandResult<()> {
    let retention = &workspace.settings.retention;
    let now = workspace.sessions.clock().now();
    let states = States::of(&workspace.settings);
    let mut state = states.read();
    let plan = match retention.is_on() {
        true => plan::plan(&rules(workspace), workspace)?,
        false => Plan::default(),
    };
    match state.step(retention, now, plan.is_empty()) {
        Step::Nothing => {}
        Step::Announce => announce(&plan, retention, &dated(state.next_run(now)), ui),
        Step::Apply => {
            let mut done = Done::default();
            let carried_out = plan.carry_out(workspace, &mut done);
            remember(&mut state, &plan, &done, workspace);
            report(&plan, &done, retention, ui);
            states.write(&state)?;
            return carried_out;
        }
    }
    states.write(&state)
}

/// Records which sessions were moved, and forgets those that no longer exist.
fn remember(state: &mut RetentionState, plan: &Plan, done: &Done, workspace: &Workspace) {
    let now = workspace.sessions.clock().now();
    state.moved.retain(|id, _| {
        let exists = || workspace.wait(workspace.sessions.row(*id)).is_ok();
        !done.purged.contains(id) && (plan.in_trash.contains(id) || exists())
    });
    state.moved.extend(done.trashed.iter().map(|id| (*id, now)));
}

fn announce(plan: &Plan, retention: &Retention, when: &str, ui: &mut Ui) {
    let mut parts = Vec::new();
    if !plan.trash.is_empty() {
        let count = show::count(plan.trash.len() as u64, "session");
        parts.push(format!(
            "move {count} to the trash ({})",
            names(&plan.trash)
        ));
    }
    if !plan.purge.is_empty() {
        parts.push(format!(
            "delete {} for good ({}), in the trash for more than {}",
            show::count(plan.purge.len() as u64, "session"),
            names(&plan.purge),
            days(retention.trash)
        ));
    }
    let words = format!(
        "[retention] will {}, after the first command from {when} on. `tertulia prune --dry-run` lists all; \
         `tertulia tag REF +pinned` keeps a session",
        parts.join(" and ")
    );
    ui.warn(&ui.invocation.complete(&words));
}

fn report(plan: &Plan, done: &Done, retention: &Retention, ui: &mut Ui) {
    let rows = |rows: &[Row], done: &[tertulia_core::id::SessionId]| -> Vec<Row> {
        let is_done = |row: &&Row| done.contains(&row.meta.id);
        rows.iter().filter(is_done).cloned().collect()
    };
    let (trashed, purged) = (
        rows(&plan.trash, &done.trashed),
        rows(&plan.purge, &done.purged),
    );
    let mut parts = Vec::new();
    if !trashed.is_empty() {
        let count = show::count(trashed.len() as u64, "session");
        parts.push(format!("moved {count} to the trash ({}); `tertulia undo` brings back what was moved to the trash", names(&trashed)));
    }
    if !purged.is_empty() {
        parts.push(format!(
            "deleted {} for good ({}), in the trash for more than {}",
            show::count(purged.len() as u64, "session"),
            names(&purged),
            days(retention.trash)
        ));
    }
    if !parts.is_empty() {
        let words = format!("[retention] {}", parts.join("; "));
        ui.warn(&ui.invocation.complete(&words));
    }
}

/// Names the first sessions, and counts the others.
fn names(rows: &[Row]) -> String {
    let name = |row: &Row| {
        let title = fit(row.meta.title_or_untitled(), 30);
        format!("{} \"{title}\"", row.meta.id.short())
    };
    let mut names: Vec<String> = rows.iter().take(NAMED).map(name).collect();
    if rows.len() > NAMED {
        names.push(format!("{} more", rows.len() - NAMED));
    }
    names.join(", ")
}

fn days(span: SignedDuration) -> String {
    match span.as_hours() {
        hours if hours < 48 => show::count(hours.unsigned_abs(), "hour"),
        hours => show::count((hours / 24).unsigned_abs(), "day"),
    }
}
