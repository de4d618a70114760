//! Every environment variable that the program reads, in one place.

use std::path::PathBuf;

use rustix::fs::Access;

/// The store, as a URL.
pub const STORE: &str = "TERTULIA_STORE";
/// The folder below which everything is kept.
pub const HOME: &str = "TERTULIA_HOME";
/// How many seconds a write waits for another program that holds the store.
pub const LOCK_TIMEOUT: &str = "TERTULIA_LOCK_TIMEOUT";
/// The agent that answers.
pub const AGENT: &str = "TERTULIA_AGENT";
/// Where the server listens.
pub const SOCKET: &str = "TERTULIA_SOCKET";
/// The folder of what runs, made anew at each login.
pub const RUNTIME_FOLDER: &str = "XDG_RUNTIME_DIR";
/// No colours, if it is set to anything.
pub const NO_COLOR: &str = "NO_COLOR";

/// A variable's value, if it is set, not empty, and text.
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A variable's value as a path, if it is set and not empty.
pub fn path(name: &str) -> Option<PathBuf> {
    std::env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// The folder for what does not last.
pub fn scratch() -> PathBuf {
    std::env::temp_dir()
}

/// Where a program of this name is, by the search path.
pub fn program(name: &std::path::Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.is_file().then(|| name.to_owned());
    }
    program_in(search_path(), name)
}

/// The folders of the search path.
pub fn search_path() -> Vec<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).collect()
}

/// Where a program of this name is, in the first of these folders that has it.
pub fn program_in(
    folders: impl IntoIterator<Item = PathBuf>,
    name: &std::path::Path,
) -> Option<PathBuf> {
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok())
}
