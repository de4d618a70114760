//! Requests about sessions: create, configure, load, list, search, fork, delete, export.

use tertulia_agents::approval::{Approval, PermissionChange};
use tertulia_core::query::Row;
use tertulia_engine::spec::{AgentSpec, ParticipantSpec, SessionSpec};

use super::Client;
use crate::host::{HostResult, Search, Which};
use crate::hosted::{SessionAction, SessionRequest};
use crate::protocol::{Answer, Ask, ErrorBody, ErrorKind, Id, LONGEST_LINE};
use crate::spec::Wish;

/// Default and maximum number of search hits.
const SEARCHED: (usize, usize) = (20, 1000);
/// Maximum number of messages sent when a session is loaded.
const LOADED: usize = 1000;

impl Client {
    /// Executes a request about sessions.
    pub(super) async fn about_sessions(&mut self, ask: Ask) -> HostResult<Answer> {
        Ok(match ask {
            ask @ Ask::SessionCreate { .. } => self.create(ask).await?,
            Ask::SessionConfigure {
                session_id,
                agent,
                model,
                approve,
                revoke,
            } => {
                let which = self.configured(session_id.as_deref()).await?;
                if agent.is_some() || model.is_some() {
                    self.switch(which, AgentSpec { agent, model }).await?;
                }
                self.permit(which, approve, revoke)?;
                Answer::SessionConfigured {
                    session_id: which.id().to_string(),
                }
            }
            Ask::SessionLoad { session_id, last } => self.load(&session_id, last).await?,
            Ask::SessionSearch {
                query,
                limit,
                session_id,
                selection,
            } => {
                let limit = limit.unwrap_or(SEARCHED.0).min(SEARCHED.1);
                let session = self.named(session_id.as_deref()).await?;
                let search = Search {
                    words: query,
                    limit,
                    session,
                    selection,
                };
                let found = self.host().search(&search).await?;
                Answer::SessionSearchResult {
                    hits: found.hits,
                    total: found.total,
                    pending: found.pending,
                }
            }
            Ask::SessionFork { session_id, seq } => {
                let (row, at) = self.host().find_place(&session_id).await?;
                let id = self.host().fork(&row, seq.or(at)).await?;
                Answer::SessionForked {
                    session_id: id.to_string(),
                }
            }
            Ask::SessionDelete { session_id } => self.delete(&session_id).await?,
            Ask::SessionExport { session_id, format } => {
                let row = self.row(session_id.as_deref()).await?;
                let content = self.host().export(&row, &format).await?;
                fits(content.len())?;
                Answer::SessionExported { content }
            }
            other => self.browse(other).await?,
        })
    }

    async fn create(&self, ask: Ask) -> HostResult<Answer> {
        let (title, wish, is_deferred) = match ask {
            Ask::SessionCreate {
                title,
                kind,
                cwd,
                agent,
                model,
                team,
                instructor,
                worker,
                max_rounds,
                approve,
                deferred,
            } => {
                let wish = Wish {
                    kind,
                    agent,
                    model,
                    team,
                    instructor,
                    worker,
                    max_rounds,
                    approve,
                    cwd,
                };
                (title, wish, deferred)
            }
            _ => (None, Wish::default(), false),
        };
        if is_deferred {
            return self.create_later(title, wish).await;
        }
        let id = if wish == Wish::default() {
            // The agent is chosen when the session is opened.
            self.host().create(title, &SessionSpec::default()).await?
        } else {
            let spec = wish.spec(&self.participants)?;
            let id = self.host().create(title, &spec).await?;
            self.hub.set_spec(id, spec);
            id
        };
        self.guest.set_current(Some(Which::Known(id)));
        Ok(Answer::SessionCreated {
            session_id: id.to_string(),
        })
    }

    /// Gives an id to a session that is created with its first message.
    async fn create_later(&self, title: Option<String>, wish: Wish) -> HostResult<Answer> {
        if title.is_some() {
            let words = "a session that is created later has no title yet";
            return Err(ErrorBody::new(ErrorKind::Usage, words)
                .hint("leave out `deferred`, or name it with `session_rename` later"));
        }
        let which = Which::New(self.host().new_id());
        if wish != Wish::default() {
            let spec = wish.spec(&self.participants)?;
            self.host().check(which, &spec).await?;
            self.hub.set_spec(which.id(), spec);
        }
        self.guest.set_current(Some(which));
        Ok(Answer::SessionCreated {
            session_id: which.id().to_string(),
        })
    }

    /// Returns the session to configure.
    async fn configured(&self, session: Option<&str>) -> HostResult<Which> {
        match (session, self.guest.current()) {
            (Some(session), _) => self.known(session).await,
            (None, Some(which)) => Ok(which),
            (None, None) => Err(no_current_session()),
        }
    }

