//! Connections to the server: opened as needed, kept for the next operation, replaced when they are
//! lost. Operations repeat what the server asks to repeat, and what a lost connection left in doubt.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{PostgresAddress, reasons};
use super::lease::HeldLease;
use super::metas::Metas;
use super::tls;
use crate::{Patience, StoreError, StoreResult};
use tertulia_core::id::SessionId;

/// Connections of one store at most.
const CONNECTIONS: usize = 8;
/// How long asking the server to end a statement may take.
const CANCEL_WITHIN: Duration = Duration::from_millis(500);
/// First pause before an operation is repeated; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Longest pause before an operation is repeated.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Time limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest time that connecting may take.
    pub connect: Duration,
    /// Longest time that one statement may take on the server.
    pub statement: Duration,
    /// Longest time without an answer of the server before a connection counts as lost.
    pub answer: Duration,
    /// How long a session lock outlives the last sign of its holder.
    pub lease: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(10),
            statement: Duration::from_secs(60),
            answer: Duration::from_secs(120),
            lease: Duration::from_secs(30),
        }
    }
}

/// A value of a statement, with its type: statements are not prepared, so the server is told.
pub(super) type Value<'a> = (&'a (dyn ToSql + Sync), Type);

/// Result of work on a connection.
pub(super) type Answer<T> = Result<T, Failure>;

/// Why work on a connection ended.
#[derive(Debug)]
pub(super) enum Failure {
    /// The operation itself fails.
    Store(StoreError),
    /// The server or the connection fails.
    Server(Error),
    /// The server did not answer in time.
    Silent,
    /// Another client did the same at the same time: repeating shows its result.
    Repeat(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Server(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

/// What is known of earlier attempts of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempt {
    /// True if an earlier attempt may have succeeded unnoticed.
    pub(super) in_doubt: bool,
}

/// What an operation does; a transaction that reads sees one state of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write,
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GiveUp,
    Repeat,
    /// The connection is lost, and the outcome in doubt.
    Reconnect,
}

/// A connection, and the statements that the server has planned on it.
#[derive(Debug)]
pub(super) struct Connection {
    client: Client,
    planned: RefCell<HashSet<String>>,
    /// False once the server has refused to plan a statement.
    can_plan: Cell<bool>,
}

impl Connection {
    pub(super) fn is_planned(&self, name: &str) -> bool {
        self.planned.borrow().contains(name)
    }

    pub(super) fn set_planned(&self, name: &str) {
        self.planned.borrow_mut().insert(name.to_owned());
    }

    pub(super) fn can_plan(&self) -> bool {
        self.can_plan.get()
    }

    /// Notes that the server does not plan statements: asking again would cost each append a round
    /// trip.
    pub(super) fn give_up_planning(&self) {
        self.can_plan.set(false);
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// The server's side of a store. It lives on the thread of its [`super::runner::Runner`].
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: PostgresAddress,
    pub(super) limits: Limits,
    pub(super) metas: RefCell<Metas>,
    /// Session locks that this store holds.
    pub(super) leases: RefCell<HashMap<SessionId, HeldLease>>,
    patience: Patience,
    tls: Tls,
    idle: RefCell<Vec<Connection>>,
    slots: Semaphore,
    /// True once a connection was made: an address that never worked is not waited for.
    was_reached: Cell<bool>,
}

/// The connector, which has no `Debug`.
struct Tls(MakeRustlsConnect);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Server {
    pub(super) fn new(
        address: PostgresAddress,
        limits: Limits,
        patience: Patience,
    ) -> StoreResult<Server> {
        Ok(Server {
            tls: Tls(tls::connector(&address)?),
            address,
            limits,
            metas: RefCell::default(),
            leases: RefCell::default(),
            patience,
            idle: RefCell::default(),
            slots: Semaphore::new(CONNECTIONS),
            was_reached: Cell::new(false),
        })
    }

