mod report;
pub mod serve;
mod watch;

use std::process::ExitCode;

use clap::Args;
use tertulia_store::sync::{Branches, Heads, Partner, Skipped, Transfer, Transferred, transfer};
use tertulia_store::{Doing, SealedCopy, Sessions, StoreError, StoreResult};

use crate::args::GlobalArgs;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::link::{PartnerUrl, Remote};
use crate::open::{self, Workspace};
use crate::settings::StoreUrl;
use crate::ui::Ui;

/// Copy what another store lacks to it
///
/// Entries are compared by hash: what is there already is not moved again, and an interrupted push
/// continues where it stopped. A session that was continued on both sides is kept on both, the other
/// continuation as a fork. The trash is moved like everything else; a session that was purged comes
/// back from a store that still has it. Half-written answers are not moved.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia push ssh://desk               to the default store of another machine\n  \
    tertulia push files:/media/stick/logs  to a folder, made if there is none\n  \
    tertulia push --dry-run                to the store that [sync] with names")]
pub struct PushArgs {
    /// Store to copy to: sqlite:FILE, files:DIR, postgres://HOST/DATABASE or ssh://USER@HOST:PORT/PATH, of which only HOST is needed
    #[arg(value_name = "TO")]
    to: Option<String>,
    /// Only say what would be moved
    #[arg(long)]
    dry_run: bool,
}

/// Copy what this store lacks from another one
///
/// As `push`, in the other direction. A session that is open here is left for the next time.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia pull ssh://desk\n  \
    tertulia pull sqlite:/media/stick/tertulia.db --json")]
pub struct PullArgs {
    /// Store to copy from: sqlite:FILE, files:DIR, postgres://HOST/DATABASE or ssh://USER@HOST:PORT/PATH, of which only HOST is needed
    #[arg(value_name = "FROM")]
    from: Option<String>,
    /// Only say what would be moved
    #[arg(long)]
    dry_run: bool,
}

/// Exchange sessions with another store, in both directions
///
/// `pull`, then `push`. Over ssh nothing but tertulia is needed on the other machine: no server, no
/// open port. TERTULIA_SSH names another command than `ssh`. Set the usual partner in your settings:
///
///   [sync]
///   with = "ssh://desk"
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tertulia sync ssh://desk\n  \
    tertulia sync --watch              as soon as something changes, until Ctrl-C\n  \
    tertulia sync files:/media/stick/logs --dry-run")]
pub struct SyncArgs {
    /// The other store: sqlite:FILE, files:DIR, postgres://HOST/DATABASE or ssh://USER@HOST:PORT/PATH, of which only HOST is needed
    #[arg(value_name = "WITH")]
    with: Option<String>,
    /// Only say what would be moved
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// Keep running and exchange changes as they happen
    #[arg(long)]
    watch: bool,
}

/// Which way sessions move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Push,
    Pull,
    Both,
}

pub fn push(args: &PushArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let doing = doing(args.dry_run);
    once(args.to.as_deref(), Direction::Push, doing, global, ui)
}

pub fn pull(args: &PullArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let doing = doing(args.dry_run);
    once(args.from.as_deref(), Direction::Pull, doing, global, ui)
}

pub fn sync(args: &SyncArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let with = args.with.as_deref();
    if !args.watch {
        return once(with, Direction::Both, doing(args.dry_run), global, ui);
    }
    let workspace = open::workspace(global, ui)?;
    let url = partner_url(with, &workspace)?;
    watch::run(&workspace, &url, ui)
}

fn doing(dry_run: bool) -> Doing {
    match dry_run {
        true => Doing::Preview,
        false => Doing::Write,
    }
}

fn once(
    with: Option<&str>,
    direction: Direction,
    doing: Doing,
    global: &GlobalArgs,
    ui: &mut Ui,
) -> CommandResult<ExitCode> {
    let workspace = open::workspace(global, ui)?;
    let url = partner_url(with, &workspace)?;
    if let PartnerUrl::Store(StoreUrl::Sqlite(path) | StoreUrl::Files(path)) = &url
        && (direction == Direction::Pull || doing == Doing::Preview)
        && !path.exists()
    {
        let message = format!("there is no store at {}", path.display());
        return Err(CommandError::new(ErrorKind::NotFound, message));
    }
    let connection = match &url {
        PartnerUrl::Store(url) => Connection::Store(open_store(&workspace, url, ui)?),
        PartnerUrl::Ssh(url) => Connection::Remote(Remote::connect(url, || {})?),
    };
    let exchange = exchange(&workspace, &connection, direction, doing, ui)?;
    report::report(&exchange, &url, doing, ui);
    let verdict = exchange.verdict(&url)?;
    if let Connection::Remote(remote) = connection {
        remote.close()?;
    }
    Ok(verdict)
}

/// Returns the partner that is named, or that of the settings.
fn partner_url(named: Option<&str>, workspace: &Workspace) -> CommandResult<PartnerUrl> {
    let settings = &workspace.settings;
    let url = match (named, &settings.sync_with) {
        (Some(url), _) => PartnerUrl::parse(url, &settings.cwd)?,
        (None, Some((url, base))) => PartnerUrl::parse(url, base)?,
        (None, None) => {
            return Err(
                CommandError::new(ErrorKind::Usage, "no store to exchange sessions with")
                    .hint("name one: `tertulia sync ssh://HOST`")
                    .hint("or set the usual one in your settings: [sync] with = \"ssh://HOST\""),
            );
        }
    };
    if url == PartnerUrl::Store(settings.store.clone()) {
        let message = "both names are the same store";
        return Err(CommandError::new(ErrorKind::Usage, message));
    }
    Ok(url)
}

