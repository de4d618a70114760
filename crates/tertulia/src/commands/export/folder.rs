//! Exports several sessions into a folder, with an index for people. Never replaces a file that is
//! not an earlier export.

use std::collections::HashSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::tz::TimeZone;
use serde_json::{Value, json};
use tertulia_core::query::Row;
use tertulia_core::session::SessionMeta;
use tertulia_formats::exporter::{Listed, claude_code, codex};
use tertulia_formats::{html, markdown};

use super::{Exporter, Format, render, write};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment;
use crate::ui::{Ui, fit};

/// Longest part of a file name that comes from a title, in characters.
const LONGEST_TITLE: usize = 40;

/// Exports sessions, one file each. A session that cannot be exported does not keep the others from
/// it.
pub fn export(
    exporter: &Exporter<'_>,
    rows: Vec<Row>,
    folder: &Path,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let format = exporter.args.format;
    let names = names(exporter, &rows);
    check_free(exporter, &rows, &names, folder)?;
    create(folder)?;
    let (mut written, mut failed) = (Vec::new(), None);
    let mut done: Vec<(SessionMeta, &str)> = Vec::new();
    let progress = ui.progress();
    for (at, (row, name)) in rows.iter().zip(&names).enumerate() {
        progress.at("exporting", at as u64, rows.len() as u64);
        match export_one(exporter, row, &folder.join(name), ui) {
            Ok((meta, document)) => {
                written.push(document);
                done.push((meta, name));
            }
            Err(error) => match &failed {
                None => failed = Some(error),
                Some(_) => ui.warn(&error.words()),
            },
        }
    }
    progress.at("exporting", rows.len() as u64, rows.len() as u64);
    done.sort_by_key(|(meta, _)| std::cmp::Reverse(meta.updated_at));
    let listed: Vec<Listed<'_>> = done
        .iter()
        .map(|(meta, file)| Listed { meta, file })
        .collect();
    let index = index(format, &listed).filter(|_| !listed.is_empty());
    let index = match index {
        Some((name, content)) => {
            let path = folder.join(name);
            write(&path, content.as_bytes(), exporter.args.force)?;
            Some(path)
        }
        None => None,
    };
    if ui.json {
        let index = index.map(|path| path.display().to_string());
        ui.document(&json!({ "exported": written, "index": index }));
    } else if let Some(path) = index {
        ui.note(&format!("Wrote {}", path.display()));
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn export_one(
    exporter: &Exporter<'_>,
    row: &Row,
    path: &Path,
    ui: &mut Ui,
) -> CommandResult<(SessionMeta, Value)> {
    let (row, log) = exporter.load(row, ui)?;
    let rendered = exporter.render(&row, &log)?;
    create(path.parent().unwrap_or(path))?;
    write(path, rendered.content.as_bytes(), exporter.args.force)?;
    let title = fit(row.meta.title_or_untitled(), 60);
    ui.note(&format!("Wrote {} ({title})", path.display()));
    if !rendered.left_out.is_empty() {
        ui.note(&format!("  left out: {}", rendered.left_out.listed()));
    }
    if let Some(resume) = &rendered.resume {
        ui.note(&format!("  resume: {resume}"));
    }
    let document = rendered.document(&row, path);
    Ok((row.meta, document))
}

/// Returns the name of each session's file below the folder. Titles make them readable, ids unique.
fn names(exporter: &Exporter<'_>, rows: &[Row]) -> Vec<String> {
    let format = exporter.args.format;
    let mut used = HashSet::new();
    let name = |meta: &SessionMeta, id: String| {
        let day = meta.created_at.to_zoned(TimeZone::UTC);
        let day = day.strftime("%Y-%m-%d");
        let extension = format.extension();
        // A title may contain what the output must not.
        let title = match exporter.args.redact {
            true => String::new(),
            false => words_of(meta.title.as_deref().unwrap_or_default()),
        };
        format!("{day}-{title}{id}.{extension}")
    };
    rows.iter()
        .map(|row| {
            let meta = &row.meta;
            let place = render::place(format, meta, &exporter.workspace.settings.cwd);
            let short = place.map_or_else(|| name(meta, meta.id.short()), |place| place.path);
            match used.insert(short.clone()) {
                true => short,
                false => name(meta, meta.id.to_string()),
            }
        })
        .collect()
}

/// Returns the words of a title for a file name, each followed by a hyphen.
fn words_of(title: &str) -> String {
    let mut words = String::new();
    let parts = title.split(|c: char| !c.is_alphanumeric());
    for part in parts.filter(|part| !part.is_empty()) {
        if words.chars().count() + part.chars().count() >= LONGEST_TITLE {
            break;
        }
        words.push_str(&part.to_lowercase());
        words.push('-');
    }
    words
}

fn index(format: Format, listed: &[Listed<'_>]) -> Option<(&'static str, String)> {
    let zone = moment::zone();
    match format {
        Format::Html => Some(("index.html", html::index(listed, &zone))),
        Format::Md => Some(("index.md", markdown::index(listed, &zone))),
        _ => None,
    }
}

/// Fails before anything is written if a file is in the way.
fn check_free(
    exporter: &Exporter<'_>,
    rows: &[Row],
    names: &[String],
    folder: &Path,
) -> CommandResult<()> {
    let format = exporter.args.format;
    let files = rows.iter().zip(names);
    let mut targets: Vec<(PathBuf, Option<&SessionMeta>)> = files
        .map(|(row, name)| (folder.join(name), Some(&row.meta)))
        .collect();
    if let Some((name, _)) = index(format, &[]) {
        targets.push((folder.join(name), None));
    }
    for (path, meta) in targets {
        if path.symlink_metadata().is_err() {
            continue;
        }
        let words = format!("{} is there already", path.display());
        let taken = CommandError::new(ErrorKind::Failed, words);
        if !exporter.args.force {
            return Err(
                taken.hint("name another folder, or add --force to replace earlier exports with all that was written into them")
            );
        }
        let content = std::fs::read_to_string(&path).unwrap_or_default();
        if !is_export(format, meta, &content) {
            return Err(taken.hint(
                "it is not an unchanged export, so it stays: move it away, or name another folder",
            ));
        }
    }
    Ok(())
}

/// Returns true if a file is an earlier export of a session, or an earlier index.
fn is_export(format: Format, meta: Option<&SessionMeta>, content: &str) -> bool {
    let Some(meta) = meta else {
        return html::is_export(content) || markdown::is_index(content);
    };
    let id = meta.id.to_string();
    match format {
        Format::Html => html::is_export(content) && content.contains(&id),
        Format::Md => content.contains(&format!("\n- session: `{id}`\n")),
        Format::Json | Format::Snapshot | Format::Atif => {
            let document: Value = serde_json::from_str(content).unwrap_or_default();
            ["id", "sessionId", "session_id"]
                .iter()
                .any(|key| document[*key] == id.as_str())
        }
        Format::Jsonl | Format::Bundle => content.starts_with("{\"v\":") && content.contains(&id),
        Format::ClaudeCode => claude_code::is_untouched(content),
        Format::Codex => codex::is_untouched(content),
    }
}

/// Creates a folder for the owner only, with those above it.
fn create(folder: &Path) -> CommandResult<()> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|error| {
        let words = format!("the folder {} cannot be created", folder.display());
        CommandError::new(ErrorKind::Failed, words).because(error)
    })
}
