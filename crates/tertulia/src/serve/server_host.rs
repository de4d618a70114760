//! Implements the server's `Host`: access to sessions, agents and texts of this program.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use clap::ValueEnum;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use tertulia_agents::approval::Approval;
use tertulia_core::entry::Kind;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Page, Row};
use tertulia_core::session::SessionMeta;
use tertulia_engine::log_writer::OnConflict;
use tertulia_engine::notification::Occasion;
use tertulia_engine::setup::{ChatAgent, Setup, Target};
use tertulia_engine::spec::{ParticipantSpec, SessionSpec};
use tertulia_engine::text::hint::Invocation;
use tertulia_formats::json;
use tertulia_server::host::{
    Catalog, Found, Host, HostResult, Listed, Search, StoreChanges, Which,
};
use tertulia_server::protocol::{ErrorBody, ProjectInfo, Selection};
use tertulia_store::{Sessions, Start, StoreError};

use super::browsing;
use super::file_watch::StoreWatch;
use super::trouble::trouble;
use crate::agents::{self, Asked};
use crate::args::ApproveMode;
use crate::commands::export::{self, Format};
use crate::commands::{self, log, rename, restore, stats, tag, undo};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::participants::{self, Existing, OpenOptions};
use crate::talk::{self, target};
use crate::ui::Ui;

/// Gives the server access to the workspace.
#[derive(Clone)]
pub struct ServerHost {
    pub workspace: Workspace,
    pub approve: Option<ApproveMode>,
    pub watch: StoreWatch,
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
        // Resolved once: what is checked is what is recorded.
        let folder = spec.cwd.as_deref().map(|folder| self.known_folder(folder));
        let spec = &SessionSpec {
            cwd: folder.transpose()?,
            ..spec.clone()
        };
        let workspace = match &spec.cwd {
            Some(folder) => &self.workspace.in_folder(folder)?,
            None => &self.workspace,
        };
        let settings = &workspace.settings;
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
                    terms: None,
                };
                (start, Vec::new())
            }
            _ => {
                let setup = self.setup(Which::New(id), spec)?;
                let unready = setup.participants.unready();
                if let Some(error) = crate::talk::runtime()?.block_on(unready) {
                    return Err(error.into());
                }
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

    /// Returns the folder that a client named for a new session.
    fn known_folder(&self, folder: &Path) -> CommandResult<PathBuf> {
        let known = folder.canonicalize().ok().filter(|folder| {
            *folder == self.workspace.settings.cwd
                || participants::is_known(folder, &self.workspace)
        });
        known.filter(|folder| folder.is_dir()).ok_or_else(|| {
            let words = format!("{} is not a folder of a known project", folder.display());
            CommandError::new(ErrorKind::Usage, words)
                .hint("start a session there once with `tertulia`; then clients can, too")
        })
    }

    /// Prepares a session with its agents.
    fn setup(&self, which: Which, spec: &SessionSpec) -> CommandResult<Setup> {
        let mut ui = Ui::holding();
        ui.invocation = self.invocation();
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
        let options = OpenOptions {
            can_ask: true,
            ephemeral: false,
            on_conflict: OnConflict::Fork,
            title: None,
            id,
            fork: false,
            sealed: false,
            here: false,
            // The flag of the server is no word of a session's user.
            default_policy: self.approve.map(Approval::from),
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
            CommandError::new(ErrorKind::Usage, format!("unknown format '{format}'"))
                .hint(format!("formats: markdown, {}", names.join(", ")))
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

    fn zone(&self) -> TimeZone {
        TimeZone::system()
    }

    fn sessions(&self) -> &Sessions {
        &self.workspace.sessions
    }

    fn changes(&self) -> Option<StoreChanges> {
        self.watch.changes(&self.workspace.settings.store)
    }

    fn notify(&self, session: SessionId, occasion: Occasion, who: &str, text: &str) {
        let caller = self.workspace.settings.caller();
        caller.call(session, occasion, who, text);
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

    async fn list(
        &self,
        selection: &Selection,
        limit: usize,
        cursor: Option<&str>,
    ) -> HostResult<Listed> {
        let cursor = cursor.map(str::parse).transpose();
        let page = Page {
            limit,
            cursor: cursor.map_err(|error| self.told(error))?,
        };
        let selection = selection.clone();
        self.aside(move |server_host| browsing::list(&server_host.workspace, &selection, page))
            .await
    }

    async fn facets(&self) -> HostResult<(Vec<ProjectInfo>, Vec<String>)> {
        self.aside(|server_host| browsing::facets(&server_host.workspace))
            .await
    }

    async fn search(&self, search: &Search) -> HostResult<Found> {
        let search = search.clone();
        self.aside(move |server_host| browsing::search(&server_host.workspace, &search))
            .await
    }

    async fn rename(&self, row: &Row, title: &str) -> HostResult<Row> {
        let (row, title) = (row.clone(), title.to_owned());
        self.aside(move |server_host| rename::rename(&server_host.workspace, row, &title))
            .await
    }

    async fn tag(&self, row: &Row, add: Vec<String>, remove: Vec<String>) -> HostResult<Row> {
        let row = row.clone();
        self.aside(move |server_host| tag::tag(&server_host.workspace, row, &add, &remove))
            .await
    }

    async fn restore(&self, name: &str) -> HostResult<Row> {
        let name = name.to_owned();
        self.aside(move |server_host| Ok(restore::restore(&server_host.workspace, &name)?.0))
            .await
    }

    async fn undo(&self) -> HostResult<Vec<(SessionId, String)>> {
        self.aside(|server_host| {
            let undone = undo::undo(&server_host.workspace)?;
            let sentence =
                |(before, now): &(SessionMeta, SessionMeta)| (now.id, undo::sentence(before, now));
            Ok(undone.iter().map(sentence).collect())
        })
        .await
    }

    async fn family(&self, row: &Row) -> HostResult<Vec<Value>> {
        let row = row.clone();
        self.aside(move |server_host| log::documents(&server_host.workspace, &row))
            .await
    }

    async fn stats(&self, since: Option<String>, by: Option<String>) -> HostResult<Value> {
        self.aside(move |server_host| stats::document(&server_host.workspace, since, by.as_deref()))
            .await
    }

    async fn catalog(&self) -> HostResult<Catalog> {
        self.aside(|server_host| browsing::catalog(&server_host.workspace.settings))
            .await
    }

    async fn models(&self, agent: &str) -> HostResult<Vec<String>> {
        let agent = agent.to_owned();
        self.aside(move |server_host| {
            let settings = &server_host.workspace.settings;
            Ok(commands::agents::models_now(settings, &agent)?.0)
        })
        .await
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
