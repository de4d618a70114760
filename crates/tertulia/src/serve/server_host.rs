//! Implements the server's `Host`: access to sessions, agents and texts of this program.

use std::time::Duration;

use async_trait::async_trait;
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;
use tertulia_agents::approval::Approval;
use tertulia_core::entry::Kind;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Page, Row, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::setup::{ChatAgent, Setup, Target};
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};
use tertulia_engine::text::hint::Invocation;
use tertulia_formats::json;
use tertulia_server::host::{Found, Host, HostResult, Listed, Which};
use tertulia_server::protocol::{ErrorBody, SessionInfo};
use tertulia_store::{Progress, Start, StoreError};

use super::trouble::trouble;
use crate::agents::{self, Asked};
use crate::args::ApproveMode;
use crate::commands::export::{self, Format};
use crate::commands::rename;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::participants::{self, Existing, OpenOptions};
use crate::talk::{self, target};
use crate::ui::Ui;

/// How long a search waits for the index before it answers with what is indexed.
const SEARCH_PATIENCE: Duration = Duration::from_millis(800);

/// Gives the server access to the workspace.
#[derive(Clone)]
pub struct ServerHost {
    pub workspace: Workspace,
    pub approve: Option<ApproveMode>,
}

impl ServerHost {
    /// Runs blocking work on the blocking pool.
    async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ServerHost) -> CommandResult<T> + Send + 'static,
    ) -> HostResult<T> {
        let server_host = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&server_host)).await;
        match done {
            Ok(done) => done.map_err(|error| self.told(error)),
            Err(error) => Err(self.told(
                CommandError::new(ErrorKind::Failed, "the server could not do it").because(error),
            )),
        }
    }

    /// Returns a session, or `None` if it is new.
    fn row(&self, which: Which) -> CommandResult<Option<Row>> {
        match self.workspace.wait(self.workspace.sessions.row(which.id())) {
            Ok(row) => Ok(Some(row)),
            Err(StoreError::NotFound(_)) if matches!(which, Which::New(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a session without messages. Participants named in `spec` must be available; a
    /// default agent is chosen when the session is opened.
    fn create_session(&self, title: Option<&str>, spec: &SessionSpec) -> CommandResult<SessionId> {
        let title = title.map(rename::title).transpose()?;
        let settings = &self.workspace.settings;
        let id = self.new_id();
        let (start, opening) = match spec.participants {
            ParticipantSpec::Recorded => {
                let start = Start {
                    id,
                    kind: Kind::Chat,
                    title: None,
                    team: None,
                    project: Some(settings.project.id.clone()),
                    project_ids: settings.project.identities(),
                    cwd: Some(settings.cwd.display().to_string()),
                };
                (start, Vec::new())
            }
            _ => {
                let setup = self.setup(Which::New(id), spec)?;
                let opening = setup.participants.opening();
                match setup.target {
                    Target::New(start) => (start, opening),
                    Target::Resume(row, _) => {
                        return Err(StoreError::Exists(row.meta.id).into());
                    }
                }
            }
        };
        let start = Start { title, ..start };
        let sessions = &self.workspace.sessions;
        self.workspace.wait(sessions.create(&start, opening))?;
        Ok(start.id)
    }

    /// Prepares a session with its agents.
    fn setup(&self, which: Which, spec: &SessionSpec) -> CommandResult<Setup> {
        let mut ui = Ui::holding();
        let row = self.row(which)?;
        let id = row.is_none().then_some(which.id());
        let mut spec = spec.clone();
        // A client's choice of an agent applies to chats only: members of teams and pairs have
        // their own.
        if row.as_ref().is_some_and(|row| row.meta.kind != Kind::Chat)
            && matches!(spec.participants, ParticipantSpec::Chat(_))
        {
            spec.participants = ParticipantSpec::Recorded;
        }
        spec.approve = spec.approve.or(self.approve.map(Approval::from));
        let options = OpenOptions {
            can_ask: true,
            ephemeral: false,
            on_conflict: OnConflict::Fork,
            title: None,
            id,
            fork: false,
            sealed: false,
        };
        let existing = Existing { row, mirror: None };
        let prepared = participants::prepare(&spec, existing, &options, &self.workspace, &mut ui)?;
        let mut setup = prepared.setup;
        setup.notices = talk::messages(&mut ui).0;
        Ok(setup)
    }

    /// Converts an error for the protocol, and completes the commands in its hints for this
    /// server's store.
    fn told(&self, error: impl Into<CommandError>) -> ErrorBody {
        let mut trouble = trouble(&error.into());
        trouble.hint = trouble.hint.map(|hint| self.invocation().complete(&hint));
        trouble
    }

    fn invocation(&self) -> Invocation {
        Invocation::of(&self.workspace.settings.program)
    }

    fn exported(&self, row: &Row, format: &str) -> CommandResult<String> {
        let format = Format::from_str(format, true).map_err(|_| {
            let known = Format::value_variants().iter();
            let names = known.filter_map(ValueEnum::to_possible_value);
            let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
            CommandError::new(ErrorKind::Usage, format!("there is no form '{format}'"))
                .hint(format!("there are: markdown, {}", names.join(", ")))
        })?;
        let workspace = &self.workspace;
        let mut log = workspace.wait(workspace.sessions.load(row.meta.id))?;
        workspace.with_unfinished(row, &mut log)?;
        Ok(export::render(format, row, &log, &workspace.settings.cwd)?.content)
    }
}

#[async_trait]
impl Host for ServerHost {
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn now(&self) -> Timestamp {
        self.workspace.sessions.clock().now()
    }

    fn new_id(&self) -> SessionId {
        self.workspace.sessions.clock().session_id()
    }

    fn complete_hints(&self, text: &str) -> String {
        self.invocation().complete(text)
    }

    async fn agent(&self, agent: Option<&str>) -> HostResult<String> {
        let agent = agent.map(str::to_owned);
        self.aside(move |server_host| {
            let asked = Asked {
                name: agent.as_deref(),
                model: None,
            };
            let chosen = agents::choose(&server_host.workspace.settings, &asked, None)?;
            Ok(chosen.agent.name().to_owned())
        })
        .await
    }

    async fn prepare(&self, which: Which, spec: &SessionSpec) -> HostResult<Setup> {
        let spec = spec.clone();
        self.aside(move |server_host| server_host.setup(which, &spec))
            .await
    }

    async fn chat_agent(&self, which: Which, spec: &SessionSpec) -> HostResult<ChatAgent> {
        let spec = spec.clone();
        self.aside(move |server_host| {
            let row = server_host.row(Which::New(which.id()))?;
            let workspace = &server_host.workspace;
            participants::chat_agent(&spec, row.as_ref(), workspace, &mut Ui::holding())
        })
        .await
    }

    async fn check(&self, which: Which, spec: &SessionSpec) -> HostResult<()> {
        let spec = spec.clone();
        self.aside(move |server_host| {
            let there = server_host.row(which)?;
            if let Some(row) = there.filter(|row| row.meta.kind != Kind::Chat) {
                return Err(target::other_kind(&row, Kind::Chat));
            }
            server_host.setup(which, &spec).map(drop)
        })
        .await
    }

    async fn find(&self, name: &str) -> HostResult<Row> {
        let name = name.to_owned();
        self.aside(move |server_host| server_host.workspace.find(&name))
            .await
    }

    async fn find_place(&self, name: &str) -> HostResult<(Row, Option<u64>)> {
        let name = name.to_owned();
        self.aside(move |server_host| {
            let (row, seq) = server_host.workspace.find_place(&name)?;
            Ok((row, seq.map(|seq| seq.0)))
        })
        .await
    }

    async fn create(&self, title: Option<String>, spec: &SessionSpec) -> HostResult<SessionId> {
        let spec = spec.clone();
        self.aside(move |server_host| server_host.create_session(title.as_deref(), &spec))
            .await
    }

    async fn last(&self, row: &Row, count: usize) -> HostResult<Vec<Value>> {
        let row = row.clone();
        self.aside(move |server_host| {
            let workspace = &server_host.workspace;
            let mut log = workspace.wait(workspace.sessions.last_messages(&row.meta, count))?;
            workspace.with_unfinished(&row, &mut log)?;
            let messages: Vec<Value> = log
                .entries
                .iter()
                .filter(|entry| entry.message().is_some())
                .map(json::entry)
                .collect();
            let from = messages.len().saturating_sub(count);
            Ok(messages[from..].to_vec())
        })
        .await
    }

    async fn list(&self, limit: usize, cursor: Option<&str>) -> HostResult<Listed> {
        let cursor = cursor.map(str::parse).transpose();
        let page = Page {
            limit,
            cursor: cursor.map_err(|error| self.told(error))?,
        };
        let store = self.workspace.sessions.store();
        let listing = store
            .list(&Filter::default(), &page)
            .await
            .map_err(|error| self.told(error))?;
        Ok(Listed {
            sessions: listing.rows.iter().map(info).collect(),
            next: listing.next.map(|cursor| cursor.to_string()),
        })
    }

    async fn search(&self, words: &str, limit: usize) -> HostResult<Found> {
        let query = SearchQuery {
            words: SearchTerms::parse(words).map_err(|error| self.told(error))?,
            filter: Filter::default(),
            speaker: None,
            role: None,
            limit,
        };
        let store = self.workspace.sessions.store();
        let hits = store
            .search(&query, &Progress::unseen().within(SEARCH_PATIENCE))
            .await;
        let hits = hits.map_err(|error| self.told(error))?;
        Ok(Found {
            hits: hits.hits.iter().map(json::hit).collect(),
            total: hits.total,
            pending: hits.pending,
        })
    }

    async fn fork(&self, row: &Row, seq: Option<u64>) -> HostResult<SessionId> {
        let row = row.clone();
        self.aside(move |server_host| {
            let forked = target::fork(&server_host.workspace, &row, seq.map(Seq), None)?;
            Ok(forked.row.meta.id)
        })
        .await
    }

    async fn trash(&self, row: &Row) -> HostResult<()> {
        let sessions = &self.workspace.sessions;
        let operation = sessions.clock().entry_id();
        let trashed = sessions.trash(row.meta.id, operation).await;
        trashed.map(|_| ()).map_err(|error| self.told(error))
    }

    async fn export(&self, row: &Row, format: &str) -> HostResult<String> {
        let (row, format) = (row.clone(), format.to_owned());
        self.aside(move |server_host| server_host.exported(&row, &format))
            .await
    }
}

fn info(row: &Row) -> SessionInfo {
    let meta = &row.meta;
    SessionInfo {
        session_id: meta.id.to_string(),
        title: meta.title.clone(),
        created_at: meta.created_at.to_string(),
        updated_at: meta.updated_at.to_string(),
        message_count: meta.messages,
        total_tokens: meta.tokens.input + meta.tokens.output,
        tags: meta.tags.clone(),
    }
}
