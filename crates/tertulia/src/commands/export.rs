use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tertulia_core::entry::Kind;
use tertulia_core::query::Row;
use tertulia_core::session::{Log, SessionMeta};
use tertulia_formats::snapshot::Snapshot;
use tertulia_formats::{json, markdown};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::show;
use crate::ui::Ui;

/// Write a session in another format
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia export @ > talk.md\n  \
    tertulia export 5f3a9c1e --format jsonl -o talk.jsonl    what `import` takes in, byte for byte\n  \
    tertulia export @ --format json | jq '.entries[].content'\n  \
    tertulia export @ --format snapshot -o talk.json         a team session for agent-chatter")]
pub struct ExportArgs {
    /// Session to export
    #[arg(value_name = "REF", default_value = "@")]
    reference: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Md)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

/// The forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown, for people
    #[value(alias = "markdown")]
    Md,
    /// The object of `show --json`
    Json,
    /// The log itself, line by line
    Jsonl,
    /// The messages of a team session as one document, schema 1.0
    Snapshot,
}

pub fn run(args: &ExportArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let row = workspace.find(&args.reference)?;
    let mut log = workspace.wait(workspace.sessions.load(row.meta.id))?;
    workspace.with_unfinished(&row, &mut log)?;
    for line in show::damage(&log.damage) {
        ui.warn(&format!("damaged: {line}"));
    }
    let content = content(args.format, &row, &log)?;
    if let Some(words) = left_out(args.format, &row, &log) {
        ui.note(&words);
    }
    match &args.output {
        None => ui.answer(&content),
        Some(file) => {
            write(file, content.as_bytes(), args.force)?;
            if ui.json {
                ui.document(
                    &json!({ "session": row.meta.id, "file": file.display().to_string(), "bytes": content.len() }),
                );
            } else {
                ui.note(&format!(
                    "Wrote {} ({} bytes)",
                    file.display(),
                    content.len()
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Renders a session in the given format.
pub fn content(format: Format, row: &Row, log: &Log) -> CommandResult<String> {
    Ok(match format {
        Format::Md => markdown::transcript(&row.meta, log),
        Format::Json => {
            let text = serde_json::to_string_pretty(&Value::Object(json::transcript(row, log)));
            format!("{}\n", text.unwrap_or_default())
        }
        Format::Jsonl => Form::Log.content(&row.meta, log)?,
        Format::Snapshot => snapshot(row, log)?,
    })
}

fn snapshot(row: &Row, log: &Log) -> CommandResult<String> {
    let meta = &row.meta;
    if meta.kind != Kind::Team {
        return Err(CommandError::new(
            ErrorKind::Usage,
            format!(
                "only a team session can be a snapshot, and {} is a {} session",
                meta.id.short(),
                meta.kind.name()
            ),
        )
        .hint("`--format jsonl` has everything of every session"));
    }
    Form::Snapshot.content(meta, log)
}

/// Describes which messages the format cannot hold, or returns `None` if it holds all.
pub fn left_out(format: Format, row: &Row, log: &Log) -> Option<String> {
    if format != Format::Snapshot {
        return None;
    }
    let kept = Snapshot::of(&row.meta, log).messages.len();
    let count = log.messages().count().saturating_sub(kept);
    (count > 0).then(|| {
        format!(
            "left out: {} of tools or with nothing but tool calls; a snapshot has no place for them",
            show::messages(count as u64)
        )
    })
}

/// A format that can be both read and written, so that a session file can be kept up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The log itself, as JSON Lines.
    Log,
    /// An agent-chatter snapshot: the messages of a team session.
    Snapshot,
}

impl Form {
    /// Renders a session in this format.
    pub fn content(self, meta: &SessionMeta, log: &Log) -> CommandResult<String> {
        Ok(match self {
            Form::Log => {
                let entries = log.entries.iter();
                entries.map(|entry| format!("{}\n", entry.line())).collect()
            }
            Form::Snapshot => Snapshot::of(meta, log).write()?,
        })
    }
}

/// Writes a file with mode 0600. Without `force`, fails if the file exists.
pub fn write(file: &Path, content: &[u8], force: bool) -> CommandResult<()> {
    let failed = |error: std::io::Error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let failed = CommandError::new(
            ErrorKind::Failed,
            format!("{} cannot be written", file.display()),
        )
        .because(error);
        if exists {
            failed.hint("choose another name, or add --force to replace it")
        } else {
            failed
        }
    };
    if !force {
        return write_new(file, content).map_err(failed);
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".tertulia-{}", uuid::Uuid::new_v4().simple()));
    let temporary = PathBuf::from(name);
    write_new(&temporary, content).map_err(failed)?;
    if let Err(error) = std::fs::rename(&temporary, file) {
        // The error of the rename is the one to report; ignore a failure to clean up.
        let _ = std::fs::remove_file(&temporary);
        return Err(failed(error));
    }
    sync_folder_of(file).map_err(failed)
}

/// Syncs the folder of a file, so that the directory entry survives a crash as well.
fn sync_folder_of(file: &Path) -> std::io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::File::open(folder)?.sync_all()
}

/// Creates and syncs a new file. Removes the file again if writing fails: otherwise each attempt on
/// a full disk would leave an empty file behind.
fn write_new(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)?;
    let written = made
        .write_all(content)
        .and_then(|()| made.sync_all())
        .and_then(|()| sync_folder_of(file));
    if written.is_err() {
        // The write error is the one to report; ignore a failure to clean up.
        let _ = std::fs::remove_file(file);
    }
    written
}
