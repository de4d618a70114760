//! Bundles: logs of one or several sessions in one encrypted file, line by line as they are stored.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tertulia_core::id::Seq;
use tertulia_core::query::Row;
use tertulia_store::KeyError;

use super::Exporter;
use crate::commands::import::bundle::key_as_line;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::seal::{KeyResult, UserKeys, wrap};
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
    let keys = UserKeys::new(&exporter.workspace.settings);
    let invalid = |error: KeyError| CommandError::new(ErrorKind::Invalid, error.0);
    let encryptor = encryptor(exporter, &keys).map_err(invalid)?;
    // Before anything is written: who gets the bundle must be able to read all of it.
    let mut logs = Vec::with_capacity(rows.len());
    for row in rows {
        let key = key_line(exporter, &keys, &row)?;
        logs.push((row, key));
    }
    let temporary = temporary(output);
    let target = if exporter.args.force {
        &temporary
    } else {
        output
    };
    let write = || -> CommandResult<u64> {
        let file = create(target).map_err(|error| failed(output, error))?;
        let written = fill(exporter, &logs, encryptor, file, output);
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
        let ids: Vec<_> = logs.iter().map(|(row, _)| row.meta.id).collect();
        ui.document(&json!({ "sessions": ids, "file": output, "bytes": bytes }));
        return Ok(ExitCode::SUCCESS);
    }
    let sessions = show::count(logs.len() as u64, "session");
    ui.note(&format!(
        "Wrote {} ({sessions}, {bytes} bytes)",
        output.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn encryptor(exporter: &Exporter<'_>, keys: &UserKeys) -> KeyResult<age::Encryptor> {
    let args = exporter.args;
    match (args.passphrase, &args.recipient[..]) {
        (true, _) => keys.passphrase_encryptor(),
        (false, []) => keys.encryptor(),
        (false, recipients) => keys.encryptor_for(recipients),
    }
}

/// Returns the line with the key of a sealed session for those of the bundle, if these are not the ones
/// of the settings.
fn key_line(exporter: &Exporter<'_>, keys: &UserKeys, row: &Row) -> CommandResult<Option<String>> {
    let args = exporter.args;
    let is_for_others = args.passphrase || !args.recipient.is_empty();
    if row.meta.seal.is_none() || !is_for_others {
        return Ok(None);
    }
    let workspace = exporter.workspace;
    let key = workspace.wait(workspace.sessions.sealed_key(row.meta.id))?;
    let Some(key) = key else { return Ok(None) };
    let encryptor = match args.passphrase {
        true => keys.same_passphrase_encryptor(),
        false => keys.encryptor_for(&args.recipient),
    };
    let received = encryptor.and_then(|encryptor| wrap(encryptor, &key.key));
    let received = received.map_err(|error| CommandError::new(ErrorKind::Invalid, error.0))?;
    Ok(Some(key_as_line(&key.wrapped, &received)))
}

/// Encrypts the logs into the file. Returns its size.
fn fill(
    exporter: &Exporter<'_>,
    logs: &[(Row, Option<String>)],
    encryptor: age::Encryptor,
    file: File,
    output: &Path,
) -> CommandResult<u64> {
    let broken = |error: io::Error| failed(output, error);
    let mut writer = encryptor
        .wrap_output(BufWriter::new(file))
        .map_err(broken)?;
    for (row, key) in logs {
        write_log(exporter, row, &mut writer, output)?;
        if let Some(key) = key {
            writer.write_all(key.as_bytes()).map_err(broken)?;
        }
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
