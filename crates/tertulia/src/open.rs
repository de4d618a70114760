//! Opens the workspace, and finds the session that a reference names.

mod near;
mod seen;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tertulia_core::clock::Clock;
use tertulia_core::entry::Kind;
use tertulia_core::id::{Place, Reference, Seq};
use tertulia_core::query::{Filter, Page, Row, Trash};
use tertulia_core::redact;
use tertulia_core::session::{Log, Status};
use tertulia_store::files::FilesStore;
#[cfg(feature = "postgres")]
use tertulia_store::postgres::{Limits, PostgresOptions, PostgresStore};
use tertulia_store::sqlite::SqliteStore;
use tertulia_store::{
    LateStore, Patience, Redaction, Resolved, Sessions, Store, StoreError, StoreResult, Waits,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::args::{FilterArgs, GlobalArgs};
use crate::author;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::{ago, moment};
use crate::runtime;
use crate::seal::UserKeys;
#[cfg(feature = "postgres")]
use crate::settings::postgres_password;
use crate::settings::{Faults, Settings, StoreUrl};
use crate::ui::{self, Ui, fit};
use tertulia_engine::text::hint::Invocation;

/// Settings and sessions, which almost every command needs.
#[derive(Clone)]
pub struct Workspace {
    pub settings: Settings,
    pub sessions: Sessions,
    /// Warns on stderr that a command waits for another program; `None` where another component
    /// reports it.
    pub aside: Option<ui::Aside>,
}

/// Returns the system clock and id source.
pub fn clock() -> Clock {
    Clock::new(jiff::Timestamp::now, || new_uuid(SystemTime::now()))
}

/// Returns a new UUID. Version 7 holds no time before 1970, so an earlier clock counts as 1970.
fn new_uuid(now: SystemTime) -> Uuid {
    match now.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(_) => Uuid::now_v7(),
        Err(_) => Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)),
    }
}

/// Opens a store by its URL. `patience` says how its writers wait for other programs.
pub fn store(
    settings: &Settings,
    url: &StoreUrl,
    patience: &Patience,
) -> StoreResult<Arc<dyn Store>> {
    Ok(match url {
        StoreUrl::Sqlite(path) => Arc::new(SqliteStore::open_with(path, patience)?),
        StoreUrl::Files(path) => Arc::new(FilesStore::open_with(path, patience)?),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => {
            let address = postgres_password::with_password(address, settings)?;
            Arc::new(PostgresStore::open(PostgresOptions {
                address,
                limits: Limits::default(),
                patience: patience.clone(),
                derived: Some(settings.data.clone()),
                new_id: new_uuid(SystemTime::now()),
            })?)
        }
        StoreUrl::Memory => Arc::new(SqliteStore::in_memory()?),
    })
}

/// Opens a store on a thread of its own, so that a program that keeps it locked can be named
/// meanwhile.
fn store_telling(
    settings: &Settings,
    patience: &Patience,
    aside: Option<ui::Aside>,
) -> StoreResult<Arc<dyn Store>> {
    let (answer, opened) = oneshot::channel();
    let (settings, theirs) = (settings.clone(), patience.clone());
    let open = move || {
        let _ = answer.send(store(&settings, &settings.store, &theirs));
    };
    let thread = std::thread::Builder::new().name("tertulia-open".to_owned());
    thread.spawn(open).map_err(unusable)?;
    let opened = runtime::wait_for_store(telling(patience.waits(), aside, opened));
    opened.unwrap_or_else(|error| Err(unusable(error)))
}

/// Waits for work on a store, and names another program that delays it.
async fn telling<T>(
    mut waits: Waits,
    aside: Option<ui::Aside>,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => done,
        held = waits.next() => {
            if let Some(aside) = aside {
                aside.warn(&held.waiting_text());
            }
            work.await
        }
    }
}

fn unusable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    StoreError::Failed {
        what: "the store cannot be used".to_owned(),
        source: error.into(),
    }
}

/// Returns how writers wait, and how they identify themselves to programs that wait for them.
fn patience(settings: &Settings) -> Patience {
    Patience::new(
        settings.lock_timeout,
        concat!("tertulia ", env!("CARGO_PKG_VERSION")),
        author::host().as_deref(),
        jiff::Timestamp::now,
    )
}

