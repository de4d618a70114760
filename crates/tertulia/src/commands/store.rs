mod compress;
mod du;

use std::collections::{HashMap, HashSet};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use tertulia_core::entry::{Body, Entry};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::jsonl::Imported;
use tertulia_core::query::{DamagedSession, Filter, Page, Trash};
use tertulia_core::session::Damage;
use tertulia_store::{Adopted, Progress, Sessions, StoreError};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::{self, Workspace};
use crate::settings::{StoreUrl, quoted};
use crate::show;
use crate::ui::Ui;

/// Number of sessions per page.
const PAGE: usize = 500;

/// Inspect, copy, compress or rebuild the store
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia store info\n  \
    tertulia store du\n  \
    tertulia store copy sqlite:old.db files:sessions\n  \
    tertulia store rebuild")]
pub struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Where it is, and how much is in it
    #[command(after_help = "Examples:\n  tertulia store info\n  tertulia store info --json")]
    Info,
    Du(du::DuArgs),
    Compress(compress::CompressArgs),
    /// Copy all sessions from one store to another
    ///
    /// What is there already is not copied again, so that an interrupted copy can be run once more.
    #[command(after_help = "Examples:\n  \
        tertulia store copy sqlite:old.db files:sessions\n  \
        tertulia store copy files:sessions sqlite:$HOME/new.db --json")]
    Copy {
        /// The store to copy from: sqlite:FILE, files:DIR or postgres://HOST/DATABASE
        #[arg(value_name = "FROM")]
        from: String,
        /// The store to copy to; made if there is none
        #[arg(value_name = "TO")]
        to: String,
    },
    /// Rebuild list rows, search index and usage from the logs
    #[command(after_help = "Examples:\n  tertulia store rebuild")]
    Rebuild,
}

pub fn run(args: &StoreArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    match &args.command {
        StoreCommand::Info => info(global, ui),
        StoreCommand::Du(args) => du::run(args, global, ui),
        StoreCommand::Compress(args) => compress::run(args, global, ui),
        StoreCommand::Copy { from, to } => copy(from, to, global, ui),
        StoreCommand::Rebuild => rebuild(global, ui),
    }
}

fn info(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::reader(global, ui)?;
    let info = workspace.wait(workspace.sessions.store().info())?;
    if ui.json {
        ui.document(&json!(info));
        return Ok(ExitCode::SUCCESS);
    }
    ui.line(&workspace.settings.store.to_string());
    ui.line(&format!("format       {}", info.format));
    ui.line(&format!(
        "sessions     {} ({} in the trash)",
        info.sessions, info.trashed
    ));
    ui.line(&format!("entries      {}", info.entries));
    ui.line(&format!("on disk      {}", show::bytes(info.bytes)));
    ui.line(&format!("search index {}", show::bytes(info.index_bytes)));
    if let Some(server) = &info.server {
        let latency = info.latency_ms.unwrap_or_default();
        ui.line(&format!("server       {server} ({latency:.1} ms away)"));
    }
    Ok(ExitCode::SUCCESS)
}

