//! What the server asks of this program: sessions, agents, words.

use std::time::Duration;

use async_trait::async_trait;
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::Value;
use tertulia_core::entry::Kind;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::query::{Filter, Page, Row, SearchQuery};
use tertulia_core::search_text::SearchTerms;
use tertulia_engine::event::UserMessage;
use tertulia_engine::frontend::{Frontend, Notice};
use tertulia_formats::json;
use tertulia_server::host::{Choice, Found, Host, HostResult, Listed, Seated, Which};
use tertulia_server::protocol::{ErrorBody, SessionInfo};
use tertulia_store::{Progress, Start};

use super::talk::{Served, held};
use super::trouble::trouble;
use crate::agents::{self, Asked};
use crate::args::ApproveMode;
use crate::commands::chat;
use crate::commands::export::{self, Format};
use crate::commands::rename;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::hint::Invocation;
use crate::open::Workspace;
use crate::talk::opening::Prepared;
use crate::talk::{TalkArgs, notice, target};
use crate::ui::Ui;

/// So long a search waits for the index before it answers with what is indexed.
const SEARCH_PATIENCE: Duration = Duration::from_millis(800);

/// Knows the house.
#[derive(Clone)]
pub struct ServerHost {
    pub workspace: Workspace,
    pub approve: Option<ApproveMode>,
}

impl ServerHost {
    /// Does what blocks where it holds up nobody.
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

    /// Finds out who talks in which session, as the command line does.
    fn prepare(
        &self,
        which: Which,
        choice: &Choice,
    ) -> CommandResult<(Prepared, Vec<UserMessage>)> {
        let mut ui = Ui::holding();
        let there = self.workspace.wait(self.workspace.sessions.row(which.id()));
        let talk = TalkArgs {
            approve: self.approve,
            served: true,
            ..TalkArgs::default()
        };
        let (talk, agent) = match (there, which) {
            (Ok(row), _) => {
                // Among several each has an agent of their own.
                let agent = choice.agent.clone().filter(|_| row.meta.kind == Kind::Chat);
                let resume = Some(Some(row.meta.id.to_string()));
                (TalkArgs { resume, ..talk }, agent)
            }
            (Err(_), Which::New(id)) => {
                let session_id = Some(id);
                (TalkArgs { session_id, ..talk }, choice.agent.clone())
            }
            (Err(error), Which::Known(_)) => return Err(error.into()),
        };
        let args = chat::anew(agent, None, talk);
        let prepared = chat::sit_down(args, self.workspace.clone(), &mut ui)?;
        let prepared = prepared.ok_or_else(|| {
            CommandError::new(ErrorKind::Failed, "there is no session to continue")
        })?;
        Ok((prepared, held(&mut ui)))
    }

    /// A failure for the wire, with commands in its hints that work where this server's sessions are.
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
        export::content(format, row, &log)
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

    fn notice(&self, told: &Notice) -> UserMessage {
        let words = self.invocation().complete(&notice::words(told));
        match notice::is_warning(told) {
            true => UserMessage::warning(words),
            false => UserMessage::note(words),
        }
    }

    async fn agent(&self, choice: &Choice) -> HostResult<String> {
        let choice = choice.clone();
        self.aside(move |server_host| {
            let asked = Asked {
                name: choice.agent.as_deref(),
                model: None,
            };
            let chosen = agents::choose(&server_host.workspace.settings, &asked, None)?;
            Ok(chosen.agent.name().to_owned())
        })
        .await
    }

    async fn open(
        &self,
        which: Which,
        choice: &Choice,
        frontend: &mut dyn Frontend,
    ) -> HostResult<Seated> {
        let choice = choice.clone();
        let (prepared, said) = self
            .aside(move |server_host| server_host.prepare(which, &choice))
            .await?;
        let served = Served::open(prepared.opening, frontend)
            .await
            .map_err(|error| self.told(error))?;
        Ok(Seated {
            talk: Box::new(served),
            told: said,
        })
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

    async fn create(&self, title: Option<String>) -> HostResult<SessionId> {
        let title = title.as_deref().map(rename::title).transpose();
        let settings = &self.workspace.settings;
        let start = Start {
            id: self.new_id(),
            kind: Kind::Chat,
            title: title.map_err(|error| self.told(error))?,
            team: None,
            project: Some(settings.project.id.clone()),
            project_ids: settings.project.identities(),
            cwd: Some(settings.cwd.display().to_string()),
        };
        let created = self.workspace.sessions.create(&start, Vec::new()).await;
        created.map_err(|error| self.told(error))?;
        Ok(start.id)
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
