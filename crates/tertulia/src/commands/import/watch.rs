//! Follows histories of other programs: imports what is there, then what is added. It waits for
//! events of the file system, so that it costs nothing while nothing happens.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use notify::{Event, EventKind, RecursiveMode, Watcher};

use super::{ImportArgs, Waiting, import, sources};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::ui::Ui;

/// Quiet time after which changed files are read: programs write an answer in several pieces.
const QUIET: Duration = Duration::from_millis(300);
/// Longest time that changes wait while more of them come.
const LONGEST: Duration = Duration::from_secs(3);
/// Interval at which open sessions are looked at, as long as files wait for one.
const CLOSING: Duration = Duration::from_secs(1);

/// Imports `paths` and then whatever is added to them, until the process is stopped.
pub fn run(
    workspace: &Workspace,
    paths: &[PathBuf],
    args: &ImportArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    // Events name absolute paths.
    let paths: &[PathBuf] = &paths.iter().map(|path| absolute(path)).collect::<Vec<_>>();
    if let Some(missing) = paths.iter().find(|path| !path.exists()) {
        let words = format!("there is no {}", missing.display());
        return Err(CommandError::new(ErrorKind::NotFound, words)
            .hint("name a file or folder that exists; what is added to a folder is imported"));
    }
    let (sender, events) = channel();
    let mut watcher = notify::recommended_watcher(sender).map_err(|error| failed(&error))?;
    // Watching begins first, so that nothing is missed between the import and the first event.
    for path in paths {
        // Files may be replaced as a whole, so their folders are watched.
        let folder = if path.is_dir() { path } else { folder(path) };
        let watched = watcher.watch(folder, RecursiveMode::Recursive);
        watched.map_err(|error| failed(&error))?;
    }
    let mut waiting = Vec::new();
    report(import(workspace, paths, args, &mut waiting, ui), ui)?;
    ui.note("watching for new messages; stop with Ctrl-C");
    loop {
        // A program that tertulia runs writes its file before the session is closed here.
        let limit = (!waiting.is_empty()).then_some(CLOSING);
        let mut changed = next_changes(&events, paths, limit)?;
        changed.extend(closed(workspace, &mut waiting));
        // What was renamed or removed meanwhile has events of its own, or is gone.
        changed.retain(|path| path.exists());
        if !changed.is_empty() {
            waiting.retain(|waiting| !changed.contains(&waiting.path));
            let changed: Vec<PathBuf> = changed.into_iter().collect();
            report(import(workspace, &changed, args, &mut waiting, ui), ui)?;
        }
    }
}

/// Takes the files out of `waiting` whose sessions are closed by now.
fn closed(workspace: &Workspace, waiting: &mut Vec<Waiting>) -> Vec<PathBuf> {
    let store = workspace.sessions.store();
    let is_open = |waiting: &mut Waiting| {
        let holder = workspace.wait(store.holder(waiting.session));
        matches!(holder, Ok(Some(_)))
    };
    let closed = waiting.extract_if(.., |waiting| !is_open(waiting));
    closed.map(|waiting| waiting.path).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Shows the failure of one import and goes on, unless the store itself fails.
fn report(imported: CommandResult<ExitCode>, ui: &mut Ui) -> CommandResult<()> {
    match imported {
        Ok(_) => Ok(()),
        // A file may be damaged, or gone before it is read.
        Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => {
            ui.warn(&error.words());
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Waits for changes and returns the files to read: all that changed until it was quiet. Returns none
/// after `limit`.
fn next_changes(
    events: &Receiver<notify::Result<Event>>,
    paths: &[PathBuf],
    limit: Option<Duration>,
) -> CommandResult<BTreeSet<PathBuf>> {
    let mut changed = BTreeSet::new();
    let first = match limit {
        None => events.recv().map_err(|_| ended())?,
        Some(limit) => match events.recv_timeout(limit) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Ok(changed),
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
        },
    };
    collect(first, paths, &mut changed);
    let deadline = Instant::now() + LONGEST;
    while Instant::now() < deadline {
        match events.recv_timeout(QUIET) {
            Ok(event) => collect(event, paths, &mut changed),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
        }
    }
    Ok(changed)
}

/// Adds the files that an event names. If events were lost, all files are read.
fn collect(event: notify::Result<Event>, paths: &[PathBuf], changed: &mut BTreeSet<PathBuf>) {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        _ => return changed.extend(paths.iter().cloned()),
    };
    // Reading the files causes events, too.
    if !matches!(event.kind, EventKind::Create(_) | EventKind::Modify(_)) {
        return;
    }
    let is_new = matches!(event.kind, EventKind::Create(_));
    let files = event.paths.into_iter().map(of_database);
    changed.extend(files.filter(|path| {
        let is_watched = paths.iter().any(|watched| path.starts_with(watched));
        // A new folder may have got files before it was watched itself.
        let has_files = is_new && path.is_dir();
        is_watched && (has_files || (sources::is_candidate(path) && path.is_file()))
    }));
}

/// Returns the database to which a file of its pending writes belongs.
fn of_database(path: PathBuf) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str());
    let database = name.and_then(|name| name.strip_suffix("-wal"));
    match database {
        Some(database) => path.with_file_name(database),
        None => path,
    }
}

fn failed(error: &notify::Error) -> CommandError {
    let message = format!("the files cannot be watched: {error}");
    CommandError::new(ErrorKind::Failed, message).hint("import again from time to time instead")
}

fn ended() -> CommandError {
    CommandError::new(ErrorKind::Failed, "the files are no longer watched")
}
