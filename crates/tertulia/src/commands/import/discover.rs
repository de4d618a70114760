//! Finds the histories of other programs on this machine. Only names, sizes and the beginnings of
//! files are read until the user agrees to import them.

use std::path::{Path, PathBuf};

use serde_json::json;
use tertulia_formats::importer::{IMPORTERS, Importer};

use super::ImportArgs;
use super::kind::SourceKind;
use super::sources::{self, Source};
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::show;
use crate::ui::Ui;

/// A place where a program keeps sessions.
struct History {
    program: &'static str,
    path: PathBuf,
    files: u64,
    bytes: u64,
}

/// Lists the histories and returns their paths if they shall be imported.
/// `folder` is the current one.
pub fn paths(args: &ImportArgs, folder: &Path, ui: &mut Ui) -> CommandResult<Option<Vec<PathBuf>>> {
    let home = env::path("HOME").ok_or_else(|| {
        CommandError::new(ErrorKind::Failed, "HOME is not set")
            .hint("name the folders of the histories instead of --discover")
    })?;
    let wanted = |name: &str| args.from.is_none_or(|from| from.name() == name);
    let importers = IMPORTERS.iter().filter(|importer| wanted(importer.name()));
    let found: Vec<History> = importers
        .flat_map(|importer| histories(*importer, &home, folder))
        .collect();
    let paths: Vec<PathBuf> = found.iter().map(|history| history.path.clone()).collect();
    tell(&found, ui);
    if found.is_empty() {
        return Ok(None);
    }
    if args.dry_run || args.yes || args.watch {
        return Ok(Some(paths));
    }
    if !ui.is_interactive() || ui.json {
        ui.advise("To import all of it: `tertulia import --discover --yes`");
        return Ok(None);
    }
    Ok(ui.confirm("Import all of it?").then_some(paths))
}

fn histories(importer: &'static dyn Importer, home: &Path, folder: &Path) -> Vec<History> {
    let mut places = importer.places(home, &|name| env::text(name));
    // Some programs keep a history in the folder where they run, or in the repository's.
    let mut folders = folder.ancestors();
    let repository = folders.find(|folder| folder.join(".git").exists());
    for folder in [Some(folder), repository].into_iter().flatten() {
        let own = importer.project_places(folder).into_iter();
        let own: Vec<PathBuf> = own.filter(|place| !places.contains(place)).collect();
        places.extend(own);
    }
    let exists = places.into_iter().filter(|place| place.exists());
    exists
        .filter_map(|path| {
            let sources = sources::all(std::slice::from_ref(&path)).ok()?;
            let is_its = |source: &&Source| {
                let program = source.program();
                program.is_some_and(|program| program.name() == importer.name())
            };
            let sizes: Vec<u64> = sources
                .iter()
                .filter(is_its)
                .map(|source| source.path.metadata().map_or(0, |data| data.len()))
                .collect();
            (!sizes.is_empty()).then(|| History {
                program: importer.name(),
                files: sizes.len() as u64,
                bytes: sizes.iter().sum(),
                path,
            })
        })
        .collect()
}

fn tell(found: &[History], ui: &mut Ui) {
    if ui.json {
        let found: Vec<_> = found
            .iter()
            .map(|history| {
                json!({
                    "program": history.program, "path": history.path.display().to_string(),
                    "files": history.files, "bytes": history.bytes,
                })
            })
            .collect();
        return ui.document(&json!({ "found": found }));
    }
    if found.is_empty() {
        let names = SourceKind::names().join(", ");
        return ui.note(&format!("no history found; looked for {names}"));
    }
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|history| {
            vec![
                history.program.to_owned(),
                history.path.display().to_string(),
                history.files.to_string(),
                show::bytes(history.bytes),
            ]
        })
        .collect();
    ui.table(&["PROGRAM", "PLACE", "FILES", "SIZE"], &rows);
}
