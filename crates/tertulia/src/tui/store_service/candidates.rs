//! Completion candidates: files, sessions, models, teams.

use std::collections::HashSet;

use tertulia_core::id::Reference;
use tertulia_core::query::{Filter, Lookup, Page, Row};

use super::{StoreService, files};
use crate::error::CommandResult;
use crate::moment::ago;
use crate::teams;
use crate::tui::completion::{Asked, Candidate};
use crate::ui::fit;

/// Maximum number of sessions of this project, and of all projects.
const HERE: usize = 300;
const EVERYWHERE: usize = 300;
/// Maximum number of sessions found by id, regardless of age.
const BY_ID: usize = 20;
/// Maximum length of a title.
const TITLE: usize = 80;

impl StoreService {
    pub(super) fn candidates(&self, asked: &Asked) -> CommandResult<Vec<Candidate>> {
        match asked {
            Asked::Files(written) => {
                let cwd = &self.workspace.settings.cwd;
                Ok(files::below(cwd, written, files::PATIENCE))
            }
            Asked::Sessions(written) => self.sessions(written),
            Asked::Models(_) => {
                let models = self.models()?;
                Ok(models.into_iter().map(Candidate::new).collect())
            }
            Asked::Teams(_) => {
                let names = teams::names(&self.workspace.settings.cwd)?;
                Ok(names.into_iter().map(Candidate::new).collect())
            }
        }
    }

    /// Newest sessions, first those whose id matches, then those of this project, then all others.
    fn sessions(&self, written: &str) -> CommandResult<Vec<Candidate>> {
        let (workspace, store) = (&self.workspace, self.workspace.sessions.store());
        let mut rows = Vec::new();
        let reference = Reference::Words(written.trim().to_owned());
        if let Some(part) = reference.id_part() {
            rows.extend(workspace.wait(store.find(&Lookup::Part(part), BY_ID))?);
        }
        for (filter, count) in [(workspace.here(), HERE), (Filter::default(), EVERYWHERE)] {
            rows.extend(
                workspace
                    .wait(store.list(&filter, &Page::first(count)))?
                    .rows,
            );
        }
        let mut known = HashSet::new();
        rows.retain(|row| known.insert(row.meta.id));
        let now = workspace.sessions.clock().now();
        let candidate = |row: &Row| {
            let meta = &row.meta;
            Candidate::new(meta.id.short())
                .labelled(fit(meta.title_or_untitled(), TITLE))
                .noted(ago(meta.updated_at, now))
        };
        Ok(rows.iter().map(candidate).collect())
    }
}
