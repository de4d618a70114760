//! Host of the full-screen frontend: prepares its sessions, and does for it what the commands do.

mod changes;
mod export;
mod overview;
mod prompt_history;
mod shared;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::price::PriceTable;
use tertulia_core::query::Row;
use tertulia_engine::error::ErrorBody;
use tertulia_engine::setup::ChatAgent;
use tertulia_engine::spec::AgentSpec;
use tertulia_server::host::StoreChanges;
use tertulia_tui::attach::{Attachment, Server};
use tertulia_tui::effect::Next;
use tertulia_tui::error::{TuiError, TuiResult};
use tertulia_tui::host::{
    self, AgentRow, ExportFormat, Exported, Forked, Host, Models, Options, Undone,
};
use tertulia_tui::source::Source;
use tertulia_tui::{Finished, links, theme};
use tokio::runtime::Handle;

use crate::args::GlobalArgs;
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::retention;
use crate::seal;
use crate::serve::file_watch;
use crate::serve::trouble::trouble;
use crate::settings::{ScreenSettings, StoreUrl};
use crate::signals::Signals;
use crate::talk::opening::Prepared;
use crate::talk::{self, TalkArgs};
use crate::teams;
use crate::ui::Ui;
use prompt_history::PromptHistory;
use shared::Shared;

/// Editor of users who name none.
const EDITOR: &str = "vi";

/// Runs sessions in the full-screen frontend until the user leaves.
pub fn run(prepared: Prepared, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let args = &prepared.opening.args;
    let keeper = (!args.ephemeral).then(|| prepared.opening.workspace.clone());
    seal::forbid_prompts();
    let screen = prepared.opening.workspace.settings.screen.clone();
    let shared = Shared::new(args, global, ui);
    let first = shared.first(prepared, ui.take_held())?;
    let result = show(first, screen, &talk::runtime()?, ui);
    for told in shared.ui().take_held() {
        ui.tell(told);
    }
    if let Some(keeper) = keeper {
        retention::keep_workspace(&keeper, ui);
    }
    result
}

/// Shows a session as another program writes it, until the user leaves.
pub fn read_along(
    row: Row,
    workspace: Workspace,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    seal::forbid_prompts();
    let shared = Shared::new(&TalkArgs::default(), global, ui);
    let screen = workspace.settings.screen.clone();
    let followed = shared.followed(row, workspace, false, ui.take_held())?;
    let source = Source::Followed(Box::new(followed));
    show(source, screen, &talk::runtime()?, ui)
}

/// Attaches to sessions on a server until the user leaves. `choose` finds or starts the first one.
pub fn follow(
    path: PathBuf,
    workspace: Workspace,
    global: &GlobalArgs,
    ui: &mut Ui,
    choose: impl AsyncFnOnce(&Server) -> TuiResult<Attachment>,
) -> CommandResult<ExitCode> {
    seal::forbid_prompts();
    let runtime = talk::runtime()?;
    let shared = Shared::new(&TalkArgs::default(), global, ui);
    // Which sessions of the server are sealed is not known here.
    let is_private = workspace.settings.seal.default;
    let screen = workspace.settings.screen.clone();
    let host = Arc::new(TuiHost::new(workspace, shared, is_private));
    let attachment = runtime.block_on(choose(&Server { path, host }))?;
    ui.hold();
    let result = show(Source::Remote(Box::new(attachment)), screen, &runtime, ui);
    ui.release();
    result
}

/// Runs the frontend, and prints what the last session leaves to say.
fn show(
    first: Source,
    screen: ScreenSettings,
    runtime: &Handle,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let editor = env::text("VISUAL").or_else(|| env::text("EDITOR"));
    let options = Options {
        theme: theme::chosen(ui.has_colours(), &screen.theme, env::text),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        links: links::can(&env::text),
        has_flags: theme::has_flags(env::text),
        in_tmux: env::text("TMUX").is_some_and(|socket| !socket.is_empty()),
        notify: screen.notify,
        keys: screen.keys,
        vim: screen.vim,
        editor: editor.unwrap_or_else(|| EDITOR.to_owned()),
        invocation: ui.invocation.clone(),
    };
    let result = runtime.block_on(async {
        let mut signals = Signals::listen()?;
        let signals = async || {
            signals.next().await;
            signals.caught().unwrap_or_default()
        };
        CommandResult::Ok(tertulia_tui::run(first, options, signals).await?)
    });
    let Finished { end, signal } = result?;
    let unsaved = talk::tell_end(end, ui);
    Ok(talk::exit_code(signal, unsaved))
}

/// The program as the full-screen frontend sees it, with the workspace of one session.
struct TuiHost {
    shared: Arc<Shared>,
    workspace: Workspace,
    shown: host::Workspace,
    history: PromptHistory,
}