/// Resolves the settings and shows their warnings. Rejects invalid values.
pub fn settings(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Settings> {
    let settings = told(Settings::resolve(global, ui, Faults::Refuse)?, ui);
    redaction_rules(&settings)?;
    Ok(settings)
}

/// Resolves the settings for a command that only reads: invalid values are ignored with a warning.
pub fn reading_settings(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Settings> {
    Ok(told(Settings::resolve(global, ui, Faults::Ignore)?, ui))
}

/// Resolves the settings without showing warnings.
pub fn quiet_settings(global: &GlobalArgs, ui: &Ui) -> CommandResult<Settings> {
    Settings::resolve(global, ui, Faults::Ignore)
}

fn told(settings: Settings, ui: &mut Ui) -> Settings {
    ui.invocation = Invocation::of(&settings.program);
    settings.tell(ui);
    settings
}

/// Adds the redaction rules that the settings name, if any.
pub fn redaction_rules(settings: &Settings) -> CommandResult<()> {
    match &settings.redact_rules {
        Some(rules) => extend_redaction(rules),
        None => Ok(()),
    }
}

/// Adds the user's own redaction rules.
fn extend_redaction(file: &Path) -> CommandResult<()> {
    let wrong = |reason: String| {
        let message = format!("{}: {reason}", file.display());
        CommandError::new(ErrorKind::Usage, message).hint(
            "`rules` of [redact] in your settings names a file of rules in the form of gitleaks",
        )
    };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    redact::extend(&text).map_err(|error| wrong(error.to_string()))
}

/// Opens the workspace.
pub fn workspace(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Workspace> {
    let settings = settings(global, ui)?;
    opened(settings, ui)
}

/// Opens the workspace for a command that only reads.
pub fn reader(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Workspace> {
    let settings = reading_settings(global, ui)?;
    opened(settings, ui)
}

fn opened(settings: Settings, ui: &mut Ui) -> CommandResult<Workspace> {
    ui.detail(&format!("store: {}", settings.store));
    let aside = ui.aside();
    let store = store_telling(&settings, &patience(&settings), aside)?;
    let sessions = handle(store, &settings);
    let mut workspace = Workspace {
        settings,
        sessions,
        aside,
    };
    workspace.meet_project();
    Ok(workspace)
}

/// Opens the workspace for a new session. If the store cannot be created or written now, each write
/// tries again, and until one succeeds nothing counts as saved.
pub fn workspace_for_new(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<Workspace> {
    let settings = settings(global, ui)?;
    ui.detail(&format!("store: {}", settings.store));
    let patience = patience(&settings);
    let aside = ui.aside();
    let opened = store_telling(&settings, &patience, aside);
    let store: Arc<dyn Store> = match opened {
        Err(
            error @ (StoreError::Full { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Locked { .. }),
        ) => {
            ui.warn(&format!(
                "not saved: {error}. The session continues in memory and is offered as a file when it ends"
            ));
            let (theirs, again) = (settings.clone(), patience.clone());
            let open = move || store(&theirs, &theirs.store, &again);
            Arc::new(LateStore::new(open, &patience))
        }
        opened => opened?,
    };
    let sessions = handle(store, &settings);
    let mut workspace = Workspace {
        settings,
        sessions,
        aside,
    };
    workspace.meet_project();
    Ok(workspace)
}

/// Opens the sessions of a store.
pub fn sessions(settings: &Settings, url: &StoreUrl) -> CommandResult<Sessions> {
    let store = store(settings, url, &patience(settings))?;
    Ok(handle(store, settings))
}

fn handle(store: Arc<dyn Store>, settings: &Settings) -> Sessions {
    let author = author::author(settings.author.as_deref());
    Sessions::new(store, clock(), redaction(settings))
        .written_by(author)
        .with_keys(Arc::new(UserKeys::new(settings)))
}

fn redaction(settings: &Settings) -> Redaction {
    match settings.redact {
        true => Redaction::On,
        false => Redaction::Off,
    }
}

impl Workspace {
    /// Blocks until work on a store is done. Must not be called from asynchronous code.
    pub fn wait<T>(&self, work: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        let waits = self.sessions.store().patience().waits();
        runtime::wait_for_store(telling(waits, self.aside, work))
    }

    /// Returns the filter for this project's sessions.
    pub fn here(&self) -> Filter {
        Filter {
            project: Some(self.settings.project.ids.clone()),
            ..Filter::default()
        }
    }

    /// Returns the filter that the flags describe.
    pub fn filter(&self, args: &FilterArgs) -> CommandResult<Filter> {
        let now = self.sessions.clock().now();
        Ok(Filter {
            project: (!args.all).then(|| self.settings.project.ids.clone()),
            worktree: args
                .worktree
                .then(|| Box::new(self.settings.project.worktree(&self.settings.folders))),
            kind: args.kind.map(Kind::from),
            team: args.team.clone(),
            author: args.author.clone(),
            tag: args.tag.clone(),
            auto_tags: self.settings.auto_tags,
            since: args
                .since
                .as_deref()
                .map(|text| moment(text, now))
                .transpose()?,
            until: args
                .until
                .as_deref()
                .map(|text| moment(text, now))
                .transpose()?,
            trash: if args.trash {
                Trash::Only
            } else {
                Trash::Without
            },
            ..Filter::default()
        })
    }

    /// Appends an interrupted answer to a log, unless another program has the session open.
    pub fn with_unfinished(&self, row: &Row, log: &mut Log) -> CommandResult<()> {
        if !row.open {
            log.entries
                .extend(self.wait(self.sessions.unfinished(&row.meta))?);
        }
        Ok(())
    }

    /// Returns a row with the words of a sealed session, and asks for its key if need be.
    pub fn unlocked(&self, row: Row) -> CommandResult<Row> {
        if row.meta.seal.is_none() {
            return Ok(row);
        }
        let meta = self.wait(self.sessions.unlocked(row.meta))?;
        Ok(Row { meta, ..row })
    }

    /// Returns where a fork begins: at `at`, else at the end, or before the turn that another
    /// program is running.
    pub fn fork_at(&self, row: &Row, at: Option<Seq>) -> CommandResult<Option<Seq>> {
        if at.is_some() || !row.open {
            return Ok(at);
        }
        Ok(self.wait(self.sessions.turn_border(&row.meta))?)
    }

    /// Counts an interrupted answer as a message of the row, unless another program has the session
    /// open.
    pub fn as_read(&self, mut row: Row) -> CommandResult<Row> {
        if !row.open
            && row.meta.status == Status::Active
            && self.wait(self.sessions.unfinished(&row.meta))?.is_some()
        {
            row.meta.messages += 1;
        }
        Ok(row)
    }

    /// Returns the session that a reference names. The error says where it was looked for, and
    /// suggests similar ones.
    pub fn find(&self, text: &str) -> CommandResult<Row> {
        self.find_in(text, &self.here())
    }

    /// Same as `find`, with the filter within which `@` references count back.
    pub fn find_in(&self, text: &str, scope: &Filter) -> CommandResult<Row> {
        match self.look_up(text, scope)? {
            Some(row) => Ok(row),
            None => Err(self.not_found(text, scope)),
        }
    }

    /// Returns the session that a reference names, if there is one.
    pub fn look_up(&self, text: &str, scope: &Filter) -> CommandResult<Option<Row>> {
        let reference: Reference = text.parse()?;
        self.resolve(&reference, scope)
    }

    /// Returns the newest session, of the project if it has one.
    pub fn newest(&self, scope: &Filter) -> CommandResult<Option<Row>> {
        self.resolve(&Reference::Latest(0), scope)
    }

    fn resolve(&self, reference: &Reference, scope: &Filter) -> CommandResult<Option<Row>> {
        match self.wait(self.sessions.resolve(reference, scope))? {
            Resolved::One(row) => Ok(Some(*row)),
            Resolved::None => Ok(None),
            Resolved::Several(rows) => Err(self.ambiguous(&reference.to_string(), &rows)),
        }
    }

    /// Returns the session and the entry that a reference names.
    pub fn find_place(&self, text: &str) -> CommandResult<(Row, Option<Seq>)> {
        let place: Place = text.parse()?;
        if place.seq.is_some() {
            // A title may itself end in a colon and a number.
            if let Some(row) = self.look_up(text, &self.here())? {
                return Ok((row, None));
            }
        }
        let row = self.find(&place.session.to_string())?;
        if let Some(seq) = place.seq {
            has_entry(&row, seq)?;
        }
        Ok((row, place.seq))
    }

    fn ambiguous(&self, text: &str, rows: &[Row]) -> CommandError {
        let mut error = CommandError::new(
            ErrorKind::Ambiguous,
            format!("'{text}' names {} sessions", rows.len()),
        );
        for row in rows {
            error = error.hint(self.candidate(row));
        }
        error
    }

    /// Returns the error for a reference to no session, or to an entry where a session is needed.
    pub fn not_found(&self, text: &str, scope: &Filter) -> CommandError {
        if let Some(error) = self.names_an_entry(text, scope) {
            return error;
        }
        let store = &self.settings.store;
        let newest: Option<usize> = match text.parse() {
            Ok(Reference::Latest(back)) => Some(back),
            _ => None,
        };
        let words = match (newest, scope.trash) {
            (Some(0), Trash::Only) => format!("the trash of {store} is empty"),
            // An omitted reference also means the newest session.
            (Some(0), _) => format!("there are no sessions in {store}"),
            _ => format!("there is no session '{text}' in {store}"),
        };
        let mut error = CommandError::new(ErrorKind::NotFound, words);
        if newest == Some(0) {
            return error;
        }
        let nearest = self.nearest(text);
        if nearest.is_empty() {
            return error.hint("`tertulia list --all` lists the sessions of all projects");
        }
        for row in &nearest {
            error = error.hint(format!("did you mean {}", self.candidate(row)));
        }
        error
    }

    /// Returns the error for `REF:12` where a whole session is needed.
    fn names_an_entry(&self, text: &str, scope: &Filter) -> Option<CommandError> {
        let place: Place = text.parse().ok()?;
        let (seq, reference) = (place.seq?, place.session.to_string());
        let row = self.look_up(&reference, scope).ok()??;
        let words = format!("'{text}' is entry {seq} of a session; a whole session is needed here");
        Some(CommandError::new(ErrorKind::Usage, words).hint(format!(
            "name the session: {}; `tertulia fork {1}:{seq}` makes one that ends at entry {seq}",
            reference,
            row.meta.id.short()
        )))
    }

    fn candidate(&self, row: &Row) -> String {
        let now = self.sessions.clock().now();
        let meta = &row.meta;
        format!(
            "{}  {}  ({})",
            meta.id.short(),
            fit(meta.title_or_untitled(), 50),
            ago(meta.updated_at, now)
        )
    }

    /// Returns the sessions whose titles or ids are most similar to the text, among the newest.
    fn nearest(&self, text: &str) -> Vec<Row> {
        let listing = self.wait(
            self.sessions
                .store()
                .list(&Filter::default(), &Page::first(200)),
        );
        let rows = listing.map(|listing| listing.rows).unwrap_or_default();
        let wanted = text.trim().to_lowercase();
        let mut near: Vec<(f64, Row)> = rows
            .into_iter()
            .map(|row| {
                let title = row.meta.title.as_deref().unwrap_or_default();
                let like = near::likeness(&wanted, &title.to_lowercase(), &row.meta.id.short());
                (like, row)
            })
            .filter(|(like, _)| *like >= near::NEAR)
            .collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        near.into_iter().map(|(_, row)| row).take(3).collect()
    }
}

/// Returns an error if the session does not have the entry.
pub fn has_entry(row: &Row, seq: Seq) -> CommandResult<()> {
    let last = row.meta.head.seq;
    if seq > Seq::START && seq <= last {
        return Ok(());
    }
    let words = format!("session {} has no entry {seq}", row.meta.id.short());
    Err(CommandError::new(ErrorKind::NotFound, words).hint(format!("it has entries 1 to {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_still_gives_ids() {
        let before = SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1);
        let (one, other) = (new_uuid(before), new_uuid(before));
        assert_ne!(one, other);
        assert_eq!(one.get_version_num(), 7);
    }
}
