//! Session storage: the [`Store`] trait, its backends, and the [`Sessions`] handle around them.
//!
//! ```
//! use std::sync::Arc;
//! use tertulia_core::clock::Clock;
//! use tertulia_core::entry::{Body, Kind, Role, human, plain};
//! use tertulia_store::sqlite::SqliteStore;
//! use tertulia_store::{Redaction, Sessions, Start, StoreResult};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> StoreResult<()> {
//! let store = Arc::new(SqliteStore::in_memory()?);
//! let clock = Clock::new(jiff::Timestamp::now, uuid::Uuid::now_v7);
//! let sessions = Sessions::new(store, clock, Redaction::On);
//! let start = Start {
//!     id: sessions.clock().session_id(),
//!     kind: Kind::Chat,
//!     title: None,
//!     team: None,
//!     project: None,
//!     project_ids: Vec::new(),
//!     cwd: None,
//!     terms: None,
//! };
//! let hello = Body::Message(plain(&human(), Role::User, "hello".to_owned()));
//! let (meta, _) = sessions.create(&start, vec![hello]).await?;
//! assert_eq!(sessions.load(meta.id).await?.messages().count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! | part | purpose |
//! |---|---|
//! | [`Store`] | operations of a backend; the conformance suite holds all backends to them |
//! | [`Maintenance`] | check, rebuild and description of a store |
//! | [`Sessions`] | what frontends use: lookup, redaction, limits, rename, tag, trash, undo, fork, merge |
//! | [`sqlite`] | the default backend: one database, one writer |
//! | [`files`] | one JSONL log per session, for `jq` and `rg` |
//! | `postgres` | a server that many machines share, with the Cargo feature `postgres` |
//! | [`sync`] | moving sessions between stores by hash |
//! | [`Ledger`] | usage, tool calls and files touched, derived from any store; it may be deleted |
//! | `index` | the full-text index that backends keep on this machine; it may be deleted |
//! | `session_lock` | locks that show which process has a session open |
//! | `queue` | waiting for other writers |
//! | [`KeySource`] | where the keys of sealed sessions come from |
//! | [`Threaded`] | the threads of a backend that blocks |
//! | `place` | creating private files and folders |
//! | [`LateStore`] | a store that could not be opened yet |
//!
//! The Cargo feature `postgres` adds a backend and its network crates. The others need SQLite alike:
//! the files backend keeps its list rows and its index in it. The crate pulls in no HTTP stack, no
//! terminal and no agent.

mod adopt;
mod chain;
mod changes;
mod engine;
pub mod files;
mod foreign;
mod index;
mod judge;
mod late;
mod ledger;
mod merge;
mod packed;
mod paging;
mod place;
#[cfg(feature = "postgres")]
pub mod postgres;
mod progress;
mod queue;
mod reading;
mod report;
mod salvage;
mod sealed;
mod selection;
mod session_lock;
mod sessions;
pub mod sqlite;
pub mod sync;
mod unsent;
mod worker;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use adopt::Adopted;
pub use engine::{Engine, Threaded, Upkeep};
pub use foreign::{Doing, Intake, Taken};
pub use late::LateStore;
pub use ledger::{CaughtUp, Extent, FileTouched, Ledger};
pub use merge::{Divergence, MergeBase, NewMerge};
pub use packed::Compressed;
use progress::Deadline;
pub use progress::Progress;
pub use queue::{GivenUp, HeldLock, LockHolder, Patience, Waits};
pub use report::{CheckMode, Info, Rebuilt, Report};
pub use sealed::{KeyError, KeySource, SealedCopy, SealedKey, Unlocking};
pub use session_lock::SessionLock;
pub use sessions::{Fork, Redaction, Resolved, Sessions, Start, check_message};
pub use unsent::{Unsent, UnsentMessage};

use tertulia_core::entry::{Entry, Head, Origin, Speaker};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::Line;
use tertulia_core::sizes::LogSize;