impl TuiHost {
    fn new(workspace: Workspace, shared: Arc<Shared>, is_private: bool) -> TuiHost {
        let settings = &workspace.settings;
        let keeps = !is_private && settings.store != StoreUrl::Memory;
        TuiHost {
            shown: host::Workspace {
                sessions: workspace.sessions.clone(),
                project: settings.project.ids.clone(),
                cwd: settings.cwd.clone(),
                home: env::path("HOME"),
                zone: jiff::tz::TimeZone::system(),
                prices: PriceTable::with(settings.prices.clone()),
            },
            history: PromptHistory::new(settings, keeps),
            workspace,
            shared,
        }
    }

    /// Runs what a command does, which blocks until the store is done, on the blocking pool.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workspace) -> CommandResult<T> + Send + 'static,
    ) -> TuiResult<T> {
        let workspace = self.workspace.clone();
        let done = tokio::task::spawn_blocking(move || work(&workspace)).await;
        let crashed = |error| {
            CommandError::new(ErrorKind::Failed, "internal error: the request crashed")
                .because(error)
        };
        Ok(done.map_err(crashed)??)
    }
}

#[async_trait(?Send)]
impl Host for TuiHost {
    fn workspace(&self) -> &host::Workspace {
        &self.shown
    }

    fn lock_changes(&self) -> Option<StoreChanges> {
        file_watch::lock_changes(&self.workspace.settings.store)
    }

    async fn prepare(&self, next: &Next) -> TuiResult<Source> {
        let (shared, next) = (self.shared.clone(), next.clone());
        self.run(move |_| shared.prepare(&next)).await
    }

    async fn find(&self, reference: &str) -> TuiResult<Row> {
        let reference = reference.to_owned();
        self.run(move |workspace| workspace.find(&reference)).await
    }

    async fn rename(&self, id: SessionId, title: &str) -> TuiResult<Row> {
        let title = title.to_owned();
        self.run(move |workspace| changes::rename(workspace, id, &title))
            .await
    }

    async fn tag(&self, id: SessionId, add: &[String], remove: &[String]) -> TuiResult<Row> {
        let (add, remove) = (add.to_vec(), remove.to_vec());
        self.run(move |workspace| changes::tag(workspace, id, &add, &remove))
            .await
    }

    async fn trash(&self, id: SessionId) -> TuiResult<Row> {
        self.run(move |workspace| changes::trash(workspace, id))
            .await
    }

    async fn undo(&self) -> TuiResult<Vec<Undone>> {
        self.run(changes::undo).await
    }

    async fn fork(&self, id: SessionId, at: Option<Seq>) -> TuiResult<Forked> {
        self.run(move |workspace| changes::fork(workspace, id, at))
            .await
    }

    async fn export(
        &self,
        id: SessionId,
        format: ExportFormat,
        file: Option<&str>,
    ) -> TuiResult<Exported> {
        let (shown, file) = (self.shown.clone(), file.map(str::to_owned));
        self.run(move |workspace| export::export(workspace, &shown, id, format, file.as_deref()))
            .await
    }

    async fn chat_agent(&self, spec: &AgentSpec) -> TuiResult<ChatAgent> {
        let (shared, spec) = (self.shared.clone(), spec.clone());
        self.run(move |workspace| shared.chat_agent(spec, workspace))
            .await
    }

    async fn agents(&self, only: Option<&str>) -> TuiResult<Vec<AgentRow>> {
        let only = only.map(str::to_owned);
        self.run(move |workspace| overview::agents(&workspace.settings, only.as_deref()))
            .await
    }

    async fn agent_names(&self) -> TuiResult<Vec<String>> {
        self.run(|workspace| overview::agent_names(&workspace.settings))
            .await
    }

    async fn models(&self, agent: &str) -> TuiResult<Models> {
        let agent = agent.to_owned();
        self.run(move |workspace| overview::models(&workspace.settings, &agent))
            .await
    }

    async fn teams(&self) -> TuiResult<Vec<String>> {
        Ok(overview::teams(&self.workspace.settings)?)
    }

    async fn team_names(&self) -> TuiResult<Vec<String>> {
        Ok(teams::names(&self.workspace.settings.cwd)?)
    }

    fn team_file(&self, config: &str) -> TuiResult<PathBuf> {
        let (file, _) = teams::read(&self.workspace.settings.cwd, config)?;
        Ok(std::path::absolute(&file).unwrap_or(file))
    }

    fn earlier_prompts(&self) -> Vec<String> {
        self.history.prompts()
    }

    async fn remember_prompt(&self, prompt: &str) -> TuiResult<()> {
        Ok(self.history.add(prompt)?)
    }
}

impl From<CommandError> for TuiError {
    fn from(error: CommandError) -> TuiError {
        TuiError {
            kind: trouble(&error).kind,
            message: error.words(),
            hints: error.hints().to_vec(),
        }
    }
}

impl From<TuiError> for CommandError {
    fn from(error: TuiError) -> CommandError {
        let body = ErrorBody::new(error.kind, error.message);
        let hints = error.hints.into_iter();
        hints.fold(CommandError::from(body), CommandError::hint)
    }
}
