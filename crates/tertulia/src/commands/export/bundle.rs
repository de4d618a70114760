//! Bundles: logs of one or several sessions in one encrypted file, line by line as they are stored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tertulia_core::id::Seq;
use tertulia_core::query::Row;

use super::Exporter;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::seal::{KeyResult, UserKeys};
use crate::show;
use crate::ui::Ui;

/// Lines per read: a long session is never in memory as a whole.
const PAGE: usize = 500;

/// Writes sessions to one encrypted file.
pub fn export(
    exporter: &Exporter<'_>,
    mut rows: Vec<Row>,
    output: &Path,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    // Originals come before their forks, so that an import finds what they share.
    rows.sort_by_key(|row| row.meta.created_at);
    UserKeys::check_recipients(&exporter.args.recipient)
        .map_err(|error| CommandError::new(ErrorKind::Usage, error.0))?;
    let encryptor =
        encryptor(exporter).map_err(|error| CommandError::new(ErrorKind::Invalid, error.0))?;
    let is_for_others = exporter.args.passphrase || !exporter.args.recipient.is_empty();
    for row in rows
        .iter()
        .filter(|row| is_for_others && row.meta.seal.is_some())
    {
        ui.warn(&format!(
            "session {0} stays sealed in the bundle: who imports it needs the session's own key, too; \
             `tertulia export {0} --format md` writes its words",
            row.meta.id.short()
        ));
    }
    let temporary = temporary(output);
    let target = if exporter.args.force {
        &temporary
    } else {
        output
    };
    let write = || -> CommandResult<u64> {
        let file = create(target).map_err(|error| failed(output, error))?;
        let written = fill(exporter, &rows, encryptor, file, output);
        if written.is_err() {
            // Half a bundle is of no use.
            let _ = fs::remove_file(target);
        }
        written
    };
    let bytes = write()?;
    if exporter.args.force {
        fs::rename(&temporary, output).map_err(|error| failed(output, error))?;
    }
    if ui.json {
        let ids: Vec<_> = rows.iter().map(|row| row.meta.id).collect();
        ui.document(&json!({ "sessions": ids, "file": output, "bytes": bytes }));
        return Ok(ExitCode::SUCCESS);
    }
    let sessions = show::count(rows.len() as u64, "session");
    ui.note(&format!(
        "Wrote {} ({sessions}, {bytes} bytes)",
        output.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn encryptor(exporter: &Exporter<'_>) -> KeyResult<age::Encryptor> {
    let keys = UserKeys::new(&exporter.workspace.settings);
    let args = exporter.args;
    match (args.passphrase, &args.recipient[..]) {
        (true, _) => keys.passphrase_encryptor(),
        (false, []) => keys.encryptor(),
        (false, recipients) => keys.encryptor_for(recipients),
    }
}

/// Encrypts the logs into the file. Returns its size.
fn fill(
    exporter: &Exporter<'_>,
    rows: &[Row],
    encryptor: age::Encryptor,
    file: File,
    output: &Path,
) -> CommandResult<u64> {
    let broken = |error: io::Error| failed(output, error);
    let mut writer = encryptor
        .wrap_output(BufWriter::new(file))
        .map_err(broken)?;
    for row in rows {
        write_log(exporter, row, &mut writer, output)?;
    }
    let inner = writer.finish().map_err(broken)?;
    let file = inner
        .into_inner()
        .map_err(|error| broken(error.into_error()))?;
    file.sync_all().map_err(broken)?;
    Ok(file.metadata().map_err(broken)?.len())
}

fn write_log(
    exporter: &Exporter<'_>,
    row: &Row,
    writer: &mut impl Write,
    output: &Path,
) -> CommandResult<()> {
    let workspace = exporter.workspace;
    let mut after = Seq::START;
    loop {
        let page = workspace.sessions.stored().read(row.meta.id, after, PAGE);
        let lines = workspace.wait(page)?;
        for line in &lines {
            let written = writer.write_all(&line.bytes);
            let written = written.and_then(|()| writer.write_all(b"\n"));
            written.map_err(|error| failed(output, error))?;
        }
        match lines.last() {
            Some(last) if last.seq > after => after = last.seq,
            _ => return Ok(()),
        }
    }
}

fn create(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(file)
}

fn temporary(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".tertulia-{}", uuid::Uuid::new_v4().simple()));
    PathBuf::from(name)
}

fn failed(file: &Path, error: io::Error) -> CommandError {
    let exists = error.kind() == io::ErrorKind::AlreadyExists;
    let words = format!("{} cannot be written", file.display());
    let failed = CommandError::new(ErrorKind::Failed, words).because(error);
    match exists {
        true => failed.hint("choose another name, or add --force to replace it"),
        false => failed,
    }
}
