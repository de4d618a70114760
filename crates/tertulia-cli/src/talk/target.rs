//! Which session a talk is in: found first, without touching anything, then opened.

use std::path::Path;
use std::sync::Arc;

use tertulia::conversation::record::Copies;
use tertulia::entry::Relation;
use tertulia::id::Seq;
use tertulia::query::{Filter, Page, Row};
use tertulia::store::{Fork, Start};

use super::copy::FileCopy;
use super::{Sort, TalkArgs};
use crate::commands::{import, rename};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::ago;
use crate::open::{House, has_entry};
use crate::ui::{Ui, fit, harmless};

/// How many sessions are looked through at a time.
const PAGE: usize = 100;

/// What the flags name: a session, or none, and the prompt where a flag's value was meant as one.
pub struct Found {
    pub row: Option<Row>,
    pub prompt: Option<String>,
    /// Where a copy of it is kept.
    pub copy: Option<Arc<dyn Copies>>,
}

/// Which session the talk is in.
pub enum Target {
    New(Start),
    Resume(Box<Row>, Option<Arc<dyn Copies>>),
}

/// Finds the session, and the prompt where the flag's value was meant as one.
pub fn find(args: &TalkArgs, sort: Sort<'_>, house: &House, ui: &mut Ui) -> CommandResult<Found> {
    let ours = ours(sort, house);
    if let Some(file) = &args.session_file {
        return from_file(args, file, house, ui);
    }
    let mut prompt = None;
    let row = if args.resume == Some(None) && args.is_full_screen(ui) {
        // Which one is chosen on the screen.
        None
    } else if args.go_on {
        let row = newest(sort, house)?.ok_or_else(|| {
            CommandError::new(
                ErrorKind::NotFound,
                match sort.team {
                    None => format!(
                        "there is no earlier talk in this project ({})",
                        house.settings.project
                    ),
                    Some(team) => format!(
                        "there is no earlier talk of the team '{team}' in this project ({}) in {}",
                        house.settings.project, house.settings.store
                    ),
                },
            )
            .hint("leave -c out to begin one, or name one of another project: tertulia list --all")
        })?;
        Some(row)
    } else if let Some(reference) = args.session.as_deref().or(args
        .resume
        .as_ref()
        .map(|value| value.as_deref().unwrap_or("@")))
    {
        let found = match house.look_up(reference, &ours)? {
            None if reference == "@" => newest(sort, house)?,
            found => found,
        };
        match found {
            Some(row) => Some(row),
            None if args.session.is_none() && reference.contains(' ') => {
                ui.note(&format!("no session is called '{reference}': it is taken as the prompt for the newest one"));
                prompt = Some(reference.to_owned());
                Some(house.find_in("@", &ours)?)
            }
            None => {
                let error = house.not_found(reference);
                return Err(match sort.team {
                    Some(team) => error.hint(format!("looked for by the team '{team}'")),
                    None => error,
                });
            }
        }
    } else {
        None
    };
    Ok(Found {
        row,
        prompt,
        copy: None,
    })
}

/// The talks of this sort in this project.
fn ours(sort: Sort<'_>, house: &House) -> Filter {
    Filter {
        kind: Some(sort.kind),
        team: sort.team.map(str::to_owned),
        ..house.here()
    }
}

/// The newest talk of this sort in this project. Of a team, else the newest that belongs to no project: one
/// that was imported.
pub fn newest(sort: Sort<'_>, house: &House) -> CommandResult<Option<Row>> {
    let store = house.sessions.store();
    let here = ours(sort, house);
    let newest = house.wait(store.list(&here, &Page::first(1)))?;
    if !newest.rows.is_empty() || sort.team.is_none() {
        return Ok(newest.rows.into_iter().next());
    }
    let anywhere = Filter {
        project: None,
        ..here
    };
    let mut page = Page::first(PAGE);
    loop {
        let listing = house.wait(store.list(&anywhere, &page))?;
        let mut rows = listing.rows.into_iter();
        if let Some(row) = rows.find(|row| row.summary.project.is_none()) {
            return Ok(Some(row));
        }
        if listing.next.is_none() {
            return Ok(None);
        }
        page.cursor = listing.next;
    }
}

