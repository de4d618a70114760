//! `file_write`, `file_edit` and `file_delete`: change one file.

use std::io::Read;
use std::path::Path;

use rustix::fs::Stat;
use serde_json::json;

use super::arguments::Arguments;
use super::confine::Place;
use super::edit::{Edited, edited};
use super::replace::replace;
use crate::ToolSpec;
use tertulia_core::preview;

/// Maximum size in bytes of a file that is edited or shown as a diff.
const MOST_TEXT: u64 = 8 << 20;
/// Number of bytes read from a file to be deleted, to show its beginning.
const START: u64 = 4 * 1024;

pub(super) fn specs() -> [ToolSpec; 3] {
    let path = json!({"type": "string", "description": "The file, relative to the work folder."});
    [
        ToolSpec {
            name: "file_write".to_owned(),
            description: "Writes a whole file: makes it, with the folders above it, or replaces all it holds. To \
                          change a part of a file use `file_edit`."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": path,
                    "content": {"type": "string", "description": "All that the file shall hold."}
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        },
        ToolSpec {
            name: "file_edit".to_owned(),
            description: "Replaces one text in a file by another. `old_text` must be exactly as in the file, \
                          indentation included, and there only once: take in a few lines around the change, or \
                          set `replace_all`. Read the file first."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": path,
                    "old_text": {"type": "string", "description": "The text to be replaced."},
                    "new_text": {"type": "string", "description": "The text to stand there instead; empty to remove it."},
                    "replace_all": {"type": "boolean", "description": "Replace it wherever it is. Default: false."}
                },
                "required": ["path", "old_text", "new_text"],
                "additionalProperties": false
            }),
        },
        ToolSpec {
            name: "file_delete".to_owned(),
            description: "Deletes one regular file, for good. Folders and links are not deleted.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {"path": path},
                "required": ["path"],
                "additionalProperties": false
            }),
        },
    ]
}

#[derive(Debug)]
pub(super) struct FileWrite {
    place: Place,
    content: String,
}

impl FileWrite {
    /// File to be changed.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<FileWrite, String> {
        Ok(FileWrite {
            place: place_to_change(arguments, root)?,
            content: arguments.required("content")?,
        })
    }

    pub(super) fn preview(&self) -> Result<String, String> {
        let name = self.place.shown();
        let Some(opened) = self.place.existing_file()? else {
            return Ok(preview::diff(&name, None, &self.content));
        };
        let size = opened.size();
        match Text::read(&self.place) {
            Ok(old) => Ok(preview::diff(&name, Some(&old.text), &self.content)),
            Err(_) => Ok(format!(
                "{name} ({size} bytes) is too large or no text, and is replaced as a whole:\n{}",
                preview::diff(&name, None, &self.content)
            )),
        }
    }

    pub(super) fn run(&self) -> Result<String, String> {
        let name = self.place.shown();
        replace(&self.place, self.content.as_bytes(), None)
            .map_err(|error| format!("cannot write {name}: {error}"))?;
        let lines = count(self.content.lines().count(), "line");
        Ok(format!("wrote {lines} to {name}"))
    }
}

#[derive(Debug)]
pub(super) struct FileEdit {
    place: Place,
    old: String,
    new: String,
    all: bool,
}

impl FileEdit {
    /// File to be changed.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<FileEdit, String> {
        Ok(FileEdit {
            place: place_to_change(arguments, root)?,
            old: arguments.required("old_text")?,
            new: arguments.required("new_text")?,
            all: arguments.optional("replace_all")?.unwrap_or(false),
        })
    }

    pub(super) fn preview(&self) -> Result<String, String> {
        let (before, after) = self.edited()?;
        let name = self.place.shown();
        Ok(preview::diff(&name, Some(&before.text), &after.text))
    }

    /// Replaces the text. Searches it again: the file may have changed since the preview.
    pub(super) fn run(&self) -> Result<String, String> {
        let (before, after) = self.edited()?;
        let name = self.place.shown();
        replace(&self.place, after.text.as_bytes(), Some(&before.stat))
            .map_err(|error| format!("cannot change {name}: {error}"))?;
        Ok(match after.lines.as_slice() {
            [line] => format!("replaced 1 place in {name}, in line {line}"),
            lines => format!("replaced {} places in {name}", lines.len()),
        })
    }

    fn edited(&self) -> Result<(Text, Edited), String> {
        let before = Text::read(&self.place)?;
        let after = edited(&before.text, &self.old, &self.new, self.all)
            .map_err(|why| format!("{}: {why}", self.place.shown()))?;
        Ok((before, after))
    }
}

#[derive(Debug)]
pub(super) struct FileDelete {
    place: Place,
}

impl FileDelete {
    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<FileDelete, String> {
        let path: String = arguments.required("path")?;
        let place = Place::resolve(root, &path)?;
        if place.by_link {
            let path = preview::one_line(&path);
            // The target of the link was not named, and the link itself is no regular file.
            return Err(format!(
                "'{path}' is a link: only regular files are deleted"
            ));
        }
        Ok(FileDelete { place })
    }

    /// Returns the key for "always": this file only.
    pub(super) fn key(&self) -> String {
        format!("file_delete {}", self.place.full().display())
    }

    pub(super) fn preview(&self) -> Result<String, String> {
        let opened = self.place.file()?;
        let (name, size) = (self.place.shown(), opened.size());
        let mut start = Vec::new();
        opened
            .file
            .take(START)
            .read_to_end(&mut start)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        let text = match start.contains(&0) {
            true => None,
            false => Some(String::from_utf8_lossy(&start)),
        };
        Ok(preview::removal(&name, size, text.as_deref()))
    }

    pub(super) fn run(&self) -> Result<String, String> {
        let name = self.place.shown();
        let size = self.place.file()?.size();
        let (folder, last) = self
            .place
            .parent()
            .map_err(|error| format!("cannot delete {name}: {error}"))?;
        folder
            .remove(last)
            .and_then(|()| folder.sync())
            .map_err(|error| format!("cannot delete {name}: {error}"))?;
        Ok(format!("deleted {name} ({size} bytes)"))
    }
}

fn place_to_change(arguments: &Arguments<'_>, root: &Path) -> Result<Place, String> {
    let path: String = arguments.required("path")?;
    let place = Place::resolve(root, &path)?;
    if place.dangling {
        let path = preview::one_line(&path);
        return Err(format!(
            "'{path}' goes through a dangling link: not written"
        ));
    }
    Ok(place)
}

/// Text of a file, and the file's metadata when it was read.
struct Text {
    text: String,
    stat: Stat,
}

impl Text {
    fn read(place: &Place) -> Result<Text, String> {
        let opened = place.file()?;
        let (name, size) = (place.shown(), opened.size());
        let mut bytes = Vec::new();
        // One more than is allowed, because the file may be growing.
        opened
            .file
            .take(MOST_TEXT + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("cannot read {name}: {error}"))?;
        if bytes.len() as u64 > MOST_TEXT {
            return Err(format!("{name} is too large to be edited ({size} bytes)"));
        }
        if bytes.contains(&0) {
            return Err(format!("{name} is a binary file of {size} bytes, not text"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Text {
                text,
                stat: opened.stat,
            }),
            Err(_) => Err(format!("{name} is not UTF-8 text ({size} bytes)")),
        }
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}
