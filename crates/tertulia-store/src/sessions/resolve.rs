//! Finds the session that a reference names.

use super::{Resolved, Sessions};
use crate::{Store, StoreResult};
use tertulia_core::id::Reference;
use tertulia_core::query::{Filter, Lookup, Page, Row};

impl Sessions {
    /// Resolves a reference by the user. `scope` says in which sessions `@` counts back: those of
    /// its project, or all sessions if the project has none.
    pub async fn resolve(&self, reference: &Reference, scope: &Filter) -> StoreResult<Resolved> {
        let rows = match reference {
            Reference::Id(id) => match self.store.find(&Lookup::Id(*id), 1).await? {
                // The original id of an imported session, which got another id because this one was
                // taken.
                none if none.is_empty() => self.original(&id.to_string()).await?,
                found => found,
            },
            Reference::Latest(back) => {
                let mut rows = self.newest(*back, scope).await?;
                if rows.is_empty() && scope.project.is_some() {
                    let everywhere = Filter {
                        project: None,
                        ..scope.clone()
                    };
                    rows = self.newest(*back, &everywhere).await?;
                }
                rows.into_iter().skip(*back).collect()
            }
            Reference::Words(words) => {
                let mut rows = self.store.find(&Lookup::Title(words.clone()), 10).await?;
                if let Some(part) = reference.id_part() {
                    for row in self.store.find(&Lookup::Part(part), 10).await? {
                        if !rows.iter().any(|known| known.meta.id == row.meta.id) {
                            rows.push(row);
                        }
                    }
                }
                if rows.is_empty() {
                    rows = self.original(words).await?;
                }
                prefer_live(rows)
            }
        };
        Ok(match rows.len() {
            0 => Resolved::None,
            1 => rows
                .into_iter()
                .next()
                .map_or(Resolved::None, |row| Resolved::One(Box::new(row))),
            _ => Resolved::Several(rows),
        })
    }

    /// Returns the sessions that were imported under an original id.
    async fn original(&self, id: &str) -> StoreResult<Vec<Row>> {
        self.store.find(&Lookup::Original(id.to_owned()), 10).await
    }

    /// Returns the newest sessions, up to position `back` from the newest.
    async fn newest(&self, back: usize, scope: &Filter) -> StoreResult<Vec<Row>> {
        let page = Page::first(back.saturating_add(1));
        Ok(self.store.list(scope, &page).await?.rows)
    }
}

/// Drops trashed sessions unless all are trashed.
fn prefer_live(rows: Vec<Row>) -> Vec<Row> {
    if rows.iter().any(|row| row.meta.trashed_at.is_none()) {
        rows.into_iter()
            .filter(|row| row.meta.trashed_at.is_none())
            .collect()
    } else {
        rows
    }
}
