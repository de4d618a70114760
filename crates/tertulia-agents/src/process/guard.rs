//! A helper process that outlives this one: when this process is killed, a pipe closes, and the
//! helper ends every process that this one had running. A killed program cannot end its children
//! itself.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::orphans::end_run;

/// Marks the processes of one run of this program, and ends them through a helper if it is killed.
pub struct Guard {
    command: PathBuf,
    args: Vec<OsString>,
    run: String,
    helper: Mutex<Option<Child>>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("run", &self.run).finish()
    }
}

impl Guard {
    /// Creates a guard whose helper is started as `command` with `args` and the run's id, and then
    /// calls [`watch`]. Starts nothing before [`Guard::run`] is called. `run` must be unique among
    /// guards.
    pub fn new(command: PathBuf, args: Vec<OsString>, run: String) -> Guard {
        Guard {
            command,
            args,
            run,
            helper: Mutex::new(None),
        }
    }

    /// Starts the helper if needed and returns the id that the markers of guarded processes carry,
    /// see [`marker`].
    pub fn run(&self) -> io::Result<&str> {
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if helper.is_none() {
            *helper = Some(self.start()?);
        }
        Ok(&self.run)
    }

    /// Starts the helper with an empty environment: tertulia's holds keys, and processes of agents
    /// can read the environment of other processes.
    fn start(&self) -> io::Result<Child> {
        Command::new(&self.command)
            .args(&self.args)
            .arg(&self.run)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}

impl Drop for Guard {
    /// Kills the helper: the program ends normally and has ended its children itself.
    fn drop(&mut self) {
        let helper = self
            .helper
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(mut helper) = helper.take() {
            let _ = helper.kill();
            let _ = helper.wait();
        }
    }
}

/// Formats the marker of a process of `session` in the guarded `run`; `unique` makes it unique.
pub fn marker(session: &str, run: &str, unique: &str) -> String {
    format!("{session}{run}.{unique}")
}

/// Main function of the helper: waits until the guarded program has ended, which closes `input`,
/// and ends the processes that it left running.
pub fn watch(run: &str, mut input: impl Read) {
    // A terminal's signals are for the guarded program.
    let _ = rustix::process::setsid();
    let mut rest = [0; 64];
    while input.read(&mut rest).is_ok_and(|count| count > 0) {}
    end_run(run);
}
