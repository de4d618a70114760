//! Words of the user that are not in the log of a session yet, one file per session beside the partial
//! answers.

use std::path::PathBuf;
use std::{fs, io};

use super::engine::FilesEngine;
use super::{names, purge};
use crate::{StoreResult, Unsent, place};
use tertulia_core::id::SessionId;

impl FilesEngine {
    /// Path of the user's words that are not in the log of a session yet.
    pub(super) fn unsent_path(&self, id: SessionId) -> PathBuf {
        let name = format!("{id}{}", names::UNSENT_SUFFIX);
        self.dir.join(names::DRAFTS_FOLDER).join(name)
    }

    pub(super) fn keep_unsent_words(&mut self, id: SessionId, unsent: &Unsent) -> StoreResult<()> {
        let path = self.unsent_path(id);
        if unsent.is_empty() {
            return match path.exists() {
                true => purge::remove(&path).and_then(|()| place::sync_folder_of(&path)),
                false => Ok(()),
            };
        }
        let body = unsent.encode()?;
        place::make_folder(&self.dir.join(names::DRAFTS_FOLDER))?;
        place::write_over(&path, &body)
    }

    pub(super) fn unsent_words(
        &self,
        id: Option<SessionId>,
    ) -> StoreResult<Vec<(SessionId, Unsent)>> {
        let ids = match id {
            Some(id) => vec![id],
            None => names::unsent_in(&self.dir.join(names::DRAFTS_FOLDER))?,
        };
        let mut found = Vec::new();
        for id in ids {
            let path = self.unsent_path(id);
            match fs::read(&path) {
                Ok(body) => found.push((id, Unsent::decode(id, &body)?)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(place::trouble(&path, "cannot read", error)),
            }
        }
        Ok(found)
    }
}
