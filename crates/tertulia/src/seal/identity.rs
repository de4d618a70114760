//! The user's key file: an age identity file, readable by its owner only.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use tertulia_store::KeyError;
use zeroize::Zeroizing;

use super::KeyResult;

/// Permission bits of the group and of others.
const FOREIGN: u32 = 0o077;

/// Reads the keys of a file. Refuses a file that others can read, or that lies beside the sessions
/// that it opens: a copy of the folder would then hold both.
pub fn read(file: &Path, store: Option<&Path>) -> KeyResult<Vec<Identity>> {
    let refused = |reason: String| KeyError(format!("{} {reason}", file.display()));
    let unreadable = |error: io::Error| refused(format!("cannot be read: {error}"));
    let found = fs::metadata(file).map_err(unreadable)?;
    let mode = found.permissions().mode();
    if mode & FOREIGN != 0 {
        return Err(refused(format!(
            "may be read by others (mode {:o}): chmod 600 it",
            mode & 0o777
        )));
    }
    check_apart(file, store)?;
    let text = Zeroizing::new(fs::read_to_string(file).map_err(unreadable)?);
    let lines = text.lines().map(str::trim);
    let keys: Result<Vec<Identity>, &str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::parse)
        .collect();
    match keys {
        Ok(keys) if !keys.is_empty() => Ok(keys),
        Ok(_) => Err(refused("has no key in it".to_owned())),
        Err(_) => Err(refused(
            "has a line that is no age key (AGE-SECRET-KEY-1…)".to_owned(),
        )),
    }
}

/// Fails if a key file would lie in the store's folder.
fn check_apart(file: &Path, store: Option<&Path>) -> KeyResult<()> {
    let Some(store) = store.and_then(|store| store.canonicalize().ok()) else {
        return Ok(());
    };
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    match folder {
        Some(folder) if folder.starts_with(&store) => Err(KeyError(format!(
            "{} lies in the folder of the store: keep the key elsewhere",
            file.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes a new key to a file that does not exist yet, and returns its recipient.
pub fn make(file: &Path, store: Option<&Path>) -> KeyResult<String> {
    if let Some(folder) = file.parent() {
        // The first key often has no folder yet; a failure shows when the file is written.
        let _ = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
    }
    check_apart(file, store)?;
    let identity = Identity::generate();
    let recipient = identity.to_public().to_string();
    let key = identity.to_string();
    let text = Zeroizing::new(format!(
        "# public key: {recipient}\n{}\n",
        key.expose_secret()
    ));
    let write = || -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut made = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        made.set_permissions(fs::Permissions::from_mode(0o600))?;
        made.write_all(text.as_bytes())?;
        made.sync_all()
    };
    write()
        .map_err(|error| KeyError(format!("{} cannot be written: {error}", file.display())))
        .map(|()| recipient)
}
