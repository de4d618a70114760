//! Starts a program in a file system that it cannot write, apart from chosen paths (Landlock). The
//! restriction holds for all its descendants and cannot be lifted.

use std::io;
use std::path::PathBuf;

use tokio::process::{Child, Command};

use super::ProcessError;

/// Whether the kernel can confine programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// It can.
    Confines,
    /// It cannot, with the reason.
    Cannot(String),
}

impl Kernel {
    /// Asks the kernel.
    pub fn probe() -> Kernel {
        match system::rules(&[]) {
            Ok(_) => Kernel::Confines,
            Err(reason) => Kernel::Cannot(reason),
        }
    }
}

/// What a confined program may write, besides terminals and devices that keep nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confined {
    /// Files, and folders with everything in them. All must exist.
    pub writable: Vec<PathBuf>,
}

/// Starts a program confined. The outer error means that it was not started because it cannot be
/// confined.
pub(super) fn spawn(
    command: &mut Command,
    confined: &Confined,
) -> Result<io::Result<Child>, ProcessError> {
    let cannot = |reason: String| ProcessError::Unconfined { reason };
    let rules = system::rules(&confined.writable).map_err(cannot)?;
    let runtime = tokio::runtime::Handle::try_current().map_err(|e| cannot(e.to_string()))?;
    // The restriction applies to the thread that asks for it, for good, and to the children that
    // this thread starts: so the thread is a new one, and ends with this call.
    std::thread::scope(|scope| {
        let spawning = move || {
            system::restrict(rules).map_err(cannot)?;
            let _entered = runtime.enter();
            Ok(command.spawn())
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, spawning);
        let thread = thread.map_err(ProcessError::Spawn)?;
        let panicked = |_| Err(cannot("the thread that starts it ended early".to_owned()));
        thread.join().unwrap_or_else(panicked)
    })
}

#[cfg(target_os = "linux")]
mod system {
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
        RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus,
    };

    /// First version with which truncating a file and moving one to another folder can be denied.
    const VERSION: ABI = ABI::V3;
    /// Terminals, and devices that keep nothing. Those that do not exist are left out.
    const DEVICES: &[&str] = &[
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "/dev/ptmx",
        "/dev/pts",
    ];

    /// Returns rules that deny every kind of writing, except to devices and `writable`.
    pub(super) fn rules(writable: &[PathBuf]) -> Result<RulesetCreated, String> {
        let write = AccessFs::from_write(VERSION);
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(write)
            .and_then(Ruleset::create)
            .map_err(|error| format!("this kernel lacks Landlock version 3 (Linux 6.2): {error}"))?
            .set_compatibility(CompatLevel::HardRequirement);
        let write_file = write & AccessFs::from_file(VERSION);
        for device in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
            rules = allowed(rules, device, write_file)?;
        }
        for path in writable {
            let rights = if path.is_dir() { write } else { write_file };
            rules = allowed(rules, path, rights)?;
        }
        Ok(rules)
    }

    fn allowed(
        rules: RulesetCreated,
        path: &Path,
        rights: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, String> {
        let opened = PathFd::new(path).map_err(|error| error.to_string())?;
        rules
            .add_rule(PathBeneath::new(opened, rights))
            .map_err(|error| format!("{} cannot be made writable: {error}", path.display()))
    }

    /// Restricts this thread, completely or not at all.
    pub(super) fn restrict(rules: RulesetCreated) -> Result<(), String> {
        let status = rules.restrict_self().map_err(|error| error.to_string())?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            other => Err(format!("the rules are not enforced ({other:?})")),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::PathBuf;

    pub(super) fn rules(_: &[PathBuf]) -> Result<(), String> {
        Err("this system has no Landlock, only Linux does".to_owned())
    }

    pub(super) fn restrict((): ()) -> Result<(), String> {
        Err("this system has no Landlock, only Linux does".to_owned())
    }
}