    /// Changes the agent of a chat after the running turn.
    async fn switch(&self, which: Which, agent: AgentSpec) -> HostResult<()> {
        let mut spec = self.hub.spec(which.id(), &self.participants);
        let agent = match &spec.participants {
            // Another agent has another default model.
            ParticipantSpec::Chat(now) if agent.agent.is_none() => AgentSpec {
                agent: now.agent.clone(),
                ..agent
            },
            _ => agent,
        };
        spec.participants = ParticipantSpec::Chat(agent);
        // Fails if the agent is not available, or the session is not a chat.
        self.host().check(which, &spec).await?;
        self.hub.set_spec(which.id(), spec.clone());
        let request = self.session_request(SessionAction::Switch(Box::new(spec)));
        self.hub
            .submit(&self.guest, which, &self.participants, request)
            .map(drop)
    }

    /// Changes the tool permissions: immediately if the session is open, else by opening it.
    fn permit(
        &self,
        which: Which,
        approve: Option<Approval>,
        revoke: Vec<String>,
    ) -> HostResult<()> {
        let mode = approve.map(PermissionChange::Mode);
        let changes = mode
            .into_iter()
            .chain(revoke.into_iter().map(PermissionChange::Revoke));
        for change in changes {
            match self
                .hub
                .hosted(which.id())
                .filter(|hosted| hosted.is_permitted())
            {
                Some(hosted) => hosted.change_permissions(&change),
                None => {
                    let request = self.session_request(SessionAction::Permit(change));
                    self.hub
                        .submit(&self.guest, which, &self.participants, request)?;
                }
            }
        }
        Ok(())
    }

    /// Saves the current session: after all earlier requests, retries saving held messages. Returns
    /// whether everything is on disk, or `None` if the session's task replies later.
    pub(super) async fn save(&self, id: Option<Id>) -> HostResult<Option<bool>> {
        let Some(which) = self.guest.current() else {
            return Ok(Some(false));
        };
        let hosted = self.hub.hosted(which.id());
        if let Some(hosted) = hosted.filter(|hosted| hosted.task().is_some()) {
            let request = SessionRequest {
                asker: Some(self.reply_to(id)),
                ..self.session_request(SessionAction::Save)
            };
            match hosted.submit(request) {
                Ok(_) => return Ok(None),
                // The conversation has ended meanwhile.
                Err(trouble) if trouble.kind == ErrorKind::NotFound => {}
                Err(trouble) => return Err(trouble),
            }
        }
        // No conversation is running, so nothing is held in memory.
        let kept = self.host().find(&which.id().to_string()).await.is_ok();
        Ok(Some(kept && !self.hub.is_left_unsaved(which.id())))
    }

    async fn row(&self, session: Option<&str>) -> HostResult<Row> {
        match (session, self.guest.current()) {
            (Some(session), _) => self.host().find(session).await,
            (None, Some(which)) => self.host().find(&which.id().to_string()).await,
            (None, None) => Err(no_current_session()),
        }
    }

    async fn load(&self, session: &str, last: Option<usize>) -> HostResult<Answer> {
        let row = self.host().find(session).await?;
        let messages = match last {
            Some(count) => Some(self.host().last(&row, count.min(LOADED)).await?),
            None => None,
        };
        let size = messages
            .iter()
            .flatten()
            .map(|message| message.to_string().len());
        fits(size.sum())?;
        self.guest.set_current(Some(Which::Known(row.meta.id)));
        Ok(Answer::SessionLoaded {
            session_id: row.meta.id.to_string(),
            message_count: row.meta.messages,
            messages,
        })
    }

    async fn delete(&self, session: &str) -> HostResult<Answer> {
        let id = match self.known(session).await {
            Ok(which) => which.id(),
            // Deleting a missing session succeeds: repeating the request gives the same reply.
            Err(trouble) if trouble.kind == ErrorKind::NotFound => {
                return Ok(Answer::SessionDeleted { success: true });
            }
            Err(trouble) => return Err(trouble),
        };
        if let Some(hosted) = self.hub.hosted(id) {
            if hosted.is_answering() {
                let words = format!("an agent is answering in session {}", id.short());
                return Err(ErrorBody::new(ErrorKind::Conflict, words)
                    .hint("stop it first, with `cancel` or `stop`"));
            }
            if let Some(task) = hosted.stop() {
                self.gone(&task.gone, &task.insist).await;
            }
        }
        match self.host().find(&id.to_string()).await {
            Ok(row) => self.host().trash(&row).await?,
            // A session that was running need not be in the store.
            Err(trouble) if trouble.kind == ErrorKind::NotFound => {}
            Err(trouble) => return Err(trouble),
        }
        // The next query starts a new session.
        if self.guest.current().is_some_and(|which| which.id() == id) {
            self.guest.set_current(None);
        }
        Ok(Answer::SessionDeleted { success: true })
    }
}

fn no_current_session() -> ErrorBody {
    ErrorBody::new(ErrorKind::Usage, "there is no current session")
        .hint("name one with `session_id`, or load one with `session_load`")
}

/// Rejects content that would exceed the maximum line length.
fn fits(size: usize) -> HostResult<()> {
    if size <= LONGEST_LINE {
        return Ok(());
    }
    let words = format!("the answer has {size} bytes, more than a line may have");
    Err(ErrorBody::new(ErrorKind::TooLarge, words)
        .hint("ask for less, or write it to a file: `tertulia export`"))
}
