//! Which identities the project's folder has had, as the store and earlier runs know.

use tertulia_core::query::{Filter, Page, Trash};

use super::Workspace;
use crate::project::Folders;
use crate::settings::StoreUrl;

/// How many sessions are asked which folders they were begun in, where no file says it.
const REMEMBERED: usize = 5000;

impl Workspace {
    /// Finds the sessions that were made under earlier identities of the project. Where nothing was remembered
    /// the sessions themselves are asked.
    pub(super) fn meet_project(&mut self) {
        let file = self.settings.projects_file();
        if self.settings.store == StoreUrl::Memory || !self.settings.data.is_dir() {
            return;
        }
        if Folders::read(&file).is_none() {
            let newest = self.wait(self.sessions.store().list(
                &Filter {
                    trash: Trash::With,
                    ..Filter::default()
                },
                &Page::first(REMEMBERED),
            ));
            let rows = newest.map(|listing| listing.rows).unwrap_or_default();
            self.settings.folders = Folders::of_sessions(rows.iter().map(|row| &row.meta));
            self.settings.project.unite(&self.settings.folders);
        }
        if !self.settings.folders.is_empty() || self.settings.project.has_git() {
            self.remember_project();
        }
    }

    /// Remembers which identities the folder has now, so that none of its sessions is hidden when they change.
    /// What cannot be written is seen again next time.
    pub fn remember_project(&self) {
        let (file, now) = (
            self.settings.projects_file(),
            self.settings.project.record(),
        );
        if self.settings.store != StoreUrl::Memory
            && !(file.exists() && self.settings.folders.has(&now))
        {
            let _ = self.settings.folders.write(&file, &now);
        }
    }
}
