//! What retention has done, per store: a file in the data folder. Without it, the rules are announced
//! again before anything is removed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tertulia_core::id::SessionId;

use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::private_file::{lock_of, replace};
use crate::settings::{Retention, Settings};

/// Name of the file.
const FILE: &str = "retention.json";

/// Time between two runs.
const PAUSE: SignedDuration = SignedDuration::from_hours(24);

/// What retention has done in one store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionState {
    /// Rules of the last run.
    #[serde(default)]
    rules: String,
    /// True if a run has announced what these rules remove.
    #[serde(default)]
    announced: bool,
    /// Time of the last run.
    #[serde(default)]
    ran_at: Option<Timestamp>,
    /// Sessions that retention moved to the trash, and when.
    #[serde(default)]
    pub moved: BTreeMap<SessionId, Timestamp>,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is nothing to remove.
    Nothing,
    /// Says what the next run will remove.
    Announce,
    /// Removes it.
    Apply,
}

impl RetentionState {
    /// Returns true if a run is due: the rules are other ones, or a day has passed.
    pub fn is_due(&self, retention: &Retention, now: Timestamp) -> bool {
        let waits = |ran_at: Timestamp| now.duration_since(ran_at).abs() < PAUSE;
        self.rules != written(retention) || !self.ran_at.is_some_and(waits)
    }

    /// Records a run, and returns what it does. Rules are announced at least a day before they are
    /// applied, and again when they change.
    pub fn step(&mut self, retention: &Retention, now: Timestamp, idle: bool) -> Step {
        let rules = written(retention);
        // If the clock was set back, it is not known how long ago the rules were announced.
        let is_later = self.ran_at.is_none_or(|ran_at| ran_at <= now);
        let announced = self.announced && self.rules == rules && is_later;
        self.rules = rules;
        self.ran_at = Some(now);
        self.announced = announced || !idle;
        match (idle, announced) {
            (true, _) => Step::Nothing,
            (false, false) => Step::Announce,
            (false, true) => Step::Apply,
        }
    }

    /// Returns the earliest time of the run after one at `now`.
    pub fn next_run(&self, now: Timestamp) -> Timestamp {
        now.checked_add(PAUSE).unwrap_or(now)
    }
}

/// Returns the rules as text, to notice a change.
fn written(retention: &Retention) -> String {
    // Compression removes nothing.
    let removing = Retention {
        compress_after: None,
        ..retention.clone()
    };
    format!("{removing:?}")
}

/// The file with the states of all stores.
pub struct States {
    file: PathBuf,
    store: String,
}

impl States {
    /// Returns the file of the user, for the store of the settings.
    pub fn of(settings: &Settings) -> States {
        States {
            file: settings.data.join(FILE),
            store: settings.store.to_string(),
        }
    }

    /// Returns the state of the store; an unreadable file counts as none.
    pub fn read(&self) -> RetentionState {
        self.all().remove(&self.store).unwrap_or_default()
    }

    fn all(&self) -> BTreeMap<String, RetentionState> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes the state of the store.
    pub fn write(&self, state: &RetentionState) -> CommandResult<()> {
        let _held = lock_of(&self.file)?;
        let mut all = self.all();
        all.insert(self.store.clone(), state.clone());
        let text = serde_json::to_string_pretty(&all).map_err(|error| {
            CommandError::new(ErrorKind::Failed, "cannot record the run of [retention]")
                .because(error)
        })?;
        replace(&self.file, &text)
    }
}
