//! Finds the session that the flags name, and opens it in a second step.

use std::path::Path;
use std::sync::Arc;

use tertulia_core::entry::{Kind, Relation};
use tertulia_core::id::Seq;
use tertulia_core::query::{Filter, Page, Row};
use tertulia_engine::log_writer::SessionMirror;
use tertulia_engine::setup::Target;
use tertulia_store::{Fork, Start, StoreError};

use super::args::{Sort, TalkArgs};
use super::copy::FileCopy;
use crate::commands::{import, rename};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::ago;
use crate::open::{Workspace, has_entry};
use crate::participants::{Existing, OpenOptions};
use crate::settings::{StoreUrl, quoted};
use crate::ui::{Ui, fit, harmless};

/// Page size when listing sessions.
const PAGE: usize = 100;

/// What the flags name: a session or none, and a prompt where a flag's value was one.
pub struct Found {
    pub row: Option<Row>,
    pub prompt: Option<String>,
    /// Mirror of the session in a file.
    pub copy: Option<Arc<dyn SessionMirror>>,
}

/// Finds the session that the flags name, and the prompt where a flag's value was one: if there is no
/// other.
pub fn find(
    args: &TalkArgs,
    sort: Sort<'_>,
    has_prompt: bool,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Found> {
    let found = find_stored(args, sort, has_prompt, workspace, ui)?;
    let row = found.row.map(|row| workspace.unlocked(row)).transpose()?;
    if row.as_ref().is_some_and(|row| row.meta.seal.is_some()) && found.copy.is_some() {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "a sealed session is not written to a session file",
        )
        .hint("resume it with --resume"));
    }
    Ok(Found { row, ..found })
}

