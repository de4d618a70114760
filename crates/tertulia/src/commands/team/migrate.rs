//! Implements `team migrate`: converts older team files and agent registries to the current format.

use std::fs::{self, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tertulia_core::team::{Migration, TeamError, migrate};

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::teams;
use crate::ui::{Ui, harmless};

#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// Team file or agent registry of an older form: a path, or a name
    file: String,
    /// Write to this file instead of changing FILE
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Say what would change and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Overwrite without asking; a backup is kept
    #[arg(short, long)]
    yes: bool,
}

pub fn run(cwd: &Path, args: &MigrateArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let (file, text) = teams::read_text(cwd, &args.file)?;
    let migration = migrate(&text, &file.display().to_string()).map_err(|error| match error {
        // It says to upgrade.
        TeamError::TooNew { .. } => CommandError::from(error),
        error => CommandError::from(error)
            .hint("complete the file by hand where it says so, then migrate it again"),
    })?;
    let target = match &args.output {
        Some(output) => cwd.join(output),
        None => file.clone(),
    };
    let mut done = Done {
        file,
        output: None,
        backup: None,
    };
    let is_due = args.output.is_some() || !migration.changes.is_empty();
    if is_due && !args.dry_run {
        if target.exists() {
            done.backup = Some(confirmed(&target, &migration, args, ui)?);
        }
        replace(&target, &migration.text).map_err(|error| cannot(&target, error))?;
        done.output = Some(target);
    }
    tell(&migration, &done, ui);
    Ok(ExitCode::SUCCESS)
}

/// Files that were read and written.
struct Done {
    file: PathBuf,
    output: Option<PathBuf>,
    backup: Option<PathBuf>,
}

/// Asks before a file is overwritten, and makes a backup of it. Returns the backup's path.
fn confirmed(
    target: &Path,
    migration: &Migration,
    args: &MigrateArgs,
    ui: &mut Ui,
) -> CommandResult<PathBuf> {
    let shown = target.display();
    if !args.yes {
        let refused = || {
            CommandError::new(
                ErrorKind::Usage,
                format!("{shown} exists and was not changed"),
            )
            .hint("-y overwrites it and keeps a backup, -o OUT writes another file, --dry-run only says what would change")
        };
        if !io::stdin().is_terminal() || ui.json {
            return Err(refused());
        }
        for change in &migration.changes {
            ui.ask(&harmless(change));
        }
        if !ui.confirm(&format!("Overwrite {shown}? A backup is kept.")) {
            return Err(refused());
        }
    }
    let backup = free_name(target);
    fs::copy(target, &backup).map_err(|error| cannot(&backup, error))?;
    Ok(backup)
}

/// Returns an unused backup name next to a file.
fn free_name(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let named = |end: String| file.with_file_name(format!("{name}{end}"));
    let mut backup = named(".bak".to_owned());
    let mut number = 2;
    while backup.exists() {
        backup = named(format!(".bak{number}"));
        number += 1;
    }
    backup
}

/// Replaces a file atomically and keeps its permissions.
fn replace(target: &Path, text: &str) -> io::Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    let permissions = match fs::metadata(target) {
        Ok(old) => old.permissions(),
        Err(_) => Permissions::from_mode(0o644),
    };
    new.as_file().set_permissions(permissions)?;
    new.as_file().sync_all()?;
    new.persist(target)?;
    Ok(())
}

fn cannot(file: &Path, error: io::Error) -> CommandError {
    let words = format!("{} cannot be written", file.display());
    CommandError::new(ErrorKind::Failed, words).because(error)
}

fn tell(migration: &Migration, done: &Done, ui: &mut Ui) {
    let shown = |path: &Option<PathBuf>| match path {
        Some(path) => json!(path.display().to_string()),
        None => Value::Null,
    };
    if ui.json {
        return ui.document(&json!({
            "file": done.file.display().to_string(),
            "form": migration.form.name(),
            "output": shown(&done.output),
            "backup": shown(&done.backup),
            "changes": migration.changes,
        }));
    }
    for change in &migration.changes {
        ui.line(&harmless(change));
    }
    let file = done.file.display();
    let words = match (&done.output, &done.backup) {
        _ if migration.changes.is_empty() && done.output.is_none() => {
            format!("{file} is already at schema {}", migration.form.newest())
        }
        (None, _) => format!("nothing was written; -y changes {file}"),
        (Some(output), None) => format!("written: {}", output.display()),
        (Some(output), Some(backup)) => format!(
            "written: {} (before: {})",
            output.display(),
            backup.display()
        ),
    };
    ui.note(&words);
}