/// Mentions the newest of these talks to who begins anew: they should not have to know the flag by heart.
pub fn mention_newest(sort: Sort<'_>, house: &House, goes_on: &str, ui: &mut Ui) {
    // Who begins anew is not held up by what cannot be listed.
    if let Ok(Some(row)) = newest(sort, house) {
        let when = ago(row.summary.updated_at, house.sessions.stamp().now());
        let title = fit(row.summary.title_or_untitled(), 50);
        ui.note(&harmless(&format!(
            "There is an earlier talk here, \"{title}\" ({when}): {goes_on} goes on with it."
        )));
    }
}

/// Takes in the session of a file, and writes it back there from then on.
fn from_file(args: &TalkArgs, file: &Path, house: &House, ui: &mut Ui) -> CommandResult<Found> {
    if args.resume.as_ref().is_some_and(Option::is_some) {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "--resume names one session and --session-file another",
        )
        .hint("leave one of the two out"));
    }
    let taken = import::one(house, file)?;
    ui.note(&taken.words);
    let copy = FileCopy::of(file, taken.form)?;
    if copy.is_none() {
        ui.note(&format!(
            "{} is only read: its form is not one that is written",
            file.display()
        ));
    }
    Ok(Found {
        row: Some(house.wait(house.sessions.row(taken.session))?),
        prompt: None,
        copy: copy.map(|copy| Arc::new(copy) as Arc<dyn Copies>),
    })
}

/// Opens what was found, as the flags say, or begins anew.
pub fn open(
    args: &TalkArgs,
    sort: Sort<'_>,
    row: Option<Row>,
    copy: Option<Arc<dyn Copies>>,
    house: &House,
    ui: &mut Ui,
) -> CommandResult<Target> {
    let title = args.name.as_deref().map(rename::title).transpose()?;
    let Some(row) = row else {
        let start = Start {
            id: args
                .session_id
                .unwrap_or_else(|| house.sessions.stamp().session_id()),
            kind: sort.kind,
            title,
            team: sort.team.map(str::to_owned),
            project: Some(house.settings.project.id.clone()),
            project_ids: house.settings.project.identities(),
            cwd: Some(house.settings.cwd.display().to_string()),
        };
        if args.session_id.is_some() && house.wait(house.sessions.row(start.id)).is_ok() {
            return Err(tertulia::store::StoreError::Exists(start.id).into());
        }
        if !args.ephemeral {
            house.remember_project();
        }
        return Ok(Target::New(start));
    };
    if row.summary.trashed_at.is_some() {
        ui.warn(&format!(
            "session {} is in the trash; `tertulia restore {0}` takes it out",
            row.summary.id.short()
        ));
    }
    let row = if args.fork {
        forked(house, &row, title, ui)?
    } else {
        retitled(house, row, title)?
    };
    Ok(Target::Resume(Box::new(row), copy))
}

fn forked(house: &House, row: &Row, title: Option<String>, ui: &mut Ui) -> CommandResult<Row> {
    let forked = fork(house, row, None, title)?;
    if forked.recovered {
        ui.note("an answer was cut off; what had arrived is kept as an interrupted message");
    }
    ui.note(&format!(
        "Going on in {}, a fork of {}",
        forked.row.summary.id.short(),
        row.summary.id.short()
    ));
    Ok(forked.row)
}

/// A fork that was made.
#[derive(Clone, Debug)]
pub struct Forked {
    pub row: Row,
    /// Whether an answer that was cut off was kept first.
    pub recovered: bool,
}

/// Makes a fork that shares a session up to an entry, or all of it.
pub fn fork(
    house: &House,
    row: &Row,
    at: Option<Seq>,
    title: Option<String>,
) -> CommandResult<Forked> {
    let mut row = row.clone();
    let mut recovered = false;
    // A half-written answer belongs to what is shared.
    if !row.open
        && at.is_none_or(|at| at > row.summary.head.seq)
        && let Some(entry) = house.wait(house.sessions.recover(&row.summary))?
    {
        row.summary.apply(&entry);
        recovered = true;
    }
    if let Some(at) = at {
        has_entry(&row, at)?;
    }
    let fork = Fork {
        id: house.sessions.stamp().session_id(),
        at,
        title,
        relation: Relation::Fork,
    };
    let (summary, _) = house.wait(house.sessions.fork(&row.summary, &fork, Vec::new()))?;
    let row = Row {
        summary,
        open: false,
    };
    Ok(Forked { row, recovered })
}

fn retitled(house: &House, mut row: Row, title: Option<String>) -> CommandResult<Row> {
    if let Some(title) = title {
        let operation = house.sessions.stamp().entry_id();
        row.summary = house.wait(house.sessions.rename(row.summary.id, &title, operation))?;
    }
    Ok(row)
}
