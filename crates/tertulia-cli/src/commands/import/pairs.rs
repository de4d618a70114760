//! What claude-master kept of an instructor and a worker.

use serde_json::json;
use tertulia::formats::claude_master::Kept;
use tertulia::store::{Adopted, Doing};

use super::outcome::{Outcome, words};
use super::sources::Source;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::House;

/// What is in a file.
pub fn read(source: &Source, content: &[u8]) -> CommandResult<Kept> {
    Kept::read(content).map_err(|error| {
        let message = format!("{}: {error}", source.path.display());
        CommandError::new(ErrorKind::Invalid, message).hint("nothing of it was taken in")
    })
}

/// Takes in one session.
pub fn take_in(
    house: &House,
    source: &Source,
    content: &[u8],
    dry_run: bool,
) -> CommandResult<Outcome> {
    let kept = read(source, content)?;
    let doing = if dry_run {
        Doing::Preview
    } else {
        Doing::Write
    };
    let talk = kept.talk();
    let taken = house.wait(house.sessions.intake(doing).take_in(&talk))?;
    let count = talk.said.len();
    let plural = if count == 1 { "" } else { "s" };
    let summary = format!(
        "{count} message{plural}, at round {}, {}",
        kept.round, kept.remaining
    );
    let adopted = taken.adopted;
    let mut outcome = Outcome::of(&source.path, adopted, words(adopted, dry_run, &summary));
    let mut lost = kept.lost.clone();
    if kept.worker.is_empty() {
        lost.push("what the worker remembers: the file does not have it".to_owned());
    }
    if !matches!(adopted, Adopted::Known { .. }) {
        outcome.details = lost.iter().map(|what| format!("lost: {what}")).collect();
    }
    if let Some(object) = outcome.object.as_object_mut() {
        let kept = json!({ "messages": count, "round": kept.round });
        object.insert("kept".into(), kept);
        object.insert("lost".into(), json!(lost));
    }
    Ok(outcome)
}
