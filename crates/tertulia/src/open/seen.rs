//! Learns earlier identities of the project's folder from the store and from earlier runs.

use std::path::Path;

use tertulia_core::query::{Filter, Page, Trash};
use tertulia_core::session::SessionMeta;

use super::Workspace;
use crate::error::CommandResult;
use crate::project::Folders;
use crate::settings::StoreUrl;

/// Number of sessions that are searched for folders where no file lists them.
const REMEMBERED: usize = 5000;

impl Workspace {
    /// Adds earlier identities of the project, so that their sessions are found. Without a file
    /// that lists them, reads them from the sessions.
    pub(super) fn meet_project(&mut self) {
        let file = self.settings.projects_file();
        if self.settings.store == StoreUrl::Memory || !self.settings.data.is_dir() {
            return;
        }
        let mut has_sessions = false;
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
            has_sessions = !rows.is_empty();
        }
        // With the file, the next command need not read the sessions.
        if has_sessions || !self.settings.folders.is_empty() || self.settings.project.has_git() {
            self.remember_project();
        }
    }

    /// Returns the workspace in another folder, with its settings. The store stays.
    pub fn in_folder(&self, folder: &Path) -> CommandResult<Workspace> {
        Ok(Workspace {
            settings: self.settings.in_folder(folder)?,
            sessions: self.sessions.clone(),
            aside: self.aside,
        })
    }

    /// Removes the folder of a session that was sealed from the list of known ones, unless sessions that
    /// are not sealed name it.
    pub fn forget_project(&self, meta: &SessionMeta) -> CommandResult<()> {
        let folder = meta.cwd.as_ref().map(|cwd| format!("dir:{cwd}"));
        let ids = meta.project.iter().chain(&meta.project_ids).chain(&folder);
        let ids: Vec<String> = ids.cloned().collect();
        let filter = Filter {
            project: Some(ids.iter().cloned().collect()),
            trash: Trash::With,
            ..Filter::default()
        };
        let mut page = Page::first(REMEMBERED);
        loop {
            let listing = self.wait(self.sessions.stored().list(&filter, &page))?;
            if listing.rows.iter().any(|row| row.meta.seal.is_none()) {
                return Ok(());
            }
            match listing.next {
                Some(next) => page.cursor = Some(next),
                None => return Folders::forget(&self.settings.projects_file(), &ids),
            }
        }
    }

    /// Records the identities of the folder, so that none of its sessions is hidden when they
    /// change. If that fails, the next run tries again.
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
