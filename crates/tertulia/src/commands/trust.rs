use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::ago;
use crate::open;
use crate::settings::{ProjectFile, Settings, UntrustedSetting};
use crate::trust::{self, Decision, Decisions};
use crate::ui::{Ui, harmless};

/// Trust a project's settings file
///
/// Without trust, what .tertulia/config.toml of a project says about the store, programs, addresses, keys, tool
/// servers and approval is ignored. Trust holds for the file as it is now: a change asks again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia trust                   trust the project in this folder\n  \
    tertulia trust ~/work/parser\n  \
    tertulia trust --list\n  \
    tertulia trust --revoke          trust it no longer")]
pub struct TrustArgs {
    /// Folder of the project, this one by default
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// List the folders you decided about
    #[arg(long, conflicts_with_all = ["dir", "revoke"])]
    list: bool,
    /// Revoke trust
    #[arg(long)]
    revoke: bool,
    /// Don't ask; needed when not on a terminal
    #[arg(short, long)]
    yes: bool,
}

pub fn run(args: &TrustArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::quiet_settings(global, ui)?;
    if args.list {
        return list(&settings, ui);
    }
    let folder = match &args.dir {
        Some(dir) => settings.cwd.join(dir),
        None => settings.project.root.clone(),
    };
    if args.revoke {
        return revoke(&settings, &folder, ui);
    }
    let folder = match &args.dir {
        Some(_) => settings.root_of(&folder),
        None => folder,
    };
    let file = ProjectFile::of(&folder)
        .map_err(|reason| CommandError::new(ErrorKind::Usage, reason))?
        .ok_or_else(|| {
            let message = format!("{} has no .tertulia/config.toml", folder.display());
            CommandError::new(ErrorKind::Usage, message)
                .hint("name the folder of a project that has one: tertulia trust DIR")
        })?;
    let claims = settings.claims(&file)?;
    if !args.yes && !ui.is_interactive() {
        return Err(not_asked(&file, &claims));
    }
    trust::decide(
        &settings.trust_file(),
        Decision {
            folder: file.folder.to_string_lossy().into_owned(),
            hash: file.hash.clone(),
            trusted: true,
            at: open::clock().now(),
        },
    )?;
    if ui.json {
        let keys: Vec<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
        ui.document(&json!({
            "folder": file.folder.to_string_lossy(), "trusted": true, "keys": keys,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    ui.line(&harmless(&format!("Trusted: {}", file.folder.display())));
    for claim in &claims {
        ui.line(&harmless(&format!("  {} = {}", claim.key, claim.value)));
    }
    Ok(ExitCode::SUCCESS)
}

/// A script may have been started by an agent: trust without a person must be meant.
fn not_asked(file: &ProjectFile, claims: &[UntrustedSetting]) -> CommandError {
    let keys: Vec<&str> = claims.iter().map(|claim| claim.key.as_str()).collect();
    let message = format!(
        "not interactive: cannot ask whether to trust {} with {}",
        file.folder.display(),
        keys.join(", ")
    );
    CommandError::new(ErrorKind::Usage, harmless(&message)).hint("add -y")
}

fn revoke(settings: &Settings, folder: &Path, ui: &mut Ui) -> CommandResult<ExitCode> {
    let root = settings.root_of(folder);
    let file = settings.trust_file();
    let found = trust::revoke(&file, &root)? || trust::revoke(&file, folder)?;
    if ui.json {
        ui.document(&json!({
            "folder": root.to_string_lossy(), "trusted": false, "changed": found,
        }));
    } else if found {
        ui.line(&harmless(&format!("No longer trusted: {}", root.display())));
    } else {
        ui.note(&format!("{} was not trusted.", root.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(settings: &Settings, ui: &mut Ui) -> CommandResult<ExitCode> {
    let decisions = Decisions::read(&settings.trust_file())?;
    if ui.json {
        let folders: Vec<Value> = decisions
            .iter()
            .map(|decision| {
                json!({
                    "folder": decision.folder,
                    "trusted": decision.trusted,
                    "at": decision.at,
                    "state": state(decision),
                })
            })
            .collect();
        ui.document(&json!({ "folders": folders }));
        return Ok(ExitCode::SUCCESS);
    }
    let now = open::clock().now();
    let rows: Vec<Vec<String>> = decisions
        .iter()
        .map(|decision| {
            let verdict = if decision.trusted {
                "trusted"
            } else {
                "denied"
            };
            let mut verdict = verdict.to_owned();
            if state(decision) != "current" {
                verdict = format!("{verdict}, file {}", state(decision));
            }
            vec![decision.folder.clone(), verdict, ago(decision.at, now)]
        })
        .collect();
    if rows.is_empty() {
        ui.note("No folder is trusted.");
    } else {
        ui.table(&["FOLDER", "DECISION", "SINCE"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the file on which the decision was made is current, changed or missing.
fn state(decision: &Decision) -> &'static str {
    match ProjectFile::of(Path::new(&decision.folder)) {
        Ok(Some(file)) if file.hash == decision.hash => "current",
        Ok(Some(_)) | Err(_) => "changed",
        Ok(None) => "missing",
    }
}
