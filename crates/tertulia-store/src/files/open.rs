//! Opens a folder: checks the marker and the format version, or creates a new store.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::names::MARKER;
use crate::{StoreError, StoreResult, place};

/// The newest version of the folder layout that this program reads.
pub const FORMAT: u32 = 2;

/// The version without compressed logs, which new stores have: earlier programs read them, too.
const PLAIN_FORMAT: u32 = 1;

const BACKEND: &str = "files";

#[derive(Serialize, Deserialize)]
struct Marker {
    format: u32,
    backend: String,
}

/// Makes sure that the folder is a store that this program can read; creates one if the folder is
/// missing or empty.
pub(super) fn open(dir: &Path) -> StoreResult<()> {
    match fs::metadata(dir) {
        Ok(found) if !found.is_dir() => {
            return Err(StoreError::not_a_store(
                dir,
                "it is a file; for a database write sqlite:PATH",
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => place::make_folder(dir)?,
        Err(error) => return Err(place::trouble(dir, "cannot look at", error)),
    }
    if read_marker(dir)? {
        return Ok(());
    }
    let strangers = fs::read_dir(dir)
        .map_err(|error| place::trouble(dir, "cannot read the folder", error))?
        .filter_map(Result::ok)
        .any(|entry| !entry.file_name().to_string_lossy().starts_with(MARKER));
    // Another process may have created the store meanwhile.
    if strangers && !read_marker(dir)? {
        return Err(StoreError::not_a_store(
            dir,
            "it holds other files and no tertulia-store.json",
        ));
    }
    if strangers { Ok(()) } else { make_marker(dir) }
}

/// Returns true if there is a marker; fails if this program cannot use it.
fn read_marker(dir: &Path) -> StoreResult<bool> {
    let path = dir.join(MARKER);
    let content = match fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(place::trouble(&path, "cannot read", error)),
    };
    // A newer marker may have other fields, so the format number is checked first.
    let number = serde_json::from_slice::<serde_json::Value>(&content)
        .ok()
        .and_then(|marker| u32::try_from(marker.get("format")?.as_u64()?).ok());
    if let Some(found) = number.filter(|found| *found > FORMAT) {
        return Err(StoreError::NewerFormat {
            place: dir.display().to_string(),
            found,
            known: FORMAT,
        });
    }
    match serde_json::from_slice::<Marker>(&content) {
        Ok(marker) if marker.backend == BACKEND => Ok(true),
        Ok(_) => Err(StoreError::not_a_store(
            dir,
            "its tertulia-store.json names another backend",
        )),
        Err(_) => Err(StoreError::not_a_store(
            dir,
            "its tertulia-store.json is not readable",
        )),
    }
}

/// Returns the version of a store's layout.
pub(super) fn format(dir: &Path) -> StoreResult<u32> {
    let path = dir.join(MARKER);
    let content = fs::read(&path).map_err(|error| place::trouble(&path, "cannot read", error))?;
    let marker: Option<Marker> = serde_json::from_slice(&content).ok();
    Ok(marker.map_or(PLAIN_FORMAT, |marker| marker.format))
}

/// Marks the store as one with compressed logs, so that earlier programs refuse it instead of missing
/// sessions. Changes one byte in place: the marker is also the lock on the store's structure.
pub(super) fn allow_compressed(dir: &Path) -> StoreResult<()> {
    if format(dir)? >= FORMAT {
        return Ok(());
    }
    let path = dir.join(MARKER);
    let say = |error| place::trouble(&path, "cannot change", error);
    let content = fs::read_to_string(&path).map_err(say)?;
    let before = content.find("\"format\"").and_then(|key| {
        let digit = content[key..].find(|c: char| c.is_ascii_digit())?;
        Some(key + digit)
    });
    let Some(at) = before else {
        return Err(StoreError::not_a_store(
            dir,
            "its tertulia-store.json names no format",
        ));
    };
    let mark = || -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&path)?;
        file.write_all_at(FORMAT.to_string().as_bytes(), at as u64)?;
        file.sync_all()
    };
    mark().map_err(say)
}

fn make_marker(dir: &Path) -> StoreResult<()> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let path = dir.join(MARKER);
    // Two processes may create the store at once: each writes its own temporary file, and both end
    // up under the same name.
    let unique = MADE.fetch_add(1, Ordering::Relaxed);
    let marker = Marker {
        format: PLAIN_FORMAT,
        backend: BACKEND.to_owned(),
    };
    let mut line = serde_json::to_vec(&marker)
        .map_err(|error| StoreError::failed("cannot make a store", error))?;
    line.push(b'\n');
    place::replace_file(
        &path,
        &format!(".new-{}-{unique}", std::process::id()),
        &line,
    )?;
    place::sync_folder_of(&path)
}
