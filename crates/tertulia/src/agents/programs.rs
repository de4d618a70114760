//! The vendors' programs on this machine: where they are, and whether they start.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tertulia_agents::process::{self, Limits, ProcessError, Program};
use tertulia_agents::vendor::{Vendor, version_in};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::env;
use crate::ui::fit;

/// How long a program may take to tell its version. Programs that run on Node take seconds on a busy machine.
const LIMIT: Duration = Duration::from_secs(12);
/// How many are started at once: each of them can keep a core busy.
pub const AT_ONCE: usize = 2;
/// How long it may take to end after that.
const GRACE: Duration = Duration::from_millis(500);
/// How much of its output is looked at.
const MOST_READ: usize = 16 * 1024;
/// How much of a version or of a reason is shown.
const MOST_SHOWN: usize = 80;
/// The folders below the home into which the vendors' installers put programs.
const AT_HOME: &[&str] = &[
    ".local/bin",
    ".npm-global/bin",
    ".bun/bin",
    ".claude/local",
    ".opencode/bin",
];
/// Where they are for everybody.
const FOR_ALL: &[&str] = &["/usr/local/bin", "/opt/homebrew/bin"];
/// Where nvm keeps a folder for each version of Node.
const NVM: &str = ".nvm/versions/node";

/// Why a program did not tell its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untold {
    /// It starts, and had not answered in time.
    Slow,
    /// It does not start, and why.
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

/// Where a vendor's program is: on the search path, or in one of the usual places.
pub fn find(vendor: Vendor) -> Option<PathBuf> {
    find_program(vendor.program())
}

/// Where a program of this name is: on the search path, or in one of the usual places.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let mut folders = env::search_path();
    if let Some(home) = env::path("HOME") {
        folders.extend(AT_HOME.iter().map(|folder| home.join(folder)));
        folders.extend(of_node(&home.join(NVM)));
    }
    folders.extend(FOR_ALL.iter().map(PathBuf::from));
    // A folder of the search path may be relative, and what is registered must not be.
    let absolute = folders.into_iter().filter(|folder| folder.is_absolute());
    env::program_in(absolute, Path::new(name))
}

/// The file that a command starts, by whatever name or link it is called.
pub fn file_of(command: &str) -> Option<PathBuf> {
    std::fs::canonicalize(env::program(Path::new(command))?).ok()
}

/// The folders of programs of each version of Node, the newest first.
fn of_node(versions: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort_by_key(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        Reverse(numbers(&name))
    });
    folders.iter().map(|folder| folder.join("bin")).collect()
}

/// The numbers of a version, so that 22 is after 9.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Starts a program only to hear its version: the version if it tells one, or why it does not start.
/// It gets none of the variables `without`, which hold keys: nothing that it might do costs anything.
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
        // A program that is nobody's need not know the question: it was there and it started.
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
