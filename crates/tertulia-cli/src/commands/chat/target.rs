//! Which session a talk is in: found first, without touching anything, then opened.

use tertulia::entry::{Kind, Relation};
use tertulia::query::{Filter, Row};
use tertulia::store::{Fork, Start};

use super::ChatArgs;
use crate::commands::rename;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::House;
use crate::ui::Ui;

/// What the flags name: a session, or none, and the prompt where a flag's value was meant as one.
pub struct Found {
    pub row: Option<Row>,
    pub prompt: Option<String>,
}

/// Which session the talk is in.
pub enum Target {
    New(Start),
    Resume(Box<Row>),
}

/// Finds the session, and the prompt where the flag's value was meant as one.
pub fn find(args: &ChatArgs, house: &House, ui: &mut Ui) -> CommandResult<Found> {
    let chats = Filter {
        kind: Some(Kind::Chat),
        ..house.here()
    };
    let mut prompt = None;
    let row = if args.go_on {
        let newest = house.wait(
            house
                .sessions
                .store()
                .list(&chats, &tertulia::query::Page::first(1)),
        )?;
        let row = newest.rows.into_iter().next().ok_or_else(|| {
            CommandError::new(
                ErrorKind::NotFound,
                format!(
                    "there is no earlier talk in this project ({})",
                    house.settings.project
                ),
            )
            .hint("leave -c out to begin one, or name one of another project: tertulia list --all")
        })?;
        Some(row)
    } else if let Some(reference) = args.session.as_deref().or(args
        .resume
        .as_ref()
        .map(|value| value.as_deref().unwrap_or("@")))
    {
        match house.look_up(reference, &chats)? {
            Some(row) => Some(row),
            None if args.session.is_none() && reference.contains(' ') => {
                ui.note(&format!("no session is called '{reference}': it is taken as the prompt for the newest one"));
                prompt = Some(reference.to_owned());
                Some(house.find_in("@", &chats)?)
            }
            None => return Err(house.not_found(reference)),
        }
    } else {
        None
    };
    Ok(Found { row, prompt })
}

/// Opens what was found, as the flags say, or begins anew.
pub fn open(
    args: &ChatArgs,
    row: Option<Row>,
    house: &House,
    ui: &mut Ui,
) -> CommandResult<Target> {
    let title = args.name.as_deref().map(rename::title).transpose()?;
    let Some(row) = row else {
        let start = Start {
            id: args
                .session_id
                .unwrap_or_else(|| house.sessions.stamp().session_id()),
            kind: Kind::Chat,
            title,
            team: None,
            project: Some(house.settings.project.clone()),
            cwd: Some(house.settings.cwd.display().to_string()),
        };
        if args.session_id.is_some() && house.wait(house.sessions.row(start.id)).is_ok() {
            return Err(tertulia::store::StoreError::Exists(start.id).into());
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
    Ok(Target::Resume(Box::new(row)))
}

fn forked(house: &House, row: &Row, title: Option<String>, ui: &mut Ui) -> CommandResult<Row> {
    let mut row = row.clone();
    // A half-written answer belongs to what is shared.
    if !row.open
        && let Some(entry) = house.wait(house.sessions.recover(&row.summary))?
    {
        row.summary.apply(&entry);
        ui.note("an answer was cut off; what had arrived is kept as an interrupted message");
    }
    let fork = Fork {
        id: house.sessions.stamp().session_id(),
        at: None,
        title,
        relation: Relation::Fork,
    };
    let (summary, _) = house.wait(house.sessions.fork(&row.summary, &fork, Vec::new()))?;
    ui.note(&format!(
        "Going on in {}, a fork of {}",
        summary.id.short(),
        row.summary.id.short()
    ));
    Ok(Row {
        summary,
        open: false,
    })
}

fn retitled(house: &House, mut row: Row, title: Option<String>) -> CommandResult<Row> {
    if let Some(title) = title {
        let operation = house.sessions.stamp().entry_id();
        row.summary = house.wait(house.sessions.rename(row.summary.id, &title, operation))?;
    }
    Ok(row)
}
