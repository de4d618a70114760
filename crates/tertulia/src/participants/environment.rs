//! Describes where a session works, for the system prompt of agents that bring none.

use std::path::Path;
use std::sync::Arc;
use std::thread;

use jiff::tz::TimeZone;
use tertulia_agents::system_prompt::{GitState, WorkEnvironment};

use super::instructions::Instructions;
use crate::ui::Ui;
use crate::{env, project};

/// Describes the folder. Shows which instructions of the project could not be used.
pub fn describe(folder: &Path, instructions: Instructions, ui: &mut Ui) -> Arc<WorkEnvironment> {
    for warning in &instructions.warnings {
        ui.warn(warning);
    }
    Arc::new(WorkEnvironment {
        folder: folder.to_owned(),
        platform: format!("{} ({})", std::env::consts::OS, std::env::consts::ARCH),
        time_zone: TimeZone::system(),
        git: git_state(folder),
        instructions: instructions.files,
    })
}

/// Asks git in the background: the first prompt is usually typed more slowly than git answers.
fn git_state(folder: &Path) -> GitState {
    let state = GitState::default();
    let (sets, folder) = (SetsState(state.clone()), folder.to_owned());
    let home = env::path("HOME");
    // If no thread can be started, dropping the closure sets the state.
    let _ = thread::Builder::new().spawn(move || {
        let line = project::git_state(&folder, home.as_deref());
        sets.0.set(line);
    });
    state
}

/// Sets the state when it is dropped, so that no session waits for it in vain.
struct SetsState(GitState);

impl Drop for SetsState {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
