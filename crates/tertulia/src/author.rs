//! The author of entries: the user's name, and the name of the machine.

use tertulia_core::entry::Author;

use crate::env;

/// Returns the author of what this process writes. `name` is that of the settings.
pub fn author(name: Option<&str>) -> Author {
    let name = name
        .map(str::to_owned)
        .or_else(|| env::text("USER"))
        .or_else(|| env::text("LOGNAME"))
        .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
    Author {
        name: name.into(),
        host: host().unwrap_or_else(|| "unknown".to_owned()).into(),
    }
}

/// Returns the name of this machine.
pub fn host() -> Option<String> {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let read = |file| std::fs::read_to_string(file).ok();
    let name = files.into_iter().find_map(read)?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
