//! Runs the server until it is stopped or idle.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tertulia_engine::event::Tone;
use tertulia_server::connection;
use tertulia_server::hub::{Hub, Limits};
use tertulia_server::listen::listen;
use tertulia_server::socket::Socket;
use tokio::net::UnixListener;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::file_watch::StoreWatch;
use super::server_host::ServerHost;
use super::web::{self, WebOptions, WebPage};
use crate::args::ApproveMode;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::open::Workspace;
use crate::retention;
use crate::runtime::LEAVE_WITHIN;
use crate::seal;
use crate::signals::{Signals, TERMINATE};
use crate::talk;
use crate::ui::Ui;

/// Interval between checks for idleness.
const TICK: Duration = Duration::from_millis(100);
/// Minimum number of threads for sessions: a busy session must not delay another.
const WORKSHOP: usize = 4;
/// Number of threads for clients, which only pass data on.
const COUNTER: usize = 4;

/// Server options.
#[derive(Clone, Debug, Default)]
pub struct Manner {
    pub approve: Option<ApproveMode>,
    /// Exits after this time without clients or running turns.
    pub idle_exit: Option<Duration>,
    /// Bytes that may queue for a client that does not read.
    pub queue: Option<usize>,
    /// Serves the web page, too.
    pub web: Option<WebOptions>,
}

/// Serves one client on the standard streams until its input ends and all its requests are
/// answered.
pub fn over_stdio(workspace: Workspace, manner: &Manner, ui: &mut Ui) -> CommandResult<ExitCode> {
    let wire = ui.wire();
    run(workspace, manner, ui, move |hub, clients, _| {
        let (reader, writer) = wire;
        clients.spawn(connection::serve(hub, reader, writer));
        clients.close();
        Ok(())
    })
}

/// Serves all clients of a socket, and the web page if that is wished, until the server is stopped.
/// Calls `ready` once it listens.
pub fn over_socket(
    workspace: Workspace,
    manner: &Manner,
    path: &Path,
    ready: impl FnOnce(Option<&WebPage>, &mut Ui),
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let settings = workspace.settings.clone();
    // Dropping it at the end removes the socket.
    let mut mark = None;
    run(workspace, manner, ui, |hub, clients, ui| {
        let (listener, made) = Socket::bind(path)?.split();
        mark = Some(made);
        let listener = UnixListener::from_std(listener).map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the socket cannot be listened on").because(error)
        })?;
        let page = match &manner.web {
            Some(options) => Some(web::serve(options, &settings, &hub, clients)?),
            None => None,
        };
        tokio::spawn(listen(hub, listener, clients.clone()));
        ready(page.as_ref(), ui);
        Ok(())
    })
}

fn run(
    workspace: Workspace,
    manner: &Manner,
    ui: &mut Ui,
    open: impl FnOnce(Arc<Hub>, &TaskTracker, &mut Ui) -> CommandResult<()>,
) -> CommandResult<ExitCode> {
    seal::forbid_prompts();
    // Waiting for another program is reported to clients, not on stderr.
    let workspace = Workspace {
        aside: None,
        ..workspace
    };
    let server_host = ServerHost {
        workspace: workspace.clone(),
        approve: manner.approve,
        watch: StoreWatch::default(),
    };
    let mut limits = Limits {
        awaits_clients: manner.web.is_some(),
        ..Limits::default()
    };
    limits.outbox.bytes = manner.queue.unwrap_or(limits.outbox.bytes);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workshop = runtime("talk", cores.max(WORKSHOP))?;
    let counter = runtime("client", COUNTER)?;
    let hub = Hub::new(Arc::new(server_host), limits, workshop.handle().clone());
    let ended: CommandResult<Option<u8>> = counter.block_on(async {
        let mut signals = Signals::listen()?.hurrying(workspace.sessions.store().patience());
        let clients = TaskTracker::new();
        open(hub.clone(), &clients, ui)?;
        tokio::select! {
            () = clients.wait() => {}
            () = signals.next() => {}
            () = hub.ending().cancelled() => {}
            () = idle(&hub, manner.idle_exit) => {}
        }
        let caught = signals.caught();
        tokio::select! {
            () = end(&hub, &clients) => {}
            // A second signal ends the server without waiting.
            () = signals.next() => {}
        }
        Ok(caught)
    });
    // Stops what still runs for an agent.
    workshop.shutdown_timeout(LEAVE_WITHIN);
    counter.shutdown_timeout(LEAVE_WITHIN);
    let caught = ended?;
    retention::keep_workspace(&workspace, ui);
    let unsaved = hub.unsaved();
    for told in &unsaved {
        ui.remark(told.tone != Tone::Note, &told.text);
    }
    Ok(match caught {
        None | Some(TERMINATE) if !unsaved.is_empty() => {
            ExitCode::from(ErrorKind::Failed.exit_code())
        }
        // SIGTERM is the regular way to stop a server.
        None | Some(TERMINATE) => ExitCode::SUCCESS,
        Some(signal) => ExitCode::from(ErrorKind::Interrupted(signal).exit_code()),
    })
}

fn runtime(name: &str, threads: usize) -> CommandResult<tokio::runtime::Runtime> {
    talk::enough_files()?;
    tokio::runtime::Builder::new_multi_thread()
        .thread_name(name)
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| {
            CommandError::new(ErrorKind::Failed, "the server cannot be started").because(error)
        })
}

/// Ends all sessions and gives clients time to read the last replies.
async fn end(hub: &Hub, clients: &TaskTracker) {
    hub.end("the server is ending").await;
    clients.close();
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(hub.limits().grace, clients.wait()).await;
}

/// Waits until the hub has been idle for `patience`; forever without one.
async fn idle(hub: &Hub, patience: Option<Duration>) {
    let Some(patience) = patience else {
        return std::future::pending().await;
    };
    let mut since = Instant::now();
    while since.elapsed() < patience {
        tokio::time::sleep(TICK.min(patience)).await;
        if !hub.is_idle() {
            since = Instant::now();
        }
    }
}
