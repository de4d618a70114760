//! Requests of clients that show sessions: lists, pages, families, statistics, and changes of titles,
//! tags and trash.

use tertulia_core::project;
use tertulia_core::query::Row;
use tertulia_formats::html;

use super::Client;
use crate::host::HostResult;
use crate::protocol::{Answer, Ask, ErrorBody, ErrorKind, ParentInfo, Selection, SessionInfo};
use crate::transcript::{self, Wanted};

/// Default and maximum number of listed sessions.
const LISTED: (usize, usize) = (50, 1000);
/// Default and maximum number of entries of a page.
const PAGED: (usize, usize) = (60, 500);
/// Maximum bytes of a text to render.
const RENDERED: usize = 200_000;

impl Client {
    /// Executes a request that shows sessions, or changes what lists show.
    pub(super) async fn browse(&self, ask: Ask) -> HostResult<Answer> {
        Ok(match ask {
            Ask::SessionList {
                limit,
                cursor,
                selection,
                facets,
            } => self.list(limit, cursor, selection, facets).await?,
            ask @ Ask::SessionPage { .. } => self.page(ask).await?,
            Ask::Render { text } => rendered(text, html::text).await?,
            Ask::RenderPreview { text } => rendered(text, html::preview).await?,
            Ask::SessionRename { session_id, title } => {
                let row = self.host().find(&session_id).await?;
                let row = self.host().rename(&row, &title).await?;
                Answer::SessionRenamed {
                    session_id: row.meta.id.to_string(),
                    title: row.meta.title.unwrap_or_default(),
                }
            }
            Ask::SessionTag {
                session_id,
                add,
                remove,
            } => {
                let row = self.host().find(&session_id).await?;
                let row = self.host().tag(&row, add, remove).await?;
                Answer::SessionTagged {
                    session_id: row.meta.id.to_string(),
                    tags: row.meta.tags,
                }
            }
            Ask::SessionRestore { session_id } => {
                let row = self.host().restore(&session_id).await?;
                Answer::SessionRestored {
                    session_id: row.meta.id.to_string(),
                }
            }
            Ask::SessionUndo {} => {
                let undone = self.host().undo().await?;
                let texts: Vec<&str> = undone.iter().map(|(_, text)| text.as_str()).collect();
                Answer::SessionUndone {
                    text: texts.join("; "),
                    session_id: undone.first().map(|(id, _)| id.to_string()),
                }
            }
            Ask::SessionFamily { session_id } => {
                let row = self.host().find(&session_id).await?;
                Answer::SessionFamilyResult {
                    sessions: self.host().family(&row).await?,
                }
            }
            Ask::Stats { since, by } => Answer::StatsResult {
                stats: self.host().stats(since, by).await?,
            },
            Ask::Catalog {} => {
                let catalog = self.host().catalog().await?;
                Answer::CatalogResult {
                    agents: catalog.agents,
                    teams: catalog.teams,
                    folders: catalog.folders,
                }
            }
            Ask::Models { agent } => Answer::ModelsResult {
                models: self.host().models(&agent).await?,
            },
            other => {
                let words = format!("{other:?} is no request about sessions");
                return Err(ErrorBody::new(ErrorKind::Failed, words));
            }
        })
    }

    async fn list(
        &self,
        limit: Option<usize>,
        cursor: Option<String>,
        selection: Selection,
        facets: bool,
    ) -> HostResult<Answer> {
        let limit = limit.unwrap_or(LISTED.0).min(LISTED.1);
        let listed = self.host().list(&selection, limit, cursor.as_deref());
        let listed = listed.await?;
        let (projects, tags) = match facets {
            true => {
                let (projects, tags) = self.host().facets().await?;
                (Some(projects), Some(tags))
            }
            false => (None, None),
        };
        Ok(Answer::SessionListResult {
            sessions: listed.rows.iter().map(|row| self.info(row)).collect(),
            next: listed.next,
            hidden: listed.hidden,
            projects,
            tags,
        })
    }

    async fn page(&self, ask: Ask) -> HostResult<Answer> {
        let Ask::SessionPage {
            session_id,
            before,
            after,
            around,
            limit,
        } = ask
        else {
            return Err(ErrorBody::new(ErrorKind::Failed, "no page is asked for"));
        };
        let wanted = match (before, after, around) {
            (None, None, None) => Wanted::End,
            (Some(seq), None, None) => Wanted::Before(seq),
            (None, Some(seq), None) => Wanted::After(seq),
            (None, None, Some(seq)) => Wanted::Around(seq),
            _ => {
                let words = "only one of `before`, `after` and `around` can be given";
                return Err(ErrorBody::new(ErrorKind::Usage, words));
            }
        };
        let limit = limit.unwrap_or(PAGED.0).clamp(1, PAGED.1);
        let host = self.host();
        let row = host.find(&session_id).await?;
        let part = transcript::read(host.sessions(), &row, host.zone(), wanted, limit);
        let part = part.await.map_err(|error| ErrorBody::from(&error))?;
        let head = row.meta.head.seq.0;
        Ok(Answer::SessionPageResult {
            session_id: row.meta.id.to_string(),
            session: Box::new(self.info(&row)),
            entries: part.entries,
            first: part.first,
            last: part.last,
            head,
            more_before: part.first > 1,
            more_after: part.last < head,
        })
    }

    /// Describes a session for lists.
    fn info(&self, row: &Row) -> SessionInfo {
        let meta = &row.meta;
        let hosted = self.hub.hosted(meta.id);
        let live = hosted.and_then(|hosted| hosted.info());
        let project = Some(project::name_of(meta)).filter(|name| !name.is_empty());
        let is_locked = meta.is_locked();
        SessionInfo {
            session_id: meta.id.to_string(),
            title: meta.title.clone(),
            created_at: meta.created_at.to_string(),
            updated_at: meta.updated_at.to_string(),
            message_count: meta.messages,
            total_tokens: meta.tokens.input + meta.tokens.output,
            tags: meta.tags.clone(),
            kind: meta.kind.name().to_owned(),
            team: meta.team.clone(),
            agents: meta.agents.clone(),
            project: project.filter(|_| !is_locked),
            project_id: meta.project.clone().filter(|_| !is_locked),
            parent: meta.parent.as_ref().map(|parent| ParentInfo {
                id: parent.id.to_string(),
                seq: parent.seq.0,
                relation: parent.relation.name().to_owned(),
            }),
            status: meta.state().to_owned(),
            open: row.open,
            live: live.map(|live| live.state),
            sealed: meta.seal.is_some(),
        }
    }
}

/// Renders a text on the blocking pool, so that a long one delays no other client.
async fn rendered(text: String, render: fn(&str) -> String) -> HostResult<Answer> {
    if text.len() > RENDERED {
        let words = format!("the text has {} bytes, more than {RENDERED}", text.len());
        return Err(ErrorBody::new(ErrorKind::TooLarge, words));
    }
    let rendered = tokio::task::spawn_blocking(move || render(&text)).await;
    let html = rendered.map_err(|error| ErrorBody::new(ErrorKind::Failed, error.to_string()))?;
    Ok(Answer::Rendered { html })
}
