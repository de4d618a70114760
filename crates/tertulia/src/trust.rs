//! Records which project folders the user trusts. A decision applies to a folder and the content of
//! its settings file.

use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open;
use crate::private_file::{lock_of, replace, trouble};
use crate::ui::{Ui, harmless};

/// All decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    folders: Vec<Decision>,
}

/// The user's decision about one folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Root of the project.
    pub folder: String,
    /// Hash of its settings file at that time.
    pub hash: String,
    /// Whether it is trusted.
    pub trusted: bool,
    /// When the user decided.
    pub at: Timestamp,
}

impl Decisions {
    /// Reads the file. A missing file holds no decisions.
    pub fn read(file: &Path) -> CommandResult<Decisions> {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Decisions::default());
            }
            Err(error) => return Err(trouble(file, "cannot be read", error)),
        };
        serde_json::from_str(&text).map_err(|error| {
            let message = format!("{} cannot be read: {error}", file.display());
            CommandError::new(ErrorKind::Invalid, message)
                .hint("move the file away, then trust folders again")
        })
    }

    /// Returns the decision about a folder whose settings file has this hash.
    pub fn about(&self, folder: &Path, hash: &str) -> Option<bool> {
        let folder = folder.to_string_lossy();
        self.folders
            .iter()
            .find(|decision| decision.folder == folder && decision.hash == hash)
            .map(|decision| decision.trusted)
    }

    /// Returns all decisions.
    pub fn iter(&self) -> impl Iterator<Item = &Decision> {
        self.folders.iter()
    }
}

/// Records a decision, replacing an earlier one.
pub fn decide(file: &Path, decision: Decision) -> CommandResult<()> {
    change(file, |decisions| {
        decisions
            .folders
            .retain(|known| known.folder != decision.folder);
        decisions.folders.push(decision);
    })
}

/// Removes the decision about a folder. Returns false if there was none.
pub fn revoke(file: &Path, folder: &Path) -> CommandResult<bool> {
    let folder = folder.to_string_lossy();
    let mut found = false;
    change(file, |decisions| {
        let before = decisions.folders.len();
        decisions.folders.retain(|known| known.folder != folder);
        found = decisions.folders.len() != before;
    })?;
    Ok(found)
}

fn change(file: &Path, change: impl FnOnce(&mut Decisions)) -> CommandResult<()> {
    let _held = lock_of(file)?;
    let before = Decisions::read(file)?;
    let mut decisions = before.clone();
    change(&mut decisions);
    if decisions == before {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&decisions).map_err(|error| {
        CommandError::new(ErrorKind::Failed, "cannot write what is trusted").because(error)
    })?;
    replace(file, &text)
}

/// Asks the user once, if interactive, whether to trust this project, if its settings file needs
/// trust.
pub fn ask(global: &GlobalArgs, ui: &mut Ui) -> CommandResult<()> {
    if !ui.is_interactive() || ui.json {
        return Ok(());
    }
    let settings = open::quiet_settings(global, ui)?;
    let Some(untrusted) = settings.untrusted.as_ref().filter(|found| !found.denied) else {
        return Ok(());
    };
    ui.ask(&harmless(&format!(
        "The settings of this project, {}, say:",
        untrusted.file.path.display()
    )));
    for claim in &untrusted.claims {
        ui.ask(&harmless(&format!("  {} = {}", claim.key, claim.value)));
    }
    let trusted = ui.confirm("Trust this project? Without it, these are ignored.");
    ui.ask(if trusted {
        "Trusted; `tertulia trust --revoke` takes it back."
    } else {
        "Not trusted; `tertulia trust` changes that."
    });
    decide(
        &settings.trust_file(),
        Decision {
            folder: untrusted.file.folder.to_string_lossy().into_owned(),
            hash: untrusted.file.hash.clone(),
            trusted,
            at: open::clock().now(),
        },
    )
}
