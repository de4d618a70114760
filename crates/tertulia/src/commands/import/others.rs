//! Files found next to sessions that are not sessions themselves.

use std::path::{Path, PathBuf};

use super::sources::Source;
use crate::ui::Ui;

/// Files found next to sessions that are not sessions themselves.
#[derive(Default)]
pub struct Others {
    /// Files that are not sessions, each with the reason.
    pub files: Vec<(PathBuf, &'static str)>,
    /// Session files that an index lists but that do not exist.
    pub missing: Vec<PathBuf>,
    /// True if one of the files is an index.
    pub indexed: bool,
}

impl Others {
    /// Records the session files that an index lists. Returns those that exist if the index was
    /// named on the command line; below a folder they are found anyway.
    pub fn of_index(&mut self, index: &Source, ids: &[String]) -> Vec<Source> {
        self.indexed = true;
        let folder = index.path.parent().unwrap_or(Path::new(""));
        let mut listed = Vec::new();
        for id in ids {
            // An id is a file name; replace separators so that it cannot point to another folder.
            let path = folder.join(format!("{}.json", id.replace(['/', '\\'], "_")));
            match path.is_file() {
                false => self.missing.push(path),
                true if index.in_folder => {}
                true => listed.push(Source::named(path)),
            }
        }
        listed
    }

    pub fn tell(&self, ui: &mut Ui) {
        const NAMED: usize = 5;
        for path in self.missing.iter().take(NAMED) {
            ui.warn(&format!(
                "{} is listed in the index and not there",
                path.display()
            ));
        }
        if self.missing.len() > NAMED {
            ui.warn(&format!(
                "{} more listed files are not there",
                self.missing.len() - NAMED
            ));
        }
        for (path, reason) in self.files.iter().take(NAMED) {
            ui.note(&format!("skipped {}: {reason}", path.display()));
        }
        if self.files.len() > NAMED {
            ui.note(&format!("skipped {} more files", self.files.len() - NAMED));
        }
    }
}