/// Opens the other store, and says so if there was none.
fn open_store(workspace: &Workspace, url: &StoreUrl, ui: &mut Ui) -> CommandResult<Sessions> {
    let is_new = is_absent(url);
    let sessions = open::sessions(&workspace.settings, url)?;
    if is_new {
        ui.note(&format!("a new store was made at {url}"));
    }
    Ok(sessions)
}

/// Returns true if opening a store would make it.
fn is_absent(url: &StoreUrl) -> bool {
    match url {
        StoreUrl::Sqlite(path) => !path.exists(),
        StoreUrl::Files(path) => match path.read_dir() {
            Ok(mut files) => files.next().is_none(),
            Err(_) => !path.exists(),
        },
        _ => false,
    }
}

/// The other store, opened.
enum Connection {
    Store(Sessions),
    Remote(Remote),
}

impl Connection {
    /// Runs `work` with the partner.
    fn with<T>(&self, work: impl FnOnce(&dyn Partner) -> T) -> T {
        match self {
            Connection::Store(sessions) => work(&Branches::of_sessions(sessions)),
            Connection::Remote(remote) => work(remote),
        }
    }
}

/// What was moved, each way.
#[derive(Debug, Default)]
struct Exchange {
    /// Plain copies of sealed sessions that were sealed, too.
    sealed: Vec<SealedCopy>,
    pulled: Option<Transferred>,
    pushed: Option<Transferred>,
}

impl Exchange {
    /// Returns what was moved, with where it was moved to.
    fn both(&self) -> impl Iterator<Item = (&'static str, &Transferred)> {
        let pulled = self.pulled.iter().map(|moved| ("here", moved));
        pulled.chain(self.pushed.iter().map(|moved| ("there", moved)))
    }

    /// Names a session that the stores have sealed differently once: it fails in both directions.
    fn without_doubles(mut self) -> Exchange {
        if let (Some(pulled), Some(pushed)) = (&self.pulled, &mut self.pushed) {
            let is_named = |id| {
                let mut named = pulled.skipped.iter().filter(|it| it.is_sealed_otherwise());
                named.any(|it| it.session == id)
            };
            let skipped = &mut pushed.skipped;
            skipped.retain(|it| !it.is_sealed_otherwise() || !is_named(it.session));
        }
        self
    }

    /// Fails if a session could not be moved. One that is open is moved the next time.
    fn verdict(&self, url: &PartnerUrl) -> CommandResult<ExitCode> {
        let skipped = self.both().flat_map(|(_, moved)| &moved.skipped);
        let failed: Vec<&Skipped> = skipped.filter(|skipped| !skipped.is_open()).collect();
        if failed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let sessions = crate::show::count(failed.len() as u64, "session");
        let mut error = CommandError::new(ErrorKind::Invalid, format!("not moved: {sessions}"));
        let any = |is_it: fn(&StoreError) -> bool| failed.iter().any(|it| is_it(&it.error));
        if any(|error| matches!(error, StoreError::SealedInOne { .. })) {
            error = error.hint(
                "where the plain copy is, name the key in your settings (`identity` or `passphrase_command` of [seal]) \
                 and sync: it is then sealed, too, with all that only it has; until then both copies stay as they are",
            );
        }
        if any(|error| matches!(error, StoreError::SealedTwice { .. })) {
            error = error.hint(
                "name both keys in your settings (`identity` or `passphrase_command` of [seal]) and sync on each \
                 machine: they choose one of the keys; until then both copies stay as they are",
            );
        }
        if failed.iter().any(|skipped| !skipped.is_sealed_otherwise()) {
            error = error.hint(format!(
                "`tertulia doctor` checks this store, `tertulia doctor --store URL` that of {url}"
            ));
        }
        Err(error)
    }
}

/// Returns the error of an exchange; one that was cut off goes on when it is run again.
fn cut_off(error: StoreError) -> CommandError {
    match error {
        StoreError::Unreachable { .. } => CommandError::new(ErrorKind::Failed, error.to_string())
            .hint("what was moved before stays; run the command again"),
        error => error.into(),
    }
}

/// Compares both stores and moves what one of them lacks.
fn exchange(
    workspace: &Workspace,
    connection: &Connection,
    direction: Direction,
    doing: Doing,
    ui: &Ui,
) -> CommandResult<Exchange> {
    let (pulls, pushes) = (direction != Direction::Push, direction != Direction::Pull);
    let here = Branches::of_sessions(&workspace.sessions);
    let progress = ui.progress();
    let move_all = async |there: &dyn Partner| -> StoreResult<Exchange> {
        let (mut ours, mut theirs) =
            futures::future::try_join(Heads::of(&here), Heads::of(there)).await?;
        let mut done = Exchange::default();
        if doing == Doing::Write {
            let copies = workspace.sessions.seal_copies(there, (&ours, &theirs));
            done.sealed = copies.await?;
            if !done.sealed.is_empty() {
                ours = Heads::of(&here).await?;
            }
        }
        if pulls {
            let work = Transfer {
                source: (there, &theirs),
                target: (&here, &mut ours),
                doing,
                progress: &progress,
            };
            done.pulled = Some(transfer(work).await?);
        }
        if pushes {
            let work = Transfer {
                source: (&here, &ours),
                target: (there, &mut theirs),
                doing,
                progress: &progress,
            };
            done.pushed = Some(transfer(work).await?);
        }
        Ok(done)
    };
    let done = connection.with(|there| workspace.wait(move_all(there)));
    let done = done.map(Exchange::without_doubles).map_err(cut_off)?;
    if doing == Doing::Write && done.pulled.as_ref().is_some_and(|moved| !moved.is_empty()) {
        // Ignore errors: the next search indexes the rest and reports failures.
        let _ = workspace.wait(workspace.sessions.store().index(&progress));
    }
    Ok(done)
}
