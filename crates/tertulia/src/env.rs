//! All environment variables that the program reads.

use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// URL of the store.
pub const STORE: &str = "TERTULIA_STORE";
/// Folder that holds all files of the program.
pub const HOME: &str = "TERTULIA_HOME";
/// How many seconds a write waits for another program that holds the store.
pub const LOCK_TIMEOUT: &str = "TERTULIA_LOCK_TIMEOUT";
/// Agent to use.
pub const AGENT: &str = "TERTULIA_AGENT";
/// Socket of the server.
pub const SOCKET: &str = "TERTULIA_SOCKET";
/// Command that connects to another machine, in place of `ssh`.
pub const SSH: &str = "TERTULIA_SSH";
/// Folder for runtime files, created at each login.
pub const RUNTIME_FOLDER: &str = "XDG_RUNTIME_DIR";
/// Password of a PostgreSQL store.
#[cfg(feature = "postgres")]
pub const PGPASSWORD: &str = "PGPASSWORD";
/// File of PostgreSQL passwords.
#[cfg(feature = "postgres")]
pub const PGPASSFILE: &str = "PGPASSFILE";
/// Variables that lead to the store and its password: no program of an agent, tool or command of
/// the user inherits them.
pub const STORE_SECRETS: &[&str] = &[
    STORE,
    "PGPASSWORD",
    "PGPASSFILE",
    "PGSERVICEFILE",
    "PGSSLPASSWORD",
];
/// Turns colours off if set to any value.
pub const NO_COLOR: &str = "NO_COLOR";

/// Returns the value of a variable, if it is set, not empty, and valid Unicode.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the value of a variable as a path, if it is set and not empty.
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Resolves a path of the settings: `~/` means the home folder, a relative one is below `base`.
pub fn placed(path: &str, base: &Path) -> PathBuf {
    match path.strip_prefix("~/").zip(self::path("HOME")) {
        Some((rest, home)) => home.join(rest),
        None => base.join(path),
    }
}

/// Returns the folder for temporary files.
pub fn scratch() -> PathBuf {
    std::env::temp_dir()
}

/// Returns the path of a program, searching `PATH`.
pub fn program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    program_in(search_path(), name)
}

/// Returns the folders in `PATH`.
pub fn search_path() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).collect()
}

/// Returns the path of a program in the first of these folders that has it.
pub fn program_in(folders: impl IntoIterator<Item = PathBuf>, name: &Path) -> Option<PathBuf> {
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok())
}