fn rebuild(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let rebuilt = workspace.wait(workspace.sessions.store().rebuild(&ui.progress()))?;
    if let Err(error) = super::stats::rebuild_ledger(&workspace, &ui.progress()) {
        ui.warn(&format!("the ledger of usage is not rebuilt: {error}"));
    }
    if ui.json {
        ui.document(&json!(rebuilt));
    } else {
        ui.note(&format!(
            "Rebuilt {} list rows and the search index of {} entries, and counted usage anew.",
            rebuilt.sessions, rebuilt.entries
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn copy(from: &str, to: &str, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let settings = open::settings(global, ui)?;
    let from_url = StoreUrl::parse(from, &settings.cwd)?;
    let to_url = StoreUrl::parse(to, &settings.cwd)?;
    if from_url == to_url {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "both names are the same store",
        ));
    }
    if let StoreUrl::Sqlite(path) | StoreUrl::Files(path) = &from_url
        && !path.exists()
    {
        return Err(CommandError::new(
            ErrorKind::NotFound,
            format!("there is no store at {}", path.display()),
        ));
    }
    let source = Workspace {
        sessions: open::sessions(&settings, &from_url)?,
        settings: settings.clone(),
        aside: ui.aside(),
    };
    let target = open::sessions(&settings, &to_url)?;
    let (rows, damaged) = outline(&source)?;
    let is_row = |damaged: &DamagedSession| rows.iter().any(|row| damaged.id == Some(row.id));
    // Nothing of these can be read, so they are not copied.
    let unreadable: Vec<DamagedSession> = damaged.into_iter().filter(|it| !is_row(it)).collect();
    let outline = parents_first(rows);
    let mut counts = copy_all(&source, &target, &outline, &ui.progress(), ui)?;
    for session in &unreadable {
        let name = session
            .id
            .map_or("a session".to_owned(), |id| format!("session {id}"));
        ui.warn(&format!("{name} was not copied: {}", session.reason));
    }
    counts.sessions += unreadable.len();
    counts.damaged += unreadable.len();
    // Ignore errors: the next search indexes the rest and reports failures.
    let _ = source.wait(target.store().index(&ui.progress()));
    if ui.json {
        ui.document(&json!({
            "sessions": counts.sessions, "copied": counts.copied, "entries": counts.entries,
            "damaged": counts.damaged, "failed": counts.failed,
        }));
    } else {
        let touched = counts.copied + counts.failed.len() + counts.damaged;
        let others = match counts.sessions.saturating_sub(touched) {
            0 => String::new(),
            count => format!("; {count} already there"),
        };
        ui.note(&format!(
            "Copied {} of {}, {}{others}.",
            counts.copied,
            show::count(counts.sessions as u64, "session"),
            show::count(counts.entries as u64, "entry")
        ));
    }
    counts.verdict(&from_url)
}

#[derive(Default)]
struct Counts {
    sessions: usize,
    copied: usize,
    entries: usize,
    damaged: usize,
    /// Sessions not copied for reasons other than damage.
    failed: Vec<SessionId>,
}

impl Counts {
    /// Fails if a session was not copied, with a hint at the command that explains or repairs it.
    fn verdict(&self, from: &StoreUrl) -> CommandResult<ExitCode> {
        let from = quoted(&from.to_string());
        let (failed, damaged) = (self.failed.len() as u64, self.damaged as u64);
        let (message, hint) = match (failed, damaged) {
            (0, 0) => return Ok(ExitCode::SUCCESS),
            (0, _) => (
                format!(
                    "not copied because of damage: {}",
                    show::count(damaged, "session")
                ),
                format!("`tertulia doctor --repair --store {from}` salvages what is readable"),
            ),
            (_, _) => (
                format!("not copied: {}", show::count(failed, "session")),
                format!("`tertulia doctor --store {from}` checks them"),
            ),
        };
        Err(CommandError::new(ErrorKind::Invalid, message).hint(hint))
    }
}

fn copy_all(
    source: &Workspace,
    target: &Sessions,
    outline: &[Outlined],
    progress: &Progress,
    ui: &mut Ui,
) -> CommandResult<Counts> {
    let mut counts = Counts {
        sessions: outline.len(),
        ..Counts::default()
    };
    let total = outline.len() as u64;
    for (done, session) in outline.iter().enumerate() {
        progress.at("copying", done as u64, total);
        let id = session.id;
        match copy_one(source, target, id) {
            Ok(Copied::Entries(0)) => {}
            Ok(Copied::Entries(entries)) => {
                counts.copied += 1;
                counts.entries += entries;
            }
            Ok(Copied::Damaged(damage)) => {
                ui.warn(&format!(
                    "session {id} entry {}: {}",
                    damage.seq, damage.reason
                ));
                counts.damaged += 1;
            }
            // A full disk has no room for the other sessions either.
            Err(error @ StoreError::Full { .. }) => return Err(error.into()),
            // A session that cannot be copied does not prevent the others from being copied.
            Err(error) => {
                ui.warn(&format!("session {id} was not copied: {error}"));
                counts.failed.push(id);
            }
        }
    }
    progress.at("copying", total, total);
    Ok(counts)
}

/// Result of copying one session.
enum Copied {
    /// Number of entries that were new.
    Entries(usize),
    /// The session is damaged; the first damage found.
    Damaged(Damage),
}

fn copy_one(source: &Workspace, target: &Sessions, id: SessionId) -> Result<Copied, StoreError> {
    let log = source.wait(source.sessions.load_stored(id))?;
    if let Some(damage) = log.damage.into_iter().next() {
        return Ok(Copied::Damaged(damage));
    }
    let adopted = source.wait(target.adopt(&as_imported(id, log.entries)))?;
    if let Some(draft) = source.wait(source.sessions.stored().draft(id))? {
        source.wait(target.stored().keep_draft(id, &draft))?;
    }
    Ok(Copied::Entries(match adopted {
        Adopted::Created { entries, .. }
        | Adopted::Extended { entries, .. }
        | Adopted::Forked { entries, .. } => entries,
        Adopted::Known { .. } => 0,
    }))
}

fn as_imported(id: SessionId, entries: Vec<Entry>) -> Imported {
    let fork = entries.iter().rev().find_map(|entry| match &entry.body {
        Body::Forked(forked) => Some(forked.from.clone()),
        _ => None,
    });
    Imported {
        id,
        fork,
        after: Seq::START,
        parent: None,
        entries,
    }
}

/// The part of a row that determines the copy order. Full rows of many sessions would need much
/// more memory.
struct Outlined {
    id: SessionId,
    parent: Option<SessionId>,
    created_at: Timestamp,
}

/// Returns all sessions of a store, including trashed ones, and which are damaged.
fn outline(workspace: &Workspace) -> CommandResult<(Vec<Outlined>, Vec<DamagedSession>)> {
    let filter = Filter {
        trash: Trash::With,
        ..Filter::default()
    };
    let mut page = Page::first(PAGE);
    let mut outline = Vec::new();
    let mut damaged = Vec::new();
    loop {
        let listing = workspace.wait(workspace.sessions.stored().list(&filter, &page))?;
        outline.extend(listing.rows.iter().map(|row| Outlined {
            id: row.meta.id,
            parent: row.meta.parent.as_ref().map(|parent| parent.id),
            created_at: row.meta.created_at,
        }));
        for session in listing.damaged {
            if !damaged.contains(&session) {
                damaged.push(session);
            }
        }
        match listing.next {
            None => return Ok((outline, damaged)),
            next => page.cursor = next,
        }
    }
}

/// Sorts parents before their forks, so that a fork finds the prefix that it shares.
fn parents_first(mut outline: Vec<Outlined>) -> Vec<Outlined> {
    let parents: HashMap<SessionId, Option<SessionId>> = outline
        .iter()
        .map(|session| (session.id, session.parent))
        .collect();
    let depth = |id: SessionId| {
        let mut seen = HashSet::new();
        let mut at = id;
        while let Some(Some(parent)) = parents.get(&at) {
            if !seen.insert(*parent) {
                break;
            }
            at = *parent;
        }
        seen.len()
    };
    outline.sort_by_cached_key(|session| (depth(session.id), session.created_at));
    outline
}
