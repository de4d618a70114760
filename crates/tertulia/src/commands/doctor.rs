use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{CheckMode, Report};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::settings::StoreUrl;
use crate::show::{self, count};
use crate::ui::Ui;

/// Check every byte of the store: hashes, order, list rows, search index
///
/// Exit code 5 if anything is damaged. With --repair, what is readable is salvaged, the damaged
/// original is kept beside it, and what is lost is named; exit code 1 if anything is lost.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia doctor\n  \
    tertulia doctor --repair\n  \
    tertulia doctor --json --store files:/backup/sessions")]
pub struct DoctorArgs {
    /// Salvage what is readable
    #[arg(long)]
    repair: bool,
}

pub fn run(args: &DoctorArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let salvaged = if args.repair {
        salvage(global, ui)?
    } else {
        None
    };
    let workspace = if args.repair {
        open::workspace(global, ui)?
    } else {
        open::reader(global, ui)?
    };
    let mode = if args.repair {
        CheckMode::Repair(workspace.sessions.clock().now())
    } else {
        CheckMode::Look
    };
    let mut report = workspace.wait(workspace.sessions.store().check(mode, &ui.progress()))?;
    if let Some(salvaged) = salvaged {
        report.faults.extend(salvaged.faults);
        report.repaired.extend(salvaged.repaired);
        report.lost.extend(salvaged.lost);
    }
    let is_repaired = !report.repaired.is_empty() && report.altered.is_empty();
    let sound = report.is_clean() || is_repaired;
    if ui.json {
        let mut document = json!(report);
        document["clean"] = json!(report.is_clean());
        ui.document(&document);
    } else {
        tell(&report, ui);
    }
    if sound {
        return Ok(match report.lost.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        });
    }
    let damaged = report.damage.len() + report.faults.len();
    let places = (damaged + report.altered.len()) as u64;
    let mut error = CommandError::new(
        ErrorKind::Invalid,
        format!("the store is damaged in {}", count(places, "place")),
    );
    if damaged > 0 && !args.repair {
        error = error.hint(
            "`tertulia doctor --repair` salvages what is readable and keeps the original beside it",
        );
    }
    if !report.altered.is_empty() {
        error = error.hint(
            "altered words of sealed sessions cannot be repaired: a backup, or `tertulia pull FROM` from a store that has them, brings them back",
        );
    }
    Err(error)
}

/// Salvages a database that cannot be opened. This must precede all other checks, which need an
/// open store.
fn salvage(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Option<Report>> {
    let settings = open::settings(global, ui)?;
    let StoreUrl::Sqlite(path) = &settings.store else {
        return Ok(None);
    };
    let now = open::clock().now();
    Ok(SqliteStore::salvage_unopenable(path, now, &ui.progress())?)
}

fn tell(report: &Report, ui: &mut Ui) {
    for line in show::damage(&report.damage) {
        ui.line(&format!("damaged: {line}"));
    }
    for line in show::damage(&report.altered) {
        ui.line(&format!("altered: {line}"));
    }
    for fault in &report.faults {
        ui.line(&format!("damaged: {fault}"));
    }
    for note in &report.notes {
        ui.line(&format!("note: {note}"));
    }
    for repaired in &report.repaired {
        ui.line(&format!("repaired: {repaired}"));
    }
    for lost in &report.lost {
        ui.line(&format!("lost: {lost}"));
    }
    let counts = format!(
        "{}, {}",
        count(report.sessions, "session"),
        count(report.entries, "entry")
    );
    if report.is_clean() {
        ui.line(&format!("OK: {counts}, all hashes valid"));
    } else {
        ui.line(&format!("Checked {counts}."));
    }
}
