//! Session code shared by chats, teams and pairs: command-line flags (`args`), choosing the session
//! (`target`), running it in a frontend, and closing it (`leaving`).

pub mod args;
mod caller;
mod copy;
mod describe;
mod following;
pub mod frontend;
pub mod keyboard;
pub mod leaving;
mod once;
pub mod opening;
pub mod paired;
pub mod permissions;
mod plain;
pub mod routed;
pub mod target;
mod unsaved;

use std::process::ExitCode;

use tokio::runtime::Handle;

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::retention;
use crate::runtime;
#[cfg(feature = "tui")]
use crate::tui_host;
use crate::ui::Ui;
use keyboard::Keyboard;
use opening::Prepared;

pub use args::{Sort, TalkArgs, workspace};
pub use following::follow;
pub use leaving::{messages, tell_end};
pub use permissions::LeftSession;

/// Runs a prepared session as its flags and the terminal allow: in the TUI, line by line, or for one
/// turn.
pub fn run(
    args: &TalkArgs,
    prepared: CommandResult<Option<Prepared>>,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    #[cfg(feature = "tui")]
    if args.is_full_screen(ui) {
        let result = match prepared {
            Ok(Some(prepared)) => tui_host::run(prepared, global, ui),
            Ok(None) => Ok(ExitCode::SUCCESS),
            Err(error) => Err(error),
        };
        ui.release();
        return result;
    }
    let Some(Prepared { mut opening, words }) = prepared? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (on_screen, format) = (args.is_on_screen(ui), args.format(ui));
    let keeper = (!args.ephemeral).then(|| opening.workspace.clone());
    if !on_screen {
        let words = words.unwrap_or_default();
        let run = once::Run {
            words,
            format,
            keep_going: args.keep_going,
        };
        let turn = async move |ui: &mut Ui| once::turn(opening, run, ui).await;
        return run_to_end(turn, keeper, ui);
    }
    let (mut words, mut keyboard) = (words, Keyboard::of_a_session());
    loop {
        if let Some(row) = following::ask(&mut opening, ui)? {
            return following::follow(row, &opening.workspace, format, ui);
        }
        plain::greet(&opening, ui);
        let (keeper, first) = (keeper.clone(), words.take());
        let typed = &mut keyboard;
        let run = plain::Run {
            global,
            flag: args.approve,
        };
        let talk = async move |ui: &mut Ui| plain::talk(opening, first, typed, run, ui).await;
        match run_to_end(talk, keeper, ui)? {
            (code, None) => return Ok(code),
            (_, Some(next)) => opening = *next,
        }
    }
}

/// Runs a session to its end, then applies the retention rules.
fn run_to_end<T>(
    talk: impl AsyncFnOnce(&mut Ui) -> CommandResult<T>,
    keeper: Option<Workspace>,
    ui: &mut Ui,
) -> CommandResult<T> {
    let result = runtime()?.block_on(talk(ui));
    if let Some(keeper) = keeper {
        retention::keep_workspace(&keeper, ui);
    }
    result
}

/// Returns an error if the limit on open files is too low for the runtime to start.
pub fn enough_files() -> CommandResult<()> {
    runtime::enough_files().map_err(|error| {
        CommandError::new(ErrorKind::Failed, "no more files can be opened")
            .because(error)
            .hint("allow more open files: `ulimit -n 1024`")
    })
}

/// Returns the runtime that a session runs on.
pub fn runtime() -> CommandResult<Handle> {
    enough_files()?;
    runtime::get().map_err(|error| {
        CommandError::new(ErrorKind::Failed, "the session cannot be started").because(error)
    })
}

/// Returns the exit code of a session: from a signal, from unsaved entries, or success.
pub fn exit_code(signal: Option<u8>, left_unsaved: Option<ErrorKind>) -> ExitCode {
    match signal.map(ErrorKind::Interrupted).or(left_unsaved) {
        Some(kind) => ExitCode::from(kind.exit_code()),
        None => ExitCode::SUCCESS,
    }
}
