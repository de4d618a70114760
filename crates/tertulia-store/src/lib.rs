//! Where sessions live. One small trait in plain data; one file per backend; [`Sessions`] is the
//! comfortable handle around it.
//!
//! | part | what |
//! |---|---|
//! | [`Store`] | what every backend can do, each the same way (see the conformance suite) |
//! | [`Sessions`] | what every door needs: naming, redaction, limits, rename, tag, trash, undo, fork |
//! | [`sqlite`] | the default backend: one database, one writer |
//! | [`files`] | one JSONL log per session, for `jq` and `rg` |
//! | `index` | the full-text index that both keep beside their logs; it may be deleted |
//! | `session_lock`, `queue`, `worker`, `place` | locks that say who has a session open; waiting for other writers; a thread that owns a connection; private files |
//! | [`LateStore`] | a store that could not be opened yet |

mod adopt;
mod by_project;
mod changes;
pub mod files;
mod foreign;
mod index;
mod late;
mod place;
mod queue;
mod salvage;
mod session_lock;
mod sessions;
pub mod sqlite;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use adopt::Adopted;
pub use foreign::{Doing, Intake, Taken};
pub use late::LateStore;
pub use queue::{GivenUp, HeldLock, LockHolder, Patience, Waits};
pub use session_lock::SessionLock;
pub use sessions::{Fork, Redaction, Resolved, Sessions, Start, check_message};

use tertulia_core::entry::{Entry, Head, Origin, Speaker};
use tertulia_core::id::{EntryId, Seq, SessionId};
use tertulia_core::query::{Filter, Hits, Listing, Lookup, Page, Row, SearchQuery};
use tertulia_core::session::{Damage, Line};

/// A place for sessions.
///
/// Whatever the backend: an entry that was given back as appended survives a crash of the machine;
/// nobody's entries come between two of one append; reading never needs anything but the store.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Begins a session with its first entries, on top of `new.base` if it is a fork. Durable when it
    /// returns, and as cheap for a fork of many entries as of few. [`StoreError::Exists`] if the id is taken.
    async fn create(&self, new: &NewSession) -> StoreResult<Head>;

    /// Appends entries that continue from `after`: all or none, durable when it returns. If the log
    /// does not end at `after` any more, [`StoreError::Conflict`]. Words (not tidying up) replace the
    /// session's draft.
    async fn append(&self, id: SessionId, after: Head, entries: &[Entry]) -> StoreResult<Head>;

    /// At most `limit` lines after place `after`, shared beginning included, without reading others.
    async fn read(&self, id: SessionId, after: Seq, limit: usize) -> StoreResult<Vec<Line>>;

    /// Sessions, newest first.
    async fn list(&self, filter: &Filter, page: &Page) -> StoreResult<Listing>;

    /// At most `limit` sessions of that name, in the trash or not, newest first.
    async fn find(&self, lookup: &Lookup, limit: usize) -> StoreResult<Vec<Row>>;

    /// Entries with these words. Everything appended before the call is found, unless the caller does not
    /// wait for the index: then the hits say how many entries are pending.
    async fn search(&self, query: &SearchQuery, progress: &Progress) -> StoreResult<Hits>;

    /// Brings the search index up to the logs, as far as the caller waits. How many entries are pending.
    async fn index(&self, progress: &Progress) -> StoreResult<u64>;

    /// Keeps a half-written answer in the one place that the finished one replaces.
    async fn keep_draft(&self, id: SessionId, draft: &Draft) -> StoreResult<()>;

    /// The half-written answer that nobody finished, if nobody has spoken since. Tidying up does not count.
    async fn draft(&self, id: SessionId) -> StoreResult<Option<Draft>>;

    /// Marks a session as open until the claim is dropped or the process ends, however it ends.
    /// `None` if somebody else has it open.
    async fn claim(&self, id: SessionId) -> StoreResult<Option<SessionLock>>;

    /// Removes a session physically. What its forks share with it stays readable through them.
    async fn purge(&self, id: SessionId) -> StoreResult<()>;

    /// Looks at every byte: hashes, order, derived rows, index. With [`CheckMode::Repair`] it salvages what
    /// is readable, keeps the damaged original beside it, and says what is lost.
    async fn check(&self, care: CheckMode, progress: &Progress) -> StoreResult<Report>;

    /// Derives list rows and search index anew from the logs.
    async fn rebuild(&self, progress: &Progress) -> StoreResult<Rebuilt>;

    /// What the store is, and how much is in it.
    async fn info(&self) -> StoreResult<Info>;

    /// How its writers wait for other programs.
    fn patience(&self) -> &Patience;
}

