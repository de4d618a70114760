//! Completion candidates: files, sessions, models, teams.

use std::collections::HashSet;

use tertulia_core::id::Reference;
use tertulia_core::query::{Filter, Lookup, Page, Row};
use tertulia_engine::text::ago;
use tertulia_engine::text::fit;

use super::{StoreService, files};
use crate::completion::{Asked, Candidate};
use crate::error::TuiResult;

/// Maximum number of sessions of this project, and of all projects.
const HERE: usize = 300;
const EVERYWHERE: usize = 300;
/// Maximum number of sessions found by id, regardless of age.
const BY_ID: usize = 20;
/// Maximum length of a title.
const TITLE: usize = 80;

impl StoreService {
    pub(super) async fn candidates(
        &self,
        asked: &Asked,
        agent: Option<&str>,
    ) -> TuiResult<Vec<Candidate>> {
        match asked {
            Asked::Files(written) => Ok(files::below(self.workspace(), written, files::PATIENCE)),
            Asked::Sessions(written) => self.sessions(written).await,
            Asked::Agents(_) => {
                let names = self.host.agent_names().await?;
                Ok(names.into_iter().map(Candidate::new).collect())
            }
            Asked::Models(_) => match agent {
                Some(agent) => {
                    let models = self.models(agent).await?.names;
                    Ok(models.into_iter().map(Candidate::new).collect())
                }
                None => Ok(Vec::new()),
            },
            Asked::Teams(_) => {
                let names = self.host.team_names().await?;
                Ok(names.into_iter().map(Candidate::new).collect())
            }
        }
    }

    /// Newest sessions, first those whose id matches, then those of this project, then all others.
    async fn sessions(&self, written: &str) -> TuiResult<Vec<Candidate>> {
        let (workspace, store) = (self.workspace(), self.workspace().sessions.store());
        let mut rows = Vec::new();
        let reference = Reference::Words(written.trim().to_owned());
        if let Some(part) = reference.id_part() {
            rows.extend(store.find(&Lookup::Part(part), BY_ID).await?);
        }
        for (filter, count) in [(workspace.here(), HERE), (Filter::default(), EVERYWHERE)] {
            rows.extend(store.list(&filter, &Page::first(count)).await?.rows);
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