fn find_stored(
    args: &TalkArgs,
    sort: Sort<'_>,
    has_prompt: bool,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Found> {
    let value = args.resume.as_ref().map(Option::as_deref);
    if let Some(file) = &args.session_file {
        return Ok(Found {
            prompt: value.flatten().map(str::to_owned),
            ..from_file(file, workspace, ui)?
        });
    }
    let found = |row: Option<Row>, prompt: Option<String>| Found {
        row,
        prompt,
        copy: None,
    };
    if let Some(reference) = &args.session {
        let prompt = value.flatten().map(str::to_owned);
        return Ok(found(Some(named(reference, sort, workspace)?), prompt));
    }
    if args.go_on {
        let row = newest(sort, workspace)?.ok_or_else(|| nothing_to_continue(sort, workspace))?;
        return Ok(found(Some(row), None));
    }
    match value {
        None => Ok(found(None, None)),
        // The user picks the session in the TUI.
        Some(None) if args.is_full_screen(ui) => Ok(found(None, None)),
        Some(None) => Ok(found(Some(any_newest(sort, workspace)?), None)),
        Some(Some(words))
            if words.contains(' ')
                && !has_prompt
                && workspace.look_up(words, &workspace.here())?.is_none() =>
        {
            let row = any_newest(sort, workspace)?;
            ui.note(&harmless(&format!(
                "no session is called '{words}': taken as the prompt for the newest one, \"{}\"",
                fit(row.meta.title_or_untitled(), 50)
            )));
            Ok(found(Some(row), Some(words.to_owned())))
        }
        Some(Some(reference)) => Ok(found(Some(named(reference, sort, workspace)?), None)),
    }
}

/// Rejects flags that name two sessions. Beside a flag that names one, the value of `--resume` can
/// only be the prompt.
pub fn check_flags(args: &TalkArgs) -> CommandResult<()> {
    let value = args.resume.as_ref().and_then(Option::as_ref);
    let other = match (&args.session, &args.session_file) {
        (Some(_), _) => "--session",
        (None, Some(_)) => "--session-file",
        (None, None) => return Ok(()),
    };
    match value {
        Some(value) if !value.contains(' ') => Err(CommandError::new(
            ErrorKind::Usage,
            format!("--resume names one session and {other} another"),
        )
        .hint("omit one of the two")),
        _ => Ok(()),
    }
}

/// Returns the session that a reference names, if this command can open its kind.
fn named(reference: &str, sort: Sort<'_>, workspace: &Workspace) -> CommandResult<Row> {
    let here = workspace.here();
    let Some(row) = workspace.look_up(reference, &here)? else {
        let error = workspace.not_found(reference, &here);
        return Err(match sort.team {
            Some(team) if error.kind() == ErrorKind::NotFound => error.hint(format!(
                "`tertulia list --all --team {}` lists the sessions of the team '{team}'",
                quoted(team)
            )),
            _ => error,
        });
    };
    if sort.any_kind || row.meta.kind == sort.kind {
        return Ok(row);
    }
    Err(other_kind(&row, sort.kind))
}

/// Returns the error for a session of another kind than the command's.
pub fn other_kind(row: &Row, wanted: Kind) -> CommandError {
    let (short, kind) = (row.meta.id.short(), row.meta.kind.name());
    let team = row.meta.team.as_ref();
    let team = team.map(|team| format!(" of the team '{team}'"));
    let words = format!(
        "session {short} is a {kind} session{}, not a {} session",
        team.unwrap_or_default(),
        wanted.name()
    );
    CommandError::new(ErrorKind::Usage, words).hint(format!(
        "`tertulia --resume {short}` opens it as what it is"
    ))
}

/// Returns the filter for sessions of this kind and team in this project.
fn ours(sort: Sort<'_>, workspace: &Workspace) -> Filter {
    Filter {
        kind: Some(sort.kind),
        team: sort.team.map(str::to_owned),
        ..workspace.here()
    }
}

/// Returns the newest session for a bare `--resume`: of this kind and team, or of any kind if the
/// command named none; in this project if it has one.
pub fn any_newest(sort: Sort<'_>, workspace: &Workspace) -> CommandResult<Row> {
    let mut scope = ours(sort, workspace);
    if sort.any_kind {
        scope.kind = None;
    }
    workspace.newest(&scope)?.ok_or_else(|| {
        let store = &workspace.settings.store;
        let words = match sort.team {
            Some(team) => format!("there is no session of the team '{team}' to resume in {store}"),
            None if sort.any_kind => format!("there is no session to resume in {store}"),
            None => format!(
                "there is no {} session to resume in {store}",
                sort.kind.name()
            ),
        };
        CommandError::new(ErrorKind::NotFound, words).hint("omit --resume to start one")
    })
}

fn nothing_to_continue(sort: Sort<'_>, workspace: &Workspace) -> CommandError {
    let (project, store) = (&workspace.settings.project, &workspace.settings.store);
    let words = match sort.team {
        None => format!(
            "there is no earlier {} session in this project ({project})",
            sort.kind.name()
        ),
        Some(team) => format!(
            "there is no earlier session of the team '{team}' in this project ({project}) in {store}"
        ),
    };
    CommandError::new(ErrorKind::NotFound, words)
        .hint("omit -c to start one; `tertulia list --all` lists the sessions of all projects")
}

/// Returns the newest session of this kind and team in this project. For a team without one,
/// returns the newest session that belongs to no project, such as an imported one.
pub fn newest(sort: Sort<'_>, workspace: &Workspace) -> CommandResult<Option<Row>> {
    let store = workspace.sessions.store();
    let here = ours(sort, workspace);
    let newest = workspace.wait(store.list(&here, &Page::first(1)))?;
    if !newest.rows.is_empty() || sort.team.is_none() {
        return Ok(newest.rows.into_iter().next());
    }
    let anywhere = Filter {
        project: None,
        ..here
    };
    let mut page = Page::first(PAGE);
    loop {
        let listing = workspace.wait(store.list(&anywhere, &page))?;
        let mut rows = listing.rows.into_iter();
        if let Some(row) = rows.find(|row| row.meta.project.is_none()) {
            return Ok(Some(row));
        }
        if listing.next.is_none() {
            return Ok(None);
        }
        page.cursor = listing.next;
    }
}

/// Mentions the newest earlier session when a new one starts, with the command that resumes it.
pub fn mention_newest(sort: Sort<'_>, workspace: &Workspace, goes_on: &str, ui: &mut Ui) {
    // A list that cannot be read must not keep a new session from starting.
    if let Ok(Some(row)) = newest(sort, workspace) {
        let when = ago(row.meta.updated_at, workspace.sessions.clock().now());
        let title = fit(row.meta.title_or_untitled(), 50);
        ui.note(&harmless(&format!(
            "There is an earlier session here, \"{title}\" ({when}): `{goes_on}` resumes it."
        )));
    }
}

/// Imports the session of a file, which mirrors the session from then on.
fn from_file(file: &Path, workspace: &Workspace, ui: &mut Ui) -> CommandResult<Found> {
    // Locked before it is read: what another program adds meanwhile must not be passed over.
    let copy = FileCopy::lock(file)?;
    let taken = import::one(workspace, file)?;
    ui.note(&taken.words);
    match taken.form {
        Some(form) => copy.begin(form, taken.upto),
        None => ui.note(&format!(
            "{} is only read: tertulia does not write its format",
            file.display()
        )),
    }
    Ok(Found {
        row: Some(workspace.wait(workspace.sessions.row(taken.session))?),
        prompt: None,
        copy: taken.form.map(|_| Arc::new(copy) as Arc<dyn SessionMirror>),
    })
}

/// Opens the session that was found, as the options say, or describes a new one.
pub fn open(
    options: &OpenOptions,
    sort: Sort<'_>,
    existing: Existing,
    workspace: &Workspace,
    ui: &mut Ui,
) -> CommandResult<Target> {
    let title = options.title.as_deref().map(rename::title).transpose()?;
    let Some(row) = existing.row else {
        let start = Start {
            id: options
                .id
                .unwrap_or_else(|| workspace.sessions.clock().session_id()),
            kind: sort.kind,
            title,
            team: sort.team.map(str::to_owned),
            project: Some(workspace.settings.project.id.clone()),
            project_ids: workspace.settings.project.identities(),
            cwd: Some(workspace.settings.cwd.display().to_string()),
            terms: None,
        };
        if options.id.is_some() {
            match workspace.wait(workspace.sessions.row(start.id)) {
                Ok(_) => return Err(StoreError::Exists(start.id).into()),
                Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let seals = options.sealed || workspace.settings.seal.default;
        if seals && !options.ephemeral && workspace.settings.store != StoreUrl::Memory {
            workspace.wait(workspace.sessions.seal_new(start.id))?;
        }
        if !options.ephemeral {
            workspace.remember_project();
        }
        return Ok(Target::New(start));
    };
    if row.meta.trashed_at.is_some() {
        let words = format!(
            "session {} is in the trash; `tertulia restore {0}` takes it out",
            row.meta.id.short()
        );
        ui.warn(&ui.invocation.complete(&words));
    }
    let row = if options.fork {
        forked(workspace, &row, title, ui)?
    } else {
        retitled(workspace, row, title)?
    };
    Ok(Target::Resume(Box::new(row), existing.mirror))
}

fn forked(
    workspace: &Workspace,
    row: &Row,
    title: Option<String>,
    ui: &mut Ui,
) -> CommandResult<Row> {
    let forked = fork(workspace, row, None, title)?;
    if forked.recovered {
        ui.note(
            "an answer was interrupted; what had arrived of it is kept as an interrupted message",
        );
    }
    ui.note(&format!(
        "Continuing in {}, a fork of {}",
        forked.row.meta.id.short(),
        row.meta.id.short()
    ));
    Ok(forked.row)
}

/// Result of [`fork`].
#[derive(Clone, Debug)]
pub struct Forked {
    pub row: Row,
    /// Whether an interrupted answer was saved first.
    pub recovered: bool,
}

/// Forks a session at an entry, or at its end.
pub fn fork(
    workspace: &Workspace,
    row: &Row,
    at: Option<Seq>,
    title: Option<String>,
) -> CommandResult<Forked> {
    let mut row = row.clone();
    let mut recovered = false;
    // An interrupted answer belongs to the shared part.
    if !row.open
        && at.is_none_or(|at| at > row.meta.head.seq)
        && let Some(entry) = workspace.wait(workspace.sessions.recover(&row.meta))?
    {
        row.meta.apply(&entry);
        recovered = true;
    }
    if let Some(at) = at {
        has_entry(&row, at)?;
    }
    let at = workspace.fork_at(&row, at)?;
    let fork = Fork {
        id: workspace.sessions.clock().session_id(),
        at,
        title,
        relation: Relation::Fork,
    };
    let (meta, _) = workspace.wait(workspace.sessions.fork(&row.meta, &fork, Vec::new()))?;
    let row = Row { meta, open: false };
    Ok(Forked { row, recovered })
}

fn retitled(workspace: &Workspace, mut row: Row, title: Option<String>) -> CommandResult<Row> {
    if let Some(title) = title {
        let operation = workspace.sessions.clock().entry_id();
        row.meta = workspace.wait(workspace.sessions.rename(row.meta.id, &title, operation))?;
    }
    Ok(row)
}