/// The beginning of a session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id, the one that its opening entry names.
    pub id: SessionId,
    /// The entry of another session that its log continues.
    pub base: Option<Origin>,
    /// Its first own entries.
    pub entries: Vec<Entry>,
}

/// An answer in the making.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// The end of the log that it answers.
    pub after: Head,
    /// The name that the finished message will have.
    pub id: EntryId,
    /// When it was last kept.
    pub at: Timestamp,
    /// Who is speaking.
    pub speaker: Speaker,
    /// The model that is speaking.
    pub model: Option<String>,
    /// The thread in which it is said.
    pub thread: Option<String>,
    /// The words so far.
    pub content: String,
}

impl Draft {
    /// Whether it still waits to be finished, given the lines after the place that it answers.
    fn still_waits(&self, lines: &[Line]) -> bool {
        let mut head = self.after;
        lines.iter().all(|line| match Entry::decode(&line.bytes) {
            Ok(entry) if entry.body.is_tidying() && entry.follows(&head) => {
                head = entry.head();
                true
            }
            _ => false,
        })
    }
}

/// Whether entries are words, which replace a half-written answer.
fn has_words(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| !entry.body.is_tidying())
}

/// Refuses entries whose last one announces more of its append: the rest would be missing for ever, and
/// a reader would take it for an append that was cut off.
pub(crate) fn check_whole(entries: &[Entry]) -> StoreResult<()> {
    match entries.last().and_then(unfinished_append) {
        Some(reason) => Err(StoreError::damaged("the log", reason)),
        None => Ok(()),
    }
}

/// What is wrong with a log that ends with this entry, if it announces more.
pub(crate) fn unfinished_append(last: &Entry) -> Option<String> {
    (last.then > 0).then(|| {
        format!(
            "entry {} announces {} more that are not there",
            last.seq, last.then
        )
    })
}

/// Whether a check may change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Only look.
    Look,
    /// Salvage what is readable. The moment names the copy that is kept of the damaged original.
    Repair(Timestamp),
}

/// What a check found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// How many sessions were looked at.
    pub sessions: u64,
    /// How many entries.
    pub entries: u64,
    /// Entries that are not as they were written.
    pub damage: Vec<Damage>,
    /// Damage to the store itself, to derived rows or to the index, in words.
    pub faults: Vec<String>,
    /// What is odd but harmless, in words.
    pub notes: Vec<String>,
    /// What a repair did, in words. Empty if nothing was repaired.
    pub repaired: Vec<String>,
    /// What a repair could not bring back, in words.
    pub lost: Vec<String>,
}

impl Report {
    /// Whether all is as it should be.
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.faults.is_empty()
    }
}

/// What was derived anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rebuilt {
    /// List rows.
    pub sessions: u64,
    /// Entries in the search index.
    pub entries: u64,
}

/// What a store is, and how much is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Info {
    /// The backend: `sqlite` or `files`.
    pub backend: &'static str,
    /// Where it is.
    pub place: String,
    /// The version of its format.
    pub format: u32,
    /// Sessions, those in the trash included.
    pub sessions: u64,
    /// Sessions in the trash.
    pub trashed: u64,
    /// Entries.
    pub entries: u64,
    /// Bytes on disk without the index.
    pub bytes: u64,
    /// Bytes of the search index.
    pub index_bytes: u64,
}

