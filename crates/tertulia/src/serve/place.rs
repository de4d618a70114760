//! Where the server listens.

use std::path::{Path, PathBuf};

use crate::args::GlobalArgs;
use crate::env;
use crate::settings::{Settings, quoted};

/// The socket's name.
const NAME: &str = "tertulia.sock";

/// The socket: as it was named, or one place per user, or per folder that everything was moved to.
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

/// The value of `--socket` that leads there again, if one was given.
pub fn flag(named: Option<&Path>, path: &Path) -> Option<String> {
    named.map(|_| quoted(&path.display().to_string()))
}