    pub(super) fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Runs work that may be repeated, on a connection.
    pub(super) async fn run<R>(
        &self,
        what: &'static str,
        session: Option<SessionId>,
        mode: Mode,
        job: impl AsyncFn(&Connection, Attempt) -> Answer<R>,
    ) -> StoreResult<R> {
        let started = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut attempt = Attempt::default();
        loop {
            let failure = match self.attempt(&job, attempt).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let next = next_step(&failure);
            attempt.in_doubt |= next == Next::Reconnect;
            let limit = match self.was_reached.get() {
                true => self.patience.limit(session),
                false => Duration::ZERO,
            };
            if next == Next::GiveUp || started.elapsed() + pause > limit {
                return Err(self.trouble(what, mode, failure));
            }
            // Clients that failed together must not return together.
            let spread = started.elapsed().subsec_nanos() % 1000;
            sleep(pause * (1000 + spread) / 1500).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Runs work as one transaction, which is repeated as a whole.
    pub(super) async fn transact<R>(
        &self,
        what: &'static str,
        session: Option<SessionId>,
        mode: Mode,
        job: impl AsyncFn(&Connection, Attempt) -> Answer<R>,
    ) -> StoreResult<R> {
        let begin = self.begin(mode);
        self.run(what, session, mode, async |client, attempt| {
            client.batch_execute(&begin).await?;
            match job(client, attempt).await {
                Ok(done) => {
                    client.batch_execute("COMMIT").await?;
                    Ok(done)
                }
                Err(failure) => {
                    let rolled_back = client.batch_execute("ROLLBACK").await;
                    match failure {
                        // The connection must not go back into the pool in mid-transaction.
                        Failure::Store(_) | Failure::Repeat(_) if rolled_back.is_err() => {
                            rolled_back?;
                            Err(failure)
                        }
                        failure => Err(failure),
                    }
                }
            }
        })
        .await
    }

    /// Returns the statements that begin a transaction. Its limits end with it, so that a pooler may
    /// give the next transaction another connection.
    pub(super) fn begin(&self, mode: Mode) -> String {
        let mode = match mode {
            Mode::Read => " ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Write => "",
        };
        let limit = self.limits.statement.as_millis();
        let idle = self.limits.answer.as_millis();
        format!(
            "BEGIN{mode}; SET LOCAL statement_timeout = {limit}; \
             SET LOCAL idle_in_transaction_session_timeout = {idle}"
        )
    }

    async fn attempt<R>(
        &self,
        job: &impl AsyncFn(&Connection, Attempt) -> Answer<R>,
        attempt: Attempt,
    ) -> Answer<R> {
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(Failure::Silent);
        };
        let client = self.client().await?;
        let done = match timeout(self.limits.answer, job(&client, attempt)).await {
            Ok(done) => done,
            Err(_) => {
                // The connection is dropped: its answers are no longer in step. The server is asked to
                // end the statement, if it can be reached at all.
                let token = client.cancel_token();
                let cancel = token.cancel_query(self.tls.0.clone());
                let _ = timeout(CANCEL_WITHIN, cancel).await;
                return Err(Failure::Silent);
            }
        };
        let is_usable = match &done {
            Ok(_) | Err(Failure::Store(_) | Failure::Repeat(_)) => true,
            Err(Failure::Server(error)) => error.as_db_error().is_some(),
            Err(Failure::Silent) => false,
        };
        if is_usable && !client.is_closed() {
            self.idle.borrow_mut().push(client);
        }
        done
    }

    /// Returns a connection that no other operation uses.
    async fn client(&self) -> Answer<Connection> {
        loop {
            let kept = self.idle.borrow_mut().pop();
            match kept {
                Some(client) if client.is_closed() => {}
                Some(client) => return Ok(client),
                None => return self.connect().await,
            }
        }
    }

    async fn connect(&self) -> Answer<Connection> {
        let mut config = self.address.config();
        config.connect_timeout(self.limits.connect);
        let connecting = timeout(self.limits.connect, config.connect(self.tls.0.clone()));
        let (client, connection) = connecting.await.map_err(|_| Failure::Silent)??;
        tokio::task::spawn_local(async move {
            // Each operation gets the error of its own request.
            let _ = connection.await;
        });
        self.was_reached.set(true);
        Ok(Connection {
            client,
            planned: RefCell::default(),
            can_plan: Cell::new(true),
        })
    }

    /// Maps a failure to the `StoreError` variant that callers handle.
    fn trouble(&self, what: &str, mode: Mode, failure: Failure) -> StoreError {
        let place = self.address.to_string();
        let unreachable = |reason: String| StoreError::Unreachable {
            place: format!("PostgreSQL at {}", self.address.host_and_port()),
            reason,
        };
        let error = match failure {
            Failure::Store(error) | Failure::Repeat(error) => return error,
            Failure::Silent => return unreachable("it does not answer in time".to_owned()),
            Failure::Server(error) => error,
        };
        if is_out_of_reach(&error) {
            return unreachable(reasons(&error));
        }
        let Some(found) = error.as_db_error() else {
            return StoreError::failed(format!("{what} in {place}"), reasons(&error));
        };
        let reason = found.message().to_owned();
        match found.code() {
            &SqlState::DISK_FULL => StoreError::Full { place },
            &SqlState::INSUFFICIENT_PRIVILEGE if mode == Mode::Read => {
                StoreError::failed(format!("{place} may not be read"), reason)
            }
            &SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::INSUFFICIENT_PRIVILEGE => {
                StoreError::ReadOnly { place, reason }
            }
            &SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN => {
                StoreError::damaged(place, reason)
            }
            &SqlState::UNIQUE_VIOLATION => StoreError::damaged(place, reason),
            _ => StoreError::failed(format!("{what} in {place}"), reason),
        }
    }
}

fn next_step(failure: &Failure) -> Next {
    match failure {
        Failure::Store(_) => Next::GiveUp,
        Failure::Repeat(_) => Next::Repeat,
        Failure::Silent => Next::Reconnect,
        Failure::Server(error) => next_step_of(error),
    }
}

fn next_step_of(error: &Error) -> Next {
    match error.code() {
        Some(
            &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::TOO_MANY_CONNECTIONS
            | &SqlState::CANNOT_CONNECT_NOW,
        ) => Next::Repeat,
        Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN) => Next::Reconnect,
        Some(code) if code.code().starts_with("08") => Next::Reconnect,
        Some(_) => Next::GiveUp,
        None if is_of_connection(error) => Next::Reconnect,
        None => Next::GiveUp,
    }
}

/// Returns true if the server cannot be used at all: another operation would fail in the same way.
fn is_out_of_reach(error: &Error) -> bool {
    let refuses = [SqlState::TOO_MANY_CONNECTIONS, SqlState::CANNOT_CONNECT_NOW];
    next_step_of(error) == Next::Reconnect
        || error.code().is_some_and(|code| refuses.contains(code))
}

/// Returns true if the connection failed, as opposed to a value or a password that is wrong.
fn is_of_connection(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    error.is_closed() || error.to_string().contains("connecting to server")
}

/// Runs a statement that is not prepared, and returns its rows.
pub(super) async fn query(
    client: &Client,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, Error> {
    client.query_typed(sql, values).await
}

/// Runs a statement that is not prepared, and returns the number of rows that it changed.
pub(super) async fn execute(
    client: &Client,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, Error> {
    client.execute_typed(sql, values).await
}
