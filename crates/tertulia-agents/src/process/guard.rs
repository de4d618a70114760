//! A second process that outlives this one: when this one is killed, a pipe closes, and the second ends every
//! process that this one had running. A program that is killed cannot end its children itself.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::orphans::end_run;

/// Marks the processes of one run of this program, and has them ended if it is killed.
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
    /// A guard whose helper is started as `command` with `args` and the run's id, and then calls [`watch`]. Nothing
    /// is started before [`Guard::run`] is called. `run` is an id that no other guard has.
    pub fn new(command: PathBuf, args: Vec<OsString>, run: String) -> Guard {
        Guard {
            command,
            args,
            run,
            helper: Mutex::new(None),
        }
    }

    /// The id that the markers of guarded processes carry, see [`marker`]. The helper runs from now on.
    pub fn run(&self) -> io::Result<&str> {
        let mut helper = self.helper.lock().unwrap_or_else(PoisonError::into_inner);
        if helper.is_none() {
            *helper = Some(self.start()?);
        }
        Ok(&self.run)
    }

    /// The environment is not handed on: it holds keys, and what agents run can read other processes'.
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
    /// The program ends by itself and has ended its children: the helper must not look for them.
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

/// The marker of a process of `session` in the guarded `run`; `unique` tells it from all others.
pub fn marker(session: &str, run: &str, unique: &str) -> String {
    format!("{session}{run}.{unique}")
}

/// The helper: waits until the guarding program has ended, which closes `input`, and ends what it left running.
pub fn watch(run: &str, mut input: impl Read) {
    // A terminal's signals are for the program that is guarded.
    let _ = rustix::process::setsid();
    let mut rest = [0; 64];
    while input.read(&mut rest).is_ok_and(|count| count > 0) {}
    end_run(run);
}
