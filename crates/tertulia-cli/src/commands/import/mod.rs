use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tertulia::formats::jsonl;
use tertulia::store::Adopted;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, House};
use crate::ui::Ui;

/// Take in sessions from files
///
/// A second import of the same adds nothing. A session that has gone another way since becomes a fork.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia import talk.jsonl\n  \
    tertulia import *.jsonl --dry-run     only say what would happen\n  \
    ssh host tertulia export @ --format jsonl | tertulia import -")]
pub struct ImportArgs {
    /// The files; - is standard input
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// What wrote them, instead of looking
    #[arg(long, value_enum, value_name = "KIND")]
    from: Option<From>,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
}

/// Whose files can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// Our own logs
    Tertulia,
}

pub fn run(args: &ImportArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let house = open::house(global, ui)?;
    let mut results = Vec::new();
    let mut first_error = None;
    for path in &args.paths {
        // One bad file does not keep the others out.
        match take_in(&house, path, args) {
            Ok(adopted) => {
                if !ui.json {
                    ui.line(&format!(
                        "{}: {}",
                        path.display(),
                        words(adopted, args.dry_run)
                    ));
                }
                results.push(object(path, adopted));
            }
            Err(error) => {
                if first_error.is_some() || args.paths.len() > 1 {
                    ui.warn(&format!("{}: {error}", path.display()));
                }
                results.push(
                    json!({ "path": path.display().to_string(), "error": error.to_string() }),
                );
                first_error.get_or_insert(error);
            }
        }
    }
    if ui.json {
        ui.document(&json!({ "imported": results, "dry_run": args.dry_run }));
    }
    match first_error {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn take_in(house: &House, path: &Path, args: &ImportArgs) -> CommandResult<Adopted> {
    let content = read(path)?;
    if args.from.is_none() && !jsonl::is_ours(&content) {
        return Err(CommandError::new(
            ErrorKind::Invalid,
            format!("{} is not a session that can be read", path.display()),
        )
        .hint("read are: tertulia logs, as `tertulia export --format jsonl` writes them"));
    }
    let log = jsonl::read(&content).map_err(|error| {
        CommandError::new(ErrorKind::Invalid, format!("{}: {error}", path.display()))
            .hint("nothing of it was taken in")
    })?;
    let adopted = if args.dry_run {
        house.wait(house.sessions.preview(&log))?
    } else {
        house.wait(house.sessions.adopt(&log))?
    };
    Ok(adopted)
}

fn read(path: &Path) -> CommandResult<Vec<u8>> {
    let mut content = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .read_to_end(&mut content)
            .map(|_| ())
    } else {
        std::fs::read(path).map(|read| content = read)
    };
    read.map_err(|error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Failed
        };
        CommandError::new(kind, format!("{} cannot be read", path.display())).because(error)
    })?;
    Ok(content)
}

fn words(adopted: Adopted, dry_run: bool) -> String {
    let would = if dry_run { "would be " } else { "" };
    match adopted {
        Adopted::Created { id, entries } => format!(
            "{would}taken in as {} ({entries} entries, all kept as they are)",
            id.short()
        ),
        Adopted::Extended { id, entries } => {
            format!("{entries} new entries {would}added to {}", id.short())
        }
        Adopted::Known { id } => format!("nothing new: {} has it all", id.short()),
        Adopted::Forked { id, from, entries } => {
            format!(
                "{} has gone another way; its {entries} own entries {would}kept as the fork {}",
                from.short(),
                id.short()
            )
        }
    }
}

fn object(path: &Path, adopted: Adopted) -> Value {
    let (result, id, entries) = match adopted {
        Adopted::Created { id, entries } => ("created", id, entries),
        Adopted::Extended { id, entries } => ("extended", id, entries),
        Adopted::Known { id } => ("known", id, 0),
        Adopted::Forked { id, entries, .. } => ("forked", id, entries),
    };
    json!({ "path": path.display().to_string(), "result": result, "session": id, "entries": entries })
}
