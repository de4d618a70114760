//! Determines the server's socket path.

use std::path::{Path, PathBuf};

use crate::args::GlobalArgs;
use crate::env;
use crate::settings::{Settings, quoted};

/// File name of the socket.
const NAME: &str = "tertulia.sock";

/// Returns the socket path: the one that was named, else one per user, or one per data folder if
/// that was changed.
pub fn socket(named: Option<&Path>, global: &GlobalArgs, settings: &Settings) -> PathBuf {
    if let Some(path) = named {
        return settings.cwd.join(path);
    }
    if let Some(path) = env::path(env::SOCKET) {
        return settings.cwd.join(path);
    }
    let moved = global.data_dir.is_some() || env::path(env::HOME).is_some();
    match env::path(env::RUNTIME_FOLDER).filter(|_| !moved) {
        Some(folder) => folder.join("tertulia").join(NAME),
        None => settings.cwd.join(&settings.data).join(NAME),
    }
}

/// Returns the value of `--socket` for commands in hints, if one was given.
pub fn flag(named: Option<&Path>, path: &Path) -> Option<String> {
    named.map(|_| quoted(&path.display().to_string()))
}