/// Storage backend for sessions.
///
/// Every backend guarantees: an entry whose append succeeded survives a crash of the machine; the
/// entries of one append are contiguous in the log; reading needs nothing but the store.
#[async_trait]
pub trait Store: Maintenance + std::fmt::Debug + Send + Sync {
    /// Creates a session with its first entries, on top of `new.base` if it is a fork. Durable on
    /// return; the cost does not depend on how many entries a fork shares. Fails with
    /// [`StoreError::Exists`] if the id is taken.
    async fn create(&self, new: &NewSession) -> StoreResult<Head>;

    /// Appends entries that continue from `after`: all or none, durable on return. Fails with
    /// [`StoreError::Conflict`] if the log does not end at `after`. Entries other than metadata
    /// changes replace the session's draft.
    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head>;

    /// Returns at most `limit` lines after `after`, a fork's shared prefix included, without
    /// reading other lines.
    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>>;

    /// Lists sessions, newest first.
    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing>;

    /// Returns at most `limit` sessions that match `lookup`, trashed ones included, newest first.
    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>>;

    /// Searches the entries' text. Finds everything appended before the call, unless `progress`
    /// limits the time to update the index: then [`Hits`] says how many entries are pending.
    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits>;

    /// Updates the search index within the time limit of `progress`. Returns the number of pending
    /// entries.
    async fn index(&self, progress: &Progress) -> StoreResult<u64>;

    /// Saves a partial answer as the session's only draft, until the finished answer replaces it.
    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()>;

    /// Returns the unfinished answer unless other entries followed; metadata changes do not count.
    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>>;

    /// Saves the words of the user that are not in the log of a session yet, in place of earlier ones;
    /// empty ones are removed. Durable on return. The session need not have been created. Purging it
    /// removes them. Fails in a session that was taken over.
    async fn keep_unsent(&self, id: SessionId, unsent: &Unsent) -> StoreResult<()>;

    /// Returns the words of the user that are not in the log of this session, or of any.
    async fn unsent(&self, id: Option<SessionId>) -> StoreResult<Vec<(SessionId, Unsent)>>;

    /// Marks a session as open until the lock is dropped or the process ends in any way. Returns
    /// `None` if another process has the session open.
    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>>;

    /// Returns who has a session open.
    async fn holder(&self, id: SessionId) -> StoreResult<Option<LockHolder>>;

    /// Marks a session as open like [`Store::claim`], also if another process has it open: from then on
    /// the appends of that one fail with [`StoreError::Conflict`].
    async fn take_over(&self, id: SessionId) -> StoreResult<SessionLock>;

    /// Physically removes a session. The prefix that its forks share stays readable through them.
    async fn purge(&self, id: SessionId) -> StoreResult<()>;

    /// Replaces the whole log of a session that ends at `after`, at once: there is always the old log
    /// or the new one. Nothing of the old one is left on return. Refuses if forks share its entries.
    async fn replace(&self, id: SessionId, _after: Head, _entries: &[Entry]) -> StoreResult<()> {
        Err(StoreError::Refused(format!(
            "this store cannot replace the log of session {}",
            id.short()
        )))
    }

    /// Replaces the entries after `keep` of a session that ends at `after`, at once: there is always
    /// the old end or the new one, which is not shorter. Refuses if forks share an entry after `keep`.
    async fn replace_end(
        &self,
        id: SessionId,
        after: Head,
        keep: Head,
        entries: &[Entry],
    ) -> StoreResult<()>;

    /// Returns how its writers wait for other processes.
    fn patience(&self) -> &Patience;

    /// Returns the path for a file of derived data, such as the ledger of usage. `None` if the store
    /// has no place for one: then it is derived in memory.
    fn derived_file(&self, _name: &str) -> Option<PathBuf> {
        None
    }
}

/// Maintenance of a store as a whole.
#[async_trait]
pub trait Maintenance {
    /// Checks every byte: hashes, order, derived rows, index. With [`CheckMode::Repair`] also
    /// salvages readable entries, keeps a copy of the damaged original, and reports losses.
    async fn check(&self, mode: CheckMode, progress: &Progress) -> StoreResult<Report>;

