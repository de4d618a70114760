//! The older storage: a folder for sessions, messages and parts each, with a file for each of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::session::Session;
use crate::importer::{Input, ReadError, json_files};

/// Maximum size of a file of the tree.
const LIMIT: u64 = 100_000_000;

/// Folders of the storage that contain no sessions.
const OTHERS: &[&str] = &[
    "message",
    "part",
    "project",
    "session_diff",
    "session_share",
    "share",
    "todo",
];

/// Returns true if a file belongs to the storage and is not a session.
pub(super) fn is_part(path: &Path) -> bool {
    let names = path.iter().rev().filter_map(|name| name.to_str());
    let names: Vec<&str> = names.take(4).collect();
    let is_part = |name: &&str| OTHERS.contains(name);
    match names[..] {
        [file, folder, "storage", ..] | [file, _, folder, "storage", ..] => {
            file.ends_with(".json") && is_part(&folder)
        }
        _ => false,
    }
}

/// Reads a session from its file and those that belong to it.
pub(super) fn read(path: &Path, info: &Value) -> Result<Session, ReadError> {
    let mut session = Session::new(info);
    let Some(storage) = path.ancestors().nth(3) else {
        return Ok(session);
    };
    let mut messages = Vec::new();
    for file in json_files(&storage.join("message").join(file_name(&session.id)))? {
        match document(&file) {
            Some(message) => messages.push(message),
            None => session.skip("damaged messages"),
        }
    }
    messages.sort_by_key(|message| {
        let created = message.pointer("/time/created").and_then(Value::as_i64);
        (created, super::id_of(message).to_owned())
    });
    for message in messages {
        let folder = storage.join("part").join(file_name(super::id_of(&message)));
        let mut parts = Vec::new();
        for file in json_files(&folder)? {
            match document(&file) {
                Some(part) => parts.push(part),
                None => session.skip("damaged parts"),
            }
        }
        session.message(&message, &parts);
    }
    Ok(session)
}

/// Returns an id as the name of a file, which cannot lead to another folder.
fn file_name(id: &str) -> PathBuf {
    let id = id.replace(['/', '\\', '\0'], "_");
    PathBuf::from(match id.as_str() {
        "" | "." | ".." => "_",
        id => id,
    })
}

fn document(path: &Path) -> Option<Value> {
    let content = Input::of(path).read(LIMIT).ok()?;
    let document: Value = serde_json::from_slice(&content).ok()?;
    document.is_object().then_some(document)
}
