//! Exchanges changes as they happen, until the process is stopped. It waits for events of the file
//! system and of the other end, so that it costs nothing while nothing happens.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tertulia_store::{Doing, StoreError};

use super::{Connection, Direction, cut_off, exchange, open_store, report};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::link::{PartnerUrl, Remote, watch_store};
use crate::open::Workspace;
use crate::settings::StoreUrl;
use crate::ui::Ui;

/// Quiet time after which changes are exchanged: an answer is written in several pieces.
const QUIET: Duration = Duration::from_millis(300);
/// Longest time that changes wait while more of them come.
const LONGEST: Duration = Duration::from_secs(3);
/// Pause between looks at a store that cannot be watched, and before a session that was open is
/// tried again.
const POLL: Duration = Duration::from_secs(5);
/// Pauses before the first and the last of several attempts to reach a store over the network.
const RECONNECT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Exchanges sessions with `url` whenever one of both stores changes.
pub fn run(workspace: &Workspace, url: &PartnerUrl, ui: &mut Ui) -> CommandResult<ExitCode> {
    // One change that waits stands for all that come meanwhile.
    let (sender, changes) = sync_channel(1);
    // Watching begins first, so that nothing is missed between the exchange and the first event.
    let here = watch_store(&workspace.settings.store, tell(&sender))?;
    let mut progress = Progress {
        pause: RECONNECT.0,
        known: report::Known::new(),
    };
    let mut is_first = true;
    loop {
        let linked = match connect(workspace, url, &sender, ui) {
            Ok((connection, polls)) => {
                if std::mem::take(&mut is_first) {
                    ui.note(&format!("exchanging sessions with {url}; stop with Ctrl-C"));
                }
                let polls = polls || here.is_none();
                let work = (&connection, polls);
                exchange_on(workspace, work, &changes, &mut progress, ui)
            }
            // The first time, a wrong address is an error.
            Err(error) if is_first => return Err(error),
            Err(error) => Err(error),
        };
        let Err(error) = linked;
        let may_return = is_remote(url) || is_server(&workspace.settings.store);
        if !may_return || error.kind() != ErrorKind::Failed {
            return Err(error);
        }
        ui.warn(&format!(
            "{}; trying again in {} s",
            error.words(),
            progress.pause.as_secs()
        ));
        std::thread::sleep(progress.pause);
        progress.pause = (progress.pause * 2).min(RECONNECT.1);
    }
}

/// What is kept from one connection to the next.
struct Progress {
    /// Pause before the next attempt to connect. Each success resets it.
    pause: Duration,
    known: report::Known,
}

/// Returns true if the other store is reached over the network, so that it may be away for a while.
fn is_remote(url: &PartnerUrl) -> bool {
    match url {
        PartnerUrl::Ssh(_) => true,
        PartnerUrl::Store(store) => is_server(store),
    }
}

fn is_server(store: &StoreUrl) -> bool {
    !matches!(
        store,
        StoreUrl::Sqlite(_) | StoreUrl::Files(_) | StoreUrl::Memory
    )
}

fn tell(sender: &SyncSender<()>) -> impl Fn() + Send + 'static {
    let sender = sender.clone();
    // Without a receiver, the watch has ended.
    move || {
        let _ = sender.try_send(());
    }
}

/// Connects to the other store and watches it. Returns true if it must be looked at from time to
/// time.
fn connect(
    workspace: &Workspace,
    url: &PartnerUrl,
    sender: &SyncSender<()>,
    ui: &mut Ui,
) -> CommandResult<(Watched, bool)> {
    match url {
        PartnerUrl::Store(url) => {
            let sessions = open_store(workspace, url, ui)?;
            let watcher = watch_store(url, tell(sender))?;
            let polls = watcher.is_none();
            let connection = Connection::Store(sessions);
            Ok((
                Watched {
                    connection,
                    _watcher: watcher,
                },
                polls,
            ))
        }
        PartnerUrl::Ssh(url) => {
            let remote = Remote::connect(url, tell(sender))?;
            remote.watch().map_err(cut_off)?;
            let connection = Connection::Remote(remote);
            Ok((
                Watched {
                    connection,
                    _watcher: None,
                },
                false,
            ))
        }
    }
}

/// The other store, as long as it is watched.
struct Watched {
    connection: Connection,
    _watcher: Option<notify::RecommendedWatcher>,
}

/// Exchanges sessions after every change, until that fails.
fn exchange_on(
    workspace: &Workspace,
    (watched, polls): (&Watched, bool),
    changes: &Receiver<()>,
    progress: &mut Progress,
    ui: &mut Ui,
) -> CommandResult<std::convert::Infallible> {
    loop {
        let done = exchange(
            workspace,
            &watched.connection,
            Direction::Both,
            Doing::Write,
            ui,
        )?;
        progress.pause = RECONNECT.0;
        let now = workspace.sessions.clock().now();
        let at = now.to_zoned(jiff::tz::TimeZone::system());
        let at = at.strftime("%H:%M:%S").to_string();
        report::round(&done, &at, &mut progress.known, ui);
        let mut skipped = done.both().flat_map(|(_, moved)| &moved.skipped);
        let waits = polls || skipped.any(tertulia_store::sync::Skipped::is_open);
        next_change(changes, waits)?;
    }
}

/// Waits for a change, and then until it is quiet. With `polls`, no longer than [`POLL`].
fn next_change(changes: &Receiver<()>, polls: bool) -> CommandResult<()> {
    let ended = || {
        CommandError::from(StoreError::Refused(
            "the stores are no longer watched".into(),
        ))
    };
    match polls {
        true => match changes.recv_timeout(POLL) {
            Err(RecvTimeoutError::Disconnected) => return Err(ended()),
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Ok(()) => {}
        },
        false => changes.recv().map_err(|_| ended())?,
    }
    let deadline = Instant::now() + LONGEST;
    while Instant::now() < deadline && changes.recv_timeout(QUIET).is_ok() {}
    Ok(())
}