    /// Rebuilds list rows and the search index from the logs.
    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt>;

    /// Describes the store: backend, format, counts and sizes.
    async fn info(&self) -> StoreResult<Info>;

    /// Returns the size of every log, without reading more than list rows and, of a fork's base, the
    /// entries since the last snapshot.
    async fn sizes(&self) -> StoreResult<Vec<LogSize>>;

    /// Stores the own logs of sessions compressed. They stay readable, and are plain again after the
    /// next append. Leaves open and damaged sessions alone.
    async fn compress(&self, ids: &[SessionId], progress: &Progress) -> StoreResult<Compressed>;
}

/// A session to create.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Session id, as in the opening entry.
    pub id: SessionId,
    /// Entry of another session that a fork continues.
    pub base: Option<Origin>,
    /// The first entries of its own log.
    pub entries: Vec<Entry>,
}

/// A partial answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// Head of the log that the answer follows.
    pub after: Head,
    /// Entry id of the finished message.
    pub id: EntryId,
    /// Time of the last save.
    pub at: Timestamp,
    /// Speaker of the answer.
    pub speaker: Speaker,
    /// Model of the speaker.
    pub model: Option<String>,
    /// Thread of the answer.
    pub thread: Option<String>,
    /// Text so far; ciphertext of the whole draft if it is sealed.
    pub content: String,
    /// Reasoning so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// True if the draft is sealed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}

impl Draft {
    /// Returns the draft unless more than metadata changes followed it. `lines` is the log after the
    /// draft's head, `end` the head of the log.
    fn if_current(self, lines: &[Line], end: Option<Head>) -> Option<Draft> {
        let mut head = self.after;
        let waits = lines.iter().all(|line| match Entry::decode(&line.bytes) {
            Ok(entry) if entry.body.is_tidying() && entry.follows(&head) => {
                head = entry.head();
                true
            }
            _ => false,
        });
        let is_in_log = !lines.is_empty() || end == Some(self.after);
        Some(self).filter(|_| waits && is_in_log)
    }
}

/// Returns true if any entry is more than a metadata change and so replaces the draft.
fn has_words(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| !entry.body.is_tidying())
}

/// Returns the error for a log that cannot be replaced, because forks continue it.
pub(crate) fn shared_with_forks(id: SessionId) -> StoreError {
    StoreError::Refused(format!(
        "cannot replace entries of session {}: its forks share them",
        id.short()
    ))
}

/// Rejects entries whose last one announces more entries of its append: the rest would never come,
/// and a reader would take the log for one with an interrupted append.
pub(crate) fn check_whole(entries: &[Entry]) -> StoreResult<()> {
    match entries.last().and_then(unfinished_append) {
        Some(reason) => Err(StoreError::damaged("the log", reason)),
        None => Ok(()),
    }
}

/// Describes the fault of a log that ends with `last`, if `last` announces more entries.
pub(crate) fn unfinished_append(last: &Entry) -> Option<String> {
    (last.then > 0).then(|| {
        format!(
            "entry {} announces {} more that are not there",
            last.seq, last.then
        )
    })
}