/// How far something long has come: told what is being done, how much is done, and of how much. It also says
/// how long the caller waits for work that a later call can finish.
#[derive(Clone)]
pub struct Progress {
    tell: Arc<dyn Fn(&'static str, u64, u64) + Send + Sync>,
    patience: Option<Duration>,
}

impl Progress {
    /// Progress that is told to `tell`.
    pub fn new(tell: impl Fn(&'static str, u64, u64) + Send + Sync + 'static) -> Progress {
        Progress {
            tell: Arc::new(tell),
            patience: None,
        }
    }

    /// Progress that nobody watches.
    pub fn unseen() -> Progress {
        Progress::new(|_, _, _| {})
    }

    /// The same for a caller who waits so long for what can be finished later.
    #[must_use]
    pub fn within(self, patience: Duration) -> Progress {
        Progress {
            patience: Some(patience),
            ..self
        }
    }

    /// Tells how far `what` has come.
    pub fn at(&self, what: &'static str, done: u64, total: u64) {
        (self.tell)(what, done, total);
    }

    /// The moment at which work that begins now is to pause, if any.
    fn deadline(&self) -> Deadline {
        Deadline(self.patience.map(|patience| Instant::now() + patience))
    }
}

/// When work pauses that can be finished later.
#[derive(Clone, Copy, Debug)]
struct Deadline(Option<Instant>);

impl Deadline {
    /// Work that is not paused.
    const NEVER: Deadline = Deadline(None);

    fn has_passed(self) -> bool {
        self.0.is_some_and(|moment| Instant::now() >= moment)
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// What a store answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a store cannot do what it was asked: each variant is something that a caller does differently.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// The id is taken.
    #[error("there is a session {0} already")]
    Exists(SessionId),
    /// Somebody else has appended since.
    #[error("another writer has appended to session {id}: it now ends at entry {}", head.seq)]
    Conflict {
        /// Which session.
        id: SessionId,
        /// Where its log ends now.
        head: Head,
    },
    /// The place holds something, but no store.
    #[error("{} is not a tertulia store: {reason}", place.display())]
    NotAStore {
        /// Where.
        place: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// A later version of the program wrote it.
    #[error("{} has format {found}; this program knows formats up to {known}", place.display())]
    NewerFormat {
        /// Where.
        place: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that can be read.
        known: u32,
    },
    /// The store is damaged in a way that hides what was asked for.
    #[error("{place} is damaged: {reason}")]
    Damaged {
        /// What is damaged.
        place: String,
        /// How.
        reason: String,
    },
    /// It is damaged, and nothing in it can be read.
    #[error("{} is damaged, and {}; it was left as it is", place.display(), nothing_left(*entries))]
    Unsalvageable {
        /// Where.
        place: PathBuf,
        /// How many entries it is known to have held.
        entries: u64,
    },
    /// It would grow too large.
    #[error("{what} would be {size} bytes long, {limit} are allowed")]
    TooLarge {
        /// What would.
        what: &'static str,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The words cannot be kept.
    #[error("{0}")]
    Refused(String),
    /// The disk is full.
    #[error("no space is left at {}", place.display())]
    Full {
        /// Where.
        place: PathBuf,
    },
    /// The place may not be written to.
    #[error("{} cannot be written to: {reason}", place.display())]
    ReadOnly {
        /// Where.
        place: PathBuf,
        /// Why.
        reason: String,
    },
    /// Another program is writing and does not let others in.
    #[error("{0}")]
    Held(Box<HeldLock>),
    /// Another program holds it and does not let go.
    #[error("{} is locked by another program", place.display())]
    Locked {
        /// Where.
        place: PathBuf,
    },
    /// Anything else, with its cause.
    #[error("{what}")]
    Failed {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
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

    /// Whether it says that bytes are not as they were written, rather than that they could not be
    /// reached now.
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
