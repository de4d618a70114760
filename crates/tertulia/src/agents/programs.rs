//! Finds agent programs on this machine and checks that they start.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tertulia_agents::process::{self, Limits, ProcessError, Program};
use tertulia_agents::vendor::{Vendor, version_in};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::env;
use crate::ui::fit;

/// Time limit for `--version`. Programs that run on Node take seconds on a busy machine.
const LIMIT: Duration = Duration::from_secs(12);
/// Number of programs started in parallel: each can keep a core busy.
pub const AT_ONCE: usize = 2;
/// Time for a program to exit after the limit.
const GRACE: Duration = Duration::from_millis(500);
/// Maximum number of bytes of output that are read.
const MOST_READ: usize = 16 * 1024;
/// Maximum number of characters of a version or reason that are shown.
const MOST_SHOWN: usize = 80;
/// Folders below the home folder where the vendors' installers put programs.
const AT_HOME: &[&str] = &[
    ".local/bin",
    ".npm-global/bin",
    ".bun/bin",
    ".claude/local",
    ".opencode/bin",
];
/// System-wide folders for programs.
const FOR_ALL: &[&str] = &["/usr/local/bin", "/opt/homebrew/bin"];
/// Where nvm keeps a folder for each version of Node.
const NVM: &str = ".nvm/versions/node";

/// Why a program did not print its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untold {
    /// The program started, but did not answer in time.
    Slow,
    /// The program does not start, with the reason.
    Fails(String),
}

impl std::fmt::Display for Untold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Untold::Slow => write!(
                f,
                "it starts slowly: --version took more than {} s",
                LIMIT.as_secs()
            ),
            Untold::Fails(why) => f.write_str(why),
        }
    }
}

/// Finds a vendor's program on the search path or in one of the usual folders.
pub fn find(vendor: Vendor) -> Option<PathBuf> {
    find_program(vendor.program())
}

/// Finds a program by name on the search path or in one of the usual folders.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let mut folders = env::search_path();
    if let Some(home) = env::path("HOME") {
        folders.extend(AT_HOME.iter().map(|folder| home.join(folder)));
        folders.extend(of_node(&home.join(NVM)));
    }
    folders.extend(FOR_ALL.iter().map(PathBuf::from));
    // Registered paths must be absolute, but the search path may contain relative folders.
    let absolute = folders.into_iter().filter(|folder| folder.is_absolute());
    env::program_in(absolute, Path::new(name))
}

/// Returns the file that a command starts, with links resolved.
pub fn file_of(command: &str) -> Option<PathBuf> {
    std::fs::canonicalize(env::program(Path::new(command))?).ok()
}

/// Returns the `bin` folders of all installed versions of Node, newest first.
fn of_node(versions: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort_by_key(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Reverse(numbers(&name))
    });
    folders.iter().map(|folder| folder.join("bin")).collect()
}

/// Returns the numbers of a version, so that 22 sorts after 9.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Runs a program with `--version`. Returns the version if it prints one, or why it does not start.
/// The variables in `without`, which hold keys, are removed, so that nothing it does can cost
/// anything.
pub async fn version(
    name: &str,
    command: &Path,
    without: Vec<String>,
    cancel: &CancellationToken,
) -> Result<Option<String>, Untold> {
    let program = Program {
        command: command.to_owned(),
        args: vec!["--version".to_owned()],
        env: Vec::new(),
        without,
        work_dir: None,
        marker: uuid::Uuid::new_v4().to_string(),
        confined: None,
    };
    let limits = Limits {
        total: Some(LIMIT),
        grace: GRACE,
        output: MOST_READ,
        ..Limits::default()
    };
    let (chunks, mut received) = mpsc::channel(16);
    let collect = async {
        let mut printed = Vec::new();
        while let Some(chunk) = received.recv().await {
            printed.extend(chunk);
        }
        String::from_utf8_lossy(&printed).into_owned()
    };
    let (finished, printed) = tokio::join!(
        process::run(&program, b"", &limits, cancel, chunks),
        collect
    );
    match finished {
        Ok(finished) if finished.status.success() => {
            Ok(version_in(&printed).or_else(|| first_line(&printed)))
        }
        // A program of no known vendor need not support `--version`: it is there and it started.
        Ok(_) if Vendor::parse(super::kind_of(name, &command.to_string_lossy(), &[])).is_none() => {
            Ok(None)
        }
        Ok(finished) => {
            let why = first_line(&finished.stderr_tail).map(|line| format!(": {line}"));
            let why = why.unwrap_or_default();
            let why = format!("--version ended with {}{why}", finished.status);
            Err(Untold::Fails(why))
        }
        Err(ProcessError::Timeout { .. }) => Err(Untold::Slow),
        Err(ProcessError::NotExecutable { source, .. }) => {
            Err(Untold::Fails(format!("it cannot be executed: {source}")))
        }
        Err(error) => Err(Untold::Fails(error.to_string())),
    }
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(fit(line, MOST_SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_node_comes_first() {
        let home = tempfile::tempdir().unwrap();
        for version in ["v9.1.0", "v22.3.1", "v22.10.0"] {
            std::fs::create_dir(home.path().join(version)).unwrap();
        }
        let expected = ["v22.10.0/bin", "v22.3.1/bin", "v9.1.0/bin"];
        assert_eq!(
            of_node(home.path()),
            expected.map(|folder| home.path().join(folder))
        );
        assert!(of_node(&home.path().join("nowhere")).is_empty());
    }
}