/// Result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// Store failures. Each variant is one that callers handle differently.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// The id is taken.
    #[error("there is a session {0} already")]
    Exists(SessionId),
    /// The log has other entries after the expected head.
    #[error("another writer has appended to session {id}: it now ends at entry {}", head.seq)]
    Conflict {
        /// The session.
        id: SessionId,
        /// Where its log ends now.
        head: Head,
    },
    /// The place holds something other than a store.
    #[error("{place} is not a tertulia store: {reason}")]
    NotAStore {
        /// The path or URL.
        place: String,
        /// What it holds instead.
        reason: String,
    },
    /// A newer version of the program wrote the store.
    #[error("{place} has format {found}; this program knows formats up to {known}")]
    NewerFormat {
        /// The path or URL.
        place: String,
        /// Its format version.
        found: u32,
        /// The newest format version that this program reads.
        known: u32,
    },
    /// The store is damaged in a way that hides the requested data.
    #[error("{place} is damaged: {reason}")]
    Damaged {
        /// The damaged part.
        place: String,
        /// The kind of damage.
        reason: String,
    },
    /// The store is damaged, and no entry in it can be read.
    #[error("{place} is damaged, and {}; it was left as it is", nothing_left(*entries))]
    Unsalvageable {
        /// The path or URL.
        place: String,
        /// How many entries it is known to have held.
        entries: u64,
    },
    /// A size limit would be exceeded.
    #[error("{what} would be {size} bytes long, {limit} are allowed")]
    TooLarge {
        /// What would exceed it.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The session is sealed, and its key is not available.
    #[error("session {} is sealed: {reason}", id.short())]
    Sealed {
        /// The session.
        id: SessionId,
        /// Why its key is not available, or what it is needed for.
        reason: String,
    },
    /// There is no key to seal the session with.
    #[error("no key to seal session {} with: {reason}", id.short())]
    NoKey {
        /// The session.
        id: SessionId,
        /// What is wrong with the key.
        reason: String,
    },
    /// The session is sealed in one of two stores and plain in the other.
    #[error("session {} is sealed in one store and stored in plain in the other", id.short())]
    SealedInOne {
        /// The session.
        id: SessionId,
        /// True if the store that it would be moved to has the sealed one.
        in_target: bool,
        /// Number of entries that only the plain one has.
        only_plain: u64,
    },
    /// The session was sealed in each of two stores, with keys of their own.
    #[error("session {} is sealed with another key in each store", id.short())]
    SealedTwice {
        /// The session.
        id: SessionId,
    },
    /// The store rejects the input.
    #[error("{0}")]
    Refused(String),
    /// The disk is full.
    #[error("no space is left at {place}")]
    Full {
        /// The path or URL.
        place: String,
    },
    /// The place is not writable.
    #[error("{place} cannot be written to: {reason}")]
    ReadOnly {
        /// The path or URL.
        place: String,
        /// The reason.
        reason: String,
    },
    /// Another process holds the write lock for longer than the limit.
    #[error("{0}")]
    Held(Box<HeldLock>),
    /// Another process has the store, or a session to repair, locked.
    #[error("{place} is locked by another program")]
    Locked {
        /// The path or URL.
        place: String,
    },
    /// Another program has the session open.
    #[error("session {} is open in {}", id.short(), opened_by(holder.as_deref()))]
    Opened {
        /// The session.
        id: SessionId,
        /// The program, if it is known.
        holder: Option<Box<LockHolder>>,
    },
    /// The store at the other end of a link, or its server, cannot be reached, or not any more.
    #[error("{place} cannot be reached: {reason}")]
    Unreachable {
        /// The URL.
        place: String,
        /// The reason.
        reason: String,
    },
    /// Any other failure, with its cause.
    #[error("{what}")]
    Failed {
        /// The operation that failed.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn opened_by(holder: Option<&LockHolder>) -> String {
    holder.map_or_else(|| "another program".to_owned(), ToString::to_string)
}

fn nothing_left(entries: u64) -> String {
    match entries {
        0 => "no entry in it can be found".to_owned(),
        1 => "its only entry cannot be salvaged".to_owned(),
        entries => format!("none of its {entries} entries can be salvaged"),
    }
}

impl StoreError {
    pub(crate) fn failed(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StoreError {
        StoreError::Failed {
            what: what.into(),
            source: source.into(),
        }
    }

    pub(crate) fn not_a_store(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::NotAStore {
            place: path.display().to_string(),
            reason: reason.into(),
        }
    }

    pub(crate) fn locked(path: &Path) -> StoreError {
        StoreError::Locked {
            place: path.display().to_string(),
        }
    }

    /// Returns true if stored bytes are corrupt, as opposed to temporarily out of reach.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(
            self,
            StoreError::Damaged { .. }
                | StoreError::NotAStore { .. }
                | StoreError::Unsalvageable { .. }
        )
    }

    pub(crate) fn damaged(place: impl Into<String>, reason: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            place: place.into(),
            reason: reason.into(),
        }
    }
}
