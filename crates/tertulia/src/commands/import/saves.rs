//! Imports saves of agent-chatter. It wrote a new file at each save, so one session may be spread
//! over many files: the newest is imported, and an older one only if the newest does not contain
//! it.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde_json::json;
use tertulia_core::entry::Imported;
use tertulia_core::id::SessionId;
use tertulia_formats::snapshot::{Account, Reading, Snapshot};
use tertulia_store::{Intake, Taken};

use super::outcome::{Outcome, own_words, words};
use super::sources::Source;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;

/// Sort key of a save. The content is read again when the save is imported, so that a folder with
/// thousands of saves needs no more memory than one save.
#[derive(Debug)]
pub struct Save {
    /// Index in the list of sources.
    pub at: usize,
    id: SessionId,
    team: String,
    updated_at: Timestamp,
    messages: usize,
}

impl Save {
    /// Reads and validates a save.
    pub fn look(at: usize, content: &[u8], source: &Source) -> CommandResult<Save> {
        let snapshot = read(content, source)?.snapshot;
        Ok(Save {
            at,
            id: snapshot.session_id(),
            team: snapshot.team,
            updated_at: snapshot.updated_at,
            messages: snapshot.messages.len(),
        })
    }
}

/// Groups the saves by session, newest first.
pub fn in_order(saves: &mut [Save]) {
    saves.sort_by(|a, b| {
        let key = |save: &Save| (Reverse(save.updated_at), Reverse(save.messages), save.at);
        (a.id, &a.team)
            .cmp(&(b.id, &b.team))
            .then_with(|| key(a).cmp(&key(b)))
    });
}

/// The newest save of the session that is being imported.
#[derive(Debug)]
pub struct Newest {
    at: usize,
    snapshot: Snapshot,
    id: SessionId,
}

/// Result of importing a save.
pub enum Became {
    /// Imported, or already known.
    Session(Outcome),
    /// The newest save, whose source index is given, contains all of it.
    Earlier(usize, Outcome),
}

/// Imports saves one after the other, in the order of [`in_order`].
pub struct Saves<'a> {
    pub workspace: &'a Workspace,
    pub intake: Intake<'a>,
    pub dry_run: bool,
    pub newest: Option<Newest>,
}

impl Saves<'_> {
    /// Imports the next save.
    pub fn take_in(&mut self, save: &Save, source: &Source) -> CommandResult<Became> {
        let reading = read(&source.read()?, source)?;
        if let Some(newest) = &self.newest
            && reading.snapshot.is_beginning_of(&newest.snapshot)
        {
            return Ok(Became::Earlier(
                newest.at,
                Outcome::earlier(&source.path, newest.id),
            ));
        }
        let talk = reading.snapshot.talk();
        let taken = self.workspace.wait(self.intake.take_in(&talk))?;
        let account = Account::of(&reading, &taken.entries, &talk.changes);
        let outcome = outcome(source, &taken, &talk.source, &account, self.dry_run);
        let is_next = |newest: &Newest| {
            (newest.snapshot.session_id(), &newest.snapshot.team) != (save.id, &save.team)
        };
        if self.newest.as_ref().is_none_or(is_next) {
            self.newest = Some(Newest {
                at: save.at,
                snapshot: reading.snapshot,
                id: taken.adopted.id(),
            });
        }
        Ok(Became::Session(outcome))
    }
}

pub fn read(content: &[u8], source: &Source) -> CommandResult<Reading> {
    let origin = source.path.display().to_string();
    let text = std::str::from_utf8(content).map_err(|error| {
        CommandError::new(ErrorKind::Invalid, format!("{origin} is not UTF-8")).because(error)
    })?;
    Ok(Snapshot::read_closely(text, &origin)?)
}

fn outcome(
    source: &Source,
    taken: &Taken,
    origin: &Imported,
    account: &Account,
    dry_run: bool,
) -> Outcome {
    let task = if account.task { " and the task" } else { "" };
    let plural = if account.messages == 1 { "" } else { "s" };
    let kept = format!("{} message{plural}{task}", account.messages);
    let words = own_words(&source.path, taken, dry_run)
        .unwrap_or_else(|| words(taken.adopted, dry_run, &kept));
    let kept = json!({ "messages": account.messages, "task": account.task });
    let outcome = Outcome::of(&source.path, taken.adopted, words).waiting(taken);
    outcome.with_report(taken, origin, &kept, &account.changed, &account.lost)
}
